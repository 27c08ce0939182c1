"""The tables of the paper, made of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import numpy as np

from gait.benchmark.courses import GAITS, TERRAINS, UNSEEN
from gait.benchmark.paper import PAPER
from gait.benchmark.scores import METRICS, NOTHING, Moments, Score, VelocityScore
from gait.benchmark.study import TRAINED_ON_OTHERS, Study
from gait.results import Row

NETWORK_METHODS = ("gait", "gait-flat", "nmn", "iekf")
"""Columns of Tables I and II; III has no `iekf`."""
ALL_METHODS = ("iekf", "iekf-sr", "nmn", "gait-flat", "gait")
"""Columns of Table IV, as the paper has them."""
METRIC_NAMES = {"ate_vel": "ATE vel", "ate_rot": "ATE rot", "re_pos": "RE pos", "re_vel": "RE vel", "re_rot": "RE rot"}


@dataclass(frozen=True)
class Cell:
    """One entry: a mean, its spread, and what the paper has there."""

    mean: float
    std: float = float("nan")
    paper: float | None = None


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    keys: tuple[str, ...]
    """Such as `("rubber", "full")`: what results are named by."""
    labels: tuple[str, ...]
    """The same for people: one for each of the table's `heads`."""
    unit: str
    """Of its cells; empty where columns have units of their own."""
    cells: dict[str, Cell]
    """By column."""


@dataclass(frozen=True)
class Table:
    """A table that can be printed in many ways; see `gait.benchmark.render`."""

    name: str
    """Such as `table1`."""
    title: str
    note: str
    heads: tuple[str, ...]
    """Of the columns before those with numbers."""
    columns: tuple[str, ...]
    """Methods, or figures."""
    lines: tuple[Line, ...]
    best: Literal["row", "column", ""] = "row"
    """Within what the smallest number is the best; empty where numbers are not to be compared."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of columns, where lines have none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What people read above a column, where it is not its name."""

    def rank(self, line: Line, column: str) -> int | None:
        """0 for the best, 1 for the second and so on; None where nothing is compared."""
        rivals = self._rivals(line, column)
        return None if rivals is None else sum(rival < line.cells[column].mean for rival in rivals)

    def over_best(self, line: Line, column: str) -> float | None:
        """How much larger than the best, as a share; None where nothing is compared."""
        rivals = self._rivals(line, column)
        return None if rivals is None or min(rivals) <= 0.0 else line.cells[column].mean / min(rivals) - 1.0

    def _rivals(self, line: Line, column: str) -> list[float] | None:
        if not self.best:
            return None
        among = line.cells.values() if self.best == "row" else (one.cells[column] for one in self.lines)
        means = [cell.mean for cell in among if np.isfinite(cell.mean)]
        return means if len(means) > 1 else None

    def unit(self, line: Line, column: str) -> str:
        """Of one cell."""
        return line.unit or self.units.get(column, "-")

    def rows(self) -> list[Row]:
        """As results: `table1.rubber.full.gait`, and the same with `.std`, `.over_best` and `.paper`."""
        rows = []
        for line in self.lines:
            for column, cell in line.cells.items():
                name, unit = ".".join((self.name, *line.keys, column)), self.unit(line, column)
                rows.append(Row(name, cell.mean, unit))
                if np.isfinite(cell.std):
                    rows.append(Row(f"{name}.std", cell.std, unit))
                if (over := self.over_best(line, column)) is not None:
                    rows.append(Row(f"{name}.over_best", over, "-"))
                if cell.paper is not None:
                    rows.append(Row(f"{name}.paper", cell.paper, unit))
        return rows


def paper_tables(study: Study) -> list[Table]:
    """Tables I to IV, as far as the study has what they need; and I and II of the filters instead of the networks."""
    tables = [
        _table1(study, "table1", "Table I: velocity error by terrain", lambda score: score.velocity, _NETWORK_NOTE),
        _table2(study, "table2", "Table II: velocity error by gait", lambda score: score.velocity, _NETWORK_NOTE),
        _table3(study),
        _table4(study),
        _table1(
            study, "table1_filter", "Table I after the filter", lambda score: score.fused, _FILTER_NOTE, ALL_METHODS
        ),
        _table2(
            study, "table2_filter", "Table II after the filter", lambda score: score.fused, _FILTER_NOTE, ALL_METHODS
        ),
    ]
    return [table for table in tables if table.lines]


