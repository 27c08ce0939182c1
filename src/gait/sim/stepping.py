"""What happens every millisecond, compiled: record the state and set the motor torques."""

from __future__ import annotations

import numpy as np

from gait import lie
from gait._compile import compiled
from gait.arrays import Array
from gait.robot.kinematics import calf_rate, fk_jacobian, foot_velocity

_A1, _A2, _A3 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"

# Columns of the record.
POS, QUAT, VEL, OMEGA = slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 13)
Q, DQ, Q_DES, TAU = slice(13, 25), slice(25, 37), slice(37, 49), slice(49, 61)
FORCE, BASE_TOUCH, COMMAND, GAIT = slice(61, 73), 73, slice(74, 77), 77
WIDTH = 78
CONTACT_FORCE = 1.0
"""Newtons above which a foot truly bears on the ground."""


@compiled(f"void(int64, {_A1}, {_A1}, {_A1}, {_A2}, {_A2}, float64, {_A1}, {_A1}, {_A1}, {_A2})")
def actuate(
    row: int,
    qpos: Array,
    qvel: Array,
    sensors: Array,
    q_des: Array,
    motors: Array,
    response: float,
    note: Array,
    torque: Array,
    ctrl: Array,
    record: Array,
) -> None:
    """Record the present state and set the joint torques: tau = strength (kp (q_des - q) - kd dq), limited and lagged.

    `note` is the command and the gait to write down. Sensor values are those of the state before the last step, so
    contact forces go to the row before this one.
    """
    out = record[row]
    for i in range(7):
        out[i] = qpos[i]
    for i in range(6):
        out[7 + i] = qvel[i]
    joints = q_des.shape[0] * 3
    for i in range(joints):
        q, dq = qpos[7 + i], qvel[6 + i]
        target = q_des[i // 3, i % 3]
        tau = motors[0, i] * (target - q) - motors[1, i] * dq
        tau = motors[2, i] * min(max(tau, -motors[3, i]), motors[3, i])
        torque[i] += response * (tau - torque[i])
        ctrl[i] = torque[i]
        out[13 + i], out[25 + i], out[37 + i], out[49 + i] = q, dq, target, torque[i]
    for i in range(4):
        out[74 + i] = note[i]
    before = record[max(row - 1, 0)]
    before[73] = sensors[0]
    for i in range(12):
        before[61 + i] = -sensors[1 + i]


@compiled(f"float64(int64, {_A1}, {_A1}, {_A2})")
def note_state(row: int, qpos: Array, qvel: Array, record: Array) -> float:
    """Record the present state; returns the cosine of the tilt, 1 when upright."""
    out = record[row]
    for i in range(7):
        out[i] = qpos[i]
    for i in range(6):
        out[7 + i] = qvel[i]
    for i in range(12):
        out[13 + i], out[25 + i] = qpos[7 + i], qvel[6 + i]
    return float(1.0 - 2.0 * (qpos[4] * qpos[4] + qpos[5] * qpos[5]))


@compiled(f"void({_A3}, {_A2}, float64, {_A2}, {_A3}, {_A3})")
def feet_of_rows(offsets: Array, signs: Array, radius: float, record: Array, place: Array, velocity: Array) -> None:
    """Feet (N, L, 3) and the velocities of their lowest material points (N, L, 3), in the world frame."""
    legs = offsets.shape[0]
    R = np.empty((3, 3))
    feet, jac = np.empty((legs, 3)), np.empty((legs, 3, 3))
    moving, spin = np.empty(3), np.empty(3)
    for k in range(record.shape[0]):
        row = record[k]
        lie.rotation_from_quat_into(row[3:7], R)
        q, dq, gyro = row[13 : 13 + 3 * legs].reshape(legs, 3), row[25 : 25 + 3 * legs].reshape(legs, 3), row[10:13]
        fk_jacobian(offsets, signs, q, feet, jac)
        for leg in range(legs):
            foot_velocity(jac[leg], dq[leg], gyro, feet[leg], moving)
            calf_rate(signs, leg, q[leg], dq[leg], gyro, spin)
            # omega x (0, 0, -radius) in the world frame, for the point below the centre.
            wx = R[0, 0] * spin[0] + R[0, 1] * spin[1] + R[0, 2] * spin[2]
            wy = R[1, 0] * spin[0] + R[1, 1] * spin[1] + R[1, 2] * spin[2]
            for i in range(3):
                place[k, leg, i] = row[i] + R[i, 0] * feet[leg, 0] + R[i, 1] * feet[leg, 1] + R[i, 2] * feet[leg, 2]
                velocity[k, leg, i] = row[7 + i] + R[i, 0] * moving[0] + R[i, 1] * moving[1] + R[i, 2] * moving[2]
            velocity[k, leg, 0] -= wy * radius
            velocity[k, leg, 1] += wx * radius
