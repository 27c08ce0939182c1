"""The compiled step of the sensors: one row of ground truth in, one sample out after every second row.

A row is what `truth_rows` puts side by side: orientation wxyz, velocity in the world frame, angular velocity in the
base frame, joint angles, joint velocities and joint torques.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.sim.compiled import compiled
from gait.sim.rotation_kernels import (  # fmt: skip
    product,
    rotate,
    rotate_inverse,
    rotation_from_quat,
    so3_left_jacobian_inverse,
    so3_log,
    transform,
)

GRAVITY = 9.81
PHYSICS_DT = 0.001
"""Time between two rows of ground truth, s."""
STRIDE = 2
"""Rows of ground truth to one sample: 500 Hz."""
SAMPLE_DT = STRIDE * PHYSICS_DT
IMU_DRAWS = 12
"""Standard normal numbers that one sample uses."""


class SensorSettings(NamedTuple):
    """The configuration in the form the compiled step takes; joint arrays are (J,)."""

    lever: Array
    """Position of the IMU in the base (3,)."""
    R_bs: Array
    """True axes of the IMU in the base (3, 3)."""
    noise: Array
    """Standard deviation of gyro and accelerometer noise in one sample (2,)."""
    walk: Array
    """Standard deviation of a bias step (2,)."""
    limit: Array
    """Saturation (2,)."""
    offset: Array
    resolution: Array
    torque_gain: Array
    smoothing: float
    """Share of the newest difference in the velocity; 0 takes the true velocity."""
    velocity_resolution: float
    torque_resolution: float
    imu_delay: int
    joint_delay: int


class SensorState(NamedTuple):
    """What the sensors remember; changed in place."""

    R: Array
    """Orientation of the IMU at the last sample (3, 3)."""
    v: Array
    """Velocity of the IMU at the last sample (3,)."""
    bias: Array
    """Gyro and accelerometer bias (2, 3)."""
    reading: Array
    """Angle readings one row ago (J,)."""
    rate: Array
    """Filtered velocity (J,)."""
    imu_line: Array
    """Readings on their way (delay + 1, 6), newest at `count` modulo its length."""
    joint_line: Array
    """The same for angle, velocity and torque (delay + 1, 3 J)."""


def truth_rows(*arrays: Array) -> Array:
    """quat_wb_wxyz, vel_w, omega_b, q, dq and tau side by side (..., 10 + 3 J)."""
    return np.concatenate(arrays, axis=-1, dtype=np.float64)


@compiled
def _round_to(value: float, step: float) -> float:
    return value if step <= 0.0 else math.floor(value / step + 0.5) * step


@compiled
def _imu_pose(s: SensorSettings, row: Array) -> tuple[Array, Array]:
    """Orientation (3, 3) and world velocity (3,) of the IMU."""
    R_wb, w, r = rotation_from_quat(row[:4]), row[7:10], s.lever
    swing = np.array([w[1] * r[2] - w[2] * r[1], w[2] * r[0] - w[0] * r[2], w[0] * r[1] - w[1] * r[0]])
    return product(R_wb, s.R_bs), transform(R_wb, row[4:7], swing)


@compiled
def _inertial(s: SensorSettings, m: SensorState, row: Array, draws: Array, out: Array) -> None:
    """The average rate and specific force since the last sample, with the sensor's errors, in its own axes (6,)."""
    R, v = _imu_pose(s, row)
    angle = so3_log(product(m.R.T, R))
    force_w = (v - m.v) / SAMPLE_DT
    force_w[2] += GRAVITY
    out[:3] = angle / SAMPLE_DT
    out[3:] = rotate(so3_left_jacobian_inverse(angle), rotate_inverse(m.R, force_w))
    m.v[:], m.R[:] = v, R
    for i in range(6):
        kind, axis = i // 3, i % 3
        value = out[i] + m.bias[kind, axis] + s.noise[kind] * draws[i]
        out[i] = min(max(value, -s.limit[kind]), s.limit[kind])
        m.bias[kind, axis] += s.walk[kind] * draws[6 + i]


@compiled
def start(s: SensorSettings, m: SensorState, row: Array) -> None:
    """Row 0: the state before the first interval."""
    count = s.offset.size
    R, v = _imu_pose(s, row)
    m.R[:], m.v[:] = R, v
    for j in range(count):
        m.rate[j] = row[10 + count + j]
        m.reading[j] = _round_to(row[10 + j] + s.offset[j], s.resolution[j])


@compiled
def advance(
    s: SensorSettings, m: SensorState, number: int, row: Array, draws: Array, imu: Array, joints: Array
) -> bool:
    """Take row `number` (1, 2, ...); True if a sample is complete, then in `imu` (6,) and `joints` (3 J,).

    Readings older than the first sample do not exist: until the delay is over, the first one is repeated.
    """
    count = s.offset.size
    q, dq, tau = row[10 : 10 + count], row[10 + count : 10 + 2 * count], row[10 + 2 * count :]
    for j in range(count):
        reading = _round_to(q[j] + s.offset[j], s.resolution[j])
        if s.smoothing > 0.0:
            m.rate[j] += s.smoothing * ((reading - m.reading[j]) / PHYSICS_DT - m.rate[j])
        else:
            m.rate[j] = dq[j]
        m.reading[j] = reading
    if number % STRIDE != 0:
        return False
    sample = number // STRIDE - 1
    _inertial(s, m, row, draws, m.imu_line[sample % m.imu_line.shape[0]])
    imu[:] = m.imu_line[max(sample - s.imu_delay, 0) % m.imu_line.shape[0]]
    line = m.joint_line[sample % m.joint_line.shape[0]]
    for j in range(count):
        line[j] = m.reading[j]
        line[count + j] = _round_to(m.rate[j], s.velocity_resolution)
        line[2 * count + j] = _round_to(tau[j] * s.torque_gain[j], s.torque_resolution)
    joints[:] = m.joint_line[max(sample - s.joint_delay, 0) % m.joint_line.shape[0]]
    return True


@compiled
def advance_all(s: SensorSettings, m: SensorState, rows: Array, draws: Array, imu: Array, joints: Array) -> None:
    """All rows of an episode; row 0 only starts the sensors."""
    start(s, m, rows[0])
    for number in range(1, rows.shape[0]):
        k = (number - 1) // STRIDE
        advance(s, m, number, rows[number], draws[k], imu[k], joints[k])
