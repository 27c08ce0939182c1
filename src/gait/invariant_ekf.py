"""The right-invariant EKF of the core by itself: for filters of your own, and to hold it against others."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import AnyArray, Array
from gait.binding import CFilter, core_holding_gil, doubles, pointer
from gait.core_config import core_settings, deviations
from gait.errors import GaitError
from gait.parameters import Limits, Options, Prior, ProcessNoise


class InvariantEKF:
    """Orientation, velocity, position and IMU biases, driven by an IMU and corrected by any measurement of motion.

    The filter sees measurements and their covariances, never joints. A sample or a measurement that is not finite is
    refused (the call returns False) and changes nothing.

    Attributes (views of the live state, not copies):
        R_wb: orientation, body to world (3, 3).
        vel_w, pos_w: velocity and position in the world frame (3,).
        gyro_bias, accel_bias: estimated biases (3,).
        feet_w: contact points in the world frame (L, 3); rows of feet that are not active mean nothing.
        cov: covariance of the right-invariant error, ordered rotation, velocity, position, gyro bias, accelerometer
            bias, feet (15 + 3 L square).
    """

    def __init__(
        self,
        num_feet: int = 0,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
    ) -> None:
        self.prior, self.options = prior or Prior(), options or Options()
        self._feet = num_feet
        self._settings = core_settings(noise or ProcessNoise(), self.prior, self.options, Limits())
        self._noise_at = ctypes.addressof(self._settings) + type(self._settings).noise.offset
        self._core, self._filter = core_holding_gil(), CFilter()
        self._at, self._settings_at = ctypes.addressof(self._filter), ctypes.addressof(self._settings)
        size, stride = 15 + 3 * num_feet, (15 + 3 * num_feet + 7) // 8 * 8
        x, b = np.ctypeslib.as_array(self._filter.x), np.ctypeslib.as_array(self._filter.b)
        self.R_wb: Array = np.ctypeslib.as_array(self._filter.R).reshape(3, 3)
        self.vel_w: Array = x[0]
        self.pos_w: Array = x[1]
        self.feet_w: Array = x[2 : 2 + num_feet]
        self.gyro_bias: Array = b[0]
        self.accel_bias: Array = b[1]
        self.cov: Array = np.ctypeslib.as_array(self._filter.P)[: size * stride].reshape(size, stride)[:, :size]
        still, no_walk = np.zeros((max(num_feet, 1), 3)), np.zeros(max(num_feet, 1))
        # Arguments are copied to where the core finds them: to ask numpy for an address takes longer than a step.
        self._room: dict[str, Array] = {
            "gyro": np.zeros(3), "accel": np.zeros(3), "vel_b": np.zeros(3), "axis": np.zeros(3), "foot_b": np.zeros(3),
            "cov_b": np.zeros((3, 3)), "R_wb": np.zeros((3, 3)), "contact_std": np.zeros(num_feet),
            "foot_vel_b": np.zeros((num_feet, 3)), "feet_b": np.zeros((num_feet, 3)), "still": still,
            "no_walk": no_walk, "cov_feet": np.zeros((num_feet, 3, 3)),
        }  # fmt: skip
        self._where = {name: pointer(array) for name, array in self._room.items()}
        self.reset()

    @property
    def active(self) -> AnyArray:
        """Which feet are in the state (L,)."""
        return np.ctypeslib.as_array(self._filter.active)[: self._feet].astype(np.bool_)

    @property
    def vel_b(self) -> Array:
        """Velocity in the body frame (3,)."""
        velocity: Array = self.vel_w @ self.R_wb
        return velocity

    @property
    def vel_b_cov(self) -> Array:
        """Covariance of the body-frame velocity (3, 3): R' P_vv R, in which the rotation's error drops out."""
        cov: Array = self.R_wb.T @ self.cov[3:6, 3:6] @ self.R_wb
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
        self._core.filter_init(self._at, self._feet)
        if R_wb is not None:
            self.R_wb[:] = R_wb
        self.vel_w[:], self.pos_w[:] = vel_w, pos_w
        std = doubles(deviations(self.prior), 15)
        self._core.filter_prior(self._at, pointer(std))
        if cov is not None:
            self.cov[:15, :15] = cov

    def reset_from_gravity(self, accel: Array, yaw: float = 0.0) -> None:
        """Start at rest, roll and pitch from the specific force (3,) or the mean of samples (N, 3)."""
        force = np.asarray(accel, dtype=np.float64).reshape(-1, 3).mean(axis=0)
        norm = float(np.linalg.norm(force))
        if not 0.5 < norm / abs(self.options.gravity) < 1.5:
            raise GaitError(
                f"specific force of {norm:.2f} m/s^2 is not that of a robot at rest:"
                " give samples in m/s^2 from a moment when it stands or lies still"
            )
        roll, pitch = math.atan2(force[1], force[2]), math.atan2(-force[0], math.hypot(force[1], force[2]))
        turns = (np.array([0.0, 0.0, yaw]), np.array([0.0, pitch, 0.0]), np.array([roll, 0.0, 0.0]))
        self.reset(np.linalg.multi_dot([lie.so3_exp(turn) for turn in turns]))

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
        walk = self._where["no_walk"] if contact_std is None else self._take("contact_std", contact_std)
        roll = self._where["still"] if foot_vel_b is None else self._take("foot_vel_b", foot_vel_b)
        w, a = self._take("gyro", gyro), self._take("accel", accel)
        return bool(
            self._core.filter_propagate(self._at, self._settings_at, self._noise_at, walk, roll, w, a, float(dt))
        )

    def correct_velocity(self, vel_b: Array, cov_b: Array) -> bool:
        """Take a body-frame velocity (3,) with its covariance (3, 3). Returns False if it was refused."""
        velocity, cov = self._take("vel_b", vel_b), self._take("cov_b", cov_b)
        return bool(self._core.filter_correct_velocity(self._at, velocity, cov))

    def step(self, gyro: Array, accel: Array, dt: float, vel_b: Array, cov_b: Array) -> bool:
        """`propagate` without feet and `correct_velocity`; false if either was refused."""
        moved = self.propagate(gyro, accel, dt)
        return self.correct_velocity(vel_b, cov_b) and moved

    def correct_gyro_bias(self, axis: Array, off: float, variance: float) -> bool:
        """Take the gyro bias about a unit axis (3,) of the body, measured `off` rad/s larger than estimated."""
        along = self._take("axis", axis)
        return bool(self._core.filter_correct_gyro_bias(self._at, along, float(off), float(variance)))

    def correct_feet(self, feet_b: Array, cov_b: Array) -> bool:
        """Take the contact points of all active feet from forward kinematics, stacked.

        Args:
            feet_b: in the body frame (L, 3); rows of feet that are not active are not read.
            cov_b: their covariances (L, 3, 3).

        Returns:
            False if the measurement was refused.
        """
        feet, cov = self._take("feet_b", feet_b), self._take("cov_feet", cov_b, "cov_b")
        return bool(self._core.filter_correct_feet(self._at, feet, cov, 9))

    def correct(self, z: Array, H: Array, N: Array) -> bool:
        """Take any measurement z = -H xi + noise: innovation (m,), H (m, 15), covariance (m, m), at most six rows."""
        m = len(z)
        arrays = _array(z, (m,), "z"), _array(H, (m, 15), "H"), _array(N, (m, m), "N")
        return bool(self._core.filter_correct(self._at, m, *map(pointer, arrays)))

    def add_foot(self, leg: int, foot_b: Array, cov_b: Array, R_wb: Array | None = None) -> None:
        """A foot touches down: its contact point joins the state.

        Args:
            leg: which foot.
            foot_b: where, in the body frame (3,).
            cov_b: covariance of that (3, 3).
            R_wb: orientation to place it with, to reproduce filters that use the one before a correction.
        """
        R = self._take("R_wb", self.R_wb if R_wb is None else R_wb)
        foot, cov = self._take("foot_b", foot_b), self._take("cov_b", cov_b)
        self._core.filter_add_foot(self._at, self._foot(leg), foot, cov, R)

    def remove_foot(self, leg: int) -> None:
        """A foot lifts off: its contact point leaves the state."""
        self._core.filter_remove_foot(self._at, self._foot(leg))

    def _take(self, name: str, value: npt.ArrayLike, said: str = "") -> int:
        """Copy an argument, checked, since the core does not check bounds; returns its address."""
        room = self._room[name]
        if np.shape(value) != room.shape:
            raise GaitError(f"{said or name} must have the shape {room.shape}, got {np.shape(value)}")
        room[...] = value
        return self._where[name]

    def _foot(self, leg: int) -> int:
        if not 0 <= leg < self._feet:
            raise GaitError(f"the filter has no foot {leg}: it was made for {self._feet}, counted from 0")
        return int(leg)


def _array(value: npt.ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """A contiguous float64 array, checked: the core does not check bounds."""
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape != shape:
        raise GaitError(f"{name} must have the shape {shape}, got {array.shape}")
    return array
