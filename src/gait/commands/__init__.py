"""The verbs of the command line: one module each, with a dataclass `Options` and a function `run`.

To add a verb, write `gait/commands/<name>.py` and give it a line in `VERBS`. A module here may import at its top only
what parsing needs; numpy, numba, mujoco and the like belong inside `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gait.rows import Row

if TYPE_CHECKING:
    from gait.report.table import Table

VERBS: dict[str, str] = {
    "demo": "Run every method on the sample log and compare with the truth.",
    "sim": "Let a simulated robot walk, and keep what its sensors say.",
    "train": "Learn a network from simulated walks.",
    "run": "Estimate a log: velocity and pose, with plots and files for other tools.",
    "live": "Estimate a robot that runs: ROS 2, Unitree, or a log played again.",
    "info": "Show what is in a file, or what a bug report needs.",
    "convert": "Write a log or a trajectory in another format.",
    "eval": "Compare a trajectory, or every method, with the truth in a log.",
    "export": "Write a network as ONNX, or with its filter as C.",
    "bench": "Measure what the documentation claims.",
}
"""Name and summary of each verb, in the order of the help."""


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options that every verb has."""

    json: bool = False
    """Print the results as JSON rows and nothing else."""


@dataclass(frozen=True)
class Outcome:
    """What a verb has to say; the command line prints it."""

    rows: Sequence[Row]
    title: str = ""
    wrote: Path | None = None
    """The file or folder that now exists."""
    next: str = ""
    """The likely next command, ready to paste."""
    tables: Sequence[Table] = ()
    """For people instead of the rows, where there are any."""
    notes: Sequence[str] = ()
    """What the numbers mean, and what is missing: a line each, after the tables."""


def report_file(out: Path | None, verb: str) -> Path:
    """Where the report of a verb goes: a file that ends in .html, `report.html` in a folder, or a folder of its own."""
    if out is None:
        from gait.io.run_folder import new_folder

        return new_folder(Path("runs") / verb) / "report.html"
    if out.suffix.lower() == ".html":
        return out
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        from gait.errors import GaitError

        raise GaitError(f"cannot use {out}: {(error.strerror or str(error)).lower()}") from None
    return out / "report.html"
