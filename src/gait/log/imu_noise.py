"""Errors of an IMU: white noise, bias, bias random walk, scale, saturation, mounting, ringing, low-pass and delay.

The simulator applies them sample by sample (`gait.sim.sensors`), `Log.with_imu_noise` to a recording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

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
    gyro_scale: Vector = (0.0, 0.0, 0.0)
    """Relative scale error of each axis."""
    accel_scale: Vector = (0.0, 0.0, 0.0)
    """The same for the accelerometer."""
    cutoff: float = 0.0
    """Cut-off of a first-order low-pass on gyro and accelerometer, Hz; 0 is none."""
    ringing: float = 0.0
    """Share of a vibration mode of the structure in the readings of gyro and accelerometer, on each axis: after an
    impact of dt seconds and height a it rings with share * 2 pi frequency * dt * a. Slow motion does not excite it."""
    ringing_cross: float = 0.0
    """How much a vertical impact excites the accelerometer's other two axes, relative to its own axis."""
    ringing_frequency: float = 50.0
    """Of that mode, Hz."""
    ringing_decay: float = 0.02
    """Its time constant, s, above 0."""

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value, vector = np.asarray(getattr(self, name)), isinstance(getattr(ImuNoise, name), tuple)
            good = value.dtype.kind in "fiu" and value.shape == ((3,) if vector else ())
            finite = name.endswith("range") or (good and np.isfinite(value).all())
            positive = name == "ringing_decay"
            if not (good and finite and (vector or value > 0.0 or (value == 0.0 and not positive))):
                wanted = (
                    "three finite numbers" if vector else f"a finite number {'above' if positive else 'of at least'} 0"
                )
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

        felt, response = np.hstack([gyro @ turn, accel @ turn]), ImuResponse.of(self, float(np.median(np.diff(t))))
        if response.active:
            for reading in felt:
                respond(response, reading)

        def read(exact: Array, bias: Array, density: float, limit: float, rng: np.random.Generator) -> Array:
            reading = exact + bias + density / root_dt * rng.standard_normal(exact.shape)
            return np.clip(reading, -limit, limit)[late]

        gyro_bias, accel_bias = self.biases(t, seed)
        gyro = read(felt[:, :3] * self.gain[0], gyro_bias, self.gyro_noise, self.gyro_range, white[0])
        return gyro, read(felt[:, 3:] * self.gain[1], accel_bias, self.accel_noise, self.accel_range, white[1])

    @property
    def gain(self) -> Array:
        """Reading over measured quantity, of gyro and accelerometer (2, 3)."""
        return 1.0 + np.array([self.gyro_scale, self.accel_scale])

    @staticmethod
    def _streams(seed: int) -> list[np.random.Generator]:
        if seed < 0:
            raise GaitError(f"the seed of the noise is {seed}: give a whole number from 0")
        # A generator each, so that a change of one figure leaves the other draws as they were.
        return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


SLOW = 0.01
"""Time constant (s) of what does not excite a vibration mode."""


class ImuResponse(NamedTuple):
    """Vibration mode and low-pass of an IMU. Arrays, (6,) and gyro first, change with each reading."""

    active: bool
    share: float
    cross: float
    kick: float
    """What a reading adds to the mode, relative to its quick part."""
    real: float
    imag: float
    """Factor of the mode from one reading to the next, a complex number."""
    slow_share: float
    low_share: float
    """Shares of the newest reading in the slow part and in the low-passed reading."""
    readings: Array
    """How many there were (1,)."""
    slow: Array
    mode_real: Array
    mode_imag: Array
    low: Array

    @staticmethod
    def of(noise: ImuNoise, dt: float) -> ImuResponse:
        """The response of an IMU that is read every `dt` seconds, before the first reading."""
        omega, fade = 2.0 * math.pi * noise.ringing_frequency, math.exp(-dt / noise.ringing_decay)
        low = 1.0 - math.exp(-2.0 * math.pi * noise.cutoff * dt) if noise.cutoff > 0.0 else 1.0
        factor = fade * math.cos(omega * dt), fade * math.sin(omega * dt)
        memory = np.zeros(1), *(np.zeros(6) for _ in range(4))
        active = noise.ringing > 0.0 or noise.cutoff > 0.0
        shares = noise.ringing, noise.ringing_cross, omega * dt, *factor, 1.0 - math.exp(-dt / SLOW), low
        return ImuResponse(active, *shares, *memory)


def respond(r: ImuResponse, reading: Array) -> None:
    """Add the vibration to a reading (6,) and pass it through the low-pass, in place."""
    if not r.active:
        return
    if r.readings[0] == 0.0:
        r.slow[:], r.low[:] = reading, reading
    r.readings[0] += 1.0
    r.slow[:] += r.slow_share * (reading - r.slow)
    quick = reading - r.slow
    quick[3:5] += r.cross * quick[5]
    mode = r.mode_real * r.real - r.mode_imag * r.imag + r.kick * quick
    r.mode_imag[:] = r.mode_real * r.imag + r.mode_imag * r.real
    r.mode_real[:] = mode
    r.low[:] += r.low_share * (reading + r.share * r.mode_imag - r.low)
    reading[:] = r.low


def _bias(t: Array, constant: Vector, spread: float, walk: float, rng: np.random.Generator) -> Array:
    start = np.asarray(constant, dtype=np.float64) + spread * rng.standard_normal(3)
    steps = rng.standard_normal((len(t), 3))
    steps *= walk * np.sqrt(np.diff(t, prepend=t[0]))[:, None]
    return np.asarray(start + np.cumsum(steps, axis=0))
