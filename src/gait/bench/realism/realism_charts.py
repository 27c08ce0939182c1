"""Charts of a study of realism: logs beside training data and twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.bench.realism.measured_log import MeasuredLog
from gait.bench.realism.realism_table import RealismStudy
from gait.bench.realism.reference_walks import TRAINING, TWIN
from gait.report.chart import AXES, Chart, Panel, Series

COLOURS = ("#D55E00", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
OF_REFERENCES = {TRAINING: "#0072B2", TWIN: "#009E73"}
"""Of logs in turn, and of the simulated walks."""
PHASE, FREQUENCY = "phase of the stance", "frequency (Hz)"
ACCELERATION = "m/s\N{SUPERSCRIPT TWO}"
DENSITY = "/\N{SQUARE ROOT}Hz"


class Plan(NamedTuple):
    """A chart: panels of curves, or one curve with a panel for each axis."""

    title: str
    x_label: str
    y_labels: dict[str, str]
    """By curve."""
    caption: str
    axes: tuple[str, ...] = ()
    log: bool = False


PLANS = (
    Plan(
        "Leg residual over the stance", PHASE, {"residual-phase": "RMS (m/s)"},
        "Velocity of the body that a leg in stance measures, less the true one. Robots settle more slowly after"
        " touch-down than simulators do, and to more.",
        AXES,
    ),
    Plan(
        "Mean leg residual over the stance", PHASE, {"residual-mean": "mean (m/s)"},
        "Above zero along the vertical, the foot sinks.",
        AXES,
    ),
    Plan(
        "Autocorrelation of the leg residual", "lag (s)", {"residual-time": "correlation"},
        "Of mid stance. What vibrates falls below zero within 10 ms; what creeps or sinks lasts.",
        AXES,
    ),
    Plan(
        "Height of the foot over the stance", PHASE, {"foot-height": "height (m)"},
        "Of the foot's centre by kinematics and ground truth, less its median in each stance: a rigid foot on rigid"
        " ground stays at zero.",
    ),
    Plan(
        "Leg residual against load", "ground force (weights of the robot)", {"residual-load": "RMS (m/s)"},
        "In mid stance, of logs with torques or joint targets.",
    ),
    Plan(
        "Spectrum of the accelerometer", FREQUENCY, {"accel-spectrum": f"{ACCELERATION}{DENSITY}"},
        "Square root of the power density (Welch).",
        AXES,
        True,
    ),
    Plan(
        "Spectrum of the gyro", FREQUENCY, {"gyro-spectrum": f"rad/s{DENSITY}"},
        "Square root of the power density (Welch).",
        ("about x", "about y", "about z"),
        True,
    ),
    Plan(
        "Response to touch-downs", "time from touch-down (s)",
        {"accel-impact": f"||a| - g| ({ACCELERATION})", "gyro-impact": "gyro above 10 Hz (rad/s)"},
        "Mean over touch-downs.",
    ),
    Plan(
        "Random walk of the integrated accelerometer", "time (s)", {"accel-walk": f"{ACCELERATION}{DENSITY}"},
        "Error of the integral over some time, less its mean, over the root of that time. White noise is a level line,"
        " and its height the process noise that a filter needs.",
        AXES,
        True,
    ),
)  # fmt: skip


def realism_charts(study: RealismStudy) -> list[Chart]:
    """Every chart for which some log has a curve."""
    return [chart for plan in PLANS if (chart := _chart(study, plan)).panels]


def _chart(study: RealismStudy, plan: Plan) -> Chart:
    panels = []
    for name, y_label in plan.y_labels.items():
        for i, axis in enumerate(plan.axes or ("",)):
            if series := _series(study, name, i):
                panels.append(Panel(series, plan.x_label, y_label, title=axis, log_x=plan.log, log_y=plan.log))
    name, by_axis = next(iter(plan.y_labels)), bool(plan.axes)
    columns = max(len(panels), 1)
    return Chart(f"realism-{name}", plan.title, plan.caption, tuple(panels), columns, share_x=by_axis, share_y=by_axis)


def _series(study: RealismStudy, name: str, axis: int) -> tuple[Series, ...]:
    found, colours = [], iter(COLOURS * len(study.columns))
    for column, logs in study.columns.items():
        colour = OF_REFERENCES.get(column) or next(colours)
        curve = _mean(logs, name)
        if curve is not None:
            found.append(Series(column, curve[0], curve[1][:, axis], colour=colour))
    return tuple(found)


def _mean(logs: Sequence[MeasuredLog], name: str) -> tuple[Array, Array] | None:
    """The mean curve (K, axes) of the logs of a column, on the places (K,) of the longest."""
    found = [one.curves[name] for one in logs if name in one.curves]
    if not found:
        return None
    places = max((x for x, _ in found), key=len)
    onto = np.array(
        [
            np.stack([np.interp(places, x, one, left=np.nan, right=np.nan) for one in values.reshape(len(x), -1).T], 1)
            for x, values in found
        ]
    )
    known = np.isfinite(onto).sum(axis=0)
    return places, np.where(known > 0, np.nansum(onto, axis=0) / np.maximum(known, 1), np.nan)
