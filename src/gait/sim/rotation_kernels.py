"""Rotations for compiled code: those of `gait.lie`, and products with 3 x 3 matrices, which need no BLAS."""

from __future__ import annotations

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.sim.compiled import compiled, compiled_copy


@compiled
def rotate(R: Array, v: Array) -> Array:
    """R v (3,)."""
    out = np.empty(3)
    for i in range(3):
        out[i] = R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2]
    return out


@compiled
def rotate_inverse(R: Array, v: Array) -> Array:
    """R' v (3,)."""
    return rotate(R.T, v)


@compiled
def transform(R: Array, p: Array, v: Array) -> Array:
    """p + R v (3,)."""
    out = np.empty(3)
    for i in range(3):
        out[i] = p[i] + R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2]
    return out


@compiled
def product(A: Array, B: Array) -> Array:
    """A B (3, 3)."""
    out = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            out[i, j] = A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]
    return out


rotation_from_quat = compiled_copy(lie.rotation_from_quat)
so3_exp = compiled_copy(lie.so3_exp)
so3_log = compiled_copy(lie.so3_log)
so3_left_jacobian_inverse = compiled_copy(lie.so3_left_jacobian_inverse)
