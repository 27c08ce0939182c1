"""HDF5 files: arrays in groups, by a map of names or by what the names say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError, need_extra
from gait.io.datasets import names_beside, pieces_of
from gait.io.foreign import log_of
from gait.io.format import Notes
from gait.io.hdf5_texts import Place, read_texts
from gait.io.limits import Budget
from gait.log import Log, Record
from gait.read_options import ReadOptions

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
            budget = Budget(path)
            pieces = pieces_of(datasets, names, lambda key: _values(datasets[key], budget), options, notes, path)
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
    return datasets, names_beside({key: one.shape for key, one in datasets.items()}, texts)


def _values(dataset: Any, budget: Budget) -> Array:
    """The numbers of a dataset. What was never written, or is compressed, takes no room in the file."""
    budget.take(dataset.size * np.dtype(np.float64).itemsize)
    return np.asarray(dataset[()], dtype=np.float64)


def _texts(words: list[str]) -> tuple[str, ...]:
    return tuple(words[0].split(",")) if len(words) == 1 and "," in words[0] else tuple(words)
