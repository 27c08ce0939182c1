"""Does a robot still walk when an estimator, and not ground truth, feeds its controller?

The robot is the benchmark's twin in body and sensors. Velocity, orientation (a policy sees the direction of gravity)
and angular rate come from the estimator at 500 Hz, joints from the simulation; the controller runs at its own rate.
Ground truth initialises the estimator while the robot stands. Every source walks the same episodes, so that
differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.quaternions import rotate_inverse
from gait.report.table import Cell, Table, TableLine
from gait.rows import Row
from gait.sim.collect import episode_feedback
from gait.sim.episode import TRUTH, Fed, Feedback, RawEpisode, run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.plan import CollectConfig
from gait.sim.stepping import OMEGA, QUAT, VEL
from gait.sim.workers import hold_ctrl_c, worker_pool

RESAMPLES = 10_000
"""Of the bootstrap."""


class LoopWalk(NamedTuple):
    """One walk with a source of feedback."""

    fell_at: float | None
    tracking: float
    """Root mean square of the base's horizontal velocity minus the command, in the heading frame, m/s."""
    velocity: float
    """Root mean square of the error of the velocity that the controller was fed, in the body frame, m/s."""


class PairedDifference(NamedTuple):
    """Of a figure to that with ground truth, over the same episodes."""

    mean: float
    low: float
    """Lower end of the 95 % confidence interval of the mean."""
    high: float


@dataclass(frozen=True)
class Source:
    """What all walks with one source of feedback came to."""

    name: str
    walks: tuple[LoopWalk, ...]

    @property
    def falls(self) -> int:
        """How many fell."""
        return int(self._values("falls").sum())

    def mean(self, figure: str) -> float:
        """Of `tracking` or `velocity`, root mean square over all walks without a fall, m/s."""
        values = self._values(figure)[self._values("falls") == 0.0]
        return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")

    def _values(self, figure: str) -> Array:
        if figure == "falls":
            return np.array([float(walk.fell_at is not None) for walk in self.walks])
        return np.array([getattr(walk, figure) for walk in self.walks])

    def difference(self, truth: Source, figure: str) -> PairedDifference:
        """The mean difference of a figure, with the percentile bootstrap over episodes.

        Tracking is compared in the episodes in which neither fell: a fall is counted as one, not as bad tracking.
        """
        each = self._values(figure) - truth._values(figure)
        if figure != "falls":
            each = each[self._values("falls") + truth._values("falls") == 0.0]
        if not len(each):
            return PairedDifference(*[float("nan")] * 3)
        drawn = np.random.default_rng(0).integers(len(each), size=(RESAMPLES, len(each)))
        low, high = np.percentile(each[drawn].mean(axis=1), (2.5, 97.5))
        return PairedDifference(float(each.mean()), float(low), float(high))

    def rows(self, truth: Source | None) -> list[Row]:
        """The figures, and where there is ground truth to compare with, the differences."""
        rows = [Row(f"{self.name}.falls", self.falls, "-"), Row(f"{self.name}.walks", len(self.walks), "-")]
        rows += [Row(f"{self.name}.{figure}_rmse", self.mean(figure), "m/s") for figure in ("tracking", "velocity")]
        for figure, unit in (("falls", "share"), ("tracking", "m/s")) if truth not in (None, self) else ():
            assert truth is not None
            found = self.difference(truth, figure)
            rows += [Row(f"{self.name}.{figure}_difference_{n}", v, unit) for n, v in found._asdict().items()]
        return rows


def true_feedback(rows: Array) -> Fed:
    """Ground truth at the last of `rows`."""
    return Fed(*(rows[-1, columns].copy() for columns in (VEL, QUAT, OMEGA)))


class Delayed:
    """A feedback that arrives some milliseconds later, as over a bus."""

    def __init__(self, feedback: Feedback, delay: int) -> None:
        self._feedback, self._delay = feedback, delay
        self._waiting: list[Array] = []
        self._fed: Fed | None = None

    def __call__(self, rows: Array) -> Fed:
        """What was known `delay` rows ago; at the start, the first row."""
        self._waiting += list(rows)
        ready = max(len(self._waiting) - self._delay, 1 if self._fed is None else 0)
        if ready > 0:
            self._fed = self._feedback(np.array(self._waiting[:ready]))
            del self._waiting[:ready]
        assert self._fed is not None
        return self._fed


