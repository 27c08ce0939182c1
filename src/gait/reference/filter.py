"""The invariant extended Kalman filter, one line an equation (paper, section IV; Hartley et al. 2020).

The state X is an extended pose in SE_{2+L}(3) of the IMU in the world: orientation R, velocity v, position p and one
contact point d for each foot on the ground. The error is right-invariant, X_hat = exp(xi) X; the biases of the IMU
have the error b_hat - b.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import factorial
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.lie import quat_from_rotation, sek3_adjoint, sek3_exp, skew, so3_exp
from gait.parameters import MOST_LASTING, Options, Prior, ProcessNoise
from gait.reference.adapted_noise import AdaptedNoise

ROT, VEL, POS, GYRO_BIAS, ACCEL_BIAS = (slice(i, i + 3) for i in range(0, 15, 3))
"""Rows of each part of the error; contact points follow in the order of `ReferenceFilter.feet`."""
LONGEST_GAP = 30.0
"""Seconds; the covariance grows no further in a longer gap."""
LARGEST_BIAS = np.array([[0.2], [1.5]])
"""Largest plausible bias of gyro, rad/s, and accelerometer, m/s^2."""


class ReferenceFilter:
    """Right-invariant EKF that takes velocities in IMU axes, contact points and any measurement with an H."""

    def __init__(self, noise: ProcessNoise, options: Options | None = None) -> None:
        self.noise, self.adapted = noise, AdaptedNoise()
        self.options = options or Options()
        self.g = np.array([0.0, 0.0, self.options.gravity])
        self.start(np.eye(3), np.zeros(3), np.zeros(3), np.ones(15))

    def start(self, R: Array, v: Array, p: Array, std: Array) -> None:
        """Begin at a state of the IMU known to these standard deviations (15,), with zero biases and no feet."""
        self.R, self.v, self.p = R, v, p
        self.gyro_bias, self.accel_bias = np.zeros(3), np.zeros(3)
        self.feet: dict[int, Array] = {}
        # They are about v_hat - v = xi_v + xi_R x v itself, so xi_v = (v_hat - v) + v x xi_R; likewise the position.
        J = np.eye(15)
        J[VEL, ROT] = skew(v)
        J[POS, ROT] = skew(p)
        self.P = J @ np.diag(np.square(std)) @ J.T

    def start_at_rest(self, accel: Array, R_bi: Array, p_bi: Array, std: Array) -> bool:
        """Begin with roll and pitch of base_link from gravity, and its heading, velocity and position zero.

        Returns:
            False, with nothing changed, if the specific force is not that of a robot at rest.
        """
        fx, fy, fz = R_bi @ accel
        if not 0.5 < np.linalg.norm(accel) / -self.options.gravity < 1.5:
            return False
        roll, pitch = np.arctan2(fy, fz), np.arctan2(-fx, np.hypot(fy, fz))
        R_wb = so3_exp(np.array([0.0, pitch, 0.0])) @ so3_exp(np.array([roll, 0.0, 0.0]))
        self.start(R_wb @ R_bi, np.zeros(3), R_wb @ p_bi, std)
        return True

    def propagate(
        self,
        gyro: Array,
        accel: Array,
        dt: float,
        contact_std: Mapping[int, float] | None = None,
        foot_vel_i: Mapping[int, Array] | None = None,
        noise: ProcessNoise | None = None,
    ) -> None:
        """One IMU sample held over dt seconds.

        Args:
            gyro: angular rate (3,), rad/s.
            accel: specific force (3,), m/s^2.
            dt: seconds.
            contact_std: density of the random walk of each contact point, m/sqrt(s); 0 by default.
            foot_vel_i: velocity (3,) at which each contact point is known to roll, IMU axes; 0 by default.
            noise: in the place of the filter's own.
        """
        w, a = gyro - self.gyro_bias, accel - self.accel_bias
        n, walk = noise or replace(self.noise, accel=max(self.noise.accel, self.adapted.density)), contact_std or {}
        accel_std = np.hypot(n.accel, n.accel_share * np.linalg.norm(self.R @ a + self.g))
        std = [n.gyro, accel_std, 0.0, n.gyro_bias, n.accel_bias, *(walk.get(leg, 0.0) for leg in self.feet)]
        # What the position drifts by, the feet on the ground drift by as well.
        moved = np.r_[0, 0, 1, 0, 0, [1] * len(self.feet)]
        drifts = np.hypot(n.position, n.position_share * np.linalg.norm(self.v)) * moved
        Q = np.kron(np.diag(np.square(std)) + np.outer(drifts, drifts), np.eye(3))
        # Errors of the vertical velocity last: what they add to the height, they add to that of the feet.
        up = np.kron(moved, [0.0, 0.0, 1.0])
        height_var = n.height_time * min(self.P[5, 5], MOST_LASTING**2)
        Phi, Ad = self.transition(dt), self.noise_map()
        self.P = symmetric(Phi @ (self.P + (Ad @ Q @ Ad.T + height_var * np.outer(up, up)) * dt) @ Phi.T)

        G0, G1, G2 = (gamma(m, w * dt) for m in range(3))
        if not self.options.exact_mean:
            G1, G2 = np.eye(3), np.eye(3) / 2
        self.p = self.p + self.v * dt + (self.R @ G2 @ a + self.g / 2) * dt**2
        change = (self.R @ G1 @ a + self.g) * dt
        self.v = self.v + change
        self.adapted.propagated(change, dt)
        for leg, velocity in (foot_vel_i or {}).items():
            if leg in self.feet:
                self.feet[leg] = self.feet[leg] + self.R @ velocity * dt
        self.R = self.R @ G0

    def bridge_gap(self, dt: float) -> None:
        """Nothing is known of the last dt seconds: drop the feet, hold the velocity and inflate the covariance."""
        for leg in list(self.feet):
            self.remove_foot(leg)
        self.adapted.forget()  # how the velocity has changed meanwhile is not known
        dt, o = min(dt, LONGEST_GAP), self.options
        # Densities whose variance over the gap is (rate dt)^2 and (accel dt)^2.
        noise = replace(self.noise, gyro=o.gap_rate * dt**0.5, accel=o.gap_accel * dt**0.5, accel_share=0.0)
        g, self.g = self.g, np.zeros(3)  # a velocity that is held does not lean with the orientation
        self.propagate(self.gyro_bias, self.accel_bias, dt, noise=noise)
        self.g = g
        self.P[POS, POS] += 0.1 * (o.gap_accel * dt**2) ** 2 * np.eye(3)  # when within the gap it changed is not known

    def limit_biases(self) -> None:
        """Keep the biases within what sensors have."""
        self.gyro_bias, self.accel_bias = np.clip([self.gyro_bias, self.accel_bias], -LARGEST_BIAS, LARGEST_BIAS)

    def transition(self, dt: float) -> Array:
        """Phi = exp(A dt) of the error equation d xi / dt = A xi."""
        A = np.zeros_like(self.P)
        A[ROT, GYRO_BIAS] = -self.R
        A[VEL, ROT] = skew(self.g)
        A[VEL, GYRO_BIAS] = -skew(self.v) @ self.R
        A[VEL, ACCEL_BIAS] = -self.R
        A[POS, VEL] = np.eye(3)
        A[POS, GYRO_BIAS] = -skew(self.p) @ self.R
        for leg, d in self.feet.items():
            A[self.rows(leg), GYRO_BIAS] = -skew(d) @ self.R
        Phi: Array = np.eye(len(A)) + A * dt
        if self.options.exact_phi:
            Phi += A @ A * dt**2 / 2 + A @ A @ A * dt**3 / 6  # the fourth power of A is zero
        return Phi

    def noise_map(self) -> Array:
        """How sensor noise enters the error: the adjoint of X on the extended pose, one on the biases."""
        Ad = np.eye(len(self.P))
        pose = [*range(9), *range(15, len(Ad))]
        Ad[np.ix_(pose, pose)] = sek3_adjoint(self.R, np.array(self._vectors()))
        return Ad

    def correct_velocity(self, vel_i: Array, cov_i: Array) -> float:
        """The velocity in IMU axes: y = R' v + noise. Returns the NIS."""
        H = np.zeros((3, len(self.P)))
        H[:, VEL] = np.eye(3)
        return self.correct(self.R @ vel_i - self.v, H, self.R @ cov_i @ self.R.T)

    def correct_gyro_bias(self, axis_i: Array, innovation: float, variance: float) -> float:
        """The gyro bias about an axis (3,) of the IMU, as its difference from the estimate. Returns the NIS."""
        H = np.zeros((1, len(self.P)))
        H[0, GYRO_BIAS] = axis_i
        return self.correct(np.array([innovation]), H, np.array([[variance]]))

    def correct_feet(self, feet_i: Mapping[int, Array], cov_i: Mapping[int, Array]) -> float:
        """Contact points from forward kinematics, stacked: y = R' (d - p) + noise for each. Returns the NIS."""
        size = 3 * len(self.feet)
        H, N, z = np.zeros((size, len(self.P))), np.zeros((size, size)), np.zeros(size)
        for i, (leg, d) in enumerate(self.feet.items()):
            block = slice(3 * i, 3 * i + 3)
            H[block, POS] = -np.eye(3)
            H[block, self.rows(leg)] = np.eye(3)
            N[block, block] = self.R @ cov_i[leg] @ self.R.T
            z[block] = self.R @ feet_i[leg] + self.p - d
        return self.correct(z, H, N)

    def correct(self, z: Array, H: Array, N: Array) -> float:
        """Any measurement with innovation z = -H xi + noise of covariance N, in Joseph form. Returns the NIS."""
        S = H @ self.P @ H.T + N
        K = np.linalg.solve(S, H @ self.P).T
        I_KH = np.eye(len(self.P)) - K @ H
        self.P = symmetric(I_KH @ self.P @ I_KH.T + K @ N @ K.T)
        self._retract(K @ z)
        return float(z @ np.linalg.solve(S, z))

    def _retract(self, delta: Array) -> None:
        """X <- exp(delta) X, and the biases by addition."""
        turn, shifts = sek3_exp(np.concatenate([delta[:9], delta[15:]]))
        self.v, self.p, *feet = (turn @ x + shift for x, shift in zip(self._vectors(), shifts, strict=True))
        self.feet = dict(zip(self.feet, feet, strict=True))
        self.R = turn @ self.R
        self.gyro_bias = self.gyro_bias + delta[GYRO_BIAS]
        self.accel_bias = self.accel_bias + delta[ACCEL_BIAS]

    def add_foot(self, leg: int, foot_i: Array, cov_i: Array) -> None:
        """A foot touches down: its contact point joins the state at d = p + R foot_i."""
        F = np.vstack([np.eye(len(self.P)), np.eye(len(self.P))[POS]])
        self.P = F @ self.P @ F.T
        self.feet[leg] = self.p + self.R @ foot_i
        self.P[self.rows(leg), self.rows(leg)] += self.R @ cov_i @ self.R.T

    def remove_foot(self, leg: int) -> None:
        """A foot lifts off: its contact point leaves the state."""
        keep = np.delete(np.arange(len(self.P)), self.rows(leg))
        self.P = self.P[np.ix_(keep, keep)]
        del self.feet[leg]

    def rows(self, leg: int) -> slice:
        """Where the error of a contact point stands."""
        start = 15 + 3 * list(self.feet).index(leg)
        return slice(start, start + 3)

    def _vectors(self) -> list[Array]:
        """The columns of X beside the rotation."""
        return [self.v, self.p, *self.feet.values()]


