"""Numbers in text files, and the line to blame when they are not numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.format import reason


def read_lines(path: Path) -> list[str]:
    """The lines of a text file without their ends."""
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise GaitError(f"cannot read {path}: {reason(error)}") from None
    except UnicodeDecodeError:
        raise GaitError(f"{path} is not a text file") from None


def parse(
    path: Path, lines: Sequence[str], first: int, names: Sequence[str], delimiter: str | None
) -> dict[str, AnyArray]:
    """The columns of a table of numbers by name: int64 where the name ends in `_ns`, else float64.

    Args:
        path: for messages only.
        lines: all lines of the file.
        first: index of the first line with numbers; empty lines and lines that begin with `#` are skipped.
        names: one name for each column.
        delimiter: what stands between values; None for white space.
    """
    layout = [(f"c{i}", "i8" if name.endswith("_ns") else "f8") for i, name in enumerate(names)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            table = np.loadtxt(lines[first:], dtype=layout, delimiter=delimiter, comments="#", ndmin=1)
    except (ValueError, OverflowError):
        raise _blame(path, lines, first, names, delimiter) from None
    if not len(table):
        raise GaitError(f"{path} has no rows of numbers: record or export it again")
    return {name: np.ascontiguousarray(table[f"c{i}"]) for i, name in enumerate(names)}


def _blame(path: Path, lines: Sequence[str], first: int, names: Sequence[str], delimiter: str | None) -> GaitError:
    for number, line in enumerate(lines[first:], start=first + 1):
        bare = line.split("#", 1)[0]
        if not bare.strip():
            continue
        values = bare.split(delimiter)
        if len(values) != len(names):
            return GaitError(
                f"{path} line {number} has {len(values)} values where {len(names)} are due: complete or remove it"
            )
        for name, value in zip(names, values, strict=True):
            if not _is_number(value, whole=name.endswith("_ns")):
                shown = value.strip()[:40]
                return GaitError(f"{path} line {number} has '{shown}' for {name}: a number is needed there")
    return GaitError(f"{path} cannot be read as a table of numbers: export it again")


def _is_number(text: str, whole: bool) -> bool:
    try:
        np.int64(text.strip()) if whole else float(text)
    except (ValueError, OverflowError):
        return False
    return True
