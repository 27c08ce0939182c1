"""What comes out of an estimator: the state after a sample, the details of a whole log. Views of rows of doubles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gait import lie
from gait.arrays import AnyArray, Array, BoolArray
from gait.binding import STATE, STATE_DOUBLES
from gait.health import HealthReport
from gait.log.trajectory import Trajectory


class Shape(NamedTuple):
    """Sizes of the details behind the state in a row."""

    history: int = 0
    """Attention (history, tokens); 0 if it was not asked for."""
    tokens: int = 0
    legs: int = 0
    """Velocity and log-std of each leg (legs, 6)."""
    contacts: int = 0
    """Contact of each leg (contacts,)."""
    tested: int = 0
    """Test ratio of each leg (tested,)."""
    feet: int = 0
    """Contact probability, speed, force and position of each foot (feet, 6), then the ground (4,)."""

    @property
    def ratios(self) -> slice:
        """Columns of the test ratios of the legs."""
        return slice(STATE_DOUBLES, STATE_DOUBLES + self.tested)

    @property
    def flags(self) -> slice:
        """Columns of the contacts."""
        return slice(self.ratios.stop, self.ratios.stop + self.contacts)

    @property
    def attention(self) -> slice:
        """Columns of the attention."""
        return slice(self.ratios.stop, self.ratios.stop + self.history * self.tokens)

    @property
    def leg_outputs(self) -> slice:
        """Columns of velocity and log-std of each leg."""
        return slice(self.attention.stop, self.attention.stop + 6 * self.legs)

    @property
    def foot_outputs(self) -> slice:
        """Columns of the outputs of the feet."""
        start = max(self.flags.stop, self.leg_outputs.stop)
        return slice(start, start + 6 * self.feet)

    @property
    def ground(self) -> slice:
        """Columns of the ground."""
        return slice(self.foot_outputs.stop, self.foot_outputs.stop + 4)


class RowLayout(NamedTuple):
    """How to read a row of the core."""

    leg_names: Sequence[str]
    shape: Shape
    cov_size: int
    """Rows of the covariance at the end of the row; 0 without one."""


class StateRows:
    """Fields of a row of the core, or of N rows: then each has N in front. In SI units."""

    __slots__ = ("_data", "_layout")

    def __init__(self, data: bytearray | Array, layout: RowLayout) -> None:
        """Take a row, as numbers or as bytes, or rows (N, width)."""
        self._data, self._layout = data, layout

    @property
    def _row(self) -> Array:
        return np.frombuffer(self._data) if isinstance(self._data, bytearray) else self._data

    def _part(self, where: slice, *shape: int) -> Array:
        row = self._row[..., where]
        return row.reshape(*row.shape[:-1], *shape) if shape else row

    @property
    def vel_b(self) -> Array:
        """Velocity in the body frame (3,), m/s."""
        return self._part(STATE["vel_b"])

    @property
    def vel_w(self) -> Array:
        """Velocity in the world frame (3,), m/s."""
        return self._part(STATE["vel_w"])

    @property
    def pos_w(self) -> Array:
        """Position in the world frame (3,), m."""
        return self._part(STATE["pos_w"])

    @property
    def quat_wb_wxyz(self) -> Array:
        """Orientation, body to world (4,), w first."""
        return self._part(STATE["quat_wb_wxyz"])

    @property
    def gyro_bias(self) -> Array:
        """Gyro bias (3,), rad/s, in IMU axes."""
        return self._part(STATE["gyro_bias"])

    @property
    def accel_bias(self) -> Array:
        """Accelerometer bias (3,), m/s^2, in IMU axes."""
        return self._part(STATE["accel_bias"])

    @property
    def vel_cov(self) -> Array:
        """Covariance of `vel_b` (3, 3)."""
        return self._part(STATE["vel_cov"], 3, 3)

    @property
    def vel_b_std(self) -> Array:
        """Standard deviation of `vel_b` (3,), m/s."""
        std: Array = np.sqrt(self._part(STATE["vel_cov"])[..., ::4])
        return std

    @property
    def pose_cov(self) -> Array:
        """Covariance of position, then rotation, in world axes (6, 6), in ROS order."""
        return self._part(STATE["pose_cov"], 6, 6)

    @property
    def predicted(self) -> tuple[Array, Array]:
        """The network's own velocity (3,) and standard deviation (3,), m/s; nan for model-based methods."""
        velocity, log_std = np.split(self._part(STATE["predicted"]), 2, axis=-1)
        return velocity, np.exp(log_std)

    @property
    def attention(self) -> Array | None:
        """Attention of the network (history, tokens), oldest first; None unless asked for at `load`.

        Of `gait-legs` the attention of each leg to each other (L, L).
        """
        shape = self._layout.shape
        return self._part(shape.attention, shape.history, shape.tokens) if shape.history else None

    @property
    def legs(self) -> tuple[Array, Array] | None:
        """Body velocity by each leg (L, 3) and its standard deviation (L, 3), m/s; that of a leg out of use is large.

        Only of `gait-legs`, and if attention was asked for at `load`; otherwise None.
        """
        shape = self._layout.shape
        if not shape.legs:
            return None
        outputs = self._part(shape.leg_outputs, shape.legs, 6)
        return outputs[..., :3], np.exp(outputs[..., 3:])

    @property
    def contact(self) -> Array | BoolArray | None:
        """Probability that each foot is on the ground (L,), with `feet=True` at `load`; nan where it is unknown.

        Without, which feet a model-based method took to be on the ground; None of others.
        """
        shape = self._layout.shape
        if shape.feet:
            return self._foot(0)
        return self._part(shape.flags) > 0.5 if shape.contacts else None

    @property
    def slip(self) -> Array | None:
        """Speed of each foot over the ground (L,), m/s, in contact or not; with `feet=True` at `load`."""
        return self._foot(1) if self._layout.shape.feet else None

    @property
    def foot_force(self) -> Array | None:
        """Vertical force of the ground on each foot (L,), N, by the joint torques; with `feet=True` at `load`."""
        return self._foot(2) if self._layout.shape.feet else None

    @property
    def foot_pos_w(self) -> Array | None:
        """Centres of the feet in the world (L, 3), m; with `feet=True` at `load`."""
        shape = self._layout.shape
        return self._part(shape.foot_outputs, shape.feet, 6)[..., 3:] if shape.feet else None

    @property
    def ground_height(self) -> Array | None:
        """Height of the ground under base_link, m: a plane through the last footholds; with `feet=True` at `load`."""
        return self._part(self._layout.shape.ground)[..., 0] if self._layout.shape.feet else None

    @property
    def ground_slope(self) -> Array | None:
        """Slope of that plane, rad, and its rise along x and y of the world (3,); with `feet=True` at `load`."""
        return self._part(self._layout.shape.ground)[..., [3, 1, 2]] if self._layout.shape.feet else None

    def _foot(self, i: int) -> Array:
        return self._part(self._layout.shape.foot_outputs, self._layout.shape.feet, 6)[..., i]

    @property
    def leg_test_ratio(self) -> Array | None:
        """Innovation of each leg over its gate (L,): above 1 an outlier, 0 if it was not used; None without legs."""
        shape = self._layout.shape
        return self._part(shape.ratios) if shape.tested else None


