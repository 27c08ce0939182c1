"""Trajectory: what an estimator (or a motion capture system) says about the body over time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntFlag
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gait import quaternions
from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.fields import AXES, TRAJECTORY_FIELDS, check_field, check_time, refuse_unknown


class Health(IntFlag):
    """Bits of `Trajectory.health`; 0 means that all is well."""

    STARTING = 1
    """The state is still being found: no gravity direction or no measurement so far."""
    TIME_GAP = 2
    """Samples were missing before this one."""
    BAD_SAMPLE = 4
    """A value was not finite or out of the sensor's range, and was not used."""
    NO_MEASUREMENT = 8
    """Nothing but the IMU moved the state: no foot on the ground, or no network output."""
    REJECTED = 16
    """A measurement was too unlikely and was not used, or was used with less weight."""
    SLIP = 32
    """A foot in contact moves."""
    DIVERGED = 64
    """The covariance or the state left the plausible range: do not trust it."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Trajectory:
    """State and covariance over time. Arrays are read-only; a field that was not given is None.

    SI units; world z is up. See `docs/log.md` for each field and for what the covariances mean.
    """

    t: Array
    """Time stamps (N,), seconds, strictly increasing."""
    quat_wb_wxyz: Array
    """Rotation from body to world (N, 4)."""
    vel_w: Array
    """Velocity of the body, world frame (N, 3), m/s."""
    pos_w: Array
    """Position of the body in the world (N, 3), m."""
    vel_b: Array
    """Velocity of the body in its own frame (N, 3), m/s; R' vel_w where not given."""
    gyro_bias: Array | None
    """Estimated gyro bias (N, 3), rad/s."""
    accel_bias: Array | None
    """Estimated accelerometer bias (N, 3), m/s^2."""
    vel_cov: Array | None
    """Covariance of `vel_b` in the body frame (N, 3, 3), m^2/s^2: R' P_vv R of a right-invariant filter."""
    pose_cov: Array | None
    """Covariance of position, then of rotation, in world axes (N, 6, 6), m^2 and rad^2, in ROS order."""
    health: npt.NDArray[np.uint32] | None
    """Bits of `Health` (N,)."""
    source: str
    """What made it, in words."""

    def __init__(
        self,
        *,
        t: npt.ArrayLike,
        quat_wb_wxyz: npt.ArrayLike,
        vel_w: npt.ArrayLike,
        pos_w: npt.ArrayLike,
        vel_b: npt.ArrayLike | None = None,
        gyro_bias: npt.ArrayLike | None = None,
        accel_bias: npt.ArrayLike | None = None,
        vel_cov: npt.ArrayLike | None = None,
        pose_cov: npt.ArrayLike | None = None,
        health: npt.ArrayLike | None = None,
        source: str = "",
        **unknown: object,
    ) -> None:
        """Check and take over the arrays; see the fields for their meaning."""
        refuse_unknown(unknown, [field.name for field in TRAJECTORY_FIELDS], "Trajectory")
        given: dict[str, Any] = locals()
        stamps = check_time(t, "Trajectory", least=1)
        arrays: dict[str, AnyArray | None] = {"t": stamps}
        for field in TRAJECTORY_FIELDS[1:]:
            value = given[field.name]
            if value is None and field.required:
                raise GaitError(f"Trajectory field {field.name} is missing: it is needed for every Trajectory")
            arrays[field.name] = None if value is None else check_field(field, value, stamps, AXES, "Trajectory")
        if arrays["vel_b"] is None:
            quat, velocity = arrays["quat_wb_wxyz"], arrays["vel_w"]
            assert quat is not None and velocity is not None
            arrays["vel_b"] = quaternions.rotate_inverse(quat, velocity)
            arrays["vel_b"].flags.writeable = False
        self.__dict__.update(arrays, source=str(source))

    def __len__(self) -> int:
        return len(self.t)
