"""What comes out of an estimator: the state after a sample, the details of a whole log. Views of rows of doubles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gait import lie
from gait.arrays import Array, BoolArray
from gait.binding import STATE, STATE_DOUBLES
from gait.health import HealthReport
from gait.log.trajectory import Trajectory

_T, _HEALTH, _GAP = (STATE[name].start for name in ("t", "health", "gap"))
_VEL_COV, _POSE_COV, _PREDICTED = STATE["vel_cov"], STATE["pose_cov"], STATE["predicted"].start


class Shape(NamedTuple):
    """What lies behind the state in a row."""

    history: int = 0
    """Attention (history, tokens); 0 if it was not asked for."""
    tokens: int = 0
    legs: int = 0
    """Velocity and log-std of each leg (legs, 6)."""
    contacts: int = 0
    """Contact of each leg (contacts,)."""

    @property
    def attention(self) -> slice:
        """Where the attention lies."""
        return slice(STATE_DOUBLES, STATE_DOUBLES + self.history * self.tokens)

    @property
    def leg_outputs(self) -> slice:
        """Where velocity and log-std of each leg lie."""
        return slice(self.attention.stop, self.attention.stop + 6 * self.legs)


class Layout(NamedTuple):
    """How to read a row of the core."""

    leg_names: Sequence[str]
    shape: Shape
    cov_size: int
    """Rows of the covariance, which lies at the end."""


class State:
    """The estimate after a sample: a snapshot, which later samples do not change. Of base_link, in SI units."""

    __slots__ = ("_data", "_layout")

    def __init__(self, data: bytearray | Array, layout: Layout) -> None:
        """Take a row of the core with the covariance behind it."""
        self._data, self._layout = data, layout

    @property
    def _row(self) -> Array:
        return np.frombuffer(self._data)

    @property
    def t(self) -> float:
        """Stamp of the last sample that was used, s."""
        return float(self._row[_T])

    @property
    def vel_b(self) -> Array:
        """Velocity in the body frame (3,), m/s."""
        return self._row[STATE["vel_b"]]

    @property
    def vel_w(self) -> Array:
        """Velocity in the world frame (3,), m/s."""
        return self._row[STATE["vel_w"]]

    @property
    def pos_w(self) -> Array:
        """Position in the world frame (3,), m."""
        return self._row[STATE["pos_w"]]

    @property
    def quat_wb_wxyz(self) -> Array:
        """Orientation, body to world (4,), w first."""
        return self._row[STATE["quat_wb_wxyz"]]

    @property
    def R_wb(self) -> Array:
        """Orientation, body to world (3, 3)."""
        return lie.rotation_from_quat(self.quat_wb_wxyz)

    @property
    def gyro_bias(self) -> Array:
        """Gyro bias (3,), rad/s, in IMU axes."""
        return self._row[STATE["gyro_bias"]]

    @property
    def accel_bias(self) -> Array:
        """Accelerometer bias (3,), m/s^2, in IMU axes."""
        return self._row[STATE["accel_bias"]]

    @property
    def vel_cov(self) -> Array:
        """Covariance of `vel_b` (3, 3)."""
        return self._row[_VEL_COV].reshape(3, 3)

    @property
    def vel_b_std(self) -> Array:
        """Standard deviation of `vel_b` (3,), m/s."""
        std: Array = np.sqrt(self._row[_VEL_COV.start : _VEL_COV.stop : 4])
        return std

    @property
    def pose_cov(self) -> Array:
        """Covariance of position, then rotation, in world axes (6, 6), in ROS order."""
        return self._row[_POSE_COV].reshape(6, 6)

    @property
    def cov(self) -> Array:
        """Covariance of the right-invariant error: rotation, velocity, position, biases (15, 15), then feet."""
        size = self._layout.cov_size
        return self._row[-size * size :].reshape(size, size)

    @property
    def predicted(self) -> tuple[Array, Array]:
        """The network's own velocity (3,) and standard deviation (3,), m/s; nan for model-based methods."""
        return self._row[_PREDICTED : _PREDICTED + 3], np.exp(self._row[_PREDICTED + 3 : _PREDICTED + 6])

    @property
    def health(self) -> HealthReport:
        """What is wrong, if anything: `str(state.health)` is `ok` or, say, `leg FR stale, gap 0.12 s`."""
        return HealthReport(int(self._row[_HEALTH]), self._layout.leg_names, float(self._row[_GAP]))

    @property
    def attention(self) -> Array | None:
        """Where the network looked (history, tokens), oldest first; None unless asked for at `load`.

        Of `gait-legs` how much each leg looked at each other (L, L).
        """
        shape = self._layout.shape
        return self._row[shape.attention].reshape(shape.history, shape.tokens) if shape.history else None

    @property
    def legs(self) -> tuple[Array, Array] | None:
        """Body velocity by each leg (L, 3) and its standard deviation (L, 3), m/s; that of a leg out of use is large.

        Only of `gait-legs`, and if attention was asked for at `load`; otherwise None.
        """
        if not self._layout.shape.legs:
            return None
        outputs = self._row[self._layout.shape.leg_outputs].reshape(-1, 6)
        return outputs[:, :3], np.exp(outputs[:, 3:])

    def __repr__(self) -> str:
        x, y, z = self.vel_b
        return f"State(t={self.t:.3f} s, vel_b=[{x:.3f}, {y:.3f}, {z:.3f}] m/s, {self.health})"


class Details:
    """What a method computed on the way, for each sample of a Log."""

    def __init__(self, rows: Array, shape: Shape) -> None:
        self._rows, self._shape = rows, shape

    @property
    def predicted(self) -> tuple[Array, Array]:
        """The network's own velocity (N, 3) and standard deviation (N, 3); nan for model-based methods."""
        return self._rows[:, _PREDICTED : _PREDICTED + 3], np.exp(self._rows[:, _PREDICTED + 3 : _PREDICTED + 6])

    @property
    def attention(self) -> Array | None:
        """Where the network looked (N, history, tokens), as `State.attention`."""
        shape = self._shape
        return self._rows[:, shape.attention].reshape(-1, shape.history, shape.tokens) if shape.history else None

    @property
    def legs(self) -> tuple[Array, Array] | None:
        """Body velocity by each leg (N, L, 3) and its standard deviation (N, L, 3), as `State.legs`."""
        if not self._shape.legs:
            return None
        outputs = self._rows[:, self._shape.leg_outputs].reshape(len(self._rows), -1, 6)
        return outputs[..., :3], np.exp(outputs[..., 3:])

    @property
    def contact(self) -> BoolArray | None:
        """Which feet a model-based method took to be on the ground (N, L)."""
        return self._rows[:, STATE_DOUBLES:] > 0.5 if self._shape.contacts else None


def trajectory_of(t: Array, rows: Array, source: str) -> Trajectory:
    """A Trajectory from the rows (N, width) of a whole log."""
    count = len(rows)

    def part(name: str, *shape: int) -> Array:
        return rows[:, STATE[name]].reshape(count, *shape)

    return Trajectory(
        t=t,
        quat_wb_wxyz=part("quat_wb_wxyz", 4),
        vel_w=part("vel_w", 3),
        pos_w=part("pos_w", 3),
        vel_b=part("vel_b", 3),
        gyro_bias=part("gyro_bias", 3),
        accel_bias=part("accel_bias", 3),
        vel_cov=part("vel_cov", 3, 3),
        pose_cov=part("pose_cov", 6, 6),
        health=rows[:, _HEALTH].astype(np.uint32),
        source=source,
    )
