"""Files in and out. A format is one small class; which one a file is, its content tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gait.errors import GaitError, os_errors
from gait.io.csv import Csv
from gait.io.csv import read_csv as read_csv
from gait.io.format import Format, Notes
from gait.io.format import Reading as Reading
from gait.io.grandtour import GrandTour
from gait.io.hdf5 import Hdf5
from gait.io.npz import Npz
from gait.io.ros.bag import Bag
from gait.io.signals import Signal, with_truth
from gait.io.storage import is_remote, local_copy, location
from gait.io.tum import Tum
from gait.log import Log, Record, Trajectory
from gait.read_options import ReadOptions as ReadOptions

FORMATS: tuple[Format, ...] = (Npz(), GrandTour(), Bag(), Hdf5(), Csv(), Tum())
"""Every format, in the order in which a file is offered to them."""

_HEAD = 65536
_POSES = (".tum", ".txt", ".csv", ".npz")
"""Endings of files that may be given as ground truth; anything else is a topic, or a name within the log."""


def open_log(path: str | Path, options: ReadOptions | None = None) -> Log:
    """Read a Log from a file of any known format.

    Args:
        path: a native `.npz`, a bag (ROS 1, ROS 2, MCAP), a CSV or an HDF5 file, or a mission of GrandTour;
            see `docs/logs.md`.
        options: what to say where guessing is not enough; see `gait info` for what was guessed.

    Raises:
        GaitError: if there is no such file, or it holds something else.
    """
    return read(path, options).log


def open_trajectory(path: str | Path) -> Trajectory:
    """Read a Trajectory from a native `.npz`, a CSV or a TUM file."""
    return read(path).trajectory


def open_any(path: str | Path) -> Log | Trajectory:
    """Read whatever a file holds."""
    return read(path).record


def read(path: str | Path, options: ReadOptions | None = None, notes: Notes | None = None) -> Reading:
    """Read whatever a file holds, with notes on what was guessed.

    Args:
        path: a file of any format in `FORMATS`.
        options: what to say where guessing is not enough.
        notes: is filled on the way, and so holds the topics of a bag even if it cannot be read.
    """
    if is_remote(path):
        with local_copy(path) as here:
            return replace(read(here, options, notes), path=location(path))
    path, options, notes = Path(path), options or ReadOptions(), notes or Notes()
    head = b"" if path.is_dir() else _head(path)
    for candidate in FORMATS:
        if _holds(candidate, path) if path.is_dir() else candidate.matches(head):
            other = _truth_file(options)
            record = candidate.read(path, options if other is None else replace(options, truth=None), notes)
            if other is not None and isinstance(record, Log):
                record = with_truth(record, _truth_of(other), options, notes)
            return Reading(record, str(path), tuple(notes.lines), tuple(notes.streams), notes.robot)
    known = ", ".join(candidate.name for candidate in FORMATS)
    raise GaitError(f"{path} is in no format that gait knows ({known}): see docs/log.md for how to convert it")


def _truth_file(options: ReadOptions) -> Path | None:
    """The file that is given as ground truth, where that is no topic."""
    path = Path(options.truth) if options.truth else None
    return path if path is not None and path.suffix.lower() in _POSES and path.is_file() else None


def _truth_of(path: Path) -> Signal:
    """Poses of a trajectory; velocities too, unless they are but differences of the positions."""
    found = read(path).trajectory
    names = ("pos_w", "quat_wb_wxyz") if Tum().matches(_head(path)) else ("pos_w", "quat_wb_wxyz", "vel_w")
    return Signal(path.name, found.t, {name: found.need(name) for name in names})


def _holds(candidate: Format, folder: Path) -> bool:
    return candidate.holds(folder) if isinstance(candidate, GrandTour) else isinstance(candidate, Bag)


def save(record: Record, path: str | Path, compress: bool = False) -> None:
    """Write a Log or a Trajectory in the format that the ending of the file's name asks for.

    Args:
        record: what to write.
        path: the file; `.npz` and `.csv` hold everything, `.mcap` all of a Log, `.tum` (or `.txt`) poses only.
        compress: make an `.npz` or `.mcap` smaller; no other format can.
    """
    chosen, path = format_for(path), Path(path)
    if not compress:
        chosen.write(record, path)
    elif isinstance(chosen, Npz | Bag):
        chosen.write(record, path, compress=True)
    else:
        raise GaitError(f"cannot compress {path}: only .npz and .mcap files can be, end its name with one of them")


def format_for(path: str | Path) -> Format:
    """The format that the ending of a file's name asks for."""
    path = Path(path)
    for candidate in FORMATS:
        if path.suffix.lower() in candidate.suffixes:
            return candidate
    endings = ", ".join(suffix for candidate in FORMATS for suffix in candidate.suffixes)
    raise GaitError(f"cannot tell the format of {path} from its name: end it with one of {endings}")


def _head(path: Path) -> bytes:
    with os_errors(f"cannot read {path}"):
        if path.exists() and not path.is_file():
            raise GaitError(f"{path} is not a regular file: save it to one first")
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD)
        except FileNotFoundError:
            raise GaitError(f"there is no file {path}: check the name") from None
    if not head.strip():
        raise GaitError(f"{path} is empty: record or copy it again")
    return head
