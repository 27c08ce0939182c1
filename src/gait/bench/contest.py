"""Our methods and estimators of others on the same walks: velocity, drift, consistency and time of each."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gait.bench.courses import Progress, Walk
from gait.bench.rival_runs import RIVALS, Front, Run, front_of, run_rival
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.log import Log
from gait.methods import BUILT_IN, known_method
from gait.metrics import nees, relative_error, velocity_rmse
from gait.report.table import Cell, Table, TableLine
from gait.rows import Row
from gait.smoothing import smooth_with

SECONDS, QUICK_SECONDS, WINDOW = 20.0, 7.0, 5.0
"""How much of each walk is run, s, and over what the drift is taken."""
SMOOTHED = "gait-legs-smoothed"
"""`gait-legs` smoothed: not for control, so it is listed by itself."""
ENTRANTS = (*BUILT_IN, SMOOTHED, *RIVALS)
OFFLINE = (SMOOTHED,)
FIGURES = {"velocity": "m/s", "drift": "m", "nees": "-", "step": "us"}
"""Of an estimate: RMSE of the velocity in the body frame; of the position after 5 s; NEES of the velocity, 3 is right;
time of a sample on one core."""
LABELS = {"velocity": "velocity", "drift": "5 s drift", "nees": "NEES (3)", "step": "a sample"}
NOTE = (
    "Means over walks. Velocity: RMSE in the body frame. Drift: RMS position error after 5 s. NEES of the velocity: 3"
    " is right, more is overconfident; gtsam's smoothers give no covariance. A sample: processor time, for rivals"
    " without the detection of contacts; ours run in C, `ukf` and `iekf-learned` in numpy, gtsam in C++ called from"
    " Python."
)


@dataclass(frozen=True)
class Figures:
    """One entrant on one walk."""

    course: str
    walk: str
    name: str
    velocity: float
    drift: float
    nees: float
    step: float


@dataclass(frozen=True)
class Contest:
    """All entrants on all walks."""

    figures: tuple[Figures, ...]
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By entrant and walk that could not run, why."""

    @property
    def names(self) -> list[str]:
        """Entrants in order."""
        there = {one.name for one in self.figures}
        return [*(name for name in ENTRANTS if name in there), *sorted(there - set(ENTRANTS))]

    @property
    def courses(self) -> list[str]:
        """Courses in order."""
        return list(dict.fromkeys(one.course for one in self.figures))

    def mean(self, name: str, figure: str, course: str = "") -> float:
        """Mean of a figure over the walks of a course, or over all; nan where there is none."""
        values = [getattr(one, figure) for one in self.figures if one.name == name and course in ("", one.course)]
        return float(np.mean(values)) if values else math.nan

    def table(self) -> Table:
        """A line for each entrant: means over all walks."""
        lines = [
            TableLine((name,), {figure: Cell(self.mean(name, figure)) for figure in FIGURES}) for name in self.names
        ]
        columns = tuple(FIGURES)
        return Table(
            "rivals", "Our methods and rivals", NOTE, ("estimator",), columns, tuple(lines), "column", FIGURES, LABELS,
            ("nees",),
        )  # fmt: skip

    def course_table(self, figure: str) -> Table:
        """A line for each entrant, a column for each course."""
        lines = [
            TableLine((name,), {course: Cell(self.mean(name, figure, course)) for course in self.courses})
            for name in self.names
        ]
        ranked: Literal["", "column"] = "" if figure == "nees" else "column"
        units = dict.fromkeys(self.courses, FIGURES[figure])
        return Table(
            f"rivals_{figure}", LABELS[figure], "", ("estimator",), tuple(self.courses), tuple(lines), ranked, units
        )

    def wins(self, figure: str) -> dict[str, tuple[str, str]]:
        """By course, the best of our methods and the best rival; those that need later samples do not count."""
        found = {}
        for course in self.courses:
            ours, others = (
                {name: self.mean(name, figure, course) for name in self.names if (name in RIVALS) == rival}
                for rival in (False, True)
            )
            best = [
                min((value, name) for name, value in among.items() if name not in OFFLINE and math.isfinite(value))[1]
                for among in (ours, others)
                if any(map(math.isfinite, among.values()))
            ]
            if len(best) == 2:
                found[course] = (best[0], best[1])
        return found

    def lost(self, figure: str) -> list[tuple[str, str, str]]:
        """Course, our best and the rival, where the rival has the smaller error."""
        pairs = self.wins(figure).items()
        return [
            (course, ours, rival)
            for course, (ours, rival) in pairs
            if self.mean(rival, figure, course) < self.mean(ours, figure, course)
        ]

    def notes(self) -> list[str]:
        """Which rows a rival wins, and who was left out."""
        lines = []
        for figure in ("velocity", "drift"):
            unit = FIGURES[figure]
            for course, ours, rival in self.lost(figure):
                a, b = (self.mean(name, figure, course) for name in (rival, ours))
                lines.append(f"{LABELS[figure]} on {course}: {rival} wins, {a:.4f} {unit} against {b:.4f} of {ours}.")
        lines = lines or ["No rival has the smallest velocity error or drift on any course."]
        return [*lines, *self.missing()]

    def missing(self) -> list[str]:
        """Who was left out, and why: a sentence for each reason."""
        walks: dict[tuple[str, str], list[str]] = {}
        for (name, walk), why in self.left_out.items():
            walks.setdefault((name, why), []).append(walk)
        return [
            f"Left out {name} on {some[0] if len(some) == 1 else f'{len(some)} walks'}: {why}."
            for (name, why), some in walks.items()
        ]

    def rows(self) -> list[Row]:
        """All means as results, over all walks and by course."""
        tables = [self.table(), *(self.course_table(figure) for figure in FIGURES)]
        return [row for table in tables for row in table.rows() if not row.name.endswith(".over_best")]


