"""Measurements of other sensors, one line an equation; core/external.c is the same in C.

Each gives (z, H, N): innovation z = -H xi + noise of covariance N, with the right-invariant error X_hat = exp(xi) X.
`age` is the time of the measurement less that of the state, a fraction of a step: H at that time times Phi(age).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.lie import rotation_from_quat, skew, so3_exp, so3_left_jacobian_inverse, so3_log
from gait.reference.filter import GYRO_BIAS, POS, ROT, VEL, ReferenceFilter

Rows = tuple[Array, Array, Array]


class SensorView(NamedTuple):
    """The IMU at the time of a measurement, and the sensor in its axes."""

    R: Array
    v: Array
    p: Array
    omega_i: Array
    lever_i: Array
    R_is: Array
    age: float
    g: Array

    @property
    def R_ws(self) -> Array:
        """Orientation of the sensor."""
        return self.R @ self.R_is


def view(ekf: ReferenceFilter, gyro: Array, accel: Array, lever_i: Array, R_is: Array, age: float) -> SensorView:
    """Carry the state over a fraction of a step."""
    w, a = gyro - ekf.gyro_bias, ekf.R @ (accel - ekf.accel_bias) + ekf.g
    return SensorView(ekf.R @ so3_exp(w * age), ekf.v + a * age, ekf.p + ekf.v * age, w, lever_i, R_is, age, ekf.g)


def rows(kind: str, s: SensorView, y: Array, cov: Array) -> Rows:
    """Innovation, H (m, 15) and noise of a measurement y; kinds are those of `gait.external.KINDS`."""
    H = np.zeros((len(cov), 15))
    if kind == "pose":
        R_ws, n = rotation_from_quat(y[3:]), np.r_[3:6, 0:3]
        R = R_ws @ s.R_is.T
        p = y[:3] - R @ s.lever_i
        turn = so3_log(R @ s.R.T)
        z = np.r_[turn, so3_left_jacobian_inverse(turn) @ (p - R @ s.R.T @ s.p)]  # log(Y X_hat^-1)
        J = np.block([[np.eye(3), np.zeros((3, 3))], [skew(y[:3]), np.eye(3)]])  # nu_p = n_p + p x n_R
        H[:3, ROT], H[3:, POS], H[3:, VEL] = np.eye(3), np.eye(3), s.age * np.eye(3)
        return z, H, J @ cov[np.ix_(n, n)] @ J.T
    if kind in ("position", "height"):
        at, full = s.p + s.R @ s.lever_i, np.zeros((3, 15))
        full[:, ROT], full[:, POS], full[:, VEL] = -skew(at), np.eye(3), s.age * np.eye(3)
        return (y - at, full, cov) if kind == "position" else (y - at[2:], full[2:], cov)
    if kind in ("velocity_w", "velocity_b"):
        arm = s.R @ np.cross(s.omega_i, s.lever_i)
        H[:, VEL], H[:, ROT], H[:, GYRO_BIAS] = np.eye(3), s.age * skew(s.g), s.R @ skew(s.lever_i)
        if kind == "velocity_b":
            return s.R_ws @ y - arm - s.v, H, s.R_ws @ cov @ s.R_ws.T
        H[:, ROT] -= skew(s.v + arm)
        return y - arm - s.v, H, cov
    if kind == "heading":
        x = s.R_ws[:, 0]
        flat2 = x[0] ** 2 + x[1] ** 2
        off = y - np.arctan2(x[1], x[0])
        H[0, ROT] = -x[0] * x[2] / flat2, -x[1] * x[2] / flat2, 1.0
        return np.arctan2(np.sin(off), np.cos(off)), H, cov
    if kind == "gravity":
        up = np.array([0.0, 0.0, 1.0])
        H[:, ROT] = skew(up)
        return (s.R_ws @ y - up)[:2], H[:2], (s.R_ws @ cov @ s.R_ws.T)[:2, :2]
    H[:, ROT] = np.eye(3)  # orientation
    return so3_log(rotation_from_quat(y) @ s.R_is.T @ s.R.T), H, cov