_NETWORK_NOTE = (
    "Root mean square error of the body velocity: of the network by itself for gait, gait-flat and nmn, of the filter"
    " for iekf, as in the paper. Mean (standard deviation) over runs and training seeds. Slip: samples in which a foot"
    " that the contact estimator holds for standing moves faster than 0.5 m/s."
)
_FILTER_NOTE = "The same of the velocity that the filter gives, for every method."


def _present(study: Study, wanted: Sequence[str]) -> tuple[str, ...]:
    """The paper's columns that the study has, then those that only the study has."""
    methods = study.methods
    extra = [method for method in methods if method not in ALL_METHODS]
    return (*(method for method in wanted if method in methods), *extra)


def _table1(
    study: Study,
    name: str,
    title: str,
    part: Callable[[Score], VelocityScore],
    note: str,
    wanted: Sequence[str] = NETWORK_METHODS,
) -> Table:
    methods, lines = _present(study, wanted), []
    for terrain in TERRAINS:
        if terrain not in study.courses:
            continue
        for split in ("full", "slip"):
            cells = {}
            for method in methods:
                moments = [getattr(part(one), split) for one in study.of(method, terrain)]
                values = [moment.rms for moment in moments if moment.count]
                if values:
                    cells[method] = _cell(values, name, terrain, split, method)
            if cells:
                lines.append(Line((terrain, split), (terrain, split), "m/s", cells))
    return Table(name, title, note, ("terrain", "split"), methods, tuple(lines))


def _table2(
    study: Study,
    name: str,
    title: str,
    part: Callable[[Score], VelocityScore],
    note: str,
    wanted: Sequence[str] = NETWORK_METHODS,
) -> Table:
    methods, lines = _present(study, wanted), []
    for gait in GAITS:
        if gait in study.courses:
            cells = {
                method: _cell([part(one).full.rms for one in study.of(method, gait)], name, gait, method)
                for method in methods
            }
            lines.append(Line((gait,), (f"{gait} (unseen)" if gait in UNSEEN else gait,), "m/s", cells))
    return Table(name, f"{title}, trained on trot only", note, ("gait",), methods, tuple(lines))


def _table3(study: Study) -> Table:
    lines, seen = [], []
    for gaits, wanted in TRAINED_ON_OTHERS.items():
        scores = study.others.get(gaits, ())
        tests = [gait for gait in wanted if gait in study.courses]
        cells = {}
        for method in dict.fromkeys(one.method for one in scores):
            by_gait = [study.of(method, gait, scores) for gait in tests]
            if by_gait and all(by_gait):
                # Each gait counts the same, however many runs it has.
                means = [np.mean([one.velocity.full.rms for one in some]) for some in by_gait]
                spread = [one.velocity.full.rms for some in by_gait for one in some]
                std = float(np.std(spread, ddof=1)) if len(spread) > 1 else float("nan")
                cells[method] = Cell(float(np.mean(means)), std, PAPER["table3"].get(f"{gaits}.{method}"))
                seen.append(method)
        if cells:
            labels = (gaits.replace("-", " + "), " + ".join(tests))
            lines.append(Line((gaits,), labels, "m/s", cells))
    methods = tuple(method for method in study.methods if method in seen)
    note = "As Table I; one seed each unless there is more. Gaits that were tested count equally."
    return Table(
        "table3",
        "Table III: velocity error after other trainings",
        note,
        ("trained on", "tested on"),
        methods,
        tuple(lines),
    )


