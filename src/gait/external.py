"""Measurements of other sensors for an estimator: LiDAR, vision, GNSS, an AHRS. Frames, alignment, gates, latency.

`Estimator.correct` is the way in; docs/fusion.md explains it. The equations are in core/external.c, and in numpy in
`gait.reference.external_rows`; what arrives late is inserted at its time by core/history.c.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gait import lie
from gait.arrays import Array
from gait.binding import CExternal, aligned_bytes, core, fill, pointer
from gait.errors import GaitError

Measured = npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike]
"""Numbers, or position and quaternion of a pose."""
OLDEST = 0.5
"""Age, s, up to which a measurement is inserted at its time."""
ALIGN_DISTANCE = 5.0
"""Metres walked until positions alone tell how their world is turned."""
ALIGN_POSES = 5
"""Poses whose median aligns a world."""
LEAST_OUTLIERS = 5
"""In a row, before a reset."""


class Kind(NamedTuple):
    """What can be measured."""

    number: int
    """As in core/gait.h."""
    values: int
    size: int
    """Of the covariance."""
    std: tuple[float, ...]
    """Taken where nothing is said: m, m/s, rad."""


KINDS: dict[str, Kind] = {
    "pose": Kind(0, 7, 6, (0.05, 0.02)),
    "position": Kind(1, 3, 3, (0.05,)),
    "velocity_w": Kind(2, 3, 3, (0.1,)),
    "velocity_b": Kind(3, 3, 3, (0.1,)),
    "heading": Kind(4, 1, 1, (0.05,)),
    "height": Kind(5, 1, 1, (0.05,)),
    "gravity": Kind(6, 3, 3, (0.02,)),
    "orientation": Kind(7, 4, 3, (0.03,)),
    "zero_velocity": Kind(3, 0, 3, (0.01,)),
}
"""By the name that `Estimator.correct` takes. A pose is position (3) and quaternion (4, w first); `gravity` is the
upward vertical in the sensor's axes, as an accelerometer at rest shows it; `heading` is that of the sensor's x axis."""
_FRAMED = ("pose", "position", "velocity_w", "heading", "height", "orientation")
_TAKEN, _OUTLIER = 0, 1
_WORDS = {
    2: f"more than {OLDEST:g} s old, or older than the buffer",
    3: "later than the last sample: check that the clocks are the same",
    4: "the estimator has not started",
    5: "not usable: covariance not positive, or a heading of a sensor that points up",
}


@dataclass(frozen=True)
class ExternalSensor:
    """A sensor beside IMU and joints: where it is mounted, and the world it measures in."""

    p_bs: Sequence[float] = (0.0, 0.0, 0.0)
    """Lever arm: position in base_link, m."""
    quat_bs_wxyz: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    """Rotation from the sensor to base_link."""
    std: float | Sequence[float] | None = None
    """Standard deviation where a measurement comes without: one, one a number, or of a pose position and rotation."""
    gate: float = 3.0
    """Standard deviations of the innovation beyond which a measurement is an outlier."""
    align: bool = False
    """Whether its world is another one: heading and origin are then the median of its first five poses, or found from
    positions once the robot has walked 5 m."""
    reset_after: float = 2.0
    """Seconds of nothing but outliers after which the pose is reset to the measurement; inf for never."""

    def __post_init__(self) -> None:
        """See that they are numbers that can be."""
        _finite(self.p_bs, 3, "p_bs")
        if abs(float(np.linalg.norm(_finite(self.quat_bs_wxyz, 4, "quat_bs_wxyz"))) - 1.0) > 0.01:
            raise GaitError("quat_bs_wxyz must be a unit quaternion, w first")
        if not (self.gate > 0.0 and self.reset_after > 0.0):
            raise GaitError("gate and reset_after of a sensor must be above 0")


@dataclass(frozen=True)
class Correction:
    """What became of a measurement; true if it was taken."""

    taken: bool
    test_ratio: float
    """sqrt(NIS / rows) over the gate: above 1 an outlier; nan if it was not compared."""
    message: str = ""
    """Why it was not taken; or that the pose was reset to it."""

    def __bool__(self) -> bool:
        return self.taken


@dataclass
class _Source:
    """What is remembered of a sensor."""

    sensor: ExternalSensor
    last: float = -math.inf
    """Stamp of the newest measurement."""
    yaw: float = 0.0
    shift: Array = field(default_factory=lambda: np.zeros(3))
    """From its world to ours."""
    aligned: bool = False
    track: list[tuple[Array, Array, float]] = field(default_factory=list)
    """Positions of the sensor, ours and its own, and the turn between the worlds, until it is aligned."""
    outliers: int = 0
    since: float = 0.0
    """Stamp of the first outlier in a row."""


class Fusion:
    """The sensors of an estimator and its history of samples."""

    def __init__(self, sensors: Mapping[str, ExternalSensor]) -> None:
        self.sensors = dict(sensors)
        self._sources: dict[str, _Source] = {}
        self._history: dict[int, npt.NDArray[np.uint8]] = {}
        self.clear()

    def history(self, context: int, config: int) -> int:
        """Address of the history of a context; made on the first call."""
        if context not in self._history:
            self._history[context] = aligned_bytes(core().gait_history_bytes(config))
            core().gait_history_init(pointer(self._history[context]))
        return pointer(self._history[context])

    def clear(self) -> None:
        """Forget samples, stamps and alignments: the estimator starts again."""
        self._sources = {name: _Source(sensor) for name, sensor in self.sensors.items()}
        self.clear_history()

    def clear_history(self) -> None:
        """Forget the samples alone."""
        for room in self._history.values():
            core().gait_history_clear(pointer(room))

    def correct(
        self,
        context: int,
        history: int | None,
        kind: str,
        t: float,
        value: Measured,
        noise: npt.ArrayLike | None,
        name: str,
    ) -> Correction:
        """Take a measurement; see `Estimator.correct`.

        Args:
            context: address of the context.
            history: address of its history; None takes measurements of the present alone.
            kind: key of `KINDS`.
            t: stamp, s.
            value: what was measured.
            noise: covariance (n, n), or standard deviations; None for those of the sensor.
            name: of the sensor; "" for one in base_link, of the kind.
        """
        what, source = self._known(kind, name)
        y, cov = _value(value, kind, what), _covariance(noise, source.sensor.std, kind, what)
        stamp = float(t)
        if y is None or cov is None or not math.isfinite(stamp):
            return Correction(False, math.nan, "not finite, or a quaternion that is not of length 1")
        if stamp <= source.last:
            return Correction(False, math.nan, f"out of order: {source.last - stamp:.3f} s before the last one")
        if source.sensor.align and not source.aligned:
            words = self._align(source, history, kind, stamp, y)
            if words:
                source.last = stamp if words.startswith("aligning") else source.last
                return Correction(False, math.nan, words)
        y, cov = _to_world(source, kind, y, cov)
        measured = _measured(source.sensor, what, stamp, y, cov)
        ratio = ctypes.c_double(math.nan)
        arguments = (context, ctypes.addressof(measured), ctypes.addressof(ratio))
        verdict = core().gait_correct_external(*arguments) if history is None else core().gait_history_correct(
            history, *arguments
        )  # fmt: skip
        if verdict in (_TAKEN, _OUTLIER):
            source.last = stamp
        if verdict != _OUTLIER:
            source.outliers = 0 if verdict == _TAKEN else source.outliers
            return Correction(
                verdict == _TAKEN, ratio.value if verdict == _TAKEN else math.nan, _WORDS.get(verdict, "")
            )
        source.outliers += 1
        source.since = stamp if source.outliers == 1 else source.since
        return Correction(False, ratio.value, f"outlier: {ratio.value:.1f} times its gate")

    def due(self, kind: str, name: str, stamp: float) -> bool:
        """Whether nothing but outliers has come for so long that the pose shall be reset to this one."""
        _, source = self._known(kind, name)
        lasted = source.outliers >= LEAST_OUTLIERS and stamp - source.since >= source.sensor.reset_after
        if lasted and kind in ("pose", "position"):
            source.outliers = 0
            return True
        return False

    def present_pose(
        self, kind: str, name: str, t: float, value: Measured, history: int, R_wb: Array, pos_w: Array
    ) -> tuple[Array, Array]:
        """The pose of base_link now, by a pose or a position measured at t and the motion since then.

        Args:
            kind: `pose` or `position`.
            name: of the sensor.
            t: stamp.
            value: what was measured.
            history: address of the history, or 0.
            R_wb: estimated orientation now (3, 3).
            pos_w: estimated position now (3,).
        """
        what, source = self._known(kind, name)
        y = _value(value, kind, what)
        assert y is not None
        y, _ = _to_world(source, kind, y, np.eye(what.size))
        quat, then = np.empty(4), pos_w.copy()
        known = bool(history) and core().gait_history_pose(history, float(t), pointer(quat), pointer(then))
        R_then = lie.rotation_from_quat(quat) if known else R_wb
        R = R_then if kind == "position" else lie.rotation_from_quat(y[3:]) @ _rotation(source.sensor).T
        position = y[:3] - R @ np.asarray(source.sensor.p_bs)
        turn = R @ R_then.T
        return turn @ R_wb, position + turn @ (pos_w - then)

    def _known(self, kind: str, name: str) -> tuple[Kind, _Source]:
        if kind not in KINDS:
            raise GaitError(f"nothing measures '{kind}': choose one of {', '.join(KINDS)}")
        if name and name not in self.sensors:
            listed = f"it has {', '.join(self.sensors)}" if self.sensors else "it has none"
            raise GaitError(f"the estimator has no sensor '{name}', {listed}: name it in Estimator.load(sensors=...)")
        key = name or f"a {kind}"
        return KINDS[kind], self._sources.setdefault(key, _Source(self.sensors.get(name, ExternalSensor())))

    def _align(self, source: _Source, history: int | None, kind: str, stamp: float, y: Array) -> str:
        """Find how the sensor's world lies in ours; returns why it is not known yet, or nothing."""
        quat, pos = np.empty(4), np.empty(3)
        if kind not in ("pose", "position"):
            return "its world is not aligned yet: give a pose, or positions, first"
        if history is None or not core().gait_history_pose(history, stamp, pointer(quat), pointer(pos)):
            return _WORDS[2]
        R_wb, sensor, turn = lie.rotation_from_quat(quat), source.sensor, 0.0
        if kind == "pose":
            R = R_wb @ _rotation(sensor) @ lie.rotation_from_quat(y[3:]).T
            turn = math.atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])
        source.track.append((pos + R_wb @ np.asarray(sensor.p_bs), y[:3], turn))
        ours, theirs, turns = (np.array(parts) for parts in zip(*source.track, strict=True))
        if kind == "pose":
            if len(turns) < ALIGN_POSES:
                return f"aligning: {len(turns)} of {ALIGN_POSES} poses"
            off = turns - turns[0]
            source.yaw = float(turns[0] + np.median(np.arctan2(np.sin(off), np.cos(off))))
        else:
            walked = float(np.ptp(ours[:, :2], axis=0).max())
            if walked < ALIGN_DISTANCE:
                return f"aligning: {walked:.1f} of {ALIGN_DISTANCE:g} m walked"
            a, b = (points - points.mean(0) for points in (theirs, ours))
            across = float(np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]))
            source.yaw = math.atan2(across, float(np.sum(a[:, :2] * b[:, :2])))
        source.shift = np.median(ours - theirs @ _about_z(source.yaw).T, axis=0)
        source.track.clear()
        source.aligned = True
        return ""


