"""Products of a matrix and a vector on short vectors: what the steps of all networks are made of.

`gait.runtime.network_pack` says how a matrix lies in memory.
"""

from __future__ import annotations

import numpy as np

from gait._compile import compiled
from gait._lanes import each16, fill4, fill16, fma, larger, load16, store
from gait.runtime.network_pack import NARROW, WIDE, Floats

_F1 = "float32[::1]"
_ZERO = np.float32(0.0)


@compiled(f"void({_F1}, int64, {_F1}, int64, int64, int64, {_F1}, int64)")
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


@compiled(f"void({_F1}, int64, {_F1}, int64, int64, {_F1}, int64)")
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


@compiled(f"void({_F1}, int64, {_F1}, int64, int64)")
def copy_lanes(source: Floats, i: int, out: Floats, o: int, count: int) -> None:
    """A multiple of 16 numbers."""
    for k in range(0, count, 16):
        store(out, o + k, load16(source, i + k))


@compiled(f"void({_F1}, int64, int64)")
def clear_lanes(out: Floats, o: int, count: int) -> None:
    """A multiple of 4 numbers."""
    for k in range(0, count, 4):
        store(out, o + k, fill4(_ZERO))


@compiled(f"void({_F1}, int64, int64)")
def relu(out: Floats, o: int, count: int) -> None:
    """A multiple of 16 numbers, those below zero made zero."""
    for k in range(o, o + count, 16):
        store(out, k, larger(load16(out, k), fill16(_ZERO)))


@compiled(f"void({_F1}, int64, {_F1}, int64, int64, {_F1}, int64, int64)")
def dense(weights: Floats, w: int, x: Floats, i: int, columns: int, out: Floats, o: int, rows: int) -> None:
    """out[o : o + rows] = offset + matrix times x[i : i + columns], in blocks of 64 rows, offsets first."""
    for row in range(o, o + rows, WIDE):
        copy_lanes(weights, w, out, row, WIDE)
        add_wide(weights, w + WIDE, x, i, columns, out, row)
        w += WIDE * (1 + columns)
