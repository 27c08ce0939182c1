"""The native file: a `.npz` of plain arrays and a JSON header; nothing in it is ever unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError, os_errors
from gait.io import clock
from gait.io.atomic import atomic_path
from gait.io.format import Notes, build, header, in_order, parse_header
from gait.log import Log, Record, Trajectory
from gait.read_options import ReadOptions


class Npz:
    """Exact: what is loaded equals what was saved, to the last bit."""

    name = "npz"
    suffixes: tuple[str, ...] = (".npz",)

    def matches(self, head: bytes) -> bool:
        """A zip archive."""
        return head.startswith(b"PK")

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log | Trajectory:
        """Read a Log or a Trajectory that gait wrote."""
        arrays = _load(path)
        kind, metadata = parse_header(str(arrays.pop("header")), str(path))
        arrays["t"] = clock.unpack(arrays, str(path))
        return in_order(build(kind, arrays, metadata, str(path)), options)

    def write(self, record: Record, path: Path, compress: bool = False) -> None:
        """Write every array and the header. Compressing noise is slow and gains little, so it is not the default."""
        arrays: dict[str, Any] = {"header": np.array(header(record)), **clock.pack(record.t)}
        arrays.update({name: array for name, array in record.arrays().items() if name != "t"})
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            (np.savez_compressed if compress else np.savez)(file, **arrays)


def _load(path: Path) -> dict[str, AnyArray]:
    try:
        with os_errors(f"cannot read {path}"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            # A foreign file may hold objects, which numpy refuses in words of its own: look at the names first.
            if "header" not in archive.files:
                raise GaitError(
                    f"{path} is an npz that gait did not write: build gait.Log(...) from its arrays and save that"
                )
            return {name: archive[name] for name in archive.files}
    except GaitError:
        raise
    except Exception:
        # Zip, zlib and numpy each fail in ways of their own on bytes that are not theirs.
        raise GaitError(f"{path} is damaged or cut short: copy or record it again") from None
