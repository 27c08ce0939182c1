"""The study as a table, rows and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.bench.realism.measured_log import MeasuredLog
from gait.bench.realism.quantities import QUANTITIES, Quantity
from gait.bench.realism.reference_walks import TRAINING, TWIN
from gait.report.table import Cell, Table, TableLine
from gait.rows import Row

NOTE = (
    "Mean (standard deviation) over episodes or logs. Stances are those of kinematics and ground truth: a foot that is"
    " low and slow. Residual: velocity of the body as a leg in stance measures it, less the true one, body axes."
)
MOST = 8
"""How many quantities a note names."""
LEAST_BEYOND = 0.05
"""Less than this share beyond the training data is not outside."""
NOT_COMPARED = ("rate", "stances", "stance_seconds", "truth_outliers", "truth_velocity", "jitter", "longest_step")
"""Quantities of the walk, or of motion capture: nothing that training data must show."""


@dataclass(frozen=True)
class RealismStudy:
    """Logs beside simulated walks."""

    columns: Mapping[str, Sequence[MeasuredLog]]
    """Measured logs by column; each column is averaged."""

    def values(self, quantity: Quantity, column: str) -> Array:
        """Of all logs of a column (K, axes); nan where there is none."""
        shape = (max(len(quantity.axes), 1),)
        found = [one.values.get(quantity.name, np.nan) for one in self.columns[column]]
        return np.array([np.full(shape, np.nan) if isinstance(x, str) else np.broadcast_to(x, shape) for x in found])

    def reason(self, quantity: Quantity, column: str) -> str:
        """Why a column has no value of a quantity; empty if it has one."""
        if np.isfinite(self.values(quantity, column)).any():
            return ""
        found = [one.values.get(quantity.name) for one in self.columns[column]]
        return next((x for x in found if isinstance(x, str)), "the sample rate is too low, or the walk too short")

    def table(self) -> Table:
        """All quantities, a line for each axis."""
        lines = []
        for quantity in QUANTITIES:
            for i, axis in enumerate(quantity.axes or ("",)):
                cells = {column: _cell(self.values(quantity, column)[:, i]) for column in self.columns}
                keys = (quantity.name, axis) if axis else (quantity.name,)
                lines.append(TableLine(keys, cells, quantity.unit, (quantity.label, axis)))
        title = "What separates a log from the simulator"
        return Table("realism", title, NOTE, ("quantity", "axis"), tuple(self.columns), tuple(lines), best="")

    def rows(self) -> list[Row]:
        """Every number, and why one is missing."""
        reasons = [
            Row(f"realism.{quantity.name}.{column}.reason", reason, "-")
            for quantity in QUANTITIES
            for column in self.columns
            if (reason := self.reason(quantity, column))
        ]
        return [*self.table().rows(), *reasons]

    def notes(self, most: int = MOST) -> list[str]:
        """Quantities of each log outside of the training data, the farthest first, and those that are missing, and
        why."""
        missing: dict[tuple[str, str], list[str]] = {}
        for column in self.columns:
            for quantity in QUANTITIES:
                if reason := self.reason(quantity, column):
                    missing.setdefault((column, reason), []).append(quantity.name)
        notes = []
        for log in (name for name in self.columns if name not in (TRAINING, TWIN)):
            found = self.outside(log)
            more = f"; and {len(found) - most} more" if len(found) > most else ""
            notes += [f"{log}, outside of the training data: {'; '.join(found[:most])}{more}."] if found else []
        return notes + [f"{column}, n/a: {', '.join(names)}: {why}." for (column, why), names in missing.items()]

    def outside(self, column: str) -> list[str]:
        """Quantities of a column beyond all of the training data, the farthest first."""
        found = []
        for quantity in (one for one in QUANTITIES if one.name not in NOT_COMPARED):
            mine, drawn = self.values(quantity, column), self.values(quantity, TRAINING)
            for i, axis in enumerate(quantity.axes or ("",)):
                theirs = drawn[np.isfinite(drawn[:, i]), i]
                value = _cell(mine[:, i]).mean
                if not len(theirs) or not np.isfinite(value):
                    continue
                low, high = float(theirs.min()), float(theirs.max())
                beyond = max(low - value, value - high)
                if beyond > LEAST_BEYOND * max(abs(low), abs(high), 1e-6):
                    where = " ".join(filter(None, (quantity.name, axis)))
                    words = f"{where} {value:.3g} ({low:.3g} to {high:.3g}{_unit(quantity)})"
                    found.append((beyond / max(abs(low), abs(high), abs(value)), words))
        return [words for _, words in sorted(found, reverse=True)]


def _unit(quantity: Quantity) -> str:
    return "" if quantity.unit == "-" else f" {quantity.unit}"


def _cell(values: Array) -> Cell:
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return Cell(float("nan"))
    return Cell(float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else float("nan"))