class Valid(NamedTuple):
    """What a controller may use. Limits: 0.3 m/s, 0.15 rad of roll and pitch, 5 m, all standard deviations."""

    velocity: bool
    attitude: bool
    """Roll and pitch."""
    position: bool
    """Position and heading since the start; False for good once they were lost."""


class State(StateRows):
    """The estimate after a sample: a snapshot, which later samples do not change. Of base_link, in SI units."""

    __slots__ = ()

    @property
    def t(self) -> float:
        """Stamp of the last sample that was used, s."""
        return float(self._row[STATE["t"].start])

    @property
    def R_wb(self) -> Array:
        """Orientation, body to world (3, 3)."""
        return lie.rotation_from_quat(self.quat_wb_wxyz)

    @property
    def cov(self) -> Array:
        """Covariance of the right-invariant error: rotation, velocity, position, biases (15, 15), then feet."""
        size = self._layout.cov_size
        return self._part(slice(-size * size, None), size, size)

    @property
    def health(self) -> HealthReport:
        """What is wrong, if anything: `str(state.health)` is `ok` or, say, `leg FR stale, gap 0.12 s`."""
        flags, gap = self._row[STATE["health"].start], self._row[STATE["gap"].start]
        return HealthReport(int(flags), self._layout.leg_names, float(gap))

    @property
    def test_ratio(self) -> float:
        """Innovation of the measurement over its standard deviation; above 4 for long the IMU counts as disputed."""
        return float(self._row[STATE["test_ratio"].start])

    @property
    def resets(self) -> int:
        """How often velocity or state were reset since the start."""
        return int(self._row[STATE["resets"].start])

    @property
    def valid(self) -> Valid:
        """Whether velocity, attitude and position are good enough to control with."""
        bits = int(self._row[STATE["valid"].start])
        return Valid(bool(bits & 1), bool(bits & 2), bool(bits & 4))

    def __repr__(self) -> str:
        x, y, z = self.vel_b
        return f"State(t={self.t:.3f} s, vel_b=[{x:.3f}, {y:.3f}, {z:.3f}] m/s, {self.health})"


class StateArrays(StateRows):
    """The states of many samples: of a whole Log, or of each robot in a Batch, whose next call overwrites them."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self._row)

    def __getitem__(self, i: int) -> State:
        """The state of one sample, without its covariance."""
        return State(self._row[i], self._layout)

    @property
    def t(self) -> Array:
        """Stamps of the last samples that were used (N,), s."""
        return self._row[:, STATE["t"].start]

    @property
    def health(self) -> AnyArray:
        """Bits of `gait.health.Health` (N,); 0 where all is well."""
        return self._row[:, STATE["health"].start].astype(np.uint32)

    @property
    def test_ratio(self) -> Array:
        """Innovation of the measurement over its standard deviation (N,)."""
        return self._row[:, STATE["test_ratio"].start]

    @property
    def resets(self) -> AnyArray:
        """Resets of velocity or state since the start (N,)."""
        return self._row[:, STATE["resets"].start].astype(np.int64)

    @property
    def valid(self) -> BoolArray:
        """Whether velocity, attitude and position may be used (N, 3)."""
        bits = self._row[:, STATE["valid"].start].astype(np.uint8)
        return (bits[:, None] & np.array([1, 2, 4], dtype=np.uint8)) > 0

    def trajectory(self, t: Array, source: str) -> Trajectory:
        """As the Trajectory of a Log with these stamps."""
        names: tuple[str, ...] = (
            "quat_wb_wxyz", "vel_w", "pos_w", "vel_b", "gyro_bias", "accel_bias", "vel_cov", "pose_cov", "health",
        )  # fmt: skip
        legs: Sequence[str] = ()
        if self._layout.shape.feet:
            names += ("contact", "slip", "foot_force", "foot_pos_w", "ground_height", "ground_slope")
            legs = self._layout.leg_names
        return Trajectory(t=t, source=source, leg_names=legs, **{name: getattr(self, name) for name in names})
