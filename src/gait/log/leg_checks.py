"""Do the legs of a log move as those of its robot? Feet on the ground agree on the body's velocity, or the legs are
swapped, a joint has the other sign, or it is another robot's log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gait import quaternions
from gait.arrays import Array, IntArray
from gait.errors import GaitError
from gait.log.log import Log
from gait.robot import Robot, robot_names

ROWS = 1500
"""Of a log that are looked at."""
MOVING = 0.1
"""A foot in contact that moves slower than this against the body (m/s) tells nothing of the joints."""
ENOUGH = 30
"""Rows with a foot in contact and the body moving, below which a leg is not judged."""
APART = 0.08
"""Feet that agree on the velocity to this (m/s) are right."""
BEST = 25.0
"""Per cent of the rows in which both of the lowest feet hold for certain."""
WIDE = 0.2
"""How far beyond its range a joint may read, rad."""
BETTER = 0.5
"""Another order or another sign must leave this share of the disagreement, or less, to be the right one."""
OTHER_ROBOT = 0.75
"""The same for another robot: robots of one size differ little."""


@dataclass(frozen=True)
class LegReading:
    """A part of a log as kinematics need it, legs in the order of the robot."""

    robot: Robot
    q: Array
    """(N, joints)."""
    dq: Array
    gyro_b: Array
    """Angular rate in the axes of the body (N, 3)."""
    vel_b: Array | None
    """True velocity (N, 3), if there is any."""

    @staticmethod
    def of(log: Log, robot: Robot, gyro_scale: float = 1.0) -> LegReading:
        """Of rows all over a log."""
        rows = np.arange(0, len(log), max(1, len(log) // ROWS))
        turn = np.broadcast_to(robot.imu_quat_wxyz, (len(rows), 4))
        gyro_b = quaternions.rotate(turn, gyro_scale * log.gyro[rows])
        return LegReading(robot, log.q[rows], log.dq[rows], gyro_b, log.vel_b[rows] if log.has_truth else None)

    @property
    def per_leg(self) -> int:
        """Joints of a leg."""
        return int(self.q.shape[1]) // self.robot.num_legs

    @cached_property
    def measured(self) -> Array:
        """Velocity of the body by each leg (N, L, 3), if its foot holds."""
        return -self.robot.foot_velocity(self.q, self.dq, self.gyro_b)

    @cached_property
    def lowest(self) -> IntArray:
        """Legs with the lowest feet first (N, L)."""
        return np.argsort(self.robot.feet(self.q)[..., 2], axis=1)

    def disagreement(self) -> float:
        """Between the two lowest feet, m/s: lower quartile of the worst leg; nan if the robot hardly moves."""
        rows = np.arange(len(self.q))
        one, two = self.lowest[:, 0], self.lowest[:, 1]
        # Against the body and without its rotation: a robot that stands, or is turned in hand, says nothing.
        speed = np.linalg.norm(self.robot.foot_velocity(self.q, self.dq, 0.0 * self.gyro_b), axis=2)
        apart = np.linalg.norm(self.measured[rows, one] - self.measured[rows, two], axis=1)
        moves = np.maximum(speed[rows, one], speed[rows, two]) > MOVING
        legs = [moves & ((one == leg) | (two == leg)) for leg in range(self.robot.num_legs)]
        usual = [float(np.percentile(apart[some], BEST)) for some in legs if some.sum() >= ENOUGH]
        return max(usual, default=float("nan"))

    def possible(self) -> bool:
        """Whether the joints stay within their range, most of the time."""
        q = self.robot.expanded(self.q)
        outside = (q < self.robot.q_lower - WIDE) | (q > self.robot.q_upper + WIDE)
        return bool(outside.mean(axis=0).max() < 0.05)

    def changed(self, joints: IntArray, signs: Array, robot: Robot | None = None) -> LegReading:
        """With joints in another order, of other signs, or of another robot."""
        return LegReading(
            robot or self.robot, self.q[:, joints] * signs, self.dq[:, joints] * signs, self.gyro_b, self.vel_b
        )

    def true_error(self) -> tuple[float, float, float]:
        """Of the lowest foot's velocity against the true one, m/s (median); the true speed; their ratio along it."""
        assert self.vel_b is not None
        foot = self.measured[np.arange(len(self.q)), self.lowest[:, 0]]
        speed = np.linalg.norm(self.vel_b, axis=1)
        fast = speed > MOVING
        along = np.sum(foot * self.vel_b, axis=1)[fast] / speed[fast] ** 2
        ratio = float(np.median(along)) if fast.sum() >= ENOUGH else 1.0
        return float(np.median(np.linalg.norm(foot - self.vel_b, axis=1))), float(np.median(speed)), ratio


