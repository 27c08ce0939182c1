"""Results are rows of name, value and unit: the same ones for people and for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One result."""

    name: str
    """Lower case with underscores, such as `velocity_rmse`."""
    value: float | int | str
    """A number, nan where there is none, or a short text."""
    unit: str
    """SI, such as `m/s`; `-` for a plain number or a text."""


def rows_to_json(rows: Iterable[Row]) -> str:
    """`{"rows": [{"name": ..., "value": ..., "unit": ...}]}` in strict JSON: nan and infinity become null."""
    tree = [{"name": row.name, "value": _strict(row.value), "unit": row.unit} for row in rows]
    return json.dumps({"rows": tree}, allow_nan=False)


def rows_to_table(rows: Iterable[Row]) -> Table:
    """The rows as a table for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("value", justify="right", overflow="fold")
    table.add_column("unit", no_wrap=True)
    for row in rows:
        # Text, not markup: a name with brackets in it is printed as it is.
        table.add_row(Text(row.name), Text(format_value(row.value)), Text(row.unit if row.unit != "-" else ""))
    return table


def format_value(value: float | int | str) -> str:
    """A value for people: numbers with five significant digits, whole numbers and large ones in full."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "n/a"
    return f"{value:.3f}" if 1e5 <= abs(value) < 1e15 else f"{value:.5g}"


def _strict(value: object) -> object:
    # numpy's scalars are not JSON, and its float64 is a float that may be nan.
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
