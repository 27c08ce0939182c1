"""SO(3) over batches in torch: the functions of `gait.lie` by their names.

Components stand first and robots last: vectors are (3, ..., n), matrices (3, 3, ..., n). A product of small matrices is
then a few operations on long rows of memory, on a CPU five times as fast as `torch.matmul` on as many small matrices.
Nothing here branches on a value, so that nothing is copied from the device.
"""

from __future__ import annotations

import torch
from torch import Tensor, unflatten

_SERIES_BELOW = 0.01
"""Below this square of an angle the coefficients of higher order lose digits to cancellation; their series do not."""


def product(A: Tensor, B: Tensor) -> Tensor:
    """A B for matrices (i, j, ..., n) and (j, k, ..., n)."""
    return (A[:, :, None] * B[None]).sum(1)


def turn(A: Tensor, x: Tensor) -> Tensor:
    """A x for matrices (i, j, ..., n) and vectors (j, ..., n)."""
    return (A * x[None]).sum(1)


def turn_back(A: Tensor, x: Tensor) -> Tensor:
    """A' x for matrices (i, j, ..., n) and vectors (i, ..., n)."""
    return (A * x[:, None]).sum(0)


def cross(a: Tensor, b: Tensor) -> Tensor:
    """a x b for vectors (3, ..., n)."""
    ax, ay, az = a
    bx, by, bz = b
    return torch.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def square(x: Tensor) -> Tensor:
    """Squares of lengths (..., n)."""
    return torch.square(x).sum(0)


def skew(w: Tensor) -> Tensor:
    """The matrices w^ with w^ u = w x u (3, 3, ..., n)."""
    x, y, z = w
    zero = torch.zeros_like(x)
    return unflatten(torch.stack([zero, -z, y, z, zero, -x, -y, x, zero]), 0, (3, 3))


def coefficients(t2: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """sin(t)/t, (1-cos t)/t^2, (t-sin t)/t^3 and (t^2/2+cos t-1)/t^4 of squares of angles t."""
    t = torch.sqrt(t2) / torch.pi
    a, b = torch.sinc(t), 0.5 * torch.square(torch.sinc(0.5 * t))
    small = t2 < _SERIES_BELOW
    safe = torch.where(small, 1.0, t2)
    c = torch.where(small, (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0)) / 6.0, (1.0 - a) / safe)
    d = torch.where(small, (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0)) / 24.0, (0.5 - b) / safe)
    return a, b, c, d


def polynomial(w: Tensor, x: Tensor, one: float, first: Tensor, second: Tensor) -> Tensor:
    """(one I + first w^ + second w^ w^) x for vectors (3, ..., n), the form of every function of a rotation vector."""
    once = cross(w, x)
    return one * x + first * once + second * cross(w, once)


def so3_exp(w: Tensor) -> Tensor:
    """Rotation matrices (3, 3, n) of rotation vectors (3, n)."""
    a, b, _, _ = coefficients(square(w))
    hat = skew(w)
    eye = torch.eye(3, dtype=w.dtype, device=w.device)[..., None]
    return eye + a * hat + b * product(hat, hat)


def orthonormalised(R: Tensor) -> Tensor:
    """The rotations nearest to matrices that rounding has moved away from them, to first order."""
    return 1.5 * R - 0.5 * product(R, product(R.transpose(0, 1), R))


def inverse3(A: Tensor, det: Tensor | None = None) -> Tensor:
    """Inverses of matrices (3, 3, ..., n) by cross products of their rows; `det` stands in for the determinant."""
    first = cross(A[1], A[2])
    adjugate = torch.stack([first, cross(A[2], A[0]), cross(A[0], A[1])], 1)
    return adjugate / ((A[0] * first).sum(0) if det is None else det)


def determinant3(A: Tensor) -> Tensor:
    """Determinants (..., n) of matrices (3, 3, ..., n)."""
    return (A[0] * cross(A[1], A[2])).sum(0)


def rotation_from_quat(quat: Tensor) -> Tensor:
    """Rotation matrices (3, 3, n) of unit quaternions wxyz (4, n)."""
    w, x, y, z = quat
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return unflatten(torch.stack(rows), 0, (3, 3))


def quat_from_rotation(R: Tensor) -> Tensor:
    """Unit quaternions wxyz (4, n) with w >= 0, from the largest component so that nothing cancels."""
    xx, yy, zz = R[0, 0], R[1, 1], R[2, 2]
    w2, x2, y2, z2 = 1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, xz, yz = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    entries = torch.stack([w2, wx, wy, wz, wx, x2, xy, xz, wy, xy, y2, yz, wz, xz, yz, z2])
    largest = torch.stack([w2, x2, y2, z2]).argmax(0)
    quat = unflatten(entries, 0, (4, 4)).gather(0, largest.expand(1, 4, -1))[0]
    quat = quat / torch.sqrt(square(quat))
    return torch.where(quat[:1] < 0.0, -quat, quat)
