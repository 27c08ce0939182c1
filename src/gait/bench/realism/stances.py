"""Stances, and what each leg measures in them.

A leg stands where its foot is near the ground and slow by kinematics and ground truth. Contact flags of robots are late
and often wrong, so they are not read; those of simulated walks would be right, but other logs could not be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gait import quaternions
from gait.arrays import Array, BoolArray, IntArray
from gait.bench.realism.body_motion import BodyMotion
from gait.log import Log
from gait.nets.features import FORCE, PER_LEG, SHARED, VELOCITY, leg_features
from gait.reference.leg_velocity import LegGeometry
from gait.report.chart import runs
from gait.robot import Robot

LOW, FAST = 0.02, 0.6
"""A foot stands below this height over its ground, m, and this speed, m/s."""
GROUND_SHARE, GROUND_SECONDS = 0.15, 1.6
"""The ground under a foot is as high as the foot is, or less, for this share of so many seconds."""
PAUSE, SHORTEST = 0.03, 0.08
"""Gaps that are closed, and stances that are too short to use, s."""
MIDDLE = (0.2, 0.8)
"""Phase of the stance that counts as its middle."""


@dataclass(frozen=True, eq=False)
class Stances:
    """Legs of a log in stance."""

    rate: float
    length: float
    """Of a leg, m."""
    residual: Array
    """Velocity of the body as each leg measures it, less the true one (N, L, 3), body frame, m/s."""
    height: Array
    """Of the foot's centre in the world (N, L), m."""
    load: Array | None
    """Vertical ground force in weights of the robot (N, L); none without torques and targets."""
    standing: BoolArray
    """(N, L)"""
    spans: IntArray
    """Whole stances in which the motion is known: leg, first row, row after the last (S, 3)."""

    @cached_property
    def phase(self) -> Array:
        """Phase of the stance, from 0 to 1 (N, L); nan outside of whole stances."""
        phase = np.full(self.standing.shape, np.nan)
        for leg, a, b in self.spans:
            phase[a:b, leg] = (np.arange(b - a) + 0.5) / (b - a)
        return phase

    @cached_property
    def middle(self) -> BoolArray:
        """The middle of the stances (N, L)."""
        return np.asarray((self.phase >= MIDDLE[0]) & (self.phase < MIDDLE[1]))

    def touch_downs(self) -> list[int]:
        """Rows at which feet touch down, (nearly) simultaneous ones once."""
        found: list[int] = []
        for row in sorted(int(a) for _, a, _ in self.spans):
            if not found or row - found[-1] > 0.08 * self.rate:
                found.append(row)
        return found


def find_stances(log: Log, robot: Robot, motion: BodyMotion) -> Stances:
    """The stances of an evenly sampled log whose joints have the robot's order."""
    known = log.tau is not None or log.q_des is not None
    features = leg_features(log if known else log.replace(tau=np.zeros_like(log.q)), robot, delay=0.0)
    legs, geometry = features[:, SHARED:].reshape(len(log), -1, PER_LEG), LegGeometry(robot)
    feet_b = geometry.hips_b + geometry.length * legs[..., :VELOCITY]
    residual = legs[..., VELOCITY:FORCE] - motion.vel_b[:, None]
    quat = motion.quat_wb_wxyz[:, None]
    height = (motion.pos_w[:, None] + quaternions.rotate(quat, feet_b))[..., 2]
    load = quaternions.rotate(quat, legs[..., FORCE : FORCE + 3])[..., 2] if known else None
    speed = np.linalg.norm(residual, axis=-1)
    standing = np.stack([_standing(*leg, log.rate) for leg in zip(height.T, speed.T, strict=True)], axis=1)
    spans: list[tuple[int, int, int]] = []
    for leg, flags in enumerate(standing.T):
        whole = [(a, b) for a, b in runs(flags) if a > 0 and b < len(log) and b - a >= SHORTEST * log.rate]
        spans += [(leg, a, b) for a, b in whole if motion.known[a:b].all()]
    return Stances(
        log.rate, geometry.length, residual, height, load, standing, np.array(spans, dtype=np.int64).reshape(-1, 3)
    )


def _standing(height: Array, speed: Array, rate: float) -> BoolArray:
    """Where one foot stands (N,)."""
    low = (height - _ground(height, rate) < LOW) & (speed < FAST)
    for a, b in runs(~low):
        if a > 0 and b < len(low) and b - a <= PAUSE * rate:
            low[a:b] = True
    for a, b in runs(low):
        if b - a < SHORTEST * rate:
            low[a:b] = False
    return low


def _ground(height: Array, rate: float) -> Array:
    """Height of the ground under a foot (N,): a running quantile, at 50 Hz."""
    step = max(round(rate / 50.0), 1)
    coarse = height[::step]
    half = min(round(GROUND_SECONDS * rate / step) // 2, len(coarse) - 1)
    padded = np.pad(coarse, half, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    ground = np.quantile(windows, GROUND_SHARE, axis=1)
    return np.interp(np.arange(len(height)), np.arange(0, len(height), step), ground)
