"""What legs measure in stance against the true velocity: how much, for how long, when, and shared by whom."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gait.arrays import Array
from gait.bench.realism.body_motion import BodyMotion
from gait.bench.realism.stances import Stances

Values = dict[str, "float | Array | str"]
"""Figures by name: a number, one for each axis (3,), or why there is none."""
PHASES = 10
"""Parts of a stance in curves over its phase."""
HEIGHTS = np.linspace(0.0, 1.0, 21)
"""Phases at which the height of a foot is taken."""
SLOW, WINDOW = 20.0, 0.12
"""Frequency above which the residual vibrates, Hz, and the window in which that is seen, s."""
LAGS = 0.1
"""Longest lag of the autocorrelation, s."""
LOADS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.9)
"""Bounds of the classes of load, in weights of the robot."""
FEW = 8
"""Least number of stances for a result."""
NO_STANCES = "fewer than 8 whole stances found"


def rms(values: Array) -> Array:
    """Root mean square over rows; nan of none."""
    return np.sqrt(np.mean(values**2, axis=0)) if len(values) else np.full(values.shape[1:], np.nan)


def residual_figures(stances: Stances, motion: BodyMotion) -> Values:
    """Magnitude, duration and causes of the residual, m/s, by axis."""
    names = (
        "residual_middle", "residual_early", "residual_whole", "residual_mean", "residual_between", "residual_within",
        "residual_time", "residual_fast", "residual_shared", "joint_latency",
    )  # fmt: skip
    if len(stances.spans) < FEW:
        return dict.fromkeys(names, NO_STANCES)
    residual, phase = stances.residual, stances.phase
    middle = residual[stances.middle]
    pieces = _middles(stances)
    means = np.array([piece.mean(axis=0) for piece in pieces])
    values = (
        rms(middle), rms(residual[(phase >= 0.1) & (phase < 0.2)]), rms(residual[np.isfinite(phase)]),
        middle.mean(axis=0), means.std(axis=0), rms(np.concatenate([piece - piece.mean(axis=0) for piece in pieces])),
        1e3 * correlation_time(stances), 100.0 * _fast_share(stances, pieces), shared_by_legs(stances),
        _joint_latency(stances, motion),
    )  # fmt: skip
    return dict(zip(names, values, strict=True))


def _middles(stances: Stances) -> list[Array]:
    """The residual in the middle of each stance."""
    return [stances.residual[a:b, leg][stances.middle[a:b, leg]] for leg, a, b in stances.spans]


def by_phase(stances: Stances) -> tuple[Array, Array, Array]:
    """Phases (P,), and root mean square and mean of the residual there (P, 3)."""
    edges = np.linspace(0.0, 1.0, PHASES + 1)
    within = [stances.residual[(stances.phase >= a) & (stances.phase < b)] for a, b in pairwise(edges)]
    means = [part.mean(axis=0) if len(part) else np.full(3, np.nan) for part in within]
    return 0.5 * (edges[1:] + edges[:-1]), np.array([rms(part) for part in within]), np.array(means)


def autocorrelation(stances: Stances) -> tuple[Array, Array]:
    """Lags (K,), s, and autocorrelation of the residual in the middle of stances (K, 3)."""
    pieces = _middles(stances)
    mean = np.concatenate(pieces).mean(axis=0)
    count = round(LAGS * stances.rate)
    total, pairs = np.zeros((count, 3)), np.zeros((count, 1))
    for piece in (piece - mean for piece in pieces):
        for k in range(min(count, len(piece) - 1)):
            total[k] += np.sum(piece[: len(piece) - k] * piece[k:], axis=0)
            pairs[k] += len(piece) - k
    covariance = total / np.maximum(pairs, 1.0)
    # Few stances are long enough for the longest lags.
    known = pairs[:, 0] > 0.02 * pairs[0, 0]
    return np.arange(count)[known] / stances.rate, (covariance / covariance[0])[known]


def correlation_time(stances: Stances) -> Array:
    """When the autocorrelation falls below 1/e, s (3,); the longest lag where it does not."""
    lags, curve = autocorrelation(stances)
    below = curve < np.exp(-1.0)
    times = []
    for axis in range(3):
        k = int(np.argmax(below[:, axis])) if below[:, axis].any() else len(lags) - 1
        high, low = curve[k - 1, axis], curve[k, axis]
        part = (high - np.exp(-1.0)) / (high - low) if below[k, axis] else 1.0
        times.append(lags[k - 1] + part * (lags[k] - lags[k - 1]))
    return np.array(times)


def _fast_share(stances: Stances, pieces: list[Array]) -> Array | float:
    """Share of the residual's variance within a stance above `SLOW`, by axis."""
    count = round(WINDOW * stances.rate)
    long = [piece[:count] - piece[:count].mean(axis=0) for piece in pieces if len(piece) >= count]
    if len(long) < FEW:
        return float("nan")
    power = np.mean([np.abs(np.fft.rfft(piece * np.hanning(count)[:, None], axis=0)) ** 2 for piece in long], axis=0)
    fast = np.fft.rfftfreq(count, 1.0 / stances.rate) > SLOW
    return np.asarray(power[fast].sum(axis=0) / power.sum(axis=0))