def gamma(m: int, phi: Array) -> Array:
    """Gamma_m(phi) = sum_n (phi^)^n / (n + m)!: exp(phi), its left Jacobian, and that integrated once more."""
    hat, power, total = skew(phi), np.eye(3), np.zeros((3, 3))
    for n in range(30):
        total += power / factorial(n + m)
        power = power @ hat
    return total


def symmetric(P: Array) -> Array:
    """P, whose two triangles rounding pulls apart."""
    return (P + P.T) / 2


def prior_std(prior: Prior) -> Array:
    """Standard deviations of rotation, velocity, position, gyro bias and accelerometer bias (15,)."""
    p = prior
    per_vector = np.repeat([p.velocity, p.position, p.gyro_bias, p.accel_bias], 3)
    return np.concatenate([[p.rotation, p.rotation, p.yaw], per_vector])


class BaseState(NamedTuple):
    """State of base_link."""

    R_wb: Array
    vel_w: Array
    pos_w: Array
    vel_b: Array
    vel_cov: Array
    """Of the velocity in base_link (3, 3)."""
    pose_cov: Array
    """Of position and rotation in the world, in this order (6, 6)."""

    @property
    def quat_wb_wxyz(self) -> Array:
        """Orientation (4,)."""
        return quat_from_rotation(self.R_wb)


