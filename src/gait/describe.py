"""What is in a record and in this installation, as rows."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gait._version import __version__
from gait.health import Health
from gait.log import Log
from gait.record import Record
from gait.results import Row
from gait.trajectory import Trajectory

if TYPE_CHECKING:
    from gait.nets import Model

_BASE = ("numpy", "numba", "safetensors", "tyro", "rich", "pyyaml")
_EXTRAS = ("mujoco", "daqp", "pillow", "matplotlib", "torch", "rosbags", "rerun-sdk", "onnxruntime")

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
    rows = [Row("gait", __version__, "-"), Row("python", platform.python_version(), "-")]
    rows += [Row(name, _version(name), "-") for name in (*_BASE, *_EXTRAS)]
    rows += [
        Row("system", f"{platform.system()} {platform.release()} {platform.machine()}", "-"),
        Row("cpu", _cpu(), "-"),
        Row("cores", os.cpu_count() or 1, "-"),
    ]
    return rows


def self_check() -> list[Row]:
    """Whether the compiled kinematics run here and agree with themselves: foot to joints and back."""
    from gait.robots import Robot

    robot = Robot.load("go1")
    feet = robot.feet(robot.q_stand)
    q = np.concatenate([robot.inverse(leg, feet[i]) for i, leg in enumerate(robot.leg_names)])
    error = float(np.abs(robot.feet(q) - feet).max())
    return [Row("self_check_kinematics", error, "m"), Row("self_check", "ok" if error < 1e-9 else "failed", "-")]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    """The name of the processor; the standard library has none on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
