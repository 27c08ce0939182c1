"""Tables beside those of the paper: the walks, the cost of a step, and the calibration of standard deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gait.bench.study import Study
from gait.methods import METHODS
from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters, self_attention_multiply_adds
from gait.nets.model import load_model
from gait.report.table import Cell, Table, TableLine

WALKS_NOTE = (
    "Falls were replaced by the next draw. A slip is a foot in contact (as the contact estimator has it) that moves"
    " faster than 0.5 m/s; in flight no foot touches the ground."
)
COST_NOTE = "Multiply-adds of one step, counted from the architecture; folded is what the estimator really computes."
CALIBRATION_NOTE = (
    "Share of the components of the velocity error within one and within two predicted standard deviations (0.68 and"
    " 0.95 if they are right), of the network and of the filter; and the filter's normalised squared error (3 if it is"
    " right)."
)


def _lines(columns: Mapping[str, str], values: Mapping[tuple[str, ...], Sequence[float | Cell]]) -> list[TableLine]:
    """Lines by their keys; nan leaves a cell empty."""
    lines = []
    for keys, row in values.items():
        cells = {
            name: one if isinstance(one, Cell) else Cell(float(one)) for name, one in zip(columns, row, strict=True)
        }
        lines.append(TableLine(keys, {name: cell for name, cell in cells.items() if np.isfinite(cell.mean)}))
    return lines


def merit_table(study: Study) -> Table:
    """The walks themselves: speed, slips, flight and falls."""
    columns = ("runs", "length", "speed", "slip_share", "flight_share", "falls")
    labels = {name: name.replace("_", " ") for name in columns}
    values: dict[tuple[str, ...], Sequence[float]] = {}
    for course in study.courses:
        walks = [walk for walk in study.walks if walk.course == course]
        grounds = [study.grounds[walk.name] for walk in walks]
        values[(course,)] = (
            len(walks),
            sum(walk.log.duration for walk in walks),
            float(np.mean([np.linalg.norm(walk.log.need("vel_w")[:, :2], axis=1).mean() for walk in walks])),
            float(np.mean([ground.slipping.mean() for ground in grounds])),
            float(np.mean([ground.flight.mean() for ground in grounds])),
            sum(walk.falls for walk in walks),
        )
    lines, units = _lines(labels, values), {"length": "s", "speed": "m/s"}
    return Table("walks", "The walks", WALKS_NOTE, ("course",), tuple(labels), tuple(lines), "", units, labels)


def cost_table(study: Study) -> Table:
    """Parameters and multiply-adds of each network, beside self-attention over the tokens of `gait`."""
    labels = {
        "parameters": "parameters", "multiply_adds": "multiply-adds", "to_gait": "relative to gait", "folded": "folded",
    }  # fmt: skip
    ours = multiply_adds(load_model(METHODS["gait"].weights).architecture)
    values: dict[tuple[str, ...], Sequence[float | Cell]] = {}
    for method in (method for method in study.methods if METHODS[method].weights):
        a = load_model(METHODS[method].tabled).architecture
        ratio = Cell(multiply_adds(a) / ours, paper={"nmn": 3.3}.get(method))
        values[(method,)] = parameters(a), multiply_adds(a), ratio, folded_multiply_adds(a)
        if method == "gait":
            count = self_attention_multiply_adds(a)
            values[("self_attention",)] = float("nan"), count, Cell(count / ours, paper=2.8), float("nan")
    lines = _lines(labels, values)
    return Table("cost", "What a step costs", COST_NOTE, ("network",), tuple(labels), tuple(lines), "", labels=labels)


def calibration_table(study: Study) -> Table:
    """Shares of errors within the predicted deviations, for each course and method."""
    labels = {f"{which}_{k}": f"{which}, {k} std" for which in ("network", "filter") for k in (1, 2)}
    labels["filter_nees"] = "filter, NEES"
    values: dict[tuple[str, ...], Sequence[float]] = {}
    for course in study.courses:
        for method in study.methods:
            scores = study.of(method, course)
            networks = [one.network.within for one in scores if one.network is not None]
            within = np.mean(networks, axis=0) if networks else (np.nan, np.nan)
            fused = np.mean([one.fused.within for one in scores], axis=0)
            values[course, method] = *within, *fused, float(np.mean([one.nees for one in scores]))
    title, lines = "Are predicted deviations honest?", _lines(labels, values)
    heads = ("course", "method")
    return Table("calibration", title, CALIBRATION_NOTE, heads, tuple(labels), tuple(lines), "", labels=labels)
