"""One row of a Log."""

from __future__ import annotations

from typing import NamedTuple

from gait.arrays import Array, BoolArray


class Sample(NamedTuple):
    """Sensor readings at one instant; None for fields that are missing. Units and frames as in `Log.FIELDS`."""

    t: float
    gyro: Array
    accel: Array
    q: Array
    dq: Array
    q_des: Array | None = None
    tau: Array | None = None
    foot_force: Array | None = None
    contact: BoolArray | None = None
