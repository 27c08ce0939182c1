"""CSV: one column for each number, named `field.component`, such as `gyro.x`, `q.FR_hip_joint`, `foot_vel_w.FR.z`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io import clock
from gait.io import text_numbers as table
from gait.io.atomic import atomic_path
from gait.io.foreign import read_foreign
from gait.io.format import UNKNOWN_ROBOT, Kind, Notes, build, header, parse_header
from gait.io.native import as_asked
from gait.log import Log, Record, Trajectory
from gait.log.fields import AXES, Field, Labels, refuse_unknown
from gait.read_options import ReadOptions
from gait.robot import Robot

MOST_COLUMNS = 10_000
_ROWS = 4096
"""Rows that are written at once."""
_MARK = "# gait: "
_TIME = ("t", "t_ns")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_FIELDS = {field.name for kind in (Log, Trajectory) for field in kind.FIELDS[1:]}
_WANTED = "comma-separated UTF-8 with points in its numbers"


class Csv:
    """Text that any program reads. Values have all their digits, so what is read equals what was written."""

    name = "csv"
    suffixes: tuple[str, ...] = (".csv",)

    def matches(self, head: bytes) -> bool:
        """Text whose first line that is no comment names columns, with commas or the like between them."""
        first = table.first_line(head)
        if first is None or "," in first:
            return first is not None
        # Other separators are ours only to say so; numbers with tabs between them may be a trajectory.
        names = first.split(_separator(first))
        return len(names) > 1 and any(name.strip() and not table.is_number(name) for name in names)

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log | Trajectory:
        """Read a Log or a Trajectory; a table from elsewhere by a map of its columns, or by what their names say."""
        lines = table.read_lines(path, _WANTED)
        start = _first(path, lines)
        if options.columns is None and not _is_foreign(lines, start):
            says = any(line.startswith(_MARK) for line in lines[:start])
            record = _read(path, lines, {}, "go1")
            if says and isinstance(record, Log):
                notes.robot = record.robot
            elif isinstance(record, Log) and options.robot is None:
                notes.say(UNKNOWN_ROBOT.format(record.robot))
            return as_asked(record, options, notes, path)
        return read_foreign(path, lines, start, options, notes)

    def write(self, record: Record, path: Path) -> None:
        """Write a header for gait in a comment, the names of the columns, and a line for each row."""
        names, blocks = _flatten(record)
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{_MARK}{header(record, rows=len(record))}\n")
            file.write(",".join(names) + "\n")
            for start in range(0, len(record), _ROWS):
                # As Python's own numbers, they take several times the room.
                columns = [one for block in blocks for one in block[start : start + _ROWS].T.tolist()]
                # Python writes the shortest text that gives the same float64 back.
                file.writelines(",".join(map(repr, row)) + "\n" for row in zip(*columns, strict=True))


def read_csv(
    path: str | Path, *, columns: Mapping[str, str | None] | None = None, robot: str = "go1"
) -> Log | Trajectory:
    """Read a CSV file, from gait or from elsewhere.

    Args:
        path: the file.
        columns: for files with other names, the gait name of each of theirs, as in `{"imu_wx": "gyro.x"}`;
            None for a column to leave out.
        robot: the robot's name, for files that do not say.
    """
    return _read(Path(path), table.read_lines(Path(path), _WANTED), columns or {}, robot)


def _read(path: Path, lines: list[str], columns: Mapping[str, str | None], robot: str) -> Log | Trajectory:
    """The record of a file's lines, which are used up: the numbers take as much room as they did."""
    start = _first(path, lines)
    names = _rename([name.strip() for name in lines[start].split(",")], columns, path)
    kept = [name for name in names if name is not None]
    note = next((line[len(_MARK) :] for line in lines[:start] if line.startswith(_MARK)), None)
    kind, metadata = _guess(kept, robot, path) if note is None else parse_header(note, str(path))
    rows = metadata.pop("rows", None)
    if rows is not None and not _whole_lines(path):
        raise GaitError(f"{path} is cut short in its last line: copy or export it again")
    labels = {**AXES, "leg": metadata.get("leg_names", ()), "joint": metadata.get("joint_names", ())}
    present = _present(kind, labels, kept, path)

    values = table.parse(path, lines, start + 1, names, ",")
    lines.clear()
    found = len(values[kept[0]])
    if rows not in (None, found):
        raise GaitError(f"{path} has {found} rows but was written with {rows}: copy or export it again")
    arrays = {"t": clock.unpack({name: values[name] for name in _TIME if name in values}, str(path))}
    for field in present:
        flat = np.column_stack([values[name] for name in field.columns(labels)])
        arrays[field.name] = flat.reshape(found, *(len(labels[axis]) for axis in field.axes))
    return build(kind, arrays, metadata, str(path))


