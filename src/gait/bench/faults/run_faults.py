"""`gait bench faults`: every fault, one at a time, on the sample log and on simulated walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gait.bench.courses import Progress
from gait.bench.faults.fault import Fault, Span, matching, nothing
from gait.bench.faults.fault_scores import FaultScore, calm, raised, refusal, rows_between, score_fault
from gait.bench.faults.feed import Feed
from gait.bench.faults.imu_faults import IMU_FAULTS
from gait.bench.faults.joint_faults import JOINT_FAULTS
from gait.bench.faults.timing_faults import TIMING_FAULTS
from gait.bench.faults.track import Track, follow
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.log import Log
from gait.methods import BUILT_IN, known_method
from gait.rows import Row

SEED = 190
"""Of everything that faults draw; each fault has a generator of its own."""
NONE = Fault("none", "nothing wrong", nothing, lasts="whole")
"""The clean run by the same criteria."""
FAULTS: tuple[Fault, ...] = (NONE, *IMU_FAULTS, *JOINT_FAULTS, *TIMING_FAULTS)


@dataclass(frozen=True)
class FaultRow:
    """One fault on one log, with the score of each method."""

    log: str
    fault: Fault
    scores: dict[str, FaultScore]
    skipped: str = ""
    """Why it was not run."""

    def rows(self) -> list[Row]:
        """As results: `sample.gait-legs.gyro-nan.detection`."""
        return [row for method, one in self.scores.items() for row in one.rows(f"{self.log}.{method}.{self.fault.id}")]


def generator(fault: Fault) -> np.random.Generator:
    """The random numbers of a fault: the same whichever faults run beside it."""
    return np.random.default_rng([SEED, *fault.id.encode()])


def injected(fault: Fault, log: Log, span: Span, start: str = "truth") -> Feed:
    """The samples of a log, up to the end of the run, with a fault in them."""
    feed = Feed.of(log.slice(None, span.stop), start)
    rows = feed.rows(span.begin, span.end)
    return fault.inject(feed, rows, generator(fault))


def run_faults(
    logs: dict[str, Log],
    methods: Sequence[str] = BUILT_IN,
    only: Sequence[str] = (),
    progress: Progress = lambda what, share: None,
) -> list[FaultRow]:
    """Run every fault with every method on every log.

    Args:
        logs: by name, with ground truth.
        methods: names of `METHODS`.
        only: ids of faults, with wildcards; all by default.
        progress: told how far it is.
    """
    chosen = matching(FAULTS, tuple(only))
    if not chosen:
        raise GaitError(f"no fault fits {' '.join(only)}: they are {', '.join(fault.id for fault in FAULTS)}")
    found: list[FaultRow] = []
    estimators = {known_method(method): method for method in methods}
    for i, (name, log) in enumerate(logs.items()):
        runners = {method: LogRunner(Estimator.load(log.robot, given), log) for method, given in estimators.items()}
        for k, fault in enumerate(chosen):
            progress(f"{name}: {fault.id}", (i + k / len(chosen)) / len(logs))
            if fault.course:
                continue
            span = fault.span(float(log.t[0]), float(log.t[-1]))
            if span is None:
                found.append(FaultRow(name, fault, {}, "the log is too short"))
                continue
            found.append(FaultRow(name, fault, {method: one.score(fault, span) for method, one in runners.items()}))
    return found


class LogRunner:
    """A method on one log: the clean run once, then faults."""

    def __init__(self, estimator: Estimator, log: Log) -> None:
        self._estimator, self._log = estimator, log
        self._clean: Track | None = None

    def clean(self, span: Span) -> Track:
        """The run without a fault, at least up to the end of a span."""
        if self._clean is None or self._clean.time[-1] < min(span.stop, self._log.t[-1]) - 0.1:
            self._clean = follow(self._estimator, Feed.of(self._log.slice(None, span.stop)))
        return self._clean

    def score(self, fault: Fault, span: Span, *, reference: bool = True) -> FaultScore:
        """Run with a fault.

        Args:
            fault: what to inject.
            span: when.
            reference: whether the log without the fault is the clean run; otherwise the time before the fault is.
        """
        try:
            clean = self.clean(span)
        except GaitError as error:
            return refusal(fault, str(error))
        feed = injected(fault, self._log, span)
        try:
            track = follow(self._estimator, feed)
        except GaitError as error:
            return refusal(fault, str(error)) if feed.lacks() else raised(fault, str(error))
        first = feed.first_changed(
            Feed.of(self._log.slice(None, span.stop)), rows_between(track, span.begin, np.inf).start
        )
        return score_fault(fault, span, track, clean if reference else calm(track, span.begin), first)
