"""The rotation group SO(3) and the extended poses SE_k(3): exp, log, adjoint and left Jacobian, compiled.

An element of SE_k(3) is a rotation `R` (3, 3) with `k` vectors `x` (k, 3), one a row: velocity and position for k = 2,
and one more for each foot in the contact-aided filter. Its tangent is (3 + 3 k,): rotation first, then the vectors in
the same order. Functions named `..._into` write into their last arguments and allocate nothing. Those of SE_k(3) are
compiled at their first call: no estimator needs them, and they take a sixth of the time that compiling takes.
"""

from __future__ import annotations

import math

import numpy as np

from gait._compile import compiled, kernel
from gait.arrays import Array

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
# Inputs may be read-only, as the rows of a Log are.
_I1 = "Array(float64, 1, 'C', True)"
_I2 = "Array(float64, 2, 'C', True)"
# Below this angle (rad) the trigonometric coefficients lose digits to cancellation; their series do not.
_SERIES_BELOW = 0.5


@compiled(f"{_A2}({_I2}, {_I2})")
def _times(A: Array, B: Array) -> Array:
    """A B. Written out, since numba's own product asks for scipy, which the light install does not have."""
    out = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                out[i, j] += A[i, k] * B[k, j]
    return out


@compiled(f"{_A2}({_I2}, {_I2})")
def _times_transposed(A: Array, B: Array) -> Array:
    """A B'."""
    out = np.zeros((A.shape[0], B.shape[0]))
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            for k in range(A.shape[1]):
                out[i, j] += A[i, k] * B[j, k]
    return out


@kernel("UniTuple(float64, 4)(float64)")
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


@kernel(f"void({_I1}, float64, float64, float64, {_A2})")
def _polynomial_into(w: Array, one: float, first: float, second: float, out: Array) -> None:
    """out = one I + first w^ + second w^ w^, the form of every function of a rotation vector here."""
    x, y, z = w[0], w[1], w[2]
    out[0, 0] = one - second * (y * y + z * z)
    out[1, 1] = one - second * (x * x + z * z)
    out[2, 2] = one - second * (x * x + y * y)
    out[0, 1] = second * x * y - first * z
    out[1, 0] = second * x * y + first * z
    out[0, 2] = second * x * z + first * y
    out[2, 0] = second * x * z - first * y
    out[1, 2] = second * y * z - first * x
    out[2, 1] = second * y * z + first * x


