"""Errors of an IMU: white noise, bias, bias random walk, saturation, mounting and delay.

The simulator applies them sample by sample (`gait.sim.sensors`), `Log.with_imu_noise` to a recording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class ImuNoise:
    """How wrong an IMU is. The defaults are a perfect one; figures hold for each axis."""

    gyro_noise: float = 0.0
    """White noise density, rad/s/sqrt(Hz); a sample of dt seconds has the standard deviation density / sqrt(dt)."""
    accel_noise: float = 0.0
    """White noise density, m/s^2/sqrt(Hz)."""
    gyro_bias: float = 0.0
    """Standard deviation of the bias at switch-on, drawn once, rad/s."""
    accel_bias: float = 0.0
    """The same for the accelerometer, m/s^2."""
    gyro_walk: float = 0.0
    """Density of the bias random walk, rad/s^2/sqrt(Hz)."""
    accel_walk: float = 0.0
    """The same for the accelerometer, m/s^3/sqrt(Hz)."""
    gyro_range: float = math.inf
    """Readings saturate here, rad/s."""
    accel_range: float = math.inf
    """Readings saturate here, m/s^2."""
    mounting: Vector = (0.0, 0.0, 0.0)
    """Rotation vector from the mounting that the robot's description claims to the true one, rad."""
    delay: int = 0
    """Age of the newest reading, in samples."""
    gyro_offset: Vector = (0.0, 0.0, 0.0)
    """Constant bias on top of the one that is drawn, rad/s."""
    accel_offset: Vector = (0.0, 0.0, 0.0)
    """The same for the accelerometer, m/s^2."""

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value, vector = np.asarray(getattr(self, name)), isinstance(getattr(ImuNoise, name), tuple)
            good = value.dtype.kind in "fiu" and value.shape == ((3,) if vector else ())
            finite = name.endswith("range") or (good and np.isfinite(value).all())
            if not (good and finite and (vector or value >= 0.0)):
                wanted = "three finite numbers" if vector else "a finite number of at least 0"
                raise GaitError(f"ImuNoise {name} is {getattr(self, name)!r}: give {wanted}")

    def biases(self, t: Array, seed: int) -> tuple[Array, Array]:
        """The gyro and accelerometer bias (N, 3) that this seed gives at the times `t` (N,)."""
        _, _, one, two = self._streams(seed)
        gyro = _bias(t, self.gyro_offset, self.gyro_bias, self.gyro_walk, one)
        return gyro, _bias(t, self.accel_offset, self.accel_bias, self.accel_walk, two)

    def applied(self, t: Array, gyro: Array, accel: Array, seed: int) -> tuple[Array, Array]:
        """What this IMU reads in place of exact `gyro` and `accel` (N, 3) at the times `t` (N,)."""
        from gait.lie import so3_exp

        turn = so3_exp(np.array(self.mounting, dtype=np.float64))
        root_dt = np.sqrt(np.diff(t, prepend=2.0 * t[0] - t[1]))[:, None]
        late = np.maximum(np.arange(len(t)) - self.delay, 0)
        white = self._streams(seed)[:2]

        def read(exact: Array, bias: Array, density: float, limit: float, rng: np.random.Generator) -> Array:
            reading = exact @ turn + bias + density / root_dt * rng.standard_normal(exact.shape)
            return np.clip(reading, -limit, limit)[late]

        gyro_bias, accel_bias = self.biases(t, seed)
        gyro = read(gyro, gyro_bias, self.gyro_noise, self.gyro_range, white[0])
        return gyro, read(accel, accel_bias, self.accel_noise, self.accel_range, white[1])

    @staticmethod
    def _streams(seed: int) -> list[np.random.Generator]:
        if seed < 0:
            raise GaitError(f"the seed of the noise is {seed}: give a whole number from 0")
        # A generator each, so that a change of one figure leaves the other draws as they were.
        return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _bias(t: Array, constant: Vector, spread: float, walk: float, rng: np.random.Generator) -> Array:
    start = np.asarray(constant, dtype=np.float64) + spread * rng.standard_normal(3)
    steps = rng.standard_normal((len(t), 3))
    steps *= walk * np.sqrt(np.diff(t, prepend=t[0]))[:, None]
    return np.asarray(start + np.cumsum(steps, axis=0))
