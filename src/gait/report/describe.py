"""Contents of a log, trajectory or model, and of this installation, as rows."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gait._version import __version__
from gait.errors import install_hint
from gait.health import Health
from gait.log import Log, Record, Trajectory
from gait.rows import Row
from gait.samples import shipped

if TYPE_CHECKING:
    from gait.io import Reading
    from gait.io.format import StreamInfo
    from gait.log.finding import CheckFinding
    from gait.nets import Model

MISSING = "not installed"
DISTRIBUTION = "gait-estimator"
_NOT_FOR_USERS = ("dev", "all")
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)")
LATE = 1.5
"""A step this many times the usual one counts as late."""


def overview(record: Record) -> list[Row]:
    """Size, rate and kind of a record."""
    rows = [Row("rows", len(record), "-"), Row("rate", record.rate, "Hz"), Row("duration", record.duration, "s")]
    if isinstance(record, Log):
        rows += [Row("robot", record.robot, "-"), Row("truth", "yes" if record.has_truth else "no", "-")]
    return rows


def contents(record: Record) -> list[Row]:
    """Clock, names and the size of each field of a record."""
    rows = overview(record) + _clock(record)
    names = {"legs": "leg_names", "joints": "joint_names", "source": "source"}
    rows += _plain({name: one for name, key in names.items() if (one := record.metadata().get(key))})
    units = {field.name: field.unit for field in record.FIELDS}
    rows += [Row(name, " x ".join(map(str, one.shape)), units[name]) for name, one in record.arrays().items()]
    if isinstance(record, Trajectory) and record.health is not None:
        health = record.health
        rows += _plain({f"health_{flag.name}".lower(): float(np.mean(health & flag.value != 0)) for flag in Health})
    return rows


def _plain(values: Mapping[str, object]) -> list[Row]:
    """Rows without a unit."""
    return [Row(name, _word(value), "-") for name, value in values.items()]


def reading(found: Reading, findings: Sequence[CheckFinding]) -> tuple[list[Row], list[str]]:
    """A file that was read: its record, its other streams, and the sanity checks.

    Returns:
        Rows, and lines of text: what was guessed, what the estimator uses, what looks wrong.
    """
    rows, lines = [*contents(found.record), *streams(found.streams)], [f"- {note}" for note in found.notes]
    if isinstance(found.record, Log):
        lines += _uses(found.record)
    for finding in findings:
        rows.append(Row(f"check_{finding.name}", "ok" if finding.ok else "look", "-"))
        lines.append(f"{'ok  ' if finding.ok else 'LOOK'} {finding.name}: {finding.words}")
    return rows, lines


def streams(found: Sequence[StreamInfo]) -> list[Row]:
    """Topics of a bag, or datasets of another file."""
    rows = []
    for stream in found:
        rate = "" if np.isnan(stream.rate) else f", {stream.rate:.4g} Hz"
        used = f", used for {stream.used}" if stream.used else ", not used"
        rows.append(Row(stream.name, f"{stream.kind or 'no type'}, {stream.count} samples{rate}{used}", "-"))
    return rows


def _uses(log: Log) -> list[str]:
    """Which fields the methods take from a log."""
    contact = next((name for name in ("tau", "foot_force", "contact") if getattr(log, name) is not None), None)
    targets = log.q_des is not None
    forces = "tau" if log.tau is not None else "q_des and gains" if targets else ""
    source = contact or ("q_des and gains" if targets else "")
    filters = f"detect contacts from {source}" if source else ""
    return [
        f"- gait-legs uses gyro, accel, q, dq{f' and {forces}' if forces else ' alone: no tau, no q_des'}",
        f"- gait uses gyro, accel, q, dq{' and q_des' if targets else ' alone; gait-flat and nmn need q_des'}",
        f"- filters on contacts {filters or 'cannot run: they need tau, foot_force, contact or q_des'}",
        "- ground truth is used for the initial state and to compute errors"
        if log.has_truth
        else "- no ground truth: errors cannot be computed",
    ]


def model(model: Model) -> list[Row]:
    """A trained network: its inputs, cost, training and results."""
    from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters

    a = model.architecture
    values: dict[str, object] = {
        "network": a.kind,
        "parameters": parameters(a),
        "multiply_adds": multiply_adds(a),
        "multiply_adds_folded": folded_multiply_adds(a),
        "inputs": a.inputs,
        "robot": model.robot,
        "rate": model.rate,
        "legs": model.leg_names,
        "joints": model.joint_names,
        "commit": model.commit,
        **{f"training_{name}": value for name, value in model.training.items()},
    }
    rows = [Row(name, _word(value), "Hz" if name == "rate" else "-") for name, value in values.items()]
    return rows + result_rows(model)


def result_rows(model: Model) -> list[Row]:
    """The validation of a trained network."""
    return [Row(name, one, "m/s" if "rmse" in name or "std" in name else "-") for name, one in model.results.items()]


def _word(value: object) -> float | int | str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _clock(record: Record) -> list[Row]:
    rows = [Row("start", float(record.t[0]), "s")]
    if len(record) < 2:
        return rows
    steps = np.diff(record.t)
    late = np.count_nonzero(steps > LATE * np.median(steps))
    rows += [Row("longest_step", float(steps.max()), "s"), Row("late_steps", int(late), "-")]
    if isinstance(record, Log):
        rows.append(Row("gaps", len(record.gaps()), "-"))
    return rows


def installation() -> list[Row]:
    """Versions and machine, as a bug report needs them."""
    packages = _requirements()
    versions = {name: _version(name) for names in packages.values() for name in names}
    extras = {}
    for extra in filter(None, packages):
        there = all(versions[name] != MISSING for name in packages[extra])
        extras[f"extra_{extra}"] = "yes" if there else install_hint(extra)
    machine = {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "docs": str(shipped("docs")),
        "configs": str(shipped("configs")),
        "robots": _names(".yaml", "robot"),
        "weights": _names(".safetensors", "weights"),
    }
    return _plain({"gait": __version__, "python": platform.python_version(), **versions, **extras, **machine})


def _requirements() -> dict[str, list[str]]:
    """Packages of each extra, and under an empty name those that gait always needs, as its own metadata name them."""
    packages: dict[str, list[str]] = {"": []}
    with contextlib.suppress(metadata.PackageNotFoundError):
        for requirement in metadata.requires(DISTRIBUTION) or []:
            name, extra = re.split(r"[^\w.-]", requirement)[0], _EXTRA.search(requirement)
            if extra is None or (extra[1] not in _NOT_FOR_USERS and name != DISTRIBUTION):
                packages.setdefault(extra[1] if extra else "", []).append(name)
    return packages


def _names(suffix: str, folder: str) -> str:
    """The files of a folder of the package, by name: importing the modules that know them would compile."""
    return " ".join(sorted(path.stem for path in (Path(__file__).parents[1] / folder).glob(f"*{suffix}")))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return MISSING


def _cpu() -> str:
    """The name of the processor; the standard library has none on Linux."""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"^model name.*?:(.*)", text, re.MULTILINE):
            return found[1].strip()
    return platform.processor() or platform.machine()
