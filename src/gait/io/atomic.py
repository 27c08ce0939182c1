"""Files and folders that appear whole or not at all; the folders of runs, and the commit that made them."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


def new_folder(root: Path) -> Path:
    """`<root>/<stamp>`, made, with `<root>/latest` pointing to it."""
    with os_errors(f"cannot make a folder in {root}"):
        root.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for i in range(1000):
            folder = root / (stamp if i == 0 else f"{stamp}-{i}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            link = root / "latest"
            if link.is_symlink() or not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to(folder.name)
            return folder
    raise GaitError(f"cannot make a folder in {root}: name one with --out")


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
    with os_errors(f"cannot write to {place}"):
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


def commit() -> str:
    """The commit of this source tree, with `+` if files differ from it; `unknown` outside a git checkout."""
    here = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    try:
        if not (Path(git("rev-parse", "--show-toplevel")) / "src/gait").is_dir():
            return "unknown"
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(here)) else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
