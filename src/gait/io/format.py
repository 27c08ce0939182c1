"""What a file format is: one small class that knows its files, reads them and writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from gait.arrays import AnyArray
from gait.errors import GaitError, located
from gait.io.reading import Notes
from gait.log import Log, Record, Trajectory
from gait.log.fields import refuse_unknown
from gait.read_options import ReadOptions

VERSION = 1
"""Version of the native layout; a file of a later one is refused with a word on upgrading."""

KINDS: dict[str, type[Log] | type[Trajectory]] = {"log": Log, "trajectory": Trajectory}


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
    return json.dumps({"gait": kind, "version": VERSION, **record.metadata(), **more})


def parse_header(text: str, where: str) -> tuple[type[Log] | type[Trajectory], dict[str, Any]]:
    """The kind of record a header promises, and the rest of it as keyword arguments."""
    try:
        tree = json.loads(text)
        kind, version = KINDS[tree.pop("gait")], tree.pop("version")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise GaitError(f"{where} has a header that gait did not write: convert the file again") from None
    if version != VERSION:
        raise GaitError(f"{where} has layout version {version}, this gait reads {VERSION}: upgrade gait")
    types = {"robot": str, "source": str, "leg_names": list, "joint_names": list, "rows": int}
    for name, value in tree.items():
        if name not in (*kind.METADATA, "rows") or not isinstance(value, types[name]):
            raise GaitError(f"{where} has a header that gait did not write (at '{name}'): convert the file again")
    return kind, tree


def build(
    kind: type[Log] | type[Trajectory], arrays: Mapping[str, AnyArray], metadata: Mapping[str, Any], where: str
) -> Log | Trajectory:
    """Make the record from the parts of a file; what is wrong with them is said with the file's name."""
    with located(where):
        refuse_unknown(arrays, [field.name for field in kind.FIELDS], kind.KIND)
        given: dict[str, Any] = {**arrays, **metadata}
        return kind(**given)


def in_order(record: Log | Trajectory, options: ReadOptions) -> Log | Trajectory:
    """A Log with its joints in the order of the robot that the options name, if they name one."""
    return record.reorder(options.robot) if isinstance(record, Log) and options.robot is not None else record