def _whole_lines(path: Path) -> bool:
    """Whether the last line of a file has an end."""
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _first(path: Path, lines: Sequence[str]) -> int:
    """The line that names the columns."""
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if start is None:
        raise GaitError(f"{path} has no line that names its columns: see docs/log.md for the names")
    if all(table.is_number(name) for name in lines[start].split(_separator(lines[start]))):
        raise GaitError(f"{path} begins with numbers: its first line must name the columns, see docs/logs.md for names")
    if lines[start].count(",") > MOST_COLUMNS:
        raise GaitError(f"{path} has more than {MOST_COLUMNS} columns: it is damaged, or another kind of file")
    separator = _separator(lines[start])
    if separator != ",":
        raise GaitError(f"{path} has {_SEPARATORS[separator]} between its columns: save it as {_WANTED}")
    return start


def _is_foreign(lines: Sequence[str], start: int) -> bool:
    """Whether a table has names of its own for most of what a Log needs, and numbers below them."""
    below = any(line.strip() and not line.startswith("#") for line in lines[start + 1 :])
    if not below or any(line.startswith(_MARK) for line in lines[:start]):
        return False
    names = [name.strip().strip('"') for name in lines[start].split(",")]
    # A file with gait's names means them; a misspelled one among them is reported.
    return not _stems(names) & _FIELDS


def _stems(names: Sequence[str]) -> set[str]:
    """The fields that columns speak of."""
    return {name.split(".", 1)[0] for name in names}


def _separator(line: str) -> str:
    """What stands between the names in the line that names the columns: what it has most of."""
    return max(_SEPARATORS, key=line.count)


def _flatten(record: Record) -> tuple[list[str], list[AnyArray]]:
    """Names of all columns, and their values (N, k) field by field."""
    stamps = clock.pack(record.t)
    names, blocks = list(stamps), [one[:, None] for one in stamps.values()]
    arrays: dict[str, AnyArray] = record.arrays()
    for field in record.FIELDS[1:]:
        if field.name in arrays:
            flat = arrays[field.name].reshape(len(record), -1)
            names += field.columns(record.labels)
            blocks.append(flat if field.dtype == "float64" else flat.astype(np.int64))
    return names, blocks


def _rename(names: Sequence[str], columns: Mapping[str, str | None], path: Path) -> list[str | None]:
    """Our names for the columns, each its own; None for those to leave out."""
    refuse_unknown(columns, names, str(path), "column")
    ours = [columns.get(name, name) for name in names]
    seen: set[str] = set()
    for name in ours:
        if name == "" or name in seen:
            problem = f"the column '{name}' twice" if name else "a column without a name"
            raise GaitError(f"{path} has {problem}: every column needs its own name")
        seen |= {name} if name is not None else set()
    return ours


def _present(kind: Kind, labels: Labels, names: Sequence[str], path: Path) -> list[Field]:
    """The fields that the columns make up; every column must belong to one, and none of a field's may lack."""
    known = [*_TIME, *(name for field in kind.FIELDS[1:] for name in field.columns(labels))]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            rename = f"rename it to {near[0]}" if near else "rename it as docs/log.md says"
            raise GaitError(
                f"{path}: a {kind.KIND} has no column '{name}': {rename}, remove it, or leave it out in Python with"
                f' gait.io.read_csv(path, columns={{"{name}": None}})'
            )
    present = []
    for field in kind.FIELDS[1:]:
        columns = field.columns(labels)
        missing = [name for name in columns if name not in names]
        if columns and not missing:
            present.append(field)
        elif len(missing) < len(columns):
            raise GaitError(f"{path} has some columns of {field.name} but not {missing[0]}: add it")
    return present


def _guess(names: Sequence[str], robot: str, path: Path) -> tuple[Kind, dict[str, Any]]:
    """Kind and metadata of a file without our header, from the names of its columns."""
    stems = _stems(names)
    if not stems & _FIELDS:
        raise GaitError(
            f"{path} has none of gait's columns, such as gyro.x: rename them, or give gait.io.read_csv a map of names"
        )
    if not stems & {field.name for field in Log.FIELDS[1:] if field.required}:
        per_leg = (_legs(names, field) for field in Trajectory.FIELDS if "leg" in field.axes)
        return Trajectory, {"leg_names": next(filter(None, per_leg), [])}
    joints = [name.removeprefix("q.") for name in names if name.startswith("q.")]
    per_leg = (_legs(names, field) for field in Log.FIELDS if "leg" in field.axes)
    legs = next(filter(None, per_leg), None) or list(Robot.load(robot).leg_names)
    return Log, {"robot": robot, "leg_names": legs, "joint_names": joints}


def _legs(names: Sequence[str], field: Field) -> list[str]:
    """The legs that the columns of a field name, in their order."""
    prefix, inner = f"{field.name}.", "".join(f".{AXES[axis][0]}" for axis in field.axes[1:])
    mine = (name for name in names if name.startswith(prefix) and name.endswith(inner))
    return [name[len(prefix) : len(name) - len(inner)] for name in mine]
