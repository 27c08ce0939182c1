"""Sections of the documentation that a benchmark writes: text and tables between two marks."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path

from gait.errors import GaitError
from gait.io.atomic import atomic_path

DOCS = Path(__file__).parents[1] / "docs"


def paragraph(text: str) -> str:
    """Text in lines as long as those of the documentation."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its first column to the left and the others to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds; the mean alone if there is one."""
    mean = f"{statistics.fmean(values):.3f}"
    return f"{mean} ± {statistics.stdev(values):.3f}" if len(values) > 1 else mean


def write_section(name: str, text: str, path: Path) -> None:
    """Replace what stands between the marks of a section.

    Raises:
        GaitError: if the file does not have both marks once, in order.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    whole = path.read_text(encoding="utf-8")
    if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(begin) > whole.index(end):
        raise GaitError(f"{path.name} must hold {begin} and then {end}, once each: add them where the section goes")
    before, rest = whole.split(begin)
    after = rest.split(end)[1]
    with atomic_path(path) as temporary:
        temporary.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
