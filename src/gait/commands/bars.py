"""Progress on a terminal; where it is not to be shown, nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

STARTING = "starting; the first run compiles, which takes about a minute"


@contextmanager
def status(show: bool, words: str) -> Iterator[None]:
    """A line for as long as it takes."""
    if not show:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield


@contextmanager
def _bar(show: bool, what: str, count: bool) -> Iterator[Callable[..., None]]:
    if not show:
        yield lambda **_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    amount: Any = MofNCompleteColumn() if count else TaskProgressColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TextColumn("{task.fields[note]}"), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield partial(bar.update, bar.add_task(what, total=None if count else 1.0, note=""))


@contextmanager
def share_bar(show: bool, first: str = STARTING) -> Iterator[Callable[[str, float], None]]:
    """A bar that is told what is being done and the share that is done."""
    with _bar(show, first, count=False) as update:
        yield lambda what, share: update(description=what, completed=share)


@contextmanager
def count_bar(show: bool, what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar that is told how many of how many are done, and a note."""
    with _bar(show, what, count=True) as update:
        yield lambda done, total, note: update(completed=done, total=total, note=note)
