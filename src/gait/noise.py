"""Errors of an IMU: white noise, a constant bias and a bias that wanders, all from one seed."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class ImuNoise:
    """How wrong an IMU is. Everything is zero by default; standard deviations hold for each axis."""

    gyro_std: float = 0.0
    """White noise of one gyro sample (rad/s)."""
    accel_std: float = 0.0
    """White noise of one accelerometer sample (m/s^2)."""
    gyro_bias: Vector = (0.0, 0.0, 0.0)
    """Constant gyro bias, body frame (rad/s)."""
    accel_bias: Vector = (0.0, 0.0, 0.0)
    """Constant accelerometer bias, body frame (m/s^2)."""
    gyro_bias_std: float = 0.0
    """Spread of a further constant gyro bias drawn once from the seed (rad/s)."""
    accel_bias_std: float = 0.0
    """Spread of a further constant accelerometer bias drawn once from the seed (m/s^2)."""
    gyro_walk: float = 0.0
    """Random walk of the gyro bias (rad/s per square root of a second)."""
    accel_walk: float = 0.0
    """Random walk of the accelerometer bias (m/s^2 per square root of a second)."""

    def __post_init__(self) -> None:
        for name in ("gyro_std", "accel_std", "gyro_bias_std", "accel_bias_std", "gyro_walk", "accel_walk"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0.0 <= float(value) < np.inf):
                raise GaitError(f"ImuNoise {name} is {value!r}: give a finite number of at least 0")
        for name in ("gyro_bias", "accel_bias"):
            bias = np.asarray(getattr(self, name))
            if bias.shape != (3,) or bias.dtype.kind not in "fiu" or not np.isfinite(bias).all():
                raise GaitError(f"ImuNoise {name} is {getattr(self, name)!r}: give three finite numbers")

    def biases(self, t: Array, seed: int) -> tuple[Array, Array]:
        """The gyro and accelerometer bias (N, 3) that this seed gives at the times `t` (N,)."""
        _, _, gyro, accel = self._streams(seed)
        return (
            _bias(t, self.gyro_bias, self.gyro_bias_std, self.gyro_walk, gyro),
            _bias(t, self.accel_bias, self.accel_bias_std, self.accel_walk, accel),
        )

    def errors(self, t: Array, seed: int) -> tuple[Array, Array]:
        """Bias plus white noise (N, 3) of the gyro and of the accelerometer at the times `t` (N,)."""
        gyro_white, accel_white, _, _ = self._streams(seed)
        gyro, accel = self.biases(t, seed)
        gyro += self.gyro_std * gyro_white.standard_normal(gyro.shape)
        accel += self.accel_std * accel_white.standard_normal(accel.shape)
        return gyro, accel

    @staticmethod
    def _streams(seed: int) -> list[np.random.Generator]:
        if seed < 0:
            raise GaitError(f"the seed of the noise is {seed}: give a whole number from 0")
        # A generator each, so that a change of one figure leaves the other draws as they were.
        return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _bias(t: Array, constant: Vector, spread: float, walk: float, rng: np.random.Generator) -> Array:
    start = np.asarray(constant, dtype=np.float64) + spread * rng.standard_normal(3)
    steps = rng.standard_normal((len(t), 3))
    steps[0] = 0.0
    steps[1:] *= walk * np.sqrt(np.diff(t))[:, None]
    bias: Array = start + np.cumsum(steps, axis=0)
    return bias
