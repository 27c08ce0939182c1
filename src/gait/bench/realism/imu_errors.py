"""The IMU against ground truth: bias, scale, mounting, latency, vibration, and what impacts do to it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait import quaternions
from gait.arrays import Array, BoolArray
from gait.bench.realism.body_motion import ALONE, GRAVITY_W, BodyMotion
from gait.bench.realism.even_signals import band_rms, delayed, smoothed
from gait.bench.realism.leg_errors import Values, rms

BANDS = {"mid": (10.0, 40.0), "high": (40.0, 100.0)}
"""Hz."""
SLOW = 0.3
"""Window, s, in which scale and mounting are compared: motion capture differentiated twice is noise above 3 Hz."""
LARGEST_SCALE_STD, LARGEST_TURN_STD = 0.02, 0.7
"""A scale or an angle (degrees) less certain than this is not reported."""
WALKS = {"short": 0.1, "long": 0.5}
"""Times, s, over which the random walk is taken."""
TIMES = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0])
LONGEST_LAG = 0.06
BEFORE, AFTER = 0.1, 0.25
"""Seconds around a touch-down."""
NOT_EXCITED = "the walk excites it too little"
NO_ACCELEROMETER = "the accelerometer was not logged"
NO_TOUCH_DOWNS = "fewer than 8 touch-downs found"


class Fit(NamedTuple):
    """measured = M true + bias, by least squares."""

    matrix: Array
    bias: Array
    std: Array
    """Of each entry of `matrix` (3, 3)."""


def linear_fit(true: Array, measured: Array, independent: float) -> Fit:
    """Fit (N, 3) to (N, 3); standard deviations for so many independent samples."""
    design = np.hstack([true, np.ones((len(true), 1))])
    solution, *_ = np.linalg.lstsq(design, measured, rcond=None)
    variance = np.mean((measured - design @ solution) ** 2, axis=0)
    spread = np.diag(np.linalg.pinv(design.T @ design / len(true))) / max(independent, 1.0)
    return Fit(np.asarray(solution[:3].T), np.asarray(solution[3]), np.sqrt(np.outer(variance, spread[:3])))


def _turn(fit: Fit) -> tuple[Array, Array]:
    """Mounting rotation of a fit, degrees, and its standard deviation (3,)."""
    m, s = fit.matrix, fit.std
    turn = [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]
    std = [math.hypot(s[2, 1], s[1, 2]), math.hypot(s[0, 2], s[2, 0]), math.hypot(s[1, 0], s[0, 1])]
    # measured = R_bi' true, and R_bi is wanted.
    return -np.degrees(turn) / 2.0, np.degrees(std) / 2.0


def _known(values: Array, std: Array, most: float) -> Array | str:
    """The values that are certain enough; a reason where none is."""
    return np.where(std <= most, values, np.nan) if (std <= most).any() else NOT_EXCITED


def imu_figures(gyro_b: Array, accel_b: Array, motion: BodyMotion, accelerometer: bool) -> Values:
    """Bias, scale, mounting, latency, vibration and random walk of both sensors, by axis."""
    rate, valid = motion.rate, motion.valid
    independent = float(valid.sum()) / (SLOW * rate)
    lag = latency(motion.omega_b, smoothed(gyro_b, rate, ALONE), valid, rate)
    # A latency looks like a rotation and a scale error.
    true, mine = smoothed(delayed(motion.omega_b, lag, rate), rate, SLOW), _twice_smoothed(gyro_b, rate)
    gyro = linear_fit(true[valid], mine[valid], independent)
    turn, turn_std = _turn(gyro)
    found: Values = {
        "gyro_bias": (mine - true)[valid].mean(axis=0),
        "gyro_scale": _known(
            100.0 * (np.diag(gyro.matrix) - 1.0), 100.0 * np.diag(gyro.std), 100.0 * LARGEST_SCALE_STD
        ),
        "gyro_mounting": _known(turn, turn_std, LARGEST_TURN_STD),
        "gyro_latency": 1e3 * lag,
        **{f"gyro_{name}": band_rms(gyro_b, rate, *band) for name, band in BANDS.items()},
    }
    names = ("accel_error", "accel_scale", "accel_latency", *(f"accel_{name}" for name in (*BANDS, *WALKS)))
    if not accelerometer:
        return found | dict.fromkeys(names, NO_ACCELEROMETER)
    lag = latency(motion.force_b, smoothed(accel_b, rate, ALONE), valid, rate)
    force, mine = smoothed(delayed(motion.force_b, lag, rate), rate, SLOW), _twice_smoothed(accel_b, rate)
    fit = linear_fit(force[valid], mine[valid], independent)
    return found | {
        "accel_error": (mine - force)[valid].mean(axis=0),
        "accel_scale": _known(100.0 * (np.diag(fit.matrix) - 1.0), 100.0 * np.diag(fit.std), 100.0 * LARGEST_SCALE_STD),
        "accel_latency": 1e3 * lag,
        **{f"accel_{name}": band_rms(accel_b, rate, *band) for name, band in BANDS.items()},
        **{f"accel_{name}": random_walk(accel_b, motion, seconds) for name, seconds in WALKS.items()},
    }


def _twice_smoothed(values: Array, rate: float) -> Array:
    """As ground truth is."""
    return smoothed(smoothed(values, rate, ALONE), rate, SLOW)


def latency(true: Array, measured: Array, valid: BoolArray, rate: float) -> float:
    """How much later the measured signal (N, 3) is than the true one, s, by least squares over shifts."""
    lags = np.arange(-LONGEST_LAG, LONGEST_LAG + 1e-9, 0.5 / rate)

    def loss(lag: float) -> float:
        difference = (delayed(true, lag, rate) - measured)[valid]
        return float(np.mean((difference - difference.mean(axis=0)) ** 2))

    losses = np.array([loss(lag) for lag in lags])
    k = int(np.clip(np.argmin(losses), 1, len(lags) - 2))
    a, b, c = losses[k - 1 : k + 2]
    # The parabola through the least three.
    return float(lags[k] + 0.5 * (lags[1] - lags[0]) * (a - c) / max(a - 2.0 * b + c, 1e-30))


def random_walk(accel_b: Array, motion: BodyMotion, seconds: float) -> Array:
    """Error of the integrated accelerometer over some time, less its mean, over the root of the time (3,).

    White noise of this density would integrate alike: it is what a filter's process noise has to cover, m/s/sqrt(s).
    """
    rate, step = motion.rate, max(round(seconds * motion.rate), 1)
    quat = motion.quat_wb_wxyz
    force_w = smoothed(quaternions.rotate(quat, accel_b) - GRAVITY_W, rate, ALONE)
    integral = np.cumsum(force_w, axis=0) / rate
    whole = np.convolve(~motion.valid, np.ones(step + 1), "valid") < 0.5
    if whole.sum() < rate:
        return np.full(3, np.nan)
    error = (integral - motion.imu_vel_w)[step:] - (integral - motion.imu_vel_w)[:-step]
    error_b = quaternions.rotate_inverse(quat[step // 2 : len(quat) - step + step // 2], error)[whole]
    return np.asarray(error_b.std(axis=0) / math.sqrt(step / rate))


def around(values: Array, rows: list[int], rate: float) -> tuple[Array, Array]:
    """Times (K,), s, and mean of a signal (N,) around some rows."""
    before, after = round(BEFORE * rate), round(AFTER * rate)
    inside = [row for row in rows if row >= before and row + after < len(values)]
    times = np.arange(-before, after + 1) / rate
    return times, np.mean([values[row - before : row + after + 1] for row in inside], axis=0)


def impact_signals(gyro_b: Array, accel_b: Array, rate: float) -> tuple[Array, Array]:
    """| |a| - g | and the length of the angular rate above 10 Hz (N,)."""
    excess = np.abs(np.linalg.norm(accel_b, axis=1) - GRAVITY_W[2])
    return excess, np.linalg.norm(gyro_b - smoothed(gyro_b, rate, ALONE), axis=1)


def impact_figures(gyro_b: Array, accel_b: Array, rows: list[int], rate: float, accelerometer: bool) -> Values:
    """Peak of the mean response to touch-downs, and how long it takes to fall to 1/e, ms."""
    names = ("impact_accel", "impact_accel_decay", "impact_gyro", "impact_gyro_decay")
    if len(rows) < 8:
        return dict.fromkeys(names, NO_TOUCH_DOWNS)
    excess, shake = impact_signals(gyro_b, accel_b, rate)
    values = [figure for signal in (excess, shake) for figure in _response(*around(signal, rows, rate))]
    found: Values = dict(zip(names, values, strict=True))
    return found if accelerometer else found | dict.fromkeys(names[:2], NO_ACCELEROMETER)


def _response(times: Array, mean: Array) -> tuple[float, float]:
    near = (times > -0.03) & (times < 0.1)
    top = int(np.argmax(np.where(near, mean, -np.inf)))
    floor = float(np.quantile(mean, 0.2))
    below = np.flatnonzero(mean[top:] - floor < (mean[top] - floor) / math.e)
    return float(mean[top]), 1e3 * float(times[top + below[0]] - times[top]) if len(below) else float("nan")


def truth_figures(vel_w: Array | None, motion: BodyMotion) -> Values:
    """How often ground truth jumps, and how far its own velocity is from the cleaned one."""
    found: Values = {"truth_outliers": 100.0 * float(motion.outlier.mean()), "truth_velocity": "the log has no vel_w"}
    if vel_w is not None:
        edge = round(0.2 * motion.rate)
        error = smoothed(vel_w - motion.vel_w, motion.rate, ALONE)[edge:-edge]
        found["truth_velocity"] = float(np.linalg.norm(rms(error)))
    return found
