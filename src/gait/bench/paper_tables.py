"""The tables of the paper, made of a study, with the means that the paper reports (`paper.csv`) beside ours.

Seo et al., *GAIT: Legged Robot Proprioceptive State Estimation with Attention over Inertial-Leg Tokens*, Tables I to
IV: a real Go1 against motion capture.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gait.bench.courses import GAITS, TERRAINS, UNSEEN
from gait.bench.scores import METRICS, NOTHING, Moments
from gait.bench.study import TRAINED_ON_OTHERS, Study
from gait.metrics import mean_std
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
    return [_beside_paper(table) for table in tables if table.lines]


def _beside_paper(table: Table) -> Table:
    """With the paper's value in every cell that it has."""
    paper, lines = PAPER.get(table.name, {}), []
    for line in table.lines:
        cells = {
            method: replace(one, paper=paper.get(".".join((*line.keys, method)))) for method, one in line.cells.items()
        }
        lines.append(replace(line, cells=cells))
    return replace(table, lines=tuple(lines))


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
TABLE2: Velocities = ("table2", "Table II{}, trained on trot only", "velocity error by gait", ("gait",), GAITS)
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
