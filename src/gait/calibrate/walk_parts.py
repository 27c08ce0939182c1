"""Walks cut into short parts, each with a trajectory of its own, and the feet that hold still in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gait import lie
from gait.arrays import Array, BoolArray
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.log import Log
from gait.log.record import places
from gait.robot import Robot, kinematics

SHORTEST, LONGEST, PARTS = 1.0, 4.0, 24
"""Seconds of a part, and how many of them there should be: the spread among parts gives the uncertainty of the
result."""
STILL_SPEED, LEAST_STANCE, TRIM = 0.4, 0.08, 0.02
"""A foot slower than this, m/s, for so long, s, stands; what is cut at either end, s: impact and lift-off."""
LEAST_STANCES, LEAST_PARTS = 24, 5
"""Stances and parts below which a walk is too short."""
MOST_LAG = 0.02
PERIOD = 0.02
"""Seconds from one residual of a foot to the next."""


@dataclass(frozen=True, eq=False)
class WalkLog:
    """A log in the robot's order, and the latency of its joint velocities against its joint angles, s."""

    log: Log
    lag: float

    def joints(self, times: Array) -> tuple[Array, Array]:
        """Joint angles and velocities (N, J) as read at these times; angles as old as velocities."""
        return interpolated(self.log.t, self.log.q, times - self.lag), interpolated(self.log.t, self.log.dq, times)


@dataclass(frozen=True, eq=False)
class WalkPart:
    """A part of a walk."""

    walk: WalkLog
    rows: slice
    every: int
    """Samples from one residual of a foot to the next."""
    stance: BoolArray
    """Feet that hold still (M, L), every so many samples."""
    R_ws: Array
    """Axes of the base at the start of the part, in the world (3, 3)."""

    @property
    def t(self) -> Array:
        """Stamps (N,)."""
        return self.walk.log.t[self.rows]


def interpolated(t: Array, values: Array, times: Array) -> Array:
    """Values (N, C) at other times (M,), linear and held at the ends."""
    before, part = places(t, np.clip(times, t[0], t[-1]))
    return np.asarray(values[before] + part[:, None] * (values[before + 1] - values[before]))


def velocity_lag(log: Log) -> float:
    """Latency of joint velocities against the derivative of joint angles, s: drives smooth them."""
    step = np.diff(log.t)
    dt = float(np.median(step))
    rate = (log.q[2:] - log.q[:-2]) / (log.t[2:] - log.t[:-2])[:, None]
    accel = np.zeros_like(rate)
    accel[1:-1] = (rate[2:] - rate[:-2]) / (2.0 * dt)
    # Without impacts, where filters ring.
    good = (np.abs(accel) < 100.0) & (np.abs(step[1:] - step[:-1]) < 0.5 * dt)[:, None]
    difference = (log.dq[1:-1] - rate)[good]
    lag = -float(difference @ accel[good]) / max(float(accel[good] @ accel[good]), 1e-9)
    return float(np.clip(lag, 0.0, MOST_LAG))


def leg_velocity(
    robot: Robot, offsets: Array, q: Array, dq: Array, w_b: Array, up_b: Array
) -> tuple[Array, Array, Array]:
    """What legs of `offsets` (L, 4, 3) measure: velocity of the base if feet stand or roll, feet, and Jacobians.

    Args:
        robot: whose legs.
        offsets: of its links.
        q: joint angles (N, J).
        dq: joint velocities (N, J).
        w_b: angular rate of the base (N, 3).
        up_b: the vertical in the base (N, 3).
    """
    signs = np.moveaxis(robot.signs, -1, 0)
    angles, rates = (np.moveaxis(x.reshape(len(x), -1, 3), -1, 0) for x in (q - robot.zeros, dq))  # (3, N, L)
    feet, *columns = (np.stack(x, -1) for x in kinematics.leg_forward(np.moveaxis(offsets, 0, -1), signs, angles))
    foot_rate = np.stack(kinematics.calf_rate(signs, angles, rates, np.moveaxis(w_b[:, None], -1, 0)), -1)
    jacobian = np.stack(columns, -1)  # (N, L, 3, 3)
    moved = np.einsum("nlij,jnl->nli", jacobian, rates) + np.cross(w_b[:, None], feet)
    return robot.foot_radius * np.cross(foot_rate, up_b[:, None]) - moved, feet, jacobian


def runs_of(mask: BoolArray) -> list[tuple[int, int]]:
    """First and one past the last of each run of true (N,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def stances(speed: Array, dt: float, limit: float = STILL_SPEED) -> BoolArray:
    """Where a foot stands, of its speed over the ground (N, L): long enough, and without the ends."""
    least, trim = max(round(LEAST_STANCE / dt), 3), max(round(TRIM / dt), 1)
    found = np.zeros(speed.shape, dtype=bool)
    for leg, slow in enumerate((speed < limit).T):
        for first, last in runs_of(slow):
            if last - first >= least:
                found[first + trim : last - trim, leg] = True
    return found


def cut(logs: Sequence[Log], robot: Robot) -> list[WalkPart]:
    """The parts of all walks in which feet stand, as a first estimate by `gait-legs` has it."""
    if not robot.has_plain_legs:
        raise GaitError(
            f"the legs of {robot.name} are not an abduction joint about x and two joints about y: only such legs can be"
            " calibrated"
        )
    total = sum(log.duration for log in logs)
    length = float(np.clip(total / PARTS, SHORTEST, LONGEST))
    parts, count = list[WalkPart](), 0
    for log in logs:
        found = _parts_of(log.reorder(robot), robot, length)
        parts += [part for part in found if part.stance.any(axis=1).mean() > 0.3]
        # A foot that stands where a part begins has not stepped there.
        count += sum(first > 0 for part in found for foot in part.stance.T for first, _ in runs_of(foot))
    if len(parts) < LEAST_PARTS:
        raise GaitError(
            f"{len(parts)} s of the logs show feet that hold still, out of {total:.3g} s: give a walk of 10 s or more"
            " without gaps, on ground that does not slip"
        )
    if count < LEAST_STANCES:
        raise GaitError(
            f"the robot takes {count} steps in {total:.3g} s, too few to calibrate it: give a walk, with turns and"
            " changes of speed"
        )
    return parts


def _parts_of(log: Log, robot: Robot, length: float) -> list[WalkPart]:
    trajectory = Estimator.load(robot).run(log)
    R_bi = lie.rotation_from_quat(robot.imu_quat_wxyz)
    R_wb = np.moveaxis(lie.rotation_from_quat(trajectory.quat_wb_wxyz.T), -1, 0)
    velocity = leg_velocity(robot, robot.offsets, log.q, log.dq, log.gyro @ R_bi.T, R_wb[:, 2])[0]
    dt = float(np.median(np.diff(log.t)))
    speed = np.linalg.norm(velocity - trajectory.vel_b[:, None], axis=2)
    walk, standing = WalkLog(log, velocity_lag(log)), stances(speed, dt)
    size, every, parts = round(length / dt), max(round(PERIOD / dt), 1), list[WalkPart]()
    for first in range(max(round(0.5 / dt), 1), len(log) - size - 1, size):
        rows = slice(first, first + size)
        if np.diff(log.t[rows]).max() < 5.0 * dt:
            parts.append(WalkPart(walk, rows, every, standing[rows][::every], R_wb[first]))
    return parts


def with_stance(part: WalkPart, speed: Array, limit: float) -> WalkPart:
    """The same part with stances by the speeds of feet over the ground (M, L) of a better estimate."""
    return replace(part, stance=stances(speed, part.every * float(np.median(np.diff(part.t))), limit))
