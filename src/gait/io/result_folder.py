"""A folder of results that is there with all its files, or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gait.errors import GaitError
from gait.io.run_folder import new_folder


@dataclass
class Folder:
    """Where to write, and where it all is in the end."""

    work: Path
    """Files go here."""
    final: Path
    """Their place when all is well; known at the end where the folder gets its name then."""


@contextmanager
def whole_folder(out: Path | None, verb: str) -> Iterator[Folder]:
    """A folder to fill. On success it takes its final place; on failure nothing of it is left.

    Args:
        out: its place, which must not hold anything; `runs/VERB/STAMP` by default.
        verb: who writes.
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise GaitError(f"{out} exists: name a folder that does not, or an empty one")
    place = Path("runs") / verb if out is None else out.absolute().parent
    work = place / f".{verb}.{secrets.token_hex(4)}.tmp"
    try:
        try:
            work.mkdir(parents=True)
            folder = Folder(work, out or place)
            yield folder
            if out is None:
                folder.final = new_folder(place)
            # An empty folder gives way; one that has been filled meanwhile does not.
            work.replace(folder.final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise GaitError(f"cannot write to {place}: {(error.strerror or str(error)).lower()}") from None
