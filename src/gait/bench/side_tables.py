"""Tables beside those of the paper: the walks, the cost of a step, the calibration of standard deviations, and whether
one method is better than another on the same walks, or it was chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.bench.study import Study
from gait.methods import METHODS
from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters, self_attention_multiply_adds
from gait.nets.model import load_model
from gait.report.table import Cell, Table, TableLine

OURS = "gait"
"""The method that all others are compared with."""
DRAWS = 10_000
"""Of the bootstrap."""
FEWEST = 6
"""Of fewer pieces a bootstrap makes an interval that is far too narrow: nothing is clear then."""
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
Values = dict[tuple[str, ...], Sequence[float | Cell]]
"""Cells of a table by the keys of the line, in the order of columns."""


def _table(
    name: str, title: str, note: str, heads: tuple[str, ...], labels: Mapping[str, str], values: Values,
    units: Mapping[str, str] | None = None,
) -> Table:  # fmt: skip
    """Columns by name with their labels, lines by their keys; nan leaves a cell empty."""
    lines = []
    for keys, row in values.items():
        cells = [one if isinstance(one, Cell) else Cell(float(one)) for one in row]
        known = {name: cell for name, cell in zip(labels, cells, strict=True) if not np.isnan(cell.mean)}
        lines.append(TableLine(keys, known))
    return Table(name, title, note, heads, tuple(labels), tuple(lines), "", units or {}, labels)


def merit_table(study: Study) -> Table:
    """The walks themselves: speed, slips, flight and falls."""
    columns = ("runs", "length", "speed", "slip_share", "flight_share", "falls")
    labels = {name: name.replace("_", " ") for name in columns}
    values: Values = {}
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
    units = {"length": "s", "speed": "m/s"}
    return _table("walks", "The walks", WALKS_NOTE, ("course",), labels, values, units)


def cost_table(study: Study) -> Table:
    """Parameters and multiply-adds of each network, beside self-attention over the tokens of `gait`."""
    labels = {
        "parameters": "parameters", "multiply_adds": "multiply-adds", "to_gait": "relative to gait", "folded": "folded",
    }  # fmt: skip
    ours = multiply_adds(load_model(METHODS["gait"].weights).architecture)
    values: Values = {}
    for method in (method for method in study.methods if METHODS[method].weights):
        a = load_model(METHODS[method].tabled).architecture
        ratio = Cell(multiply_adds(a) / ours, paper={"nmn": 3.3}.get(method))
        values[(method,)] = parameters(a), multiply_adds(a), ratio, folded_multiply_adds(a)
        if method == "gait":
            count = self_attention_multiply_adds(a)
            values[("self_attention",)] = float("nan"), count, Cell(count / ours, paper=2.8), float("nan")
    return _table("cost", "What a step costs", COST_NOTE, ("network",), labels, values)


def calibration_table(study: Study) -> Table:
    """Shares of errors within the predicted deviations, for each course and method."""
    labels = {f"{which}_{k}": f"{which}, {k} std" for which in ("network", "filter") for k in (1, 2)}
    labels["filter_nees"] = "filter, NEES"
    values: Values = {}
    for course in study.courses:
        for method in study.methods:
            scores = study.of(method, course)
            networks = [one.network.within for one in scores if one.network is not None]
            within = np.mean(networks, axis=0) if networks else (np.nan, np.nan)
            fused = np.mean([one.fused.within for one in scores], axis=0)
            values[course, method] = *within, *fused, float(np.mean([one.nees for one in scores]))
    title = "Are predicted deviations honest?"
    return _table("calibration", title, CALIBRATION_NOTE, ("course", "method"), labels, values)


@dataclass(frozen=True)
class Difference:
    """How much better one method is than another on the same walks."""

    course: str
    rival: str
    difference: float
    """Error of the rival minus ours, m/s: positive if ours is better."""
    low: float
    high: float
    """Ends of the 95 % interval."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0.0 or self.high < 0.0


def differences(study: Study, ours: str = OURS) -> list[Difference]:
    """Paired differences of the velocity error of Tables I to III against each rival, with bootstrap intervals.

    The walks of a course are cut into pieces of 5 s; the same pieces are drawn, with repetition, for both methods, so
    what makes a piece hard cancels. Errors of several seeds are averaged first: the interval is that of the walks.
    """
    found = []
    for course in study.courses:
        pieces = {method: _pieces(study, method, course) for method in study.methods if study.of(method, course)}
        mine = pieces.pop(ours, None)
        if mine is None:
            continue
        picks = np.random.default_rng(20260401).integers(len(mine), size=(DRAWS, len(mine)))
        for rival, other in pieces.items():
            gaps = np.sqrt(other[picks].mean(1)) - np.sqrt(mine[picks].mean(1))
            low, high = np.quantile(gaps, [0.025, 0.975]) if len(mine) >= FEWEST else (-np.inf, np.inf)
            point = float(np.sqrt(other.mean()) - np.sqrt(mine.mean()))
            found.append(Difference(course, rival, point, float(low), float(high)))
    return found


def _pieces(study: Study, method: str, course: str) -> Array:
    """Mean square error of each piece of a course, averaged over seeds."""
    by_seed: dict[int, list[Array]] = {}
    for one in study.of(method, course):
        by_seed.setdefault(one.seed, []).append(one.velocity.segments)
    return np.asarray(np.mean([np.concatenate(some) for some in by_seed.values()], axis=0))


def difference_table(found: Sequence[Difference]) -> Table:
    """The paired differences as a table."""
    names = ("difference", "low", "high")
    values: Values = {(one.course, one.rival): (one.difference, one.low, one.high) for one in found}
    note = (
        f"Velocity error of the rival minus that of {OURS}: positive if {OURS} is better. Low and high are the ends of"
        " the 95 % bootstrap interval over pieces of 5 s, the same pieces for both."
    )
    labels, units = dict(zip(names, names, strict=True)), dict.fromkeys(names, "m/s")
    return _table("differences", f"{OURS} against each rival", note, ("course", "rival"), labels, values, units)
