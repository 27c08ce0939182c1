"""The compiled step of the sensors: one row of truth in, one sample out after every second row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait import lie
from gait._compile import compiled, types
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


_ROW, _TABLE = np.zeros(1), np.zeros((1, 1))
# Instances whose types are those that the functions below are compiled for.
_S = types.typeof(Settings(_ROW, _TABLE, _ROW, _ROW, _ROW, _ROW, _ROW, _ROW, 0.0, 0.0, 0.0, 0, 0))
_M = types.typeof(State(_TABLE, _ROW, _TABLE, _ROW, _ROW, _TABLE, _TABLE))
_A1, _A2 = types.float64[::1], types.float64[:, ::1]


@compiled("float64(float64, float64)")
def _round_to(value: float, step: float) -> float:
    return value if step <= 0.0 else math.floor(value / step + 0.5) * step


@compiled(types.void(_S, _A1, _A1, _A1, _A2, _A1))
def _imu_pose(s: Settings, quat: Array, vel_w: Array, omega_b: Array, R: Array, v: Array) -> None:
    """Orientation (3, 3) and world velocity (3,) of the IMU from those of the base, written into `R` and `v`."""
    R_wb = lie.rotation_from_quat(quat)
    w, r = omega_b, s.lever
    x, y, z = w[1] * r[2] - w[2] * r[1], w[2] * r[0] - w[0] * r[2], w[0] * r[1] - w[1] * r[0]
    for i in range(3):
        v[i] = vel_w[i] + R_wb[i, 0] * x + R_wb[i, 1] * y + R_wb[i, 2] * z
        for j in range(3):
            R[i, j] = R_wb[i, 0] * s.R_bs[0, j] + R_wb[i, 1] * s.R_bs[1, j] + R_wb[i, 2] * s.R_bs[2, j]


@compiled(types.void(_S, _M, _A1, _A1, _A1, _A1, _A1))
def _inertial(s: Settings, m: State, quat: Array, vel_w: Array, omega_b: Array, draws: Array, out: Array) -> None:
    """The average rate and specific force since the last sample, with the sensor's errors, in its own axes (6,)."""
    R, v, turn = np.empty((3, 3)), np.empty(3), np.empty((3, 3))
    _imu_pose(s, quat, vel_w, omega_b, R, v)
    for i in range(3):
        for j in range(3):
            turn[i, j] = m.R[0, i] * R[0, j] + m.R[1, i] * R[1, j] + m.R[2, i] * R[2, j]
    angle = lie.so3_log(turn)
    inverse = lie.so3_left_jacobian_inverse(angle)
    x, y, z = (v[0] - m.v[0]) / SAMPLE_DT, (v[1] - m.v[1]) / SAMPLE_DT, (v[2] - m.v[2]) / SAMPLE_DT + GRAVITY
    force = np.empty(3)
    for i in range(3):
        force[i] = m.R[0, i] * x + m.R[1, i] * y + m.R[2, i] * z
    for i in range(3):
        out[i] = angle[i] / SAMPLE_DT
        out[3 + i] = inverse[i, 0] * force[0] + inverse[i, 1] * force[1] + inverse[i, 2] * force[2]
        m.v[i] = v[i]
        for j in range(3):
            m.R[i, j] = R[i, j]
    for i in range(6):
        kind, axis = i // 3, i % 3
        value = out[i] + m.bias[kind, axis] + s.noise[kind] * draws[i]
        out[i] = min(max(value, -s.limit[kind]), s.limit[kind])
        m.bias[kind, axis] += s.walk[kind] * draws[6 + i]


@compiled(types.void(_S, _M, _A1, _A1, _A1, _A1, _A1))
def start(s: Settings, m: State, quat: Array, vel_w: Array, omega_b: Array, q: Array, dq: Array) -> None:
    """Row 0: the state before the first interval."""
    _imu_pose(s, quat, vel_w, omega_b, m.R, m.v)
    for j in range(q.size):
        m.rate[j] = dq[j]
        m.reading[j] = _round_to(q[j] + s.offset[j], s.resolution[j])


@compiled(types.boolean(_S, _M, types.int64, _A1, _A1, _A1, _A1, _A1, _A1, _A1, _A1, _A1))
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
    _inertial(s, m, quat, vel_w, omega_b, draws, m.imu_line[sample % m.imu_line.shape[0]])
    old = max(sample - s.imu_delay, 0) % m.imu_line.shape[0]
    for i in range(6):
        imu[i] = m.imu_line[old, i]
    slot = sample % m.joint_line.shape[0]
    for j in range(count):
        m.joint_line[slot, j] = m.reading[j]
        m.joint_line[slot, count + j] = _round_to(m.rate[j], s.velocity_resolution)
        m.joint_line[slot, 2 * count + j] = _round_to(tau[j] * s.torque_gain[j], s.torque_resolution)
    old = max(sample - s.joint_delay, 0) % m.joint_line.shape[0]
    for j in range(3 * count):
        joints[j] = m.joint_line[old, j]
    return True


@compiled(types.void(_S, _M, _A2, _A2, _A2, _A2, _A2, _A2, _A2, _A2, _A2))
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
