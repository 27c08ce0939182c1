"""Arrays of Zarr 2: a folder, or a tar file of one, with a description and the chunks of each array."""

from __future__ import annotations

import itertools
import math
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.documents import load_json
from gait.errors import GaitError, os_errors
from gait.io.blosc import blosc_size, unpack_blosc
from gait.io.limits import Budget, UnpackError, unpack

DESCRIPTION = ".zarray"
MOST_CHUNKS = 100_000
_MOST_MEMBERS = 200_000
_LARGEST = 1 << 30
"""Bytes of a chunk in its file."""


class ZarrGroup:
    """The arrays of one folder, or of one tar file that holds it; nothing is written to the disk."""

    def __init__(self, path: Path) -> None:
        """Look what there is.

        Args:
            path: a folder with a folder for each array, or a tar file of it.
        """
        self.path = path
        self._get: Callable[[str], bytes | None]
        if path.is_dir():
            self._get, self.names = self._from_folder, _arrays_in(path)
            self._budget = Budget.of(path, sum(file.stat().st_size for file in path.rglob("*") if file.is_file()))
        else:
            self._members = _members(path)
            self._get, self._budget = self._from_tar, Budget(path)
            self.names = [name[: -len(DESCRIPTION) - 1] for name in self._members if name.endswith(f"/{DESCRIPTION}")]

    def shape(self, name: str) -> tuple[int, ...]:
        """Of an array."""
        return self._described(name)[0]

    def read(self, name: str) -> Array:
        """The numbers of an array of one or two dimensions, as float64."""
        shape, chunks, kind, about = self._described(name)
        self._budget.take(8 * math.prod(shape))
        fill = about.get("fill_value")
        out = np.full(shape, fill if isinstance(fill, int | float) else np.nan if kind.kind == "f" else 0, kind)
        grid = [range(-(-size // chunk)) for size, chunk in zip(shape, chunks, strict=True)]
        if math.prod(map(len, grid)) > MOST_CHUNKS:
            raise GaitError(f"{self.path}/{name} has more than {MOST_CHUNKS} chunks: it is damaged")
        for at in itertools.product(*grid):
            data = self._get(f"{name}/{str(about.get('dimension_separator', '.')).join(map(str, at))}")
            if data is None:
                continue  # A chunk that was never written is the fill value.
            try:
                content = self._unpacked(data, about.get("compressor"), math.prod(chunks) * kind.itemsize)
                part = np.frombuffer(content, kind).reshape(chunks, order=about.get("order", "C"))
            except (UnpackError, ValueError, TypeError) as error:
                raise GaitError(
                    f"{self.path}/{name} is damaged or in an unknown form ({error}): copy it again"
                ) from None
            place = tuple(slice(i * c, min((i + 1) * c, s)) for i, c, s in zip(at, chunks, shape, strict=True))
            out[place] = part[tuple(slice(0, one.stop - one.start) for one in place)]
        return np.asarray(out, dtype=np.float64)

    def _unpacked(self, data: bytes, compressor: Any, size: int) -> bytes:
        kind = "none" if compressor is None else str(dict(compressor).get("id"))
        if kind == "blosc":
            if blosc_size(data) != size:
                raise UnpackError("its chunks have another size")
            return unpack_blosc(data)
        if kind in ("zlib", "gzip"):
            return zlib.decompressobj(31 if kind == "gzip" else 15).decompress(data, size)
        return unpack(kind, data, self._budget)

    def _described(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any], dict[str, Any]]:
        """Shape, chunks and type of an array, and the rest of what is said about it."""
        try:
            about = load_json((self._get(f"{name}/{DESCRIPTION}") or b"").decode())
            shape, chunks = (tuple(int(size) for size in about[key]) for key in ("shape", "chunks"))
            kind = np.dtype(about["dtype"])
            filters, order = about.get("filters"), about.get("order", "C")
            # Sizes are multiplied before they are paid for.
            fine = len(shape) == len(chunks) in (1, 2) and all(0 <= s < 1 << 40 for s in shape)
            fine = fine and all(0 < c < 1 << 40 for c in chunks) and kind.kind in "fiub" and order in ("C", "F")
            fine = fine and math.prod(chunks) * kind.itemsize <= self._budget.limit
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            fine = False
        if not fine or filters:
            raise GaitError(f"{self.path}/{name} is no array of numbers of Zarr 2 that gait reads")
        return shape, chunks, kind, about

    def _from_folder(self, key: str) -> bytes | None:
        file = self.path / key
        if not file.is_file() or not file.resolve().is_relative_to(self.path.resolve()):
            return None
        with os_errors(f"cannot read {file}"):
            return file.read_bytes() if file.stat().st_size < _LARGEST else None

    def _from_tar(self, key: str) -> bytes | None:
        place = self._members.get(key)
        if place is None:
            return None
        start, size = place
        with os_errors(f"cannot read {self.path}"), self.path.open("rb") as file:
            file.seek(start)
            return file.read(size) if size < _LARGEST else None


def _arrays_in(path: Path) -> list[str]:
    with os_errors(f"cannot read {path}"):
        return sorted(entry.name for entry in path.iterdir() if (entry / DESCRIPTION).is_file())


def _members(path: Path) -> dict[str, tuple[int, int]]:
    """Where the files of a tar file begin, and their sizes, by their place below the folder with the arrays."""
    found: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(path, "r:") as tar:
            for member in itertools.islice(tar, _MOST_MEMBERS):
                if member.isreg():
                    found["/".join(Path(member.name).parts[-2:])] = member.offset_data, member.size
    except (tarfile.TarError, OSError, EOFError, ValueError):
        raise GaitError(f"{path} is damaged or no tar file: copy it again") from None
    return found
