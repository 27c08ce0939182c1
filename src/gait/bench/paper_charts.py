"""The figures of the paper and a few more, made of a study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gait.arrays import Array
from gait.bench.courses import TERRAINS, TRANSITION, UNSEEN, Walk
from gait.bench.scores import SLIP_EDGES, STD_EDGES
from gait.bench.study import Study
from gait.report.chart import AXES, COLOURS, OTHER_COLOURS, TIME, Chart, Panel, Series, Shade, line, window
from gait.report.walk_charts import Trace, attention_panels, ground_panel
from gait.rows import Row

BEFORE, AFTER = 1.4, 2.6
"""Seconds shown around a change of gait."""
HOPS = 1.5
"""Seconds of pronk: a few hops."""
LEAST = 200
"""A bin with fewer values is left out."""
RARE = 1e-3
"""So small a share of the values is left out of the calibration: the first moments of a walk."""
FEET = (OTHER_COLOURS[0], "#0072B2", "#009E73", "#CC79A7")
"""Colours of up to four series that are no method."""
RUNTIMES = {
    "gtsam": "GTSAM",
    "onnxruntime": "ONNX Runtime",
    "torch_eager": "PyTorch",
    "torch_jit": "TorchScript",
}
"""Names of runtimes as people write them."""


def paper_charts(study: Study, latency: Sequence[Row] = ()) -> list[Chart]:
    """The figures of the benchmark that the study has the data for.

    Args:
        study: of the test set, or part of it.
        latency: rows of `gait bench latency`, to compare with other runtimes.
    """
    charts: list[Chart | None] = []
    for course, makers in {TRANSITION: (trot_to_bound, attention_legs), "pronk": (attention_pronk,)}.items():
        if walk := study.shown(course):
            charts += [make(study, walk) for make in makers]
    charts += [from_above(study), slip_error(study), calibration(study), latency_chart(study, latency)]
    return [chart for chart in charts if chart is not None]


def trot_to_bound(study: Study, walk: Walk) -> Chart:
    """Forward velocity and error while the gait changes to one that no network was trained on."""
    t, rows, marks = _change(walk)
    true = walk.log.vel_b
    # As in the paper: the network's velocity, or the filter's where there is no network.
    found = {
        method: trace.vel_b if trace.predicted is None else trace.predicted[0]
        for method, trace in study.traces_of(walk).items()
    }
    speeds = [line(label, t, values[rows, 0]) for label, values in {"truth": true, **found}.items()]
    errors = [line(label, t, np.linalg.norm(values - true, axis=1)[rows]) for label, values in found.items()]
    return Chart(
        "trot-to-bound",
        "Velocity through a change from trot to bound",
        "Forward velocity, and norm of the velocity error, while the gait changes from trot to bound, which no network"
        " was trained on. Learned methods are shown by their network's own velocity, the others by their filter's, as"
        " in the paper.",
        (
            Panel(tuple(speeds), TIME, "forward velocity (m/s)", marks=marks),
            Panel(tuple(errors), TIME, "norm of error (m/s)", marks=marks),
        ),
    )


def attention_legs(study: Study, walk: Walk) -> Chart | None:
    """The attention on each leg while the gait changes."""
    trace = _attentive(study, walk)
    if trace is None:
        return None
    _, rows, marks = _change(walk)
    return Chart(
        "attention-legs",
        "Attention on each leg through a change from trot to bound",
        "Share of the attention of gait that goes to each leg, summed over the history, and the true contacts of its"
        " foot. In a trot, diagonal pairs rise together; in a bound, front and rear pairs.",
        attention_panels(walk.log, trace, rows, marks),
        share_y=True,
    )


def attention_pronk(study: Study, walk: Walk) -> Chart | None:
    """Attention on the inertial sensors and predicted standard deviation, in stance and flight."""
    trace = _attentive(study, walk)
    if trace is None or trace.attention is None or trace.predicted is None:
        return None
    rows = window(trace.t, float(trace.t[-1]) / 2.0, HOPS)
    t, log = trace.t[rows], walk.log
    flight = () if log.contact is None else (Shade("flight", t, study.grounds[walk.name].flight[rows]),)
    values: dict[str, tuple[Sequence[str], Array]] = {
        "attention (share)": (("accelerometer", "gyroscope"), trace.attention[rows][:, 1::-1]),
        "predicted std (m/s)": (AXES, trace.predicted[1][rows]),
    }
    if log.foot_vel_w is not None:
        feet = [f"foot {leg}" for leg in log.leg_names]
        values["foot speed (m/s)"] = feet, np.linalg.norm(log.foot_vel_w[rows], axis=-1)
    panels = []
    for label, (names, some) in values.items():
        lines = [line(name, t, some[:, i], colour=FEET[i % len(FEET)]) for i, name in enumerate(names)]
        panels.append(Panel(tuple(lines), TIME, label, flight))
    return Chart(
        "attention-pronk",
        "Attention and uncertainty in pronk",
        "Share of the attention of gait that goes to the inertial sensors, its predicted standard deviation of the"
        " body velocity, and the true speed of the feet. In flight no foot constrains the body.",
        tuple(panels),
    )


def from_above(study: Study) -> Chart | None:
    """The path of the first run on each terrain."""
    panels = []
    for terrain in TERRAINS:
        walk = study.shown(terrain)
        if walk is not None and walk.log.pos_w is not None:
            paths = {method: trace.pos_w for method, trace in study.traces_of(walk).items()}
            panels.append(ground_panel({"truth": walk.log.pos_w, **paths}, terrain))
    if not panels:
        return None
    return Chart(
        "from-above",
        "Trot on four terrains, seen from above" if len(panels) == len(TERRAINS) else "Trot, seen from above",
        "The true path and that of each method's filter: the first run of each terrain, from the true start and"
        " without any later correction.",
        tuple(panels),
        columns=min(len(panels), 2),
        share_x=False,
    )


def slip_error(study: Study) -> Chart | None:
    """Velocity error against slip speed."""
    centres = np.append((SLIP_EDGES[1:] + SLIP_EDGES[:-1]) / 2.0, SLIP_EDGES[-1] + 0.25)
    lines, counts = [], np.zeros(len(centres))
    for method in study.methods:
        if scores := study.of(method, *TERRAINS):
            # The counts are the same for every method.
            rms, counts = pooled(one.velocity.by_slip for one in scores)
            lines.append(Series(method, centres, np.where(counts >= LEAST, rms, np.nan)))
    if not counts.any():
        return None
    last = f"slip speed (m/s); the last point is all above {SLIP_EDGES[-1]:g}"
    share = Series("all walks", centres, 100.0 * counts / counts.sum(), colour="#666666")
    return Chart(
        "slip-error",
        "Velocity error against slip",
        "Root mean square velocity error in trot on all terrains, by the speed of the fastest foot in contact (as the"
        " contact estimator has it); below, how often that happens. Learned methods are shown by their network's own"
        " velocity.",
        (
            Panel(tuple(lines), last, "rms error (m/s)"),
            Panel((share,), last, "share of samples (%)", log_y=True),
        ),
    )


def calibration(study: Study) -> Chart | None:
    """Error against predicted standard deviation."""
    found = {}
    for which in ("network", "filter"):
        for name, courses in {"trot on all terrains": TERRAINS, "unseen gaits": UNSEEN}.items():
            if lines := _calibration_lines(study, courses, which == "filter"):
                found[f"{which}, {name}"] = lines
    if not found:
        return None
    every = np.concatenate([np.asarray(one.x, dtype=float) for lines in found.values() for one in lines])
    ends = np.array([every.min(), every.max()])
    honest = Series("honest", ends, ends, colour="#999999", dashed=True)
    axes = "predicted std (m/s)", "rms error (m/s)"
    return Chart(
        "calibration",
        "Is the predicted uncertainty honest?",
        "Root mean square error of the velocity's components among those with about the same predicted standard"
        " deviation. On the diagonal it is honest, above it is overconfident, below it is too careful.",
        tuple(Panel((*lines, honest), *axes, title=title, log_x=True, log_y=True) for title, lines in found.items()),
        columns=min(len(found), 2),
        share_y=True,
    )


def _calibration_lines(study: Study, courses: Sequence[str], fused: bool) -> list[Series]:
    # The last bin is open: its middle is where it would be if it were as wide as the others.
    centres = STD_EDGES * np.sqrt(STD_EDGES[1] / STD_EDGES[0])
    lines = []
    for method in study.methods:
        scores = [one.fused if fused else one.network for one in study.of(method, *courses)]
        if bins := [one.by_std for one in scores if one is not None]:
            rms, count = pooled(bins)
            enough = (count >= max(LEAST, RARE * count.sum())) & (rms > 0.0)
            lines += [Series(method, centres[enough], rms[enough])] if enough.any() else []
    return lines


def latency_chart(study: Study, latency: Sequence[Row] = ()) -> Chart | None:
    """Time a step takes, by method and by runtime."""
    found = {row.name: float(row.value) for row in latency if row.unit == "us"}
    single = {_runtime(name): value for name, value in found.items() if name.endswith((".step_us", ".kernel_us"))}
    groups = {
        "a whole log at once, by method": {method: study.step_us(method) for method in study.methods},
        "sample by sample, by method and runtime": dict(sorted(single.items(), key=lambda item: item[1])),
    }
    panels = []
    for title, times in groups.items():
        if not times:
            continue
        y = np.array(list(times.values()))
        bars = Series("microseconds", tuple(times), y, kind="bar", colour=COLOURS["gait"])
        log_y = bool(y.max() > 20.0 * y.min())
        panels.append(Panel((bars,), "", "time of a sample (µs)", title=title, log_y=log_y))
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


def _runtime(name: str) -> str:
    """Of `gait.torch_eager.step_us`: `gait, PyTorch`."""
    method, runtime, what = name.split(".")
    return f"{method}, {RUNTIMES.get(runtime, runtime)}{', inside the loop' if what == 'kernel_us' else ''}"


def pooled(parts: Iterable[Array]) -> Array:
    """Root mean square in each bin and count, as (2, bins), of sums of squares and counts (bins, 2)."""
    total = np.sum(list(parts), axis=0)
    rms = np.sqrt(np.divide(total[:, 0], total[:, 1], out=np.full(len(total), np.nan), where=total[:, 1] > 0))
    return np.stack([rms, total[:, 1]])


def _attentive(study: Study, walk: Walk) -> Trace | None:
    """The trace of a walk that has an attention."""
    return next((trace for trace in study.traces_of(walk).values() if trace.attention is not None), None)


def _change(walk: Walk) -> tuple[Array, slice, tuple[tuple[float, str], ...]]:
    """Time and rows around the change of gait, which is half-way, and marks where it begins and ends."""
    from gait.sim.gaits import GaitClock

    t = walk.log.t - walk.log.t[0]
    begins = round(float(t[-1]) / 2.0, 2)
    rows = window(t, begins - BEFORE, BEFORE + AFTER)
    return t[rows], rows, ((begins, "change begins"), (begins + GaitClock.blend, "bound"))
