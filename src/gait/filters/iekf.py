"""The right-invariant EKF on SE_2(3) with IMU biases and any number of feet: the object around the compiled kernels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import Array, BoolArray
from gait.errors import GaitError
from gait.filters import correction, propagation
from gait.parameters import Options, Prior, ProcessNoise


class InvariantEKF:
    """Orientation, velocity, position and IMU biases, driven by an IMU and corrected by whatever measures motion.

    The filter sees measurements and their covariances, never joints. Calls allocate nothing; a sample or a measurement
    that is not finite is refused (the call returns False) and changes nothing.

    Attributes (views of the live state, not copies):
        R_wb: orientation, body to world (3, 3).
        vel_w, pos_w: velocity and position in the world frame (3,).
        gyro_bias, accel_bias: estimated biases (3,).
        feet_w: contact points in the world frame (L, 3); rows of feet that are not active mean nothing.
        cov: covariance of the right-invariant error, ordered rotation, velocity, position, gyro bias, accelerometer
            bias, feet (15 + 3 L square).
        active: which feet are in the state (L,).
    """

    def __init__(
        self,
        num_feet: int = 0,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
    ) -> None:
        self.noise = noise or ProcessNoise()
        self.prior = prior or Prior()
        self.options = options or Options()
        size, rows = 15 + 3 * num_feet, 6 + 3 * num_feet
        self.R_wb = np.eye(3)
        self._x = np.zeros((2 + num_feet, 3))
        self._b = np.zeros((2, 3))
        self.vel_w: Array = self._x[0]
        self.pos_w: Array = self._x[1]
        self.feet_w: Array = self._x[2:]
        self.gyro_bias: Array = self._b[0]
        self.accel_bias: Array = self._b[1]
        self.cov = np.zeros((size, size))
        self.active: BoolArray = np.zeros(num_feet, dtype=np.bool_)
        self.arrays = (
            self.R_wb,
            self._x,
            self._b,
            self.cov,
            self.active,
            np.zeros((5, rows, size)),
            np.zeros((rows, 2), dtype=np.int64),
        )
        self._noise = self.noise.densities
        self._still = np.zeros((num_feet, 3))
        self._no_walk = np.zeros(num_feet)
        self.reset()

    @property
    def vel_b(self) -> Array:
        """Velocity in the body frame (3,)."""
        velocity: Array = self._x[0] @ self.R_wb
        return velocity

    @property
    def vel_b_cov(self) -> Array:
        """Covariance of the body-frame velocity (3, 3).

        With the right-invariant error, v_hat - v = xi_v + xi_R x v and R_hat'v_hat - R'v = R' xi_v: the rotation's
        error drops out.
        """
        R = self.R_wb
        cov: Array = R.T @ self.cov[3:6, 3:6] @ R
        return cov

    def reset(
        self,
        R_wb: Array | None = None,
        vel_w: npt.ArrayLike = (0.0, 0.0, 0.0),
        pos_w: npt.ArrayLike = (0.0, 0.0, 0.0),
        cov: Array | None = None,
    ) -> None:
        """Start again from a known state, with zero biases and no feet.

        Args:
            R_wb: orientation; level with heading zero if not given.
            vel_w: velocity.
            pos_w: position.
            cov: covariance (15, 15); from the prior if not given.
        """
        if R_wb is not None and not np.allclose(R_wb @ R_wb.T, np.eye(3), atol=1e-6):
            raise GaitError("R_wb is not a rotation matrix: its columns must be orthogonal and of length 1")
        self.R_wb[:] = np.eye(3) if R_wb is None else R_wb
        self._x[:] = 0.0
        self._x[0], self._x[1] = vel_w, pos_w
        self._b[:] = 0.0
        self.active[:] = False
        self.cov[:] = 0.0
        self.cov[:15, :15] = self._prior_covariance() if cov is None else cov

    def reset_from_gravity(self, accel: Array, yaw: float = 0.0) -> None:
        """Start without truth: roll and pitch from the specific force of a robot at rest, zero velocity.

        Args:
            accel: specific force (3,), or several samples (N, 3) that are averaged.
            yaw: heading to start with.
        """
        force = np.asarray(accel, dtype=np.float64).reshape(-1, 3).mean(axis=0)
        norm = float(np.linalg.norm(force))
        if not 0.5 < norm / abs(self.options.gravity) < 1.5:
            raise GaitError(
                f"specific force of {norm:.2f} m/s^2 is not that of a robot at rest:"
                " give samples in m/s^2 from a moment when it stands or lies still"
            )
        roll = math.atan2(force[1], force[2])
        pitch = math.atan2(-force[0], math.hypot(force[1], force[2]))
        R = lie.so3_exp(np.array([0.0, 0.0, yaw])) @ lie.so3_exp(np.array([0.0, pitch, 0.0]))
        self.reset(R @ lie.so3_exp(np.array([roll, 0.0, 0.0])))

    def _prior_covariance(self) -> Array:
        """The prior is about velocity and position themselves; carry it to the right-invariant error."""
        p = self.prior
        std = [p.rotation, p.rotation, p.yaw, *[p.velocity] * 3, *[p.position] * 3]
        local = np.diag(np.square([*std, *[p.gyro_bias] * 3, *[p.accel_bias] * 3]))
        # v_hat - v = xi_v + xi_R x v, so xi_v = (v_hat - v) + v x xi_R, and likewise for the position.
        J = np.eye(15)
        J[3:6, 0:3] = lie.skew(self._x[0])
        J[6:9, 0:3] = lie.skew(self._x[1])
        cov: Array = J @ local @ J.T
        return cov

    def propagate(
        self,
        gyro: Array,
        accel: Array,
        dt: float,
        contact_std: Array | None = None,
        foot_vel_b: Array | None = None,
    ) -> bool:
        """Carry the state over `dt` seconds with one IMU sample.

        Args:
            gyro: angular rate (3,).
            accel: specific force (3,).
            dt: seconds.
            contact_std: density of each foot's random walk (L,).
            foot_vel_b: known velocity of each contact point in the body frame (L, 3), for feet that roll.

        Returns:
            False if the sample was refused.
        """
        o = self.options
        walk = self._no_walk if contact_std is None else contact_std
        roll = self._still if foot_vel_b is None else foot_vel_b
        try:
            if propagation.propagate(
                *self.arrays, self._noise, walk, roll, gyro, accel, o.gravity, dt, o.exact_mean, o.exact_phi
            ):
                return True
        except TypeError:
            pass  # lists, single precision or read-only rows: convert and try again
        feet = self.active.size
        walk, roll = _array(walk, (feet,), "contact_std"), _array(roll, (feet, 3), "foot_vel_b")
        gyro, accel = _array(gyro, (3,), "gyro"), _array(accel, (3,), "accel")
        return propagation.propagate(
            *self.arrays, self._noise, walk, roll, gyro, accel, o.gravity, float(dt), o.exact_mean, o.exact_phi
        )

    def correct_velocity(self, vel_b: Array, cov_b: Array) -> bool:
        """Take a body-frame velocity (3,) with its covariance (3, 3). Returns False if it was refused."""
        try:
            if correction.correct_velocity(*self.arrays, vel_b, cov_b):
                return True
        except TypeError:
            pass
        return correction.correct_velocity(*self.arrays, _array(vel_b, (3,), "vel_b"), _array(cov_b, (3, 3), "cov_b"))

    def correct_gyro_bias(self, axis: Array, off: float, variance: float) -> bool:
        """Take the gyro's bias about a unit axis (3,) of the body, as `off` rad/s more than it is believed to be, with
        its variance. Returns False if it was refused."""
        axis = _array(axis, (3,), "axis")
        return correction.correct_gyro_bias(*self.arrays, axis, float(off), float(variance))

    def step(self, gyro: Array, accel: Array, dt: float, vel_b: Array, cov_b: Array) -> bool:
        """`propagate` without feet and `correct_velocity`, in one compiled call; false if either was refused."""
        o = self.options
        try:
            return correction.propagate_and_correct_velocity(
                *self.arrays, self._noise, self._no_walk, self._still, gyro, accel,
                o.gravity, dt, o.exact_mean, o.exact_phi, vel_b, cov_b,
            )  # fmt: skip
        except TypeError:
            moved = self.propagate(gyro, accel, dt)
            return self.correct_velocity(vel_b, cov_b) and moved

    def correct_feet(self, feet_b: Array, cov_b: Array) -> bool:
        """Take the contact points of all active feet from forward kinematics, stacked.

        Args:
            feet_b: in the body frame (L, 3); rows of feet that are not active are not read.
            cov_b: their covariances (L, 3, 3).

        Returns:
            False if the measurement was refused.
        """
        try:
            if correction.correct_feet(*self.arrays, feet_b, cov_b):
                return True
        except TypeError:
            pass
        feet = self.active.size
        return correction.correct_feet(
            *self.arrays, _array(feet_b, (feet, 3), "feet_b"), _array(cov_b, (feet, 3, 3), "cov_b")
        )

    def add_foot(self, leg: int, foot_b: Array, cov_b: Array, R_wb: Array | None = None) -> None:
        """A foot touches down: its contact point joins the state.

        Args:
            leg: which foot.
            foot_b: where, in the body frame (3,).
            cov_b: covariance of that (3, 3).
            R_wb: orientation to place it with, to reproduce filters that use the one before a correction.
        """
        R = self.R_wb if R_wb is None else _array(R_wb, (3, 3), "R_wb")
        foot, cov = _array(foot_b, (3,), "foot_b"), _array(cov_b, (3, 3), "cov_b")
        correction.add_foot(R, self._x, self.cov, self.active, self._foot(leg), foot, cov)

    def remove_foot(self, leg: int) -> None:
        """A foot lifts off: its contact point leaves the state."""
        correction.remove_foot(self.cov, self.active, self._foot(leg))

    def _foot(self, leg: int) -> int:
        if not 0 <= leg < self.active.size:
            raise GaitError(f"the filter has no foot {leg}: it was made for {self.active.size}, counted from 0")
        return leg


def _array(value: npt.ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """A contiguous float64 copy, checked: compiled code does not look at bounds."""
    array = np.array(value, dtype=np.float64, order="C")
    if array.shape != shape:
        raise GaitError(f"{name} must have the shape {shape}, got {array.shape}")
    return array
