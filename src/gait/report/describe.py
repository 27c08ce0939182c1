"""What is in a record and in this installation, as rows."""

from __future__ import annotations

import os
import platform
import re
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gait._version import __version__
from gait.health import Health
from gait.log.log import Log
from gait.log.record import Record
from gait.log.trajectory import Trajectory
from gait.rows import Row
from gait.samples import SAMPLE

if TYPE_CHECKING:
    from gait.io import Reading
    from gait.nets import Model

MISSING = "not installed"
DISTRIBUTION = "gait-estimator"
_NOT_FOR_USERS = ("dev", "all")
_REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
CHECK_SECONDS, CHECK_RMSE = 2.0, 0.1
"""Part of the sample that the self-check estimates, and the velocity error that it allows, m/s: four times its own."""

LATE = 1.5
"""A step this many times the usual one counts as late."""


def overview(record: Record) -> list[Row]:
    """What a record is, in a few rows."""
    rows = [Row("rows", len(record), "-"), Row("rate", record.rate, "Hz"), Row("duration", record.duration, "s")]
    if isinstance(record, Log):
        rows += [Row("robot", record.robot, "-"), Row("truth", "yes" if record.has_truth else "no", "-")]
    return rows


def contents(record: Record) -> list[Row]:
    """All about a record: clock, names, and the size of each field."""
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
    """All about a file that was read: its record, what else it holds, and whether it is what it says.

    Returns:
        Rows, and lines for people: what was guessed, what the estimator uses, what looks wrong.
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
        "- the truth serves for the start and for the score"
        if log.has_truth
        else "- no truth: nothing to score against",
    ]


def model(model: Model) -> list[Row]:
    """All about a trained network: what it reads, what it costs, how it was made and how good it was."""
    from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters

    a = model.architecture
    rows = [
        Row("network", a.kind, "-"),
        Row("parameters", parameters(a), "-"),
        Row("multiply_adds", multiply_adds(a), "-"),
        Row("multiply_adds_folded", folded_multiply_adds(a), "-"),
        Row("inputs", " ".join(a.inputs), "-"),
        Row("robot", model.robot, "-"),
        Row("rate", model.rate, "Hz"),
        Row("legs", " ".join(model.leg_names), "-"),
        Row("joints", " ".join(model.joint_names), "-"),
        Row("commit", model.commit, "-"),
    ]
    rows += [Row(f"training_{name}", _word(value), "-") for name, value in model.training.items()]
    for name, value in model.results.items():
        rows.append(Row(name, value, "m/s" if "rmse" in name or "std" in name else "-"))
    return rows


def _word(value: object) -> float | int | str:
    if isinstance(value, list):
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


def self_check() -> list[Row]:
    """Whether the estimator runs here and is right: foot to joints and back, then a part of the sample log.

    What goes wrong becomes a row, since a bug report needs the other rows all the same.
    """
    rows: list[Row] = []
    wrong: list[str] = []
    try:
        rows += _runtime()
        for check, limit in (_check_kinematics, 1e-9), (_check_estimator, CHECK_RMSE):
            row, *more = check()
            rows += [row, *more]
            # nan is not below any limit.
            if not float(row.value) < limit:
                wrong.append(f"{row.name} is {row.value:.3g} {row.unit}, more than {limit:g}")
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return [*rows, Row("self_check", f"failed: {'; '.join(wrong)}" if wrong else "ok", "-")]


def _runtime() -> list[Row]:
    """What runs the estimator, who chose it, and where compiled code is kept."""
    from gait._compile import RUNTIME

    asked = " (GAIT_RUNTIME)" if os.environ.get("GAIT_RUNTIME") else ""
    rows = [Row("runtime", f"{RUNTIME}{asked}", "-")]
    if RUNTIME == "numba":
        import numba

        from gait.runtime import velocity_aided

        stats: Any = getattr(velocity_aided.run_rows, "stats", None)
        rows.append(Row("cache", numba.config.CACHE_DIR or str(stats.cache_path), "-"))
    return rows


def _check_kinematics() -> list[Row]:
    from gait.robot import Robot

    robot = Robot.load("go1")
    feet = robot.feet(robot.q_stand)
    q = np.concatenate([robot.inverse(leg, feet[i]) for i, leg in enumerate(robot.leg_names)])
    return [Row("self_check_kinematics", float(np.abs(robot.feet(q) - feet).max()), "m")]


def _check_estimator() -> list[Row]:
    from gait.estimator import Estimator
    from gait.metrics import velocity_rmse

    log = Log.load(SAMPLE)
    log = log.slice(t1=float(log.t[0]) + CHECK_SECONDS)
    estimator = Estimator.load(log.robot)
    # Processor time: a busy machine shall not look like a slow one.
    start = time.process_time()
    trajectory = estimator.run(log)
    spent = time.process_time() - start
    rmse = velocity_rmse(trajectory, log).rmse
    return [Row("self_check_velocity_rmse", rmse, "m/s"), Row("self_check_step", spent / len(log) * 1e6, "us")]


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
