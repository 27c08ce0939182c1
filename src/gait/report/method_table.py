"""Tables of methods and their figures of merit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gait.report.table import Cell, Table, TableLine

FIGURES: dict[str, tuple[str, str]] = {
    "velocity_rmse": ("velocity", "m/s"),
    "re_pos_5s": ("5 s drift", "m"),
    "re_vel_5s": ("5 s velocity", "m/s"),
    "re_rot_5s": ("5 s rotation", "rad"),
    "ate_vel": ("ATE velocity", "m/s"),
    "ate_rot": ("ATE rotation", "rad"),
    "coverage_vel_2sigma": ("within 2 std", "-"),
    "step": ("a step", "us"),
}
"""Figures of merit of a method: by the name of the row, the label and the unit."""
BRIEF = ("velocity_rmse", "re_pos_5s", "step")
"""The most important."""
WIDE = tuple(name for name in FIGURES if name != "ate_vel")
"""Of a table: the absolute error of the velocity is the velocity error by another name (docs/metrics.md)."""
UNRANKED = ("coverage_vel_2sigma",)
"""Figures that should be 0.95 rather than small."""
NOTE = (
    "Root mean square errors of the filter's estimate: the velocity in the body frame; position (drift), velocity and"
    " rotation after 5 s from a perfect start; rotation after alignment in position and heading (ATE). Within 2 std:"
    " share of the velocity errors inside two standard deviations, 0.95 if they are right. A step: time one sample"
    " takes."
)

Figures = Mapping[str, Mapping[str, Cell]]
"""Cells by method, then by the name of the figure."""


def method_table(found: Figures, columns: Sequence[str] = WIDE, title: str = "Methods", note: str = NOTE) -> Table:
    """A line for each method; columns that some method lacks are left out."""
    there = tuple(name for name in columns if all(name in cells for cells in found.values()))
    lines = tuple(TableLine((method,), {name: cells[name] for name in there}) for method, cells in found.items())
    labels = {name: label for name, (label, _) in FIGURES.items()}
    units = {name: unit for name, (_, unit) in FIGURES.items()}
    return Table("methods", title, note, ("method",), there, lines, "column", units, labels, UNRANKED)


def figure_table(found: Figures, title: str) -> Table:
    """The same with methods side by side, which fits a terminal."""
    lines = []
    for name in WIDE:
        label, unit = FIGURES[name]
        if cells := {method: some[name] for method, some in found.items() if name in some}:
            lines.append(TableLine((name,), cells, "share" if unit == "-" else unit, (label,)))
    return Table("means", title, NOTE, ("rms error",), tuple(found), tuple(lines), unranked=UNRANKED)
