"""Results are rows of name, value and unit: the same for metrics, `--json` and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass


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


def _strict(value: object) -> object:
    # numpy's scalars are not JSON, and its float64 is a float that may be nan.
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain
