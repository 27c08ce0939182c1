"""Calibrate a robot from walks, and put the result into its description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.calibrate.least_squares import fit
from gait.calibrate.unknowns import Unknowns
from gait.calibrate.walk_parts import cut
from gait.errors import GaitError
from gait.log import Log
from gait.robot import Robot

OBSERVABLE = 1.0 / 3.0
"""An unknown is observable if its standard deviation is below this share of the prior's."""
DEGENERATE = 0.95
"""Correlation above which two unknowns cannot be distinguished."""


@dataclass(frozen=True)
class ErrorEstimate:
    """One unknown."""

    group: str
    """Such as `joint_zero`."""
    label: str
    """Such as `FR hip`; empty where the group has only one."""
    what: str
    """Group and label for people."""
    unit: str
    value: float
    std: float
    prior: float
    """Standard deviation before any data."""
    rival: str
    """The unknown with which it correlates most, if that is degenerate."""

    @property
    def observable(self) -> bool:
        """Whether the walks determine it."""
        return self.std < OBSERVABLE * self.prior and not self.rival


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The errors of a robot: a reading less its error is right, a length times one plus it."""

    robot: Robot
    """As described before."""
    unknowns: Unknowns
    values: Array
    covariance: Array
    truth: bool
    """Whether ground truth was used."""
    seconds: float
    """Length of the parts of the walks that were used."""
    foot_std: float
    """Standard deviation of a foot that stands from the fitted trajectory, m/s."""

    @property
    def std(self) -> Array:
        """Standard deviations (P,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def findings(self) -> list[ErrorEstimate]:
        """Every unknown of the robot, in the order of the vector."""
        names = [(group, label) for group in self.unknowns.groups for label in group.labels]
        correlation = np.abs(self.covariance / np.outer(self.std, self.std)) - np.eye(len(names))
        found = []
        for i, (group, label) in enumerate(names):
            k = int(np.argmax(correlation[i]))
            other = f"{names[k][0].what} {names[k][1]}".strip() if correlation[i, k] > DEGENERATE else ""
            value, std, what = float(self.values[i]), float(self.std[i]), f"{group.what} {label}".strip()
            if not group.nuisance:
                found.append(ErrorEstimate(group.name, label, what, group.unit, value, std, group.prior, other))
        return found

    def observed(self, name: str) -> Array:
        """Values of a group, 0 where they are not observable."""
        return np.array([one.value * one.observable for one in self.findings if one.group == name])

    def calibrated_robot(self) -> Robot:
        """The robot with what is observable put right: joint zeros, link lengths, mounting of the IMU, latency."""
        robot, delay = self.robot, self.findings[self.unknowns["joint_delay"].start]
        R_bi = lie.rotation_from_quat(robot.imu_quat_wxyz) @ lie.so3_exp(self.observed("mounting"))
        longer = robot.with_links(list(1.0 + self.observed("link_scale").reshape(-1, 3, 1)))
        return replace(
            longer,
            zeros=robot.zeros + self.observed("joint_zero"),
            imu_quat_wxyz=lie.quat_from_rotation(R_bi),
            joint_delay=max(delay.value, 0.0) if delay.observable else robot.joint_delay,
        )

    def corrected(self, log: Log) -> Log:
        """A log with the observable bias and scale of gyro and accelerometer taken out."""
        fixed = {
            name: (getattr(log, name) - self.observed(f"{name}_bias")) / (1.0 + self.observed(f"{name}_scale"))
            for name in ("gyro", "accel")
        }
        return log.replace(**fixed)


def calibrate(
    logs: Sequence[Log], robot: Robot, *, truth: bool | None = None, progress: Callable[[float], None] = lambda _: None
) -> Calibrated:
    """Estimate the errors of a robot from walks; docs/calibrate.md has the method.

    Args:
        logs: walks of one robot, with turns and changes of speed.
        robot: as described; its zeros and lengths are what the result is relative to.
        truth: whether to use ground truth; by default where all logs have it.
        progress: called with the share that is done.
    """
    if truth and not all(log.has_truth for log in logs):
        raise GaitError("a log has no ground truth: leave it out, or calibrate without ground truth (--no-truth)")
    truth = all(log.has_truth for log in logs) if truth is None else truth
    unknowns = Unknowns(robot, truth)
    found = fit(cut(logs, robot), unknowns, robot, truth, progress)
    seconds = sum(float(np.ptp(part.t)) for part in found.parts)
    return Calibrated(robot, unknowns, found.values, found.covariance, truth, seconds, found.noise["leg"])
