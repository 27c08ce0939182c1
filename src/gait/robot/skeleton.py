"""The legs as lines: where hip, thigh, knee and foot are."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot import Robot


def skeleton(robot: Robot, q: Array) -> Array:
    """Hip joint, thigh joint, knee and foot of each leg in the base frame (..., L, 4, 3), of joint angles (..., J)."""
    angle = np.asarray(q, dtype=np.float64).reshape(*np.shape(q)[:-1], robot.num_legs, 3) * robot.signs
    hip, thigh, calf = angle[..., 0], angle[..., 1], angle[..., 1] + angle[..., 2]
    offsets = np.broadcast_to(robot.offsets, (*hip.shape, 4, 3))
    # From the foot upwards: each link turns all that hangs on it.
    at_thigh = offsets[..., 1, :]
    at_knee = at_thigh + _about_y(offsets[..., 2, :], thigh)
    at_foot = at_knee + _about_y(offsets[..., 3, :], calf)
    chain = np.stack([np.zeros_like(at_thigh), at_thigh, at_knee, at_foot], axis=-2)  # (..., L, 4, 3)
    return offsets[..., :1, :] + _about_x(chain, hip[..., None])


def _about_y(vector: Array, angle: Array) -> Array:
    x, y, z = np.moveaxis(vector, -1, 0)
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x + s * z, y, c * z - s * x], axis=-1)


def _about_x(vector: Array, angle: Array) -> Array:
    x, y, z = np.moveaxis(vector, -1, 0)
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([x, c * y - s * z, s * y + c * z], axis=-1)
