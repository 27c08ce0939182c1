"""The records of MCAP files from front to back. The library parses them; here every length is held against the bytes
that are left, before anything is read."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from mmap import mmap
from typing import Any, NamedTuple

from gait.io.limits import Budget, UnpackError, unpack

_HEAD = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<HIQQ")
_MAGIC = 8
_SCHEMA, _CHANNEL, _MESSAGE_KIND, _CHUNK, _METADATA, _DATA_END = 3, 4, 5, 6, 12, 15


class RecordError(ValueError):
    """A record that is cut short or is none."""


class Stamped(NamedTuple):
    """A message as it was recorded."""

    channel: int
    ns: int
    data: bytes


class Damaged(NamedTuple):
    """In the place of a chunk that cannot be read."""

    words: str


def mcap_records(stream: mmap, budget: Budget) -> Iterator[Any]:
    """Schemas, channels and metadata (records of the library), messages (`Stamped`) and chunks that are `Damaged`.

    Args:
        stream: a file.
        budget: pays for what chunks unpack to.

    Raises:
        RecordError: where the file is damaged or cut short; what came before is good.
    """
    for kind, body in _walk(stream, _MAGIC):
        if kind == _DATA_END:
            # After this only the index follows.
            return
        if kind != _CHUNK:
            yield from _parsed(kind, body)
            continue
        try:
            data = _content(body, budget)
        except (UnpackError, RecordError):
            yield Damaged("a damaged chunk was left out")
            continue
        try:
            for inner, part in _walk(data, 0):
                yield from _parsed(inner, part)
        except RecordError:
            yield Damaged("a chunk is damaged, and was read up to there")


def _walk(stream: mmap | bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Kind and content of each record; those that are of no use here are not copied."""
    wanted = (_SCHEMA, _CHANNEL, _MESSAGE_KIND, _CHUNK, _METADATA, _DATA_END)
    while at < len(stream):
        if len(stream) - at < _HEAD.size:
            raise RecordError("a record is cut short")
        kind, size = _HEAD.unpack_from(stream, at)
        at += _HEAD.size
        if size > len(stream) - at:
            raise RecordError(f"a record claims {size} bytes where {len(stream) - at} are left")
        if kind in wanted:
            yield kind, stream[at : at + size]
        at += size


def _parsed(kind: int, body: bytes) -> Iterator[Any]:
    """The record of a kind that is of use, if it is one."""
    from mcap.data_stream import ReadDataStream
    from mcap.exceptions import McapError
    from mcap.records import Channel, Metadata, Schema

    if kind == _MESSAGE_KIND:
        if len(body) < _MESSAGE.size:
            raise RecordError("a message is cut short")
        channel, _, ns, _ = _MESSAGE.unpack_from(body)
        yield Stamped(channel, ns, body[_MESSAGE.size :])
        return
    kinds: dict[int, Any] = {_SCHEMA: Schema, _CHANNEL: Channel, _METADATA: Metadata}
    if kind in kinds:
        try:
            yield kinds[kind].read(ReadDataStream(BytesIO(body)))
        except (McapError, ValueError, OverflowError, struct.error):
            raise RecordError("a record is damaged") from None


def _content(body: bytes, budget: Budget) -> bytes:
    """The records of a chunk, unpacked and held against their checksum."""
    from mcap.data_stream import ReadDataStream
    from mcap.exceptions import McapError
    from mcap.records import Chunk

    try:
        chunk = Chunk.read(ReadDataStream(BytesIO(body)))
    except (McapError, ValueError, OverflowError, struct.error):
        raise RecordError("a chunk is damaged") from None
    data = unpack(chunk.compression, chunk.data, budget)
    if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
        raise RecordError("the checksum of a chunk is wrong")
    return data
