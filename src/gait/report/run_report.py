"""The report of one run: with truth the charts of a comparison of methods, without it what the estimate says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gait.bench.courses import Walk
from gait.bench.scores import Ground, Score, score
from gait.bench.study import Study, Trace
from gait.bench.walk_charts import STRIDES, walk_charts
from gait.bench.walks import walk_table
from gait.estimator import Details
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.report.chart import Chart, Panel, Series
from gait.report.chart_parts import AXES, TIME, attention_panels, belief_chart, line, path, window
from gait.report.html import write_report
from gait.rows import Row


def write_run_report(
    file: Path,
    title: str,
    summary: str,
    log: Log,
    trajectory: Trajectory,
    details: Details,
    seconds: float,
    facts: Sequence[Row],
) -> None:
    """Write the report of a run as one HTML file.

    Args:
        file: to write.
        title: above everything.
        summary: what was done, in a sentence or two.
        log: what was estimated.
        trajectory: the estimate, on the log's clock.
        details: what the method thought meanwhile.
        seconds: how long the estimate took.
        facts: what made it.
    """
    learned = bool(np.isfinite(details.predicted[0]).any())
    trace = Trace.of(log, trajectory, details if learned else None, details)
    if not log.has_truth:
        write_report(file, title, summary, [], charts_without_truth(log, trace, trajectory.source), facts)
        return
    # A name that is short and the same for all: the title says which log it is.
    walk = Walk("walk", 0, log, 0)
    ground = Ground.of(log, np.zeros((len(log), len(log.leg_names)), dtype=bool))
    result = Score("walk", 0, trajectory.source, 0, *score(log, ground, trajectory, details, seconds))
    study = Study((walk,), {walk.name: ground}, (result,), traces={(walk.name, trajectory.source): trace})
    charts = [_plain(chart, walk.name) for chart in walk_charts(study)]
    write_report(file, title, summary, [walk_table(study, title="Accuracy")], charts, facts)


def charts_without_truth(log: Log, trace: Trace, method: str) -> list[Chart]:
    """Velocity with its band, closely and whole; the way from above; how sure the filter is; attention; legs."""
    whole = slice(None)
    middle = window(trace.t, float(trace.t[-1] - STRIDES) / 2.0, STRIDES)
    band = "The band is two standard deviations to either side."
    charts = [Chart("velocity", "Body velocity", f"What the filter gives. {band}", _velocity(trace, method, whole))]
    if trace.t[-1] > 2.0 * STRIDES:
        words = f"The middle {STRIDES:g} s of the walk. {band}"
        charts.append(Chart("strides", "Body velocity, closely", words, _velocity(trace, method, middle)))
    start = Series("start", trace.pos_w[:1, 0], trace.pos_w[:1, 1], kind="points", colour="#000000")
    way = Panel((path(method, trace.pos_w[:, :2]), start), "x (m)", "y (m)", equal=True)
    std = Panel(
        tuple(line(axis, trace.t, trace.std[:, i]) for i, axis in enumerate(AXES)), TIME, "standard deviation (m/s)"
    )
    words = "The way, with the start at the origin, facing along x."
    charts += [
        Chart("from-above", "Seen from above", words, (way,)),
        Chart("std", "How sure the filter is", "Standard deviation of the body velocity.", (std,)),
    ]
    if trace.attention is not None:
        words = (
            f"Share of the attention of {method} that goes to each leg, summed over the history: a few seconds in the"
            " middle."
        )
        panels = attention_panels(Walk("walk", 0, log, 0), trace, middle)
        charts.append(Chart("attention", "Attention on each leg", words, panels, share_y=True))
    if trace.leg_std is not None:
        charts.append(belief_chart("legs", "How far each leg is believed", Walk("walk", 0, log, 0), trace, middle))
    return charts


def _velocity(trace: Trace, method: str, rows: slice) -> tuple[Panel, ...]:
    return tuple(
        Panel(
            (line(method, trace.t[rows], trace.vel_b[rows, i], spread=2.0 * trace.std[rows, i]),),
            TIME,
            f"{axis} (m/s)",
        )
        for i, axis in enumerate(AXES)
    )


def _plain(chart: Chart, walk: str) -> Chart:
    from dataclasses import replace

    title = chart.title.removeprefix(f"{walk}: ")
    return replace(chart, name=chart.name.removeprefix(f"{walk}-"), title=title[:1].upper() + title[1:])