def run_entrant(name: str, front: Front, start: str) -> Run:
    """The estimate of one of ours or of a rival."""
    if name in RIVALS:
        return run_rival(name, front, start)
    if name == SMOOTHED:
        estimator, began = Estimator.load(front.robot, "gait-legs"), time.process_time()
        return Run(smooth_with(estimator, front.log, start).smoothed, time.process_time() - began)
    estimator = Estimator.load(front.robot, name)
    began = time.process_time()
    return Run(estimator.run(front.log, start), time.process_time() - began)


def figures_of(course: str, walk: str, name: str, run: Run, log: Log) -> Figures:
    """Errors of an estimate against the ground truth of its log."""
    found = velocity_rmse(run.trajectory, log)
    drift = relative_error(run.trajectory, log, WINDOW).position.rmse if log.duration > WINDOW else math.nan
    consistency = math.nan if run.trajectory.vel_cov is None else nees(found.errors_b, run.trajectory.vel_cov).mean
    return Figures(course, walk, name, found.rmse, drift, consistency, run.seconds / len(log) * 1e6)


def run_walk(walk: Walk, names: Sequence[str], start: str) -> tuple[list[Figures], dict[tuple[str, str], str]]:
    """All entrants on one walk, and why some could not run on it."""
    front, figures, left_out = (
        front_of(walk.log, walk.log.load_robot(), start),
        list[Figures](),
        dict[tuple[str, str], str](),
    )
    for name in names:
        try:
            figures.append(figures_of(walk.course, walk.name, name, run_entrant(name, front, start), front.log))
        except GaitError as error:  # noqa: PERF203
            left_out[name, walk.name] = str(error)
    return figures, left_out


def run_contest(
    walks: Sequence[Walk],
    names: Sequence[str] = ENTRANTS,
    *,
    start: str = "truth",
    seconds: float = SECONDS,
    workers: int = 2,
    progress: Progress = lambda what, share: None,
) -> Contest:
    """Run entrants on walks with ground truth.

    Args:
        walks: of the test set, or of logs.
        names: of `ENTRANTS`, or further methods of ours.
        start: as `Estimator.run` has it.
        seconds: how much of each walk.
        workers: processes.
        progress: called with the progress in words.
    """
    from gait.sim.workers import hold_ctrl_c, worker_pool

    for name in names:
        if name not in ENTRANTS:
            known_method(name)
    for walk in walks:
        if not walk.log.has_truth:
            raise GaitError(f"{walk.course} has no ground truth: give logs with pos_w, quat_wb_wxyz and vel_w")
    short = [Walk(one.course, one.run, one.log.slice(None, float(one.log.t[0]) + seconds), one.falls) for one in walks]
    found: dict[int, tuple[list[Figures], dict[tuple[str, str], str]]] = {}
    with worker_pool(min(workers, len(short))) as pool:
        with hold_ctrl_c():
            futures = {pool.submit(run_walk, walk, tuple(names), start): i for i, walk in enumerate(short)}
        for done, future in enumerate(as_completed(futures), 1):
            found[futures[future]] = future.result()
            progress(f"ran {short[futures[future]].name}", done / len(short))
    ordered = [found[i] for i in range(len(short))]
    return Contest(
        tuple(one for figures, _ in ordered for one in figures),
        {what: why for _, left_out in ordered for what, why in left_out.items()},
    )