def _value(value: Measured, kind: str, what: Kind) -> Array | None:
    """The numbers of a measurement, quaternions and the vertical of length 1; None if they cannot be."""
    if kind == "zero_velocity":
        return np.zeros(3)
    try:
        parts: Any = value
        y = np.ravel(
            np.array(np.concatenate([np.ravel(part) for part in parts]) if kind == "pose" else parts, dtype=np.float64)
        )
    except (ValueError, TypeError):
        raise GaitError(f"a {kind} is {what.values} numbers, got {value!r}") from None
    if len(y) != what.values:
        raise GaitError(f"a {kind} is {what.values} numbers, got {len(y)}")
    if not np.isfinite(y).all():
        return None
    start = {"pose": 3, "orientation": 0, "gravity": 0}.get(kind)
    if start is not None:
        length = float(np.linalg.norm(y[start:]))
        # The vertical may come as a specific force.
        if length == 0.0 or (kind != "gravity" and abs(length - 1.0) > 0.01):
            return None
        y[start:] /= length
    return y


def _covariance(noise: npt.ArrayLike | None, std: object, kind: str, what: Kind) -> Array | None:
    """The covariance (n, n); None if it is not one."""
    given = noise if noise is not None else std if std is not None else what.std
    array = np.array(given, dtype=np.float64)
    if array.ndim == 2:
        if array.shape != (what.size, what.size):
            raise GaitError(f"the covariance of a {kind} is {what.size} x {what.size}, got shape {array.shape}")
        cov = array
    else:
        parts = np.atleast_1d(array)
        if kind == "pose" and len(parts) == 2:
            parts = np.repeat(parts, 3)
        if len(parts) not in (1, what.size):
            raise GaitError(f"the std of a {kind} is one number or {what.size}, got {len(parts)}")
        cov = np.diag(np.broadcast_to(parts, what.size) ** 2)
    return cov if np.isfinite(cov).all() and (np.diag(cov) > 0.0).all() else None


