"""A method as one C99 file and its header: the sources of the core, with weights, robot and parameters as constants.

What Python runs is compiled from the same sources, so with the same compiler flags the file gives the same bits.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from ctypes import Structure
from itertools import pairwise
from pathlib import Path
from string import Template
from textwrap import indent
from typing import Any, NamedTuple

import numpy as np

from gait._version import __version__
from gait.arrays import AnyArray
from gait.binding import CONTACTS, CConfig, core
from gait.engine import Engine, engines_of
from gait.errors import GaitError
from gait.io.atomic import atomic_path
from gait.methods import METHODS, is_python
from gait.nets.model import Model, load_model
from gait.robot import Robot

HEADERS, PRIVATE = ("network.h", "gait.h"), ("lie.h", "iekf.h", "core.h", "vector.h")
"""Headers of the core that callers see, and those that its sources alone see."""
_HEADER = Template("""\
/* $method of $robot: body velocity, orientation and position from IMU and joint encoders.
 *
 * Written by gait $version$trained.
 *
 *     static gait_storage memory;
 *     gait_output out;
 *     gait_t *g = gait_init(&memory, &$config);
 *     for each sample, a null pointer for what is not there:
 *         gait_sample sample = {t, gyro, accel, q, dq, q_des, tau, foot_force, contact, leg_ok};
 *         health = gait_update(g, &sample, &out.state);
 *
 * The first sample is taken to be that of a robot at rest; gait_reset starts at a known state.
 * Joints in this order, which is that of gait_joint_names:
$joint_comment
 */
#ifndef ${guard}_H
#define ${guard}_H
#ifdef GAIT_H
#error "a program takes the header of one exported file"
#endif

#define GAIT_MAX_LEGS $legs
#define GAIT_MAX_JOINTS $joints
#define GAIT_MAX_LINKS $links
#define GAIT_MAX_FEET $feet
#define GAIT_NETWORK_BYTES $network_bytes
$rate
$core
#ifdef __cplusplus
extern "C" {
#endif

/* Memory of one context. */
#define GAIT_BYTES (GAIT_CONTEXT_BYTES + GAIT_NETWORK_BYTES)
typedef union gait_storage {
    double aligned;
    unsigned char bytes[GAIT_BYTES];
} gait_storage;

/* The state, and behind it the details of this method. */
typedef struct gait_output {
    gait_state state;
$details} gait_output;

extern const gait_config $config;
extern const char *const gait_joint_names[GAIT_MAX_JOINTS];

#ifdef __cplusplus
}
#endif
#endif
""")
_ALIGNED = """
#ifdef __GNUC__
#define GAIT_ALIGNED __attribute__((aligned(64)))
#else
#define GAIT_ALIGNED
#endif

"""


class CFiles(NamedTuple):
    """The two texts."""

    source: str
    header: str


def core_sources() -> Path:
    """The folder of the core's sources: part of an installed package, beside `src` in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "core_sources"
    return installed if installed.is_dir() else package.parents[1] / "core"


def c_files(method: str | Path | Model, name: str, robot: Robot | None = None) -> CFiles:
    """The C source and its header.

    Args:
        method: name of a method, or a model: its name, the path of its file, or a `Model`.
        name: of the files without their ending: the source includes `<name>.h`.
        robot: whose kinematics, drives and IMU pose go in; by default the one the model names, or the Go1.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise GaitError(f"'{name}' cannot name a C file: use letters, digits, '_', '-' and '.'")
    engine, title, trained = _engine(method, robot)
    joints = list(map(_plain, engine.robot.joint_names))
    by_leg = [joints[i:j] for i, j in pairwise(engine.robot.leg_start)]
    identifier = re.sub(r"\W", "_", name).removeprefix("gait_")
    symbol = f"gait_{identifier}_config"
    names = ",\n".join("    " + ", ".join(f'"{joint}"' for joint in leg) for leg in by_leg)
    header = _HEADER.substitute(
        _sizes(engine),
        method=_plain(title),
        trained=trained,
        version=__version__,
        robot=_plain(engine.robot.name),
        guard=f"GAIT_EXPORT_{identifier}".upper(),
        config=symbol,
        joint_comment="\n".join(f" *     {', '.join(leg)}" for leg in by_leg),
        details="".join(f"    double {detail} */\n" for detail in _details(engine)),
        core="".join(map(_own, HEADERS)),
    )
    source = [
        f"/* See {name}.h. The sources of the core in one file, then weights, robot and parameters. */\n",
        f'#include "{name}.h"\n',
        *map(_own, (*PRIVATE, *sorted(path.name for path in core_sources().glob("*.c")))),
        *_constants(engine),
        f"const gait_config {symbol} = {_initialiser(engine.config, _pointers(engine))};\n\n",
        f"const char *const gait_joint_names[GAIT_MAX_JOINTS] = {{\n{names}}};\n",
    ]
    return CFiles("".join(source), header)


def save_c(method: str | Path | Model, path: str | Path, robot: Robot | None = None) -> tuple[Path, Path]:
    """Write `<path>.c` and `<path>.h`, each whole or not at all, and return their paths."""
    stem = Path(path).with_suffix("") if Path(path).suffix in (".c", ".h") else Path(path)
    files = c_files(method, stem.name, robot)
    paths = stem.with_name(f"{stem.name}.c"), stem.with_name(f"{stem.name}.h")
    with atomic_path(paths[0]) as source, atomic_path(paths[1]) as header:
        source.write_text(files.source, encoding="utf-8")
        header.write_text(files.header, encoding="utf-8")
    return paths


def model_of(method: str | Path) -> Model | None:
    """The network behind a method, or that of a model's name or path; None for a method without one."""
    known = METHODS.get(str(method))
    return load_model(method) if known is None else load_model(known.weights) if known.weights else None


