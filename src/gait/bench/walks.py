"""Every method on a user's logs with ground truth: `gait eval --methods` and `gait demo`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gait.bench.courses import Progress, Walk
from gait.bench.scores import WalkScore
from gait.bench.study import Study, run_study
from gait.errors import GaitError, located
from gait.estimator import Estimator
from gait.io.storage import location
from gait.log import MAX_GAP, Log
from gait.methods import BUILT_IN, METHODS, known_method
from gait.metrics import mean_std
from gait.report.chart import Chart
from gait.report.method_table import FIGURES, NOTE, WIDE, figure_table, method_table
from gait.report.table import Cell, Table, TableLine
from gait.report.walk_charts import walk_charts
from gait.rows import Row

MOST_SHOWN = 4
"""Logs that have plots of their own: with more, a report grows too large to open."""


def log_names(paths: Sequence[Path]) -> list[str]:
    """Names of logs: that of the file, or the whole path where two files have the same name."""
    counts = Counter(path.stem for path in paths)
    names = [path.stem if counts[path.stem] == 1 else location(path) for path in paths]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise GaitError(f"{twice[0]} is given twice: name each log once")
    return names


def walk_study(
    logs: Mapping[str, Log],
    methods: Sequence[str] = BUILT_IN,
    *,
    start: str = "truth",
    max_gap: float = MAX_GAP,
    traces: bool = True,
    progress: Progress = lambda what, share: None,
) -> Study:
    """Run methods on logs with ground truth. Methods whose inputs some log lacks are left out.

    Args:
        logs: by name.
        methods: names of `METHODS`.
        start: as `Estimator.run` has it.
        max_gap: a longer pause in a log is an error, s.
        traces: whether to keep what charts show, which takes another run of networks with attention.
        progress: called with what is being done and the share that is done.

    Raises:
        GaitError: if a log has no ground truth or a gap, or no method can read them all.
    """
    for name, log in logs.items():
        if not log.has_truth:
            raise GaitError(
                f"{name} has no truth to compare with: name its topic or file, --truth TOPIC or --truth mocap.tum,"
                " or use `gait run`, which needs none"
            )
        with located(name):
            log.require_no_gaps(max_gap)
    left_out = {method: why for method in methods if (why := _obstacle(logs, method, start))}
    able = [method for method in dict.fromkeys(methods) if method not in left_out]
    if not able:
        raise GaitError(f"no method can read these logs: {next(iter(left_out.values()))}")
    # Charts show the first run of a course.
    walks = [Walk(name, 0 if traces else 1, log, 0) for name, log in logs.items()]
    # One thread: beside others, a step would take longer than it does alone.
    study = run_study(walks, able, seeds="usual", start=start, workers=1, progress=progress)
    return replace(study, left_out=left_out)


def left_out_notes(study: Study) -> list[str]:
    """A line for each method that is missing."""
    return [f"left out {method}: {why}" for method, why in study.left_out.items()]


def _obstacle(logs: Mapping[str, Log], method: str, start: str) -> str:
    """Why a method cannot run on all of the logs; empty if it can."""
    known_method(method)
    for name, log in logs.items():
        # Two samples are enough: a field that a log has, it has in every row.
        short = log.slice(t1=float(log.t[2])) if len(log) > 2 else log
        try:
            Estimator.load(log.load_robot(), method).run(short, start)
        except GaitError as error:
            return f"{name}: {error}" if len(logs) > 1 else str(error)
    return ""


def figures(score: WalkScore) -> dict[str, float]:
    """The `FIGURES` of one method on one log; a log of less than 5 s has no drift."""
    errors = {name if name.startswith("ate") else f"{name}_5s": one.rms for name, one in score.errors.items()}
    velocity = {"velocity_rmse": score.fused.full.rms, "coverage_vel_2sigma": score.fused.within[1]}
    known = {**velocity, **errors, "step": score.step_us}
    return {name: known[name] for name in FIGURES if name in known}


Found = Mapping[str, Mapping[str, Mapping[str, float]]]
"""The `FIGURES` by log, then by method."""


def found_figures(study: Study) -> dict[str, dict[str, dict[str, float]]]:
    """The figures of all methods on all logs."""
    return {log: {one.method: figures(one) for one in study.scores if one.course == log} for log in study.courses}


def mean_figures(found: Found) -> dict[str, dict[str, Cell]]:
    """By method: mean and standard deviation over logs of the figures that all logs have."""
    means = {}
    for method in next(iter(found.values())):
        runs = [by_method[method] for by_method in found.values()]
        shared = [name for name in FIGURES if all(name in run for run in runs)]
        over_logs = {name: mean_std([run[name] for run in runs]) for name in shared}
        means[method] = {name: Cell(one.mean, one.std) for name, one in over_logs.items()}
    return means


def method_figures(study: Study) -> dict[str, dict[str, Cell]]:
    """`mean_figures` of a study."""
    return mean_figures(found_figures(study))


def log_table(found: Found) -> Table:
    """A line for each figure and log, and the mean over logs; methods side by side."""
    lines = []
    table = figure_table(mean_figures(found), "Log by log")
    for mean in table.lines:
        (name,), (label,) = mean.keys, mean.labels
        for log, by_method in found.items():
            cells = {method: Cell(values[name]) for method, values in by_method.items()}
            lines.append(TableLine((name, log), cells, mean.unit, (label, log)))
        lines.append(TableLine((name, "mean"), mean.cells, mean.unit, (label, "mean")))
    note = "As above, log by log; the mean with its standard deviation over logs."
    return replace(table, name="logs", note=note, heads=("figure", "log"), lines=tuple(lines))


def walk_rows(study: Study) -> list[Row]:
    """`figure_rows` of a study."""
    return figure_rows(found_figures(study))


def figure_rows(found: Found) -> list[Row]:
    """As results: `gait.velocity_rmse`, over several logs with `.std`; then `LOG.gait.velocity_rmse` of each."""
    rows = []
    for method, cells in mean_figures(found).items():
        for name, cell in cells.items():
            rows.append(Row(f"{method}.{name}", cell.mean, FIGURES[name][1]))
            if np.isfinite(cell.std):
                rows.append(Row(f"{method}.{name}.std", cell.std, FIGURES[name][1]))
    if len(found) > 1:
        rows += [
            Row(f"{log}.{method}.{name}", value, FIGURES[name][1])
            for method in next(iter(found.values()))
            for log, by_method in found.items()
            for name, value in by_method[method].items()
        ]
    return rows


def study_charts(study: Study) -> list[Chart]:
    """Charts of the first `MOST_SHOWN` logs, titled with the log where there are several."""
    charts = []
    for i, walk in enumerate(study.walks[:MOST_SHOWN]):
        for one in walk_charts(walk.log, study.traces_of(walk)):
            title = f"{walk.course}: {one.title[:1].lower()}{one.title[1:]}"
            charts.append(replace(one, name=f"{one.name}-{i}", title=title) if len(study.walks) > 1 else one)
    return charts


def write_walk_report(
    study: Study, path: Path, title: str, settings: Mapping[str, str], warnings: Sequence[str] = ()
) -> None:
    """Write tables, plots and settings as an HTML report; warnings come first."""
    from gait.report.describe import installation
    from gait.report.html import write_report

    count = len(study.walks)
    note = f"{NOTE} Mean (standard deviation) over {count} logs." if count > 1 else NOTE
    tables = [
        method_table(method_figures(study), WIDE, note=note),
        *([log_table(found_figures(study))] if count > 1 else []),
    ]
    facts = [
        *(Row(name, value, "-") for name, value in settings.items()),
        *(Row(f"weights.{name}", weights, "-") for name in study.methods if (weights := METHODS[name].weights)),
        *(Row(f"log.{walk.course}", described(walk.log), "-") for walk in study.walks),
        *installation(),
    ]
    write_report(path, title, "\n".join([summary(study), *warnings]), tables, study_charts(study), facts)


def summary(study: Study) -> str:
    """The result in a few sentences."""
    logs = [walk.log for walk in study.walks]
    counts = {"method": len(study.methods), "log": len(logs)}
    subject = " on ".join(f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items())
    said = [f"{subject}, {sum(log.duration for log in logs):.0f} s"]
    means = method_figures(study)
    for name, what in (("velocity_rmse", "Rms error of the body velocity"), ("re_pos_5s", "Rms drift over 5 s")):
        known = {method: cells[name].mean for method, cells in means.items() if name in cells}
        ends = sorted(known, key=known.__getitem__)[:: max(len(known) - 1, 1)]
        words = [f"{known[method]:.3f} {FIGURES[name][1]} ({method})" for method in ends]
        said += [f"{what}: {', at worst '.join(words)}"] if words else []
    if len(logs) > MOST_SHOWN:
        said.append(f"The first {MOST_SHOWN} logs have plots")
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in [*said, *left_out_notes(study)])


def described(log: Log) -> str:
    """What a log is, with a digest of its arrays."""
    digest = hashlib.sha256()
    for name, array in log.arrays().items():
        digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    source = f", {log.source}" if log.source else ""
    size = f"{len(log)} rows, {log.rate:g} Hz, {log.duration:g} s"
    return f"{log.robot}, {size}{source}; sha256 of its arrays {digest.hexdigest()}"
