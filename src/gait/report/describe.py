"""Contents of a log, trajectory or model, and of this installation, as rows."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gait._version import __version__
from gait.health import Health
from gait.log.log import Log
from gait.log.record import Record
from gait.log.trajectory import Trajectory
from gait.rows import Row

if TYPE_CHECKING:
    from gait.io import Reading
    from gait.nets import Model

MISSING = "not installed"
DISTRIBUTION = "gait-estimator"
_NOT_FOR_USERS = ("dev", "all")
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
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
    rows = overview(record)
    rows += _clock(record)
    if isinstance(record, Log):
        rows.append(Row("legs", " ".join(record.leg_names), "-"))
        rows.append(Row("joints", " ".join(record.joint_names), "-"))
    if record.metadata().get("source"):
        rows.append(Row("source", record.metadata()["source"], "-"))
    arrays = record.arrays()
    for field in record.FIELDS:
        if field.name in arrays:
            rows.append(Row(field.name, " x ".join(map(str, arrays[field.name].shape)), field.unit))
    if isinstance(record, Trajectory) and record.health is not None:
        for flag in Health:
            share = float(np.mean(record.health & flag.value != 0))
            rows.append(Row(f"health_{flag.name}".lower(), share, "-"))
    return rows


def reading(found: Reading) -> tuple[list[Row], list[str]]:
    """A file that was read: its record, its other streams, and the sanity checks.

    Returns:
        Rows, and lines of text: what was guessed, what the estimator uses, what looks wrong.
    """
    rows, lines = contents(found.record), [f"- {note}" for note in found.notes]
    for stream in found.streams:
        rate = "" if np.isnan(stream.rate) else f", {stream.rate:.4g} Hz"
        used = f", used for {stream.used}" if stream.used else ", not used"
        rows.append(Row(stream.name, f"{stream.kind or 'no type'}, {stream.count} samples{rate}{used}", "-"))
    if isinstance(found.record, Log):
        from gait.log.checks import check_log

        log = found.record
        lines += _uses(log)
        for finding in check_log(log):
            rows.append(Row(f"check_{finding.name}", "ok" if finding.ok else "look", "-"))
            lines.append(f"{'ok  ' if finding.ok else 'LOOK'} {finding.name}: {finding.words}")
    return rows, lines


def _uses(log: Log) -> list[str]:
    """Which fields the methods take from a log."""
    contact = next((name for name in ("tau", "foot_force", "contact") if getattr(log, name) is not None), None)
    targets = log.q_des is not None
    forces = "tau" if log.tau is not None else "q_des and gains" if targets else ""
    filters = f"tell contacts from {contact}" if contact else "tell contacts from q_des and gains" if targets else ""
    return [
        f"- gait-legs uses gyro, accel, q, dq{f' and {forces}' if forces else ' alone: no tau, no q_des'}",
        f"- gait uses gyro, accel, q, dq{' and q_des' if targets else ' alone; gait-flat and nmn need q_des'}",
        f"- filters on contacts {filters or 'cannot run: they need tau, foot_force, contact or q_des'}",
        "- ground truth serves for the start and for the score"
        if log.has_truth
        else "- no ground truth: nothing to score against",
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
    units = {name: "m/s" if "rmse" in name or "std" in name else "-" for name in model.results}
    return [Row(name, value, units[name]) for name, value in model.results.items()]


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
    rows.append(Row("longest_step", float(steps.max()), "s"))
    rows.append(Row("late_steps", int(late), "-"))
    if isinstance(record, Log):
        rows.append(Row("gaps", len(record.gaps()), "-"))
    return rows


def installation() -> list[Row]:
    """Versions and machine, as a bug report needs them."""
    needed, extras = _requirements()
    rows = [Row("gait", __version__, "-"), Row("python", platform.python_version(), "-")]
    names = dict.fromkeys([*needed, *(name for packages in extras.values() for name in packages)])
    rows += [Row(name, _version(name), "-") for name in names]
    for extra, packages in extras.items():
        there = all(_version(name) != MISSING for name in packages)
        rows.append(Row(f"extra_{extra}", "yes" if there else f"pip install '{DISTRIBUTION}[{extra}]'", "-"))
    return [
        *rows,
        Row("system", f"{platform.system()} {platform.release()} {platform.machine()}", "-"),
        Row("cpu", _cpu(), "-"),
        Row("cores", os.cpu_count() or 1, "-"),
        Row("robots", _names(".yaml", "robot"), "-"),
        Row("weights", _names(".safetensors", "weights"), "-"),
    ]


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Packages that gait needs, and those of each extra, as its own metadata name them."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        requirements = []
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        name, extra = found.groups() if found else (requirement, None)
        if extra is None:
            needed.append(name)
        elif extra not in _NOT_FOR_USERS and name != DISTRIBUTION:
            extras.setdefault(extra, []).append(name)
    return needed, extras


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
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
