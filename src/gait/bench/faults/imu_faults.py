"""Faults of the IMU."""

from __future__ import annotations

import numpy as np

from gait import lie
from gait.arrays import AnyArray
from gait.bench.faults.fault import Fault, Inject, both, change, noise, put, stuck
from gait.bench.faults.feed import Feed
from gait.parameters import Limits

G = 9.81
LIMITS = Limits()


def spikes(name: str, size: float, share: float = 0.01) -> Inject:
    """Single samples far from their neighbours, within the sensor's range."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        hit = np.flatnonzero(rng.random(rows.stop - rows.start) < share) + rows.start
        feed.values[name][hit] += rng.uniform(-size, size, (len(hit), 3))
        return feed

    return inject


def vibration(size: float, frequency: float = 143.0) -> Inject:
    """A motor that shakes the accelerometer: a sine of this amplitude on each axis, with random phases."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        phase = 2.0 * np.pi * (frequency * feed.time[rows, None] + rng.random(3))
        feed.values["accel"][rows] += size * np.sin(phase)
        return feed

    return inject


def turned(degrees: float) -> Inject:
    """An IMU mounted at an angle, about an axis between x, y and z."""
    R = lie.so3_exp(np.radians(degrees) / np.sqrt(3.0) * np.ones(3))

    def turn(values: AnyArray) -> AnyArray:
        return np.asarray(values @ R)

    return change("gyro accel", turn)


def clipped(name: str, limit: float) -> Inject:
    """A sensor of a smaller range."""
    return change(name, lambda x: np.clip(x, -limit, limit))


def scaled(name: str, factor: float) -> Inject:
    """A scale error, or another unit."""
    return change(name, lambda x: x * factor)


def biased(name: str, by: tuple[float, float, float]) -> Inject:
    """A bias that jumps."""
    return change(name, lambda x: x + np.array(by))


_X, _ALL = (0.5, 0.0, 0.0), (0.5, 0.5, 0.5)
_GYRO = (0.05, 0.05, 0.05)
_X_AXIS = slice(0, 1)

IMU_FAULTS: tuple[Fault, ...] = (
    Fault("gyro-nan", "gyro NaN", put("gyro", np.nan), flag="gyro not finite"),
    Fault("gyro-nan-x", "gyro NaN on x", put("gyro", np.nan, _X_AXIS), flag="gyro not finite"),
    Fault("gyro-inf", "gyro infinite", put("gyro", np.inf), flag="gyro not finite"),
    Fault("accel-nan", "accelerometer NaN", put("accel", np.nan), flag="accelerometer not finite"),
    Fault("accel-nan-x", "accelerometer NaN on x", put("accel", np.nan, _X_AXIS), flag="accelerometer not finite"),
    Fault("accel-inf", "accelerometer infinite", put("accel", np.inf), flag="accelerometer not finite"),
    Fault("imu-nan", "gyro and accelerometer NaN", put("gyro accel", np.nan), flag="imu not finite"),
    Fault("gyro-saturated", "gyro x at its range", put("gyro", LIMITS.gyro, _X_AXIS), flag="gyro saturated"),
    Fault("accel-saturated", "accelerometer z at its range", put("accel", LIMITS.accel, slice(2, 3)),
          flag="accelerometer saturated"),
    Fault("gyro-clipped", "gyro clipped at 0.5 rad/s", clipped("gyro", 0.5), flag="gyro clipped"),
    Fault("accel-clipped", "accelerometer clipped at 1.5 g", clipped("accel", 1.5 * G), flag="accelerometer clipped"),
    Fault("gyro-spikes", "1 % of gyro samples off by up to 20 rad/s", spikes("gyro", 20.0), flag="gyro spikes"),
    Fault("accel-spikes", "1 % of accelerometer samples off by up to 80 m/s2", spikes("accel", 80.0),
          flag="accelerometer spikes"),
    Fault("gyro-stuck", "gyro stuck", stuck("gyro"), flag="gyro stuck"),
    Fault("accel-stuck", "accelerometer stuck", stuck("accel"), flag="accelerometer stuck"),
    Fault("imu-stuck", "IMU stuck", stuck("gyro accel"), flag="imu stuck"),
    Fault("gyro-zero", "gyro zero", put("gyro", 0.0), flag="gyro stuck"),
    Fault("accel-zero", "accelerometer zero", put("accel", 0.0), flag="accelerometer stuck"),
    Fault("imu-zero", "IMU zero", put("gyro accel", 0.0), flag="imu stuck"),
    Fault("accel-in-g", "accelerometer in g", scaled("accel", 1.0 / G), lasts="whole", flag="accelerometer in g?"),
    Fault("gyro-in-deg", "gyro in degrees per second", scaled("gyro", 180.0 / np.pi), lasts="whole",
          flag="gyro in degrees?"),
    Fault("imu-swapped", "x and y of the IMU swapped", change("gyro accel", lambda x: x[:, [1, 0, 2]]), lasts="whole",
          flag="imu axes"),
    Fault("imu-inverted", "IMU upside down", change("gyro accel", lambda x: x * np.array([1.0, -1.0, -1.0])),
          lasts="whole", flag="imu axes"),
    Fault("accel-bias-x", "accelerometer bias +0.5 m/s2 on x, 2 s", biased("accel", _X)),
    Fault("accel-bias", "accelerometer bias +0.5 m/s2 on each axis, 2 s", biased("accel", _ALL)),
    Fault("accel-bias-x-on", "accelerometer bias +0.5 m/s2 on x, lasting", biased("accel", _X), lasts="on"),
    Fault("accel-bias-on", "accelerometer bias +0.5 m/s2 on each axis, lasting", biased("accel", _ALL), lasts="on"),
    Fault("gyro-bias", "gyro bias +0.05 rad/s on each axis, 2 s", biased("gyro", _GYRO)),
    Fault("gyro-bias-on", "gyro bias +0.05 rad/s on each axis, lasting", biased("gyro", _GYRO), lasts="on"),
    Fault("accel-scale-1.03", "accelerometer scale 1.03", scaled("accel", 1.03), lasts="whole"),
    Fault("accel-scale-1.1", "accelerometer scale 1.1", scaled("accel", 1.1), lasts="whole"),
    Fault("gyro-scale-1.03", "gyro scale 1.03", scaled("gyro", 1.03), lasts="whole"),
    Fault("gyro-scale-1.1", "gyro scale 1.1", scaled("gyro", 1.1), lasts="whole"),
    Fault("mounting-2", "IMU mounted 2 degrees off", turned(2.0), lasts="whole"),
    Fault("mounting-5", "IMU mounted 5 degrees off", turned(5.0), lasts="whole"),
    Fault("vibration", "accelerometer shaken by 3 m/s2 at 143 Hz", vibration(3.0)),
    Fault("vibration-noise", "accelerometer noise of 3 m/s2 rms", noise("accel", 3.0)),
    Fault("vibration-noise-on", "accelerometer noise of 3 m/s2 rms, whole log", noise("accel", 3.0), lasts="whole"),
    Fault("imu-noise", "gyro noise of 0.1 rad/s, accelerometer noise of 1 m/s2",
          both(noise("gyro", 0.1), noise("accel", 1.0))),
)  # fmt: skip
