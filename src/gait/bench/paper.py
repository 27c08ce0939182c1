"""What the paper reports: the means of its tables (`paper.csv`), to stand beside ours.

Seo et al., *GAIT: Legged Robot Proprioceptive State Estimation with Attention over Inertial-Leg Tokens*, Tables I to
IV: a real Go1 against motion capture. Rows are named as those of `gait.bench.paper_tables`.
"""

from __future__ import annotations

import csv
from pathlib import Path


def _read(path: Path) -> dict[str, dict[str, float]]:
    tables: dict[str, dict[str, float]] = {}
    for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        table, row = line.pop("table"), line.pop("row")
        values = {f"{row}.{method}": float(value) for method, value in line.items() if value}
        tables.setdefault(table, {}).update(values)
    return tables


PAPER = _read(Path(__file__).with_name("paper.csv"))
"""By table, then by row and method: `PAPER["table4"]["re_pos.mean.gait"]` is 0.1653."""
