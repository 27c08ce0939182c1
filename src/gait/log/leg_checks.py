"""Do the legs of a log move as those of its robot? Feet on the ground agree on the body's velocity, or the legs are
swapped, a joint has the other sign, or it is another robot's log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property

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
BOTH = 0.35
"""The same for an order and signs at once, of which there are hundreds; feet must agree then, too."""
OUTSIDE = 0.05
"""A joint that is out of its range for more than this share of the time is another one, or has another sign."""
OTHER_ROBOT = 0.75
"""The same for another robot: robots of one size differ little. Of the error against ground truth, where there is
any, in which a link that is 6 % too short shows more clearly than in what the feet say of each other."""


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
        moved = self.robot.foot_velocity(self.q, self.dq, self.gyro_b)
        joints = zip(self.robot.chains, self.robot.by_leg(self.q), self.robot.by_leg(self.dq), strict=True)
        for leg, (chain, q, dq) in enumerate(joints):
            if not chain.foot.is_flat:
                # A round foot rolls: its centre moves by 6 % of the body's velocity. The body is about level.
                rate = self.gyro_b + np.einsum("nij,nj->ni", chain.jacobians(q)[1], dq)
                moved[:, leg] += np.cross(rate, [0.0, 0.0, -chain.foot.radius])
        return -moved

    @cached_property
    def lowest(self) -> IntArray:
        """Legs with the lowest feet first (N, L)."""
        return np.argsort(self.robot.feet(self.q)[..., 2], axis=1)

    def disagreement(self) -> float:
        """Between the two lowest feet, m/s: lower quartile of the worst leg; nan if the robot hardly moves."""
        # Against the body and without its rotation: a robot that stands, or is turned in hand, says nothing.
        speed = np.linalg.norm(self.robot.foot_velocity(self.q, self.dq, 0.0 * self.gyro_b), axis=2)
        return _disagreement(self.measured, speed, self.lowest)

    def outside(self) -> Array:
        """Share of the rows in which each joint is out of its range (joints,)."""
        q = self.robot.expanded(self.q)
        outside = (q < self.robot.q_lower - WIDE) | (q > self.robot.q_upper + WIDE)
        return np.asarray(outside.mean(axis=0))

    def possible(self) -> bool:
        """Whether the joints stay within their range, most of the time."""
        return bool(self.outside().max() < OUTSIDE)

    def changed(self, joints: IntArray, signs: Array, robot: Robot | None = None) -> LegReading:
        """With joints in another order, of other signs, or of another robot."""
        return LegReading(
            robot or self.robot, self.q[:, joints] * signs, self.dq[:, joints] * signs, self.gyro_b, self.vel_b
        )

    def true_heading(self) -> float:
        """Angle about z from the true velocity to that of the lowest foot, deg; 0 if the robot hardly moves."""
        assert self.vel_b is not None
        foot = self.measured[np.arange(len(self.q)), self.lowest[:, 0]]
        fast = np.linalg.norm(self.vel_b, axis=1) > MOVING
        if fast.sum() < ENOUGH:
            return 0.0
        foot, true = foot[fast], self.vel_b[fast]
        across = np.median(true[:, 0] * foot[:, 1] - true[:, 1] * foot[:, 0])
        return float(np.degrees(np.arctan2(across, np.median(np.sum(true[:, :2] * foot[:, :2], axis=1)))))

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
    return (best[1], best[2], best[0]) if best[0] < BETTER * now else _order_and_signs(motion)


def _order_and_signs(motion: LegReading) -> tuple[str, str, float] | None:
    """An order of the legs together with turned first joints: neither alone makes the feet agree."""
    robot, k = motion.robot, motion.per_leg
    legs, names = range(robot.num_legs), robot.joint_names
    if len(legs) > 4 or len(names) != k * len(legs):
        return None
    # Of each leg of the robot, as if each leg of the log were it, with either sign: all else is choosing among them.
    parts: dict[tuple[int, int, int], tuple[Array, Array, Array]] = {}
    for shift, sign in itertools.product(legs, (1, -1)):
        source = [(leg + shift) % len(legs) for leg in legs]
        signs = np.where(np.arange(len(names)) % k == 0, float(sign), 1.0)
        one = motion.changed(_joints_of(source, k), signs)
        speed = np.linalg.norm(robot.foot_velocity(one.q, one.dq, 0.0 * one.gyro_b), axis=2)
        height, fits = robot.feet(one.q)[..., 2], one.outside().reshape(-1, k).max(axis=1) < OUTSIDE
        for leg in (leg for leg in legs if fits[leg]):
            parts[leg, source[leg], sign] = (one.measured[:, leg], speed[:, leg], height[:, leg])
    found = []
    for order, signed in itertools.product(itertools.permutations(legs), itertools.product((1, -1), repeat=len(legs))):
        chosen = [parts.get(key) for key in zip(legs, order, signed, strict=True)]
        if all(part is not None for part in chosen):
            measured, speed, height = (np.stack(some, axis=1) for some in zip(*chosen, strict=True))
            found.append((_disagreement(measured, speed, np.argsort(height, axis=1)), order, signed))
    left, order, signed = min((one for one in found if one[0] == one[0]), default=(np.inf, (), ()))
    if not left < min(APART, BOTH * motion.disagreement()):
        return None
    turned = [names[leg * k] for leg in legs if signed[leg] < 0]
    words = f"with the legs as {' '.join(robot.leg_names[leg] for leg in order)} and {', '.join(turned)} turned"
    scale = ",".join(f"joints.{name}=-1" for name in turned)
    return words, f"{_names_option(names, _joints_of(order, k))} --scale {scale}", left


def _joints_of(order: Sequence[int], per_leg: int) -> IntArray:
    """The joints of legs in an order."""
    return np.concatenate([np.arange(leg * per_leg, (leg + 1) * per_leg) for leg in order])


def _names_option(names: Sequence[str], joints: IntArray) -> str:
    """The option that says which joint is which."""
    return f"--joint-names {','.join(f'{names[j]}={names[i]}' for i, j in enumerate(joints) if i != j)}"


def _disagreement(measured: Array, speed: Array, lowest: IntArray) -> float:
    """Between the two lowest feet, m/s: lower quartile of the worst leg; nan if the robot hardly moves.

    Args:
        measured: velocity of the body by each leg (N, L, 3).
        speed: of each foot against the body, without its rotation (N, L).
        lowest: legs with the lowest feet first (N, L).
    """
    rows = np.arange(len(measured))
    one, two = lowest[:, 0], lowest[:, 1]
    apart = np.linalg.norm(measured[rows, one] - measured[rows, two], axis=1)
    moves = np.maximum(speed[rows, one], speed[rows, two]) > MOVING
    legs = [moves & ((one == leg) | (two == leg)) for leg in range(measured.shape[1])]
    usual = [float(np.percentile(apart[some], BEST)) for some in legs if some.sum() >= ENOUGH]
    return max(usual, default=float("nan"))


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
            joints = _joints_of(order, k)
            words = f"with the legs as {' '.join(robot.leg_names[leg] for leg in order)}"
            yield words, _names_option(names, joints), motion.changed(joints, ones)
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


@cache
def _known_robots() -> tuple[Robot, ...]:
    """All that gait ships and can read."""
    found = []
    for name in robot_names():
        with suppress(GaitError):
            found.append(Robot.load(name))
    return tuple(found)


def alike(robot: Robot) -> list[Robot]:
    """Other robots that gait knows, with joints of the same names."""
    return [one for one in _known_robots() if one.name != robot.name and one.joint_names == robot.joint_names]


def better_robot(motion: LegReading) -> tuple[str, float] | None:
    """A robot that gait knows, with joints of the same names, whose kinematics fit better: its name, and m/s left."""
    now, found = motion.disagreement(), []
    true = motion.true_error()[0] if motion.vel_b is not None else float("nan")
    for other in alike(motion.robot):
        fit = motion.changed(np.arange(motion.q.shape[1]), np.ones(motion.q.shape[1]), other)
        left = fit.disagreement()
        fits = left < now and fit.true_error()[0] < OTHER_ROBOT * true if true == true else False
        if fits or left < OTHER_ROBOT * now:
            found.append((left, other.name))
    best = min(found, default=None)
    return None if best is None else (best[1], best[0])
