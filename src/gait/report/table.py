"""A table as data: `table_text` and `html` print it, `rows` gives its values by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gait.rows import Row


@dataclass(frozen=True)
class Cell:
    """A mean, its standard deviation, and the value in the paper."""

    mean: float
    std: float = float("nan")
    paper: float | None = None


@dataclass(frozen=True)
class TableLine:
    """One row of a table."""

    keys: tuple[str, ...]
    """Such as `("rubber", "full")`: the names of its results."""
    cells: dict[str, Cell]
    """By column."""
    unit: str = ""
    """Of its cells; empty where columns have units of their own."""
    labels: tuple[str, ...] = ()
    """For people, one for each of the table's `heads`; the keys by default."""


@dataclass(frozen=True)
class Table:
    """A table that can be printed in many ways; see `gait.report.table_text`."""

    name: str
    """Such as `table1`."""
    title: str
    note: str
    heads: tuple[str, ...]
    """Of the columns before those with numbers."""
    columns: tuple[str, ...]
    """Methods, or figures."""
    lines: tuple[TableLine, ...]
    best: Literal["row", "column", ""] = "row"
    """Within what the smallest number is the best; empty where numbers are not to be compared."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of columns, where lines have none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Headings of columns, where they are not the names."""
    unranked: tuple[str, ...] = ()
    """Columns, or first keys of lines, in which less is not better."""

    def rank(self, line: TableLine, column: str) -> int | None:
        """0 for the best, 1 for the second and so on; None where nothing is compared."""
        rivals = self._rivals(line, column)
        return None if rivals is None else sum(rival < line.cells[column].mean for rival in rivals)

    def over_best(self, line: TableLine, column: str) -> float | None:
        """How much larger than the best, as a share; None where nothing is compared."""
        rivals = self._rivals(line, column)
        return None if rivals is None or min(rivals) <= 0.0 else line.cells[column].mean / min(rivals) - 1.0

    def _rivals(self, line: TableLine, column: str) -> list[float] | None:
        if not self.best or column in self.unranked or line.keys[0] in self.unranked:
            return None
        among = line.cells.values() if self.best == "row" else (one.cells[column] for one in self.lines)
        means = [cell.mean for cell in among if np.isfinite(cell.mean)]
        return means if len(means) > 1 else None

    def unit(self, line: TableLine, column: str) -> str:
        """Of one cell."""
        return line.unit or self.units.get(column, "-")

    def rows(self) -> list[Row]:
        """As results: `table1.rubber.full.gait`, and the same with `.std`, `.over_best` and `.paper`."""
        rows = []
        for line in self.lines:
            for column, cell in line.cells.items():
                name, unit = ".".join((self.name, *line.keys, column)), self.unit(line, column)
                rows.append(Row(name, cell.mean, unit))
                std = cell.std if np.isfinite(cell.std) else None
                more = {
                    "std": (std, unit),
                    "over_best": (self.over_best(line, column), "-"),
                    "paper": (cell.paper, unit),
                }
                rows += [Row(f"{name}.{end}", one, its) for end, (one, its) in more.items() if one is not None]
        return rows
