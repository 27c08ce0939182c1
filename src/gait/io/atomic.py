"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gait.errors import GaitError, os_errors


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; on success it takes the place of `path`, on failure it is removed.

    Example:
        with atomic_path("run.npz") as temporary:
            temporary.write_bytes(data)

    Raises:
        GaitError: if the folder is missing or cannot be written to, or the disk is full.
    """
    # A link stays a link: what it points to is replaced.
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    with os_errors(f"cannot write {path}"):
        if not target.parent.is_dir():
            raise GaitError(f"cannot write {path}: there is no folder {Path(path).parent}, create it first")
        if target.exists() and not target.is_file():
            raise GaitError(f"cannot write {path}: it is not a regular file, choose another name")
        try:
            yield temporary
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
