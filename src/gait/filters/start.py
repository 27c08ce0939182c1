"""How a filter begins: the covariance of what is known, and a pose from gravity. `layout.py` explains the arrays."""

from __future__ import annotations

import math

from gait._compile import kernel
from gait.arrays import Array

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"


@kernel(f"void({_A2}, {_A2}, {_A1})")
def start_covariance(x: Array, P: Array, std: Array) -> None:
    """Covariance of a state known to these standard deviations (15,), for the right-invariant error; no feet.

    They are about velocity and position themselves: v_hat - v = xi_v + xi_R x v, and likewise for the position.
    """
    for i in range(P.shape[0]):
        for j in range(P.shape[0]):
            P[i, j] = std[i] * std[i] if i == j and i < 15 else 0.0
    for k in range(3):
        # A turn about axis k moves each vector x by x cross k: column k of skew(x).
        variance = std[k] * std[k]
        a, b = (k + 1) % 3, (k + 2) % 3
        for m in range(2):
            row = 3 + 3 * m
            P[row + a, k] = P[k, row + a] = x[m, b] * variance
            P[row + b, k] = P[k, row + b] = -x[m, a] * variance
            for n in range(2):
                column = 3 + 3 * n
                P[row + a, column + a] += x[m, b] * x[n, b] * variance
                P[row + a, column + b] -= x[m, b] * x[n, a] * variance
                P[row + b, column + a] -= x[m, a] * x[n, b] * variance
                P[row + b, column + b] += x[m, a] * x[n, a] * variance


@kernel(f"boolean({_A2}, {_A2}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, float64)")
def align(
    R: Array, x: Array, b: Array, P: Array, imu_rotation: Array, imu_position: Array, std: Array, accel: Array,
    gravity: float,
) -> bool:  # fmt: skip
    """Start at rest: roll and pitch of base_link from the specific force; heading, velocity and position zero.

    Args:
        R, x, b, P: the state of the IMU, filled in.
        imu_rotation: IMU axes in the base frame (3, 3).
        imu_position: IMU in the base frame (3,).
        std: standard deviations of rotation, velocity, position and biases at the start (15,).
        accel: specific force in IMU axes (3,).
        gravity: z component of gravity in the world.

    Returns:
        False, with nothing changed, if the force is not that of a robot at rest.
    """
    M, arm = imu_rotation, imu_position
    f0 = M[0, 0] * accel[0] + M[0, 1] * accel[1] + M[0, 2] * accel[2]
    f1 = M[1, 0] * accel[0] + M[1, 1] * accel[1] + M[1, 2] * accel[2]
    f2 = M[2, 0] * accel[0] + M[2, 1] * accel[1] + M[2, 2] * accel[2]
    norm = math.sqrt(f0 * f0 + f1 * f1 + f2 * f2) / abs(gravity)
    if not 0.5 < norm < 1.5:
        return False
    roll, pitch = math.atan2(f1, f2), math.atan2(-f0, math.hypot(f1, f2))
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    for j in range(3):
        R[0, j] = cp * M[0, j] + sp * (sr * M[1, j] + cr * M[2, j])
        R[1, j] = cr * M[1, j] - sr * M[2, j]
        R[2, j] = cp * (sr * M[1, j] + cr * M[2, j]) - sp * M[0, j]
    x[:] = 0.0
    b[:] = 0.0
    x[1, 0] = cp * arm[0] + sp * (sr * arm[1] + cr * arm[2])
    x[1, 1] = cr * arm[1] - sr * arm[2]
    x[1, 2] = cp * (sr * arm[1] + cr * arm[2]) - sp * arm[0]
    start_covariance(x, P, std)
    return True
