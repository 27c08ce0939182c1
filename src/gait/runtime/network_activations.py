"""exp, and the two functions of a GRU, on short vectors: polynomials that are right to about 1e-7."""

from __future__ import annotations

from typing import Any

import numpy as np

from gait._compile import kernel
from gait._lanes import fill4, fill16, fma, larger, power_of_two, smaller

_LOG2E = np.float32(1.4426950408889634)
_LOWEST, _HIGHEST = np.float32(-127.0), np.float32(127.0)
_ROUND = np.float32(1.5 * 2.0**23)
"""Adding it and taking it off again rounds to a whole number."""
# 2**f for |f| <= 1/2 to 3e-9 of its value: the polynomial through seven Chebyshev nodes.
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c)
    for c in (1.0, 0.693147207, 0.240226509, 0.0555032723, 0.00961805668, 0.00134004282, 0.000154614447)
)  # fmt: skip
_ONE, _TWO = np.float32(1.0), np.float32(2.0)


@kernel()
def exp4(x: Any) -> Any:
    """exp of numbers that are at most 0; exactly 0 below -88."""
    scaled = larger(x * fill4(_LOG2E), fill4(_LOWEST))
    whole = (scaled + fill4(_ROUND)) - fill4(_ROUND)
    f = scaled - whole
    y = fma(fill4(_C6), f, fill4(_C5))
    y = fma(y, f, fill4(_C4))
    y = fma(y, f, fill4(_C3))
    y = fma(y, f, fill4(_C2))
    y = fma(y, f, fill4(_C1))
    y = fma(y, f, fill4(_C0))
    return y * power_of_two(whole)


@kernel()
def sigmoid16(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    scaled = smaller(larger(x * fill16(-_LOG2E), fill16(_LOWEST)), fill16(_HIGHEST))
    whole = (scaled + fill16(_ROUND)) - fill16(_ROUND)
    f = scaled - whole
    y = fma(fill16(_C6), f, fill16(_C5))
    y = fma(y, f, fill16(_C4))
    y = fma(y, f, fill16(_C3))
    y = fma(y, f, fill16(_C2))
    y = fma(y, f, fill16(_C1))
    y = fma(y, f, fill16(_C0))
    return fill16(_ONE) / fma(y, power_of_two(whole), fill16(_ONE))


@kernel()
def tanh16(x: Any) -> Any:
    """2 sigmoid(2 x) - 1, right to 1e-7 of 1 rather than of its value."""
    return fma(fill16(_TWO), sigmoid16(x * fill16(_TWO)), fill16(-_ONE))
