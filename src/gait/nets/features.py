"""From a Log to the numbers that a network reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.nets.architecture import JOINTS, Architecture

if TYPE_CHECKING:
    from gait.log import Log


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
