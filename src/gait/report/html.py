"""Reports: one HTML file with tables that sort, plots that zoom and what made them; it needs no network."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from gait.io.atomic import atomic_path
from gait.log import Log, Trajectory
from gait.report import table as render
from gait.report.chart import Chart
from gait.report.describe import MISSING
from gait.report.method_table import FIGURES, method_table
from gait.report.plots import plot
from gait.report.run_charts import run_charts
from gait.report.table import Cell, Table, TableLine
from gait.report.walk_charts import Trace, walk_charts
from gait.rows import Row

if TYPE_CHECKING:
    from gait.estimator import StateArrays

_HERE = Path(__file__).parent


def write_report(
    path: str | Path, title: str, summary: str, tables: Sequence[Table], charts: Sequence[Chart], facts: Sequence[Row]
) -> None:
    """Write a report as one HTML file that opens in any browser, offline.

    The same input gives the same file. plotly.js is inside, which makes it about 5 MB; without charts it is small.

    Args:
        path: of the file.
        title: above everything.
        summary: what was found, in plain text: a paragraph, and then, in lines of their own, the points of a list.
        tables: each gets a section.
        charts: each gets an interactive plot; their names must differ.
        facts: what made it: settings, versions, fingerprints.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(report(title, summary, tables, charts, facts), encoding="utf-8")


def run_pages(
    log: Log, trajectory: Trajectory, details: StateArrays, rows: Sequence[Row]
) -> tuple[list[Table], list[Chart]]:
    """Tables and charts for the report of one run.

    Args:
        log: the input.
        trajectory: the estimate, on the log's clock.
        details: what the method computed on the way.
        rows: results; with ground truth they have the figures of the table.
    """
    learned = bool(np.isfinite(details.predicted[0]).any())
    charts = walk_charts(log, {trajectory.source: Trace.of(log, trajectory, details if learned else None, details)})
    charts += run_charts(log, trajectory, details)
    cells = {row.name: Cell(float(row.value)) for row in rows if row.name in FIGURES}
    tables = [method_table({trajectory.source: cells}, title="Accuracy")] if log.has_truth else []
    return tables, charts


def report(title: str, summary: str, tables: Sequence[Table], charts: Sequence[Chart], facts: Sequence[Row]) -> str:
    """The text of that file."""
    from plotly.offline import get_plotlyjs

    names = [_id(chart.name) for chart in charts]
    assert len(set(names)) == len(names), "two charts of one name"
    parts = [
        ("Tables", [(f"table-{_id(one.name)}", render.title(one), _table(one)) for one in tables]),
        ("Figures", [(f"figure-{_id(one.name)}", one.title, _figure(one)) for one in charts]),
    ]
    contents, main = [], []
    for name, sections in parts:
        if sections:
            main.append(f"<h2>{_text(name)}</h2>")
        for anchor, words, body in sections:
            contents.append(f'<li><a href="#{anchor}">{_text(words)}</a></li>')
            main.append(f'<section id="{anchor}">\n<h3>{_text(words)}</h3>\n{body}\n</section>')
    contents.append('<li><a href="#made">How this was made</a></li>')
    main.append(f'<section id="made">\n<h2>How this was made</h2>\n{_facts(facts)}\n</section>')
    return Template(_asset("html")).substitute(
        title=_text(title),
        summary=_summary(summary),
        style=_asset("css").strip(),
        script=_asset("js").strip() if charts or tables else "",
        contents="\n".join(contents),
        main="\n".join(main),
        plots=_json([{**plot(chart), "name": _id(chart.name)} for chart in charts]),
        plotly=f"<script>{get_plotlyjs()}</script>" if charts else "",
    )


def _summary(summary: str) -> str:
    first, *points = summary.split("\n")
    items = "".join(f"<li>{_text(point)}</li>" for point in points)
    return f"<p>{_text(first)}</p>" + (f"<ul>{items}</ul>" if items else "")


def _table(table: Table) -> str:
    heads = [_head(word, "") for word in table.heads]
    heads += [_head(render.header(table, column), ' class="number"') for column in table.columns]
    lines = [f"<tr>{''.join(_cells(table, line))}</tr>" for line in table.lines]
    notes = [table.note] if table.note else []
    if table.best and len(table.lines) > 1:
        notes.append("Bold: best; underlined: second; +205 %: that much larger than the best, so 3.05 times it.")
    if render.has_paper(table):
        notes.append("In italics: what the paper reports, of a real robot.")
    note = f'<p class="note">{_text(" ".join(notes))}</p>' if notes else ""
    return (
        f'<div class="table"><div class="scroll" tabindex="0" role="region" aria-label="{_text(table.title)}">'
        f'<table class="sortable"><thead><tr>{"".join(heads)}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + f"\n</tbody></table></div>\n{note}</div>"
    )


def _head(words: str, more: str) -> str:
    return f'<th scope="col"{more}><button type="button">{_text(words)}</button></th>'


def _cells(table: Table, line: TableLine) -> Iterable[str]:
    for word in render.labels(table, line):
        yield f'<th scope="row">{_text(word)}</th>'
    for column, cell in zip(table.columns, render.cell_texts(table, line), strict=True):
        value = line.cells[column].mean if cell.mean else float("nan")
        std, over = (text and f"<small>{text}</small>" for text in (cell.std, cell.over))
        paper = '<span class="paper">paper {}</span>'
        words = cell._replace(std=std, over=over).joined("<b>{}</b>", "<u>{}</u>", paper)
        yield f'<td class="number" data-value="{float(value) if value == value else ""}">{words}</td>'


def _figure(chart: Chart) -> str:
    return (
        f'<figure>\n<div class="plot" id="plot-{_id(chart.name)}" role="img" aria-label="{_text(chart.title)}">'
        '<p class="waiting">The plot needs JavaScript.</p></div>\n'
        f"<figcaption>{_text(chart.caption)}</figcaption>\n</figure>"
    )


def _facts(facts: Sequence[Row]) -> str:
    lines = []
    # What is not installed made nothing: it is for bug reports.
    for row in (one for one in facts if one.value != MISSING and not one.name.startswith("extra_")):
        value = _text(render.format_value(row.value)) + (f" {_text(row.unit)}" if row.unit != "-" else "")
        lines.append(f'<tr><th scope="row">{_text(row.name)}</th><td><code>{value}</code></td></tr>')
    return f'<div class="scroll"><table class="facts"><tbody>\n{chr(10).join(lines)}\n</tbody></table></div>'


def _text(words: str) -> str:
    # The name of a file may hold bytes that are no letters, and those no file of text can hold.
    return html.escape(words.encode("utf-8", "backslashreplace").decode())


def _id(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)


def _json(tree: object) -> str:
    """JSON that no `</script>` can be read out of."""
    return json.dumps(tree, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _asset(ending: str) -> str:
    return (_HERE / f"report_page.{ending}").read_text(encoding="utf-8")
