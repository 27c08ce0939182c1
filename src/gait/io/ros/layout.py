"""Where each number of a message lies, from its definition: read and write one message, or columns of many at once.

Messages of one shape (the same lengths of texts and lists) have every number at the same place. The definition is
walked once for each shape; the rest is indexing of arrays, a hundred times faster than object by object.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.ros.definitions import Fields, known

NS = 1_000_000_000
Paths = str | tuple[str, ...]
"""`imu.gyroscope`; a group such as `pose.position` stands for its numbers, `*` for every item of a list."""
Values = Mapping[Any, Any]
"""Numbers by `Paths`."""
Given = Mapping[str, str | int | Sequence[str]]
"""By path: texts, lists of texts, and the lengths of other lists."""

_DTYPES = {
    "bool": "u1", "byte": "u1", "char": "u1", "octet": "u1", "uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2",
    "uint32": "u4", "int32": "i4", "float32": "f4", "uint64": "u8", "int64": "i8", "float64": "f8",
}  # fmt: skip
_ALIGNMENT = {0: 8, 1: 8, 6: 4, 7: 4}
"""Encodings of DDS that are plain CDR, and the largest alignment in each; odd ones are little-endian."""
_TEXTS = ("string", "wstring")
_BASE, _NAME, _ARRAY, _SEQUENCE = 1, 2, 3, 4
_TRIES = 4
MOST_PARTS = 20_000
"""Numbers and lists of numbers in a message. The definition comes with the file, and may ask for any number of them."""
MOST_SHAPE = 1 << 18
"""Bytes that make the shape of a message."""
MOST_SHAPES = 500
"""Shapes among the messages of a topic; a robot sends a few."""


class Part(NamedTuple):
    """A number, or a list of numbers."""

    offset: int
    dtype: str
    length: int
    """How many numbers; -1 for a single one."""


@dataclass
class _Walk:
    """A walk along a definition: through a message, or making an empty one as it goes."""

    raw: bytearray | bytes
    """An array that grows is a message to be made."""
    types: Fields
    aligned: int
    """CDR aligns numbers to their size, up to this, and ends texts with a zero; 0 for packed bytes."""
    order: str = "<"
    at: int = 0
    given: Mapping[str, int | bytes] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shape: list[int] = field(default_factory=list)
    """Bytes that make the shape: lengths, and the texts of lists."""
    steps: int = 0

    def visit(self, name: str, path: str = "") -> None:
        if name not in self.types:
            raise GaitError(f"there is no definition of {name}")
        self.spend()
        for field_name, (kind, what) in self.types[name][1]:
            if field_name != "structure_needs_at_least_one_member":
                self.field(f"{path}{field_name}", int(kind), what)

    def field(self, path: str, kind: int, what: Any) -> None:
        if kind == _NAME:
            self.visit(str(what), f"{path}.")
        elif kind == _BASE and what[0] in _TEXTS:
            self.text(path)
        elif kind == _BASE:
            self.numbers(path, what[0], -1)
        else:
            (inner_kind, inner), count = what
            count = self.length(path, 0) if kind == _SEQUENCE else count
            if inner_kind == _BASE and inner[0] not in _TEXTS:
                self.numbers(path, inner[0], count)
            elif inner_kind == _BASE:
                start = self.at
                if count > MOST_PARTS:
                    raise GaitError("the message has too many parts")
                self.texts[path] = tuple(self.text(f"{path}.{i}") for i in range(count))
                if self.at - start > MOST_SHAPE:
                    raise GaitError("the message has too many parts")
                self.shape += range(start, self.at)
            else:
                for i in range(count):
                    self.field(f"{path}.{i}", int(inner_kind), inner)

    def spend(self) -> None:
        """Count a step: a message that has nothing in it takes no bytes, and yet may be listed billions of times."""
        self.steps += 1
        if self.steps > MOST_PARTS or len(self.shape) > MOST_SHAPE:
            raise GaitError("the message has too many parts")

    def numbers(self, path: str, name: str, count: int) -> None:
        self.spend()
        if name not in _DTYPES:
            raise GaitError(f"numbers of type {name} are not known")
        size = np.dtype(_DTYPES[name]).itemsize
        if count:
            self.align(size)
        self.parts[path] = Part(self.take(size * abs(count)), f"{self.order}{_DTYPES[name]}", count)

    def text(self, path: str) -> str:
        self.spend()
        size = self.length(path, 1)
        at = self.take(size)
        if isinstance(self.raw, bytearray):
            self.raw[at : at + size] = self.given.get(path, b"\0")  # type: ignore[assignment]
        return bytes(self.raw[at : at + size]).rstrip(b"\0").decode("utf-8", errors="replace")

    def length(self, path: str, usual: int) -> int:
        self.align(4)
        at = self.take(4)
        self.shape += range(at, at + 4)
        if isinstance(self.raw, bytearray):
            value = self.given.get(path, usual)
            struct.pack_into("<I", self.raw, at, len(value) if isinstance(value, bytes) else value)
        return int(struct.unpack_from(f"{self.order}I", self.raw, at)[0])

    def align(self, size: int) -> None:
        if self.aligned:
            # Counted from behind the four bytes that say how the rest is written.
            self.take(-(self.at - 4) % min(size, self.aligned))

    def take(self, size: int) -> int:
        """Go on by so many bytes, and say where they begin."""
        start = self.at
        self.at += size
        if isinstance(self.raw, bytearray):
            self.raw.extend(bytes(self.at - len(self.raw)))
        elif self.at > len(self.raw):
            raise GaitError("the message is too short")
        return start


class MessageLayout:
    """Where everything lies in messages of one type and shape."""

    def __init__(self, walk: _Walk) -> None:
        self.parts, self.texts, self.size = walk.parts, walk.texts, len(walk.raw)
        self.shape = np.array([*walk.shape, *([0, 1] if walk.aligned else [])], dtype=np.intp)
        """The bytes that are the same in all of them."""
        self._same = self._shape_of(walk.raw)
        self._columns: dict[Paths, tuple[AnyArray, np.dtype[Any], bool]] = {}

    @staticmethod
    def of(raw: bytes, name: str, types: Fields, packed: bool = False) -> MessageLayout:
        """The layout of a message.

        Args:
            raw: the message: CDR with the four bytes before it, or packed numbers.
            name: its type.
            types: definitions of it and of all that it holds.
            packed: bytes without alignment, as in ROS 1 and in a packed struct, little-endian.
        """
        walk = _Walk(raw, types, 0)
        if not packed:
            encoding = raw[1] if len(raw) >= 4 and raw[0] == 0 else 255
            if encoding not in _ALIGNMENT:
                raise GaitError(f"it is not in plain CDR but in encoding {encoding}: 0, 1, 6 or 7 are read")
            walk = _Walk(raw, types, _ALIGNMENT[encoding], "<" if encoding & 1 else ">", 4)
        try:
            walk.visit(name)
        except RecursionError:
            raise GaitError(f"the definition of {name} contains itself") from None
        # CDR may be filled up to a multiple of four; more left over means another version of the message.
        if len(raw) - walk.at > (0 if packed else 3):
            raise GaitError(f"it has {len(raw)} bytes where {walk.at} are due, so it is another version of {name}")
        return MessageLayout(walk)

    def fits(self, data: bytes) -> bool:
        """Whether a message has this shape."""
        return len(data) == self.size and self._shape_of(data) == self._same

    def count(self, path: str) -> int:
        """How many numbers a list has; -1 for a single number, 0 for what is not there."""
        return self.parts[path].length if path in self.parts else 0

    def has(self, paths: Paths) -> bool:
        """Whether there are such numbers."""
        return all(self._leaves(path) for path in ((paths,) if isinstance(paths, str) else paths))

    def stamp(self, data: bytes) -> int:
        """Stamp of the header of one message, ns; zero if it has none."""
        if "header.stamp.sec" not in self.parts:
            return 0
        part = self.parts["header.stamp.sec"]
        sec, nanosec = struct.unpack_from(f"{part.dtype[0]}iI", data, part.offset)
        return int(sec) * NS + int(nanosec)

    def read(self, data: bytes | AnyArray, paths: Paths) -> AnyArray:
        """Numbers of one message, or of many (n, size): (n,) for a single number, else (n, count)."""
        places, dtype, single = self._column(paths)
        raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        # A nan that signals is a nan.
        with np.errstate(invalid="ignore"):
            values = raw.take(places, axis=-1).view(dtype).astype(np.float64 if dtype.kind == "f" else np.int64)
        return np.asarray(values[..., 0] if single else values)

    def write(self, data: AnyArray, paths: Paths, values: Any) -> None:
        """Put numbers into one message (size,), or into many (n, size)."""
        places, dtype, single = self._column(paths)
        numbers = np.asarray(values).astype(dtype)
        data[..., places] = np.ascontiguousarray(numbers[..., None] if single else numbers).view(np.uint8)

    def _column(self, paths: Paths) -> tuple[AnyArray, np.dtype[Any], bool]:
        """Numbers of one type in the order of their paths: places of their bytes, and whether it is one and no list."""
        if paths not in self._columns:
            given = (paths,) if isinstance(paths, str) else paths
            parts = [self.parts[leaf] for path in given for leaf in self._leaves(path)]
            if not parts:
                raise GaitError(f"messages have no field {given[0]}: they are of a version that gait does not know")
            if len({part.dtype for part in parts}) > 1:
                raise GaitError(f"the numbers of {given[0]} are not of one type")
            dtype = np.dtype(parts[0].dtype)
            spans = [np.arange(part.offset, part.offset + dtype.itemsize * abs(part.length)) for part in parts]
            self._columns[paths] = np.concatenate(spans), dtype, len(parts) == 1 and parts[0].length < 0
        return self._columns[paths]

    def _shape_of(self, data: bytes | bytearray) -> bytes:
        return np.frombuffer(data, np.uint8).take(self.shape).tobytes()

    def _leaves(self, path: str) -> list[str]:
        if path in self.parts:
            return [path]
        pattern = re.compile(re.escape(path).replace(r"\*", r"\d+") + r"(\.\w+)?")
        return [leaf for leaf in self.parts if pattern.fullmatch(leaf)]


class Block(NamedTuple):
    """Messages of one shape."""

    rows: AnyArray
    """Their places among all messages (n,)."""
    data: AnyArray
    """Their bytes (n, size)."""
    layout: MessageLayout

    def read(self, paths: Paths) -> AnyArray:
        """Columns of numbers."""
        return self.layout.read(self.data, paths)


def blocks(messages: Sequence[bytes], name: str, types: Fields, packed: bool) -> tuple[list[Block], int, str]:
    """Sort messages by shape.

    Args:
        messages: as recorded.
        name: their type.
        types: definitions of it and of all that it holds.
        packed: ROS 1, not CDR.

    Returns:
        The blocks, how many messages are no messages of the type, and why the first of those is none.
    """
    sizes = np.array([len(message) for message in messages], dtype=np.int64)
    found: list[Block] = []
    bad, why = 0, ""
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        data = np.frombuffer(b"".join(messages[i] for i in rows.tolist()), dtype=np.uint8).reshape(len(rows), int(size))
        tries = _TRIES
        while len(rows):
            try:
                if len(found) >= MOST_SHAPES:
                    tries = 1
                    raise GaitError(f"they have more than {MOST_SHAPES} shapes")
                layout = MessageLayout.of(data[0].tobytes(), name, types, packed)
            except GaitError as error:
                tries -= 1
                # One message may be damaged; where several of a size are, all of them are something else.
                lost = 1 if tries else len(rows)
                bad, why = bad + lost, why or str(error)
                rows, data = rows[lost:], data[lost:]
                continue
            same = (data[:, layout.shape] == data[0, layout.shape]).all(axis=1)
            found.append(Block(rows[same], data[same], layout))
            rows, data = rows[~same], data[~same]
    return found, bad, why


class MessageWriter:
    """Writes messages of one type and shape: an empty one is made once, and numbers are put into copies of it."""

    def __init__(self, kind: str, given: Given | None = None, packed: bool = False) -> None:
        """Lay out a message.

        Args:
            kind: its type.
            given: texts and lengths of lists; empty by default.
            packed: as in `MessageLayout.of`.
        """
        flat: dict[str, int | bytes] = {}
        for path, value in (given or {}).items():
            if isinstance(value, int):
                flat[path] = value
            elif isinstance(value, str):
                flat[path] = value.encode() + b"\0"
            else:
                flat[path] = len(value)
                flat |= {f"{path}.{i}": text.encode() + b"\0" for i, text in enumerate(value)}
        raw = bytearray() if packed else bytearray(b"\x00\x01\x00\x00")
        walk = _Walk(raw, known(), 0 if packed else 8, at=len(raw), given=flat)
        walk.visit(kind)
        self.layout, self._blank = MessageLayout(walk), np.frombuffer(bytes(raw), np.uint8)
        self._stamps = [part.offset for path, part in walk.parts.items() if path.endswith("header.stamp.sec")]

    def encode(self, ns: int, values: Values) -> bytes:
        """One message with a stamp and numbers by path; the rest is zero."""
        raw = self._blank.copy()
        for offset in self._stamps:
            struct.pack_into("<iI", raw.data, offset, *divmod(ns, NS))
        for paths, numbers in values.items():
            self.layout.write(raw, paths, numbers)
        return raw.tobytes()

    def encode_all(self, ns: AnyArray, values: Values) -> AnyArray:
        """A message for each stamp (n, size), of numbers (n,) or (n, count)."""
        data = np.tile(self._blank, (len(ns), 1))
        for paths, numbers in ({"header.stamp.sec": ns // NS, "header.stamp.nanosec": ns % NS} | dict(values)).items():
            self.layout.write(data, paths, numbers)
        return data
