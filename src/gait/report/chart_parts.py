"""Pieces of charts: lines thinned without losing a peak, paths, windows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gait.arrays import Array, IntArray
from gait.report.chart import Series

TIME = "time (s)"
AXES = ("forward", "left", "up")
"""Of the body."""

MOST_POINTS = 4000
"""Of a line: more than there are pixels across, so no more can be seen."""


def thin(*values: Array, most: int = MOST_POINTS) -> IntArray:
    """Rows to keep of long series (N,): in each stretch those with the least and the greatest value of each.

    So a spike of one sample survives. Short series are kept whole.
    """
    count = len(values[0])
    if count <= most:
        return np.arange(count)
    # Two rows are kept for the ends.
    edges = np.linspace(0, count, (most - 2) // (2 * len(values)) + 1).astype(int)
    keep = {0, count - 1}
    for one in values:
        # A stretch of nothing but nan keeps a nan, which breaks the line there.
        low, high = np.where(np.isnan(one), np.inf, one), np.where(np.isnan(one), -np.inf, one)
        for start, end in pairwise(edges.tolist()):
            keep |= {start + int(low[start:end].argmin()), start + int(high[start:end].argmax())}
    return np.array(sorted(keep))


def line(label: str, x: Array, y: Array, *, colour: str = "", spread: Array | None = None) -> Series:
    """A value over time."""
    rows = thin(y)
    return Series(label, x[rows], y[rows], colour=colour, spread=None if spread is None else spread[rows])


def path(label: str, points: Array) -> Series:
    """A path seen from above (N, 2)."""
    rows = thin(points[:, 0], points[:, 1])
    return Series(label, points[rows, 0], points[rows, 1])


def window(t: Array, start: float, seconds: float) -> slice:
    """The rows from `start` on, for so long; shifted to where there are rows if it reaches beyond an end."""
    start = max(min(start, float(t[-1]) - seconds), float(t[0]))
    return slice(int(np.searchsorted(t, start)), int(np.searchsorted(t, start + seconds, side="right")))
