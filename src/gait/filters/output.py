"""From the state of a filter, whose body is the IMU, to one row of numbers about base_link."""

from __future__ import annotations

import math

from gait import lie
from gait._compile import kernel
from gait.arrays import AnyArray, Array
from gait.log.trajectory import Trajectory

QUAT, VEL_W, POS_W, VEL_B, GYRO_BIAS, ACCEL_BIAS, VEL_COV, POSE_COV = 0, 4, 7, 10, 13, 16, 19, 28
"""Where each part of a row begins."""
WIDTH = POSE_COV + 36
"""Numbers in a row."""
_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"


@kernel(f"void({_A2}, {_A2}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1})")
def write_row(
    R: Array, x: Array, b: Array, P: Array, imu_rotation: Array, imu_position: Array, gyro: Array, scratch: Array,
    row: Array,
) -> None:  # fmt: skip
    """The state of base_link.

    Args:
        R, x, b, P: orientation, vectors, biases and covariance of the filter; see `layout.py`.
        imu_rotation: IMU axes in the base frame (3, 3).
        imu_position: IMU in the base frame (3,).
        gyro: angular rate as measured (3,); one that is not finite counts as no turning.
        scratch: nine numbers.
        row: what is filled (WIDTH,).
    """
    Rbi, arm = imu_rotation, imu_position
    Rwb = scratch[0:9].reshape(3, 3)
    w0 = w1 = w2 = 0.0
    for j in range(3):
        rate = gyro[j] - b[0, j]
        w0 += Rbi[0, j] * rate
        w1 += Rbi[1, j] * rate
        w2 += Rbi[2, j] * rate
    if not math.isfinite(w0 + w1 + w2):
        w0 = w1 = w2 = 0.0
    l0, l1, l2 = w1 * arm[2] - w2 * arm[1], w2 * arm[0] - w0 * arm[2], w0 * arm[1] - w1 * arm[0]
    for i in range(3):
        for j in range(3):
            Rwb[i, j] = R[i, 0] * Rbi[j, 0] + R[i, 1] * Rbi[j, 1] + R[i, 2] * Rbi[j, 2]
    lie.quat_from_rotation_into(Rwb, row[QUAT : QUAT + 4])
    for i in range(3):
        row[VEL_W + i] = x[0, i] - (Rwb[i, 0] * l0 + Rwb[i, 1] * l1 + Rwb[i, 2] * l2)
        row[POS_W + i] = x[1, i] - (Rwb[i, 0] * arm[0] + Rwb[i, 1] * arm[1] + Rwb[i, 2] * arm[2])
        row[GYRO_BIAS + i], row[ACCEL_BIAS + i] = b[0, i], b[1, i]
    for i in range(3):
        row[VEL_B + i] = Rwb[0, i] * row[VEL_W] + Rwb[1, i] * row[VEL_W + 1] + Rwb[2, i] * row[VEL_W + 2]
        p0 = P[3, 3] * Rwb[0, i] + P[3, 4] * Rwb[1, i] + P[3, 5] * Rwb[2, i]
        p1 = P[4, 3] * Rwb[0, i] + P[4, 4] * Rwb[1, i] + P[4, 5] * Rwb[2, i]
        p2 = P[5, 3] * Rwb[0, i] + P[5, 4] * Rwb[1, i] + P[5, 5] * Rwb[2, i]
        for j in range(3):
            row[VEL_COV + 3 * j + i] = Rwb[0, j] * p0 + Rwb[1, j] * p1 + Rwb[2, j] * p2
    # Position error = xi_p + xi_R x p, rotation error = xi_R: rows, then columns.
    pose = row[POSE_COV : POSE_COV + 36].reshape(6, 6)
    q0, q1, q2 = row[POS_W], row[POS_W + 1], row[POS_W + 2]
    for i in range(3):
        for j in range(3):
            pose[i, j], pose[i, 3 + j] = P[6 + i, 6 + j], P[6 + i, j]
            pose[3 + i, j], pose[3 + i, 3 + j] = P[i, 6 + j], P[i, j]
    for j in range(6):
        pose[0, j] += pose[4, j] * q2 - pose[5, j] * q1
        pose[1, j] += pose[5, j] * q0 - pose[3, j] * q2
        pose[2, j] += pose[3, j] * q1 - pose[4, j] * q0
    for i in range(6):
        pose[i, 0] += pose[i, 4] * q2 - pose[i, 5] * q1
        pose[i, 1] += pose[i, 5] * q0 - pose[i, 3] * q2
        pose[i, 2] += pose[i, 3] * q1 - pose[i, 4] * q0


def trajectory_of(t: Array, rows: Array, health: AnyArray, source: str) -> Trajectory:
    """A Trajectory from the rows (N, WIDTH or more) of a whole log."""

    def part(start: int, *shape: int) -> Array:
        return rows[:, start : start + math.prod(shape)].reshape(-1, *shape)

    return Trajectory(
        t=t,
        quat_wb_wxyz=part(QUAT, 4),
        vel_w=part(VEL_W, 3),
        pos_w=part(POS_W, 3),
        vel_b=part(VEL_B, 3),
        gyro_bias=part(GYRO_BIAS, 3),
        accel_bias=part(ACCEL_BIAS, 3),
        vel_cov=part(VEL_COV, 3, 3),
        pose_cov=part(POSE_COV, 6, 6),
        health=health,
        source=source,
    )
