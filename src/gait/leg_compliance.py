"""How far legs give way under load, from a log: with the rate of the force it corrects what each leg measures.

Foot, ground, gears and links give way in proportion to the force of the ground. While the force changes, a foot that
stands moves, and its leg measures a velocity that is off by the rate of the force times a compliance. A network that
knows all robots corrects what they have in common; the rest is the same in the whole log. A leg's residual against the
smoothed velocity has it, but for what is slow: an error that legs have in common for longer than a step is in the
smoothed velocity too. So both sides lose their weighted mean over a second before the fit, by least squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.log.log import Log
from gait.moving_average import low_pass
from gait.nets.features import FORCE, PER_LEG, SHARED, leg_features
from gait.robot import Robot

SMOOTHED, SLOW = 0.01, 1.2
"""Seconds over which forces are averaged; and of the mean that is taken off."""
LEAST_SECONDS = 5.0
"""Of a log: with less nothing is fitted."""
PRIOR = 0.01
"""Standard deviation of a compliance, m a weight of the robot: what simulated robots have."""
LASTS = 0.05
"""Seconds for which a residual lasts: so many fewer of them are independent."""


class MeasuredLegs(NamedTuple):
    """What the legs measured in a log."""

    velocity: Array
    """Of the body (N, L, 3), base axes, m/s."""
    std: Array
    """Standard deviations (N, L, 3), m/s."""


def force_rates(log: Log, robot: Robot, delay: float) -> Array:
    """Rates of the force of the ground on each foot (N, L, 3), base axes, weights of the robot a second.

    Args:
        log: the samples, in the robot's order.
        robot: whose they are.
        delay: latency of the joints, s.
    """
    legs = leg_features(log, robot, delay)[:, SHARED:].reshape(len(log), robot.num_legs, PER_LEG)
    period = 1.0 / log.rate
    return np.asarray(np.gradient(low_pass(legs[..., FORCE : FORCE + 3], period, SMOOTHED), period, axis=0))


def leg_compliance(measured: MeasuredLegs, rates: Array, vel_b: Array, period: float, delay: float) -> Array:
    """Compliance along the axes of the base (3,), m a weight: what a leg measures too much, by the rate of its force.

    Args:
        measured: by the legs.
        rates: of their forces, from `force_rates`.
        vel_b: smoothed velocity (N, 3), m/s.
        period: of a sample, s.
        delay: latency of the joints, s.
    """
    if len(vel_b) * period < LEAST_SECONDS:
        return np.zeros(3)
    weight = measured.std**-2.0
    acceleration = low_pass(np.gradient(vel_b, period, axis=0), period, SMOOTHED)
    residual = measured.velocity + (delay * acceleration - vel_b)[:, None]
    total = low_pass(weight.sum(1), period, SLOW)

    def quick(values: Array) -> Array:
        return values - (low_pass((weight * values).sum(1), period, SLOW) / total)[:, None]

    # The latency is not quite known, and its error goes with the acceleration: fitted too, and left to joint_latency.
    y, terms = quick(residual), [quick(rates), quick(np.repeat(acceleration[:, None], rates.shape[1], axis=1))]
    A, b = np.diag([*[PRIOR**-2.0] * 3, 1.0]), np.zeros(4)
    for i in range(3):
        rows = [i, 3]
        X = np.stack([term[..., i].ravel() for term in terms], axis=1)
        W = weight[..., i].ravel() * min(1.0, period / LASTS)
        A[np.ix_(rows, rows)] += X.T @ (W[:, None] * X)
        b[rows] += X.T @ (W * y[..., i].ravel())
    return np.asarray(np.linalg.solve(A, b)[:3])
