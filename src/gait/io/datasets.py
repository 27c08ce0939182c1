"""Files of named arrays, such as HDF5 or an npz of another tool: which array is which field of a Log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.io.foreign import ROLE, Piece, read_map, seconds
from gait.io.format import Notes, StreamInfo
from gait.io.guess import AXES_OF, PER_JOINT, Guess, guess_field
from gait.read_options import NONE, ReadOptions


def pieces_of(
    datasets: Mapping[str, Any],
    names: Mapping[str, tuple[str, ...]],
    values: Callable[[str], Array],
    options: ReadOptions,
    notes: Notes,
    path: Path,
) -> list[Piece]:
    """Read the datasets that look like fields of a Log; the others are looked at, but not read.

    Args:
        datasets: what there is, by path: of each only the shape and the type are used.
        names: of the joints, for datasets that have them beside.
        values: reads the numbers of one dataset.
        options: what to say where guessing is not enough.
        notes: is filled on the way.
        path: the file.
    """
    given = read_map(options.columns, datasets, path)
    guesses = {key: given[key] if key in given else _guess(key, one.shape) for key, one in datasets.items()}
    chosen = {key: guess for key, guess in guesses.items() if guess is not None and _asked(key, guess, options)}
    clocks = {key: guess for key, guess in chosen.items() if guess.field == "t"}
    fields = {key: guess for key, guess in chosen.items() if guess.field in ROLE}
    stamps = {key: _clock_of(key, len(datasets[key]), clocks, datasets) for key in fields}
    arrays = {key: values(key) for key in datasets if key in fields or key in stamps.values()}
    for key, one in datasets.items():
        used = ROLE[fields[key].field] if key in fields else ""
        notes.streams.append(StreamInfo(key, f"{one.dtype} {one.shape}", len(one), float("nan"), used))
    pieces = []
    for key, guess in fields.items():
        clock = stamps[key]
        if clock is None:
            raise GaitError(
                f"{path}: there are no stamps for {key} with its {len(arrays[key])} rows: name them with --columns"
                " map.yaml, a file with `their_name: t`"
            )
        scale = clocks[clock].scale
        t = seconds(arrays[clock], scale, scale != 1.0 or clock in given, clock, notes)
        joints = names.get(key, ()) if guess.field in PER_JOINT else ()
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = arrays[key] * guess.scale
        # A field under gait's own name is not a guess.
        sure = key in given or key == guess.field
        pieces.append(Piece(guess.field, key, t, scaled, joints, sure))
    if pieces and not given:
        notes.say("datasets guessed: " + ", ".join(f"{piece.where} for {piece.field}" for piece in pieces))
    return pieces


def names_beside(
    shapes: Mapping[str, tuple[int, ...]], texts: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """For each dataset the list of names, as many as it has columns, that stands beside it."""
    names = {}
    for key, shape in shapes.items():
        width = shape[1] if len(shape) == 2 else 0
        fitting = [text for where, text in texts.items() if len(text) == width and _beside(where, key)]
        if fitting:
            names[key] = max(fitting, key=lambda text: sum("_" in one for one in text))
    return names


def _beside(where: str, key: str) -> bool:
    """Whether a list of names stands in the group of a dataset, on it, or in one above."""
    group = where.rpartition("/")[0]
    return not group or key == group or key.startswith(f"{group}/")


def _guess(key: str, shape: tuple[int, ...]) -> Guess | None:
    guess = guess_field(key)
    if guess is None or guess.field == "t":
        return guess if len(shape) == 1 else None
    width = shape[1] if len(shape) == 2 else 1
    fits = width == len(AXES_OF[guess.field]) if guess.field in AXES_OF else width >= 3
    return guess if fits else None


def _asked(key: str, guess: Guess, options: ReadOptions) -> bool:
    """Whether a dataset lies in the group that the user chose for its purpose."""
    role = ROLE.get(guess.field)
    group = None if role is None else getattr(options, role)
    return group is None or (group != NONE and f"{key}/".startswith(f"{group.strip('/')}/"))


def _clock_of(key: str, rows: int, clocks: Mapping[str, Guess], arrays: Mapping[str, Any]) -> str | None:
    """The stamps of a dataset: in its group, else in the nearest above it, as many as it has rows."""
    group = key
    while group:
        group = group.rpartition("/")[0]
        fitting = [clock for clock in clocks if clock.rpartition("/")[0] == group and len(arrays[clock]) == rows]
        own = [clock for clock in fitting if clock.rpartition("/")[2].startswith(key.rpartition("/")[2].split("_")[0])]
        if fitting:
            return (own or fitting)[0]
    return None
