"""ROS 1 bags, format 2.0."""

from __future__ import annotations

import bz2
import struct
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from gait.io.reading import Notes
from gait.io.ros.topic import CUT, Topic, Wanted, ros2_name

MAGIC = b"#ROSBAG V2.0\n"
Header = dict[bytes, bytes]
CHUNK, CONNECTION, MESSAGE = b"\x05", b"\x07", b"\x02"


def scan_ros1(path: Path, stream: BinaryIO, wanted: Wanted, notes: Notes) -> list[Topic]:
    """The topics of a bag, up to where it is cut short if it is."""
    stream.seek(len(MAGIC))
    topics: dict[int, Topic] = {}
    keep: dict[int, bool] = {}
    whole = True
    while whole:
        record = _record(stream)
        if record is None:
            break
        header, data = record
        if not header:
            whole = False
        elif header.get(b"op") == CHUNK:
            whole = _open_chunk1(header, data, topics, keep, wanted, notes, path)
        else:
            whole = _take(header, data, topics, keep, wanted)
    if not whole:
        notes.say(f"{path.name} {CUT}")
    return list(topics.values())


def _open_chunk1(
    header: Header,
    data: bytes,
    topics: dict[int, Topic],
    keep: dict[int, bool],
    wanted: Wanted,
    notes: Notes,
    path: Path,
) -> bool:
    """Take the messages of a chunk; false where the file ends within it."""
    try:
        if header.get(b"compression") == b"bz2":
            data = bz2.decompress(data)
        elif header.get(b"compression") == b"lz4":
            import lz4.frame

            data = lz4.frame.decompress(data)
    except Exception:
        notes.say(f"{path.name}: a damaged chunk was left out")
        return True
    inner = BytesIO(data)
    while (record := _record(inner)) is not None:
        if not record[0] or not _take(*record, topics, keep, wanted):
            return False
    return True


def _record(stream: BinaryIO) -> tuple[Header, bytes] | None:
    """Header and data of the next record; None at the end, an empty header where the record is not whole."""
    size = stream.read(4)
    if not size:
        return None
    broken: tuple[Header, bytes] = ({}, b"")
    if len(size) < 4:
        return broken
    raw = stream.read(struct.unpack("<I", size)[0])
    size = stream.read(4)
    if len(size) < 4:
        return broken
    length = struct.unpack("<I", size)[0]
    data = stream.read(length)
    header: Header = {}
    at = 0
    while at + 4 <= len(raw):
        (width,) = struct.unpack_from("<I", raw, at)
        name, equals, value = raw[at + 4 : at + 4 + width].partition(b"=")
        if not equals:
            return broken
        header[name] = value
        at += 4 + width
    if len(data) < length and header.get(b"op") != CHUNK:
        return broken
    # Of a chunk that is cut short, the messages before the cut are still good.
    return header, data


def _take(header: Header, data: bytes, topics: dict[int, Topic], keep: dict[int, bool], wanted: Wanted) -> bool:
    """Take a connection or a message; any other record is skipped. False if the bytes are none."""
    try:
        if header[b"op"] == CONNECTION:
            (number,) = struct.unpack("<I", header[b"conn"])
            if number not in topics:
                about = _record_header(data)
                name = about.get(b"topic", header[b"topic"]).decode("utf-8", errors="replace")
                kind = ros2_name(about[b"type"].decode())
                text = about[b"message_definition"].decode("utf-8", errors="replace")
                topics[number] = Topic(name, kind, text, "msg", "ros1")
                keep[number] = wanted(kind)
        elif header[b"op"] == MESSAGE:
            (number,) = struct.unpack("<I", header[b"conn"])
            seconds, nanoseconds = struct.unpack("<II", header[b"time"])
            if number in topics:
                topics[number].add(seconds * 1_000_000_000 + nanoseconds, data, keep[number])
    except (KeyError, struct.error, UnicodeDecodeError):
        return False
    return True


def _record_header(data: bytes) -> Header:
    fields: Header = {}
    at = 0
    while at + 4 <= len(data):
        (width,) = struct.unpack_from("<I", data, at)
        name, _, value = data[at + 4 : at + 4 + width].partition(b"=")
        fields[name] = value
        at += 4 + width
    return fields