def _table4(study: Study) -> Table:
    methods, lines = _present(study, ALL_METHODS), []
    terrains = [terrain for terrain in TERRAINS if terrain in study.courses]
    for metric, unit in METRICS.items():
        pooled: dict[str, list[Moments]] = {method: [] for method in methods}
        for terrain in terrains:
            cells = {}
            for method in methods:
                parts = [one.errors[metric] for one in study.of(method, terrain) if metric in one.errors]
                total = reduce(lambda a, b: a + b, parts, NOTHING)
                if total.count:
                    paper = PAPER["table4"].get(f"{metric}.{terrain}.{method}")
                    cells[method] = Cell(total.mean, total.std, paper)
                    pooled[method].append(total)
            if cells:
                lines.append(Line((metric, terrain), (METRIC_NAMES[metric], terrain), unit, cells))
        if len(terrains) > 1 and any(pooled.values()):
            cells = {method: _mean_cell(parts, metric, method) for method, parts in pooled.items() if parts}
            lines.append(Line((metric, "mean"), (METRIC_NAMES[metric], "mean"), unit, cells))
    note = (
        "Absolute error after alignment in position and heading, relative error over 5 s (Zhang and Scaramuzza 2018);"
        " mean (standard deviation) over the samples or windows of all runs and seeds. Mean: terrains count the same."
    )
    return Table("table4", "Table IV: state estimation by terrain", note, ("metric", "terrain"), methods, tuple(lines))


def _mean_cell(parts: Sequence[Moments], metric: str, method: str) -> Cell:
    mean = float(np.mean([part.mean for part in parts]))
    square = float(np.mean([part.squares / part.count for part in parts]))
    return Cell(mean, float(np.sqrt(max(square - mean**2, 0.0))), PAPER["table4"].get(f"{metric}.mean.{method}"))


def _cell(values: Sequence[float], table: str, *keys: str) -> Cell:
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Cell(float(np.mean(values)), std, PAPER.get(table, {}).get(".".join(keys)))


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
        lines.append(Line((course,), (course,), "", cells))
    note = (
        "Falls were replaced by the next draw. A slip is a foot that the contact estimator holds for standing and that"
        " moves faster than 0.5 m/s; in flight no foot touches the ground."
    )
    labels = {name: name.replace("_", " ") for name in _MERITS}
    return Table("walks", "The walks", note, ("course",), tuple(_MERITS), tuple(lines), "", _MERITS, labels)


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


def differences(
    study: Study, ours: str = "gait", draws: int = 10_000, part: Callable[[Score], VelocityScore] | None = None
) -> list[Difference]:
    """Paired differences of velocity error against each rival, with their bootstrap intervals.

    The walks of a course are cut into pieces of 5 s; the same pieces are drawn, with repetition, for both methods, so
    what makes a piece hard cancels. Errors of several seeds are averaged first: the interval is that of the walks.

    Args:
        study: with both methods on the same walks.
        ours: the method to compare with all others.
        draws: of the bootstrap.
        part: which velocity; that of Tables I to III by default.
    """
    choose = part or (lambda score: score.velocity)
    found = []
    for course in study.courses:
        mine = _pieces(study, ours, course, choose)
        if mine is None:
            continue
        for rival in study.methods:
            other = _pieces(study, rival, course, choose)
            if rival == ours or other is None:
                continue
            rng = np.random.default_rng(20260401)
            picks = rng.integers(len(mine), size=(draws, len(mine)))
            gaps = np.sqrt(other[picks].mean(1)) - np.sqrt(mine[picks].mean(1))
            low, high = np.quantile(gaps, [0.025, 0.975])
            point = float(np.sqrt(other.mean()) - np.sqrt(mine.mean()))
            found.append(Difference(course, rival, point, float(low), float(high)))
    return found


def _pieces(
    study: Study, method: str, course: str, part: Callable[[Score], VelocityScore]
) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Mean square error of each piece of a course, averaged over seeds."""
    by_seed: dict[int, list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = {}
    for one in study.of(method, course):
        by_seed.setdefault(one.seed, []).append(part(one).segments)
    if not by_seed:
        return None
    return np.asarray(np.mean([np.concatenate(some) for some in by_seed.values()], axis=0))
