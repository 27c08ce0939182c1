"""Rotations for compiled code, beside the readable ones of `gait.lie`, which tests compare with these."""

from __future__ import annotations

import math

import numpy as np

from gait.arrays import Array
from gait.sim.compiled import compiled


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


@compiled
def rotation_from_quat(quat: Array) -> Array:
    """Rotation matrix of a unit quaternion wxyz."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    R = np.empty((3, 3))
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    return R


@compiled
def _polynomial(w: Array, first: float, second: float) -> Array:
    """I + first w^ + second w^ w^ (3, 3)."""
    x, y, z = w[0], w[1], w[2]
    out = np.empty((3, 3))
    out[0, 0], out[0, 1], out[0, 2] = (
        1.0 - second * (y * y + z * z),
        second * x * y - first * z,
        second * x * z + first * y,
    )
    out[1, 0], out[1, 1], out[1, 2] = (
        second * x * y + first * z,
        1.0 - second * (x * x + z * z),
        second * y * z - first * x,
    )
    out[2, 0], out[2, 1], out[2, 2] = (
        second * x * z - first * y,
        second * y * z + first * x,
        1.0 - second * (x * x + y * y),
    )
    return out


@compiled
def so3_exp(w: Array) -> Array:
    """Rotation matrix of a rotation vector."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    angle = math.sqrt(t2)
    t2 = angle * angle
    if angle >= 0.5:
        half = math.sin(0.5 * angle)
        return _polynomial(w, math.sin(angle) / angle, 2.0 * half * half / t2)
    # Below half a radian the two quotients lose digits to cancellation; their series do not.
    a = b = 0.0
    for n in range(8, -1, -1):
        a = 1.0 - t2 / ((2 * n + 2) * (2 * n + 3)) * a
        b = 1.0 - t2 / ((2 * n + 3) * (2 * n + 4)) * b
    return _polynomial(w, a, b / 2.0)


@compiled
def so3_log(R: Array) -> Array:
    """Rotation vector of a rotation matrix, of length at most pi, by the largest component of its quaternion."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    w2, x2 = 1.0 + trace, 1.0 + 2.0 * R[0, 0] - trace
    y2, z2 = 1.0 + 2.0 * R[1, 1] - trace, 1.0 + 2.0 * R[2, 2] - trace
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    biggest = max(w2, x2, y2, z2)
    if biggest == w2:
        w, x, y, z = w2, wx, wy, wz
    elif biggest == x2:
        w, x, y, z = wx, x2, xy, xz
    elif biggest == y2:
        w, x, y, z = wy, xy, y2, yz
    else:
        w, x, y, z = wz, xz, yz, z2
    norm = math.sqrt(w**2 + x**2 + y**2 + z**2)
    norm = -norm if w < 0.0 else norm
    w, x, y, z = w / norm, x / norm, y / norm, z / norm
    sine = math.sqrt(x**2 + y**2 + z**2)
    # atan2(s, w) / s has its series at s = 0; w is then 1 to rounding.
    scale = 2.0 * math.atan2(sine, w) / sine if sine > 1e-8 else 2.0
    return np.array([scale * x, scale * y, scale * z])


@compiled
def so3_left_jacobian_inverse(w: Array) -> Array:
    """Inverse of the left Jacobian of SO(3), for rotations of less than a full turn."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if t2 >= 0.25:
        half = 0.5 * math.sqrt(t2)
        return _polynomial(w, -0.5, (1.0 - half * math.cos(half) / math.sin(half)) / t2)
    # |B_2n| / (2n)!, the Bernoulli series of (1 - (t/2) cot(t/2)) / t^2.
    second = 7.0 / 6.0 / 87178291200.0
    for term in (691.0 / 1307674368000.0, 1 / 47900160.0, 1 / 1209600.0, 1 / 30240.0, 1 / 720.0, 1 / 12.0):
        second = second * t2 + term
    return _polynomial(w, -0.5, second)
