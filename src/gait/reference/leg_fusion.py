"""From the velocities of the legs to one measurement of base_link's velocity, and one of the gyro bias about z.

The variance of a leg grows with its NIS against the predicted state, so that one wrong leg cannot drag the state along.
It also grows with the foot acceleration, because the latency of the joints is never quite known; the known part of it
is made up for by the predicted acceleration. A leg whose foot is at p measures a gyro bias b as -b x p: the estimate of
b is added back, and the rest of it about z, where gravity tells nothing, shows in the differences between legs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array, BoolArray
from gait.parameters import Options
from gait.reference.filter import VEL, ReferenceFilter
from gait.reference.leg_inputs import FOOT_ACCELERATION, PER_LEG, SHARED, LegGeometry

INSTANT = 1.0 / 7.0
"""Standard deviation of a leg in a single sample, relative to what a filter may take for white noise."""
YAW_BIAS_STD, YAW_BIAS_PER_RATE, YAW_BIAS_PER_ACCEL = 1.5, 3.0, 0.3
"""Factors on the standard deviation of the bias about z: always, for each rad/s and for each m/s^2; squares add up."""
LARGEST_VARIANCE = 1e6
"""Of the bias, (rad/s)^2; beyond it the legs tell nothing."""


class VelocityMeasurement(NamedTuple):
    """What a network, or the legs together, measure."""

    vel_b: Array
    """Velocity of base_link (3,), m/s."""
    var_b: Array
    """Its variances (3,)."""
    gyro_bias_z: float = 0.0
    """Gyro bias about z of base_link less the estimate, rad/s."""
    gyro_bias_z_var: float = 0.0
    """Its variance; 0 if there is no such measurement."""
    mean_b: Array | None = None
    """Weighted mean of the legs' velocities (3,), before the latency is made up for."""


def predicted_motion(
    ekf: ReferenceFilter, gyro: Array, accel: Array, R_bi: Array, p_bi: Array
) -> tuple[Array, Array, Array, Array]:
    """Of the predicted state of base_link in its own axes: angular rate, velocity, its variances, its derivative."""
    R_wb = ekf.R @ R_bi.T
    w_b = R_bi @ (gyro - ekf.gyro_bias)
    v_b = R_wb.T @ ekf.v - np.cross(w_b, p_bi)
    var_b = np.diag(R_wb.T @ ekf.P[VEL, VEL] @ R_wb)
    # d/dt R' v = R' a - w x R' v; the lever arm's own acceleration is left out.
    a_b = R_bi @ (accel - ekf.accel_bias) + R_wb.T @ ekf.g - np.cross(w_b, v_b)
    return w_b, v_b, var_b, a_b


def fuse_legs(
    ekf: ReferenceFilter,
    gyro: Array,
    accel: Array,
    features: Array,
    leg_vel: Array,
    leg_log_std: Array,
    leg_ok: BoolArray,
    geometry: LegGeometry,
) -> VelocityMeasurement:
    """One measurement from all legs in use, of which there is at least one.

    Args:
        ekf: with the predicted state.
        gyro: angular rate as measured (3,).
        accel: specific force as measured (3,).
        features: of `LegFeatures` (6 + 12 L,).
        leg_vel: velocity of base_link as each leg measures it (L, 3).
        leg_log_std: log of its standard deviation (L, 3).
        leg_ok: legs to use (L,).
        geometry: of legs and IMU.
    """
    o, R_bi = ekf.options, geometry.R_bi
    w_b, v_b, var_b, a_b = predicted_motion(ekf, gyro, accel, R_bi, geometry.p_bi)
    feet_b = geometry.feet_b(features)[leg_ok]
    foot_accel = features[SHARED:].reshape(-1, PER_LEG)[leg_ok][:, FOOT_ACCELERATION]

    z = leg_vel[leg_ok] + np.cross(R_bi @ ekf.gyro_bias, feet_b)
    r = leg_variances(leg_log_std[leg_ok], foot_accel, o)
    innovation = z + o.joint_delay * a_b - v_b
    nis = np.mean(innovation**2 / (var_b + INSTANT**2 * r), axis=1)
    r = r * np.maximum(nis / o.leg_guard**2, 1.0)[:, None]

    information = np.sum(1.0 / r, axis=0)
    mean_b = np.sum(z / r, axis=0) / information
    bias, bias_var = yaw_bias(feet_b, z - mean_b, 1.0 / r)
    bias_var *= YAW_BIAS_STD**2 + YAW_BIAS_PER_RATE**2 * float(w_b @ w_b) + YAW_BIAS_PER_ACCEL**2 * float(a_b @ a_b)
    return VelocityMeasurement(mean_b + o.joint_delay * a_b, 1.0 / information, bias, bias_var, mean_b)


def leg_variances(log_std: Array, foot_accel: Array, options: Options) -> Array:
    """Variances (L, 3): the network's, inflated, plus what an unknown latency adds while the foot accelerates."""
    variances: Array = (options.leg_inflation * np.exp(log_std)) ** 2
    return variances + (options.joint_delay_std / INSTANT * foot_accel) ** 2


def yaw_bias(feet_b: Array, residual: Array, weight: Array) -> tuple[float, float]:
    """Gyro bias about z and its variance by weighted least squares on what legs differ by; zeros if that is nothing.

    A bias e moves the measurement of a leg at p by -e z x p = e (p_y, -p_x, 0).

    Args:
        feet_b: foot positions (L, 3).
        residual: measurements of the legs less their weighted mean (L, 3).
        weight: inverse variances (L, 3).
    """
    slope = np.stack([feet_b[:, 1], -feet_b[:, 0]], axis=1)  # (L, 2)
    weight = weight[:, :2]
    slope = slope - np.sum(weight * slope, axis=0) / np.sum(weight, axis=0)
    information = float(np.sum(weight * slope**2))
    if information * LARGEST_VARIANCE < 1.0:
        return 0.0, 0.0
    return float(np.sum(weight * slope * residual[:, :2])) / information, 1.0 / information