def better_reading(motion: LegReading) -> tuple[str, str, float] | None:
    """Signs of gyro or joints, or an order of legs, with which feet agree far better: words, the option, m/s left."""
    now = motion.disagreement()
    if not now > APART:
        return None
    left = [(other.disagreement(), words, option) for words, option, other in _readings(motion) if other.possible()]
    best = min((one for one in left if one[0] == one[0]), default=(now, "", ""))
    return (best[1], best[2], best[0]) if best[0] < BETTER * now else None


def _readings(motion: LegReading) -> Iterator[tuple[str, str, LegReading]]:
    """Every sign of the gyro's axes, every order of the legs, and every set of legs with one of their joints turned."""
    yield from _turned_gyros(motion)
    robot, k = motion.robot, motion.per_leg
    legs, names = range(robot.num_legs), robot.joint_names
    same, ones = np.arange(len(names)), np.ones(len(names))
    if len(legs) > 4 or len(names) != k * len(legs):
        return
    for order in itertools.permutations(legs):
        if order != tuple(legs):
            joints = np.concatenate([same[leg * k : (leg + 1) * k] for leg in order])
            moved = [(names[joints[i]], names[i]) for i in same if joints[i] != i]
            words = f"with the legs as {' '.join(robot.leg_names[leg] for leg in order)}"
            option = f"--joint-names {','.join('='.join(pair) for pair in moved)}"
            yield words, option, motion.changed(joints, ones)
    for link in range(k):
        for some in itertools.chain.from_iterable(itertools.combinations(legs, n) for n in range(1, len(legs) + 1)):
            signs = ones.copy()
            turned = [leg * k + link for leg in some]
            signs[turned] = -1.0
            words = f"with the sign of {', '.join(names[i] for i in turned)} changed"
            option = f"--scale {','.join(f'joints.{names[i]}=-1' for i in turned)}"
            yield words, option, motion.changed(same, signs)


def _turned_gyros(motion: LegReading) -> Iterator[tuple[str, str, LegReading]]:
    # Axes of the body are those of the sensor, which --scale names, where it is not turned.
    straight = abs(motion.robot.imu_quat_wxyz[0]) == 1.0
    for count in (1, 2, 3) if straight else (3,):
        for axes in itertools.combinations("xyz", count):
            signs = np.array([-1.0 if axis in axes else 1.0 for axis in "xyz"])
            which = "" if count == 3 else f" {' and '.join(axes)}"
            option = "gyro=-1" if count == 3 else ",".join(f"gyro.{axis}=-1" for axis in axes)
            yield (
                f"with the sign of the gyro's{which or ' axes'} changed",
                f"--scale {option}",
                replace(motion, gyro_b=signs * motion.gyro_b),
            )


def better_robot(motion: LegReading) -> tuple[str, float] | None:
    """A robot that gait knows, with joints of the same names, whose kinematics fit better: its name, and m/s left."""
    now, found = motion.disagreement(), []
    for name in robot_names():
        try:
            other = Robot.load(name)
        except GaitError:
            continue
        if name != motion.robot.name and other.joint_names == motion.robot.joint_names:
            fit = motion.changed(np.arange(motion.q.shape[1]), np.ones(motion.q.shape[1]), other)
            found.append((fit.disagreement(), name))
    best = min((one for one in found if one[0] == one[0]), default=(float("inf"), ""))
    return (best[1], best[0]) if best[0] < OTHER_ROBOT * now else None
