"""A model and the filter around it as one C99 file and its header, with weights and the robot's IMU pose inside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from gait import lie
from gait._version import __version__
from gait.arrays import Array
from gait.errors import GaitError
from gait.export.c_text import (
    BLOCK,
    NO_WORDS,
    CNetwork,
    blocks,
    defines,
    doubles,
    enum,
    floats,
    number,
    pad,
    padded,
    plain,
)
from gait.export.heads import Heads, heads_of
from gait.health import FIRST_LEG, Health
from gait.io.atomic import atomic_path
from gait.nets.architecture import AttentionArchitecture, LegsArchitecture
from gait.nets.fold import Folded
from gait.nets.model import Model
from gait.parameters import LEGS_NOISE, Options, Prior, ProcessNoise
from gait.robot import Robot

TEMPLATES = Path(__file__).parent / "templates"
LIMITS = {
    "MAX_GYRO": 34.9,
    "MAX_ACCEL": 157.0,
    "MAX_JOINT": 100.0,
    "MAX_JOINT_SPEED": 1000.0,
    "CLOCK_RESET": 1.0,
    "LONGEST_GAP": 10.0,
    "MAX_SPEED": 30.0,
    "MAX_STD": 10.0,
}
"""Ranges of the sensors (2000 deg/s, 16 g; rad and rad/s for joints), beyond which a number counts as broken; seconds
into the past that are a clock set anew, and the longest pause that is bridged as a whole; m/s that no legged robot
reaches, and how unsure a filter is that knows nothing."""
JITTER = 0.2
"""A sample within this part of the network's period is its sample, as in `gait.runtime.engines`."""


class CFiles(NamedTuple):
    """The two texts."""

    source: str
    header: str


