"""CSV from elsewhere: columns by a map or by what their names say, empty cells where a sensor was silent."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.guess import Guess, guess_column
from gait.io.joints import meaning_of
from gait.io.named_arrays import AXES_OF, PER_JOINT, ROLE, Piece, log_of, read_map, seconds
from gait.io.reading import Notes
from gait.io.text_numbers import parse
from gait.log.log import Log
from gait.read_options import ReadOptions
from gait.robot import Robot


def read_foreign(path: Path, lines: Sequence[str], start: int, options: ReadOptions, notes: Notes) -> Log:
    """Read the table whose column names are in line `start`."""
    names = [name.strip().strip('"') for name in lines[start].split(",")]
    found = _columns(names, options, notes, path)
    values = _numbers(path, lines, start + 1, names, found)
    stamps = [name for name, guess in found.items() if guess.field == "t"]
    if not stamps:
        raise GaitError(f"{path} has no column of time: name it with --columns map.yaml, a file with `their_name: t`")
    if len(stamps) > 1:
        notes.say(f"time: column {stamps[0]}, not {', '.join(stamps[1:])}")
    clock = found[stamps[0]]
    t = seconds(values[stamps[0]], clock.scale, clock.scale != 1.0, stamps[0], notes)
    pieces = []
    for field in ROLE:
        parts = {guess.part: name for name, guess in found.items() if guess.field == field}
        if not parts:
            continue
        order = list(AXES_OF.get(field, parts))
        missing = [part for part in order if part not in parts]
        if missing:
            have = ", ".join(parts.values())
            raise GaitError(
                f"{path} has {have} for {field}, but nothing for {field}.{missing[0]}: name it with --columns"
            )
        columns = np.column_stack([values[parts[part]] * found[parts[part]].scale for part in order])
        known = np.isfinite(columns).all(axis=1) & np.isfinite(t)
        if known.any():
            # Where a sensor was silent its cells are empty, and it has stamps of its own.
            pieces.append(Piece(field, parts[order[0]], t[known], columns[known], tuple(order)))
    return log_of(pieces, options, notes, path, path.name)


def _columns(names: Sequence[str], options: ReadOptions, notes: Notes, path: Path) -> dict[str, Guess]:
    """What each column is used for; those that are not used are listed in the notes."""
    given = read_map(options.columns, names, path)
    joints = [meaning_of(name) for name in Robot.load(options.robot or "go1").joint_names]
    found: dict[str, Guess] = {}
    guessed: list[str] = []
    for name in names:
        guess = given[name] if name in given else _own(name) or guess_column(name, joints, meaning_of(name))
        taken = {(one.field, one.part) for one in found.values()}
        if guess is not None and ((guess.field, guess.part) not in taken or guess.field == "t"):
            found[name] = guess
            if name not in given and _own(name) is None:
                guessed.append(f"{name} for {guess.field}" + (f".{guess.part}" if guess.part in list("wxyz") else ""))
    left = [name for name in names if name not in found]
    if guessed:
        notes.say(f"columns guessed: {', '.join(guessed[:4])}{' ...' if len(guessed) > 4 else ''}")
    if left:
        notes.say(f"columns left out: {', '.join(left[:8])}{' ...' if len(left) > 8 else ''}")
    return found


def _own(name: str) -> Guess | None:
    """A name of gait's own, such as gyro.x."""
    field, _, part = name.partition(".")
    if name in ("t", "t_ns"):
        return Guess("t", "", 1e-9 if name == "t_ns" else 1.0)
    if part and (part in AXES_OF.get(field, ()) or field in PER_JOINT):
        return Guess(field, part)
    return None


def _numbers(
    path: Path, lines: Sequence[str], first: int, names: Sequence[str], used: Collection[str]
) -> dict[str, AnyArray]:
    """The used columns, nan for empty cells."""
    rows = [",".join(cell.strip() or "nan" for cell in line.split(",")) if line.strip() else "" for line in lines]
    if rows[-1].count(",") != len(names) - 1:
        # A recording that was stopped ends anywhere.
        del rows[-1]
    wanted = [name if name in used else None for name in names]
    hint = ", or leave the column out with --columns map.yaml, a file with `{}: null`"
    return parse(path, rows, first, wanted, ",", hint)
