"""What happens every millisecond, compiled: record the state and set the motor torques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array, IntArray
from gait.sim.kernels import Legs, calf_rate, compiled, feet_of, foot_velocity, rotate, rotation_from_quat, transform

POS, QUAT, VEL, OMEGA = slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 13)
"""Columns of the base in a row of the record; `Columns` has the others."""


class Columns:
    """Columns of the joints, the feet and the command in a row of the record."""

    def __init__(self, joints: int = 12, feet: int = 4) -> None:
        q = 13
        self.q, self.dq, self.q_des, self.tau = (slice(q + k * joints, q + (k + 1) * joints) for k in range(4))
        force = q + 4 * joints
        self.force, self.touch = slice(force, force + 3 * feet), force + 3 * feet
        self.command, self.gait = slice(self.touch + 1, self.touch + 4), self.touch + 4
        self.width = self.gait + 1

    def recorded(self) -> dict[str, slice]:
        """Columns by the name of the array in `gait.sim.episode.RawEpisode`."""
        base = {"pos_w": POS, "quat_wb_wxyz": QUAT, "vel_w": VEL, "omega_b": OMEGA}
        joints = {name: getattr(self, name) for name in ("q", "dq", "q_des", "tau")}
        return {**base, **joints, "foot_force_w": self.force, "command": self.command}


CONTACT_FORCE = 1.0
"""Newtons above which a foot truly bears on the ground."""


class Motors(NamedTuple):
    """The drives of all joints."""

    kp: Array
    """Position gains (J,)."""
    kd: Array
    """Velocity gains (J,)."""
    strength: float
    """Torque that acts relative to the torque that is asked for."""
    limit: Array
    """Torque limits (J,)."""
    response: float
    """Share of the way to the wanted torque in a millisecond; 1 has no lag."""
    torque: Array
    """Torques that act now (J,); updated."""


class Physics(NamedTuple):
    """Views of MuJoCo's state, and where in it the joints of the record are."""

    qpos: Array
    qvel: Array
    sensors: Array
    """Whether the base touches anything, then the contact forces of the feet (3 L)."""
    ctrl: Array
    qpos_at: IntArray
    """Places of the joints (J,)."""
    qvel_at: IntArray
    ctrl_at: IntArray


@compiled
def actuate(row: int, data: Physics, q_des: Array, motors: Motors, note: Array, record: Array) -> None:
    """Record the present state and set the joint torques: tau = strength (kp (q_des - q) - kd dq), limited and lagged.

    `q_des` are the targets (J,), `note` is the command and the gait to write down. Sensor values are those of the state
    before the last step, so contact forces go to the row before this one.
    """
    note_state(row, data, record)
    out, count = record[row], motors.limit.size
    for i in range(count):
        target, limit = q_des[i], motors.limit[i]
        tau = motors.kp[i] * (target - data.qpos[data.qpos_at[i]]) - motors.kd[i] * data.qvel[data.qvel_at[i]]
        tau = motors.strength * min(max(tau, -limit), limit)
        motors.torque[i] += motors.response * (tau - motors.torque[i])
        data.ctrl[data.ctrl_at[i]] = motors.torque[i]
        out[13 + 2 * count + i], out[13 + 3 * count + i] = target, motors.torque[i]
    touch = record.shape[1] - 5
    out[touch + 1 :] = note
    before = record[max(row - 1, 0)]
    before[touch] = data.sensors[0]
    force = 13 + 4 * count
    before[force:touch] = -data.sensors[1 : 1 + touch - force]


@compiled
def note_state(row: int, data: Physics, record: Array) -> float:
    """Record the present state; returns the cosine of the tilt, 1 when upright."""
    qpos, qvel, out, count = data.qpos, data.qvel, record[row], data.qpos_at.size
    out[:7], out[7:13] = qpos[:7], qvel[:6]
    for i in range(count):
        out[13 + i], out[13 + count + i] = qpos[data.qpos_at[i]], qvel[data.qvel_at[i]]
    return float(1.0 - 2.0 * (qpos[4] * qpos[4] + qpos[5] * qpos[5]))


@compiled
def feet_of_rows(legs: Legs, radius: float, record: Array, place: Array, velocity: Array) -> None:
    """Feet (N, L, 3) and the velocities of their lowest material points (N, L, 3), in the world frame."""
    count = legs.offsets.shape[0]
    feet, jac = np.empty((count, 3)), np.empty((count, 3, 3))
    for k in range(record.shape[0]):
        row = record[k]
        R, gyro = rotation_from_quat(row[3:7]), row[10:13]
        q, dq = row[13 : 13 + 3 * count].reshape(count, 3), row[13 + 3 * count : 13 + 6 * count].reshape(count, 3)
        feet_of(legs, q, feet, jac)
        for leg in range(count):
            place[k, leg] = transform(R, row[:3], feet[leg])
            velocity[k, leg] = transform(R, row[7:10], foot_velocity(jac[leg], dq[leg], gyro, feet[leg]))
            # omega x (0, 0, -radius) in the world frame, for the point below the centre.
            spin = rotate(R, calf_rate(legs.signs[leg], q[leg], dq[leg], gyro))
            velocity[k, leg, 0] -= spin[1] * radius
            velocity[k, leg, 1] += spin[0] * radius
