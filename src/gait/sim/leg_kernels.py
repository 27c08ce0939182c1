"""Kinematics and inverse dynamics of the legs for compiled code: `Legs` is a robot's, an index picks the leg."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.robot import Robot, dynamics, kinematics
from gait.sim.compiled import compiled, compiled_copy


class Legs(NamedTuple):
    """The legs of a robot as compiled code takes them."""

    offsets: Array
    """Base to hip, hip to thigh, thigh to calf, calf to foot centre (L, 4, 3)."""
    signs: Array
    """+1 or -1, the direction of each joint about its axis (L, 3)."""
    knee_sign: float
    inertial: Array
    """Mass, centre of mass and inertia of each link, as in `Robot.leg_inertial` (L, 3, 10)."""
    armature: Array
    """Rotor inertias (L, 3)."""

    @staticmethod
    def of(robot: Robot) -> Legs:
        """The legs of a robot."""
        return Legs(robot.offsets, robot.signs, robot.knee_sign, robot.leg_inertial, robot.armature.reshape(-1, 3))


_forward = compiled_copy(kinematics.leg_forward)
_inverse = compiled_copy(kinematics.leg_inverse)
_calf_rate = compiled_copy(kinematics.calf_rate)
_torque = compiled_copy(dynamics.leg_torque)


@compiled
def leg_fk(legs: Legs, leg: int, q: Array, foot: Array, jac: Array) -> None:
    """Foot position (3,) and Jacobian (3, 3) of one leg, written into `foot` and `jac`."""
    p, by_hip, by_thigh, by_calf = _forward(legs.offsets[leg], legs.signs[leg], q)
    foot[0], foot[1], foot[2] = p
    jac[0, 0], jac[1, 0], jac[2, 0] = by_hip
    jac[0, 1], jac[1, 1], jac[2, 1] = by_thigh
    jac[0, 2], jac[1, 2], jac[2, 2] = by_calf


@compiled
def feet_of(legs: Legs, q: Array, feet: Array, jac: Array) -> None:
    """Feet (L, 3) and Jacobians (L, 3, 3) of all legs at joints (L, 3), written into `feet` and `jac`."""
    for leg in range(legs.offsets.shape[0]):
        leg_fk(legs, leg, q[leg], feet[leg], jac[leg])


@compiled
def foot_velocity(jac: Array, dq: Array, gyro: Array, foot: Array) -> Array:
    """Velocity of a foot relative to the base origin, in the base frame (3,): J dq + w x p."""
    out = np.empty(3)
    for i in range(3):
        out[i] = jac[i, 0] * dq[0] + jac[i, 1] * dq[1] + jac[i, 2] * dq[2]
    out[0] += gyro[1] * foot[2] - gyro[2] * foot[1]
    out[1] += gyro[2] * foot[0] - gyro[0] * foot[2]
    out[2] += gyro[0] * foot[1] - gyro[1] * foot[0]
    return out


@compiled
def calf_rate(legs: Legs, leg: int, q: Array, dq: Array, gyro: Array) -> Array:
    """Angular velocity of a leg's last link relative to the world, in the base frame (3,)."""
    return np.array(_calf_rate(legs.signs[leg], q, dq, gyro))


@compiled
def leg_ik(legs: Legs, leg: int, foot: Array, q: Array) -> bool:
    """Joint angles (3,) that put a foot at `foot` (3,) in the base frame, written into `q`; False if out of reach."""
    q[0], q[1], q[2], within = _inverse(legs.offsets[leg], legs.signs[leg], legs.knee_sign, foot)
    return bool(within)


@compiled
def leg_torque(legs: Legs, leg: int, q: Array, dq: Array, ddq: Array, gravity: Array) -> Array:
    """Joint torques (3,) of a leg that moves freely on a base that does not turn; see `gait.robot.dynamics`."""
    one = legs.offsets[leg], legs.signs[leg], legs.inertial[leg], legs.armature[leg]
    return np.array(_torque(one[0], one[1], one[2], one[3], q, dq, ddq, gravity))


def forward(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Feet (L, 3) and Jacobians (L, 3, 3) at joints (J,): `Robot.forward` in the simulator's own arithmetic."""
    feet, jac = np.empty((robot.num_legs, 3)), np.empty((robot.num_legs, 3, 3))
    feet_of(Legs.of(robot), np.array(q, dtype=np.float64).reshape(-1, 3), feet, jac)
    return feet, jac


def inverse(robot: Robot, feet: Array) -> Array:
    """Joints (L, 3) that put the feet (L, 3) where they are wanted in the base frame, or as near as legs reach."""
    legs, q = Legs.of(robot), np.empty((robot.num_legs, 3))
    for leg, foot in enumerate(np.ascontiguousarray(feet)):
        leg_ik(legs, leg, foot, q[leg])
    return q
