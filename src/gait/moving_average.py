"""Low-pass of a recording without delay: moving averages, one after the other."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array


def low_pass(values: Array, period: float, seconds: float) -> Array:
    """Values (N, ...) averaged twice over `seconds` around each row; at the ends over what there is.

    Args:
        values: rows first.
        period: of a row, s.
        seconds: length of the average.
    """
    half, count = round(0.5 * seconds / period), len(values)
    rows = np.arange(count)
    first, end = np.maximum(rows - half, 0), np.minimum(rows + half + 1, count)
    length = (end - first).reshape(-1, *[1] * (values.ndim - 1))
    for _ in range(2):
        total = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
        values = (total[end] - total[first]) / length
    return values