def c_files(model: Model, name: str, robot: Robot | None = None) -> CFiles:
    """The C source and its header.

    Args:
        model: of any kind.
        name: of the files without their ending: the source includes `<name>.h`.
        robot: whose IMU pose goes in, and with `gait-legs` all that is known of its legs; by default the one the model
            names.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise GaitError(f"'{name}' cannot name a C file: use letters, digits, '_', '-' and '.'")
    robot = Robot.load(model.robot) if robot is None else robot
    if isinstance(model.architecture, LegsArchitecture) or robot.name != model.robot:
        model = model.for_robot(robot)
    if isinstance(model.architecture, LegsArchitecture):
        # Here and not above: other networks need not wait until this is compiled.
        from gait.export.c_legs import leg_network

        network = leg_network(model, robot)
    else:
        network = _network(model)
    words = {**_words(model, name), **network.words}
    words["network_functions"] = _fill(network.prototypes, words)
    words["network_state"] = network.state
    source = [
        _fill("gait.c.in", words),
        "".join(_constants(model, robot)),
        network.constants,
        *(_fill(template, words) for template in ("layers.c.in", *network.templates)),
        *(_fill(template, words) for template in ("filter.c.in", "estimator.c.in", network.samples, "update.c.in")),
    ]
    return CFiles("".join(source), _fill("gait.h.in", words))


def save_c(model: Model, path: str | Path, robot: Robot | None = None) -> tuple[Path, Path]:
    """Write `<path>.c` and `<path>.h`, each whole or not at all, and return their paths."""
    stem = Path(path).with_suffix("") if Path(path).suffix in (".c", ".h") else Path(path)
    files = c_files(model, stem.name, robot)
    paths = stem.with_name(f"{stem.name}.c"), stem.with_name(f"{stem.name}.h")
    with atomic_path(paths[0]) as source, atomic_path(paths[1]) as header:
        source.write_text(files.source, encoding="utf-8")
        header.write_text(files.header, encoding="utf-8")
    return paths


def _fill(template: str, words: dict[str, str]) -> str:
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(words)


def _words(model: Model, name: str) -> dict[str, str]:
    a = model.architecture
    legs = [model.joint_names[3 * i : 3 * i + 3] for i in range(a.legs)]
    return {
        "name": name,
        "guard": re.sub(r"\W", "_", f"GAIT_EXPORT_{name}").upper(),
        "robot": plain(model.robot),
        "kind": a.kind,
        "commit": plain(model.commit),
        "gait_version": __version__,
        "rate": f"{model.rate:g}",
        "rate_double": repr(float(model.rate)),
        "legs": str(a.legs),
        "joints": str(3 * a.legs),
        "targets": str(int(a.targets)),
        "hides": str(int(a.kind in ("gait", "gait-legs"))),
        "first_leg": str(FIRST_LEG),
        "max_gap": f"{Options().max_gap:g}",
        "joint_comment": "\n".join(f" *     {plain(', '.join(leg))}" for leg in legs),
        "joint_names": ",\n".join("    " + ", ".join(f'"{plain(joint)}"' for joint in leg) for leg in legs),
        "health": ",\n".join(
            f"    GAIT_{flag.name} = {flag.value}" for flag in Health if flag.name is not None
        ),
    }  # fmt: skip


def _state(model: Model, heads: Heads) -> str:
    a = model.architecture
    lines = []
    if isinstance(a, AttentionArchitecture):
        queries = a.latents * a.heads
        lines += [
            f"    float sample[{a.history}][{a.num_features}]; /* the last {a.history} samples, in a ring */",
            f"    float score[{a.history}][{len(a.tokens) * queries}];",
            "    int count; /* samples so far, and modulo the ring from then on */",
        ]
    return "\n".join([*lines, f"    float hidden[{heads.grus}][{heads.hidden}];"])


def _constants(model: Model, robot: Robot) -> Iterator[str]:
    """What the code around a network names in capitals."""
    a, options = model.architecture, Options()
    yield enum({"BLOCK": BLOCK})
    yield f"#define LOG_STD_MIN {number(a.log_std_min)}\n#define LOG_STD_MAX {number(a.log_std_max)}\n\n"
    prior, p = [], Prior()
    for std in (p.velocity, p.position, p.gyro_bias, p.accel_bias):
        prior += [std] * 3
    # Read off the shared parameters, so that the file does what Python does.
    yield defines({
        "GRAVITY": options.gravity,
        "MAX_GAP": options.max_gap,
        "GAP_ACCEL": options.gap_accel,
        "GAP_RATE": options.gap_rate,
        "PERIOD": 1.0 / model.rate,
        "TOLERANCE": JITTER / model.rate,
        **LIMITS,
    })  # fmt: skip
    yield "/* Noise densities of gyro, accelerometer and their biases, and of the accelerometer by the body's\n"
    yield "   acceleration; then standard deviations at the start. */\n"
    noise = LEGS_NOISE if isinstance(a, LegsArchitecture) else ProcessNoise()
    yield doubles("NOISE", noise.densities)
    yield doubles("PRIOR", np.array([p.rotation, p.rotation, p.yaw, *prior]))
    yield f"/* Axes and place of the IMU of {plain(robot.name)} in base_link. */\n"
    yield doubles("IMU_ROTATION", lie.rotation_from_quat(robot.imu_quat_wxyz))
    yield doubles("IMU_POSITION", robot.imu_position)


def _network(model: Model) -> CNetwork:
    """Any kind but `gait-legs`."""
    a = model.architecture
    heads, folded = heads_of(model)
    sizes = {
        "FEATURES": a.num_features,
        "GRUS": heads.grus,
        "HIDDEN": heads.hidden,
        "GATES": padded(3 * heads.hidden),
        "LAYER": padded(heads.mlp),
        "INPUTS": heads.gate_weight.shape[2],
    }
    constants = [defines({"VARIANCE_FACTOR": Options().inflation ** 2})]
    if folded is not None:
        assert isinstance(a, AttentionArchitecture)
        places = sum(a.embeddings.values())
        sizes |= {
            "SLOTS": a.history,
            "TOKENS": len(a.tokens),
            "QUERIES": a.latents * a.heads,
            "PLACES": places,
            "POOLED": places + len(a.tokens) + a.history,
        }
        constants += _attention(folded, a)
        heads = heads._replace(gate_weight=_by_place(heads.gate_weight, sizes["QUERIES"]))
    constants += [enum(sizes), *_layers(heads, sizes["GATES"], sizes["LAYER"])]
    code = "plain.c.in" if folded is None else "attention.c.in"
    return CNetwork(
        "".join(constants), ("heads.c.in", code), "samples.c.in", "network.h.in", _state(model, heads), NO_WORDS
    )


def _attention(f: Folded, a: AttentionArchitecture) -> Iterator[str]:
    """Features in the order of the tokens, queries side by side: so that a vector register holds all queries."""
    order = np.array([column for token in a.tokens for column in token.columns])
    for name, values in (("feature_of", order), ("token_of", f.token_of[order]), ("place_of", f.place_of[order])):
        yield f"static const unsigned char {name}[{len(values)}] = {{{', '.join(map(str, values))}}};\n"
    yield floats("score_weight", f.score_weight[:, order].T)
    yield floats("score_bias", f.score_bias.T.ravel())
    yield floats("slot_bias", np.tile(f.slot_bias.T, len(a.tokens)))


def _by_place(gate_weight: Array, queries: int) -> Array:
    """Columns of the pooled numbers reordered: all queries of one number side by side."""
    grus, gates, inputs = gate_weight.shape
    pooled = gate_weight[:, :, : inputs - 6].reshape(grus, gates, queries, -1).swapaxes(2, 3)
    return np.concatenate([pooled.reshape(grus, gates, -1), gate_weight[:, :, inputs - 6 :]], axis=2)


def _layers(h: Heads, gates: int, layer: int) -> Iterator[str]:
    offset = np.concatenate([np.zeros((h.grus, 2 * h.hidden)), h.recurrent_bias], axis=1)
    yield floats("gate_weight", blocks(pad(h.gate_weight, gates).reshape(h.grus * gates, -1)))
    yield floats("gate_bias", pad(h.gate_bias, gates).ravel())
    yield floats("recurrent_weight", np.stack([blocks(pad(w[None], gates)[0]) for w in h.recurrent_weight]))
    yield floats("recurrent_bias", pad(offset, gates))
    yield floats("hidden_weight", np.stack([blocks(pad(w[None], layer)[0]) for w in h.hidden_weight]))
    yield floats("hidden_bias", pad(h.hidden_bias, layer))
    yield floats("output_weight", pad(h.output_weight.swapaxes(1, 2), layer))
    yield floats("output_bias", h.output_bias)
