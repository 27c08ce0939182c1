"""The filter of `propagation.py` and `correction.py` once more, in plain numpy, written to be read.

The state X is an extended pose in SE_{2+L}(3): orientation R, and velocity, position and one contact point for each
foot on the ground. The error is right-invariant, X_hat = exp(xi) X, beside the two IMU biases. Tests hold the compiled
filter to this one.
"""

from __future__ import annotations

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.parameters import Options, ProcessNoise


class ReferenceFilter:
    """Contact-aided invariant EKF (Hartley et al. 2020) that also takes body velocities.

    The covariance is ordered rotation, velocity, position, gyro bias, accelerometer bias, then the feet on the ground
    in the order of `feet`.
    """

    def __init__(self, noise: ProcessNoise, options: Options | None = None) -> None:
        self.noise = noise
        self.options = options or Options()
        self.R = np.eye(3)
        self.v = np.zeros(3)
        self.p = np.zeros(3)
        self.gyro_bias = np.zeros(3)
        self.accel_bias = np.zeros(3)
        self.feet: dict[int, Array] = {}
        self.P = np.eye(15)

    def vectors(self) -> list[Array]:
        """The columns of X beside the rotation."""
        return [self.v, self.p, *self.feet.values()]

    def propagate(
        self,
        gyro: Array,
        accel: Array,
        dt: float,
        contact_std: float = 0.0,
        foot_vel_b: dict[int, Array] | None = None,
    ) -> None:
        """One IMU sample held over dt seconds. `foot_vel_b` is how fast each contact point is known to roll."""
        w, a = gyro - self.gyro_bias, accel - self.accel_bias
        g = np.array([0.0, 0.0, self.options.gravity])
        A = self.dynamics(g)
        Phi = np.eye(len(A)) + A * dt
        if self.options.exact_phi:
            Phi += A @ A * dt**2 / 2 + A @ A @ A * dt**3 / 6  # the fourth power of A is zero
        Ad = self.noise_map()
        n = self.noise
        pushed = np.hypot(n.accel, n.accel_share * np.linalg.norm(self.R @ a + g))
        variances = [n.gyro, pushed, 0.0, n.gyro_bias, n.accel_bias, *[contact_std] * len(self.feet)]
        Q = np.diag(np.repeat(np.square(variances), 3))
        self.P = Phi @ (self.P + Ad @ Q @ Ad.T * dt) @ Phi.T
        self.P = 0.5 * (self.P + self.P.T)

        turn, gamma1, gamma2 = lie.gammas(w * dt)
        if not self.options.exact_mean:
            gamma1, gamma2 = np.eye(3), 0.5 * np.eye(3)
        self.p = self.p + self.v * dt + (self.R @ gamma2 @ a + 0.5 * g) * dt**2
        self.v = self.v + (self.R @ gamma1 @ a + g) * dt
        for leg, velocity in (foot_vel_b or {}).items():
            if leg in self.feet:
                self.feet[leg] = self.feet[leg] + self.R @ velocity * dt
        self.R = self.R @ turn

    def dynamics(self, g: Array) -> Array:
        """A of the linear error equation d xi / dt = A xi."""
        size = 15 + 3 * len(self.feet)
        A = np.zeros((size, size))
        A[0:3, 9:12] = -self.R
        A[3:6, 0:3] = lie.skew(g)
        A[3:6, 9:12] = -lie.skew(self.v) @ self.R
        A[3:6, 12:15] = -self.R
        A[6:9, 3:6] = np.eye(3)
        A[6:9, 9:12] = -lie.skew(self.p) @ self.R
        for i, foot in enumerate(self.feet.values()):
            A[15 + 3 * i : 18 + 3 * i, 9:12] = -lie.skew(foot) @ self.R
        return A

    def noise_map(self) -> Array:
        """How sensor noise enters the error: the adjoint of X on the pose, one on the biases."""
        adjoint = lie.sek3_adjoint(self.R, np.array(self.vectors()))
        Ad = np.eye(15 + 3 * len(self.feet))
        where = [*range(9), *range(15, len(Ad))]
        Ad[np.ix_(where, where)] = adjoint
        return Ad

    def correct_velocity(self, vel_b: Array, cov_b: Array) -> None:
        """The body-frame velocity, measured."""
        H = np.zeros((3, len(self.P)))
        H[:, 3:6] = np.eye(3)
        self._correct(self.R @ vel_b - self.v, H, self.R @ cov_b @ self.R.T)

    def correct_gyro_bias(self, axis: Array, off: float, variance: float) -> None:
        """The gyro's bias about an axis, measured to be `off` more than believed."""
        H = np.zeros((1, len(self.P)))
        H[0, 9:12] = axis
        self._correct(np.array([off]), H, np.array([[variance]]))

    def correct_feet(self, feet_b: dict[int, Array], cov_b: dict[int, Array]) -> None:
        """Forward kinematics of the feet on the ground, stacked."""
        legs = [leg for leg in self.feet if leg in feet_b]
        if not legs:
            return
        rows = 3 * len(legs)
        H, N, z = np.zeros((rows, len(self.P))), np.zeros((rows, rows)), np.zeros(rows)
        order = list(self.feet)
        for i, leg in enumerate(legs):
            block = slice(3 * i, 3 * i + 3)
            column = 15 + 3 * order.index(leg)
            H[block, 6:9] = -np.eye(3)
            H[block, column : column + 3] = np.eye(3)
            N[block, block] = self.R @ cov_b[leg] @ self.R.T
            z[block] = self.R @ feet_b[leg] + self.p - self.feet[leg]
        self._correct(z, H, N)

    def _correct(self, z: Array, H: Array, N: Array) -> None:
        """Kalman gain, Joseph form, and the correction as a group element from the left."""
        K = np.linalg.solve(H @ self.P @ H.T + N, H @ self.P).T
        KH = np.eye(len(self.P)) - K @ H
        self.P = KH @ self.P @ KH.T + K @ N @ K.T
        self.P = 0.5 * (self.P + self.P.T)
        delta = K @ z
        turn, moves = lie.sek3_exp(np.concatenate([delta[0:9], delta[15:]]))
        self.R = turn @ self.R
        self.v, self.p, *feet = (turn @ x + move for x, move in zip(self.vectors(), moves, strict=True))
        self.feet = dict(zip(self.feet, feet, strict=True))
        self.gyro_bias = self.gyro_bias + delta[9:12]
        self.accel_bias = self.accel_bias + delta[12:15]

    def add_foot(self, leg: int, foot_b: Array, cov_b: Array, R: Array | None = None) -> None:
        """A foot touches down. `R` stands in for the orientation where another filter's order is reproduced."""
        R = self.R if R is None else R
        size = len(self.P)
        F = np.vstack([np.eye(size), np.eye(size)[6:9]])
        self.P = F @ self.P @ F.T
        self.P[size:, size:] += R @ cov_b @ R.T
        self.feet[leg] = self.p + R @ foot_b

    def remove_foot(self, leg: int) -> None:
        """A foot lifts off."""
        start = 15 + 3 * list(self.feet).index(leg)
        keep = [i for i in range(len(self.P)) if not start <= i < start + 3]
        self.P = self.P[np.ix_(keep, keep)]
        del self.feet[leg]
