"""ROS 2 bags in sqlite3, the format before MCAP."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import BinaryIO

from gait.errors import GaitError
from gait.io.reading import Notes
from gait.io.ros.topic import CUT, Topic, Wanted

_LANGUAGES = {"ros2msg": "msg", "ros2idl": "idl"}


def scan_sqlite(path: Path, stream: BinaryIO, wanted: Wanted, notes: Notes) -> list[Topic]:
    """The topics of a database, up to where it is damaged if it is."""
    stream.close()
    topics: dict[int, Topic] = {}
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as base:
            definitions: dict[str, tuple[str, str]] = {}
            with contextlib.suppress(sqlite3.OperationalError):
                rows = base.execute("SELECT topic_type, encoding, encoded_message_definition FROM message_definitions")
                definitions = {name: (text, _LANGUAGES.get(kind, "")) for name, kind, text in rows}
            for number, name, kind, encoding in base.execute("SELECT id, name, type, serialization_format FROM topics"):
                text, language = definitions.get(kind, ("", ""))
                topics[number] = Topic(name, kind, text if language else "", language, encoding)
            keep = {number: wanted(topic.kind) for number, topic in topics.items()}
            # Pictures and clouds stay on the disk.
            chosen = ",".join(str(number) for number, kept in keep.items() if kept)
            for number, stamp, data in base.execute(
                f"SELECT topic_id, timestamp, CASE WHEN topic_id IN ({chosen}) THEN data END FROM messages ORDER BY id"
            ):
                if number in topics and (data is not None or not keep[number]):
                    topics[number].add(int(stamp), data, keep[number])
    except (sqlite3.Error, ValueError, TypeError, OverflowError):
        if not any(topic.count for topic in topics.values()):
            raise GaitError(f"{path} is a damaged bag, or a database that is no bag: copy or record it again") from None
        notes.say(f"{path.name} {CUT}")
    return list(topics.values())
