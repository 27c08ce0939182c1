"""Anybody's logs with truth: every method that can read them, and how good it is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gait.bench.courses import Progress, Walk
from gait.bench.scores import Score
from gait.bench.study import Study, run_study
from gait.errors import GaitError
from gait.estimator import METHODS, Estimator
from gait.log.log import MAX_GAP, Log
from gait.metrics import mean_std
from gait.report.chart import Chart
from gait.report.table import Cell, Line, Table
from gait.rows import Row

FIGURES: dict[str, tuple[str, str]] = {
    "velocity_rmse": ("velocity", "m/s"),
    "re_pos_5s": ("5 s drift", "m"),
    "re_vel_5s": ("5 s velocity", "m/s"),
    "re_rot_5s": ("5 s rotation", "rad"),
    "ate_vel": ("ATE velocity", "m/s"),
    "ate_rot": ("ATE rotation", "rad"),
    "coverage_vel_2sigma": ("within 2 std", "-"),
    "step": ("a step", "us"),
}
"""What is reported of a method: by the name of its row, what people read, and the unit."""
BRIEF = ("velocity_rmse", "re_pos_5s", "step")
"""What fits a glance."""
WIDE = tuple(name for name in FIGURES if name != "ate_vel")
"""What a table has: the absolute error of the velocity is the velocity error by another name (docs/metrics.md)."""
UNRANKED = ("coverage_vel_2sigma",)
"""What should be 0.95, and not as small as can be."""
MOST_SHOWN = 4
"""Logs that have plots of their own: with more, a report grows too large to open."""
NOTE = (
    "Root mean square errors of what the filter gives: the velocity in the body frame; position (drift), velocity and"
    " rotation after 5 s from a perfect start; rotation after alignment in place and heading (ATE). Within 2 std: share"
    " of the velocity errors inside two predicted standard deviations, 0.95 would be honest. A step: time one sample"
    " takes."
)


@dataclass(frozen=True, eq=False)
class WalkStudy:
    """A study of logs, and the methods that could not take part."""

    study: Study
    left_out: Mapping[str, str]
    """By method, why."""

    @property
    def notes(self) -> list[str]:
        """A line for each method that is missing."""
        return [f"left out {method}: {why}" for method, why in self.left_out.items()]


def walk_study(
    logs: Mapping[str, Log],
    methods: Sequence[str] = tuple(METHODS),
    *,
    start: str = "truth",
    max_gap: float = MAX_GAP,
    workers: int = 1,
    progress: Progress = lambda what, share: None,
) -> WalkStudy:
    """Run methods on logs with truth. Methods that some log has not the inputs for are left out.

    Args:
        logs: by a name for people.
        methods: names of `METHODS`.
        start: `truth` or `gravity`, as `Estimator.run` has it.
        max_gap: a longer pause in a log is an error, s.
        workers: threads; with more than one, steps take longer than they would alone.
        progress: told how far it is.

    Raises:
        GaitError: if a log has no truth or a gap, or no method can read them all.
    """
    for name, log in logs.items():
        if not log.has_truth:
            raise GaitError(
                f"{name} has no truth to compare with: methods are judged on logs with pos_w, quat_wb_wxyz and vel_w"
            )
        try:
            log.require_no_gaps(max_gap)
        except GaitError as error:
            raise GaitError(f"{name}: {error}") from None
    left_out = {method: why for method in methods if (why := _obstacle(logs, method, start))}
    able = [method for method in dict.fromkeys(methods) if method not in left_out]
    if not able:
        raise GaitError(f"no method can read these logs: {next(iter(left_out.values()))}")
    walks = [Walk(course, 0, log, 0) for course, log in zip(_courses(logs), logs.values(), strict=True)]
    study = run_study(walks, able, seeds="usual", start=start, workers=workers, progress=progress)
    return WalkStudy(study, left_out)


def _obstacle(logs: Mapping[str, Log], method: str, start: str) -> str:
    """Why a method cannot run on all of the logs; empty if it can."""
    if method not in METHODS:
        raise GaitError(f"unknown method '{method}': choose of {', '.join(METHODS)}, or all")
    for name, log in logs.items():
        if why := _refusal(log, method, start):
            return f"{name}: {why}" if len(logs) > 1 else why
    return ""


def _refusal(log: Log, method: str, start: str) -> str:
    # Two samples tell, since what a log has it has in every row.
    try:
        Estimator.load(log.robot, method).run(log.slice(t1=float(log.t[2])) if len(log) > 2 else log, start)
    except GaitError as error:
        return str(error)
    return ""


def _courses(names: Iterable[str]) -> list[str]:
    """Names as charts and anchors can have them, all different."""
    found: list[str] = []
    for name in names:
        plain = base = re.sub(r"[^A-Za-z0-9_.-]", "-", name) or "log"
        count = 2
        while plain in found:
            plain, count = f"{base}-{count}", count + 1
        found.append(plain)
    return found


def figures(score: Score) -> dict[str, float]:
    """The numbers of `FIGURES` of one method on one log; a log of less than 5 s has no drift."""
    errors = {name if name.startswith("ate") else f"{name}_5s": one.rms for name, one in score.errors.items()}
    known = {
        "velocity_rmse": score.fused.full.rms,
        **errors,
        "coverage_vel_2sigma": score.fused.within[1],
        "step": score.step_us,
    }
    return {name: known[name] for name in FIGURES if name in known}


def _cells(scores: Sequence[Score]) -> dict[str, Cell]:
    """Mean and spread over logs of what all of them have."""
    found = [figures(one) for one in scores]
    shared = [name for name in FIGURES if all(name in one for one in found)]
    values = {name: [one[name] for one in found] for name in shared}
    over_logs = {name: mean_std(some) for name, some in values.items()}
    return {name: Cell(one.mean, one.std) for name, one in over_logs.items()}


def _by_method(study: Study) -> dict[str, dict[str, Cell]]:
    return {method: _cells([one for one in study.scores if one.method == method]) for method in study.methods}


def walk_table(study: Study, columns: Sequence[str] = WIDE, title: str = "Methods") -> Table:
    """A line for each method: mean (standard deviation) over logs.

    Args:
        study: of any logs.
        columns: names of `FIGURES`; those that some log has not are left out.
        title: of the table.
    """
    by_method = _by_method(study)
    there = tuple(name for name in columns if all(name in cells for cells in by_method.values()))
    lines = [
        Line((method,), (method,), "", {name: cells[name] for name in there}) for method, cells in by_method.items()
    ]
    count = len(study.walks)
    note = f"{NOTE} Mean (standard deviation) over {count} logs." if count > 1 else NOTE
    words = {name: label for name, (label, _) in FIGURES.items()}
    units = {name: unit for name, (_, unit) in FIGURES.items()}
    return Table("methods", title, note, ("method",), there, tuple(lines), "column", units, words, UNRANKED)


def mean_table(study: Study, title: str) -> Table:
    """The same with methods side by side, which fits a terminal."""
    means = _by_method(study)
    lines = []
    for name in WIDE:
        label, unit = FIGURES[name]
        if cells := {method: some[name] for method, some in means.items() if name in some}:
            lines.append(Line((name,), (label,), "share" if unit == "-" else unit, cells))
    return Table("means", title, NOTE, ("rms error",), tuple(study.methods), tuple(lines), unranked=UNRANKED)


def log_table(study: Study) -> Table:
    """A line for each figure and log, and the mean over logs; methods side by side."""
    lines = []
    for mean in mean_table(study, "").lines:
        (name,), (label,) = mean.keys, mean.labels
        for course in study.courses:
            known = {one.method: figures(one) for one in study.scores if one.course == course}
            cells = {method: Cell(some[name]) for method, some in known.items()}
            lines.append(Line((name, course), (label, course), mean.unit, cells))
        lines.append(Line((name, "mean"), (label, "mean"), mean.unit, mean.cells))
    note = "As above, log by log; the mean with its standard deviation over logs."
    methods = tuple(study.methods)
    return Table("logs", "Log by log", note, ("figure", "log"), methods, tuple(lines), unranked=UNRANKED)


def plots_of(study: Study) -> list[Chart]:
    """Charts of the first `MOST_SHOWN` logs, named after the log where there are several."""
    from gait.bench.walk_charts import walk_charts

    found = []
    for walk in study.walks[:MOST_SHOWN]:
        for chart in walk_charts(replace(study, walks=(walk,))):
            title = chart.title.removeprefix(f"{walk.name}: ")
            title = f"{walk.course}: {title}" if len(study.walks) > 1 else title[:1].upper() + title[1:]
            found.append(replace(chart, title=title))
    return found


def walk_rows(study: Study) -> list[Row]:
    """As results: `gait.velocity_rmse`, over several logs with `.std`; then `LOG.gait.velocity_rmse` of each."""
    rows = []
    for method, cells in _by_method(study).items():
        for name, cell in cells.items():
            rows.append(Row(f"{method}.{name}", cell.mean, FIGURES[name][1]))
            if np.isfinite(cell.std):
                rows.append(Row(f"{method}.{name}.std", cell.std, FIGURES[name][1]))
    if len(study.walks) > 1:
        rows += [
            Row(f"{one.course}.{one.method}.{name}", value, FIGURES[name][1])
            for one in study.scores
            for name, value in figures(one).items()
        ]
    return rows


def write_walk_report(found: WalkStudy, path: Path, title: str, settings: Mapping[str, str]) -> None:
    """Write tables, plots and settings as a report.

    Args:
        found: what to report.
        path: of the HTML file.
        title: above everything.
        settings: what was asked for, by name.
    """
    from gait.report.describe import installation
    from gait.report.html import write_report

    study = found.study
    tables = [walk_table(study), *([log_table(study)] if len(study.walks) > 1 else [])]
    facts = [
        *(Row(name, value, "-") for name, value in settings.items()),
        *(Row(f"weights.{name}", weights, "-") for name in study.methods if (weights := METHODS[name].weights)),
        *(Row(f"log.{walk.course}", _described(walk.log), "-") for walk in study.walks),
        *installation(),
    ]
    write_report(path, title, summary(found), tables, plots_of(study), facts)


def summary(found: WalkStudy) -> str:
    """What was found, in a few sentences made of the numbers."""
    study = found.study
    logs = [walk.log for walk in study.walks]
    said = [
        f"{_many(len(study.methods), 'method')} on {_many(len(logs), 'log')}, {sum(log.duration for log in logs):.0f} s"
    ]
    means = _by_method(study)
    for name, what in (("velocity_rmse", "rms error of the body velocity"), ("re_pos_5s", "rms drift over 5 s")):
        known = {method: cells[name].mean for method, cells in means.items() if name in cells}
        if known:
            best, worst = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
            unit = FIGURES[name][1]
            line = f"{what}: {known[best]:.3f} {unit} ({best})"
            said.append(f"{line}, at worst {known[worst]:.3f} {unit} ({worst})" if best != worst else line)
    if len(logs) > MOST_SHOWN:
        said.append(f"the first {MOST_SHOWN} logs have plots")
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in [*said, *found.notes])


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _described(log: Log) -> str:
    digest = hashlib.sha256()
    for name, array in log.arrays().items():
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    source = f", {log.source}" if log.source else ""
    size = f"{len(log)} rows, {log.rate:g} Hz, {log.duration:g} s"
    return f"{log.robot}, {size}{source}; sha256 of its arrays {digest.hexdigest()}"
