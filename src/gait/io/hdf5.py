"""HDF5 files: arrays in groups, by a map of names or by what the names say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError, need_extra
from gait.io.foreign import ROLE, Piece, log_of, read_map, seconds
from gait.io.format import Notes, StreamInfo
from gait.io.guess import AXES_OF, PER_JOINT, Guess, guess_field
from gait.log import Log, Record
from gait.read_options import NONE, ReadOptions

MAGIC = b"\x89HDF\r\n\x1a\n"


class Hdf5:
    """Reads arrays of (rows, ...) with stamps beside them, in the same group or in one above."""

    name = "hdf5"
    suffixes: tuple[str, ...] = ()

    def matches(self, head: bytes) -> bool:
        """The eight bytes that every HDF5 file begins with."""
        return head.startswith(MAGIC)

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log:
        """Read a Log from the datasets that look like its fields."""
        arrays, names = _load(path)
        given = read_map(options.columns, arrays, path)
        guesses = {key: given[key] if key in given else _guess(key, array) for key, array in arrays.items()}
        chosen = {key: guess for key, guess in guesses.items() if guess is not None and _asked(key, guess, options)}
        clocks = {key: guess for key, guess in chosen.items() if guess.field == "t"}
        pieces, used = [], {}
        for key, guess in chosen.items():
            if guess.field not in ROLE:
                continue
            clock = _clock_of(key, len(arrays[key]), clocks, arrays)
            if clock is None:
                raise GaitError(
                    f"{path}: there are no stamps for {key} with its {len(arrays[key])} rows: name them with --columns"
                    " map.yaml, a file with `their_name: t`"
                )
            scale = clocks[clock].scale
            t = seconds(arrays[clock], scale, scale != 1.0 or clock in given, clock, notes)
            used[key] = ROLE[guess.field]
            joints = names.get(key, ()) if guess.field in PER_JOINT else ()
            pieces.append(Piece(guess.field, key, t, arrays[key] * guess.scale, joints))
        for key, array in arrays.items():
            about = f"{array.dtype} {array.shape}"
            notes.streams.append(StreamInfo(key, about, len(array), float("nan"), used.get(key, "")))
        if pieces and not given:
            notes.say("datasets guessed: " + ", ".join(f"{piece.where} for {piece.field}" for piece in pieces))
        return log_of(pieces, options, notes, path)

    def write(self, record: Record, path: Path) -> None:
        """Not written: `.npz` and `.mcap` hold the same."""
        raise GaitError(f"gait writes no HDF5: end the name {path} with .npz or .mcap")


def _load(path: Path) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Arrays of numbers by path, and for each the names of joints that stand beside it."""
    try:
        import h5py
    except ImportError:
        raise need_extra("h5py, which reads HDF5,", "hdf5") from None
    arrays: dict[str, Any] = {}
    texts: dict[str, tuple[str, ...]] = {}

    def visit(key: str, item: Any) -> None:
        for name, value in item.attrs.items():
            if "name" in name.lower() or "joint" in name.lower():
                texts[f"{key}/{name}".strip("/")] = _texts(value)
        if not isinstance(item, h5py.Dataset) or not item.shape:
            return
        if item.dtype.kind in "fiub" and item.ndim <= 2 and len(item) > 1:
            arrays[key] = np.asarray(item[()], dtype=np.float64)
        elif item.dtype.kind in "OSU":
            texts[key] = _texts(item[()])

    try:
        with h5py.File(path, "r") as file:
            visit("", file)
            file.visititems(visit)
    except Exception:
        # h5py fails in many ways on a file that is not whole.
        raise GaitError(f"{path} is damaged or cut short: copy or record it again") from None
    names = {}
    for key, array in arrays.items():
        width = array.shape[1] if array.ndim == 2 else 0
        fitting = [text for where, text in texts.items() if len(text) == width and _beside(where, key)]
        if fitting:
            names[key] = max(fitting, key=lambda text: sum("_" in one for one in text))
    return arrays, names


def _texts(value: Any) -> tuple[str, ...]:
    flat = np.atleast_1d(np.asarray(value, dtype=object)).ravel().tolist()
    words = [one.decode("utf-8", errors="replace") if isinstance(one, bytes) else str(one) for one in flat]
    return tuple(words[0].split(",")) if len(words) == 1 and "," in words[0] else tuple(words)


def _beside(where: str, key: str) -> bool:
    """Whether a list of names stands in the group of a dataset, on it, or in one above."""
    group = where.rpartition("/")[0]
    return not group or key == group or key.startswith(f"{group}/")


def _guess(key: str, array: Any) -> Guess | None:
    guess = guess_field(key)
    if guess is None or guess.field == "t":
        return guess if array.ndim == 1 else None
    width = array.shape[1] if array.ndim == 2 else 1
    fits = width == len(AXES_OF[guess.field]) if guess.field in AXES_OF else width >= 3
    return guess if fits else None


def _asked(key: str, guess: Guess, options: ReadOptions) -> bool:
    """Whether a dataset lies in the group that the user chose for its purpose."""
    role = ROLE.get(guess.field)
    group = None if role is None else getattr(options, role)
    return group is None or (group != NONE and f"{key}/".startswith(f"{group.strip('/')}/"))


def _clock_of(key: str, rows: int, clocks: Mapping[str, Guess], arrays: Mapping[str, Array]) -> str | None:
    """The stamps of a dataset: in its group, else in the nearest above it, as many as it has rows."""
    group = key
    while group:
        group = group.rpartition("/")[0]
        fitting = [clock for clock in clocks if clock.rpartition("/")[0] == group and len(arrays[clock]) == rows]
        own = [clock for clock in fitting if clock.rpartition("/")[2].startswith(key.rpartition("/")[2].split("_")[0])]
        if fitting:
            return (own or fitting)[0]
    return None
