"""A table as data, and as text: for a terminal, Markdown, LaTeX and CSV; `html` prints it as well."""

from __future__ import annotations

import csv as csv_format
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from gait.rows import Row

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as RichTable

SPACE = "\N{NO-BREAK SPACE}"
_COARSE = ("us", "ms", "s", "%", "Hz", "mm", "deg")
"""Units of which a tenth is fine enough."""
TEXT = 24
"""A value of more characters is a text, not a number."""
ROOMY = 4
"""A table of more columns fits 80 characters only with little padding, and with deviations below the means."""


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
    """A table that can be printed in many ways."""

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
        means = [cell.mean for cell in among if math.isfinite(cell.mean)]
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
                std = cell.std if math.isfinite(cell.std) else None
                values = {"": cell.mean, ".std": std, ".over_best": self.over_best(line, column), ".paper": cell.paper}
                for end, one in values.items():
                    if one is not None:
                        rows.append(Row(name + end, one, "-" if end == ".over_best" else unit))
        return rows


class CellText(NamedTuple):
    """One cell as text; empty where there is nothing."""

    mean: str = ""
    std: str = ""
    over: str = ""
    """How much larger than the best."""
    paper: str = ""
    rank: int | None = None
    """0 for the best, 1 for the second."""

    def joined(self, best: str, second: str, paper: str = "") -> str:
        """All of it, with templates for the best, the second and the paper's value."""
        mean = {0: best, 1: second}.get(-1 if self.rank is None else self.rank, "{}").format(self.mean)
        return " ".join(filter(None, (mean, self.std, self.over, self.paper and paper.format(self.paper))))


def cell_texts(table: Table, line: TableLine) -> list[CellText]:
    """The cells of a line, one for each column."""
    texts = []
    for column in table.columns:
        cell, unit = line.cells.get(column), table.unit(line, column)
        if cell is None:
            texts.append(CellText())
            continue
        over = table.over_best(line, column) or 0.0
        excess = f"+{100.0 * over:.0f}{SPACE}%" if over < 10.0 else f"{1.0 + over:.0f}{SPACE}x"
        std = f"({number(cell.std, unit)})" if math.isfinite(cell.std) else ""
        paper = "" if cell.paper is None else number(cell.paper, unit)
        texts.append(
            CellText(number(cell.mean, unit), std, excess if over > 0.0 else "", paper, table.rank(line, column))
        )
    return texts


def number(value: float, unit: str) -> str:
    """A value with as many digits as its unit needs."""
    if not math.isfinite(value):
        return "n/a"
    if unit in ("-", "s", "us") and value == round(value):
        return f"{value:.0f}"
    return f"{value:.4f}" if unit == "rad" else f"{value:.1f}" if unit in _COARSE else f"{value:.3f}"


def header(table: Table, column: str) -> str:
    """The heading of a column, with its unit where it has one of its own."""
    unit = table.units.get(column, "-")
    return f"{table.labels.get(column, column)}{'' if unit == '-' else f', {unit}'}"


def headers(table: Table) -> list[str]:
    """All headings."""
    return [*table.heads, *(header(table, column) for column in table.columns)]


def has_paper(table: Table) -> bool:
    """Whether the paper has a value for any cell."""
    return any(cell.paper is not None for line in table.lines for cell in line.cells.values())


def title(table: Table) -> str:
    """With the unit, where all lines have the same."""
    units = {line.unit for line in table.lines}
    only = units.pop() if len(units) == 1 else ""
    return f"{table.title}, {only}" if only else table.title


def labels(table: Table, line: TableLine) -> list[str]:
    """The words before the numbers, with the unit where lines differ in it."""
    words = list(line.labels or line.keys)
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
    from rich.text import Text

    rows = list(rows)
    wide = any(len(format_value(row.value)) > TEXT for row in rows)
    table = _grid()
    table.add_column("name", no_wrap=True)
    # Numbers below each other, but lines of text from the left.
    table.add_column("value", justify="left" if wide else "right", overflow="fold")
    table.add_column("unit", no_wrap=True)
    for row in rows:
        # Text, not markup: a name with brackets in it is printed as it is.
        table.add_row(Text(row.name), Text(format_value(row.value)), Text(row.unit if row.unit != "-" else ""))
    return table


