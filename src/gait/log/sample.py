"""One row of a Log."""

from __future__ import annotations

from typing import NamedTuple

from gait.arrays import Array, BoolArray


class Sample(NamedTuple):
    """What the sensors said at one moment; None for what a Log does not have. See `gait.Log` for units and frames."""

    t: float
    gyro: Array
    accel: Array
    q: Array
    dq: Array
    q_des: Array | None = None
    tau: Array | None = None
    foot_force: Array | None = None
    contact: BoolArray | None = None
