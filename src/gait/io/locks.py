"""Locks on folders: two processes do not write to one. The system holds them, so that those of the dead are void."""

from __future__ import annotations

import atexit
import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gait.errors import GaitError, os_errors

NAME = ".lock"


@contextmanager
def folder_lock(folder: Path, fix: str = "choose another folder with --out") -> Iterator[None]:
    """Keep other processes out of a folder while the block runs; it must exist.

    Args:
        folder: which one.
        fix: what else to do but wait, for the message.

    Raises:
        GaitError: if another process has it.
    """
    path = folder / NAME
    file = _take(path, wait=False)
    if file is None:
        raise GaitError(f"another gait{_holder(path)} writes to {folder}: wait until it ends, or {fix}")
    try:
        os.truncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        release(path, file)


def hold(folder: Path) -> None:
    """Keep other processes out of a folder until this one ends."""
    stack = ExitStack()
    stack.enter_context(folder_lock(folder))
    atexit.register(stack.close)


def try_lock(path: Path) -> int | None:
    """Take the lock of a file, made if it is missing; None if another process has it. Give it to `release`."""
    return _take(path, wait=False)


@contextmanager
def short_lock(path: Path) -> Iterator[None]:
    """A lock that others hold for a moment only, and which is waited for."""
    file = _take(path, wait=True)
    assert file is not None
    try:
        yield
    finally:
        release(path, file)


def release(path: Path, file: int) -> None:
    """Let others have a lock, and remove its file."""
    with suppress(OSError):
        path.unlink()
    os.close(file)


def _take(path: Path, wait: bool) -> int | None:
    with os_errors(f"cannot write {path}"):
        while True:
            # Of the process and not of the file that it opened: a worker that outlives it does not keep the lock.
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except (BlockingIOError, PermissionError):
                os.close(file)
                return None
            except OSError:
                os.close(file)
                raise
            # Who had it before may have removed it meanwhile: then it is a lock on nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
            os.close(file)


def _holder(path: Path) -> str:
    """Which process it is, where it says so."""
    with suppress(OSError, ValueError):
        return f" (process {int(path.read_text())})"
    return ""
