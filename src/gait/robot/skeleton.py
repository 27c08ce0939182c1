"""The legs as lines: where hip, thigh, knee and foot are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gait.arrays import Array
from gait.robot import Robot


def skeleton(robot: Robot, q: Array) -> Array:
    """Hip joint, thigh joint, knee and foot of each leg in the base frame (..., L, 4, 3), of joint angles (..., J)."""
    # Each is the foot of a leg that ends there.
    ends = [robot.offsets * (np.arange(4) <= last)[:, None] for last in range(4)]
    return np.stack([replace(robot, offsets=offsets).feet(q) for offsets in ends], axis=-2)
