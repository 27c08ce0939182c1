"""Smoothing, derivatives and spectra of evenly sampled signals (N, C)."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.report.chart import runs

OUTLIER = 6.0
"""Standard deviations (robust) beyond which a sample of ground truth is an outlier."""


def smoothed(values: Array, rate: float, seconds: float) -> Array:
    """Values (N, ...) through a Hann window; ends are continued point-symmetrically, which keeps their slope."""
    count = round(seconds * rate) // 2 * 2 + 1
    half = min(count // 2, len(values) - 1)
    if half < 2:
        return np.array(values, dtype=np.float64)
    weights = np.hanning(2 * half + 1) / np.hanning(2 * half + 1).sum()
    flat = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    before, after = 2.0 * flat[0] - flat[half:0:-1], 2.0 * flat[-1] - flat[-2 : -half - 2 : -1]
    padded = np.concatenate([before, flat, after])
    return np.stack([np.convolve(one, weights, "valid") for one in padded.T], axis=1).reshape(np.shape(values))


def derivative(values: Array, rate: float) -> Array:
    """Central differences (N, ...)."""
    return np.asarray(np.gradient(values, 1.0 / rate, axis=0))


def widened(mask: BoolArray, rows: int) -> BoolArray:
    """The mask with as many rows before and after each run."""
    return np.asarray(np.convolve(mask, np.ones(2 * rows + 1), "same") > 0.5)


def without_outliers(values: Array, rate: float, seconds: float, least: float) -> tuple[Array, BoolArray]:
    """Values (N, C) smoothed without their outliers, and which rows those are (N,).

    Args:
        values: the signal.
        rate: samples a second.
        seconds: of the smoothing window.
        least: a deviation from the smoothed signal below this is never an outlier.
    """
    kept, bad, rows = values, np.zeros(len(values), dtype=bool), np.arange(len(values))
    for _ in range(4):
        smooth = smoothed(kept, rate, seconds)
        deviation = np.abs(values - smooth)
        limit = np.maximum(OUTLIER * 1.4826 * np.median(deviation, axis=0), least)
        bad = widened(np.any(deviation > limit, axis=1), 1)
        if bad.all():
            return smooth, bad
        kept = np.stack([np.interp(rows, rows[~bad], one[~bad]) for one in values.T], axis=1)
    return smoothed(kept, rate, seconds), bad


def delayed(values: Array, seconds: float, rate: float) -> Array:
    """Values (N, C) as they were some time before, linearly between samples."""
    now = np.arange(len(values)) / rate
    return np.stack([np.interp(now - seconds, now, one) for one in values.T], axis=1)


def spectrum(values: Array, rate: float, seconds: float = 1.28) -> tuple[Array, Array]:
    """Frequencies (F,) and one-sided power densities (F, C) by Welch: Hann windows that overlap by half."""
    count = min(round(seconds * rate), len(values))
    window = np.hanning(count + 1)[:-1]
    starts = range(0, len(values) - count + 1, max(count // 2, 1))
    pieces = np.stack([values[start : start + count] for start in starts])  # (K, count, C)
    pieces = (pieces - pieces.mean(axis=1, keepdims=True)) * window[:, None]
    power = (np.abs(np.fft.rfft(pieces, axis=1)) ** 2).mean(axis=0)
    return np.asarray(np.fft.rfftfreq(count, 1.0 / rate)), 2.0 * power / (rate * np.sum(window**2))


def band_rms(values: Array, rate: float, low: float, high: float) -> Array:
    """Root mean square (C,) of the band between two frequencies, Hz; nan beyond the rate."""
    if rate < 2.0 * high:
        return np.full(values.shape[1], np.nan)
    frequencies, power = spectrum(values, rate)
    inside = (frequencies >= low) & (frequencies < high)
    return np.asarray(np.sqrt(power[inside].sum(axis=0) * frequencies[1]))


def straight_runs(values: Array) -> list[tuple[int, int]]:
    """Runs of rows on a straight line with their neighbours in every column: held or interpolated samples."""
    bend = np.abs(np.diff(values, 2, axis=0))
    step = np.quantile(np.abs(np.diff(values, axis=0)), 0.9, axis=0)
    return [(a + 1, b + 1) for a, b in runs(np.all(bend <= 1e-3 * step, axis=1))]