class Watched:
    """A feedback, and how wrong its velocity was."""

    def __init__(self, feedback: Feedback) -> None:
        self._feedback = feedback
        self.squares: list[float] = []

    def __call__(self, rows: Array) -> Fed:
        """Pass on what the controller is fed with."""
        truth, fed = true_feedback(rows), self._feedback(rows)
        # In the body frame, as a policy reads it: an error of the heading, which nothing observes, does not count.
        vel_b, true_b = (rotate_inverse(one.quat_wb_wxyz[None], one.vel_w[None])[0] for one in (fed, truth))
        self.squares.append(float(np.sum((vel_b - true_b) ** 2)))
        return fed


def tracking_error(raw: RawEpisode) -> float:
    """Root mean square of the horizontal velocity minus the command, in the heading frame, m/s."""
    w, x, y, z = raw.quat_wb_wxyz.T
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    # As complex numbers: turning into the heading frame is a product.
    velocity = (raw.vel_w[:, 0] + 1j * raw.vel_w[:, 1]) * np.exp(-1j * yaw)
    return float(np.sqrt(np.mean(np.abs(velocity - (raw.command[:, 0] + 1j * raw.command[:, 1])) ** 2)))


def loop_walk(plan: CollectConfig, number: int, delay: int = 0) -> LoopWalk:
    """Walk one episode of a collection with its estimator in the loop, `delay` ms behind."""
    episode, seed, _ = draw_episode(plan, number)
    feedback = episode_feedback(plan, episode, seed) or true_feedback
    watched = Watched(Delayed(feedback, delay) if delay else feedback)
    raw = run_episode(episode, seed, watched)
    return LoopWalk(raw.fell_at, tracking_error(raw), float(np.sqrt(np.mean(watched.squares))))


def loop_study(
    plan: CollectConfig,
    sources: Sequence[str],
    workers: int = 1,
    progress: Callable[[str, float], None] | None = None,
    delay: int = 0,
) -> list[Source]:
    """Walk the episodes of a plan with each source of feedback.

    Args:
        plan: of the walks and the number of episodes.
        sources: `truth`, methods or model files.
        workers: processes.
        progress: called with a source and the share of all walks that are done.
        delay: milliseconds by which the feedback arrives later.
    """
    jobs = [(replace(plan, feedback=name), number, delay) for name in sources for number in range(plan.episodes)]
    found = list[LoopWalk]()
    for (config, _, _), walk in zip(jobs, _walked(jobs, workers), strict=True):
        found.append(walk)
        if progress is not None:
            progress(config.feedback, len(found) / len(jobs))
    return [Source(name, tuple(found[i * plan.episodes : (i + 1) * plan.episodes])) for i, name in enumerate(sources)]


def _walked(jobs: Sequence[tuple[CollectConfig, int, int]], workers: int) -> Iterator[LoopWalk]:
    if workers == 1:
        yield from (loop_walk(*job) for job in jobs)
        return
    with worker_pool(workers) as pool:
        with hold_ctrl_c():
            futures = [pool.submit(loop_walk, *job) for job in jobs]
        yield from (future.result() for future in futures)


def truth_of(sources: Sequence[Source]) -> Source | None:
    """The source that is ground truth, if it was among those walked."""
    return next((source for source in sources if source.name == TRUTH), None)


def loop_table(sources: Sequence[Source], title: str) -> Table:
    """A line a source."""
    truth = truth_of(sources)
    units = {"tracking": "m/s", "more": "%", "from": "%", "to": "%", "velocity": "m/s"}
    labels = {"tracking": "tracking error", "more": "to truth", "velocity": "velocity error"}
    lines = []
    for source in sources:
        cells = {"falls": Cell(source.falls), "tracking": Cell(source.mean("tracking"))}
        if truth is not None and source is not truth:
            base = truth.mean("tracking")
            found = source.difference(truth, "tracking")
            cells |= {name: Cell(100.0 * v / base) for name, v in zip(("more", "from", "to"), found, strict=True)}
        if source.name != TRUTH:
            cells["velocity"] = Cell(source.mean("velocity"))
        lines.append(TableLine((source.name,), cells))
    note = f"{len(sources[0].walks)} walks each; from and to: 95 % interval of the paired difference in tracking error"
    return Table("loop", title, note, ("fed by",), ("falls", *units), tuple(lines), "", units, labels)
