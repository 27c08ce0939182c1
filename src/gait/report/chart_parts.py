"""Pieces that charts are made of: lines thin enough to draw that still show every peak, shades, windows, panels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gait.arrays import Array, BoolArray, IntArray
from gait.bench.courses import Walk
from gait.bench.study import Study, Trace
from gait.report.chart import COLOURS, Chart, Panel, Series, Shade

TIME = "time (s)"
AXES = ("forward", "left", "up")
"""Of the body."""

MOST_POINTS = 4000
"""Of a line: more than there are pixels across, so no more can be seen."""


def thin(*values: Array, most: int = MOST_POINTS) -> IntArray:
    """Rows to keep of long series (N,): in each stretch those with the least and the greatest value of each.

    So a spike of one sample survives. Short series are kept whole.
    """
    count = len(values[0])
    if count <= most:
        return np.arange(count)
    # Two rows are kept for the ends.
    edges = np.linspace(0, count, (most - 2) // (2 * len(values)) + 1).astype(int)
    keep = {0, count - 1}
    for one in values:
        # A stretch of nothing but nan keeps a nan, which breaks the line there.
        low, high = np.where(np.isnan(one), np.inf, one), np.where(np.isnan(one), -np.inf, one)
        for start, end in pairwise(edges.tolist()):
            keep |= {start + int(low[start:end].argmin()), start + int(high[start:end].argmax())}
    return np.array(sorted(keep))


def line(label: str, x: Array, y: Array, *, colour: str = "", spread: Array | None = None) -> Series:
    """A value over time."""
    rows = thin(y)
    return Series(label, x[rows], y[rows], colour=colour, spread=None if spread is None else spread[rows])


def path(label: str, points: Array) -> Series:
    """A way on the ground (N, 2)."""
    rows = thin(points[:, 0], points[:, 1])
    return Series(label, points[rows, 0], points[rows, 1])


def shade(label: str, x: Array, on: BoolArray) -> Shade:
    """Where something holds: of a long stretch that does not change, only the ends are kept."""
    change = np.flatnonzero(on[1:] != on[:-1])
    rows = np.unique(np.concatenate([[0, len(on) - 1], change, change + 1]))
    return Shade(label, x[rows], on[rows])


def window(t: Array, start: float, seconds: float) -> slice:
    """The rows from `start` on, for so long; shifted to where there are rows if it reaches beyond an end."""
    start = max(min(start, float(t[-1]) - seconds), float(t[0]))
    return slice(int(np.searchsorted(t, start)), int(np.searchsorted(t, start + seconds, side="right")))


def pooled(parts: Iterable[Array]) -> Array:
    """Root mean square in each bin (bins,) and count (bins,) as (2, bins), of sums of squares and counts (bins, 2)."""
    total = np.sum(list(parts), axis=0)
    rms = np.sqrt(np.divide(total[:, 0], total[:, 1], out=np.full(len(total), np.nan), where=total[:, 1] > 0))
    return np.stack([rms, total[:, 1]])


def shown_walk(study: Study, course: str) -> Walk | None:
    """The walk of a course that figures show: its first run, if there are traces of it."""
    return next((walk for walk in study.walks if walk.course == course and traces_of(study, walk)), None)


def traces_of(study: Study, walk: Walk) -> dict[str, Trace]:
    """By method, in the order of the study."""
    return {method: study.traces[walk.name, method] for method in study.methods if (walk.name, method) in study.traces}


def looking(study: Study, walk: Walk) -> Trace | None:
    """The trace of whoever can say where it looked."""
    return next((trace for trace in traces_of(study, walk).values() if trace.attention is not None), None)


def judging(study: Study, walk: Walk) -> Trace | None:
    """The trace of whoever says how far to believe each leg."""
    return next((trace for trace in traces_of(study, walk).values() if trace.leg_std is not None), None)


def attention_panels(
    walk: Walk, trace: Trace, rows: slice, marks: tuple[tuple[float, str], ...] = ()
) -> tuple[Panel, ...]:
    """The attention on each leg, and when it stands."""
    assert trace.attention is not None
    return _leg_panels(walk, "attention", "share", "gait", trace.t, trace.attention[:, 2:], rows, marks)


def belief_chart(name: str, title: str, walk: Walk, trace: Trace, rows: slice) -> Chart:
    """How far `gait-legs` believes each leg, and when it stands."""
    assert trace.leg_std is not None
    panels = _leg_panels(walk, "standard deviation", "m/s", "gait-legs", trace.t, trace.leg_std, rows)
    words = (
        "Standard deviation that gait-legs claims for the body velocity by each leg, and where it is known when its"
        " foot touches the ground: a few seconds in the middle. A foot that stands is low, one in the air high."
    )
    return Chart(name, title, words, tuple(replace(panel, log_y=True) for panel in panels), share_y=True)


def _leg_panels(
    walk: Walk, what: str, unit: str, method: str, t: Array, values: Array, rows: slice,
    marks: tuple[tuple[float, str], ...] = (),
) -> tuple[Panel, ...]:  # fmt: skip
    # Values are in the robot's order, whatever that of the log.
    log = walk.log.reorder(walk.log.robot)
    panels = []
    for i, leg in enumerate(log.leg_names):
        shades = () if log.contact is None else (shade("on the ground", t[rows], log.contact[rows, i]),)
        one = line(what, t[rows], values[rows, i], colour=COLOURS[method])
        panels.append(Panel((one,), TIME, f"{leg} ({unit})", shades, marks))
    return tuple(panels)


def ground_panel(truth: Array, ways: dict[str, Array], title: str = "") -> Panel:
    """Ways on the ground (N, 2 or 3) beside the true one."""
    lines = [path("truth", truth[:, :2])]
    lines += [path(method, way[:, :2]) for method, way in ways.items()]
    start = Series("start", truth[:1, 0], truth[:1, 1], kind="points", colour=COLOURS["truth"])
    return Panel((*lines, start), "x (m)", "y (m)", title=title, equal=True)
