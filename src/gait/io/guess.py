"""What a column or a dataset holds, from its name."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gait.io.joints import words_of

_DEGREE = math.pi / 180.0
UNITS = {
    "deg": _DEGREE, "deg/s": _DEGREE, "dps": _DEGREE, "degrees": _DEGREE,
    "g": 9.80665, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "mm": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
    "rad": 1.0, "rad/s": 1.0, "m": 1.0, "m/s": 1.0, "m/s^2": 1.0, "m/s2": 1.0, "nm": 1.0, "n": 1.0,
}  # fmt: skip
"""Words for units, and what they are in SI."""

_TIME = {"t", "time", "timestamp", "timestamps", "stamp", "stamps", "clock"}
_GYRO = {"gyro", "gyroscope", "omega", "angvel", "angular", "gyr"}
_ACCEL = {"accel", "acc", "accelerometer", "acceleration", "accelerations", "linacc"}
_QUAT = {"quat", "quaternion", "quaternions", "orientation", "rotation", "rot", "att", "attitude"}
_POSITION = {"pos", "position", "positions", "p", "xyz", "translation"}
_VELOCITY = {"vel", "velocity", "velocities", "v", "speed", "twist"}
_JOINT = {"joint", "joints", "q", "dq", "qd", "motor", "motors", "qj", "dof", "jpos", "jvel"}
_ANGLE = {"q", "pos", "position", "positions", "angle", "angles", "qj", "jpos"}
_RATE = {"dq", "qd", "vel", "velocity", "velocities", "speed", "qdot", "dqj", "jvel"}
_TORQUE = {"tau", "torque", "torques", "effort", "efforts", "tauest"}
_TARGET = {
    "des",
    "desired",
    "target",
    "targets",
    "cmd",
    "command",
    "commands",
    "ref",
    "reference",
    "goal",
    "setpoint",
    "action",
}
_WORLD, _BODY = {"w", "world", "global", "truth", "gt", "ground"}, {"b", "body", "local"}
_SHORT = {"wx": "gyro", "wy": "gyro", "wz": "gyro", "gx": "gyro", "gy": "gyro", "gz": "gyro",
          "ax": "accel", "ay": "accel", "az": "accel",
          "qw": "quat_wb_wxyz", "qx": "quat_wb_wxyz", "qy": "quat_wb_wxyz", "qz": "quat_wb_wxyz",
          "px": "pos_w", "py": "pos_w", "pz": "pos_w", "tx": "pos_w", "ty": "pos_w", "tz": "pos_w"}  # fmt: skip


@dataclass(frozen=True)
class Guess:
    """A field of a Log, or a part of one."""

    field: str
    """`t`, or a field of Log."""
    part: str = ""
    """x, y, z or w; the name of a joint; empty for a whole field."""
    scale: float = 1.0
    """From its unit to that of the field."""


def guess_field(name: str) -> Guess | None:
    """What an array of that name may hold, such as `imu/gyro` or `joint_positions`; None if nobody knows."""
    bare, scale = _unit(name)
    words = words_of(bare)
    last = words_of(re.split(r"[/:]", bare)[-1])
    field = _field(words, last)
    return None if field is None else Guess(field, "", scale)


def guess_column(name: str, joints: Sequence[object], meaning: object) -> Guess | None:
    """What a column of that name may hold, such as `imu_wx`, `FR_hip_vel` or `q_3`.

    Args:
        name: of the column.
        joints: what the joints of the robot mean, as `gait.io.joints` has it.
        meaning: the same of this column.
    """
    bare, scale = _unit(name)
    words = words_of(bare)
    if not words:
        return None
    if meaning is not None and meaning in joints:
        wanted = _joint_field(set(words)) if set(words) & (_TORQUE | _RATE | _TARGET) else "q"
        return None if wanted is None else Guess(wanted, bare, scale)
    tail = words[-1]
    if tail in _SHORT:
        return Guess(_SHORT[tail], tail[-1], scale)
    if tail in ("x", "y", "z", "w"):
        field = _field(words[:-1], words[:-1])
        if field in ("gyro", "accel", "pos_w", "vel_w", "quat_wb_wxyz"):
            return Guess(field, tail, scale)
        return None
    index = next((word for word in reversed(words) if word.isdigit()), None)
    if index is not None and _JOINT & set(words):
        field = _joint_field(set(words))
        return None if field is None else Guess(field, f"joint_{int(index)}", scale)
    return Guess("t", "", scale) if _TIME & set(words) and not _JOINT & set(words) else None


def _unit(name: str) -> tuple[str, float]:
    """The name without its unit, and the unit: `gyro x [deg/s]`, `time_ms`."""
    found = re.search(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$", name)
    if found and found[1].lower() in UNITS:
        return name[: found.start()].strip(), UNITS[found[1].lower()]
    head, _, tail = name.rpartition("_")
    if head and tail.lower() in ("deg", "dps", "ms", "us", "ns", "s", "sec", "secs", "rad"):
        return head, UNITS[tail.lower()]
    return name, 1.0


def _joint_field(words: set[str]) -> str | None:
    if words & _TORQUE:
        return None if words & _TARGET else "tau"
    if words & _RATE:
        return None if words & _TARGET else "dq"
    if words & _TARGET:
        return "q_des"
    return "q" if words & _ANGLE or words & _JOINT else None


def _field(words: Sequence[str], last: Sequence[str]) -> str | None:
    every, own = set(words), set(last)
    if own & _TIME:
        return "t"
    if own & _GYRO or (own & _VELOCITY and "angular" in every):
        return "gyro"
    if own & _ACCEL:
        return "accel"
    if own & _QUAT:
        return "quat_wb_wxyz"
    if every & _JOINT or own & _TORQUE or (own & _TARGET and not own & _VELOCITY):
        return _joint_field(every)
    if own & _POSITION:
        return "pos_w"
    if own & _VELOCITY:
        # Without a word on the frame a velocity may be in either; positions tell it better.
        return "vel_w" if every & _WORLD and not every & _BODY else None
    return None
