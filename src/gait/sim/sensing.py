"""The compiled step of the sensors: one row of truth in, one sample out after every second row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait import lie
from gait._compile import compiled
from gait.arrays import Array

GRAVITY = 9.81
PHYSICS_DT = 0.001
"""Time between two rows of truth, s."""
STRIDE = 2
"""Rows of truth to one sample: 500 Hz."""
SAMPLE_DT = STRIDE * PHYSICS_DT
IMU_DRAWS = 12
"""Standard normal numbers that one sample uses."""


class Settings(NamedTuple):
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
    """Share of the newest difference in the velocity; 0 means the true velocity."""
    velocity_resolution: float
    torque_resolution: float
    imu_delay: int
    joint_delay: int


class State(NamedTuple):
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


@compiled()
def _round_to(value: float, step: float) -> float:
    return value if step <= 0.0 else math.floor(value / step + 0.5) * step


@compiled()
def _imu_pose(s: Settings, quat: Array, vel_w: Array, omega_b: Array) -> tuple[Array, Array]:
    """Orientation (3, 3) and world velocity (3,) of the IMU from those of the base."""
    R_wb = lie.rotation_from_quat(quat)
    w, r = omega_b, s.lever
    swing = np.array([w[1] * r[2] - w[2] * r[1], w[2] * r[0] - w[0] * r[2], w[0] * r[1] - w[1] * r[0]])
    return R_wb @ s.R_bs, vel_w + R_wb @ swing


@compiled()
def _inertial(s: Settings, m: State, R: Array, v: Array, draws: Array, out: Array) -> None:
    """The average rate and specific force since the last sample, with the sensor's errors, in its own axes (6,)."""
    turn = lie.so3_log(np.ascontiguousarray(m.R.T) @ R)
    force_w = (v - m.v) / SAMPLE_DT
    force_w[2] += GRAVITY
    exact = np.empty((2, 3))
    exact[0] = turn / SAMPLE_DT
    exact[1] = lie.so3_left_jacobian_inverse(turn) @ (np.ascontiguousarray(m.R.T) @ force_w)
    m.R[:] = R
    m.v[:] = v
    for i in range(2):
        for j in range(3):
            value = exact[i, j] + m.bias[i, j] + s.noise[i] * draws[3 * i + j]
            out[3 * i + j] = min(max(value, -s.limit[i]), s.limit[i])
            m.bias[i, j] += s.walk[i] * draws[6 + 3 * i + j]


@compiled()
def start(s: Settings, m: State, quat: Array, vel_w: Array, omega_b: Array, q: Array, dq: Array) -> None:
    """Row 0: the state before the first interval."""
    R, v = _imu_pose(s, quat, vel_w, omega_b)
    m.R[:] = R
    m.v[:] = v
    m.rate[:] = dq
    for j in range(q.size):
        m.reading[j] = _round_to(q[j] + s.offset[j], s.resolution[j])


@compiled()
def advance(
    s: Settings,
    m: State,
    row: int,
    quat: Array,
    vel_w: Array,
    omega_b: Array,
    q: Array,
    dq: Array,
    tau: Array,
    draws: Array,
    imu: Array,
    joints: Array,
) -> bool:
    """Take row number `row` (1, 2, ...) of truth; True if a sample is complete, then in `imu` (6,) and `joints` (3 J,).

    Readings older than the first sample do not exist: until the delay is over, the first one is repeated.
    """
    count = q.size
    for j in range(count):
        reading = _round_to(q[j] + s.offset[j], s.resolution[j])
        if s.smoothing > 0.0:
            m.rate[j] += s.smoothing * ((reading - m.reading[j]) / PHYSICS_DT - m.rate[j])
        else:
            m.rate[j] = dq[j]
        m.reading[j] = reading
    if row % STRIDE != 0:
        return False
    sample = row // STRIDE - 1
    slot = sample % m.imu_line.shape[0]
    R, v = _imu_pose(s, quat, vel_w, omega_b)
    _inertial(s, m, R, v, draws, m.imu_line[slot])
    imu[:] = m.imu_line[max(sample - s.imu_delay, 0) % m.imu_line.shape[0]]
    slot = sample % m.joint_line.shape[0]
    for j in range(count):
        m.joint_line[slot, j] = m.reading[j]
        m.joint_line[slot, count + j] = _round_to(m.rate[j], s.velocity_resolution)
        m.joint_line[slot, 2 * count + j] = _round_to(tau[j] * s.torque_gain[j], s.torque_resolution)
    joints[:] = m.joint_line[max(sample - s.joint_delay, 0) % m.joint_line.shape[0]]
    return True


@compiled()
def advance_all(
    s: Settings,
    m: State,
    quat: Array,
    vel_w: Array,
    omega_b: Array,
    q: Array,
    dq: Array,
    tau: Array,
    draws: Array,
    imu: Array,
    joints: Array,
) -> None:
    """All rows of an episode; row 0 only starts the sensors."""
    start(s, m, quat[0], vel_w[0], omega_b[0], q[0], dq[0])
    for row in range(1, q.shape[0]):
        k = (row - 1) // STRIDE
        advance(s, m, row, quat[row], vel_w[row], omega_b[row], q[row], dq[row], tau[row], draws[k], imu[k], joints[k])