def _engine(method: str | Path | Model, robot: Robot | None) -> tuple[Engine, str, str]:
    """The engine, the name of the method or the kind of the model, and where weights come from."""
    if is_python(str(method)):
        raise GaitError(f"method {method} is written in Python: only methods of the core can be exported")
    model = method if isinstance(method, Model) else model_of(method)
    robot = robot or Robot.load("go1" if model is None else model.robot)
    if model is not None and str(method) not in METHODS:
        method = model if robot.name == model.robot else model.for_robot(robot)
    engine, _, name = engines_of(method, robot, {"attention": True})
    engine.config.with_details = engine.by_leg
    trained = "" if model is None else f" from a model of kind {model.architecture.kind}, commit {_plain(model.commit)}"
    return engine, name, trained


def _sizes(engine: Engine) -> dict[str, str | int]:
    """Numbers that the header defines before anything else."""
    config, robot = engine.config, engine.robot
    bare = CConfig.from_buffer_copy(config)
    bare.network = bare.spare_network = bare.leg_network = bare.spare_leg_network = None
    rate = f"#define GAIT_RATE {round(1.0 / config.period, 9)} /* of the network, Hz */\n"
    return {
        "legs": robot.num_legs,
        "joints": robot.num_joints,
        "links": sum(len(leg.axes) for leg in robot.legs),
        "feet": robot.num_legs if config.method == CONTACTS else 0,
        "network_bytes": engine.bytes - core().gait_bytes(ctypes.addressof(bare)),
        "rate": rate if engine.networks else "",
    }


def _details(engine: Engine) -> Iterator[str]:
    """Declarations of the details behind the state."""
    shape = engine.shape
    if shape.tested:
        yield f"leg_test_ratio[{shape.tested}]; /* innovation of each leg over its gate"
    if engine.by_leg and shape.history:
        yield f"attention[{shape.history}][{shape.tokens}]; /* of each leg to each other"
    if engine.by_leg:
        yield f"legs[{shape.legs}][6]; /* body velocity by each leg and its log-std"
    if shape.contacts:
        yield f"contact[{shape.contacts}]; /* 1: the foot is on the ground"


def _own(name: str) -> str:
    """A file of the core without its includes of other files of the core."""
    text = (core_sources() / name).read_text(encoding="utf-8")
    return "\n" + re.sub(r'^#include ".*\n', "", text, flags=re.MULTILINE)


def _pointers(engine: Engine) -> dict[str, str]:
    """What each pointer of the configuration points to in C."""
    known = {ctypes.addressof(network): f"&network_{i}" for i, network in enumerate(engine.networks)}
    names = ("network", "spare_network", "leg_network", "spare_leg_network")
    return {name: known.get(getattr(engine.config, name), "0") for name in names}


def _constants(engine: Engine) -> Iterator[str]:
    """Weights, and the structs that point to them."""
    kind = "gait_leg_network" if engine.by_leg else "gait_network"
    yield _ALIGNED
    for i, network in enumerate(engine.networks):
        places = {name: f"network_{i}_{name}" for name in network.arrays}
        for name, array in network.arrays.items():
            c_type = "float" if array.dtype == np.float32 else "int32_t"
            yield f"static const {c_type} {places[name]}[] GAIT_ALIGNED = {{\n{_rows(array)}}};\n"
        yield f"static const {kind} network_{i} = {_initialiser(network, places)};\n\n"


def _rows(array: AnyArray) -> str:
    """Numbers, ten a line."""
    suffix = "f" if array.dtype == np.float32 else ""
    numbers = [f"{number}{suffix}" for number in array]
    return "".join(f"    {', '.join(numbers[i : i + 10])},\n" for i in range(0, len(numbers), 10))


def _initialiser(struct: Structure, pointers: Mapping[str, str]) -> str:
    """A struct in braces; its pointers as they are given."""
    fields: Any = struct._fields_
    lines = [f".{name} = {pointers.get(name) or _literal(kind, getattr(struct, name))},\n" for name, kind in fields]
    return f"{{\n{indent(''.join(lines), '    ')}}}"


def _literal(kind: Any, value: Any) -> str:
    """A field of a struct such that a compiler reads the same bits."""
    if isinstance(value, Structure):
        return _initialiser(value, {})
    if isinstance(value, ctypes.Array):
        return _braces(np.ctypeslib.as_array(value))
    if kind is ctypes.c_float:
        return f"{np.float32(value)}f"
    return _number(value) if isinstance(value, int | float) else "0"


def _braces(array: AnyArray) -> str:
    """An array of any dimension. C fills up with zeros: a robot has fewer legs and joints than there is room for."""
    while len(array) > 1 and not array[-1].tobytes().strip(b"\0"):
        array = array[:-1]
    return f"{{{', '.join(_number(item) if array.ndim == 1 else _braces(item) for item in array)}}}"


def _number(value: Any) -> str:
    """A double or a whole number; the shortest text that gives the same bits."""
    return ("-INFINITY" if value < 0 else "INFINITY") if np.isinf(value) else str(value)


def _plain(text: str) -> str:
    """Text for comments and strings of C: letters, digits and a few signs."""
    return re.sub(r"[^A-Za-z0-9_., ()+-]", "_", text)
