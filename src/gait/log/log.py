"""Log: sensor samples on one clock, with ground truth where there is any."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gait import quaternions
from gait.arrays import AnyArray, Array, BoolArray
from gait.documents import load_json, shown
from gait.errors import GaitError
from gait.log.fields import AXES, Labels, column, refuse_unknown
from gait.log.imu_noise import ImuNoise
from gait.log.record import Record, interpolate, places
from gait.log.sample import Sample
from gait.log.trajectory import Trajectory
from gait.robot import Robot, robot_names
from gait.robot.chain_yaml import robot_tree
from gait.robot.robot import MODELS, YAML

__all__ = ["MAX_GAP", "ImuNoise", "Log", "Trajectory"]

_AT_REST = "in its axes: +9.81 on z at rest"
_SOLE = "velocity of the lowest material point of the foot, world frame; zero if it rolls without slipping"
_NAME = re.compile(r'[^\s,"#]+')
_shipped = lru_cache(maxsize=32)(Robot.load)

MAX_GAP = 0.1
"""A pause between samples longer than this (s) is a gap: nothing sound can be interpolated or integrated over it."""

MOST_ROWS = 100_000_000
"""Resampling to more rows is refused: it would be two days at 500 Hz and tens of gigabytes, so the rate is a slip."""


@dataclass(frozen=True, eq=False, repr=False, init=False, kw_only=True)
class Log(Record):
    """Sensor samples of one robot on one clock. Arrays are read-only; every method returns a new Log.

    Rows are time; joints and legs are in the order of `joint_names` and `leg_names`. SI units, x forward, y left,
    z up. `Log.FIELDS` and `docs/log.md` say what each field is. A field that was not given is None.
    """

    KIND: ClassVar[str] = "Log"
    METADATA: ClassVar[tuple[str, ...]] = ("robot", "leg_names", "joint_names", "source", "description")
    LEAST_ROWS: ClassVar[int] = 2

    gyro: Array = column(("xyz",), "rad/s", "angular rate, in the axes of the IMU", "imu", required=True)
    accel: Array = column(("xyz",), "m/s^2", f"specific force at the IMU, {_AT_REST}", "imu", required=True)
    q: Array = column(("joint",), "rad", "joint angles", "joints", required=True)
    dq: Array = column(("joint",), "rad/s", "joint velocities", "joints", required=True)
    q_des: Array | None = column(("joint",), "rad", "joint angles the controller asks for", "targets")
    tau: Array | None = column(("joint",), "N m", "joint torques", "joints")
    foot_force: Array | None = column(("leg",), "N", "force of the ground on the foot, along its normal", "feet")
    contact: BoolArray | None = column(("leg",), "-", "true where the foot is on the ground", "feet", dtype="bool")
    pos_w: Array | None = column(("xyz",), "m", "ground truth: position of the body in the world", "truth")
    quat_wb_wxyz: Array | None = column(("wxyz",), "-", "ground truth: rotation from body to world", "truth")
    vel_w: Array | None = column(("xyz",), "m/s", "ground truth: velocity of the body, world frame", "truth")
    foot_vel_w: Array | None = column(("leg", "xyz"), "m/s", f"ground truth: {_SOLE}", "feet")
    robot: str
    leg_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    source: str
    description: str
    """Of a robot that gait does not ship, as JSON; see `load_robot`. Empty for others."""

    def __init__(
        self,
        *,
        robot: str | Path | Robot = "go1",
        leg_names: Sequence[str] | None = None,
        joint_names: Sequence[str] | None = None,
        source: str = "",
        description: str = "",
        **arrays: npt.ArrayLike | None,
    ) -> None:
        """Check and take over the arrays.

        Args:
            robot: name of a robot, the path of its YAML, URDF or MJCF file, or a `Robot`, which the log then carries.
                Any name will do if both name lists are given.
            leg_names: names along the leg axis; the robot's own by default.
            joint_names: names along the joint axis; the robot's own by default.
            source: where the data comes from, in words.
            description: of the robot, as JSON, where only its name is given; a `Robot` or a file brings its own.
            arrays: the fields of `Log.FIELDS`, rows first: `t`, `gyro`, `accel`, `q` and `dq` are
                needed. Quaternions are scaled to length 1 if within 1e-3 of it. A name that is no field is refused.
        """
        name, legs, joints, own = _resolve_names(robot, leg_names, joint_names)
        labels: Labels = {**AXES, "leg": legs, "joint": joints}
        about = {"robot": name, "leg_names": legs, "joint_names": joints, "source": str(source)}
        self._take(arrays, labels, **about, description=str(description) if own is None else own)

    def __repr__(self) -> str:
        truth = ", truth" if self.has_truth else ""
        source = f", source={self.source!r}" if self.source else ""
        return f"Log({self.robot}, {len(self)} rows, {self.rate:g} Hz, {self.duration:g} s{truth}{source})"

    @property
    def labels(self) -> Labels:
        """The names along each kind of axis."""
        return {**AXES, "leg": self.leg_names, "joint": self.joint_names}

    @property
    def has_truth(self) -> bool:
        """Whether position, rotation and velocity of the body are known."""
        return self.pos_w is not None and self.quat_wb_wxyz is not None and self.vel_w is not None

    @cached_property
    def vel_b(self) -> Array:
        """Truth: velocity of the body in its own frame (N, 3), m/s. Raises GaitError without truth."""
        vel_b = quaternions.rotate_inverse(self.need("quat_wb_wxyz"), self.need("vel_w"))
        vel_b.flags.writeable = False
        return vel_b

    def load_robot(self) -> Robot:
        """The robot of the log: the one that it carries, or else the one of its name that ships with gait."""
        return _carried(self.description) if self.description else _shipped(self.robot)

    def rows(self) -> Iterator[Sample]:
        """The samples one by one, as `gait.Estimator.update` takes them."""
        columns: list[Any] = [getattr(self, name) for name in Sample._fields[1:]]
        for i, t in enumerate(self.t.tolist()):
            yield Sample._make([t, *(None if column is None else column[i] for column in columns)])

    def gaps(self, longer_than: float = MAX_GAP) -> list[tuple[int, float]]:
        """Pauses in the clock: the row before each one and its length in seconds."""
        steps = np.diff(self.t)
        return [(int(row), float(steps[row])) for row in np.flatnonzero(steps > longer_than)]

    def require_no_gaps(self, longer_than: float = MAX_GAP) -> None:
        """Raise if the clock pauses for longer than this, s."""
        if not longer_than > 0.0:
            raise GaitError(f"the longest gap to allow (max_gap, --max-gap) is {longer_than:g} s: give one above 0")
        for row, length in self.gaps(longer_than):
            raise GaitError(
                f"the log has a gap of {length:.3g} s after row {row} (t = {self.t[row]:.9g} s), more than"
                f" {longer_than:g} s: take the part before or after it (log.slice, or --start and --end of"
                " gait convert), or allow longer gaps (max_gap, --max-gap)"
            )

    def slice(self, t0: float | None = None, t1: float | None = None) -> Log:
        """The rows with t0 <= t < t1; None leaves that end open. Arrays are shared, not copied."""
        first = 0 if t0 is None else int(np.searchsorted(self.t, t0))
        last = len(self) if t1 is None else int(np.searchsorted(self.t, t1))
        if last - first < 2:
            start = "the start" if t0 is None else f"{t0:.9g} s"
            end = "the end" if t1 is None else f"{t1:.9g} s"
            raise GaitError(
                f"the part from {start} to {end} leaves {max(last - first, 0)} rows: the log runs from"
                f" {self.t[0]:.9g} to {self.t[-1]:.9g} s, choose a part of it with two rows or more"
            )
        return self._each(lambda _, array: np.asarray(array[first:last]))

    def reorder(self, robot: str | Path | Robot) -> Log:
        """The same data with joints and legs in the robot's order, matched by name.

        Joints the robot does not have (an arm, say) are left out. Legs matter only where a field runs over legs.

        Args:
            robot: name of a robot that ships with gait, the path of a YAML, URDF or MJCF file, or a `Robot`. The log's
                own `robot` is a name and no path: a log without a description needs one of the other two.
        """
        try:
            robot = self.load_robot() if robot == self.robot and self.description else robot
            name, legs, joints, own = _resolve_names(robot, None, None)
        except GaitError:
            if robot != self.robot:
                raise
            raise GaitError(
                f"the log knows its robot '{robot}' by name only, and gait ships none of that name: give the path of"
                " its YAML file or a Robot (in Python), or leave the order as it is"
            ) from None
        own = own or ""
        if (name, legs, joints, own) == (self.robot, self.leg_names, self.joint_names, self.description):
            return self
        by_axis = {"joint": _find(joints, self.joint_names, "joint", name)}
        if any("leg" in field.axes and field.name in self.arrays() for field in self.FIELDS):
            by_axis["leg"] = _find(legs, self.leg_names, "leg", name)

        def pick(axes: tuple[str, ...], array: AnyArray) -> AnyArray:
            index = by_axis.get(axes[0]) if axes else None
            return array if index is None else np.asarray(array[:, index])

        return self._each(pick, robot=name, leg_names=legs, joint_names=joints, description=own)

    def rename(self, names: Mapping[str, str]) -> Log:
        """The same data with joints or legs renamed: old name to new name, as `reorder` needs them."""
        known = [*self.joint_names, *self.leg_names]
        refuse_unknown(names, known, "the log", "joint or leg", "joints and legs")
        joints, legs = ([names.get(name, name) for name in some] for some in (self.joint_names, self.leg_names))
        return self.replace(joint_names=joints, leg_names=legs)

    def resample(self, rate: float, max_gap: float = MAX_GAP) -> Log:
        """The same time span at another rate.

        Signals are interpolated linearly and rotations along the shortest arc; a contact flag holds until the next
        sample. Nothing is filtered: going to a much lower rate aliases, as a slower sensor would.

        Args:
            rate: samples per second.
            max_gap: a longer pause (s) is an error, since nothing is known in between.
        """
        if not (np.isfinite(rate) and rate > 0.0):
            raise GaitError(f"cannot resample to {rate} Hz: give a rate above 0")
        self.require_no_gaps(max_gap)
        # Stamps a hair apart are one instant: rounding must neither drop the last sample nor look one sample back.
        # Seconds since 1970 are themselves rounded to 0.2 us.
        hair = max(1e-6 / max(rate, self.rate), 4.0 * float(np.spacing(np.abs(self.t).max())))
        if (self.duration + hair) * rate >= MOST_ROWS:
            raise GaitError(
                f"cannot resample {self.duration:g} s of data to {rate:g} Hz: that is more than"
                f" {MOST_ROWS // 1_000_000} million rows, give a lower rate or a shorter part"
            )
        count = int(np.floor((self.duration + hair) * rate)) + 1
        if count < 2:
            raise GaitError(f"cannot resample {self.duration:g} s of data to {rate} Hz: give a higher rate")
        t = np.minimum(self.t[0] + np.arange(count) / rate, self.t[-1])
        before, part = places(self.t, t, early=hair)
        step = self.t[before + 1] - self.t[before]
        part = np.where(np.abs(part - np.rint(part)) * step <= hair, np.rint(part), part)

        def sample(axes: tuple[str, ...], array: AnyArray) -> AnyArray:
            return np.asarray(t) if array is self.t else interpolate(array, before, part, axes)

        return self._each(sample)

    def with_imu_noise(self, noise: ImuNoise, seed: int) -> Log:
        """The same Log with a worse IMU. `noise.biases(log.t, seed)` tells the biases that were added."""
        gyro, accel = noise.applied(self.t, self.gyro, self.accel, seed)
        return self.replace(gyro=gyro, accel=accel)

    @staticmethod
    def load(path: str | Path) -> Log:
        """Read a file of any known format, as `gait.open_log` does."""
        from gait.io import open_log

        return open_log(path)

    def _each(self, change: Callable[[tuple[str, ...], AnyArray], AnyArray], **names: Any) -> Log:
        """The Log with `change(axes, array)` in the place of every array that is there."""
        axes = {field.name: field.axes for field in self.FIELDS}
        return self.replace(**{name: change(axes[name], array) for name, array in self.arrays().items()}, **names)


def _resolve_names(
    robot: str | Path | Robot, leg_names: Sequence[str] | None, joint_names: Sequence[str] | None
) -> tuple[str, tuple[str, ...], tuple[str, ...], str | None]:
    """Name, legs, joints and description of a robot; it may be unknown as long as both lists are given."""
    is_path = isinstance(robot, Path) or (isinstance(robot, str) and robot.lower().endswith((*YAML, *MODELS)))
    legs = None if leg_names is None else _names(leg_names, "leg_names")
    joints = None if joint_names is None else _names(joint_names, "joint_names")
    if legs is not None and joints is not None and isinstance(robot, str | Path):
        # The robot need not exist, and the path of its file is private.
        return Path(robot).stem if is_path else str(robot), legs, joints, None
    loaded = robot if isinstance(robot, Robot) else Robot.load(robot) if is_path else _shipped(str(robot))
    joints = loaded.encoder_names if joints is None else joints
    return loaded.name, loaded.leg_names if legs is None else legs, joints, described(loaded)


@lru_cache(maxsize=32)  # a robot never changes, and every log that is estimated asks
def described(robot: Robot) -> str:
    """What a log says of its robot: nothing of one that ships with gait, of another its description as JSON."""
    tree = robot_tree(robot)
    if robot.name in robot_names() and tree == robot_tree(_shipped(robot.name)):
        return ""
    return json.dumps(tree, separators=(",", ":"))


@lru_cache(maxsize=8)
def _carried(description: str) -> Robot:
    try:
        tree = load_json(description)
    except ValueError:
        raise GaitError("the description of the robot in the log is damaged: give --robot") from None
    return Robot.of(tree, "the log's robot")


def _names(names: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        raise GaitError(f"Log {what} must be a list of names without spaces, commas, quotes or #, got {shown(names)}")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise GaitError(f"Log {what} has '{twice[0]}' twice: every name must be its own")
    return tuple(names)


def _find(wanted: Sequence[str], present: Sequence[str], kind: str, robot: str) -> list[int]:
    missing = [name for name in wanted if name not in present]
    if missing:
        near = [name for name in present if missing[0] in name or name in missing[0]]
        pair = f"{near[0] if near else 'THEIRS'}={missing[0]}"
        raise GaitError(
            f"the log has no {kind} '{missing[0]}' that {robot} needs; it has {', '.join(present)}: choose its own"
            f" --robot, or rename with --joint-names {pair} (log.rename in Python)"
        )
    return [present.index(name) for name in wanted]
