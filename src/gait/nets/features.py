"""From a Log to the numbers that a network reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.nets.architecture import JOINTS, Architecture, LegsArchitecture

if TYPE_CHECKING:
    from gait.log.log import Log
    from gait.robot import Robot


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
    """Features (N, 6 + 12 L) of a Log as `gait-legs` reads them; forces that it does not read mean nothing."""
    # Here and not above: other networks need not wait until these are compiled.
    from gait.nets.leg_features import leg_features
    from gait.robot import Robot

    robot = robot if isinstance(robot, Robot) else Robot.load(robot)
    if robot.num_legs != architecture.legs:
        raise GaitError(f"{robot.name} has {robot.num_legs} legs and the network {architecture.legs}: use for_robot")
    log = log.reorder(robot)
    return leg_features(log if architecture.targets else log.replace(tau=np.zeros_like(log.q)), robot)
