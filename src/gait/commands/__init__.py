"""The verbs of the command line: one module each, with a dataclass `VerbOptions` and a function `run`.

To add a verb, write `gait/commands/<name>.py` and give it a line in `VERBS`. A module here may import at its top only
what parsing needs; numpy, mujoco and the like belong inside `run`.
"""

from __future__ import annotations

import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gait.errors import GaitError, os_errors
from gait.rows import Row

if TYPE_CHECKING:
    from gait.report.table import Table

VERBS: dict[str, str] = {
    "demo": "Run every method on the sample log and compare with ground truth.",
    "sim": "Simulate a walking robot and record its sensors.",
    "train": "Train a network on simulated walks.",
    "sweep": "Train methods x seeds x data sets on a cluster.",
    "run": "Estimate a log: velocity and pose, with plots and files.",
    "view": "Look at a log in a browser: the robot in 3D, plots, faults.",
    "smooth": "Smooth a log: each state by all samples before and after it.",
    "live": "Estimate a running robot: ROS 2, Unitree, or a log played back.",
    "info": "Inspect a log, or show what a bug report needs.",
    "convert": "Write a log or a trajectory in another format.",
    "eval": "Compare a trajectory, or every method, with ground truth.",
    "robot": "Import a robot from its URDF or MJCF, or show what is known of one.",
    "calibrate": "Find joint zeros, link lengths, latency and IMU errors.",
    "export": "Write a network as ONNX, or with its filter as C.",
    "bench": "Measure what the documentation claims.",
}
"""Name and summary of each verb, in the order of the help."""
MODULES = {"robot": "robots"}
"""Modules of verbs that are not named like them."""
EVERY = 30.0
"""Seconds between lines of progress, where there is no bar."""
STARTING = "starting; the first run compiles, which takes about a minute"


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options that every verb has."""

    json: bool = False
    """Print the results as JSON rows and nothing else."""

    @property
    def interactive(self) -> bool:
        """Whether to show progress: on a terminal, and not with --json."""
        return sys.stderr.isatty() and not self.json


@dataclass(frozen=True)
class Outcome:
    """The results of a verb; the command line prints them."""

    rows: Sequence[Row]
    title: str = ""
    wrote: Path | str | None = None
    """The file or folder that now exists, or its URL."""
    next: str = ""
    """The likely next command, ready to paste."""
    tables: Sequence[Table] = ()
    """Printed instead of the rows, where there are any."""
    text: str = ""
    """Printed instead of rows and tables, as it is."""
    notes: Sequence[str] = ()
    """Explanations and warnings, printed after the tables and wrapped there."""
    error: str = ""
    """Why it failed all the same: printed last, as a GaitError, with its exit code."""


def quote(path: str | Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))


def wrapped(notes: Iterable[str]) -> list[str]:
    """Notes in lines that fit a terminal, further lines below the words of the first; an option stays whole."""
    lines = []
    for note in notes:
        mark = next((one for one in ("- ", "ok   ", "LOOK ") if note.startswith(one)), "")
        indent = " " * len(mark)
        lines += textwrap.wrap(note, 79, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines


def names_in(words: Iterable[str]) -> tuple[str, ...]:
    """Names that stand in words of their own, or with commas between them."""
    return tuple(name.strip() for word in words for name in word.split(",") if name.strip())


def outputs_of(write: str, known: Sequence[str]) -> tuple[str, ...]:
    """The files that `--write` asks for."""
    wanted = tuple(filter(None, (word.strip() for word in write.split(","))))
    for word in wanted:
        if word not in known:
            raise GaitError(f"--write cannot write '{word}': choose some of {', '.join(known)}, with commas")
    return wanted


def refuse_overwriting(paths: Sequence[Path], force: bool) -> None:
    """Raise if a file to be written is there, unless the user says that it may be written over."""
    for path in paths:
        if path.exists() and not force:
            raise GaitError(f"{path} is there already: give another name, or --force to write over it")


def out_folder(out: Path | None, verb: str) -> Path:
    """The folder of a verb's results, made if it is missing and ours until the end; `runs/VERB/STAMP` by default."""
    if out is None:
        from gait.io.atomic import new_folder

        return new_folder(Path("runs") / verb)
    with os_errors(f"cannot use {out}"):
        out.mkdir(parents=True, exist_ok=True)
    if verb != "train":
        # A training has a lock of its own, in Python too.
        from gait.io.locks import hold

        hold(out)
    return out


def report_file(out: Path | None, verb: str) -> Path:
    """The report of a verb: a file that ends in .html, or `report.html` in a folder."""
    return out if out is not None and out.suffix.lower() == ".html" else out_folder(out, verb) / "report.html"


def starting(show: bool) -> AbstractContextManager[object]:
    """A line for as long as it takes to load and to compile."""
    if not show:
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(STARTING)


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
def share_bar(show: bool) -> Iterator[Callable[[str, float], None]]:
    """A bar that is told what is being done and the share that is done."""
    with _bar(show, STARTING, count=False) as update:
        yield lambda what, share: update(description=what, completed=share)


@contextmanager
def count_bar(show: bool, what: str, lines: bool = False) -> Iterator[Callable[[int, int, str], None]]:
    """A bar that is told how many of how many are done, and a note.

    Args:
        show: on a terminal.
        what: is counted.
        lines: where no bar is shown, a line on stderr now and then, for a log file.
    """
    if lines and not show:
        yield _CountLines(what).update
        return
    with _bar(show, what, count=True) as update:
        yield lambda done, total, note: update(completed=done, total=total, note=note)


@dataclass
class _CountLines:
    """Progress as lines: the first, one every `EVERY` seconds, and the last."""

    what: str
    last: float | None = None
    ended: bool = False

    def update(self, done: int, total: int, note: str) -> None:
        now = time.monotonic()
        ends = done >= total and not self.ended
        if self.last is None or ends or (now - self.last >= EVERY and not self.ended):
            self.last, self.ended = now, ends
            print(f"{done} of {total} {self.what}{f', {note}' if note else ''}", file=sys.stderr, flush=True)
