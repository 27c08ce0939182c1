"""Consistency of measurements with the predicted state: the part of their disagreement that lasts, and what it changes.

A single innovation does not distinguish a slip from an error of the IMU. A slip begins and ends with a jump; an error
of the IMU grows from step to step and lasts, whichever feet stand. So each axis of the disagreement is followed by a
value that rises slowly and falls at once. Its excess over the variances inflates those of the velocity and of its
possible causes: accelerometer bias, tilt and gyro bias. So does what lasts of the differences that the estimate of
noise takes over 0.3 s, which shows a bias that jumps within half a second. A dispute that lasts for half a second
resets the velocity to the measurement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.reference.adapted_noise import SPAN, STEP
from gait.reference.filter import ACCEL_BIAS, GYRO_BIAS, POS, ROT, VEL, BaseState, ReferenceFilter

RISE, RISE_RATE = np.array([0.3, 0.3, 2.0]), 0.5
"""How fast the lasting part may rise, m/s^2: along the ground, where feet slip, and vertically; and a rate, rad/s^2."""
INFLATION_TIME, CAUSE_TIME = 0.4, 0.6
"""Seconds until a variance has grown by the square of what lasts, and from which on the causes are inflated too."""
DISPUTE, DISPUTE_TIME, RESET_TIME = 4.0, 0.1, 0.5
"""Test ratio above which the IMU is disputed; seconds until that is reported, and until the velocity is reset."""
DISTRUST_TIME, DISTRUST = 2.0, 10.0
"""Seconds after a reset during which these times are shorter, and by which factor."""
OPEN_TIME, OPEN_STD = 0.1, 0.2
"""Seconds over which the reported disagreement is averaged, and m/s beyond which a measurement has less weight."""
TURN_TIME, TURN_STD, MOST_HEADING = 0.05, 0.5, 3.2
"""The same of the rate about z, s and rad/s; and the largest difference of headings, rad."""
MEMORY = 60.0
"""Time constant of the differences of heading and position, s: over minutes legs drift as well."""
RATE_STD = 0.015
"""Standard deviation of a gyro bias that has just changed, rad/s: it moves what legs measure along the ground."""
MOUNTING_STD = 0.008
"""Standard deviation of the mounting rotation of the IMU, rad: no motion distinguishes it from a tilt of the body."""


class Consensus(NamedTuple):
    """What all sources of a velocity measure together, in base axes."""

    delta: Array
    """Measured less predicted velocity (3,)."""
    instant: Array
    """Variances of one measurement (3,)."""
    spread: Array
    """Mean square of the sources around their consensus (3,)."""
    claimed: Array
    """Variances with which it is fused (3,)."""


class ConsistencyMonitor:
    """The lasting disagreement of one filter."""

    def __init__(self, ekf: ReferenceFilter, R_bi: Array, leg_length: float = 0.0) -> None:
        """Of a filter; leg_length: m, of legs that measure a velocity each."""
        self.ekf, self.R_bi, self.leg_length = ekf, R_bi, leg_length
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self.ekf.adapted.reset()
        self.lasting, self.lasting_rate = np.zeros(3), 0.0
        self.open, self.aside, self.turn, self.heading = np.zeros(3), np.zeros(3), 0.0, 0.0
        self.duration = self.disputed = self.distrust = 0.0
        self.ratio, self.resets = 0.0, 0

    def consensus(self, c: Consensus, predicted: Array, dt: float) -> bool:
        """Take a consensus before it is fused, given the variances of the predicted velocity (3,).

        Returns:
            Whether the IMU is disputed.
        """
        share = DISTRUST if self.distrust > 0.0 else 1.0
        R_wb = self.ekf.R @ self.R_bi.T
        claimed = c.instant / self.ekf.adapted.factor
        if self.ekf.adapted.measure(self.ekf.v + R_wb @ c.delta, R_wb**2 @ claimed, R_wb**2 @ c.spread, R_wb):
            self.inflate_drift()
        informs = OPEN_STD**2 / (OPEN_STD**2 + c.instant + c.spread)
        self.open += dt / (OPEN_TIME + dt) * (informs**2 * c.delta - self.open)
        # An error of the tilt shows along the ground, and as a climb.
        climb = np.linalg.norm(self.ekf.v[:2]) * np.linalg.norm(self.open[:2]) / (-self.ekf.options.gravity * OPEN_TIME)
        self.aside[2] = (1.0 - dt / MEMORY) * self.aside[2] + climb * dt
        variance = predicted + c.instant + c.spread
        self.lasting = np.array([follow(*each) for each in zip(self.lasting, c.delta, share * RISE * dt, strict=True)])
        excess = np.maximum(self.lasting**2 - variance, 0.0)
        self.ratio = float(np.sqrt(np.mean(c.delta**2 / variance)))
        self.duration = self.duration + dt if excess.any() else 0.0
        self.disputed = self.disputed + dt if self.ratio > DISPUTE else 0.0
        self.distrust = max(0.0, self.distrust - dt)
        if self.disputed * share >= RESET_TIME:
            self.reset_velocity(c.delta, c.claimed + c.spread)
            return True
        if excess.any():
            self.inflate_causes(excess, dt, share)
        return self.disputed >= DISPUTE_TIME or self.distrust > 0.0

    def inflate_drift(self) -> None:
        """What differs for longer than any slip: a bias b, a tilt with g T, or a gyro bias that made the tilt."""
        ekf, lasting = self.ekf, self.ekf.adapted.lasting
        per = -ekf.options.gravity * SPAN
        self.aside[2] += np.linalg.norm(ekf.v[:2]) * np.sqrt(lasting(1.0)[:2].sum()) / per * STEP
        excess = lasting(ekf.adapted.gate) * STEP / INFLATION_TIME
        tilt = np.array([excess[1], excess[0], 0.0]) / per**2
        ekf.P[VEL, VEL] += np.diag(excess)
        ekf.P[ACCEL_BIAS, ACCEL_BIAS] += ekf.R.T @ np.diag(excess / SPAN**2) @ ekf.R
        ekf.P[ROT, ROT] += np.diag(tilt)
        ekf.P[GYRO_BIAS, GYRO_BIAS] += ekf.R.T @ np.diag(tilt / CAUSE_TIME**2) @ ekf.R

    def inflate_causes(self, excess: Array, dt: float, share: float) -> None:
        """The lasting part may come from the velocity, from the accelerometer bias b T or from a tilt g T."""
        ekf, T = self.ekf, self.duration
        once = dt * share / INFLATION_TIME
        later = once / T**2 if T > CAUSE_TIME else 0.0
        tilt = np.array([1.0, 1.0, 0.0]) * np.mean(excess[:2]) * later / ekf.options.gravity**2
        R_wb, R_ib = ekf.R @ self.R_bi.T, self.R_bi.T
        ekf.P[VEL, VEL] += R_wb @ np.diag(excess * once) @ R_wb.T
        ekf.P[POS, POS] += R_wb @ np.diag(excess * 2.0 * T * dt) @ R_wb.T
        ekf.P[ACCEL_BIAS, ACCEL_BIAS] += R_ib @ np.diag(excess * later) @ R_ib.T
        ekf.P[ROT, ROT] += np.diag(tilt)
        ekf.P[GYRO_BIAS, GYRO_BIAS] += R_ib @ np.diag(tilt / T**2) @ R_ib.T

    def reset_velocity(self, delta_b: Array, variance_b: Array) -> None:
        """Reset the velocity to the measurement, with its variances."""
        ekf = self.ekf
        R_wb = ekf.R @ self.R_bi.T
        ekf.v = ekf.v + R_wb @ delta_b
        ekf.P[VEL, :], ekf.P[:, VEL] = 0.0, 0.0
        ekf.P[VEL, VEL] = R_wb @ np.diag(variance_b) @ R_wb.T
        self.lasting, self.disputed, self.distrust = np.zeros(3), 0.0, DISTRUST_TIME
        self.resets += 1

    def follow_heading(self, difference: float, variance: float, dt: float) -> None:
        """Heading and position by the legs alone less those of the filter, from the difference of the rates about z."""
        keep, v = 1.0 - dt / MEMORY, self.ekf.v
        self.turn += TURN_STD**2 / (TURN_STD**2 + variance) * dt / (TURN_TIME + dt) * (difference - self.turn)
        self.heading = float(np.clip(keep * self.heading + self.turn * dt, -MOST_HEADING, MOST_HEADING))
        self.aside[:2] = keep * self.aside[:2] + self.heading * np.array([-v[1], v[0]]) * dt

    def rate(self, difference: float, variance: float, dt: float) -> None:
        """The rate about z of base_link by the legs less that of the gyro, with the variance of one measurement."""
        self.follow_heading(difference, variance, dt)
        P, axis_i = self.ekf.P, self.R_bi[2]
        self.lasting_rate = follow(self.lasting_rate, difference, RISE_RATE * dt)
        excess = max(0.0, self.lasting_rate**2 - axis_i @ P[GYRO_BIAS, GYRO_BIAS] @ axis_i - variance)
        P[GYRO_BIAS, GYRO_BIAS] += np.outer(axis_i, axis_i) * excess * dt / INFLATION_TIME
        P[ROT, ROT] += np.diag([0.0, 0.0, 2.0 * excess * INFLATION_TIME * dt])

    def reported(self, state: BaseState) -> BaseState:
        """With what no measurement shows in its covariance.

        The open disagreement: either of the two may be wrong by as much. Joints that are late by d, which is known to
        some milliseconds: the velocity is short of d times the acceleration. A gyro bias that has just changed. The
        mounting.
        """
        adapted, late = self.ekf.adapted, self.ekf.options.joint_delay_std
        hidden = RATE_STD * self.leg_length * np.array([1.0, 1.0, 0.0])
        vel_cov, pose_cov = state.vel_cov.copy(), state.pose_cov.copy()
        R_bw = self.R_bi @ self.ekf.R.T
        lasting = np.maximum(self.lasting**2 * (self.duration > 0.0), R_bw**2 @ adapted.lasting(1.0))
        more = self.open**2 + late**2 * adapted.square_b + hidden**2
        np.fill_diagonal(vel_cov, np.maximum(np.diag(vel_cov), lasting) + more)
        pose_cov[[3, 4], [3, 4]] += MOUNTING_STD**2
        along = np.sqrt(np.mean(self.aside[:2] ** 2))  # in any direction, since it turns with the heading
        least = np.array([along, along, self.aside[2], 0.0, 0.0, self.heading]) ** 2
        least[:3] += (late * adapted.swept) ** 2
        np.fill_diagonal(pose_cov, np.maximum(np.diag(pose_cov), least))
        return state._replace(vel_cov=vel_cov, pose_cov=pose_cov)


def follow(lasting: float, now: float, rise: float) -> float:
    """The part of a disagreement that lasts: towards the present one by `rise` at most, back to it at once."""
    lasting = lasting if lasting * now > 0.0 else 0.0
    return float(np.sign(now)) * min(abs(now), abs(lasting) + rise)
