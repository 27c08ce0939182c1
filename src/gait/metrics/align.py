"""Bring an estimate and the ground truth onto one clock and into one frame, ready to be compared.

Quaternions are wxyz and batched over the first axis, so a whole run is a handful of numpy calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gait.arrays import Array, IntArray
from gait.errors import GaitError
from gait.lie import quat_from_rotation
from gait.log import MAX_GAP, Log, Trajectory
from gait.log.record import interpolate, places
from gait.quaternions import heading, inverse, multiply, rotate, rotate_inverse, turn_about_z

Method: TypeAlias = Literal["none", "first", "yaw", "se3"]
METHODS: tuple[Method, ...] = ("none", "first", "yaw", "se3")

CLOCK_TOLERANCE = 1e-6
"""Stamps closer than this (s) are the same instant: files round them, and a robot moves a micrometre in that time."""
MIN_SPREAD = 0.1
"""RMS distance (m) from its centre, in the plane, below which a path is too small to determine a heading."""


@dataclass(frozen=True, eq=False)
class States:
    """Pose and, where known, velocity over time."""

    pos_w: Array
    """Position in the world (N, 3)."""
    quat_wb_wxyz: Array
    """Orientation, body to world (N, 4)."""
    vel_w: Array | None
    """Velocity in the world (N, 3)."""

    @property
    def vel_b(self) -> Array | None:
        """Velocity in the body frame (N, 3)."""
        return None if self.vel_w is None else rotate_inverse(self.quat_wb_wxyz, self.vel_w)


@dataclass(frozen=True, eq=False)
class Pair:
    """Estimate and truth at the same instants."""

    t: Array
    """Time stamps of the estimate that have a truth (N,)."""
    rows: IntArray
    """Which rows of the estimate these are (N,)."""
    estimate: States
    truth: States

    @property
    def relative(self) -> Array:
        """World rotation that takes the estimated orientation to the true one (N, 4)."""
        return multiply(self.truth.quat_wb_wxyz, inverse(self.estimate.quat_wb_wxyz))


def associate(estimate: Trajectory, truth: Log | Trajectory, *, max_gap: float = MAX_GAP) -> Pair:
    """Pair every estimate with the ground truth at the same instant.

    With equal clocks nothing is computed. Otherwise the ground truth is interpolated onto the estimate's stamps (linear
    for position and velocity, slerp for rotation); estimates outside its time span, or inside a gap of it, have no pair
    and are left out.

    Args:
        estimate: the trajectory to evaluate.
        truth: a log with ground truth, or another trajectory.
        max_gap: longest distance between two samples of the ground truth to interpolate across, s.

    Raises:
        GaitError: if there is no truth, or fewer than two instants in common.
    """
    t, true_t, true = estimate.t, truth.t, _states(truth)
    if len(t) < 2:
        raise GaitError(f"the estimate has {len(t)} pose{'s' * (len(t) != 1)}: metrics need at least two")
    if len(t) == len(true_t) and float(np.max(np.abs(t - true_t))) <= CLOCK_TOLERANCE:
        return Pair(t, np.arange(len(t)), _states(estimate), true)
    inside = (t >= true_t[0] - CLOCK_TOLERANCE) & (t <= true_t[-1] + CLOCK_TOLERANCE)
    if np.count_nonzero(inside) < 2 or len(true_t) < 2:
        raise GaitError(
            f"estimate ({t[0]:.3f} to {t[-1]:.3f} s) and truth ({true_t[0]:.3f} to {true_t[-1]:.3f} s)"
            " share fewer than two instants: give both on the same clock"
        )
    before, part = places(true_t, t)
    span = true_t[before + 1] - true_t[before]
    on_a_sample = np.minimum(part, 1.0 - part) * span <= CLOCK_TOLERANCE
    rows = np.flatnonzero(inside & (on_a_sample | (span <= max_gap)))
    if len(rows) < 2:
        raise GaitError(
            f"the truth's samples are more than {max_gap:g} s apart around the estimate:"
            " give a denser truth, or allow longer gaps (max_gap, --max-gap)"
        )
    mine = States(estimate.pos_w[rows], estimate.quat_wb_wxyz[rows], estimate.vel_w[rows])
    where = before[rows], part[rows]
    vel_w = None if true.vel_w is None else interpolate(true.vel_w, *where, ("xyz",))
    quat_wb_wxyz = interpolate(true.quat_wb_wxyz, *where, ("wxyz",))
    return Pair(t[rows], rows, mine, States(interpolate(true.pos_w, *where, ("xyz",)), quat_wb_wxyz, vel_w))


def _states(source: Log | Trajectory) -> States:
    """The pose and velocity of a log or trajectory, or an error that names what is missing."""
    pos_w, quat = source.pos_w, source.quat_wb_wxyz
    if pos_w is None or quat is None:
        missing = "pos_w" if pos_w is None else "quat_wb_wxyz"
        raise GaitError(f"the log has no ground truth {missing}: give one that records position and rotation")
    return States(pos_w, quat, source.vel_w)


@dataclass(frozen=True, eq=False)
class Alignment:
    """A rigid motion of the estimate's world that brings it into the world of the ground truth."""

    method: Method
    quat_wxyz: Array
    """Rotation from the estimate's world to the ground truth's (4,)."""
    translation: Array
    """What to add after the rotation (3,)."""

    @property
    def yaw(self) -> float:
        """The rotation's part about the vertical, rad."""
        return float(heading(self.quat_wxyz))

    def apply(self, states: States) -> States:
        """Poses and velocities expressed in the ground truth's world."""
        q = self.quat_wxyz
        return States(
            rotate(q, states.pos_w) + self.translation,
            multiply(np.broadcast_to(q, states.quat_wb_wxyz.shape), states.quat_wb_wxyz),
            None if states.vel_w is None else rotate(q, states.vel_w),
        )


