"""The tables of the benchmark: those of the paper, with the means that it reports (`paper.csv`) beside ours, and tables
of the walks, the cost of a step, the calibration of standard deviations, and the differences between methods.

Seo et al., *GAIT: Legged Robot Proprioceptive State Estimation with Attention over Inertial-Leg Tokens*, Tables I to
IV: a real Go1 against motion capture.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gait.arrays import Array
from gait.bench.courses import GAITS, POLICY_COURSE, TERRAINS, UNSEEN
from gait.bench.scores import METRICS, NOTHING, Moments
from gait.bench.study import TRAINED_ON_OTHERS, Study
from gait.methods import METHODS
from gait.metrics import mean_std
from gait.nets.cost import folded_multiply_adds, multiply_adds, parameters, self_attention_multiply_adds
from gait.nets.model import load_model
from gait.report.table import Cell, Table, TableLine


def _read(path: Path) -> dict[str, dict[str, float]]:
    tables: dict[str, dict[str, float]] = {}
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        table, row = line.pop("table"), line.pop("row")
        values = {f"{row}.{method}": float(value) for method, value in line.items() if value}
        tables.setdefault(table, {}).update(values)
    return tables


PAPER = _read(Path(__file__).with_name("paper.csv"))
"""By table, then by row and method: `PAPER["table4"]["re_pos.mean.gait"]` is 0.1653."""
NETWORK_METHODS = ("gait", "gait-flat", "nmn", "iekf")
"""Columns of Tables I and II; III has no `iekf`."""
ALL_METHODS = ("iekf", "iekf-sr", "nmn", "gait-flat", "gait")
"""Columns of Table IV, as the paper has them."""
METRIC_NAMES = {"ate_vel": "ATE vel", "ate_rot": "ATE rot", "re_pos": "RE pos", "re_vel": "RE vel", "re_rot": "RE rot"}


def bench_tables(study: Study) -> tuple[Table, ...]:
    """All tables of a study but that of differences."""
    return merit_table(study), *paper_tables(study), calibration_table(study), cost_table(study)


def paper_tables(study: Study) -> list[Table]:
    """Tables I to IV, as far as the study has what they need; and I and II of the filters instead of the networks."""
    tables = [
        _velocity_table(study, TABLE1),
        _velocity_table(study, TABLE2),
        _table3(study),
        _table4(study),
        _velocity_table(study, TABLE1, fused=True),
        _velocity_table(study, TABLE2, fused=True),
    ]
    for table in tables:
        known = PAPER.get(table.name, {})
        for line in table.lines:
            for method, cell in line.cells.items():
                line.cells[method] = replace(cell, paper=known.get(".".join((*line.keys, method))))
    return [table for table in tables if table.lines]


_NETWORK_NOTE = (
    "Root mean square error of the body velocity: of the network by itself for gait, gait-flat and nmn, of the filter"
    " for iekf, as in the paper, and for gait-legs, whose network weighs legs. Mean (standard deviation) over runs and"
    " training seeds. Slip: samples in which a foot in contact (as the contact estimator has it) moves faster than"
    " 0.5 m/s."
)
_FILTER_NOTE = "The same of the velocity that the filter gives, for every method."


def _present(study: Study, wanted: Sequence[str]) -> tuple[str, ...]:
    """The paper's columns that the study has, then those that only the study has."""
    methods = study.methods
    extra = [method for method in methods if method not in ALL_METHODS]
    return (*(method for method in wanted if method in methods), *extra)


Velocities = tuple[str, str, str, tuple[str, ...], Sequence[str]]
TABLE1: Velocities = ("table1", "Table I{}", "velocity error by terrain", ("terrain", "split"), TERRAINS)
_WALKED = (*GAITS, POLICY_COURSE.name)
TABLE2: Velocities = ("table2", "Table II{}, trained on trot only", "velocity error by gait", ("gait",), _WALKED)
"""Name, title, subject, heads and courses of two tables that differ in these alone."""


