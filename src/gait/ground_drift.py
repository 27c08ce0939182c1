"""Vertical drift of a recording, from where its feet stood.

Feet that give way make each leg measure a vertical velocity that is a little off, always to the same side, and no IMU
contradicts a velocity that is constant. The ground does: its height under the robot, by the feet that stand and the
estimated height of the body, changes by drift and by slope. The slope is what the feet of one moment show, in front and
behind, left and right. Most ground that robots walk on is level or nearly so, which the measured slope supports or not:
the estimated slope is its mean given level, gentle and steep ground. What the height changes more is drift.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait import quaternions
from gait.arrays import Array
from gait.log.trajectory import Trajectory
from gait.moving_average import low_pass

KINDS = ((0.7, 0.003), (0.2, 0.03), (0.1, 0.2))
"""Level, gentle and steep ground: how often, and the standard deviation of its slope, rad."""
MEASURED = 0.015
"""Standard deviation of a measured slope, rad: on level ground, by robots whose joint zeros and lengths are off."""
NOISE = 0.003
"""Standard deviation of what looks like drift and is none, m/s: feet and legs give way and change their posture."""
STRIDE, AROUND = 1.2, 2.0
"""Seconds over which the height of the ground is averaged; and over which its slope is measured."""
REGULAR = 1e-4
"""Variance that joins those of places and times of the feet, m^2 and s^2: a robot that stands shows no slope."""


class GroundSlope(NamedTuple):
    """Slope along the way."""

    value: Array
    """Rise by way (N,), estimated."""
    variance: Array
    """Of the estimate (N,)."""


def without_drift(trajectory: Trajectory, feet_w: Array, stands: Array, period: float) -> Trajectory:
    """The trajectory without the vertical drift that its feet show.

    Args:
        trajectory: smoothed.
        feet_w: the lowest points of the feet in its world (N, L, 3).
        stands: probability that each foot stands (N, L).
        period: of a sample, s.
    """
    weight = np.where(np.isfinite(feet_w).all(axis=-1), stands, 0.0) ** 2 + 1e-9
    feet = np.where(np.isfinite(feet_w), feet_w, 0.0)
    height = low_pass((weight * feet[..., 2]).sum(1), period, STRIDE) / low_pass(weight.sum(1), period, STRIDE)
    way = low_pass(trajectory.vel_w[:, :2], period, STRIDE)
    speed = np.linalg.norm(way, axis=1)
    rises = measured_rises(feet, weight, trajectory.t, period)
    slope = estimated_slope((rises * way).sum(1) / np.maximum(speed, 1e-3))
    drift, unknown = np.gradient(height, period) - slope.value * speed, slope.variance * speed**2
    drift = np.where(low_pass(weight.sum(1), period, STRIDE) > 0.25, drift, 0.0)  # a robot in the air
    # How much drift there is shows in the log itself: its square, less that of what only looks like it.
    prior = max(float(np.mean(drift**2 - unknown)) - NOISE**2, 0.0)
    vel_w, pos_w = trajectory.vel_w.copy(), trajectory.pos_w.copy()
    vel_w[:, 2] -= prior / (prior + NOISE**2 + unknown) * drift
    # That comes and goes, so it does not add up in the position.
    lasting = (prior + NOISE**2) / (prior + NOISE**2 + unknown) * drift
    pos_w[1:, 2] -= np.cumsum(0.5 * (lasting[1:] + lasting[:-1]) * np.diff(trajectory.t))
    return trajectory.replace(
        vel_w=vel_w, pos_w=pos_w, vel_b=quaternions.rotate_inverse(trajectory.quat_wb_wxyz, vel_w)
    )


def measured_rises(feet: Array, weight: Array, t: Array, period: float) -> Array:
    """Rise of the ground along x and y of the world (N, 2): weighted least squares around each sample, with its drift.

    Args:
        feet: lowest points of the feet in the world (N, L, 3).
        weight: of each (N, L).
        t: stamps (N,).
        period: of a sample, s.
    """
    times = np.repeat((t - t.mean())[:, None], weight.shape[1], axis=1)
    places = np.stack([*np.moveaxis(feet[..., :2] - feet[..., :2].mean((0, 1)), -1, 0), times, feet[..., 2]], axis=-1)
    total = low_pass(weight.sum(1), period, AROUND)
    mean = low_pass(np.einsum("nl,nli->ni", weight, places), period, AROUND) / total[:, None]
    square = low_pass(np.einsum("nl,nli,nlj->nij", weight, places, places), period, AROUND) / total[:, None, None]
    cov = square - mean[:, :, None] * mean[:, None]
    return np.asarray(np.linalg.solve(cov[:, :3, :3] + REGULAR * np.eye(3), cov[:, :3, 3:])[:, :2, 0])


def estimated_slope(measured: Array) -> GroundSlope:
    """Mean and variance of the slope, given what was measured (N,) and the kinds of ground there are."""
    often, own = (np.array(column)[:, None] for column in zip(*KINDS, strict=True))
    variance = own**2 + MEASURED**2
    odds = often * np.exp(-0.5 * measured**2 / variance) / np.sqrt(variance) + 1e-300
    odds /= odds.sum(0)
    gain = own**2 / variance
    mean = (odds * gain * measured).sum(0)
    spread = (odds * (gain * MEASURED**2 + (gain * measured - mean) ** 2)).sum(0)
    return GroundSlope(mean, spread)
