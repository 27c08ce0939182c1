"""What a leg measures of the body, in numbers that mean the same on every robot: the inputs of `gait-legs`.

A leg whose foot stands still measures the velocity of the body by itself, v = -(J dq + w x p), plus what a round foot
rolls. Beside it stand the features that tell how informative it is: position of the foot, in lengths of the leg, and
the ground force, in weights of the robot. core/legs.c computes them, for training and running alike.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.binding import core, doubles, pointer
from gait.core_config import core_robot
from gait.errors import GaitError
from gait.parameters import Options
from gait.robot import Robot

if TYPE_CHECKING:
    from gait.log.log import Log

SHARED = 6
"""Numbers of a sample that all legs share: angular rate and specific force in base axes."""
POSITION, VELOCITY, FORCE, FOOT_ACCEL = 0, 3, 6, 9
"""Where foot position, measured velocity and ground force begin among those of a leg; then the acceleration of the foot
by the joints, m/s^2, which no network reads: what is read late is off by as much."""
PER_LEG = 12
REACH = 0.1
"""How far one unit of the network's output shifts a velocity, m/s: it begins with small corrections."""


def leg_features(log: Log, robot: Robot, delay: float | None = None) -> Array:
    """Features (N, 6 + 12 L) of a Log whose joints have the robot's order.

    Args:
        log: the samples.
        robot: whose they are.
        delay: latency of the joints, s; the usual one by default.

    Raises:
        GaitError: if the log has neither torques nor targets, which tell the ground force.
    """
    described = core_robot(robot)
    late = Options().joint_delay if delay is None else delay
    out = np.empty((len(log), SHARED + PER_LEG * robot.num_legs))
    dt = np.diff(log.t, prepend=log.t[0] - 1.0 / log.rate)
    arrays = [doubles(a) for a in (log.gyro, log.accel, log.q, log.dq, joint_torques(log, robot), dt)]
    at = ctypes.addressof(described)
    core().gait_leg_features(at, late, len(log), *map(pointer, arrays), pointer(out))
    return out


def joint_torques(log: Log, robot: Robot) -> Array:
    """Measured torques (N, J), or what the joints' PD loops make of the targets."""
    if log.tau is not None:
        return np.asarray(log.tau)
    if log.q_des is None:
        raise GaitError(
            "the log has neither joint torques nor joint targets, which this network reads: record one of them, or use"
            " a model without (gait-legs-kinematic-0)"
        )
    wanted = robot.kp * (log.q_des - log.q) - robot.kd * log.dq
    return np.clip(wanted, -robot.torque_limit, robot.torque_limit)


def flipped(vectors: int) -> list[bool]:
    """Which numbers change their sign in a mirror: rates about x and z, and whatever lies along y.

    Args:
        vectors: how many of legs stand behind angular rate and specific force.
    """
    return [True, False, True, *[False, True, False] * (1 + vectors)]
