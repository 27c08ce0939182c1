"""Tables that the paper tells in words: what a step costs, and whether predicted deviations are honest."""

from __future__ import annotations

import numpy as np

from gait.bench.study import Study
from gait.estimator import METHODS
from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters, self_attention_multiply_adds
from gait.nets.model import load_model
from gait.report.table import Cell, Table, TableLine

_MERITS = {"runs": "-", "length": "s", "speed": "m/s", "slip_share": "-", "flight_share": "-", "falls": "-"}


def merit_table(study: Study) -> Table:
    """What the walks are like, whoever estimates: speed, slips, flight and falls."""
    lines = []
    for course in study.courses:
        walks = [walk for walk in study.walks if walk.course == course]
        grounds = [study.grounds[walk.name] for walk in walks]
        speed = np.mean([np.linalg.norm(np.asarray(walk.log.vel_w)[:, :2], axis=1).mean() for walk in walks])
        figures = (
            len(walks),
            sum(walk.log.duration for walk in walks),
            speed,
            np.mean([ground.slipping.mean() for ground in grounds]),
            np.mean([ground.flight.mean() for ground in grounds]),
            sum(walk.falls for walk in walks),
        )
        cells = {name: Cell(float(value)) for name, value in zip(_MERITS, figures, strict=True)}
        lines.append(TableLine((course,), cells))
    note = (
        "Falls were replaced by the next draw. A slip is a foot that the contact estimator holds for standing and that"
        " moves faster than 0.5 m/s; in flight no foot touches the ground."
    )
    labels = {name: name.replace("_", " ") for name in _MERITS}
    return Table("walks", "The walks", note, ("course",), tuple(_MERITS), tuple(lines), "", _MERITS, labels)


_COST = {"parameters": "-", "multiply_adds": "-", "to_gait": "-", "folded": "-"}
_CALIBRATION = {"network_1": "-", "network_2": "-", "filter_1": "-", "filter_2": "-", "filter_nees": "-"}


def cost_table(study: Study) -> Table:
    """Numbers and multiply-adds of each network, beside self-attention over the tokens of `gait`."""
    ours = load_model(METHODS["gait"].weights).architecture
    lines = []
    for method in (method for method in study.methods if METHODS[method].weights):
        a = load_model(METHODS[method].tabled).architecture
        ratio = Cell(multiply_adds(a) / multiply_adds(ours), paper={"nmn": 3.3}.get(method))
        figures = (Cell(parameters(a)), Cell(multiply_adds(a)), ratio, Cell(folded_multiply_adds(a)))
        lines.append(TableLine((method,), dict(zip(_COST, figures, strict=True))))
        if method == "gait":
            count = self_attention_multiply_adds(a)
            cells = {"multiply_adds": Cell(count), "to_gait": Cell(count / multiply_adds(a), paper=2.8)}
            lines.append(TableLine(("self_attention",), cells, "", ("self-attention instead",)))
    note = "Multiply-adds of one step, counted from the architecture; folded is what the estimator really computes."
    labels = {"multiply_adds": "multiply-adds", "to_gait": "relative to gait"}
    return Table("cost", "What a step costs", note, ("network",), tuple(_COST), tuple(lines), "", _COST, labels)


def calibration_table(study: Study) -> Table:
    """Shares of errors within the predicted deviations, for each course and method."""
    lines = []
    for course in study.courses:
        for method in study.methods:
            scores = study.of(method, course)
            fused = np.mean([one.fused.within for one in scores], axis=0)
            networks = [one.network.within for one in scores if one.network is not None]
            network = np.mean(networks, axis=0) if networks else (np.nan, np.nan)
            figures = (*network, *fused, np.mean([one.nees for one in scores]))
            known = {name: float(value) for name, value in zip(_CALIBRATION, figures, strict=True)}
            cells = {name: Cell(value) for name, value in known.items() if np.isfinite(value)}
            lines.append(TableLine((course, method), cells))
    note = (
        "Share of the components of the velocity error within one and within two predicted standard deviations (0.68"
        " and 0.95 would be honest), of the network and of the filter; and the filter's normalised squared error (3"
        " would be)."
    )
    labels = {
        "network_1": "network, 1 std",
        "network_2": "network, 2 std",
        "filter_1": "filter, 1 std",
        "filter_2": "filter, 2 std",
        "filter_nees": "filter, NEES",
    }
    title, heads = "Are predicted deviations honest?", ("course", "method")
    return Table("calibration", title, note, heads, tuple(_CALIBRATION), tuple(lines), "", _CALIBRATION, labels)
