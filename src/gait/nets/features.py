"""From a Log to the numbers that a network reads.

Those of `gait-legs` mean the same on every robot. A leg whose foot stands still measures the velocity of the body by
itself, v = -(J dq + w x p), plus what a round foot rolls. Beside it stand the features that tell how informative it is:
position of the foot, in lengths of the leg, and the ground force, in weights of the robot. core/legs.c computes them,
for training and running alike.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.binding import core, doubles, pointer
from gait.core_config import core_robot
from gait.errors import GaitError
from gait.nets.architecture import JOINTS, Architecture, LegsArchitecture
from gait.parameters import Options
from gait.robot import Robot

if TYPE_CHECKING:
    from gait.log.log import Log

SHARED = 6
"""Numbers of a sample that all legs share: angular rate and specific force in base axes."""
POSITION, VELOCITY, FORCE, FOOT_ACCEL = 0, 3, 6, 9
"""Where foot position, measured velocity and ground force begin among those of a leg; then the acceleration of the foot
by the joints, m/s^2, which no network reads: times the latency it is the error of the velocity."""
PER_LEG = 12
REACH = 0.1
"""How far one unit of the network's output shifts a velocity, m/s: it begins with small corrections."""


def features(log: Log, architecture: Architecture, joints: Sequence[int] | None = None) -> Array:
    """Features (N, F) of a Log: gyro, accel, q, dq and, if the network reads it, q_des - q.

    Args:
        log: the samples.
        architecture: of the network.
        joints: columns of the Log in the network's order; None if it has that order.
    """
    index = list(range(log.q.shape[1]) if joints is None else joints)
    if len(index) != JOINTS * architecture.legs:
        raise GaitError(
            f"the log has {len(index)} joints and the network {JOINTS * architecture.legs}: use a model of this robot"
        )
    columns = [log.gyro, log.accel, log.q[:, index], log.dq[:, index]]
    if architecture.targets:
        if log.q_des is None:
            raise GaitError(
                "the log has no q_des, which this network reads: record the joint targets, or use a model without q_des"
            )
        columns.append((log.q_des - log.q)[:, index])
    return np.concatenate(columns, axis=1)


def physical_features(log: Log, architecture: LegsArchitecture, robot: str | Robot) -> Array:
    """Features (N, 6 + 12 L) of a Log as `gait-legs` reads them; forces that it does not read mean nothing.

    A network that reads no forces runs behind the compliance of a usual robot, and one that does behind an estimate,
    which is taken for zero here.
    """
    robot = robot if isinstance(robot, Robot) else Robot.load(robot)
    if robot.num_legs != architecture.legs:
        raise GaitError(f"{robot.name} has {robot.num_legs} legs and the network {architecture.legs}: use for_robot")
    log = log.reorder(robot)
    return leg_features(log, robot, compliance=0.0 if architecture.targets else None)


def leg_features(log: Log, robot: Robot, delay: float | None = None, compliance: float | None = 0.0) -> Array:
    """Features (N, 6 + 12 L) of a Log whose joints have the robot's order.

    Args:
        log: the samples.
        robot: whose they are.
        delay: latency of the joints, s; the usual one by default.
        compliance: of the joints, rad/(N m), which is compensated; None is that of a usual robot, without torques.

    Raises:
        GaitError: if the log has neither torques nor targets, which the ground force comes from.
    """
    described = core_robot(robot)
    late = Options().joint_delay if delay is None else delay
    out = np.empty((len(log), SHARED + PER_LEG * robot.num_legs))
    dt = np.diff(log.t, prepend=log.t[0] - 1.0 / log.rate)
    q, dq = robot.expanded(log.q), robot.expanded(log.dq)
    joints = (q, dq, np.zeros_like(q) if compliance is None else joint_torques(log, robot))
    arrays = [doubles(a) for a in (log.gyro, log.accel, *joints, dt)]
    at = ctypes.addressof(described)
    taken_off = -1.0 if compliance is None else compliance
    core().gait_leg_features(at, late, taken_off, len(log), *map(pointer, arrays), pointer(out))
    return out


def joint_torques(log: Log, robot: Robot) -> Array:
    """Measured torques (N, J), or what the joints' PD loops make of the targets."""
    if log.tau is not None:
        return robot.expanded(log.tau)
    if log.q_des is None:
        raise GaitError(
            "the log has neither joint torques nor joint targets, which this network reads: record one of them, or use"
            " a model without (gait-legs-kinematic-0)"
        )
    wanted = robot.kp * robot.expanded(log.q_des - log.q) - robot.kd * robot.expanded(log.dq)
    return np.clip(wanted, -robot.torque_limit, robot.torque_limit)


def flipped(vectors: int) -> list[bool]:
    """Which numbers change their sign in a mirror: rates about x and z, and components along y.

    Args:
        vectors: how many of legs stand behind angular rate and specific force.
    """
    return [True, False, True, *[False, True, False] * (1 + vectors)]
