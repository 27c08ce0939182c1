"""The memory of a contact-aided estimator in three flat buffers; `buffers.py` says why.

Order of the double precision numbers: what the filter knows and never changes, the filter's own memory, the bounds of
the sensors and the last good sample, then gains, deviations, the last good pose and scratch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait._compile import kernel, types
from gait.arrays import Array, BoolArray, IntArray
from gait.filters.contact_kernels import MEMORY, MODEL, Memory, Model
from gait.runtime.buffers import CLEAN_FLAGS, GUARD_SIZE, put_bounds
from gait.runtime.samples import Bounds

SCALARS = 16
"""Numbers of a Model that are not arrays, its source of contacts not counted."""
LEGS, SOURCE, SLOTS = 0, 1, 2
"""Integers: legs, source of contacts, then scratch of the filter."""
_F, _I, _B = types.float64[::1], types.int64[::1], types.boolean[::1]


class ContactBuffers(NamedTuple):
    """All that an estimator remembers."""

    floats: Array
    ints: IntArray
    flags: BoolArray


@kernel(types.int64(types.int64))
def memory_start(legs: int) -> int:
    """Where the filter's memory begins among the numbers."""
    return 57 * legs + 17 + SCALARS


@kernel(types.int64(types.int64))
def guard_start(legs: int) -> int:
    """Where the bounds begin."""
    n, rows = 15 + 3 * legs, 6 + 3 * legs
    return memory_start(legs) + 9 + 3 * (2 + legs) + 6 + n * n + 5 * rows * n + 17 * legs + 38


@kernel(types.int64(types.int64))
def rest_start(legs: int) -> int:
    """Where gains (9 L), deviations (15), the last good pose (12) and scratch (9 + 9 L) begin."""
    return guard_start(legs) + GUARD_SIZE[0] + GUARD_SIZE[1] * legs


@kernel(MODEL(_F, _I))
def model_in(f: Array, ints: IntArray) -> Model:
    """What the filter knows, as views."""
    legs = ints[LEGS]
    a = 12 * legs
    b = a + 3 * legs
    c = b + 30 * legs
    d = c + 3 * legs
    e = d + 17
    s = e + 9 * legs
    return Model(
        f[0:a].reshape(legs, 4, 3), f[a:b].reshape(legs, 3), f[b:c].reshape(legs, 3, 10), f[c:d],
        f[d : d + 9].reshape(3, 3), f[d + 9 : d + 12], f[d + 12 : d + 17], f[e:s].reshape(legs, 3, 3),
        f[s], f[s + 1], f[s + 2], f[s + 3], f[s + 4], f[s + 5], f[s + 6], f[s + 7], f[s + 8], f[s + 9], f[s + 10],
        f[s + 11] != 0.0, f[s + 12] != 0.0, f[s + 13], f[s + 14], f[s + 15], ints[SOURCE],
    )  # fmt: skip


@kernel(MEMORY(_F, _I, _B))
def memory_in(f: Array, ints: IntArray, flags: BoolArray) -> Memory:
    """The filter's memory, as views."""
    legs = ints[LEGS]
    joints, n, rows = 3 * legs, 15 + 3 * legs, 6 + 3 * legs
    r = memory_start(legs)
    x = r + 9
    b = x + 3 * (2 + legs)
    p = b + 6
    w = p + n * n
    v = w + 5 * rows * n
    q = v + 2 * legs
    g = q + 5 * joints
    own = flags[CLEAN_FLAGS + 2 + 2 * legs :]
    return Memory(
        f[r:x].reshape(3, 3), f[x:b].reshape(2 + legs, 3), f[b:p].reshape(2, 3), f[p:w].reshape(n, n),
        own[0:legs], f[w:v].reshape(5, rows, n), ints[SLOTS : SLOTS + 2 * rows].reshape(rows, 2), own[legs : 2 * legs],
        f[v : v + legs], f[q : q + joints], f[q + joints : q + 2 * joints], f[q + 2 * joints : q + 3 * joints],
        f[v + legs : q], f[q + 3 * joints : q + 4 * joints].reshape(legs, 3), f[q + 4 * joints : g].reshape(legs, 3),
        f[g : g + 24].reshape(8, 3), f[g + 24 : g + 33].reshape(3, 3), f[g + 33 : g + 38],
        own[3 * legs : 3 * legs + 1], own[2 * legs : 3 * legs],
    )  # fmt: skip


def new_buffers(model: Model, bounds: Bounds, gains: Array, std: Array) -> ContactBuffers:
    """Buffers for a filter, its settings written where the compiled code finds them."""
    legs = len(model.offsets)
    arrays = [np.ravel(value) for value in model[:8]]
    scalars = [float(value) for value in model[8:-1]]
    settings = np.concatenate([*arrays, scalars])
    rest = rest_start(legs)
    floats = np.zeros(rest + 18 * legs + 36)
    floats[: len(settings)] = settings
    put_bounds(floats, bounds, guard_start(legs))
    floats[rest : rest + 9 * legs + 15] = np.concatenate([gains.ravel(), std])
    ints = np.zeros(SLOTS + 2 * (6 + 3 * legs), dtype=np.int64)
    ints[LEGS], ints[SOURCE] = legs, model.contact_source
    return ContactBuffers(floats, ints, np.zeros(CLEAN_FLAGS + 2 + 2 * legs + 3 * legs + 1, dtype=np.bool_))
