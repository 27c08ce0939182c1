"""`gait convert`: from one format to another, with a change of rate, order or span on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, quote, refuse_overwriting
from gait.read_options import ReadOptions


@dataclass(frozen=True)
class ConvertOptions(Common, ReadOptions):
    """Write a log or a trajectory in the format that the new name ends with: .npz, .mcap, .csv or .tum."""

    input: Positional[Path]
    """A log (npz, ROS bag, MCAP, CSV, HDF5) or a trajectory (npz, csv, tum)."""
    output: Positional[Path]
    """The file to write. TUM holds poses only; of a log, those of its ground truth."""
    # Not `float | None`: for that tyro imports a type checker, which doubles the time of a help.
    start: Optional[float] = None  # noqa: UP045
    """Leave out the rows of a log before this time (s)."""
    end: Optional[float] = None  # noqa: UP045
    """Leave out the rows of a log from this time on (s)."""
    rate: Optional[float] = None  # noqa: UP045
    """Resample a log to this rate (Hz)."""
    max_gap: float = 0.1
    """A longer pause (s) in a log to be resampled is an error."""
    force: bool = False
    """Write over a file that is there."""


def run(options: ConvertOptions) -> Outcome:
    """Read, change, write."""
    from gait.errors import GaitError
    from gait.io import format_for, open_any, save
    from gait.io.checked import read_checked, warnings_of
    from gait.io.tum import Tum
    from gait.log import Log
    from gait.report import describe

    refuse_overwriting([options.output], options.force)
    found, findings = read_checked(options.input, options)
    record = found.record
    if isinstance(record, Log):
        record = record.slice(options.start, options.end)
        if options.rate is not None:
            record = record.resample(options.rate, options.max_gap)
    elif (options.robot, options.start, options.end, options.rate) != (None, None, None, None):
        raise GaitError(f"{options.input} holds a Trajectory: --robot, --start, --end and --rate are for logs only")
    save(record, options.output)
    if isinstance(record, Log) and isinstance(format_for(options.output), Tum):
        # Less than the log went into the file: show what is there.
        record = open_any(options.output)
    return Outcome(
        describe.overview(record),
        title=f"{record.KIND} {options.output}",
        notes=[*(f"- {note}" for note in found.notes), *warnings_of(findings, options)],
        wrote=options.output,
        next=f"gait info {quote(options.output)}",
    )
