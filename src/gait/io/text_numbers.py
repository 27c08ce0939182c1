"""Numbers in text files, and the line to blame when they are not numbers."""

from __future__ import annotations

import codecs
import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError, os_errors

Names = Sequence[str | None]
"""A name for each column; None for one to skip."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROL = re.compile(rb"[^\t\n\v\f\r\x20-\xff]")


def first_line(head: bytes) -> str | None:
    """The first line of a text that is neither empty nor a comment; None if the bytes are no text.

    Text in another encoding than UTF-8 counts too, so that its reader can say what to do about it.
    """
    text = _decode(head)
    if text is None or "\0" in text:
        return None
    return next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), None)


def read_lines(path: Path, wanted: str = "UTF-8") -> list[str]:
    """The lines of a text file, without their ends. Ten minutes of a log are 0.5 GB: there is no second copy of it.

    Args:
        path: the file.
        wanted: what to save it as if it is in another encoding, for the message.
    """
    try:
        with os_errors(f"cannot read {path}"), path.open(encoding="utf-8-sig") as file:
            return [line.rstrip("\n") for line in file]
    except UnicodeDecodeError:
        number = _undecodable(path)
        where = f"not UTF-8 text (line {number})" if number else "UTF-16 text"
        raise GaitError(f"{path} is {where}: save it as {wanted}") from None


def _undecodable(path: Path) -> int:
    """The number of the first line that is not UTF-8; 0 if the file is UTF-16."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number == 1 and line.startswith(_UTF16):
                return 0
            try:
                line.decode("utf-8-sig")
            except UnicodeDecodeError:
                return number
    return 1


def _decode(head: bytes) -> str | None:
    if head.startswith(_UTF16):
        return head.decode("utf-16", errors="replace")
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The head may end in the middle of a letter.
        if error.start >= len(head) - 4:
            return head[: error.start].decode("utf-8-sig")
    # Latin-1 and its kin give every byte a meaning, but no text has control codes other than white space.
    return None if _CONTROL.search(head) else head.decode("latin-1")


def parse(
    path: Path, lines: Sequence[str], first: int, names: Names, delimiter: str | None, hint: str = ""
) -> dict[str, AnyArray]:
    """The columns of a table of numbers by name: float64, but int64 for `t_ns` where all of it is numbers.

    Args:
        path: for messages only.
        lines: all lines of the file.
        first: index of the first line with numbers; empty lines and lines that begin with `#` are skipped.
        names: one for each column.
        delimiter: what stands between values; None for white space.
        hint: what else to do about a column that is not numbers, with `{}` for its name.
    """
    used = [(i, name) for i, name in enumerate(names) if name is not None]
    layout = [(f"c{i}", "i8" if _whole(name, hint) else "f8") for i, name in used]
    # Without usecols numpy also counts the values of each line.
    usecols = None if len(used) == len(names) else [i for i, _ in used]
    if usecols and delimiter and any(row.count(delimiter) != len(names) - 1 for row in _rows(lines, first)):
        raise _blame(path, lines, first, names, delimiter, hint)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            # numpy 1 reads 0.002 as the whole number 0 and only warns.
            warnings.simplefilter("error", DeprecationWarning)
            values = np.loadtxt(
                _rows(lines, first), dtype=layout, delimiter=delimiter, comments="#", usecols=usecols, ndmin=1
            )
    except (ValueError, OverflowError, DeprecationWarning):
        raise _blame(path, lines, first, names, delimiter, hint) from None
    if not len(values):
        raise GaitError(f"{path} has no rows of numbers: record or export it again")
    return {name: np.ascontiguousarray(values[f"c{i}"]) for i, name in used}


def _rows(lines: Sequence[str], first: int) -> Iterator[str]:
    """The lines with numbers."""
    return (line for line in itertools.islice(lines, first, None) if line.strip() and not line.startswith("#"))


def _whole(name: str, hint: str) -> bool:
    return name.endswith("_ns") and not hint


def _blame(path: Path, lines: Sequence[str], first: int, names: Names, delimiter: str | None, hint: str) -> GaitError:
    for number, line in enumerate(lines[first:], start=first + 1):
        bare = line.split("#", 1)[0]
        if not bare.strip():
            continue
        values, where = bare.split(delimiter), f"{path} line {number}"
        if len(values) != len(names):
            return GaitError(f"{where} has {len(values)} values where {len(names)} are due: complete or remove it")
        for name, value in zip(names, values, strict=True):
            if name is not None and not is_number(value, whole=_whole(name, hint)):
                shown, fix = value.strip()[:40], hint.format(name)
                return GaitError(f"{where} has '{shown}' for {name}: a number is needed there{fix}")
    return GaitError(f"{path} cannot be read as a table of numbers: export it again")


def is_number(text: str, whole: bool = False) -> bool:
    """Whether a text is a number, or a whole one that fits 64 bits."""
    try:
        np.int64(text.strip()) if whole else float(text)
    except (ValueError, OverflowError):
        return False
    return True
