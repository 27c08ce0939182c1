"""Robots with other joints than their legs', or of which only names and the place of the IMU are known."""

from __future__ import annotations

from dataclasses import dataclass

from gait.arrays import Array
from gait.robot.robot import Robot


@dataclass(frozen=True)
class BareRobot:
    """Enough of a robot to record its sensors in a Log; an estimator needs a description of its legs as well."""

    name: str
    base_link: str
    leg_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    imu_position: Array
    """Lever arm of the IMU in the base frame (3,), m."""
    imu_quat_wxyz: Array
    """Axes of the IMU in the base frame (4,)."""
    described: Robot | None = None
    """Its legs, whose joints are among its own; None where gait does not know them."""

    @property
    def num_legs(self) -> int:
        """How many legs, or feet, it has."""
        return len(self.leg_names)

    @property
    def num_joints(self) -> int:
        """How many joints it has."""
        return len(self.joint_names)