def _to_world(source: _Source, kind: str, y: Array, cov: Array) -> tuple[Array, Array]:
    """From the sensor's world to ours."""
    if not source.aligned or kind not in _FRAMED:
        return y, cov
    turn, y = _about_z(source.yaw), y.copy()
    if kind in ("pose", "position"):
        y[:3] = turn @ y[:3] + source.shift
    if kind in ("pose", "orientation"):
        y[-4:] = lie.quat_from_rotation(turn @ lie.rotation_from_quat(y[-4:]))
    if kind == "velocity_w":
        y = turn @ y
    y = y + source.yaw if kind == "heading" else y + source.shift[2] if kind == "height" else y
    blocks = np.kron(np.eye(len(cov) // 3), turn) if len(cov) >= 3 else np.eye(len(cov))
    return y, blocks @ cov @ blocks.T


def _measured(sensor: ExternalSensor, what: Kind, stamp: float, y: Array, cov: Array) -> CExternal:
    measured = CExternal(kind=what.number, t=stamp, gate=float(sensor.gate))
    quat = np.asarray(sensor.quat_bs_wxyz, dtype=np.float64)
    for target, values in (
        (measured.value, y), (measured.cov, cov.ravel()), (measured.p_bs, sensor.p_bs),
        (measured.quat_bs_wxyz, quat / np.linalg.norm(quat)),
    ):  # fmt: skip
        fill(target, values)
    return measured


def _rotation(sensor: ExternalSensor) -> Array:
    quat = np.asarray(sensor.quat_bs_wxyz, dtype=np.float64)
    return lie.rotation_from_quat(quat / np.linalg.norm(quat))


def _about_z(yaw: float) -> Array:
    return lie.so3_exp(np.array([0.0, 0.0, yaw]))


def _finite(value: Sequence[float], count: int, name: str) -> Array:
    array = np.array(value, dtype=np.float64)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"{name} must be {count} finite numbers, got {value!r}")
    return array
