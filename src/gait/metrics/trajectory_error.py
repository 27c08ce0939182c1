"""How good an estimate is: absolute and relative error, body velocity, drift. Formulas and choices: docs/metrics.md.

A name without suffix is a root mean square; `_mean` and `_std` are over the samples or windows of one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray, IntArray
from gait.errors import GaitError
from gait.log import MAX_GAP, Log, Trajectory
from gait.metrics.align import Alignment, Method, Pair, align_pair, associate
from gait.quaternions import angle, heading, inverse, multiply, rotate, turn_about_z
from gait.rows import Row

SLIP_SPEED = 0.5
"""A foot that the contact estimator holds for standing slips above this speed, m/s."""
LENGTH_TOLERANCE = 0.1
"""How far, relative to the wanted length, a sub-trajectory by distance may be off (evo's default)."""
MIN_DISTANCE = 0.1
"""Shortest path, m, over which drift per metre means anything."""


@dataclass(frozen=True, eq=False)
class Stats:
    """Errors, all >= 0, and their statistics."""

    values: Array
    """One for each sample or window (N,)."""

    @property
    def mean(self) -> float:
        """Average."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Standard deviation over the samples or windows themselves (divided by N)."""
        return float(np.std(self.values))

    @property
    def rmse(self) -> float:
        """Root mean square."""
        return float(np.sqrt(np.mean(self.values**2)))

    @property
    def max(self) -> float:
        """The worst."""
        return float(np.max(self.values))

    def rows(self, name: str, unit: str) -> list[Row]:
        """Root mean square, mean and standard deviation as rows."""
        return [Row(name, self.rmse, unit), Row(f"{name}_mean", self.mean, unit), Row(f"{name}_std", self.std, unit)]


def _norms(vectors: Array) -> Stats:
    return Stats(np.linalg.norm(vectors, axis=-1))


@dataclass(frozen=True, eq=False)
class PoseErrors:
    """Errors of position, rotation and velocity."""

    position: Stats
    """m."""
    rotation: Stats
    """rad."""
    velocity: Stats | None
    """m/s; none where the ground truth has no velocity."""

    def named(self, prefix: str, suffix: str = "") -> list[Row]:
        """All errors as rows, such as `ate_pos` or `re_pos_5s`."""
        parts = {"pos": (self.position, "m"), "vel": (self.velocity, "m/s"), "rot": (self.rotation, "rad")}
        known = {name: (stats, unit) for name, (stats, unit) in parts.items() if stats is not None}
        return [row for name, (stats, unit) in known.items() for row in stats.rows(f"{prefix}_{name}{suffix}", unit)]


@dataclass(frozen=True, eq=False)
class AbsoluteError(PoseErrors):
    """Absolute trajectory error after alignment; its velocities are each seen from their own body."""

    velocity_w: Stats | None
    """m/s, difference of the aligned world velocities, which includes a heading error."""
    alignment: Alignment

    def rows(self) -> list[Row]:
        """All errors as rows."""
        world = [] if self.velocity_w is None else self.velocity_w.rows("ate_vel_world", "m/s")
        return self.named("ate") + world


def ate(
    estimate: Trajectory, truth: Log | Trajectory, alignment: Method = "yaw", *, max_gap: float = MAX_GAP
) -> AbsoluteError:
    """Absolute trajectory error (Zhang and Scaramuzza 2018).

    Args:
        estimate: the trajectory to evaluate.
        truth: a log with ground truth, or another trajectory; interpolated onto the estimate's stamps.
        alignment: `none`, `first`, `yaw` or `se3`, see `align`.
        max_gap: as `associate` has it.
    """
    pair = associate(estimate, truth, max_gap=max_gap)
    motion = align_pair(pair, alignment)
    mine, true = motion.apply(pair.estimate), pair.truth
    rotation = multiply(true.quat_wb_wxyz, inverse(mine.quat_wb_wxyz))
    velocity = velocity_w = None
    if mine.vel_w is not None and true.vel_w is not None:
        velocity = _norms(true.vel_w - rotate(rotation, mine.vel_w))
        velocity_w = _norms(true.vel_w - mine.vel_w)
    return AbsoluteError(_norms(true.pos_w - mine.pos_w), Stats(angle(rotation)), velocity, velocity_w, motion)


@dataclass(frozen=True, eq=False)
class RelativeError(PoseErrors):
    """Error over sub-trajectories of one length, each aligned at its own start."""

    length: float
    unit: Literal["s", "m"]
    starts: IntArray
    """Row of the estimate at which each window begins (K,)."""
    ends: IntArray
    """Row of the estimate at which each window ends (K,)."""

    def rows(self) -> list[Row]:
        """All errors as rows, named after the window, such as `re_pos_5s`."""
        return self.named("re", f"_{self.length:g}{self.unit}")


def relative_error(
    estimate: Trajectory,
    truth: Log | Trajectory,
    seconds: float | None = None,
    *,
    metres: float | None = None,
    alignment: Literal["first", "yaw"] = "first",
    velocity: Literal["change", "end"] = "change",
    max_gap: float = MAX_GAP,
) -> RelativeError:
    """Relative error over every sub-trajectory of a given duration or travelled distance.

    A window starts at every sample. With the defaults, position and rotation equal evo's RPE over all pairs.

    Args:
        estimate: the trajectory to evaluate.
        truth: a log with ground truth, or another trajectory; interpolated onto the estimate's stamps.
        seconds: duration of a window; 5 s if neither length is given.
        metres: distance the ground truth travels in a window, instead of `seconds`.
        alignment: what the window's start takes away: the whole pose (`first`), or position and heading (`yaw`).
        velocity: judge the change of velocity over the window, or the velocity at its end.
        max_gap: as `associate` has it.
    """
    if seconds is not None and metres is not None:
        raise GaitError("a window has one length: give seconds or metres, not both")
    if alignment not in ("first", "yaw"):
        raise GaitError(f"unknown alignment '{alignment}' of a window: choose first or yaw")
    if velocity not in ("change", "end"):
        raise GaitError(f"unknown velocity error '{velocity}' of a window: choose change or end")
    unit: Literal["s", "m"] = "s" if metres is None else "m"
    length = metres if metres is not None else 5.0 if seconds is None else seconds
    if not length > 0.0:
        raise GaitError(f"a window of {length:g} {unit} has no length: give a positive one")
    pair = associate(estimate, truth, max_gap=max_gap)
    s, e = _windows(pair, length, unit)
    relative = pair.relative
    turn = relative[s] if alignment == "first" else turn_about_z(heading(relative[s]))
    mine, true = pair.estimate, pair.truth
    position = (true.pos_w[e] - true.pos_w[s]) - rotate(turn, mine.pos_w[e] - mine.pos_w[s])
    speed = None
    if mine.vel_w is not None and true.vel_w is not None:
        v, u = true.vel_w[e], mine.vel_w[e]
        if velocity == "change":
            v, u = v - true.vel_w[s], u - mine.vel_w[s]
        speed = _norms(v - rotate(turn, u))
    rotation = Stats(angle(multiply(relative[e], inverse(turn))))
    return RelativeError(_norms(position), rotation, speed, length, unit, pair.rows[s], pair.rows[e])


def _windows(pair: Pair, length: float, unit: str) -> tuple[IntArray, IntArray]:
    """First and last row of every window of a duration, or of a distance of the true path."""
    if unit == "s":
        # Half a sample either way, so that a window is never silently shorter at the end of the run.
        along, slack = pair.t - pair.t[0], 0.5 * float(np.median(np.diff(pair.t))) * (1.0 + 1e-6)
    else:
        along, slack = path_length(pair.truth.pos_w), LENGTH_TOLERANCE * length
    right = np.clip(np.searchsorted(along, along + length), 1, len(along) - 1)
    end = right - (along + length - along[right - 1] <= along[right] - (along + length))
    # Where the robot stands, many samples share one distance: arrival is the first of them.
    end = np.searchsorted(along, along[end])
    start = np.flatnonzero(np.abs(along[end] - along - length) <= slack)
    start = start[end[start] > start]
    if len(start) == 0:
        short = {
            "s": "lasts {:g} s, the run has {:.4g} s with truth",
            "m": "is {:g} m long, the robot travels {:.4g} m",
        }
        raise GaitError(f"no sub-trajectory {short[unit].format(length, along[-1])}: choose a shorter window")
    return start, end[start]


def path_length(pos_w: Array) -> Array:
    """Distance travelled up to each sample (N,), the sum of the steps between samples (N, 3)."""
    steps = np.linalg.norm(np.diff(pos_w, axis=0), axis=1)
    return np.concatenate(([0.0], np.cumsum(steps)))


@dataclass(frozen=True, eq=False)
class VelocityError:
    """Error of the velocity in the body frame."""

    errors_b: Array
    """Estimate minus truth, at the samples that count (N, 3)."""

    @property
    def norm(self) -> Stats:
        """Statistics of the length of the error."""
        return _norms(self.errors_b)

    @property
    def rmse(self) -> float:
        """Root mean square of the length of the error, m/s."""
        return self.norm.rmse

    @property
    def axes(self) -> Array:
        """Root mean square along forward, left and up (3,)."""
        return np.asarray(np.sqrt(np.mean(self.errors_b**2, axis=0)))

    @property
    def bias(self) -> Array:
        """Mean error along forward, left and up (3,): what does not average out."""
        return np.asarray(np.mean(self.errors_b, axis=0))

    def rows(self, name: str = "velocity_rmse") -> list[Row]:
        """Overall and by axis as rows."""
        return [Row(name, self.rmse, "m/s")] + [
            Row(f"{name}_{axis}", float(value), "m/s") for axis, value in zip("xyz", self.axes, strict=True)
        ]


def velocity_rmse(
    estimate: Trajectory, truth: Log | Trajectory, mask: BoolArray | None = None, *, max_gap: float = MAX_GAP
) -> VelocityError:
    """Error of the body-frame velocity, over the whole run or where a mask is true.

    Args:
        estimate: the trajectory to evaluate, by its `vel_b`: that of a network works as well.
        truth: a log with ground truth, or another trajectory.
        mask: one flag for each row of the estimate, such as from `slip_mask`.
        max_gap: as `associate` has it.
    """
    pair = associate(estimate, truth, max_gap=max_gap)
    true_b = pair.truth.vel_b
    if true_b is None:
        raise GaitError("the log has no ground truth vel_w: give one that records the velocity")
    errors = estimate.vel_b[pair.rows] - true_b
    if mask is not None:
        if mask.shape != estimate.t.shape:
            raise GaitError(
                f"the mask has shape {mask.shape} but must be {estimate.t.shape}: one flag for each estimate"
            )
        errors = errors[mask[pair.rows]]
        if len(errors) == 0:
            raise GaitError("the mask selects no sample with truth: there is no error to average")
    return VelocityError(errors)


def slip_mask(log: Log, contact: AnyArray, threshold: float = SLIP_SPEED) -> BoolArray:
    """Samples at which some foot slips: held for standing while it truly moves faster than the threshold.

    Args:
        log: with the true `foot_vel_w`.
        contact: of the contact estimator (N, legs), in the log's order of legs.
        threshold: speed above which a standing foot slips, m/s.
    """
    if log.foot_vel_w is None:
        raise GaitError("the log has no ground truth foot_vel_w: give one that records it to find slips")
    speed = np.linalg.norm(log.foot_vel_w, axis=-1)
    contact = np.asarray(contact)
    if contact.shape != speed.shape:
        raise GaitError(
            f"contact has shape {contact.shape} but must be {speed.shape}: one flag for each sample and leg"
        )
    return np.asarray(np.any(contact.astype(bool) & (speed > threshold), axis=1))


@dataclass(frozen=True)
class Drift:
    """Error at the end of a run for each metre travelled, aligned at the first pose in position and heading."""

    distance: float
    """Path of the ground truth, m."""
    position: float
    """Length of the position error at the end, m/m."""
    height: float
    """Signed vertical part of it: positive if the estimate climbs, m/m."""
    heading: float
    """Signed heading error at the end: positive if the estimate turns left, rad/m."""

    def rows(self) -> list[Row]:
        """All parts as rows."""
        return [
            Row("distance", self.distance, "m"),
            Row("drift", self.position, "m/m"),
            Row("drift_height", self.height, "m/m"),
            Row("drift_heading", self.heading, "rad/m"),
        ]


def drift(estimate: Trajectory, truth: Log | Trajectory, *, max_gap: float = MAX_GAP) -> Drift:
    """Drift per metre travelled over the whole run.

    Args:
        estimate: the trajectory to evaluate.
        truth: a log with ground truth, or another trajectory.
        max_gap: as `associate` has it.

    Raises:
        GaitError: if the robot travels less than `MIN_DISTANCE`.
    """
    pair = associate(estimate, truth, max_gap=max_gap)
    distance = float(path_length(pair.truth.pos_w)[-1])
    if distance < MIN_DISTANCE:
        raise GaitError(f"the robot travels only {distance:.3g} m: drift per metre needs at least {MIN_DISTANCE:g} m")
    mine, true, relative = pair.estimate.pos_w, pair.truth.pos_w, pair.relative
    turn = turn_about_z(heading(relative[0]))
    error = rotate(turn, mine[-1] - mine[0]) - (true[-1] - true[0])
    left = float(heading(multiply(turn, inverse(relative[-1]))))
    return Drift(distance, float(np.linalg.norm(error)) / distance, float(error[2]) / distance, left / distance)