def _velocity_table(study: Study, table: Velocities, fused: bool = False) -> Table:
    """Velocity errors as the paper compares them, or those of the filter for every method."""
    name, title, subject, heads, courses = table
    name = f"{name}_filter" if fused else name
    methods, lines = _present(study, ALL_METHODS if fused else NETWORK_METHODS), []
    for course in courses:
        for split in ("full", "slip")[: len(heads)]:
            keys, cells = (course, split)[: len(heads)], {}
            for method in methods:
                scores = [one.fused if fused else one.velocity for one in study.of(method, course)]
                moments: list[Moments] = [getattr(one, split) for one in scores]
                if values := [moment.rms for moment in moments if moment.count]:
                    over = mean_std(values)
                    cells[method] = Cell(over.mean, over.std)
            if cells:
                label = f"{course} (unseen)" if course in UNSEEN else course
                lines.append(TableLine(keys, cells, "m/s", (label, *keys[1:])))
    what, note = (" after the filter", _FILTER_NOTE) if fused else (f": {subject}", _NETWORK_NOTE)
    return Table(name, title.format(what), note, heads, methods, tuple(lines))


def _table3(study: Study) -> Table:
    lines, seen = [], []
    for gaits, wanted in TRAINED_ON_OTHERS.items():
        scores = study.others.get(gaits, ())
        tests = [gait for gait in wanted if gait in study.courses]
        cells = {}
        for method in dict.fromkeys(one.method for one in scores):
            by_gait = [study.of(method, gait, scores=scores) for gait in tests]
            if by_gait and all(by_gait):
                # Each gait counts the same, however many runs it has.
                means = [np.mean([one.velocity.full.rms for one in some]) for some in by_gait]
                spread = mean_std([one.velocity.full.rms for some in by_gait for one in some])
                cells[method] = Cell(float(np.mean(means)), spread.std)
                seen.append(method)
        if cells:
            labels = (gaits.replace("-", " + "), " + ".join(tests))
            lines.append(TableLine((gaits,), cells, "m/s", labels))
    methods = tuple(method for method in study.methods if method in seen)
    note = "As Table I; one seed each unless there is more. Gaits that were tested count equally."
    title, heads = "Table III: velocity error after other trainings", ("trained on", "tested on")
    return Table("table3", title, note, heads, methods, tuple(lines))


def _table4(study: Study) -> Table:
    methods, lines = _present(study, ALL_METHODS), []
    terrains = [terrain for terrain in TERRAINS if terrain in study.courses]
    for metric, unit in METRICS.items():
        means = dict.fromkeys(methods, NOTHING)
        found: dict[str, dict[str, Moments]] = {}
        for terrain in terrains:
            for method in methods:
                parts = [one.errors[metric] for one in study.of(method, terrain) if metric in one.errors]
                if parts:
                    found.setdefault(terrain, {})[method] = total = sum(parts, NOTHING)
                    means[method] += total.as_one
        if len(terrains) > 1 and found:
            found["mean"] = {method: total for method, total in means.items() if total.count}
        for terrain, totals in found.items():
            cells = {method: Cell(total.mean, total.std) for method, total in totals.items()}
            lines.append(TableLine((metric, terrain), cells, unit, (METRIC_NAMES[metric], terrain)))
    note = (
        "Absolute error after alignment in position and heading, relative error over 5 s (Zhang and Scaramuzza 2018);"
        " mean (standard deviation) over the samples or windows of all runs and seeds. Mean: terrains count the same."
    )
    return Table("table4", "Table IV: state estimation by terrain", note, ("metric", "terrain"), methods, tuple(lines))


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
    def clear(self) -> str:
        """How ours is where the interval leaves zero out, `better` or `worse`; empty elsewhere."""
        return "better" if self.low > 0.0 else "worse" if self.high < 0.0 else ""


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
