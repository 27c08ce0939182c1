"""A table for people, in whatever they read: terminal, Markdown, LaTeX; and CSV for spreadsheets."""

from __future__ import annotations

import csv as csv_format
import io
import math
from typing import TYPE_CHECKING

from gait.benchmark.tables import Line, Table

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


def parts(table: Table, line: Line, column: str) -> tuple[str, str, str, str]:
    """Mean, spread, share over the best and the paper's figure of one cell as text; empty where there is none."""
    cell, unit = line.cells.get(column), table.unit(line, column)
    if cell is None:
        return "", "", "", ""
    over = table.over_best(line, column)
    return (
        number(cell.mean, unit),
        f"({number(cell.std, unit)})" if math.isfinite(cell.std) else "",
        f"+{100.0 * over:.0f} %" if over is not None and over > 0.0 else "",
        number(cell.paper, unit) if cell.paper is not None else "",
    )


def has_paper(table: Table) -> bool:
    """Whether the paper has figures for any cell."""
    return any(cell.paper is not None for line in table.lines for cell in line.cells.values())


def labels(table: Table, line: Line) -> list[str]:
    """The words before the numbers; the unit goes to the last of them."""
    words = list(line.labels)
    if line.unit:
        words[0] = f"{words[0]}, {line.unit}"
    return words


def terminal(table: Table) -> RichTable:
    """For a terminal: best bold, second underlined; the paper's figure dim, below ours."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title=table.title, title_justify="left", title_style="bold")
    for head in table.heads:
        grid.add_column(head, no_wrap=True)
    for column in table.columns:
        grid.add_column(header(table, column), justify="right")
    paper = has_paper(table)
    for i, line in enumerate(table.lines):
        row = [Text(word) for word in labels(table, line)]
        for column in table.columns:
            mean, std, over, theirs = parts(table, line, column)
            rank = table.rank(line, column) if column in line.cells else None
            text = Text(mean, style={0: "bold", 1: "underline"}.get(-1 if rank is None else rank, ""))
            if extra := " ".join(filter(None, (std, over))):
                text.append(f" {extra}", style="not bold not underline dim")
            if paper and theirs:
                text.append(f"\npaper {theirs}", style="not bold not underline dim")
            row.append(text)
        following = table.lines[i + 1] if i + 1 < len(table.lines) else None
        grid.add_row(
            *row, end_section=following is not None and following.keys[0] != line.keys[0] and len(line.keys) > 1
        )
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
    return text
