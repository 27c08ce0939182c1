"""Figures of anybody's walks, made of a study of them."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.bench.courses import Walk
from gait.bench.study import Study, Trace
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.metrics import align
from gait.quaternions import rotate
from gait.report.chart import Chart, Panel
from gait.report.chart_parts import (
    AXES,
    TIME,
    attention_panels,
    belief_chart,
    ground_panel,
    judging,
    line,
    looking,
    traces_of,
    window,
)

STRIDES = 3.0
"""Seconds of a long walk that are shown closely: the middle ones, whatever happens in them."""
SAME_PLACE = 0.01
"""An estimate that starts as near as this to the truth (m) started from it."""


def walk_charts(study: Study) -> list[Chart]:
    """Figures of any walks with truth: velocity, error, the way from above, attention, trust in legs.

    Named `WALK-velocity`, `WALK-strides` (a few seconds of a long walk), `WALK-error`, `WALK-from-above`,
    `WALK-attention` and `WALK-legs`. They show the velocity that the filter gives.
    """
    return [chart for walk in study.walks if traces_of(study, walk) for chart in _walk(study, walk)]


def _walk(study: Study, walk: Walk) -> list[Chart]:
    # The name of a walk may be that of a file; this one shall be.
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in walk.name)
    traces, t = traces_of(study, walk), walk.log.t - walk.log.t[0]
    middle = window(t, float(t[-1] - STRIDES) / 2.0, STRIDES)
    charts = [_velocity(walk, traces, f"{name}-velocity")]
    if t[-1] > 2.0 * STRIDES:
        charts.append(_strides(walk, traces, f"{name}-strides", middle))
    same = all(np.linalg.norm(trace.pos_w[0] - walk.log.need("pos_w")[0]) < SAME_PLACE for trace in traces.values())
    ways = {method: trace.pos_w if same else _laid_on(walk.log, trace.pos_w) for method, trace in traces.items()}
    how = "from the true start" if same else "laid on the truth by a shift and a turn about the vertical"
    charts += [
        _error(walk, traces, f"{name}-error", ways, how),
        Chart(
            f"{name}-from-above",
            f"{walk.name}: seen from above",
            f"The true way and what each method's filter makes of it, {how}.",
            (ground_panel(walk.log.need("pos_w"), ways),),
        ),
    ]
    attentive = looking(study, walk)
    if attentive is not None:
        charts.append(
            Chart(
                f"{name}-attention",
                f"{walk.name}: attention on each leg",
                "Share of the attention of gait that goes to each leg, summed over the history, and where it is known"
                " when its foot touches the ground: a few seconds in the middle of the walk.",
                attention_panels(walk, attentive, middle),
                share_y=True,
            )
        )
    if (judge := judging(study, walk)) is not None:
        title = f"{walk.name}: how far each leg is believed"
        charts.append(belief_chart(f"{name}-legs", title, walk, judge, middle))
    return charts


def _velocity(walk: Walk, traces: dict[str, Trace], name: str) -> Chart:
    return Chart(
        name,
        f"{walk.name}: body velocity",
        "True velocity along the axes of the body, and what each method's filter gives.",
        _velocity_panels(walk, traces, slice(None)),
    )


def _strides(walk: Walk, traces: dict[str, Trace], name: str, rows: slice) -> Chart:
    first = next(iter(traces))
    return Chart(
        name,
        f"{walk.name}: body velocity, closely",
        f"The middle {STRIDES:g} s of the walk. The band is two standard deviations of {first} to either side.",
        _velocity_panels(walk, traces, rows, band=first),
    )


def _velocity_panels(walk: Walk, traces: dict[str, Trace], rows: slice, band: str = "") -> tuple[Panel, ...]:
    t = (walk.log.t - walk.log.t[0])[rows]
    panels = []
    for i, axis in enumerate(AXES):
        lines = [line("truth", t, walk.log.vel_b[rows, i])]
        for method, trace in traces.items():
            spread = 2.0 * trace.std[rows, i] if method == band else None
            lines.append(line(method, t, trace.vel_b[rows, i], spread=spread))
        panels.append(Panel(tuple(lines), TIME, f"{axis} (m/s)"))
    return tuple(panels)


def _error(walk: Walk, traces: dict[str, Trace], name: str, ways: dict[str, Array], how: str) -> Chart:
    log, t = walk.log, walk.log.t - walk.log.t[0]
    lengths = {method: np.linalg.norm(trace.vel_b - log.vel_b, axis=1) for method, trace in traces.items()}
    far = {method: np.linalg.norm(way - log.need("pos_w"), axis=1) for method, way in ways.items()}
    rms = {method: running_rms(t, length, 1.0) for method, length in lengths.items()}
    return Chart(
        name,
        f"{walk.name}: error over time",
        "Length of the velocity error, its root mean square over a second around each sample, and how far off the"
        f" position is, {how}.",
        tuple(
            Panel(tuple(line(method, t, one) for method, one in values.items()), TIME, label)
            for values, label in (
                (lengths, "velocity error (m/s)"),
                (rms, "rms over 1 s (m/s)"),
                (far, "position error (m)"),
            )
        ),
    )


def running_rms(t: Array, values: Array, seconds: float) -> Array:
    """Root mean square of values (N,) over a window around each of them; shorter at the ends."""
    total = np.concatenate([[0.0], np.cumsum(values**2)])
    first, last = np.searchsorted(t, t - seconds / 2.0), np.searchsorted(t, t + seconds / 2.0, side="right")
    # Rounding of the sums may leave a hair below zero.
    return np.asarray(np.sqrt(np.maximum(total[last] - total[first], 0.0) / (last - first)))


def _laid_on(log: Log, pos_w: Array) -> Array:
    """Positions turned about the vertical and shifted onto the truth: an IMU sees neither place nor heading."""
    # Truth stands in for the rest: orientation only counts where the robot stays in one place, velocity never.
    estimate = Trajectory(t=log.t, pos_w=pos_w, quat_wb_wxyz=log.need("quat_wb_wxyz"), vel_w=log.need("vel_w"))
    motion = align(estimate, log, "yaw")
    return rotate(motion.quat_wxyz, pos_w) + motion.translation