def terminal(table: Table) -> Group:
    """For a terminal: best bold, second underlined; below, dim, how much over the best, and the paper's value.

    Title and caption stand above and below the grid, which may be narrower than they are.
    """
    from rich.console import Group
    from rich.text import Text

    wide, before = len(table.columns) > ROOMY, ""
    over = next((cell.over for line in table.lines for cell in cell_texts(table, line) if cell.over), "")
    meaning = f"{over}: that much larger than the best" if over.startswith("+") else "3 x: three times the best"
    below_values = "below a value: how much over the best; the paper's value"
    caption = below_values if has_paper(table) else meaning if over else ""
    grid = _grid()
    grid.padding = (0, 1, 0, 0) if wide else (0, 1)
    for head in table.heads:
        grid.add_column(head, no_wrap=True)
    for column in table.columns:
        grid.add_column(header(table, column), justify="right")
    for i, line in enumerate(table.lines):
        words = labels(table, line)
        # A label like the one above is left out.
        row = [Text("" if len(words) > 1 and words[0] == before else words[0]), *map(Text, words[1:])]
        for cell in cell_texts(table, line):
            text = Text(cell.mean, style={0: "bold", 1: "underline"}.get(-1 if cell.rank is None else cell.rank, ""))
            below = "; ".join(filter(None, (cell.over, cell.paper)))
            parts = [f"\n±{cell.std[1:-1]}" if wide else f" {cell.std}"] if cell.std else []
            parts += [("\n" if wide or cell.std or cell.paper else " ") + below] if below else []
            row.append(text.append("".join(parts), style="not bold not underline dim"))
        before = words[0]
        last = i + 1 == len(table.lines) or table.lines[i + 1].keys[0] != line.keys[0]
        grid.add_row(*row, end_section=last and len(line.keys) > 1)
    return Group(Text(title(table), style="bold"), grid, *([Text(caption, style="dim")] if caption else []))


def _grid() -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    return RichTable(box=box.SIMPLE_HEAD, pad_edge=False)


def markdown(table: Table) -> str:
    """For a page: best bold, second underlined, the paper's value in italics."""
    lines = [headers(table), [*["---"] * len(table.heads), *["---:"] * len(table.columns)]]
    for line in table.lines:
        cells = [cell.joined("**{}**", "<u>{}</u>", "*{}*") for cell in cell_texts(table, line)]
        lines.append([*labels(table, line), *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex(table: Table) -> str:
    """For a paper: a `tabular` that needs the package booktabs."""
    columns = "l" * len(table.heads) + "r" * len(table.columns)
    lines = [[_escape(word) for word in headers(table)]]
    for line in table.lines:
        cells = [cell._replace(over=_escape(cell.over), paper="") for cell in cell_texts(table, line)]
        marked = [cell.joined(r"\textbf{{{}}}", r"\underline{{{}}}") for cell in cells]
        lines.append([*map(_escape, labels(table, line)), *marked])
    head, *body = (" & ".join(line) + r" \\" for line in lines)
    start, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", end])


def csv(table: Table) -> str:
    """For a spreadsheet: one cell a line, every digit."""
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    writer.writerow(["table", *table.heads, "column", "mean", "std", "over_best", "paper", "unit"])
    for line in table.lines:
        for column, cell in line.cells.items():
            values = (cell.mean, cell.std, table.over_best(line, column), cell.paper)
            digits = ["" if value is None or not math.isfinite(value) else repr(float(value)) for value in values]
            writer.writerow([table.name, *line.keys, column, *digits, table.unit(line, column)])
    return out.getvalue()


def _escape(text: str) -> str:
    for sign in "&%_#$":
        text = text.replace(sign, f"\\{sign}")
    return text.replace(SPACE, "~")
