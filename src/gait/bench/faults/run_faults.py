"""`gait bench faults`: every fault, one at a time, on the sample log and on simulated walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gait.bench.courses import Progress
from gait.bench.faults.conditions import CONDITIONS, course_log, course_span
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
NONE = Fault("none", "nothing wrong", nothing, lasts="whole", quiet=True)
"""The clean run by the same criteria."""
FAULTS: tuple[Fault, ...] = (NONE, *IMU_FAULTS, *JOINT_FAULTS, *TIMING_FAULTS, *CONDITIONS)
COURSE = "courses"
"""Stands for the name of the log where a fault has a course of its own."""


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
    logs: Mapping[str, Log],
    methods: Sequence[str] = BUILT_IN,
    only: Sequence[str] = (),
    courses: Path | None = None,
    progress: Progress = lambda what, share: None,
) -> list[FaultRow]:
    """Run every fault with every method on every log, then those that need a course of their own.

    Args:
        logs: by name, with ground truth.
        methods: names of `METHODS`.
        only: ids of faults, with wildcards; all by default.
        courses: folder that keeps simulated courses; None leaves their faults out.
        progress: told how far it is.
    """
    chosen = matching(FAULTS, tuple(only))
    if not chosen:
        raise GaitError(f"no fault fits {' '.join(only)}: they are {', '.join(fault.id for fault in FAULTS)}")
    known = {known_method(method): method for method in methods}
    jobs = [(name, fault) for name in logs for fault in chosen if not fault.course]
    if courses is not None:
        jobs += [(COURSE, fault) for fault in chosen if fault.course]
    bench = FaultBench(logs, known, courses)
    found = []
    for done, (name, fault) in enumerate(jobs):
        progress(f"{name}: {fault.id}", done / len(jobs))
        found.append(bench.row(name, fault))
    return found


class FaultBench:
    """Logs and methods, each loaded when it is first needed."""

    def __init__(self, logs: Mapping[str, Log], methods: Mapping[str, str], courses: Path | None) -> None:
        self._logs, self._methods, self._courses = dict(logs), methods, courses
        self._runners: dict[tuple[str, str], LogRunner] = {}

    def row(self, name: str, fault: Fault) -> FaultRow:
        """Every method under one fault."""
        try:
            log, span = self._place(name, fault)
        except GaitError as error:
            return FaultRow(name, fault, {}, str(error))
        if span is None:
            return FaultRow(name, fault, {}, "the log is too short")
        scores = {
            method: self._runner(fault.course or name, log, method).score(fault, span) for method in self._methods
        }
        return FaultRow(name, fault, scores)

    def _place(self, name: str, fault: Fault) -> tuple[Log, Span | None]:
        if not fault.course:
            log = self._logs[name]
            return log, fault.span(float(log.t[0]), float(log.t[-1]))
        if fault.course not in self._logs:
            assert self._courses is not None
            self._logs[fault.course] = course_log(fault.course, self._courses)
        log = self._logs[fault.course]
        return log, course_span(fault, log)

    def _runner(self, name: str, log: Log, method: str) -> LogRunner:
        if (name, method) not in self._runners:
            self._runners[name, method] = LogRunner(Estimator.load(log.load_robot(), self._methods[method]), log)
        return self._runners[name, method]


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

    def score(self, fault: Fault, span: Span) -> FaultScore:
        """Run with a fault. Where the log itself is the condition, the time before it stands for the clean run."""
        alone = bool(fault.course) and fault.inject is nothing
        try:
            clean = None if alone else self.clean(span)
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
        return score_fault(fault, span, track, clean or calm(track, span.begin), first)
