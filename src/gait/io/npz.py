"""The native file: a `.npz` of plain arrays and a JSON header; other tools' arrays too. Nothing is ever unpickled."""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError, os_errors
from gait.io import clock
from gait.io.atomic import atomic_path
from gait.io.datasets import names_beside, pieces_of
from gait.io.foreign import log_of
from gait.io.format import Notes, build, header, parse_header
from gait.io.limits import Budget
from gait.io.native import as_asked
from gait.log import Log, Record, Trajectory
from gait.read_options import ReadOptions

_PIECE = 1 << 20
"""Bytes that are unpacked at once."""


class Npz:
    """Exact: what is loaded equals what was saved, to the last bit."""

    name = "npz"
    suffixes: tuple[str, ...] = (".npz",)

    def matches(self, head: bytes) -> bool:
        """A zip archive."""
        return head.startswith(b"PK")

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log | Trajectory:
        """Read a Log or a Trajectory that gait wrote, or a Log from the arrays of another tool."""
        arrays = _load(path)
        if "header" not in arrays:
            return _read_foreign(arrays, options, notes, path)
        kind, metadata = parse_header(str(arrays.pop("header")), str(path))
        arrays["t"] = clock.unpack(arrays, str(path))
        notes.robot = str(metadata.get("robot", ""))
        for array in arrays.values():
            # Nobody else has them, so that the record need not copy them.
            array.flags.writeable = False
        return as_asked(build(kind, arrays, metadata, str(path)), options, notes, path)

    def write(self, record: Record, path: Path, compress: bool = False) -> None:
        """Write every array and the header. Compressing noise is slow and gains little, so it is not the default."""
        arrays: dict[str, Any] = {"header": np.array(header(record)), **clock.pack(record.t)}
        arrays.update({name: array for name, array in record.arrays().items() if name != "t"})
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            (np.savez_compressed if compress else np.savez)(file, **arrays)


def _read_foreign(arrays: dict[str, AnyArray], options: ReadOptions, notes: Notes, path: Path) -> Log:
    """A Log from arrays of any names, as from an HDF5 file."""
    numbers = {
        key.strip("/"): array
        for key, array in arrays.items()
        if array.dtype.kind in "fiub" and array.ndim in (1, 2) and len(array) > 1
    }
    texts = {
        key: tuple(map(str, array)) for key, array in arrays.items() if array.dtype.kind == "U" and array.ndim == 1
    }
    names = names_beside({key: array.shape for key, array in numbers.items()}, texts)
    pieces = pieces_of(numbers, names, lambda key: np.asarray(numbers[key], dtype=np.float64), options, notes, path)
    return log_of(pieces, options, notes, path)


def _load(path: Path) -> dict[str, AnyArray]:
    budget = Budget(path)
    try:
        with os_errors(f"cannot read {path}"), zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            ours = "header.npy" in [member.filename for member in members]
            arrays = {}
            for member in members:
                if ours or member.filename.endswith(".npy"):
                    # Another tool's file may hold objects beside its arrays: they are left where they are.
                    array = _array(archive, member, budget, objects=not ours)
                    if array is not None:
                        arrays[member.filename.removesuffix(".npy")] = array
            return arrays
    except (
        zipfile.BadZipFile,
        zlib.error,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        struct.error,
        SyntaxError,
        tokenize.TokenError,
    ):
        raise GaitError(f"{path} is damaged or cut short: copy or record it again") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget, objects: bool) -> AnyArray | None:
    """One array; its header is held against the bytes that are there before there is room for it.

    Objects are never unpickled: they are an error, or with `objects` None.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("numpy writes no such compression")
    # What a member unpacks to is never more than it says here.
    budget.take(member.file_size)
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = reader(file)
        if objects and dtype.hasobject:
            return None
        count = math.prod(shape)
        if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0 or len(shape) > 8:
            raise ValueError("not an array of plain numbers")
        if count * dtype.itemsize > member.file_size:
            raise ValueError("the array claims more than there is")
        array = np.empty(count, dtype=dtype)
        room, filled = array.view(np.uint8).data, 0
        # Piece by piece: a second copy of a long log would double the memory.
        while filled < len(room) and (got := cast(BufferedIOBase, file).readinto(room[filled : filled + _PIECE])):
            filled += got
        if filled != len(room) or file.read(1):
            raise ValueError("the array is cut short, or more follows it")
    if fortran:
        return array.reshape(shape, order="F").copy()
    array.shape = shape
    return array