def shared_by_legs(stances: Stances) -> Array:
    """Correlation (3,) of the residuals of two legs in the middle of their stances, mean over pairs."""
    middle, found = stances.middle, []
    for i in range(middle.shape[1]):
        for j in range(i):
            both = middle[:, i] & middle[:, j]
            if both.sum() > 0.5 * stances.rate:
                one, other = stances.residual[both, i], stances.residual[both, j]
                found.append([np.corrcoef(one[:, k], other[:, k])[0, 1] for k in range(3)])
    return np.mean(found, axis=0) if found else np.full(3, np.nan)


def _joint_latency(stances: Stances, motion: BodyMotion) -> float:
    """Latency of the joints against the body, ms: a latency of T adds an error of -T times the acceleration."""
    rows, legs = np.nonzero(stances.middle)
    acceleration, residual = motion.accel_b[rows], stances.residual[rows, legs]
    acceleration, residual = acceleration - acceleration.mean(axis=0), residual - residual.mean(axis=0)
    return float(-1e3 * np.sum(acceleration * residual) / np.sum(acceleration**2))


def sink_figures(stances: Stances) -> Values:
    """How far the foot, as kinematics place it, moves up and down within a stance."""
    names = ("sink_range", "sink_share", "sink_settling")
    if len(stances.spans) < FEW:
        return dict.fromkeys(names, NO_STANCES)
    profiles = _profiles(stances)
    inner = profiles[:, (HEIGHTS >= 0.1 - 1e-9) & (HEIGHTS <= 0.9 + 1e-9)]
    ranges = inner.max(axis=1) - inner.min(axis=1)
    settling = profiles[:, 1] - profiles[:, len(HEIGHTS) // 2]
    middle = float(np.median(ranges))
    values = (1e3 * middle, 100.0 * middle / stances.length, 1e3 * float(np.mean(settling)))
    return dict(zip(names, values, strict=True))


def _profiles(stances: Stances) -> Array:
    """Heights (S, 21) of the feet over the phase of their stances, each less its median."""
    found = []
    for leg, a, b in stances.spans:
        height = stances.height[a:b, leg]
        found.append(np.interp(HEIGHTS, np.linspace(0.0, 1.0, b - a), height) - np.median(height))
    return np.array(found)


def height_by_phase(stances: Stances) -> tuple[Array, Array]:
    """Phases (21,) and mean height of the feet, m."""
    return HEIGHTS, _profiles(stances).mean(axis=0)


def by_load(stances: Stances) -> tuple[Array, Array] | None:
    """Load (K,) in weights of the robot, and RMS of the residual in mid stance, m/s; none without loads."""
    if stances.load is None:
        return None
    load, residual = stances.load[stances.middle], stances.residual[stances.middle]
    centres, lengths = [], []
    for low, high in pairwise(LOADS):
        inside = (load >= low) & (load < high)
        if inside.sum() > 0.2 * stances.rate:
            centres.append(0.5 * (low + high))
            lengths.append(float(np.linalg.norm(rms(residual[inside]))))
    return np.array(centres), np.array(lengths)


def load_figures(stances: Stances) -> Values:
    """The residual at low and at high load, m/s."""
    names = ("residual_low_load", "residual_high_load")
    if stances.load is None:
        return dict.fromkeys(names, "neither torques nor joint targets")
    if len(stances.spans) < FEW:
        return dict.fromkeys(names, NO_STANCES)
    load, size = stances.load[stances.middle], np.linalg.norm(stances.residual[stances.middle], axis=1)
    low, high = np.quantile(load, [1.0 / 3.0, 2.0 / 3.0])
    return dict(zip(names, (float(rms(size[load <= low])), float(rms(size[load >= high]))), strict=True))


def stance_figures(stances: Stances) -> Values:
    """How many stances there are, and how long they last."""
    lengths = [b - a for _, a, b in stances.spans]
    return {
        "stances": float(len(stances.spans)),
        "stance_seconds": 1e3 * float(np.median(lengths)) / stances.rate if lengths else NO_STANCES,
    }
