"""Time offset between two clocks, from the angular rates that were measured on each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gait.arrays import Array

RATE = 500.0
"""Of the comparison, Hz."""
SURE = 0.8
"""Least correlation at which an offset is accepted."""
OVERLAP = 0.5
"""Of the shorter signal, the part that must meet the other: slow motions look alike over short stretches."""
_LEAST = 2.0


@dataclass(frozen=True)
class Offset:
    """What to add to the stamps of the second signal to have them on the clock of the first."""

    seconds: float
    correlation: float
    """Of the two rates of turning once they are aligned: 1 is perfect."""

    @property
    def sure(self) -> bool:
        """Whether the two turn alike at all."""
        return self.correlation >= SURE


def clock_offset(t: Array, rate: Array, other_t: Array, other_rate: Array, limit: float | None = None) -> Offset:
    """Offset between two clocks from angular rates (n, 3) of one body.

    Only the size of the rate is compared, so that it does not matter in which axes either is given.

    Args:
        t: stamps of the first (n,), s.
        rate: its angular rate (n, 3).
        other_t: stamps of the second (m,).
        other_rate: its angular rate (m, 3).
        limit: greatest offset to look for, s; any by default.
    """
    if min(t[-1] - t[0], other_t[-1] - other_t[0]) < _LEAST:
        return Offset(0.0, 0.0)
    one, other = (_even(*pair) for pair in ((t, rate), (other_t, other_rate)))
    size = 1 << (len(one) + len(other) - 1).bit_length()
    ones = np.fft.rfft(one, size)
    # Correlation at each shift, divided by the energy of the part where the two overlap.
    product = np.fft.irfft(ones * np.conj(np.fft.rfft(other, size)), size)
    shifts = np.concatenate([np.arange(-len(other) + 1, 0), np.arange(len(one))])
    values = product[shifts % size]
    low, high = np.maximum(0, shifts), np.minimum(len(one), shifts + len(other))
    energy = np.sqrt(
        np.maximum(_span(one, low, high), 1e-12) * np.maximum(_span(other, low - shifts, high - shifts), 1e-12)
    )
    score = np.where(high - low >= OVERLAP * min(len(one), len(other)), values / energy, -1.0)
    start = float(t[0] - other_t[0])
    if limit is not None:
        score = np.where(np.abs(shifts / RATE + start) <= limit, score, -1.0)
    best = int(np.argmax(score))
    fraction = 0.0
    if 0 < best < len(score) - 1:
        before, here, after = score[best - 1 : best + 2]
        bend = before - 2.0 * here + after
        fraction = float(0.5 * (before - after) / bend) if bend < 0.0 and min(before, after) > -1.0 else 0.0
    return Offset((float(shifts[best]) + fraction) / RATE + start, float(score[best]))


def _even(t: Array, rate: Array) -> Array:
    """Size of the rate on even stamps, without its mean."""
    even = np.arange(t[0], t[-1], 1.0 / RATE)
    size = np.interp(even, t, np.linalg.norm(rate, axis=1))
    # A mocap at 100 Hz cannot tell impacts; what both can tell is slower.
    width = max(round(0.03 * RATE), 1)
    smooth = np.convolve(size, np.full(width, 1.0 / width), mode="same")
    centred: Array = smooth - smooth.mean()
    return centred


def _span(values: Array, low: Array, high: Array) -> Array:
    """Energy of each part of a signal."""
    total = np.concatenate([[0.0], np.cumsum(values**2)])
    part: Array = total[np.maximum(high, low)] - total[low]
    return part
