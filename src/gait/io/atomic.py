"""Files and folders that appear whole or not at all; the folders of runs, and the commit that made them."""

from __future__ import annotations

import errno
import glob
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gait.errors import GaitError, os_errors
from gait.io.locks import NAME, release, short_lock, try_lock

OLD = 3600.0
"""Seconds without a write after which a temporary file is left over."""
_OURS: set[Path] = set()
"""Folders that this process fills: a lock keeps out other processes only."""
_STAMP = re.compile(r"\d{8}-\d{6}(-\d+)?")
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{8}\.tmp")


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
        _remove_old(target)
        try:
            yield temporary
            flush_file(temporary)
            temporary.replace(target)
            flush_file(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _remove_old(target: Path) -> None:
    """Remove what killed processes left of this file, but not what another one may be writing now."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        with suppress(OSError):
            if _TEMPORARY.fullmatch(leftover.name) and time.time() - leftover.lstat().st_mtime > OLD:
                leftover.unlink()


def new_folder(root: Path) -> Path:
    """`<root>/<stamp>`, made; `point_latest` goes with it once all is well."""
    with os_errors(f"cannot make a folder in {root}"):
        root.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for i in range(1000):
            folder = root / (stamp if i == 0 else f"{stamp}-{i}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    raise GaitError(f"cannot make a folder in {root}: name one with --out")


def point_latest(folder: Path) -> None:
    """Let `latest` beside a folder of a run point to it; a link appears whole, and anything else stays as it is."""
    link = folder.parent / "latest"
    with os_errors(f"cannot make the link {link}"):
        if link.exists() and not link.is_symlink():
            return
        temporary = folder.parent / f".latest.{secrets.token_hex(4)}.tmp"
        temporary.symlink_to(folder.name)
        temporary.replace(link)


def folder_of_run(path: Path, verb: str) -> Path | None:
    """The folder `runs/VERB/STAMP` that a result lies in, if it is one."""
    root = (Path("runs") / verb).absolute()
    whole = path.absolute()
    return next((one for one in (whole, *whole.parents) if one.parent == root and _STAMP.fullmatch(one.name)), None)


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
    with os_errors(f"cannot write to {place}"), ExitStack() as locks:
        place.mkdir(parents=True, exist_ok=True)
        if out is not None:
            guard = place / f".{out.name}.lock"
            if (file := try_lock(guard)) is None:
                raise GaitError(
                    f"another gait writes to {out}: wait until it ends, or choose another folder with --out"
                )
            locks.callback(release, guard, file)
        with short_lock(place / f".{verb}.lock"):
            sweep(place, verb)
            work.mkdir()
            _OURS.add(work)
            held = try_lock(work / NAME)
        try:
            folder = Folder(work, out or place)
            yield folder
            (work / NAME).unlink(missing_ok=True)
            flush_folder(work)
            if out is None:
                folder.final = new_folder(place)
            # An empty folder gives way; one that has been filled meanwhile does not.
            work.replace(folder.final)
            flush_file(place)
            if out is None:
                point_latest(folder.final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
            _OURS.discard(work)
            if held is not None:
                os.close(held)


def sweep(place: Path, verb: str) -> None:
    """Remove the folders that killed processes of a verb were filling; one that is alive has the lock of its own."""
    for leftover in place.glob(f".{verb}.*.tmp"):
        if leftover not in _OURS and leftover.is_dir() and (file := try_lock(leftover / NAME)) is not None:
            shutil.rmtree(leftover, ignore_errors=True)
            os.close(file)


def sweep_files(folder: Path) -> None:
    """Remove what killed processes were writing to a folder, of which the caller has the lock."""
    for leftover in folder.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(leftover.name) and (leftover.is_symlink() or leftover.is_file()):
            leftover.unlink(missing_ok=True)


def flush_file(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk: a rename alone may outrun the contents."""
    with suppress(FileNotFoundError):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        except OSError as error:
            # Some file systems know no such thing for folders.
            if error.errno != errno.EINVAL:
                raise
        finally:
            os.close(file)


def flush_folder(folder: Path) -> None:
    """The same of all files in a folder, and of itself."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            flush_file(path)
    flush_file(folder)


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
