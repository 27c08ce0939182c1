"""A table for people, in whatever they read: terminal, Markdown, LaTeX; and CSV for spreadsheets."""

from __future__ import annotations

import csv as csv_format
import io
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gait.report.table import Table, TableLine
from gait.rows import Row

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def number(value: float, unit: str) -> str:
    """A value with as many digits as its unit deserves."""
    if not math.isfinite(value):
        return "n/a"
    if unit in ("-", "s", "us") and value == round(value):
        return f"{value:.0f}"
    return f"{value:.4f}" if unit == "rad" else f"{value:.1f}" if unit in ("us", "s") else f"{value:.3f}"


def header(table: Table, column: str) -> str:
    """What stands above a column, with its unit where it has one of its own."""
    unit = table.units.get(column, "-")
    return f"{table.labels.get(column, column)}{'' if unit == '-' else f', {unit}'}"


def parts(table: Table, line: TableLine, column: str) -> tuple[str, str, str, str]:
    """Mean, spread, share over the best and the paper's figure of one cell as text; empty where there is none."""
    cell, unit = line.cells.get(column), table.unit(line, column)
    if cell is None:
        return "", "", "", ""
    over = table.over_best(line, column)
    return (
        number(cell.mean, unit),
        f"({number(cell.std, unit)})" if math.isfinite(cell.std) else "",
        _excess(over),
        number(cell.paper, unit) if cell.paper is not None else "",
    )


def _excess(over: float | None) -> str:
    if over is None or over <= 0.0:
        return ""
    return f"+{100.0 * over:.0f}\N{NO-BREAK SPACE}%" if over < 10.0 else f"{1.0 + over:.0f}\N{NO-BREAK SPACE}x"


def has_paper(table: Table) -> bool:
    """Whether the paper has figures for any cell."""
    return any(cell.paper is not None for line in table.lines for cell in line.cells.values())


def title(table: Table) -> str:
    """With the unit, where all of it has one."""
    units = {line.unit for line in table.lines}
    only = units.pop() if len(units) == 1 else ""
    return f"{table.title}, {only}" if only else table.title


def labels(table: Table, line: TableLine) -> list[str]:
    """The words before the numbers, with the unit where lines differ in it."""
    words = list(line.labels)
    if len({one.unit for one in table.lines}) > 1:
        words[0] = words[0] if line.unit == "-" else f"{words[0]}, {line.unit}"
    return words


def format_value(value: float | int | str) -> str:
    """A value for people: numbers with five significant digits, whole numbers and large ones in full."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "n/a"
    return f"{value:.3f}" if 1e5 <= abs(value) < 1e15 else f"{value:.5g}"


def rows_to_table(rows: Iterable[Row]) -> RichTable:
    """Rows of name, value and unit for a terminal."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("value", justify="right", overflow="fold")
    table.add_column("unit", no_wrap=True)
    for row in rows:
        # Text, not markup: a name with brackets in it is printed as it is.
        table.add_row(Text(row.name), Text(format_value(row.value)), Text(row.unit if row.unit != "-" else ""))
    return table


def terminal(table: Table) -> RichTable:
    """For a terminal: best bold, second underlined; below, dim, how much over the best, and the paper's figure."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    caption = "below a figure: how much over the best; the paper's figure" if has_paper(table) else None
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title=title(table), title_justify="left", title_style="bold")
    grid.caption, grid.caption_justify = caption, "left"
    for head in table.heads:
        grid.add_column(head, no_wrap=True)
    for column in table.columns:
        grid.add_column(header(table, column), justify="right")
    before = ""
    for i, line in enumerate(table.lines):
        words = labels(table, line)
        # What stands above need not be said again.
        row = [Text("" if len(words) > 1 and words[0] == before else words[0]), *map(Text, words[1:])]
        for column in table.columns:
            mean, std, over, theirs = parts(table, line, column)
            rank = table.rank(line, column) if column in line.cells else None
            text = Text(mean, style={0: "bold", 1: "underline"}.get(-1 if rank is None else rank, ""))
            plain = "not bold not underline dim"
            if std:
                text.append(f" {std}", style=plain)
            if below := "; ".join(filter(None, (over, theirs))):
                text.append(f"\n{below}" if theirs or std else f" {below}", style=plain)
            row.append(text)
        before = words[0]
        last = i + 1 == len(table.lines) or table.lines[i + 1].keys[0] != line.keys[0]
        grid.add_row(*row, end_section=last and len(line.keys) > 1)
    return grid


def markdown(table: Table) -> str:
    """For a page: best bold, second underlined, the paper's figure in italics."""
    paper = has_paper(table)
    heads = [*table.heads, *(header(table, column) for column in table.columns)]
    lines = [heads, [*["---"] * len(table.heads), *["---:"] * len(table.columns)]]
    for line in table.lines:
        row = labels(table, line)
        for column in table.columns:
            mean, std, over, theirs = parts(table, line, column)
            rank = table.rank(line, column) if column in line.cells else None
            mean = f"**{mean}**" if rank == 0 else f"<u>{mean}</u>" if rank == 1 else mean
            row.append(" ".join(filter(None, (mean, std, over, f"*{theirs}*" if paper and theirs else ""))))
        lines.append(row)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex(table: Table) -> str:
    """For a paper: a `tabular` that needs the package booktabs."""
    columns = "l" * len(table.heads) + "r" * len(table.columns)
    heads = [*table.heads, *(header(table, column) for column in table.columns)]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(map(_escape, heads)) + r" \\", r"\midrule"]
    for line in table.lines:
        row = [_escape(word) for word in labels(table, line)]
        for column in table.columns:
            mean, std, over, _ = parts(table, line, column)
            rank = table.rank(line, column) if column in line.cells else None
            mean = rf"\textbf{{{mean}}}" if rank == 0 else rf"\underline{{{mean}}}" if rank == 1 else mean
            row.append(" ".join(filter(None, (mean, std, _escape(over)))))
        lines.append(" & ".join(row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def csv(table: Table) -> str:
    """For a spreadsheet: one cell a line, every digit."""
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    writer.writerow(["table", *table.heads, "column", "mean", "std", "over_best", "paper", "unit"])
    for line in table.lines:
        for column, cell in line.cells.items():
            over = table.over_best(line, column)
            figures = (cell.mean, cell.std, over, cell.paper)
            writer.writerow([table.name, *line.keys, column, *map(_digits, figures), table.unit(line, column)])
    return out.getvalue()


def _digits(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else repr(float(value))


def _escape(text: str) -> str:
    for sign in "&%_#$":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\N{NO-BREAK SPACE}", "~")
