"""The rotation group SO(3) and the extended poses SE_k(3): exp, log, adjoint and left Jacobian.

An element of SE_k(3) is a rotation `R` (3, 3) with `k` vectors `x` (k, 3), one a row: velocity and position for k = 2,
and one more for each foot in the contact-aided filter. Its tangent is (3 + 3 k,): rotation first, then the vectors in
the same order. The functions of SO(3) are written by components, so that the simulator can compile them as they are.
"""

from __future__ import annotations

import math

import numpy as np

from gait.arrays import Array

_SERIES_BELOW = 0.5
"""Below this angle (rad) the trigonometric coefficients lose digits to cancellation; their series do not."""


def coefficients(angle: float) -> tuple[float, float, float, float]:
    """sin(t)/t, (1-cos t)/t^2, (t-sin t)/t^3 and (t^2/2+cos t-1)/t^4, exact to rounding for every angle >= 0."""
    t2 = angle * angle
    if angle < _SERIES_BELOW:
        a = b = c = d = 0.0
        for n in range(8, -1, -1):
            a = 1.0 - t2 / ((2 * n + 2) * (2 * n + 3)) * a
            b = 1.0 - t2 / ((2 * n + 3) * (2 * n + 4)) * b
            c = 1.0 - t2 / ((2 * n + 4) * (2 * n + 5)) * c
            d = 1.0 - t2 / ((2 * n + 5) * (2 * n + 6)) * d
        return a, b / 2.0, c / 6.0, d / 24.0
    s, h = math.sin(angle), math.sin(0.5 * angle)
    return s / angle, 2.0 * h * h / t2, (angle - s) / (t2 * angle), (0.5 * t2 - 2.0 * h * h) / (t2 * t2)


def norm(w: Array) -> float:
    """Length of a vector (3,)."""
    return math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])


def polynomial(w: Array, one: float, first: float, second: float) -> Array:
    """one I + first w^ + second w^ w^ (3, 3), the form of every function of a rotation vector here."""
    x, y, z = w[0], w[1], w[2]
    xy, xz, yz = second * x * y, second * x * z, second * y * z
    return np.array(
        [
            [one - second * (y * y + z * z), xy - first * z, xz + first * y],
            [xy + first * z, one - second * (x * x + z * z), yz - first * x],
            [xz - first * y, yz + first * x, one - second * (x * x + y * y)],
        ]
    )


def skew(w: Array) -> Array:
    """The matrix w^ with w^ u = w x u."""
    return polynomial(w, 0.0, 1.0, 0.0)


def so3_exp(w: Array) -> Array:
    """Rotation matrix of a rotation vector."""
    a, b, _, _ = coefficients(norm(w))
    return polynomial(w, 1.0, a, b)


def gammas(w: Array) -> tuple[Array, Array, Array]:
    """The integrals of the rotation exp(s w), s from 0 to 1: itself at 1, once and twice integrated.

    The first is exp(w), the second the left Jacobian; the third carries acceleration into position.
    """
    a, b, c, d = coefficients(norm(w))
    return polynomial(w, 1.0, a, b), polynomial(w, 1.0, b, c), polynomial(w, 0.5, c, d)


def quat_from_rotation(R: Array) -> Array:
    """Unit quaternion wxyz with w >= 0 of a rotation matrix, from the largest component so that nothing cancels."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    w2, x2 = 1.0 + trace, 1.0 + 2.0 * R[0, 0] - trace
    y2, z2 = 1.0 + 2.0 * R[1, 1] - trace, 1.0 + 2.0 * R[2, 2] - trace
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    biggest = max(w2, x2, y2, z2)
    if biggest == w2:
        quat = np.array([w2, wx, wy, wz])
    elif biggest == x2:
        quat = np.array([wx, x2, xy, xz])
    elif biggest == y2:
        quat = np.array([wy, xy, y2, yz])
    else:
        quat = np.array([wz, xz, yz, z2])
    length = math.sqrt(quat[0] ** 2 + quat[1] ** 2 + quat[2] ** 2 + quat[3] ** 2)
    return quat / (-length if quat[0] < 0.0 else length)


def rotation_from_quat(quat: Array) -> Array:
    """Rotation matrix of a unit quaternion wxyz."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def so3_log(R: Array) -> Array:
    """Rotation vector of a rotation matrix, of length at most pi."""
    quat = quat_from_rotation(R)
    sine = math.sqrt(quat[1] ** 2 + quat[2] ** 2 + quat[3] ** 2)
    # atan2(s, w) / s has its series at s = 0; w is then 1 to rounding.
    scale = 2.0 * math.atan2(sine, quat[0]) / sine if sine > 1e-8 else 2.0
    return scale * quat[1:]


def so3_left_jacobian(w: Array) -> Array:
    """J with exp(w + dw) = exp(J dw) exp(w) to first order."""
    return gammas(w)[1]


def so3_left_jacobian_inverse(w: Array) -> Array:
    """Inverse of the left Jacobian, for rotations of less than a full turn."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if t2 < _SERIES_BELOW**2:
        # |B_2n| / (2n)!, the Bernoulli series of (1 - (t/2) cot(t/2)) / t^2.
        second = 7.0 / 6.0 / 87178291200.0
        for term in (691.0 / 1307674368000.0, 1 / 47900160.0, 1 / 1209600.0, 1 / 30240.0, 1 / 720.0, 1 / 12.0):
            second = second * t2 + term
    else:
        half = 0.5 * math.sqrt(t2)
        second = (1.0 - half * math.cos(half) / math.sin(half)) / t2
    return polynomial(w, 1.0, -0.5, second)


def sek3_exp(xi: Array) -> tuple[Array, Array]:
    """Exponential of SE_k(3): rotation (3, 3) and vectors (k, 3) of a tangent (3 + 3 k,)."""
    rotation, jacobian, _ = gammas(xi[:3])
    return rotation, xi[3:].reshape(-1, 3) @ jacobian.T


def sek3_adjoint(R: Array, x: Array) -> Array:
    """Adjoint (3 + 3 k square) with X exp(xi) = exp(Ad xi) X."""
    out = np.kron(np.eye(1 + len(x)), R).astype(np.float64)
    out[3:, :3] = np.concatenate([skew(vector) @ R for vector in x])
    return out
