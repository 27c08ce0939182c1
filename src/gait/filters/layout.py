"""How the compiled filter lays out its state, and what its two halves share.

State of a filter with L feet, all arrays preallocated and changed in place:

- `R` (3, 3): orientation, body to world;
- `x` (2 + L, 3): velocity, position, then one row for each foot, in the world frame;
- `b` (2, 3): gyro and accelerometer bias;
- `P` (15 + 3 L square): covariance of the right-invariant error, X_hat = exp(xi) X, in the order rotation, velocity,
  position, gyro bias, accelerometer bias, feet;
- `active` (L,): which feet are part of the state; rows and columns of the others are zero;
- `work` (5, M, 15 + 3 L) with M = 6 + 3 L, and `slots` (M, 2) of integers: scratch.

`reference.py` says the same in plain numpy.
"""

from __future__ import annotations

from gait._compile import kernel
from gait.arrays import Array

_A2 = "float64[:, ::1]"
STATE = f"{_A2}, {_A2}, {_A2}, {_A2}, boolean[::1], float64[:, :, ::1], int64[:, ::1]"
"""The part of a signature that is the state: R, x, b, P, active, work, slots."""

ROT, VEL, POS, BG, BA, FEET = 0, 3, 6, 9, 12, 15
"""First row of each part of the error."""


@kernel(f"void({_A2})")
def orthonormalise(R: Array) -> None:
    """One Newton step back onto the group, so that rounding cannot build up over hours."""
    e00 = e01 = e02 = e11 = e12 = e22 = 0.0
    for i in range(3):
        e00 += R[i, 0] * R[i, 0]
        e01 += R[i, 0] * R[i, 1]
        e02 += R[i, 0] * R[i, 2]
        e11 += R[i, 1] * R[i, 1]
        e12 += R[i, 1] * R[i, 2]
        e22 += R[i, 2] * R[i, 2]
    for i in range(3):
        r0, r1, r2 = R[i, 0], R[i, 1], R[i, 2]
        R[i, 0] = 1.5 * r0 - 0.5 * (r0 * e00 + r1 * e01 + r2 * e02)
        R[i, 1] = 1.5 * r1 - 0.5 * (r0 * e01 + r1 * e11 + r2 * e12)
        R[i, 2] = 1.5 * r2 - 0.5 * (r0 * e02 + r1 * e12 + r2 * e22)


@kernel(f"void({_A2})")
def symmetrise(P: Array) -> None:
    """Make both triangles equal: rounding pulls them apart."""
    for i in range(P.shape[0]):
        for j in range(i):
            mean = 0.5 * (P[i, j] + P[j, i])
            P[i, j] = mean
            P[j, i] = mean
