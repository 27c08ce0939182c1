"""Trajectory: what an estimator (or a motion capture system) says about the body over time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gait import quaternions
from gait.arrays import Array
from gait.log.fields import AXES, TRAJECTORY_FIELDS, Field
from gait.log.record import Record


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Trajectory(Record):
    """State and covariance over time. Arrays are read-only; a field that was not given is None.

    SI units; world z is up. See `docs/log.md` for each field and for what the covariances mean.
    """

    KIND: ClassVar[str] = "Trajectory"
    FIELDS: ClassVar[tuple[Field, ...]] = TRAJECTORY_FIELDS
    METADATA: ClassVar[tuple[str, ...]] = ("source",)
    LEAST_ROWS: ClassVar[int] = 1

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
    """Bits of `gait.health.Health` (N,)."""
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
        given = dict(locals())
        self._take(given, unknown, AXES, source=str(source))
        if given["vel_b"] is None:
            derived = quaternions.rotate_inverse(self.quat_wb_wxyz, self.vel_w)
            derived.flags.writeable = False
            self.__dict__["vel_b"] = derived

    def __repr__(self) -> str:
        source = f", source={self.source!r}" if self.source else ""
        return f"Trajectory({len(self)} rows, {self.rate:g} Hz, {self.duration:g} s{source})"

    def save(self, path: str | Path) -> None:
        """Write the format that the name ends with (`.npz`, `.csv`, `.tum`), in one piece or not at all."""
        from gait.io import save

        save(self, path)

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read the native `.npz`, a CSV file or a TUM file."""
        from gait.io import open_trajectory

        return open_trajectory(path)

    def to_csv(self, path: str | Path) -> None:
        """Write every field as text, one column each; see `docs/log.md` for their names."""
        from gait.io.csv import Csv

        Csv().write(self, Path(path))

    def to_tum(self, path: str | Path) -> None:
        """Write time, position and rotation for evo and its like: `t x y z qx qy qz qw`."""
        from gait.io.tum import Tum

        Tum().write(self, Path(path))

    @staticmethod
    def from_tum(path: str | Path) -> Trajectory:
        """Read a TUM file. It has no velocity, so `vel_w` is the central difference of the positions."""
        from gait.io.tum import Tum

        return Tum().read(Path(path))
