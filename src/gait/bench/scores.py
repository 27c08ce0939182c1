"""Scores of one method on one walk: sums and bins, small enough to keep for all walks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray
from gait.bench.courses import Walk
from gait.errors import GaitError
from gait.estimator import StateArrays
from gait.log import Log, Trajectory
from gait.metrics import Stats, ate, nees, relative_error, slip_mask, velocity_rmse
from gait.report.walk_charts import vel_b_std

SEGMENT = 5.0
"""Seconds of a piece of a walk for the bootstrap, and of a window of the relative error."""
SLIP_EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5])
"""Bins of slip speed, m/s; the last one is open."""
STD_EDGES = np.geomspace(1e-3, 3.0, 15)
"""Bins of predicted standard deviation, m/s."""
METRICS = {"ate_vel": "m/s", "ate_rot": "rad", "re_pos": "m", "re_vel": "m/s", "re_rot": "rad"}
"""What Table IV reports, with units."""


@dataclass(frozen=True)
class Moments:
    """Count, sum and sum of squares: enough for a mean and its spread over many walks."""

    count: int
    total: float
    squares: float

    @staticmethod
    def of(values: AnyArray) -> Moments:
        """Of any number of values."""
        return Moments(int(np.size(values)), float(np.sum(values)), float(np.sum(np.square(values))))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """Average; nan of nothing."""
        return self.total / self.count if self.count else float("nan")

    @property
    def std(self) -> float:
        """Standard deviation over the values themselves."""
        return float(np.sqrt(max(self.squares / self.count - self.mean**2, 0.0))) if self.count else float("nan")

    @property
    def rms(self) -> float:
        """Root mean square."""
        return float(np.sqrt(self.squares / self.count)) if self.count else float("nan")

    @property
    def as_one(self) -> Moments:
        """The same mean and spread with the weight of one value."""
        return Moments(1, self.mean, self.squares / self.count)


NOTHING = Moments(0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class VelocitySums:
    """How good a body velocity and its standard deviation are."""

    full: Moments
    """Length of the error, all samples."""
    slip: Moments
    """Length of the error while a foot slips."""
    segments: Array
    """Mean square of the length in each piece of `SEGMENT` seconds (K,)."""
    by_slip: Array
    """Sum of squared lengths and count in each bin of slip speed (bins, 2)."""
    by_std: Array
    """Sum of squared components and count in each bin of predicted standard deviation (bins, 2)."""
    within: tuple[float, float]
    """Share of the components within one and within two predicted standard deviations."""


@dataclass(frozen=True, eq=False)
class WalkScore:
    """One method with one set of weights on one walk."""

    course: str
    run: int
    method: str
    seed: int
    fused: VelocitySums
    """Of the filter."""
    network: VelocitySums | None
    """Of the network by itself, as Tables I to III have it; none without a network that outputs the velocity of the
    body."""
    errors: dict[str, Moments]
    """The metrics of Table IV."""
    nees: float
    """Of the filter's velocity; 3 is ideal."""
    step_us: float
    """Microseconds a sample took in `run`."""

    @property
    def velocity(self) -> VelocitySums:
        """What Tables I to III compare: the network's velocity, or the filter's where there is no network."""
        return self.fused if self.network is None else self.network


@dataclass(frozen=True, eq=False)
class Ground:
    """Slip and flight of a walk: the same for all methods."""

    slipping: BoolArray
    """Where a foot in contact (as the contact estimator has it) is faster than 0.5 m/s (N,)."""
    slip_speed: Array
    """True speed of the fastest foot in contact (as the contact estimator has it) (N,), m/s."""
    flight: BoolArray
    """Where truly no foot is on the ground (N,)."""

    @staticmethod
    def of(log: Log, contact: BoolArray) -> Ground:
        """Of a log and its estimated contacts (N, L)."""
        none = np.zeros(len(log), dtype=bool)
        flight = none if log.contact is None else np.asarray(~log.contact.any(1))
        if log.foot_vel_w is None:
            return Ground(none, np.full(len(log), np.nan), flight)
        speed = np.where(contact, np.linalg.norm(log.foot_vel_w, axis=-1), 0.0)
        return Ground(slip_mask(log, contact), speed.max(1), flight)


def score(
    walk: Walk,
    method: str,
    seed: int,
    ground: Ground,
    trajectory: Trajectory,
    network: StateArrays | None,
    seconds: float,
) -> WalkScore:
    """Score an estimate of a walk.

    Args:
        walk: with ground truth of position, orientation and velocity.
        method: by name.
        seed: of its weights.
        ground: of that walk.
        trajectory: the estimate, on the log's clock.
        network: with the velocity of the network, if there is one.
        seconds: how long the estimate took.
    """
    log = walk.log
    error = velocity_rmse(trajectory, log).errors_b
    if len(error) != len(log):
        raise GaitError("the truth does not cover the whole log: cut the log to where it does")
    assert trajectory.vel_cov is not None
    alone = None
    if network is not None:
        predicted, sigma = network.predicted
        alone = velocity_sums(log.t, predicted - (trajectory.vel_b - error), sigma, ground)
    absolute = ate(trajectory, log)
    found: dict[str, Stats | None] = {"ate_vel": absolute.velocity, "ate_rot": absolute.rotation}
    if log.duration >= SEGMENT:
        relative = relative_error(trajectory, log, SEGMENT)
        found |= {"re_pos": relative.position, "re_vel": relative.velocity, "re_rot": relative.rotation}
    return WalkScore(
        course=walk.course,
        run=walk.run,
        method=method,
        seed=seed,
        fused=velocity_sums(log.t, error, vel_b_std(trajectory), ground),
        network=alone,
        errors={name: Moments.of(stats.values) for name in METRICS if (stats := found.get(name)) is not None},
        nees=nees(error, trajectory.vel_cov).mean,
        step_us=seconds / len(log) * 1e6,
    )


def velocity_sums(t: Array, error: Array, std: Array, ground: Ground) -> VelocitySums:
    """Score a velocity by its errors (N, 3) and standard deviations (N, 3)."""
    length = np.linalg.norm(error, axis=1)
    # The last sample lasts as long as the others; what is left over at the end belongs to the last piece.
    pieces = max(int((t[-1] - t[0] + np.median(np.diff(t))) / SEGMENT + 1e-6), 1)
    piece = np.minimum(((t - t[0]) / SEGMENT + 1e-6).astype(int), pieces - 1)
    share = np.abs(error) / np.maximum(std, 1e-12)
    speed = np.where(np.isfinite(ground.slip_speed), ground.slip_speed, -1.0)
    return VelocitySums(
        full=Moments.of(length),
        slip=Moments.of(length[ground.slipping]),
        segments=np.bincount(piece, length**2) / np.bincount(piece),
        by_slip=_binned(speed, length**2, SLIP_EDGES),
        by_std=_binned(std.ravel(), error.ravel() ** 2, STD_EDGES),
        within=(float(np.mean(share <= 1.0)), float(np.mean(share <= 2.0))),
    )


def _binned(where: Array, values: Array, edges: Array) -> Array:
    """Sum and count of values in each bin (bins, 2); values below the first edge are left out."""
    bins = np.searchsorted(edges, where, side="right")
    total = np.bincount(bins, values, minlength=len(edges) + 1)[1:]
    return np.stack([total, np.bincount(bins, minlength=len(edges) + 1)[1:]], axis=1)
