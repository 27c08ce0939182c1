"""What goes into an estimator: one row of numbers a sample, looked at before anything believes it.

A row is t, gyro, accel, q, dq, q_des, tau, foot_force, contact and leg_ok, in the robot's order of joints and legs; nan
stands for what is not there. `admit` judges a row and keeps a clean copy: what is broken is named in the health bits
and replaced by the last good value, so that nothing behind it ever meets a nan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gait._compile import kernel, types
from gait.arrays import Array, BoolArray
from gait.health import FIRST_LEG, Health
from gait.robot import Robot

BAD_SAMPLE, BAD_TIME, TIME_GAP = int(Health.BAD_SAMPLE), int(Health.BAD_TIME), int(Health.TIME_GAP)
BAD_IMU, IMU_SATURATED, STALE_LEG = int(Health.BAD_IMU), int(Health.IMU_SATURATED), int(Health.STALE_LEG)


@dataclass(frozen=True)
class Limits:
    """What a sensor can truly say. Beyond it a value is not used, and `health` says so."""

    gyro: float = 34.9
    """Range of the gyro, rad/s: 2000 degrees a second."""
    accel: float = 157.0
    """Range of the accelerometer, m/s^2: 16 g."""
    joint_margin: float = 0.5
    """How far beyond its stops a joint may read, rad: offsets and calibration."""
    joint_speed: float = 3.0
    """How much faster than its rated speed a joint may read: impacts."""
    hold: float = 0.1
    """Seconds for which the last good value of an IMU or of a joint target stands in for a broken one."""
    stale: float = 0.05
    """Seconds without any change in a leg's encoders, while others change, after which it counts as stuck."""
    clock_reset: float = 1.0
    """A stamp this far in the past, s, is a clock that was set anew, not a late sample."""


class Rows:
    """Where each part of a row begins, for a robot with so many legs."""

    def __init__(self, legs: int) -> None:
        joints = 3 * legs
        self.legs, self.joints = legs, joints
        self.t, self.gyro, self.accel, self.q = 0, 1, 4, 7
        self.dq = self.q + joints
        self.q_des = self.dq + joints
        self.tau = self.q_des + joints
        self.foot_force = self.tau + joints
        self.contact = self.foot_force + legs
        self.leg_ok = self.contact + legs
        self.width = self.leg_ok + legs

    def parts(self) -> dict[str, slice]:
        """The columns of each field of a Log."""
        J, L = self.joints, self.legs
        sizes = {"gyro": 3, "accel": 3, "q": J, "dq": J, "q_des": J, "tau": J, "foot_force": L, "contact": L}
        return {name: slice(getattr(self, name), getattr(self, name) + size) for name, size in sizes.items()}


class Bounds(NamedTuple):
    """`Limits` and the robot's own, as the compiled code takes them."""

    gyro: float
    accel: float
    lower: Array
    upper: Array
    speed: Array
    hold: float
    stale: float
    clock_reset: float
    max_gap: float
    targets: bool
    """Whether a leg without joint target is of no use."""


class Clean(NamedTuple):
    """The last good sample and how long ago its parts were good."""

    gyro: Array
    accel: Array
    q: Array
    dq: Array
    e: Array
    """q_des - q (J,)."""
    raw: Array
    """Encoder readings of the last sample as they came (2, J)."""
    unchanged: Array
    """Seconds since the encoders of a leg last changed (L,)."""
    without: Array
    """Seconds without a good target of a leg (L,)."""
    clock: Array
    """Stamp of the last sample, dt, seconds without a good IMU, length of the gap (4,)."""
    ok: BoolArray
    """Which legs can be used (L,)."""
    known: BoolArray
    """Whether there was a sample; a good IMU (2,); a good reading of each leg (L,)."""


STAMP, DT, BLIND, GAP = range(4)
"""Entries of `Clean.clock`."""
REFUSED, FIRST, GO_ON, AFTER_GAP = range(4)
"""What `admit` says of a sample: nothing to do; no sample before it; a step; a step after a pause."""


def bounds_of(robot: Robot, limits: Limits, max_gap: float, targets: bool) -> Bounds:
    """The bounds of a robot's sensors."""
    return Bounds(
        gyro=limits.gyro,
        accel=limits.accel,
        lower=np.ascontiguousarray(robot.q_lower - limits.joint_margin),
        upper=np.ascontiguousarray(robot.q_upper + limits.joint_margin),
        speed=np.ascontiguousarray(robot.velocity_limit * limits.joint_speed),
        hold=limits.hold,
        stale=limits.stale,
        clock_reset=limits.clock_reset,
        max_gap=max_gap,
        targets=targets,
    )


def forget(clean: Clean) -> None:
    """As before the first sample."""
    for array in clean:
        array[...] = 0


