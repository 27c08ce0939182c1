"""Unit quaternions (..., 4) in the order w, x, y, z, over whole arrays."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array


def rotate(quat_wxyz: Array, vector: Array) -> Array:
    """Turn vectors (..., 3) by quaternions: R v."""
    w, u = quat_wxyz[..., :1], quat_wxyz[..., 1:]
    twice = 2.0 * np.cross(u, vector)
    turned: Array = vector + w * twice + np.cross(u, twice)
    return turned


def rotate_inverse(quat_wxyz: Array, vector: Array) -> Array:
    """Turn vectors (..., 3) back: R' v, so from the world to the body for `quat_wb_wxyz`."""
    return rotate(quat_wxyz * np.array([1.0, -1.0, -1.0, -1.0]), vector)


def slerp(start: Array, end: Array, part: Array) -> Array:
    """Rotations on the shortest arcs from `start` to `end` (N, 4), at `part` (N,) between 0 and 1."""
    dot = np.einsum("ij,ij->i", start, end)
    given, end = end, np.where(dot[:, None] < 0.0, -end, end)
    # The half-angle from the chord keeps its digits where the two are nearly equal; acos of the dot does not.
    angle = 2.0 * np.arcsin(np.minimum(0.5 * np.linalg.norm(end - start, axis=1), 1.0))
    safe = np.where(angle < 1e-8, 1.0, angle)
    sine = np.sin(safe)
    a = np.where(angle < 1e-8, 1.0 - part, np.sin((1.0 - part) * safe) / sine)
    b = np.where(angle < 1e-8, part, np.sin(part * safe) / sine)
    between = a[:, None] * start + b[:, None] * end
    between /= np.linalg.norm(between, axis=1, keepdims=True)
    # At the two ends nothing is rounded, so what was recorded comes back as it was.
    between = np.where(part[:, None] == 0.0, start, between)
    turned: Array = np.where(part[:, None] == 1.0, given, between)
    return turned
