"""Charts of one log and the estimates of it, with or without ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.log import Log, Trajectory
from gait.metrics import align
from gait.quaternions import rotate
from gait.report.chart import AXES, COLOURS, OTHER_COLOURS, TIME, Chart, Panel, Series, Shade, line, path, window

if TYPE_CHECKING:
    from gait.estimator import StateArrays

STRIDES = 3.0
"""Seconds in the middle of a long log that are shown closely."""
SAME_PLACE = 0.01
"""An estimate that starts as near as this to the true position (m) started from it."""

Marks = tuple[tuple[float, str], ...]


@dataclass(frozen=True, eq=False)
class Trace:
    """The outputs of a method over time, as charts need them."""

    t: Array
    """Seconds from the start of the log (N,)."""
    vel_b: Array
    """Of the filter (N, 3), m/s."""
    pos_w: Array
    """(N, 3), m."""
    std: Array
    """Standard deviation of `vel_b` (N, 3), m/s."""
    predicted: tuple[Array, Array] | None
    """Velocity of the network and its standard deviation (N, 3), m/s."""
    attention: Array | None = None
    """Share of each token, summed over the history (N, tokens): gyro, accelerometer, legs."""
    leg_std: Array | None = None
    """Standard deviation of the velocity by each leg, of `gait-legs`, rms over axes (N, L), m/s."""
    contact: Array | None = None
    """Probability of contact of each foot (N, L)."""
    foot_force: Array | None = None
    """Vertical force of the ground on each foot (N, L), N."""
    slip: Array | None = None
    """Speed of each foot over the ground (N, L), m/s; nan in swing."""

    @staticmethod
    def of(log: Log, trajectory: Trajectory, network: StateArrays | None, attention: StateArrays | None) -> Trace:
        """From a run.

        Args:
            log: the input.
            trajectory: the estimate.
            network: with the velocity of the network, if that is to be shown.
            attention: with the attention or the measurements of the legs, if there are any.
        """
        shares, legs = (None, None) if attention is None else (attention.attention, attention.legs)
        feet = None if attention is None or attention.foot_pos_w is None else attention
        by_token = shares is not None and legs is None and shares.shape[2] == len(log.leg_names) + 2
        predicted = None if network is None else network.predicted
        # Copies: a column alone must not keep all that the estimator said in memory.
        return Trace(
            t=log.t - log.t[0],
            vel_b=np.array(trajectory.vel_b),
            pos_w=np.array(trajectory.pos_w),
            std=vel_b_std(trajectory),
            predicted=None if predicted is None else (np.array(predicted[0]), predicted[1]),
            attention=shares.sum(1) if shares is not None and by_token else None,
            leg_std=None if legs is None else np.sqrt(np.square(legs[1]).mean(2)),
            contact=None if feet is None else np.array(feet.contact, dtype=np.float64),
            foot_force=None if feet is None else np.array(feet.foot_force),
            slip=None if feet is None or feet.slip is None else _in_stance(feet.slip, np.asarray(feet.contact)),
        )


def _in_stance(speed: Array, contact: Array) -> Array:
    """Speeds of feet (N, L) where they stand; all of them where no contact is known, as without torques."""
    known = np.isfinite(contact)
    return np.where(known & (np.nan_to_num(contact) <= 0.5), np.nan, speed)


def vel_b_std(trajectory: Trajectory) -> Array:
    """Standard deviation of the body velocity (N, 3), m/s."""
    assert trajectory.vel_cov is not None
    return np.asarray(np.sqrt(np.maximum(np.einsum("nii->ni", trajectory.vel_cov), 0.0)))


def walk_charts(log: Log, traces: Mapping[str, Trace]) -> list[Chart]:
    """Charts of a log and traces by method.

    `velocity`, `strides` (closely, of a long log), `error` with ground truth or `std` without, `from-above`, and as far
    as a method has them `attention`, `legs`, `contacts`, `forces` and `slip`. The velocity is that of the filter.
    """
    first, t = next(iter(traces)), log.t - log.t[0]
    middle = window(t, float(t[-1] - STRIDES) / 2.0, STRIDES)
    band = f"The band is two standard deviations of {first} to either side."
    shown = "True velocity along the axes of the body, and that of each method's filter."
    velocity = _velocity(log, traces, slice(None), "" if log.has_truth else first)
    charts = [Chart("velocity", "Body velocity", shown if log.has_truth else f"That of the filter. {band}", velocity)]
    if t[-1] > 2.0 * STRIDES:
        caption = f"The middle {STRIDES:g} s of the log. {band}"
        charts.append(Chart("strides", "Body velocity, closely", caption, _velocity(log, traces, middle, first)))
    charts += _with_truth(log, traces) if log.has_truth else _without_truth(traces)
    feet = f"and where known the contacts of its foot: the middle {STRIDES:g} s of the log."
    for method, trace in traces.items():
        if trace.attention is not None:
            caption = f"Share of the attention of {method} on each leg, summed over the history, {feet}"
            panels = attention_panels(log, trace, middle)
            charts.append(Chart("attention", "Attention on each leg", caption, panels, share_y=True))
        if trace.leg_std is not None:
            caption = f"Standard deviation of {method} for the body velocity by each leg, {feet}"
            caption += " It is low for a foot in stance, high in swing."
            panels = _leg_panels(log, "standard deviation", "m/s", method, trace.leg_std, middle, log_y=True)
            charts.append(Chart("legs", "Standard deviation of each leg", caption, panels, share_y=True))
        charts += _foot_charts(log, method, trace, middle, feet)
    return charts


def _foot_charts(log: Log, method: str, trace: Trace, rows: slice, feet: str) -> list[Chart]:
    """`contacts`, `forces` and `slip`, each as far as it is known."""
    what = (
        ("contacts", "Contact of each foot", "Probability that each foot is on the ground", "probability", "-",
         trace.contact),
        ("forces", "Force on each foot", "Vertical force of the ground by the joint torques", "force", "N",
         trace.foot_force),
        ("slip", "Slip of each foot", "Speed over the ground of each foot that stands", "slip", "m/s", trace.slip),
    )  # fmt: skip
    return [
        Chart(name, title, f"{words}, {feet}", _leg_panels(log, label, unit, method, values, rows), share_y=True)
        for name, title, words, label, unit, values in what
        if values is not None and np.isfinite(values[rows]).any()
    ]


def _velocity(log: Log, traces: Mapping[str, Trace], rows: slice, band: str) -> tuple[Panel, ...]:
    t = (log.t - log.t[0])[rows]
    panels = []
    for i, axis in enumerate(AXES):
        lines = []
        for method, trace in traces.items():
            spread = 2.0 * trace.std[rows, i] if method == band else None
            lines.append(line(method, t, trace.vel_b[rows, i], spread=spread))
        # Last, and so on top of the estimates.
        lines += [line("truth", t, log.vel_b[rows, i])] if log.has_truth else []
        panels.append(Panel(tuple(lines), TIME, f"{axis} (m/s)"))
    return tuple(panels)


def _with_truth(log: Log, traces: Mapping[str, Trace]) -> list[Chart]:
    """The error over time, and the paths from above."""
    t, true = log.t - log.t[0], log.need("pos_w")
    same = all(np.linalg.norm(trace.pos_w[0] - true[0]) < SAME_PLACE for trace in traces.values())
    paths = {method: trace.pos_w if same else _aligned(log, trace.pos_w) for method, trace in traces.items()}
    how = "from the true start" if same else "aligned with the true path in position and heading"
    speeds = {method: np.linalg.norm(trace.vel_b - log.vel_b, axis=1) for method, trace in traces.items()}
    values = {
        "velocity error (m/s)": speeds,
        "rms over 1 s (m/s)": {method: running_rms(t, speed, 1.0) for method, speed in speeds.items()},
        "position error (m)": {method: np.linalg.norm(one - true, axis=1) for method, one in paths.items()},
    }
    panels = [
        Panel(tuple(line(method, t, one) for method, one in by_method.items()), TIME, label)
        for label, by_method in values.items()
    ]
    caption = f"Norm of the velocity error, its root mean square over 1 s, and the position error, {how}."
    ground = (ground_panel({**paths, "truth": true}),)
    return [
        Chart("error", "Error over time", caption, tuple(panels)),
        Chart("from-above", "Seen from above", f"The true path and that of each method's filter, {how}.", ground),
    ]


def _without_truth(traces: Mapping[str, Trace]) -> list[Chart]:
    """The path from above, and the standard deviation of the velocity."""
    ((method, trace),) = traces.items()
    lines = tuple(line(axis, trace.t, trace.std[:, i]) for i, axis in enumerate(AXES))
    std, caption = (Panel(lines, TIME, "standard deviation (m/s)"),), "Standard deviation of the body velocity."
    ground = (ground_panel({method: trace.pos_w}),)
    return [
        Chart("from-above", "Seen from above", "The path, from the origin and facing along x at first.", ground),
        Chart("std", "Standard deviation of the velocity", caption, std),
    ]


def attention_panels(log: Log, trace: Trace, rows: slice, marks: Marks = ()) -> tuple[Panel, ...]:
    """The attention on each leg, and its contacts."""
    assert trace.attention is not None
    return _leg_panels(log, "attention", "share", "gait", trace.attention[:, 2:], rows, marks)


def _leg_panels(
    log: Log, what: str, unit: str, method: str, values: Array, rows: slice, marks: Marks = (), log_y: bool = False
) -> tuple[Panel, ...]:
    # Values are in the robot's order, whatever that of the log.
    log, t = log.reorder(log.load_robot()), log.t[rows] - log.t[0]
    panels = []
    for i, leg in enumerate(log.leg_names):
        shades = () if log.contact is None else (Shade("on the ground", t, log.contact[rows, i]),)
        one = line(what, t, values[rows, i], colour=COLOURS.get(method, OTHER_COLOURS[0]))
        panels.append(Panel((one,), TIME, f"{leg} ({unit})", shades, marks, log_y=log_y))
    return tuple(panels)


def ground_panel(paths: Mapping[str, Array], title: str = "") -> Panel:
    """Paths (N, 2 or 3) by label, seen from above, with the start of the first."""
    x, y = next(iter(paths.values()))[:1, :2].T
    start = Series("start", x, y, kind="points", colour=COLOURS["truth"])
    lines = (path(label, points[:, :2]) for label, points in paths.items())
    return Panel((*lines, start), "x (m)", "y (m)", title=title, equal=True)


def running_rms(t: Array, values: Array, seconds: float) -> Array:
    """Root mean square of values (N,) over a window around each of them; shorter at the ends."""
    total = np.concatenate([[0.0], np.cumsum(values**2)])
    first, last = np.searchsorted(t, t - seconds / 2.0), np.searchsorted(t, t + seconds / 2.0, side="right")
    # Rounding of the sums may leave a value slightly below zero.
    return np.asarray(np.sqrt(np.maximum(total[last] - total[first], 0.0) / (last - first)))


def _aligned(log: Log, pos_w: Array) -> Array:
    """Positions aligned with the true ones in position and heading, which an IMU cannot observe."""
    # Ground truth stands in for the rest: orientation only counts where the robot stays in one place, velocity never.
    estimate = Trajectory(t=log.t, pos_w=pos_w, quat_wb_wxyz=log.need("quat_wb_wxyz"), vel_w=log.need("vel_w"))
    motion = align(estimate, log, "yaw")
    return rotate(motion.quat_wxyz, pos_w) + motion.translation
