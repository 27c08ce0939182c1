"""Joint readings and stamps: how velocities are filtered, in which steps they come, and how even the clock is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gait.arrays import Array
from gait.bench.realism.even_signals import straight_runs
from gait.bench.realism.leg_errors import Values
from gait.log import Log

LAGS = np.arange(0.0, 0.0301, 0.0001)
"""Time constants that are tried, s."""
QUICKEST = 40.0
"""Hz; above, the derivative of the angle is noise."""
PER_LEG = 3


def sampling_figures(log: Log) -> Values:
    """Of the stamps as they were logged, and of samples that were held or interpolated."""
    steps = np.diff(log.t)
    imu = np.hstack([log.gyro, log.accel])
    runs = straight_runs(imu)
    lost = sum(b - a for a, b in runs)
    longest = max((b - a + 1 for a, b in runs), default=0)
    return {
        "rate": log.rate,
        "jitter": 1e3 * float(steps.std()),
        "longest_step": 1e3 * float(steps.max()),
        "imu_straight": 100.0 * lost / len(log),
        "imu_straight_longest": 1e3 * longest / log.rate if longest else 0.0,
    }


def joint_figures(log: Log) -> Values:
    """Lag and noise of joint velocities against the derivative of the angles, and steps of both, of a leg's joints."""
    lag = velocity_lag(log.q, log.dq, log.rate)
    found: Values = {"dq_lag": 1e3 * lag}
    names = ("dq_noise", "q_step", "dq_step")
    if log.q.shape[1] != PER_LEG * len(log.leg_names):
        return found | dict.fromkeys(names, "legs have other than three joints")
    noise = velocity_noise(log.q, log.dq, log.rate, lag).reshape(-1, PER_LEG)
    found["dq_noise"] = np.sqrt(np.mean(noise**2, axis=0))
    for name, values, scale in (("q_step", log.q, 1e3), ("dq_step", log.dq, 1.0)):
        steps = scale * np.array([quantisation(one) for one in values.T[:PER_LEG]])
        found[name] = steps if np.isfinite(steps).any() else "values lie on no grid: filtered or interpolated"
    return found


def _transfer(q: Array, dq: Array, rate: float) -> tuple[Array, npt.NDArray[np.complex128], Array]:
    """Frequencies (F,), and cross and own spectrum (F,) of velocity and true derivative, summed over joints."""
    count = min(round(1.28 * rate), len(q))
    window = np.hanning(count + 1)[:-1, None]
    frequencies = np.asarray(np.fft.rfftfreq(count, 1.0 / rate))
    # Central differences are smaller than the derivative by sin(w dt) / (w dt).
    rates, shrinks = np.gradient(q, 1.0 / rate, axis=0), np.sinc(2.0 * frequencies / rate)[:, None]
    cross, own = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
    for start in range(0, len(q) - count + 1, max(count // 2, 1)):
        true, velocity = (np.fft.rfft(x[start : start + count] * window, axis=0) for x in (rates, dq))
        cross += np.sum(velocity * np.conj(true * shrinks), axis=1)
        own += np.sum(np.abs(true) ** 2, axis=1)
    return frequencies, cross / np.maximum(shrinks[:, 0] ** 2, 1e-3), own / np.maximum(shrinks[:, 0] ** 2, 1e-3)


def velocity_lag(q: Array, dq: Array, rate: float) -> float:
    """Time constant of the first-order filter between derivative of the angles and reported velocities, s."""
    frequencies, cross, own = _transfer(q, dq, rate)
    inside = (frequencies > 1.0) & (frequencies < min(QUICKEST, 0.35 * rate))
    response = 1.0 / (1.0 + 2j * np.pi * np.outer(LAGS, frequencies[inside]))  # (K, F)
    # |cross - H own|^2 / own: least squares in the velocities.
    loss = np.sum(np.abs(response) ** 2 * own[inside] - 2.0 * np.real(np.conj(response) * cross[inside]), axis=1)
    return float(LAGS[int(np.argmin(loss))])


def velocity_noise(q: Array, dq: Array, rate: float, lag: float) -> Array:
    """Standard deviation (J,), by the median, of velocities less the filtered central differences of angles, rad/s."""
    keep = float(np.exp(-1.0 / (lag * rate))) if lag > 0.0 else 0.0
    rates, out = np.gradient(q, 1.0 / rate, axis=0), np.empty_like(dq)
    last = rates[0]
    for k, row in enumerate(rates):
        last = keep * last + (1.0 - keep) * row
        out[k] = last
    return np.asarray(1.4826 * np.median(np.abs(dq - out), axis=0))


def quantisation(values: Array) -> float:
    """The step of which all differences of the values (N,) are multiples; nan if there is none."""
    levels = np.unique(values)
    gaps, most = np.diff(levels), float(np.abs(levels).max())
    gaps = gaps[gaps > 1e-9 * most]
    if len(gaps) < 3:
        return float("nan")
    # The mean of the gaps that are one step is finer than the least.
    step = float(gaps[gaps < 1.5 * gaps.min()].mean())
    off = np.abs(gaps / step - np.rint(gaps / step))
    # Numbers in single precision are on a grid as well.
    return step if step > 1e-6 * most and float(np.quantile(off, 0.95)) < 0.05 else float("nan")
