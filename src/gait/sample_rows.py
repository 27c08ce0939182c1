"""Samples as the core takes them: rows of numbers, checked and converted from what users give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.errors import GaitError
from gait.log.log import Log
from gait.robot import Robot

FIELDS = ("gyro", "accel", "q", "dq", "q_des", "tau", "foot_force", "contact")
"""What a sample is made of, in the order in which the core takes it."""
OPTIONAL, BY_JOINT = FIELDS[4:], FIELDS[2:6]


def width_of(field: str, robot: Robot) -> int:
    """Numbers of a field in one sample."""
    return 3 if field in ("gyro", "accel") else robot.num_joints if field in BY_JOINT else robot.num_legs


def row_parts(rows: Array, robot: Robot) -> dict[str, Array]:
    """Views of samples (N, row), or of one (row,), as the core takes them: `t`, the fields, and `leg_ok`."""
    widths = [1, *(width_of(name, robot) for name in FIELDS)]
    return dict(zip(("t", *FIELDS, "leg_ok"), np.split(rows, np.cumsum(widths), axis=-1), strict=True))


def rows_of(log: Log, robot: Robot, part: slice = slice(None)) -> Array:
    """The samples of a Log, or of a part of it, joints in the robot's order, as the core takes them (N, row)."""
    t = log.t[part]
    rows = np.full((len(t), 1 + sum(width_of(name, robot) for name in FIELDS) + robot.num_legs), np.nan)
    parts = row_parts(rows, robot)
    parts["t"][:, 0], parts["leg_ok"][:] = t, 1.0
    for name in FIELDS:
        values = getattr(log, name)
        if values is not None:
            parts[name][:] = robot.expanded(values[part]) if name in BY_JOINT else values[part]
    return rows


def start_of(
    quat: npt.ArrayLike | None,
    vel_w: npt.ArrayLike | None,
    pos_w: npt.ArrayLike | None,
    gyro: npt.ArrayLike | None,
    accel: npt.ArrayLike | None,
) -> tuple[Array, Array, Array, Array] | Array | None:
    """What `reset` was given: a known state, the specific force at rest, or None for that of the next sample."""
    if quat is None:
        if vel_w is not None or pos_w is not None or gyro is not None:
            raise GaitError("velocity, position and gyro belong to a known pose: give quat_wb_wxyz too")
        return None if accel is None else _force(accel)
    unit = _numbers(quat, 4, "quat_wb_wxyz")
    norm = float(np.linalg.norm(unit))
    if not 0.99 < norm < 1.01:
        raise GaitError(f"quat_wb_wxyz has length {norm:g}: give a rotation as a unit quaternion, w first")
    velocity, position, rate = (
        np.zeros(3) if value is None else _numbers(value, 3, name)
        for name, value in {"vel_w": vel_w, "pos_w": pos_w, "gyro": gyro}.items()
    )
    return unit / norm, velocity, position, rate


def joint_order(robot: Robot, joint_names: Sequence[str] | None) -> npt.NDArray[np.int32]:
    """Where the robot's joints stand among those that will come."""
    joint_names = robot.encoder_names if joint_names is None else joint_names
    missing = [name for name in robot.joint_names if name not in joint_names]
    if missing:
        raise GaitError(
            f"joint_names lacks '{missing[0]}', which {robot.name} has: name the joints as the robot does,"
            f" {', '.join(robot.joint_names)}"
        )
    return np.array([list(joint_names).index(name) for name in robot.joint_names], dtype=np.int32)


def _force(accel: npt.ArrayLike) -> Array:
    """The mean of samples of the accelerometer (3,)."""
    try:
        return np.asarray(np.array(accel, dtype=np.float64).reshape(-1, 3).mean(0))
    except (ValueError, TypeError):
        raise GaitError(f"accel must be three numbers, or rows of three, got {accel!r}") from None


def stamp_of(t: float) -> float:
    """Seconds; may be nan."""
    return float(vector_of([t], "t", 1)[0])


def vector_of(value: npt.ArrayLike, name: str, size: int) -> Array:
    """Numbers that may be nan: a sensor says what it says."""
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        raise GaitError("a sample is made of numbers, and its stamp is one: convert them first") from None
    if array.shape != (size,):
        raise GaitError(f"{name} must be {size} numbers, got an array of shape {array.shape}")
    return array


def _numbers(value: npt.ArrayLike, count: int, name: str) -> Array:
    try:
        array = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}")
    return array