_ROW, _TABLE, _FLAGS = np.zeros(3), np.zeros((2, 3)), np.zeros(1, np.bool_)
BOUNDS = types.typeof(Bounds(0.0, 0.0, _ROW, _ROW, _ROW, 0.0, 0.0, 0.0, 0.0, True))
CLEAN = types.typeof(Clean(_ROW, _ROW, _ROW, _ROW, _ROW, _TABLE, _ROW, _ROW, _ROW, _FLAGS, _FLAGS))
_V = types.float64[::1]


@kernel(types.int64(BOUNDS, CLEAN, _V))
def _admit_imu(bounds: Bounds, clean: Clean, row: Array) -> int:
    """Keep gyro and accelerometer if they can be true; returns health bits."""
    total = worst = 0.0
    for i in range(3):
        total += row[1 + i] + row[4 + i]
        worst = max(worst, abs(row[1 + i]) / bounds.gyro, abs(row[4 + i]) / bounds.accel)
    dt = clean.clock[DT]
    finite = math.isfinite(total)
    if not finite or worst >= 1.0:
        clean.clock[BLIND] += dt
        return BAD_SAMPLE | (IMU_SATURATED if finite else BAD_IMU)
    clean.clock[BLIND] = 0.0
    clean.known[1] = True
    for i in range(3):
        clean.gyro[i], clean.accel[i] = row[1 + i], row[4 + i]
    return 0


@kernel(types.void(BOUNDS, CLEAN, _V, types.int64))
def _admit_leg(bounds: Bounds, clean: Clean, row: Array, leg: int) -> None:
    """Keep the joints of a leg if they can be true, and say in `clean.ok` whether the leg can be used."""
    joints = clean.q.size
    q0, dq0, des0 = 7 + 3 * leg, 7 + joints + 3 * leg, 7 + 2 * joints + 3 * leg
    dt = clean.clock[DT]
    sane, same, aimed = True, True, True
    for i in range(3):
        j = 3 * leg + i
        q, dq = row[q0 + i], row[dq0 + i]
        # Written so that a nan is not sane either.
        sane = sane and bounds.lower[j] <= q <= bounds.upper[j] and abs(dq) <= bounds.speed[j]
        same = same and q == clean.raw[0, j] and dq == clean.raw[1, j]
        aimed = aimed and abs(row[des0 + i]) < 100.0
        clean.raw[0, j], clean.raw[1, j] = q, dq
    clean.unchanged[leg] = clean.unchanged[leg] + dt if same else 0.0
    clean.without[leg] = 0.0 if aimed else clean.without[leg] + dt
    flag = row[row.size - clean.ok.size + leg]
    clean.ok[leg] = sane and flag != 0.0
    if not clean.ok[leg]:
        return
    for i in range(3):
        j = 3 * leg + i
        # A target that is missing for a moment stays where it was, and so does the motor.
        wanted = row[des0 + i] if aimed else clean.q[j] + clean.e[j]
        clean.q[j], clean.dq[j] = row[q0 + i], row[dq0 + i]
        clean.e[j] = wanted - clean.q[j] if aimed or clean.known[2 + leg] else 0.0
    if bounds.targets and (clean.without[leg] > bounds.hold or (not aimed and not clean.known[2 + leg])):
        clean.ok[leg] = False
    else:
        clean.known[2 + leg] = True


@kernel(types.types.UniTuple(types.int64, 2)(BOUNDS, CLEAN, _V))
def admit(bounds: Bounds, clean: Clean, row: Array) -> tuple[int, int]:
    """Judge a row and take over what is good of it.

    Returns:
        What to do (REFUSED, FIRST, GO_ON or AFTER_GAP) and health bits. `clean.clock[DT]` is the time since the last
        sample that was not refused.
    """
    t, clock, legs = row[0], clean.clock, clean.ok.size
    first = not clean.known[0]
    dt = 0.0 if first else t - clock[STAMP]
    bits, verdict = 0, FIRST if first else GO_ON
    clock[GAP] = 0.0
    if not math.isfinite(t) or (not first and -bounds.clock_reset < dt <= 0.0):
        return REFUSED, BAD_SAMPLE | BAD_TIME
    if not first and (dt > bounds.max_gap or dt <= 0.0):
        # Nobody knows how long a clock stood still that was set back.
        verdict, bits = AFTER_GAP, TIME_GAP | (BAD_TIME if dt <= 0.0 else 0)
        dt = dt if dt > 0.0 else bounds.max_gap
        clock[GAP] = dt
    clock[STAMP], clock[DT] = t, dt
    clean.known[0] = True
    bits |= _admit_imu(bounds, clean, row)
    fresh = legs
    for leg in range(legs):
        _admit_leg(bounds, clean, row, leg)
        if clean.unchanged[leg] >= bounds.stale:
            fresh -= 1
    for leg in range(legs):
        # A robot whose every encoder rests is a robot at rest.
        if fresh > 0 and clean.unchanged[leg] >= bounds.stale:
            clean.ok[leg] = False
        if not clean.ok[leg]:
            bits |= STALE_LEG | BAD_SAMPLE | (1 << (FIRST_LEG + leg))
    return verdict, bits