def align(
    estimate: Trajectory, truth: Log | Trajectory, method: Method = "yaw", *, max_gap: float = MAX_GAP
) -> Alignment:
    """Find the rigid motion that best brings the estimate onto the ground truth.

    - `none`: the two share a frame already.
    - `first`: the first poses coincide (evo calls it origin).
    - `yaw`: turn about the vertical and shift, least squares over all positions. These are the four degrees of
      freedom that an IMU cannot see, so they carry no merit (Zhang and Scaramuzza 2018).
    - `se3`: any rotation and shift, least squares over all positions (Umeyama 1991 without scale).

    A robot that stays within `MIN_SPREAD` draws no path to fit a heading to; `yaw` then takes the heading from the
    orientations.

    Args:
        estimate: what to bring over.
        truth: where to.
        method: one of the above.
        max_gap: as `associate` has it.

    Raises:
        GaitError: for an unknown method, no common time, or `se3` where the positions leave the rotation open.
    """
    return align_pair(associate(estimate, truth, max_gap=max_gap), method)


def align_pair(pair: Pair, method: Method) -> Alignment:
    """`align` for an estimate and a truth that are already on one clock."""
    true, mine = pair.truth, pair.estimate
    if method == "none":
        return Alignment(method, np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3))
    if method == "first":
        q = pair.relative[0]
        return Alignment(method, q, true.pos_w[0] - rotate(q, mine.pos_w[0]))
    if method not in METHODS:
        raise GaitError(f"unknown alignment '{method}': choose one of {', '.join(METHODS)}")
    centre_true, centre_mine = true.pos_w.mean(axis=0), mine.pos_w.mean(axis=0)
    p, e = true.pos_w - centre_true, mine.pos_w - centre_mine
    q = _yaw_rotation(p, e, pair.relative) if method == "yaw" else _full_rotation(p, e)
    return Alignment(method, q, centre_true - rotate(q, centre_mine))


def _yaw_rotation(p: Array, e: Array, relative: Array) -> Array:
    """Rotation about the vertical that takes the centred path `e` to `p`."""
    spread = min(float(np.mean(np.sum(path[:, :2] ** 2, axis=1))) for path in (p, e))
    if spread < MIN_SPREAD**2:
        w, z = relative[:, 0], relative[:, 3]
        yaw = math.atan2(float(np.sum(2.0 * w * z)), float(np.sum(w * w - z * z)))
    else:
        sine = float(np.sum(e[:, 0] * p[:, 1] - e[:, 1] * p[:, 0]))
        yaw = math.atan2(sine, float(np.sum(e[:, :2] * p[:, :2])))
    return turn_about_z(np.array(yaw))


def _full_rotation(p: Array, e: Array) -> Array:
    """Rotation that takes the centred points `e` to `p`, by the singular values of their covariance."""
    u, d, vt = np.linalg.svd(p.T @ e / len(p))
    if d[1] <= 1e-12 * max(float(d[0]), 1e-12):
        raise GaitError(
            "the positions lie on one line, which leaves the rotation about it open: align with 'yaw' or 'first'"
        )
    mirror = np.array([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    return quat_from_rotation((u * mirror) @ vt)
