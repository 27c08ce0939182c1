"""What an estimator makes of a feed: errors against ground truth, standard deviations and health, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gait import quaternions
from gait.arrays import AnyArray, Array, BoolArray
from gait.bench.faults.feed import Feed
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.state import RowLayout, State, StateArrays

CHUNK = 5000
"""Samples whose whole covariances are in memory at a time."""
CORE = 15
"""Rows of the covariance that every method has: rotation, velocity, position and biases."""
FINITE = ("vel_b", "vel_w", "pos_w", "quat_wb_wxyz", "gyro_bias", "accel_bias", "vel_cov", "pose_cov")
"""Parts of a state that must never be NaN."""


@dataclass(frozen=True, eq=False)
class Track:
    """Errors of an estimate, row by row."""

    time: Array
    """When the samples arrived (N,), s."""
    velocity: Array
    """Error of the body velocity (N, 3), m/s."""
    velocity_std: Array
    position: Array
    """Error of the position in world axes (N, 3), m."""
    position_std: Array
    yaw: Array
    """Error of the rotation about the world's z (N, 1), rad."""
    yaw_std: Array
    health: AnyArray
    """Health bits (N,)."""
    not_finite: BoolArray
    """Where some part of the state is not finite (N,)."""
    indefinite: BoolArray
    """Where the covariance is not positive definite (N,)."""
    states: StateArrays | None = None
    """Where it comes from."""
    exception: str = ""
    """What `update` raised; the track ends there."""

    def __len__(self) -> int:
        return len(self.time)

    @property
    def speed_error(self) -> Array:
        """Length of the velocity error (N,), m/s; infinite where it is not a number."""
        return np.asarray(np.nan_to_num(np.linalg.norm(self.velocity, axis=1), nan=np.inf))

    def said(self, row: int) -> str:
        """Health of a row in words."""
        if self.states is None:
            return f"bits {int(self.health[row]):#x}"
        return str(State(self.states._row[row], self.states._layout).health)

    def within(self, name: str, rows: slice) -> float:
        """Share of the components of `velocity`, `position` or `yaw` within 3 std; nan of no rows."""
        error, std = getattr(self, name)[rows], getattr(self, f"{name}_std")[rows]
        return float(np.mean(np.abs(error) <= 3.0 * std)) if error.size else float("nan")


def follow(estimator: Estimator, feed: Feed) -> Track:
    """Feed an estimator sample by sample, as a robot would.

    Raises:
        GaitError: if the method refuses the first sample because an input is missing, or an update raises there.
    """
    feed.begin(estimator)
    samples, exception = feed.samples(), ""
    rows: list[Array] = []
    indefinite: list[BoolArray] = []
    layout: RowLayout | None = None
    while not exception and (chunk := list(islice(samples, CHUNK))):
        states: list[Any] = []
        try:
            for sample in chunk:
                state = estimator.update(*sample)
                states.append(state._data)
        except GaitError:
            if not rows and not states:
                raise
            exception = "GaitError"
        except Exception as error:
            exception = f"{type(error).__name__}: {error}"
        if states:
            layout = state._layout
            block = np.frombuffer(b"".join(states)).reshape(len(states), -1)
            size = layout.cov_size
            cov = block[:, -size * size :].reshape(-1, size, size)[:, :CORE, :CORE]
            indefinite.append(_indefinite(cov))
            rows.append(block[:, : -size * size].copy())
    if layout is None:
        raise GaitError(f"the estimator raised at the first sample: {exception}")
    return _track(StateArrays(np.concatenate(rows), layout), feed, np.concatenate(indefinite), exception)


def _track(states: StateArrays, feed: Feed, indefinite: BoolArray, exception: str) -> Track:
    count = len(states)
    position, quat, vel_w = (feed.truth[name][:count] for name in ("pos_w", "quat_wb_wxyz", "vel_w"))
    if feed.start == "gravity":
        position, quat, vel_w = _from_start(states, position, quat, vel_w)
    turn = quaternions.multiply(states.quat_wb_wxyz, quaternions.inverse(quat))
    pose_var = np.diagonal(states.pose_cov, axis1=1, axis2=2)
    vel_var = np.diagonal(states.vel_cov, axis1=1, axis2=2)
    finite = [np.isfinite(getattr(states, name)).reshape(count, -1).all(1) for name in FINITE]
    with np.errstate(invalid="ignore"):
        return Track(
            time=feed.time[:count],
            velocity=states.vel_b - quaternions.rotate_inverse(quat, vel_w),
            velocity_std=np.sqrt(vel_var),
            position=states.pos_w - position,
            position_std=np.sqrt(pose_var[:, :3]),
            yaw=quaternions.heading(turn)[:, None],
            yaw_std=np.sqrt(pose_var[:, 5:]),
            health=states.health,
            not_finite=~np.all(finite, axis=0),
            indefinite=indefinite,
            states=states,
            exception=exception,
        )


def _indefinite(cov: Array) -> BoolArray:
    """Which of the covariances (N, D, D) are not positive definite."""
    try:
        np.linalg.cholesky(cov)
        return np.zeros(len(cov), dtype=bool)
    except np.linalg.LinAlgError:
        pass
    var = np.diagonal(cov, axis1=1, axis2=2)
    bad: BoolArray = np.asarray(~(np.isfinite(cov).all((1, 2)) & (var > 0.0).all(1)))
    # To unit diagonal: a position and a bias differ by many orders of magnitude, and rounding with them.
    scale = 1.0 / np.sqrt(var[~bad])
    unit = cov[~bad] * scale[:, :, None] * scale[:, None, :]
    bad[~bad] = np.linalg.eigvalsh(unit)[:, 0] <= 0.0
    return bad


def _from_start(states: StateArrays, position: Array, quat: Array, vel_w: Array) -> tuple[Array, Array, Array]:
    """Ground truth in the frame of an estimate that started from gravity, where position and yaw are its own choice."""
    begin = quaternions.multiply(states.quat_wb_wxyz[0], quaternions.inverse(quat[0]))
    turn = np.broadcast_to(quaternions.turn_about_z(quaternions.heading(begin)), quat.shape)
    return (
        states.pos_w[0] + quaternions.rotate(turn, position - position[0]),
        quaternions.multiply(turn, quat),
        quaternions.rotate(turn, vel_w),
    )
