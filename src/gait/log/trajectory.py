"""Trajectory: state and covariance of the body over time, of an estimator or of motion capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gait import quaternions
from gait.arrays import Array
from gait.log.fields import AXES, Labels, column
from gait.log.record import Record

_POSE = "position, then rotation, both in world axes"


@dataclass(frozen=True, eq=False, repr=False, init=False, kw_only=True)
class Trajectory(Record):
    """State and covariance over time. Arrays are read-only; a field that was not given is None.

    SI units; world z is up. `Trajectory.FIELDS` and `docs/log.md` say what each field is and what the covariances mean:
    `vel_cov` is R' P_vv R of a right-invariant filter, `pose_cov` is in ROS order.
    """

    KIND: ClassVar[str] = "Trajectory"
    METADATA: ClassVar[tuple[str, ...]] = ("source", "leg_names")
    LEAST_ROWS: ClassVar[int] = 1

    quat_wb_wxyz: Array = column(("wxyz",), "-", "rotation from body to world", required=True)
    vel_w: Array = column(("xyz",), "m/s", "velocity of the body, world frame", required=True)
    pos_w: Array = column(("xyz",), "m", "position of the body in the world", required=True)
    vel_b: Array = column(("xyz",), "m/s", "velocity of the body, body frame; from vel_w where not given")
    gyro_bias: Array | None = column(("xyz",), "rad/s", "estimated gyro bias, in the axes of the IMU")
    accel_bias: Array | None = column(("xyz",), "m/s^2", "estimated accelerometer bias, in the axes of the IMU")
    vel_cov: Array | None = column(("xyz", "xyz"), "m^2/s^2", "covariance of vel_b, body frame")
    pose_cov: Array | None = column(("pose", "pose"), "m^2, rad^2", f"covariance of {_POSE}")
    health: npt.NDArray[np.uint32] | None = column((), "-", "bit flags, see Health", dtype="uint32")
    contact: Array | None = column(("leg",), "-", "probability that each foot is on the ground", gaps=True)
    slip: Array | None = column(("leg",), "m/s", "speed of each foot over the ground", gaps=True)
    foot_force: Array | None = column(("leg",), "N", "vertical force of the ground on each foot", gaps=True)
    foot_pos_w: Array | None = column(("leg", "xyz"), "m", "centre of each foot in the world", gaps=True)
    ground_height: Array | None = column((), "m", "height of the ground under the body", gaps=True)
    ground_slope: Array | None = column(("plane",), "rad", "slope of the ground, rise along world x and y", gaps=True)
    source: str
    leg_names: tuple[str, ...]

    def __init__(self, *, source: str = "", leg_names: Sequence[str] = (), **arrays: npt.ArrayLike | None) -> None:
        """Check and take over the arrays.

        Args:
            source: what made it, in words.
            leg_names: names along the leg axis, where there are fields of feet.
            arrays: the fields of `Trajectory.FIELDS`, rows first: `t`, `quat_wb_wxyz`, `vel_w` and
                `pos_w` are needed. `vel_b` is R' vel_w where it is not given.
        """
        legs = tuple(map(str, leg_names))
        self._take(arrays, {**AXES, "leg": legs}, source=str(source), leg_names=legs)
        if arrays.get("vel_b") is None:
            derived = quaternions.rotate_inverse(self.quat_wb_wxyz, self.vel_w)
            derived.flags.writeable = False
            self.__dict__["vel_b"] = derived

    def __repr__(self) -> str:
        source = f", source={self.source!r}" if self.source else ""
        return f"Trajectory({len(self)} rows, {self.rate:g} Hz, {self.duration:g} s{source})"

    @property
    def labels(self) -> Labels:
        """The names along each kind of axis."""
        return {**AXES, "leg": self.leg_names}

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read the native `.npz`, a CSV file or a TUM file."""
        from gait.io import open_trajectory

        return open_trajectory(path)

    def to_tum(self, path: str | Path) -> None:
        """Write time, position and rotation for evo and its like: `t x y z qx qy qz qw`."""
        from gait.io.tum import Tum

        Tum().write(self, Path(path))

    @staticmethod
    def from_tum(path: str | Path) -> Trajectory:
        """Read a TUM file. It has no velocity, so `vel_w` is the central difference of the positions."""
        from gait.io.tum import Tum

        return Tum().read(Path(path))
