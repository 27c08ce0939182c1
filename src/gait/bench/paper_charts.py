"""The figures of the paper and a few more, made of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gait.arrays import Array
from gait.bench.courses import TERRAINS, TRANSITION, UNSEEN, Walk
from gait.bench.scores import SLIP_EDGES, STD_EDGES, Score, VelocityScore
from gait.bench.study import Study, Trace
from gait.bench.walk_charts import walk_charts
from gait.report.chart import COLOURS, OTHER_COLOURS, Chart, Panel, Series
from gait.report.chart_parts import (
    AXES,
    TIME,
    attention_panels,
    ground_panel,
    line,
    looking,
    pooled,
    shade,
    shown_walk,
    traces_of,
    window,
)
from gait.rows import Row

__all__ = ["paper_charts", "walk_charts"]

BEFORE, AFTER = 1.4, 2.6
"""Seconds shown around a change of gait."""
HOPS = 1.5
"""Seconds of pronk: a few hops."""
LEAST = 200
"""A bin with fewer values says nothing."""
RARE = 1e-3
"""So small a share of the values is left out of the calibration: the first moments of a walk."""
FEET = (OTHER_COLOURS[0], "#0072B2", "#009E73", "#CC79A7")
"""Colours of what is no method, where there are up to four."""
RUNTIMES = {
    "c": "C",
    "gtsam": "GTSAM",
    "numpy": "NumPy",
    "onnxruntime": "ONNX Runtime",
    "torch_eager": "PyTorch",
    "torch_jit": "TorchScript",
}
"""As people write them; others go by their own name."""


def paper_charts(study: Study, latency: Sequence[Row] | None = None) -> list[Chart]:
    """The figures of the benchmark that the study has the data for.

    Args:
        study: of the test set, or part of it.
        latency: what `gait bench latency` measured, to compare with other runtimes.
    """
    charts = [
        trot_to_bound(study),
        attention_legs(study),
        attention_pronk(study),
        from_above(study),
        slip_error(study),
        calibration(study),
        latency_chart(study, latency),
    ]
    return [chart for chart in charts if chart is not None]


def trot_to_bound(study: Study) -> Chart | None:
    """Forward velocity and error while the gait changes to one that no network was trained on."""
    walk = shown_walk(study, TRANSITION)
    if walk is None:
        return None
    t, rows, marks = _change(walk)
    truth, traces = walk.log.vel_b, traces_of(study, walk)
    speeds = [line("truth", t, truth[rows, 0])]
    speeds += [line(method, t, _velocity(trace)[rows, 0]) for method, trace in traces.items()]
    errors = [
        line(method, t, np.linalg.norm(_velocity(trace) - truth, axis=1)[rows]) for method, trace in traces.items()
    ]
    return Chart(
        "trot-to-bound",
        "Velocity through a change from trot to bound",
        "Forward velocity, and length of the error of all three components, while the gait changes from trot to bound,"
        " which no network was trained on. Learned methods are shown by their network's own velocity, the others by"
        " their filter's, as in the paper.",
        (
            Panel(tuple(speeds), TIME, "forward velocity (m/s)", marks=marks),
            Panel(tuple(errors), TIME, "length of error (m/s)", marks=marks),
        ),
    )


def attention_legs(study: Study) -> Chart | None:
    """How much the network looks at each leg while the gait changes."""
    walk = shown_walk(study, TRANSITION)
    trace = None if walk is None else looking(study, walk)
    if walk is None or trace is None:
        return None
    _, rows, marks = _change(walk)
    return Chart(
        "attention-legs",
        "Attention on each leg through a change from trot to bound",
        "Share of the attention of gait that goes to each leg, summed over the history, and when its foot truly"
        " touches the ground. In a trot, diagonal pairs rise together; in a bound, front and rear pairs.",
        attention_panels(walk, trace, rows, marks),
        share_y=True,
    )


def attention_pronk(study: Study) -> Chart | None:
    """What the network looks at, and how sure it is, when no foot touches the ground."""
    walk = shown_walk(study, "pronk")
    trace = None if walk is None else looking(study, walk)
    if walk is None or trace is None or trace.attention is None or trace.predicted_std is None:
        return None
    rows = window(trace.t, float(trace.t[-1]) / 2.0, HOPS)
    t, log = trace.t[rows], walk.log
    flight = () if log.contact is None else (shade("flight", t, study.grounds[walk.name].flight[rows]),)
    attention, std = trace.attention[rows], trace.predicted_std[rows]
    panels = [
        Panel(
            (
                line("accelerometer", t, attention[:, 1], colour=OTHER_COLOURS[0]),
                line("gyroscope", t, attention[:, 0], colour="#0072B2"),
            ),
            TIME,
            "attention (share)",
            flight,
        ),
        Panel(
            tuple(line(axis, t, std[:, i], colour=FEET[i]) for i, axis in enumerate(AXES)),
            TIME,
            "predicted std (m/s)",
            flight,
        ),
    ]
    if log.foot_vel_w is not None:
        speed = np.linalg.norm(log.foot_vel_w[rows], axis=-1)
        feet = tuple(
            line(f"foot {leg}", t, speed[:, i], colour=FEET[i % len(FEET)]) for i, leg in enumerate(log.leg_names)
        )
        panels.append(Panel(feet, TIME, "foot speed (m/s)", flight))
    return Chart(
        "attention-pronk",
        "Attention and uncertainty in pronk",
        "Share of the attention of gait that goes to the inertial sensors, the standard deviation that it predicts for"
        " the body velocity, and the true speed of the feet. In flight no foot ties the body to the ground.",
        tuple(panels),
    )


def from_above(study: Study) -> Chart | None:
    """The way of the first run on each terrain."""
    panels = []
    for terrain in TERRAINS:
        walk = shown_walk(study, terrain)
        if walk is not None and walk.log.pos_w is not None:
            ways = {method: trace.pos_w for method, trace in traces_of(study, walk).items()}
            panels.append(ground_panel(walk.log.pos_w, ways, terrain))
    if not panels:
        return None
    return Chart(
        "from-above",
        "Trot on four terrains, seen from above" if len(panels) == len(TERRAINS) else "Trot, seen from above",
        "The true way and what each method's filter makes of it: the first run of each terrain, from the true start"
        " and without any later correction.",
        tuple(panels),
        columns=min(len(panels), 2),
        share_x=False,
    )


def slip_error(study: Study) -> Chart | None:
    """Velocity error against how fast the feet slip."""
    centres = np.append((SLIP_EDGES[1:] + SLIP_EDGES[:-1]) / 2.0, SLIP_EDGES[-1] + 0.25)
    lines, counts = [], np.zeros(len(centres))
    for method in study.methods:
        scores = _scores(study, method, TERRAINS)
        if not scores:
            continue
        rms, counts = pooled(one.velocity.by_slip for one in scores)
        lines.append(Series(method, centres, np.where(counts >= LEAST, rms, np.nan)))
    if not counts.any():
        return None
    last = f"slip speed (m/s); the last point is all above {SLIP_EDGES[-1]:g}"
    # The same samples for every method: whoever came last may stand for all.
    share = Series("all walks", centres, 100.0 * counts / counts.sum(), colour="#666666")
    return Chart(
        "slip-error",
        "Velocity error against slip",
        "Root mean square length of the velocity error in trot on all terrains, by the speed of the fastest foot that"
        " the contact estimator holds for standing; below, how often that happens. Learned methods are shown by their"
        " network's own velocity.",
        (
            Panel(tuple(lines), last, "rms error (m/s)"),
            Panel((share,), last, "share of samples (%)", log_y=True),
        ),
    )


def calibration(study: Study) -> Chart | None:
    """Whether errors are as large as the standard deviation says."""
    parts: tuple[tuple[str, Callable[[Score], VelocityScore | None]], ...] = (
        ("network", lambda score: score.network),
        ("filter", lambda score: score.fused),
    )
    panels = [
        _calibration_panel(study, courses, f"{which}, {name}", part)
        for which, part in parts
        for name, courses in (("trot on all terrains", TERRAINS), ("unseen gaits", UNSEEN))
    ]
    found = tuple(panel for panel in panels if panel is not None)
    if not found:
        return None
    every = np.concatenate([np.asarray(one.x, dtype=float) for panel in found for one in panel.series])
    ends = np.array([every.min(), every.max()])
    honest = Series("honest", ends, ends, colour="#999999", dashed=True)
    return Chart(
        "calibration",
        "Is the predicted uncertainty honest?",
        "Root mean square error of the velocity's components among those with about the same predicted standard"
        " deviation. On the diagonal it is honest, above it is overconfident, below it is too careful.",
        tuple(replace(panel, series=(*panel.series, honest)) for panel in found),
        columns=min(len(found), 2),
        share_y=True,
    )


def latency_chart(study: Study, latency: Sequence[Row] | None = None) -> Chart | None:
    """How long a step takes, by method and by runtime."""
    panels = []
    times = {method: study.step_us(method) for method in study.methods}
    if times:
        panels.append(_bars("a whole log at once, by method", times))
    found = {row.name: float(row.value) for row in latency or () if row.unit == "us"}
    single = {_runtime(name): value for name, value in found.items() if name.endswith((".step_us", ".kernel_us"))}
    if single:
        panels.append(
            _bars("sample by sample, by method and runtime", dict(sorted(single.items(), key=lambda item: item[1])))
        )
    if not panels:
        return None
    return Chart(
        "latency",
        "Time a step takes",
        "Microseconds of one processor core for one sample, network and filter together; medians. A robot that sends"
        " 500 samples a second leaves 2000 microseconds.",
        tuple(panels),
        share_x=False,
    )


def _calibration_panel(
    study: Study, courses: Sequence[str], title: str, part: Callable[[Score], VelocityScore | None]
) -> Panel | None:
    # The last bin is open: its middle is where it would be if it were as wide as the others.
    centres = STD_EDGES * np.sqrt(STD_EDGES[1] / STD_EDGES[0])
    lines = []
    for method in study.methods:
        judged = [found for one in _scores(study, method, courses) if (found := part(one)) is not None]
        if judged:
            rms, count = pooled(one.by_std for one in judged)
            enough = (count >= max(LEAST, RARE * count.sum())) & (rms > 0.0)
            lines.append(Series(method, centres[enough], rms[enough]))
    lines = [one for one in lines if len(one.y)]
    if not lines:
        return None
    return Panel(tuple(lines), "predicted std (m/s)", "rms error (m/s)", title=title, log_x=True, log_y=True)


def _bars(title: str, times: dict[str, float]) -> Panel:
    bars = Series("microseconds", tuple(times), np.array(list(times.values())), kind="bar", colour=COLOURS["gait"])
    wide = bars.y.max() > 20.0 * bars.y.min()
    return Panel((bars,), "", "time of a sample (µs)", title=title, log_y=bool(wide))


def _runtime(name: str) -> str:
    """Of `gait.torch_eager.step_us`: `gait, PyTorch`."""
    method, runtime, what = name.split(".")
    return f"{method}, {RUNTIMES.get(runtime, runtime)}{', inside the loop' if what == 'kernel_us' else ''}"


def _velocity(trace: Trace) -> Array:
    """What the paper compares: the network's velocity, or the filter's where there is no network."""
    return trace.vel_b if trace.predicted is None else trace.predicted


def _scores(study: Study, method: str, courses: Sequence[str]) -> list[Score]:
    return [one for course in courses for one in study.of(method, course)]


def _change(walk: Walk) -> tuple[Array, slice, tuple[tuple[float, str], ...]]:
    """Time and rows around the change of gait, which is half-way, and marks where it begins and ends."""
    from gait.sim.gaits import GaitClock

    t = walk.log.t - walk.log.t[0]
    begins = round(float(t[-1]) / 2.0, 2)
    rows = window(t, begins - BEFORE, BEFORE + AFTER)
    return t[rows], rows, ((begins, "change begins"), (begins + GaitClock.blend, "bound"))
