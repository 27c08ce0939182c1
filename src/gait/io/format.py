"""What a file format is: one small class that knows its files, reads and writes them; and what comes of reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gait.arrays import AnyArray
from gait.documents import load_json
from gait.errors import GaitError, located
from gait.log import Log, Record, Trajectory
from gait.log.fields import refuse_unknown
from gait.read_options import ReadOptions

VERSION = 1
"""Version of the native layout; a file of a later one is refused with a word on upgrading."""

Kind = type[Log] | type[Trajectory]
UNKNOWN_ROBOT = "the file does not say which robot it is of, so {} is taken: --robot chooses another"
_RARE = ("description", "leg_names")
"""What a header has only where there is something to say."""
KINDS: dict[str, Kind] = {"log": Log, "trajectory": Trajectory}


@dataclass(frozen=True)
class StreamInfo:
    """One topic of a bag, or one group of another file, whether it was used or not."""

    name: str
    kind: str
    """Type of its messages, such as sensor_msgs/msg/Imu."""
    count: int
    rate: float
    """Hz; nan where it was not looked at."""
    used: str = ""
    """What for: imu, joints, targets, truth; empty if not at all."""


@dataclass
class Notes:
    """Filled while a file is read; every line is a sentence without its full stop."""

    lines: list[str] = field(default_factory=list)
    streams: list[StreamInfo] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    """What gait itself put into a bag beside the messages."""
    robot: str = ""
    """The robot that the file names, or whose makers' messages it holds, whatever the user says."""

    def say(self, line: str) -> None:
        """Tell the user; the same line twice is told once."""
        if line and line not in self.lines:
            self.lines.append(line)


@dataclass(frozen=True)
class Reading:
    """A record with all that there is to say about where it came from."""

    record: Log | Trajectory
    path: str
    notes: tuple[str, ...] = ()
    """What was guessed, mended or left out, a sentence each."""
    streams: tuple[StreamInfo, ...] = ()
    """What a bag, an HDF5 file or a foreign table holds; empty for files of gait."""
    robot: str = ""
    """The robot that the file names, or whose makers' messages it holds; empty if neither tells."""

    @property
    def log(self) -> Log:
        """The record, if it is a Log; otherwise an error that says so."""
        if not isinstance(self.record, Log):
            raise GaitError(f"{self.path} holds a Trajectory, not a Log: give a file with IMU and joint data")
        return self.record

    @property
    def trajectory(self) -> Trajectory:
        """The record, if it is a Trajectory; otherwise an error that says so."""
        if not isinstance(self.record, Trajectory):
            raise GaitError(f"{self.path} holds a Log, not a Trajectory: give the output of an estimator")
        return self.record


class Format(Protocol):
    """A file format. Add one to `gait.io.FORMATS` and every verb can read it."""

    name: str
    suffixes: tuple[str, ...]
    """File endings that ask for this format when writing."""

    def matches(self, head: bytes) -> bool:
        """Whether a file that begins like this is of the format."""

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log | Trajectory:
        """Read a file; anything wrong with it is a GaitError of one sentence, anything guessed goes to the notes."""

    def write(self, record: Record, path: Path) -> None:
        """Write a file, whole or not at all."""


def header(record: Record, **more: object) -> str:
    """One line of JSON: what the file holds, and everything beside the arrays."""
    kind = next(name for name, kind in KINDS.items() if isinstance(record, kind))
    about = {name: value for name, value in record.metadata().items() if name not in _RARE or value}
    return json.dumps({"gait": kind, "version": VERSION, **about, **more})


def parse_header(text: str, where: str) -> tuple[Kind, dict[str, Any]]:
    """The kind of record a header promises, and the rest of it as keyword arguments."""
    try:
        tree = load_json(text)
        kind, version = KINDS[tree.pop("gait")], tree.pop("version")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise GaitError(f"{where} has a header that gait did not write: convert the file again") from None
    if version != VERSION:
        raise GaitError(f"{where} has layout version {version}, this gait reads {VERSION}: upgrade gait")
    types = {"robot": str, "source": str, "leg_names": list, "joint_names": list, "rows": int, "description": str}
    for name, value in tree.items():
        if name not in (*kind.METADATA, "rows") or not isinstance(value, types[name]):
            raise GaitError(f"{where} has a header that gait did not write (at '{name}'): convert the file again")
    return kind, tree


def build(kind: Kind, arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any], where: str) -> Log | Trajectory:
    """Make the record from the parts of a file; what is wrong with them is said with the file's name."""
    with located(where):
        refuse_unknown(arrays, [one.name for one in kind.FIELDS], kind.KIND)
        given: dict[str, Any] = {**arrays, **metadata}
        return kind(**given)