@kernel(f"void({_I1}, {_A2}, {_A2}, {_A2})")
def gammas_into(w: Array, gamma0: Array, gamma1: Array, gamma2: Array) -> None:
    """The integrals of the rotation exp(s w), s from 0 to 1: itself at 1, once and twice integrated.

    `gamma0` is exp(w), `gamma1` is the left Jacobian, `gamma2` carries acceleration into position.
    """
    a, b, c, d = coefficients(math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    _polynomial_into(w, 1.0, a, b, gamma0)
    _polynomial_into(w, 1.0, b, c, gamma1)
    _polynomial_into(w, 0.5, c, d, gamma2)


@kernel(f"void({_I1}, {_A2}, {_A2})")
def exp_and_jacobian_into(w: Array, rotation: Array, jacobian: Array) -> None:
    """exp(w) and the left Jacobian of SO(3) in one go."""
    a, b, c, _ = coefficients(math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    _polynomial_into(w, 1.0, a, b, rotation)
    _polynomial_into(w, 1.0, b, c, jacobian)


@compiled(f"{_A2}({_I1})")
def skew(w: Array) -> Array:
    """The matrix w^ with w^ u = w x u."""
    out = np.empty((3, 3))
    _polynomial_into(w, 0.0, 1.0, 0.0, out)
    return out


@compiled(f"{_A2}({_I1})")
def so3_exp(w: Array) -> Array:
    """Rotation matrix of a rotation vector."""
    out = np.empty((3, 3))
    a, b, _, _ = coefficients(math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    _polynomial_into(w, 1.0, a, b, out)
    return out


@kernel(f"void({_I2}, {_A1})")
def quat_from_rotation_into(R: Array, quat: Array) -> None:
    """Unit quaternion wxyz with w >= 0 of a rotation matrix, from the largest component so that nothing cancels."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    w2, x2 = 1.0 + trace, 1.0 + 2.0 * R[0, 0] - trace
    y2, z2 = 1.0 + 2.0 * R[1, 1] - trace, 1.0 + 2.0 * R[2, 2] - trace
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    biggest = max(w2, x2, y2, z2)
    if biggest == w2:
        quat[0], quat[1], quat[2], quat[3] = w2, wx, wy, wz
    elif biggest == x2:
        quat[0], quat[1], quat[2], quat[3] = wx, x2, xy, xz
    elif biggest == y2:
        quat[0], quat[1], quat[2], quat[3] = wy, xy, y2, yz
    else:
        quat[0], quat[1], quat[2], quat[3] = wz, xz, yz, z2
    norm = math.sqrt(quat[0] ** 2 + quat[1] ** 2 + quat[2] ** 2 + quat[3] ** 2)
    if quat[0] < 0.0:
        norm = -norm
    for i in range(4):
        quat[i] /= norm


@kernel(f"void({_I1}, {_A2})")
def rotation_from_quat_into(quat: Array, R: Array) -> None:
    """Rotation matrix of a unit quaternion wxyz."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@compiled(f"{_A1}({_I2})")
def quat_from_rotation(R: Array) -> Array:
    """Unit quaternion wxyz with w >= 0 of a rotation matrix."""
    out = np.empty(4)
    quat_from_rotation_into(R, out)
    return out


@compiled(f"{_A2}({_I1})")
def rotation_from_quat(quat: Array) -> Array:
    """Rotation matrix of a unit quaternion wxyz."""
    out = np.empty((3, 3))
    rotation_from_quat_into(quat, out)
    return out


@compiled(f"{_A1}({_I2})")
def so3_log(R: Array) -> Array:
    """Rotation vector of a rotation matrix, of length at most pi."""
    quat = quat_from_rotation(R)
    sine = math.sqrt(quat[1] ** 2 + quat[2] ** 2 + quat[3] ** 2)
    # atan2(s, w) / s has its series at s = 0; w is then 1 to rounding.
    scale = 2.0 * math.atan2(sine, quat[0]) / sine if sine > 1e-8 else 2.0
    return scale * quat[1:]


@compiled(f"{_A2}({_I1})")
def so3_left_jacobian(w: Array) -> Array:
    """J with exp(w + dw) = exp(J dw) exp(w) to first order."""
    out = np.empty((3, 3))
    _, b, c, _ = coefficients(math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    _polynomial_into(w, 1.0, b, c, out)
    return out


@compiled(f"{_A2}({_I1})")
def so3_left_jacobian_inverse(w: Array) -> Array:
    """Inverse of the left Jacobian, for rotations of less than a full turn."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if t2 < _SERIES_BELOW**2:
        # |B_2n| / (2n)!, the Bernoulli series of (1 - (t/2) cot(t/2)) / t^2.
        second = 7.0 / 6.0 / 87178291200.0
        second = second * t2 + 691.0 / 1307674368000.0
        second = second * t2 + 1.0 / 47900160.0
        second = second * t2 + 1.0 / 1209600.0
        second = second * t2 + 1.0 / 30240.0
        second = second * t2 + 1.0 / 720.0
        second = second * t2 + 1.0 / 12.0
    else:
        half = 0.5 * math.sqrt(t2)
        second = (1.0 - half * math.cos(half) / math.sin(half)) / t2
    out = np.empty((3, 3))
    _polynomial_into(w, 1.0, -0.5, second, out)
    return out


@compiled()
def sek3_exp(xi: Array) -> tuple[Array, Array]:
    """Exponential of SE_k(3): rotation (3, 3) and vectors (k, 3) of a tangent (3 + 3 k,)."""
    rotation, jacobian = np.empty((3, 3)), np.empty((3, 3))
    exp_and_jacobian_into(xi[:3], rotation, jacobian)
    return rotation, _times_transposed(xi[3:].copy().reshape(-1, 3), jacobian)


@compiled()
def sek3_log(R: Array, x: Array) -> Array:
    """Logarithm of SE_k(3): the tangent (3 + 3 k,) with the shortest rotation."""
    xi = np.empty(3 + 3 * x.shape[0])
    xi[:3] = so3_log(R)
    xi[3:] = _times_transposed(x, so3_left_jacobian_inverse(xi[:3])).ravel()
    return xi


@compiled()
def sek3_compose(R1: Array, x1: Array, R2: Array, x2: Array) -> tuple[Array, Array]:
    """Product of two extended poses."""
    return _times(R1, R2), x1 + _times_transposed(x2, R1)


@compiled()
def sek3_inverse(R: Array, x: Array) -> tuple[Array, Array]:
    """Inverse of an extended pose."""
    return np.ascontiguousarray(R.T), -_times(x, R)


@compiled()
def sek3_adjoint(R: Array, x: Array) -> Array:
    """Adjoint (3 + 3 k square) with X exp(xi) = exp(Ad xi) X."""
    size = 3 + 3 * x.shape[0]
    out = np.zeros((size, size))
    out[:3, :3] = R
    for i in range(x.shape[0]):
        j = 3 + 3 * i
        out[j : j + 3, :3] = _times(skew(x[i]), R)
        out[j : j + 3, j : j + 3] = R
    return out


@compiled()
def sek3_left_jacobian(xi: Array) -> Array:
    """Left Jacobian of SE_k(3) (3 + 3 k square): exp(xi + d) = exp(J d) exp(xi) to first order."""
    w = xi[:3]
    angle = math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
    _, _, c, d = coefficients(angle)
    # (t - sin t - t^3 / 6) / t^5
    if angle < _SERIES_BELOW:
        e, t2 = 0.0, angle * angle
        for n in range(8, -1, -1):
            e = 1.0 - t2 / ((2 * n + 6) * (2 * n + 7)) * e
        e /= -120.0
    else:
        e = (angle - math.sin(angle) - angle**3 / 6.0) / angle**5
    jacobian, W = so3_left_jacobian(w), skew(w)
    out = np.zeros((xi.size, xi.size))
    out[:3, :3] = jacobian
    for j in range(3, xi.size, 3):
        V = skew(xi[j : j + 3])
        WV, VW = _times(W, V), _times(V, W)
        WVW = _times(WV, W)
        block = 0.5 * V + c * (WV + VW + WVW) + d * (_times(W, WV) + _times(VW, W) - 3.0 * WVW)
        out[j : j + 3, :3] = block + 0.5 * (d + 3.0 * e) * (_times(WVW, W) + _times(W, WVW))
        out[j : j + 3, j : j + 3] = jacobian
    return out
