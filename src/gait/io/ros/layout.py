"""Where each number of a message lies, so that numpy reads a column of many messages at once.

A message of a given shape (the same lengths of its strings and lists) has every number at the same place. The
definition is walked once for each shape; the rest is array views, a hundred times faster than object by object.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gait.arrays import AnyArray
from gait.io.ros.definitions import Fields

_DTYPES = {
    "bool": "u1", "byte": "u1", "char": "u1", "octet": "u1", "uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2",
    "uint32": "u4", "int32": "i4", "float32": "f4", "uint64": "u8", "int64": "i8", "float64": "f8",
}  # fmt: skip
_TRIES = 4
_BASE, _NAME, _ARRAY, _SEQUENCE = 1, 2, 3, 4


class LayoutError(Exception):
    """The bytes are not a message of this type."""


@dataclass(frozen=True)
class Part:
    """One number, list of numbers or text in a message."""

    offset: int
    dtype: str
    count: int
    """How many numbers; -1 for a single one. Of a text, its bytes."""


@dataclass
class _Walk:
    """The walk through one message."""

    raw: bytes
    types: Fields
    aligned: bool
    """CDR aligns numbers to their size and ends texts with a zero; ROS 1 does neither."""
    at: int
    order: str
    parts: dict[str, Part] = field(default_factory=dict)
    shape: list[int] = field(default_factory=list)
    """Offsets of the lengths, which make the shape."""

    def visit(self, name: str, path: str) -> None:
        if name not in self.types:
            raise LayoutError(f"there is no definition of {name}")
        for field_name, (kind, what) in self.types[name][1]:
            if field_name != "structure_needs_at_least_one_member":
                self.field(f"{path}{field_name}", int(kind), what)

    def field(self, path: str, kind: int, what: Any) -> None:
        if kind == _BASE:
            self.base(path, what[0], -1)
        elif kind == _NAME:
            self.visit(str(what), f"{path}.")
        else:
            (inner_kind, inner), count = what
            count = self.length() if kind == _SEQUENCE else count
            if count > len(self.raw):
                raise LayoutError("a list is longer than the message")
            if inner_kind == _BASE and inner[0] not in ("string", "wstring"):
                self.base(path, inner[0], count)
            else:
                for i in range(count):
                    self.field(f"{path}.{i}", int(inner_kind), inner)
                self.parts[f"{path}.#"] = Part(0, "", count)

    def base(self, path: str, name: str, count: int) -> None:
        if name in ("string", "wstring"):
            size = self.length()
            self.parts[path] = Part(self.at, "S", size)
            self.at += size
        elif name not in _DTYPES:
            raise LayoutError(f"numbers of type {name} are not known")
        else:
            dtype = np.dtype(_DTYPES[name])
            if count:
                self.align(dtype.itemsize)
            self.parts[path] = Part(self.at, f"{self.order}{dtype.str[1:]}", count)
            self.at += dtype.itemsize * (1 if count < 0 else count)
        if self.at > len(self.raw):
            raise LayoutError("the message is too short")

    def length(self) -> int:
        self.align(4)
        if self.at + 4 > len(self.raw):
            raise LayoutError("the message is too short")
        self.shape.append(self.at)
        (value,) = struct.unpack_from(f"{self.order}I", self.raw, self.at)
        self.at += 4
        return int(value)

    def align(self, size: int) -> None:
        if self.aligned:
            # Counted from behind the four bytes that say how the rest is written.
            self.at += -(self.at - 4) % size


@dataclass(frozen=True)
class Block:
    """Messages of one shape."""

    rows: AnyArray
    """Their places among all messages (n,)."""
    data: AnyArray
    """Their bytes (n, size)."""
    parts: dict[str, Part]

    def has(self, path: str) -> bool:
        """Whether messages of this shape have such a field."""
        return path in self.parts

    def array(self, path: str) -> AnyArray:
        """A column as float64 or int64: (n,) for single numbers, (n, count) for lists."""
        part = self.parts[path]
        dtype = np.dtype(part.dtype)
        width = dtype.itemsize * (1 if part.count < 0 else part.count)
        flat = np.ascontiguousarray(self.data[:, part.offset : part.offset + width])
        values = flat.view(dtype) if width else np.empty((len(flat), 0), dtype)
        values = values.astype(np.float64 if dtype.kind == "f" else np.int64)
        return values[:, 0] if part.count < 0 else values

    def stack(self, *paths: str) -> AnyArray:
        """Single numbers side by side (n, len(paths))."""
        return np.stack([self.array(path) for path in paths], axis=1)

    def text(self, path: str) -> str:
        """A text of the first message."""
        part = self.parts[path]
        raw = self.data[0, part.offset : part.offset + part.count].tobytes()
        return raw.rstrip(b"\0").decode("utf-8", errors="replace")

    def texts(self, path: str) -> list[str]:
        """A list of texts of the first message."""
        return [self.text(f"{path}.{i}") for i in range(self.parts[f"{path}.#"].count)]

    def split(self, path: str) -> list[Block]:
        """The same messages, apart by the texts of a list: one block for each."""
        parts = [self.parts[f"{path}.{i}"] for i in range(self.parts[f"{path}.#"].count)]
        if not parts:
            return [self]
        first, last = parts[0], parts[-1]
        texts = np.ascontiguousarray(self.data[:, first.offset : last.offset + last.count])
        _, which = np.unique(texts.view(f"V{texts.shape[1]}").ravel(), return_inverse=True)
        return [Block(self.rows[which == k], self.data[which == k], self.parts) for k in range(which.max() + 1)]


def blocks(messages: Sequence[bytes], name: str, types: Fields, aligned: bool) -> tuple[list[Block], int, str]:
    """Sort messages by shape.

    Args:
        messages: as recorded.
        name: their type.
        types: definitions of it and of all that it holds.
        aligned: CDR (ROS 2) or not (ROS 1).

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
            raw = data[0].tobytes()
            try:
                walk = _walk(raw, name, types, aligned)
            except LayoutError as error:
                tries -= 1
                # One message may be damaged; where several of a size are, all of them are something else.
                lost = 1 if tries else len(rows)
                bad, why = bad + lost, why or str(error)
                rows, data = rows[lost:], data[lost:]
                continue
            lengths = [at + k for at in walk.shape for k in range(4)] + ([0, 1] if aligned else [])
            same = (data[:, lengths] == data[0, lengths]).all(axis=1)
            found.append(Block(rows[same], data[same], walk.parts))
            rows, data = rows[~same], data[~same]
    return found, bad, why


