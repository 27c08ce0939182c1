"""The report of one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.report.html import write_report
from gait.report.method_table import FIGURES, method_table
from gait.report.table import Cell
from gait.report.walk_charts import Trace, walk_charts
from gait.rows import Row

if TYPE_CHECKING:
    from gait.estimator import Details


def write_run_report(
    file: Path,
    title: str,
    summary: str,
    log: Log,
    trajectory: Trajectory,
    details: Details,
    rows: Sequence[Row],
    facts: Sequence[Row],
) -> None:
    """Write the report of a run as one HTML file.

    Args:
        file: to write.
        title: of the page.
        summary: of the run, in a sentence or two.
        log: the input.
        trajectory: the estimate, on the log's clock.
        details: what the method computed on the way.
        rows: results; with ground truth they have the figures of the table.
        facts: settings, versions.
    """
    learned = bool(np.isfinite(details.predicted[0]).any())
    charts = walk_charts(log, {trajectory.source: Trace.of(log, trajectory, details if learned else None, details)})
    cells = {row.name: Cell(float(row.value)) for row in rows if row.name in FIGURES}
    tables = [method_table({trajectory.source: cells}, title="Accuracy")] if log.has_truth else []
    write_report(file, title, summary, tables, charts, facts)
