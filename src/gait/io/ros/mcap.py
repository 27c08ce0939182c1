"""MCAP files: of ROS 2, of ROS 1, or of nobody in particular.

The library knows the records; they are walked here, since its reader stops for good at the first damaged byte and looks
at every entry of an index that a reader from front to back has no use for.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from gait.io.reading import Notes
from gait.io.ros.topic import CUT, Topic, Wanted, ros2_name

MAGIC = b"\x89MCAP0\r\n"
METADATA_NAME = "gait"
"""Of the record in which gait says what a Log says of itself."""
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _METADATA, _DATA_END = 2, 3, 4, 5, 6, 12, 15
_USED = (_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _METADATA)
_HEAD, _MESSAGE_HEAD = struct.Struct("<BQ"), struct.Struct("<HIQQ")
_LAST = 2**63 - 1
_LANGUAGES = {"ros2msg": "msg", "ros1msg": "msg", "ros2idl": "idl", "omgidl": "idl"}


def scan_mcap(path: Path, stream: BinaryIO, wanted: Wanted, notes: Notes) -> list[Topic]:
    """The topics of a file, up to where it is cut short if it is."""
    scan = _Scan(wanted, notes)
    size = stream.seek(0, 2)
    stream.seek(len(MAGIC))
    while True:
        head = stream.read(_HEAD.size)
        opcode, length = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        if opcode in (_DATA_END, _FOOTER):
            # After this only the index follows.
            break
        if opcode in _USED:
            body = stream.read(length)
            whole = len(body) == length
        else:
            body = b""
            whole = opcode != 0 and stream.seek(length, 1) <= size
        if whole and opcode == _CHUNK:
            if not scan.chunk(body):
                notes.say(f"{path.name}: a damaged chunk was left out")
        elif not whole or (body and not scan.records(head + body)):
            notes.say(f"{path.name} {CUT}")
            break
    return list(scan.topics.values())


class _Scan:
    """What was met so far."""

    def __init__(self, wanted: Wanted, notes: Notes) -> None:
        self.wanted, self.notes = wanted, notes
        self.topics: dict[int, Topic] = {}
        self._schemas: dict[int, Any] = {}
        self._keep: dict[int, bool] = {}

    def chunk(self, body: bytes) -> bool:
        """Take the records of a chunk; false if it is damaged."""
        from mcap.records import Chunk
        from mcap.stream_reader import get_chunk_data_stream

        try:
            chunk = Chunk.read(_stream(body))
            stream, size = get_chunk_data_stream(chunk)
            data = stream.read(size)
        except Exception:
            # Each compression fails in ways of its own on bytes that are not its.
            return False
        return chunk.uncompressed_crc in (0, zlib.crc32(data)) and self.records(data)

    def records(self, data: bytes) -> bool:
        """Take records that stand one behind the other; false from where they make no sense."""
        from mcap.records import Channel, Metadata, Schema

        at, topics, keep = 0, self.topics, self._keep
        try:
            while at < len(data):
                opcode, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                if opcode == _MESSAGE:
                    channel, _, stamp, _ = _MESSAGE_HEAD.unpack_from(data, at)
                    if channel in topics:
                        message = data[at + _MESSAGE_HEAD.size : at + length] if keep[channel] else b""
                        # A stamp beyond 63 bits is no date; it goes with the other rubbish.
                        topics[channel].add(min(stamp, _LAST), message, keep[channel])
                elif opcode == _SCHEMA:
                    schema = Schema.read(_stream(data[at : at + length]))
                    self._schemas[schema.id] = schema
                elif opcode == _CHANNEL:
                    record = Channel.read(_stream(data[at : at + length]))
                    if record.id not in topics:
                        topics[record.id] = topic = _topic(record, self._schemas.get(record.schema_id))
                        keep[record.id] = self.wanted(topic.kind)
                elif opcode == _METADATA:
                    metadata = Metadata.read(_stream(data[at : at + length]))
                    if metadata.name == METADATA_NAME:
                        self.notes.about.update(metadata.metadata)
                at += length
        except Exception:
            return False
        return True


def _stream(data: bytes) -> Any:
    from mcap.data_stream import ReadDataStream

    return ReadDataStream(BytesIO(data))


def _topic(channel: Any, schema: Any) -> Topic:
    if schema is None:
        return Topic(channel.topic, "", encoding=channel.message_encoding)
    language = _LANGUAGES.get(schema.encoding, "")
    definition = schema.data.decode("utf-8", errors="replace") if language else ""
    return Topic(channel.topic, ros2_name(schema.name), definition, language, channel.message_encoding)
