"""HDF5 files: arrays in groups, by a map of names or by what the names say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError, need_extra
from gait.io.foreign import ROLE, Piece, log_of, read_map, seconds
from gait.io.format import Notes, StreamInfo
from gait.io.guess import AXES_OF, PER_JOINT, Guess, guess_field
from gait.io.hdf5_texts import Place, read_texts
from gait.io.limits import Budget
from gait.log import Log, Record
from gait.read_options import NONE, ReadOptions

MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_DATASETS, DEEPEST = 20_000, 30
"""Datasets of a file, and groups in groups."""
MOST_NAMES, MOST_TEXT = 4096, 1 << 24
"""Names in a list, and their bytes."""


class Hdf5:
    """Reads arrays of (rows, ...) with stamps beside them, in the same group or in one above."""

    name = "hdf5"
    suffixes: tuple[str, ...] = ()

    def matches(self, head: bytes) -> bool:
        """The eight bytes that every HDF5 file begins with."""
        return head.startswith(MAGIC)

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log:
        """Read a Log from the datasets that look like its fields; the others are looked at, but not read."""
        with _opened(path) as file:
            datasets, names = _look(file, path)
            given = read_map(options.columns, datasets, path)
            guesses = {key: given[key] if key in given else _guess(key, one.shape) for key, one in datasets.items()}
            chosen = {key: guess for key, guess in guesses.items() if guess is not None and _asked(key, guess, options)}
            clocks = {key: guess for key, guess in chosen.items() if guess.field == "t"}
            fields = {key: guess for key, guess in chosen.items() if guess.field in ROLE}
            stamps = {key: _clock_of(key, len(datasets[key]), clocks, datasets) for key in fields}
            budget = Budget(path)
            wanted = [key for key in datasets if key in fields or key in stamps.values()]
            arrays = {key: _values(datasets[key], budget) for key in wanted}
            about = {key: (f"{one.dtype} {one.shape}", len(one)) for key, one in datasets.items()}
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
                values = arrays[key] * guess.scale
            pieces.append(Piece(guess.field, key, t, values, joints, sure=key in given))
        for key, (text, rows) in about.items():
            used = ROLE[fields[key].field] if key in fields else ""
            notes.streams.append(StreamInfo(key, text, rows, float("nan"), used))
        if pieces and not given:
            notes.say("datasets guessed: " + ", ".join(f"{piece.where} for {piece.field}" for piece in pieces))
        return log_of(pieces, options, notes, path)

    def write(self, record: Record, path: Path) -> None:
        """Not written: `.npz` and `.mcap` hold the same."""
        raise GaitError(f"gait writes no HDF5: end the name {path} with .npz or .mcap")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, open; whatever the library finds wrong with it is told in one sentence."""
    try:
        import h5py
    except ImportError:
        raise need_extra("h5py, which reads HDF5,", "hdf5") from None
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, OverflowError, MemoryError):
        # The library fails in many ways on a file that is not whole.
        raise GaitError(f"{path} is damaged or cut short: copy or record it again") from None


def _look(file: Any, path: Path) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Datasets of numbers by path, not read yet, and for each the names of joints that stand beside it."""
    import h5py

    datasets: dict[str, Any] = {}
    places: dict[str, Place] = {}

    def visit(key: str, item: Any) -> None:
        if len(datasets) + len(places) > MOST_DATASETS or key.count("/") > DEEPEST:
            raise ValueError("more than a log can have")
        for name in item.attrs:
            if "name" in name.lower() or "joint" in name.lower():
                about = item.attrs.get_id(name)
                # Its shape may claim more than is stored, and the library would make room for that.
                if about.dtype.kind in "OSU" and math.prod(about.shape or ()) <= MOST_NAMES:
                    places[f"{key}/{name}".strip("/")] = key, name
        if not isinstance(item, h5py.Dataset) or not item.shape:
            return
        if item.external or item.is_virtual:
            # Its values lie in other files, which the user did not name.
            return
        if item.dtype.kind in "fiub" and item.ndim <= 2 and len(item) > 1:
            datasets[key] = item
        elif item.dtype.kind in "OSU" and item.size <= MOST_NAMES and item.size * item.dtype.itemsize <= MOST_TEXT:
            places[key] = key, ""

    visit("", file)
    file.visititems(visit)
    texts = dict(zip(places, map(_texts, read_texts(path, list(places.values()))), strict=True))
    names = {}
    for key, one in datasets.items():
        width = one.shape[1] if one.ndim == 2 else 0
        fitting = [text for where, text in texts.items() if len(text) == width and _beside(where, key)]
        if fitting:
            names[key] = max(fitting, key=lambda text: sum("_" in one for one in text))
    return datasets, names


def _values(dataset: Any, budget: Budget) -> Array:
    """The numbers of a dataset. What was never written, or is compressed, takes no room in the file."""
    budget.take(dataset.size * np.dtype(np.float64).itemsize)
    return np.asarray(dataset[()], dtype=np.float64)


def _texts(words: list[str]) -> tuple[str, ...]:
    return tuple(words[0].split(",")) if len(words) == 1 and "," in words[0] else tuple(words)


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
