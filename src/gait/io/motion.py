"""Motion from poses: velocity and angular rate with little noise, and the time offset of the clock of the poses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gait import quaternions
from gait.arrays import Array

WINDOW = 0.05
"""Length of the parabola, s: a trot bobs six times a second, and keeps 95 % of that motion."""
LEAST = 5
"""Samples it runs through at the least."""
MOST = 200
"""Samples to either side at the most, whatever the stamps say."""
RATE = 500.0
"""At which angular rates are compared, Hz."""
SURE = 0.8
"""Least correlation at which an offset is accepted."""
OVERLAP = 0.5
"""Of the shorter signal, the part that must meet the other: slow motions look alike over short stretches."""
SPAN, LONGEST = 2.0, 36_000.0
"""Shorter signals (s) tell no offset; of longer ones, whose stamps may be in another unit, none is looked for."""


def differentiate(t: Array, values: Array, window: float = WINDOW) -> Array:
    """The rate of change of `values` (n, ...) over stamps (n,), as noise allows.

    A difference of two samples has the noise of both over one short step: 0.1 mm at 240 Hz is 0.03 m/s. A parabola
    through the window has a tenth of that. At the ends, and where stamps pause, it runs through what there is.
    """
    n = len(t)
    if n < 3:
        return np.zeros_like(values) if n < 2 else np.gradient(values, t, axis=0)
    step = float(np.median(np.diff(t)))
    half = min(max((LEAST - 1) // 2, round(0.5 * window / step)), n - 1, MOST)
    flat = values.reshape(n, -1)
    # Sums over the window of t^k and t^k x, with t counted from its middle: one shift of the arrays at a time.
    moments = np.zeros((5, n))
    sums = np.zeros((3, n, flat.shape[1]))
    for shift in range(-half, half + 1):
        low, high = max(0, -shift), min(n, n - shift)
        rows, others = slice(low, high), slice(low + shift, high + shift)
        dt = (t[others] - t[rows]) / step
        # Beyond a pause there is another motion.
        powers = np.vander(dt, 5, increasing=True).T * (np.abs(dt) <= half + 0.5)  # (5, n)
        moments[:, rows] += powers
        sums[:, rows] += powers[:3, :, None] * (flat[others] - flat[rows])
    # The parabola x0 + v t + a t^2 of least squares; two samples give a straight line, one gives nothing.
    matrix = np.moveaxis(moments[np.add.outer(np.arange(3), np.arange(3))], 2, 0)  # (n, 3, 3)
    matrix = matrix + 1e-12 * np.eye(3) * np.maximum(moments[4], 1.0)[:, None, None]
    solved = np.asarray(np.linalg.solve(matrix, np.moveaxis(sums, 0, 1)), dtype=np.float64)  # (n, 3, m)
    return np.asarray(solved[:, 1] / step).reshape(values.shape)


def rotation_rate(t: Array, quat_wb_wxyz: Array) -> Array:
    """Angular rate (n, 3) in the body frame, rad/s, from rotations (n, 4)."""
    # R_start' R_end as a rotation vector.
    step = quaternions.multiply(quaternions.inverse(quat_wb_wxyz[:-1]), quat_wb_wxyz[1:])
    u = np.where(step[:, :1] < 0.0, -step[:, 1:], step[:, 1:])
    size = np.linalg.norm(u, axis=1)
    turn = u * np.where(size > 1e-12, quaternions.angle(step) / np.maximum(size, 1e-12), 2.0)[:, None]
    between = np.pad(turn / np.diff(t)[:, None], ((1, 1), (0, 0)), "edge")
    return np.asarray(0.5 * (between[:-1] + between[1:]))


def world_velocity(t: Array, pos_w: Array, quat_wb_wxyz: Array, twist: Array | None) -> tuple[Array, str]:
    """Velocity of the body in the world (n, 3), and in words where it comes from.

    A twist is in the body frame by convention, but not by everybody, and some leave it empty: the positions tell.
    """
    moved = differentiate(t, pos_w)
    if twist is None:
        return moved, "velocity from positions"
    if not np.any(twist):
        if np.linalg.norm(np.ptp(pos_w, axis=0)) < 1e-3:
            return twist, ""
        return moved, "the twist is empty, so velocity comes from positions"
    turned = quaternions.rotate(quat_wb_wxyz, twist)
    as_body, as_world = (float(np.sqrt(np.mean((v - moved) ** 2))) for v in (turned, twist))
    if as_world < 0.5 * as_body and as_body > 0.05:
        return twist, "the twist is in the world frame, as the positions tell, and was taken so"
    return turned, ""


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
    spans = t[-1] - t[0], other_t[-1] - other_t[0]
    if min(spans) < SPAN or max(spans) > LONGEST:
        return Offset(0.0, 0.0)
    one, other = (_even(*pair) for pair in ((t, rate), (other_t, other_rate)))
    size = 1 << (len(one) + len(other) - 1).bit_length()
    # Correlation at each shift, divided by the energy of the part where the two overlap.
    product = np.fft.irfft(np.fft.rfft(one, size) * np.conj(np.fft.rfft(other, size)), size)
    shifts = np.arange(-len(other) + 1, len(one))
    low, high = np.maximum(0, shifts), np.minimum(len(one), shifts + len(other))
    energy = np.sqrt(_span(one, low, high) * _span(other, low - shifts, high - shifts))
    score = np.where(high - low >= OVERLAP * min(len(one), len(other)), product[shifts % size] / energy, -1.0)
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
    return np.asarray(smooth - smooth.mean())


def _span(values: Array, low: Array, high: Array) -> Array:
    """Energy of each part of a signal, above zero."""
    total = np.concatenate([[0.0], np.cumsum(values**2)])
    return np.asarray(np.maximum(total[np.maximum(high, low)] - total[low], 1e-12))
