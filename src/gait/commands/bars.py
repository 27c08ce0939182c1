"""Progress on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def status(show: bool, words: str) -> Iterator[None]:
    """A line on a terminal for as long as it takes; nothing if it is not to be shown."""
    if not show:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield


@contextmanager
def share_bar(show: bool, first: str) -> Iterator[Callable[[str, float], None]]:
    """A bar that is told what is being done and which share of it is done; nothing if it is not to be shown."""
    if not show:
        yield lambda what, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(first, total=1.0)

        def update(what: str, share: float) -> None:
            bar.update(task, description=what, completed=share)

        yield update
