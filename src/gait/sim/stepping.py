"""What happens every millisecond, compiled: record the state and set the motor torques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.sim.kernels import Legs, calf_rate, compiled, feet_of, foot_velocity, rotate, rotation_from_quat, transform

# Columns of the record.
POS, QUAT, VEL, OMEGA = slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 13)
Q, DQ, Q_DES, TAU = slice(13, 25), slice(25, 37), slice(37, 49), slice(49, 61)
FORCE, BASE_TOUCH, COMMAND, GAIT = slice(61, 73), 73, slice(74, 77), 77
WIDTH = 78
RECORDED = {
    "pos_w": POS, "quat_wb_wxyz": QUAT, "vel_w": VEL, "omega_b": OMEGA, "q": Q, "dq": DQ, "q_des": Q_DES, "tau": TAU,
    "foot_force_w": FORCE, "command": COMMAND,
}  # fmt: skip
"""Columns by the name of the array in `gait.sim.episode.RawEpisode`."""
CONTACT_FORCE = 1.0
"""Newtons above which a foot truly bears on the ground."""


class Motors(NamedTuple):
    """The drives of all joints."""

    kp: float
    kd: float
    strength: float
    """Torque that acts relative to the torque that is asked for."""
    limit: Array
    """Torque limits (J,)."""
    response: float
    """Share of the way to the wanted torque in a millisecond; 1 has no lag."""
    torque: Array
    """Torques that act now (J,); updated."""


class Physics(NamedTuple):
    """Views of MuJoCo's state."""

    qpos: Array
    qvel: Array
    sensors: Array
    """Whether the base touches anything, then the contact forces of the feet (3 L)."""
    ctrl: Array


@compiled
def actuate(row: int, data: Physics, q_des: Array, motors: Motors, note: Array, record: Array) -> None:
    """Record the present state and set the joint torques: tau = strength (kp (q_des - q) - kd dq), limited and lagged.

    `note` is the command and the gait to write down. Sensor values are those of the state before the last step, so
    contact forces go to the row before this one.
    """
    note_state(row, data, record)
    out = record[row]
    for i in range(motors.limit.size):
        target, limit = q_des[i // 3, i % 3], motors.limit[i]
        tau = motors.kp * (target - data.qpos[7 + i]) - motors.kd * data.qvel[6 + i]
        tau = motors.strength * min(max(tau, -limit), limit)
        motors.torque[i] += motors.response * (tau - motors.torque[i])
        data.ctrl[i] = motors.torque[i]
        out[37 + i], out[49 + i] = target, motors.torque[i]
    out[74:78] = note
    before = record[max(row - 1, 0)]
    before[73] = data.sensors[0]
    before[61:73] = -data.sensors[1:13]


@compiled
def note_state(row: int, data: Physics, record: Array) -> float:
    """Record the present state; returns the cosine of the tilt, 1 when upright."""
    qpos, qvel, out = data.qpos, data.qvel, record[row]
    out[:7], out[7:13], out[13:25], out[25:37] = qpos[:7], qvel[:6], qpos[7:19], qvel[6:18]
    return float(1.0 - 2.0 * (qpos[4] * qpos[4] + qpos[5] * qpos[5]))


@compiled
def feet_of_rows(legs: Legs, radius: float, record: Array, place: Array, velocity: Array) -> None:
    """Feet (N, L, 3) and the velocities of their lowest material points (N, L, 3), in the world frame."""
    count = legs.offsets.shape[0]
    feet, jac = np.empty((count, 3)), np.empty((count, 3, 3))
    for k in range(record.shape[0]):
        row = record[k]
        R, gyro = rotation_from_quat(row[3:7]), row[10:13]
        q, dq = row[13 : 13 + 3 * count].reshape(count, 3), row[25 : 25 + 3 * count].reshape(count, 3)
        feet_of(legs, q, feet, jac)
        for leg in range(count):
            place[k, leg] = transform(R, row[:3], feet[leg])
            velocity[k, leg] = transform(R, row[7:10], foot_velocity(jac[leg], dq[leg], gyro, feet[leg]))
            # omega x (0, 0, -radius) in the world frame, for the point below the centre.
            spin = rotate(R, calf_rate(legs.signs[leg], q[leg], dq[leg], gyro))
            velocity[k, leg, 0] -= spin[1] * radius
            velocity[k, leg, 1] += spin[0] * radius
