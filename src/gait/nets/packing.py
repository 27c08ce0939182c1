"""Numbers as the C core reads them: tiles of a matrix, aligned arrays, and structs that own what they point to."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gait.arrays import AnyArray, Array
from gait.binding import aligned_bytes

floats_pointer = ctypes.POINTER(ctypes.c_float)
ints_pointer = ctypes.POINTER(ctypes.c_int32)


class PackedStruct(ctypes.Structure):
    """A C struct of sizes and arrays, which stay alive with it."""

    def __init__(self, sizes: dict[str, float], arrays: dict[str, AnyArray]) -> None:
        super().__init__(**sizes)
        self._arrays: dict[str, AnyArray] = {}
        pointers: dict[str, Any] = dict(self._fields_)  # type: ignore[arg-type]
        for name, array in arrays.items():
            kind = np.float32 if pointers[name] is floats_pointer else np.int32
            self._arrays[name] = aligned(np.ascontiguousarray(array, dtype=kind).ravel())
            setattr(self, name, self._arrays[name].ctypes.data_as(pointers[name]))

    def arrays(self) -> dict[str, AnyArray]:
        """The array behind each pointer, flat."""
        return self._arrays


def rounded_up(count: int, multiple: int) -> int:
    """The least multiple that is not below the count."""
    return -(-count // multiple) * multiple


def padded(array: Array, *shape: int) -> Array:
    """The array with zeros at the end of each axis, up to a shape."""
    return np.pad(array, [(0, size - old) for size, old in zip(shape, array.shape, strict=True)])


def tiles(matrix: Array, rows: int) -> Array:
    """A matrix (..., R, C) as tiles of so many rows, the columns of each one after the other (..., tiles, C, rows)."""
    *outer, count, columns = matrix.shape
    cut = padded(matrix, *outer, rounded_up(count, rows), columns).reshape(*outer, -1, rows, columns)
    return cut.swapaxes(-1, -2)


def aligned(values: AnyArray) -> AnyArray:
    """A copy that begins with a cache line."""
    copy: AnyArray = aligned_bytes(values.nbytes).view(values.dtype)
    copy[:] = values
    return copy