def base_state(ekf: ReferenceFilter, gyro: Array, R_bi: Array, p_bi: Array) -> BaseState:
    """From the IMU to base_link, given the angular rate as measured (3,)."""
    R_wb = ekf.R @ R_bi.T
    w_b = R_bi @ (gyro - ekf.gyro_bias)
    vel_w, pos_w = ekf.v - R_wb @ np.cross(w_b, p_bi), ekf.p - R_wb @ p_bi
    # p_hat - p = xi_p + xi_R x p, R_hat R' = exp(xi_R) and R_hat' v_hat - R' v = R' xi_v, to first order.
    J = np.block([[np.eye(3), -skew(pos_w)], [np.zeros((3, 3)), np.eye(3)]])
    order = np.r_[POS, ROT]
    pose_cov = J @ ekf.P[np.ix_(order, order)] @ J.T
    return BaseState(R_wb, vel_w, pos_w, R_wb.T @ vel_w, R_wb.T @ ekf.P[VEL, VEL] @ R_wb, pose_cov)


def imu_state(
    R_wb: Array, vel_w: Array, pos_w: Array, gyro: Array, R_bi: Array, p_bi: Array
) -> tuple[Array, Array, Array]:
    """From base_link to the IMU: its orientation, velocity and position."""
    return R_wb @ R_bi, vel_w + R_wb @ np.cross(R_bi @ gyro, p_bi), pos_w + R_wb @ p_bi
