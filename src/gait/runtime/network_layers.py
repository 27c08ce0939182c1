"""Products of a matrix and a vector on short vectors: what the steps of all networks are made of.

`gait.runtime.network_pack` says how a matrix lies in memory.
"""

from __future__ import annotations

import numpy as np

from gait._compile import kernel
from gait._lanes import each16, fill4, fill16, fma, larger, load16, store
from gait.runtime.network_pack import NARROW, WIDE, Floats

_F1 = "float32[::1]"
_ZERO = np.float32(0.0)


@kernel(f"void({_F1}, int64, {_F1}, int64, int64, int64, {_F1}, int64)")
def add_narrow(weights: Floats, w: int, x: Floats, i: int, stride: int, columns: int, out: Floats, o: int) -> None:
    """out[o : o + 32] += a block of 32 rows times every `stride`-th number of x from i on."""
    a, b = load16(out, o), load16(out, o + 16)
    for _ in range(columns):
        factor = each16(x, i)
        a = fma(load16(weights, w), factor, a)
        b = fma(load16(weights, w + 16), factor, b)
        w += NARROW
        i += stride
    store(out, o, a)
    store(out, o + 16, b)


@kernel(f"void({_F1}, int64, {_F1}, int64, int64, {_F1}, int64)")
def add_wide(weights: Floats, w: int, x: Floats, i: int, columns: int, out: Floats, o: int) -> None:
    """out[o : o + 64] += a block of 64 rows times x[i : i + columns]."""
    a, b, c, d = load16(out, o), load16(out, o + 16), load16(out, o + 32), load16(out, o + 48)
    for k in range(columns):
        factor = each16(x, i + k)
        a = fma(load16(weights, w), factor, a)
        b = fma(load16(weights, w + 16), factor, b)
        c = fma(load16(weights, w + 32), factor, c)
        d = fma(load16(weights, w + 48), factor, d)
        w += WIDE
    store(out, o, a)
    store(out, o + 16, b)
    store(out, o + 32, c)
    store(out, o + 48, d)


@kernel(f"void({_F1}, int64, {_F1}, int64, int64)")
def copy_lanes(source: Floats, i: int, out: Floats, o: int, count: int) -> None:
    """A multiple of 16 numbers."""
    for k in range(0, count, 16):
        store(out, o + k, load16(source, i + k))


@kernel(f"void({_F1}, int64, int64)")
def clear_lanes(out: Floats, o: int, count: int) -> None:
    """A multiple of 4 numbers."""
    for k in range(0, count, 4):
        store(out, o + k, fill4(_ZERO))


@kernel(f"void({_F1}, int64, {_F1}, int64, int64, {_F1}, int64, int64)")
def dense(weights: Floats, w: int, x: Floats, i: int, columns: int, out: Floats, o: int, rows: int) -> None:
    """out[o : o + rows] = offset + matrix times x[i : i + columns], in blocks of 64 rows, offsets first."""
    for row in range(o, o + rows, WIDE):
        copy_lanes(weights, w, out, row, WIDE)
        add_wide(weights, w + WIDE, x, i, columns, out, row)
        w += WIDE * (1 + columns)


@kernel(f"void({_F1}, int64, {_F1}, int64, {_F1}, int64, int64, int64, {_F1}, int64, int64, float32)")
def dense_four(
    begin: Floats, b: int, weights: Floats, w: int, x: Floats, i: int, i_step: int, columns: int,
    out: Floats, o: int, o_step: int, least: np.float32,
) -> None:  # fmt: skip
    """64 rows of a layer for four inputs at once, so that a weight is fetched once for all of them.

    Args:
        begin, b: what to begin the sums with.
        weights, w: a block of 64 rows.
        x, i, i_step: the inputs, which lie `i_step` apart.
        columns: length of an input.
        out, o, o_step: where the outputs go, `o_step` apart.
        least: outputs are at least this.
    """
    floor = fill16(least)
    for row in range(0, WIDE, 16):
        first = load16(begin, b + row)
        p, q, r, s = first, first, first, first
        for k in range(columns):
            factors = load16(weights, w + WIDE * k + row)
            p = fma(factors, each16(x, i + k), p)
            q = fma(factors, each16(x, i + i_step + k), q)
            r = fma(factors, each16(x, i + 2 * i_step + k), r)
            s = fma(factors, each16(x, i + 3 * i_step + k), s)
        store(out, o + row, larger(p, floor))
        store(out, o + o_step + row, larger(q, floor))
        store(out, o + 2 * o_step + row, larger(r, floor))
        store(out, o + 3 * o_step + row, larger(s, floor))