def _walk(raw: bytes, name: str, types: Fields, aligned: bool) -> _Walk:
    order = "<"
    if aligned:
        if len(raw) < 4 or raw[0] != 0 or raw[1] > 1:
            raise LayoutError("it is not written in plain CDR")
        order = "<" if raw[1] else ">"
    walk = _Walk(raw, types, aligned, 4 if aligned else 0, order)
    walk.visit(name, "")
    # CDR may be filled up to a multiple of four; more left over means another version of the message.
    if not 0 <= len(raw) - walk.at <= (3 if aligned else 0):
        raise LayoutError(f"it has {len(raw)} bytes where {walk.at} are due, so it is another version of {name}")
    return walk


def blank(name: str, types: Fields, given: Mapping[str, Any]) -> tuple[bytes, dict[str, Part]]:
    """A message in CDR with zeros for numbers, and where each of them goes.

    Args:
        name: its type.
        types: definitions of it and of all that it holds.
        given: texts by path, lists of texts by path, and the lengths of lists of numbers by path.
    """
    out = bytearray(b"\x00\x01\x00\x00")

    def align(size: int) -> None:
        out.extend(b"\0" * (-(len(out) - 4) % size))

    def number(value: int) -> None:
        align(4)
        out.extend(struct.pack("<I", value))

    def put(path: str, kind: int, what: Any) -> None:
        if kind == _NAME:
            fill(str(what), f"{path}.")
        elif kind == _BASE and what[0] == "string":
            raw = str(given.get(path, "")).encode() + b"\0"
            number(len(raw))
            out.extend(raw)
        elif kind == _BASE:
            size = np.dtype(_DTYPES[what[0]]).itemsize
            align(size)
            out.extend(bytes(size))
        else:
            (inner_kind, inner), count = what
            texts = given.get(path, 0 if kind == _SEQUENCE else count)
            count = texts if isinstance(texts, int) else len(texts)
            if kind == _SEQUENCE:
                number(count)
            for i in range(count):
                if not isinstance(texts, int):
                    raw = str(texts[i]).encode() + b"\0"
                    number(len(raw))
                    out.extend(raw)
                else:
                    put(f"{path}.{i}", int(inner_kind), inner)

    def fill(name: str, path: str) -> None:
        for field_name, (kind, what) in types[name][1]:
            put(f"{path}{field_name}", int(kind), what)

    fill(name, "")
    message = bytes(out)
    return message, _walk(message, name, types, aligned=True).parts
