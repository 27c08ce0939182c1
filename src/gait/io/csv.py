"""CSV: one column for each number, named `field.component`, such as `gyro.x`, `q.FR_hip_joint`, `foot_vel_w.FR.z`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.fields import AXES, Field, refuse_unknown
from gait.io import clock, table
from gait.io.atomic import atomic_path
from gait.io.format import build, header, parse_header
from gait.log import Log
from gait.record import Record
from gait.trajectory import Trajectory

_MARK = "# gait: "


class Csv:
    """Text that any program reads. Values have all their digits, so what is read equals what was written."""

    name = "csv"
    suffixes: tuple[str, ...] = (".csv",)

    def matches(self, head: bytes) -> bool:
        """Text whose first line that is no comment names columns with commas between them."""
        try:
            lines = head.decode("utf-8-sig", errors="strict").splitlines()
        except UnicodeDecodeError as error:
            # The head may end within a letter; anything earlier means that it is no text.
            if error.start < len(head) - 4:
                return False
            lines = head[: error.start].decode("utf-8-sig").splitlines()
        first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
        return "," in first and "\0" not in first

    def read(self, path: Path) -> Log | Trajectory:
        """Read a Log or a Trajectory; see `read_csv` for files with other column names."""
        return read_csv(path)

    def write(self, record: Log | Trajectory, path: Path) -> None:
        """Write a header for gait in a comment, the names of the columns, and a line for each row."""
        names, columns = _flatten(record)
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(f"{_MARK}{header(record, rows=len(record))}\n")
            file.write(",".join(names) + "\n")
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
    path = Path(path)
    lines = table.read_lines(path)
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if start is None:
        raise GaitError(f"{path} has no line that names its columns: see docs/log.md for the names")
    names = [name.strip() for name in lines[start].split(",")]
    values = table.parse(path, lines, start + 1, _unique(names, path), ",")
    renamed = _rename(values, columns or {}, path)
    note = next((line[len(_MARK) :] for line in lines[:start] if line.startswith(_MARK)), None)
    if note is None:
        kind, metadata = _guess(list(renamed), robot)
    else:
        kind, metadata = parse_header(note, str(path))
        rows, found = metadata.pop("rows", None), len(next(iter(values.values())))
        if rows is not None and rows != found:
            raise GaitError(f"{path} is cut short: it has {found} of {rows} rows, copy or record it again")
    return build(kind, _fold(kind, renamed, metadata, path), metadata, str(path))


def _flatten(record: Record) -> tuple[list[str], list[list[Any]]]:
    names, columns = [], []
    for name, stamps in clock.pack(record.t).items():
        names.append(name)
        columns.append(stamps.tolist())
    arrays = record.arrays()
    for field in record.FIELDS[1:]:
        if field.name in arrays:
            flat = arrays[field.name].reshape(len(record), -1)
            if field.dtype != "float64":
                flat = flat.astype(np.int64)
            names += field.columns(record.labels)
            columns += flat.T.tolist()
    return names, columns


def _fold(
    kind: type[Log] | type[Trajectory], columns: dict[str, AnyArray], metadata: Mapping[str, Any], path: Path
) -> dict[str, AnyArray]:
    """Put the columns together into the fields of the kind; every column must belong to one and none may lack."""
    arrays = {"t": clock.unpack(columns, str(path))}
    labels = {**AXES, "leg": metadata.get("leg_names", ()), "joint": metadata.get("joint_names", ())}
    known = [name for field in kind.FIELDS for name in field.columns(labels)]
    refuse_unknown(columns, known, f"{path}: the {kind.KIND}")
    for field in kind.FIELDS[1:]:
        names = field.columns(labels)
        missing = [name for name in names if name not in columns]
        if len(missing) == len(names):
            continue
        if missing:
            raise GaitError(f"{path} has some columns of {field.name} but not {missing[0]}: add it")
        arrays[field.name] = np.stack([columns[name] for name in names], axis=1).reshape(
            -1, *(len(labels[axis]) for axis in field.axes)
        )
    return arrays


def _guess(names: Sequence[str], robot: str) -> tuple[type[Log] | type[Trajectory], dict[str, Any]]:
    """Kind and metadata of a file without our header, from the names of its columns."""
    if not any(name.startswith(("gyro.", "accel.", "q.", "dq.")) for name in names):
        return Trajectory, {}
    metadata: dict[str, Any] = {"robot": robot}
    joints = [name.removeprefix("q.") for name in names if name.startswith("q.")]
    metadata["joint_names"] = joints
    legs = next(filter(None, (list(_legs(names, field)) for field in Log.FIELDS if "leg" in field.axes)), None)
    if legs is None:
        from gait.robots import Robot

        legs = list(Robot.load(robot).leg_names)
    metadata["leg_names"] = legs
    return Log, metadata


def _legs(names: Sequence[str], field: Field) -> Iterator[str]:
    """The legs that columns of a field name, in their order."""
    inner = "".join(f".{AXES[axis][0]}" for axis in field.axes[1:])
    for name in names:
        if name.startswith(f"{field.name}.") and name.endswith(inner):
            yield name[len(field.name) + 1 : len(name) - len(inner)]


def _unique(names: Sequence[str], path: Path) -> Sequence[str]:
    for i, name in enumerate(names):
        if not name or name in names[:i]:
            problem = f"'{name}' twice" if name else "a column without a name"
            raise GaitError(f"{path} has {problem}: every column needs its own name")
    return names


def _rename(values: dict[str, AnyArray], columns: Mapping[str, str | None], path: Path) -> dict[str, AnyArray]:
    refuse_unknown(columns, values, f"{path}")
    renamed: dict[str, AnyArray] = {}
    for name, value in values.items():
        ours = columns.get(name, name)
        if ours is not None:
            if ours in renamed:
                raise GaitError(f"{path} would have the column {ours} twice: leave one out with None")
            renamed[ours] = value
    return renamed
