"""What is calibrated: names, units and priors of the unknowns, and their places in one vector."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.robot import Robot

XYZ = ("x", "y", "z")
LINKS = ("hip", "thigh", "calf")
DEGREE = math.pi / 180.0


@dataclass(frozen=True)
class Group:
    """Unknowns of one kind."""

    name: str
    what: str
    """For people."""
    unit: str
    prior: float
    """Standard deviation before any data, the mean being zero."""
    labels: tuple[str, ...]
    floor: float = 0.0
    """Standard deviation of what no model here covers: biases that walk, nonlinear scales; latencies in samples."""
    nuisance: bool = False
    """Of the ground truth, not of the robot."""


class Unknowns:
    """The vector of all unknowns. Each is an error: a reading less it, or a length times one plus it, is right."""

    def __init__(self, robot: Robot, truth: bool) -> None:
        """Lay out the unknowns of a robot, and with `truth` those of the ground truth's own frame and clock."""
        links = tuple(f"{leg} {link}" for leg in robot.leg_names for link in LINKS)
        joints = tuple(name.removesuffix("_joint").replace("_", " ") for name in robot.joint_names)
        self.groups = [
            Group("joint_zero", "joint zero", "rad", 0.05, joints),
            Group("link_scale", "link scale", "-", 0.05, links),
            Group("joint_delay", "joint latency", "s", 0.02, ("",), 0.25),
            Group("mounting", "IMU mounting", "rad", 3.0 * DEGREE, XYZ),
            Group("gyro_bias", "gyro bias", "rad/s", 0.05, XYZ, 2e-4),
            Group("gyro_scale", "gyro scale", "-", 0.03, XYZ, 5e-4),
            Group("accel_bias", "accelerometer bias", "m/s^2", 0.5, XYZ, 0.01),
            Group("accel_scale", "accelerometer scale", "-", 0.05, XYZ, 1e-3),
        ]
        if truth:
            self.groups += [
                Group("truth_rotation", "ground truth rotation", "rad", 2.0 * DEGREE, XYZ, nuisance=True),
                Group("truth_tilt", "ground truth tilt", "rad", 0.3 * DEGREE, XYZ[:2], nuisance=True),
                Group("truth_delay", "ground truth latency", "s", 0.02, ("",), 0.25, nuisance=True),
            ]
        self._at: dict[str, slice] = {}
        start = 0
        for group in self.groups:
            self._at[group.name] = slice(start, start + len(group.labels))
            start += len(group.labels)
        self.size = start
        self.prior = np.concatenate([np.full(len(group.labels), group.prior) for group in self.groups])

    def __getitem__(self, name: str) -> slice:
        """Rows of a group in the vector."""
        return self._at[name]

    def floor(self, period: float) -> Array:
        """The floors of all standard deviations (P,), given the seconds between two samples."""
        scaled = [group.floor * (period if group.unit == "s" else 1.0) for group in self.groups]
        return np.repeat(scaled, [len(group.labels) for group in self.groups])

    def of(self, name: str, values: Array) -> Array:
        """The values of one group; link scales and joint zeros by leg (L, 3)."""
        part = values[self._at[name]] if name in self._at else np.zeros(3)
        return part.reshape(-1, 3) if name in ("joint_zero", "link_scale") else part

    @property
    def imu(self) -> slice:
        """Mounting, and bias and scale of gyro and accelerometer: fifteen in a row."""
        return slice(self._at["mounting"].start, self._at["accel_scale"].stop)
