"""What holds the messages: MCAP, ROS 2 sqlite3 and ROS 1 files, and folders of the first two.

Libraries parse the records (mcap, rosbags, sqlite3). They are taken from front to back and without the index, for two
reasons: the index stands at the end, so that a recording that was cut short has none; and readers with an index sort
messages by time, which hides a clock that was set back.
"""

from __future__ import annotations

import contextlib
import mmap
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

from gait.documents import load_yaml
from gait.errors import GaitError, os_errors
from gait.io.format import Notes
from gait.io.limits import Budget, UnpackError, unpack, zstd_parts
from gait.io.ros.mcap_records import Damaged, RecordError, Stamped, mcap_records

MCAP, SQLITE, ROS1, ZSTD = b"\x89MCAP0\r\n", b"SQLite format 3\0", b"#ROSBAG V2.0\n", b"\x28\xb5\x2f\xfd"
METADATA_NAME = "gait"
"""Of the MCAP record in which gait says what a Log says of itself."""
_LANGUAGES = {"ros2msg": "msg", "ros1msg": "msg", "ros2idl": "idl", "omgidl": "idl"}
_CUT = "is damaged or cut short, and was read up to there"
_LATEST = 2**63 - 1
_ROW = 64
"""Bytes that a row of a database counts for beside its message."""
_STEPS, _TICK = 20, 100_000
"""Steps of the database engine that a byte of a file may cost (about one does), and how many go between two looks."""


@dataclass
class Topic:
    """The messages of one topic."""

    name: str
    kind: str
    """Type, as in ROS 2: package/msg/Name."""
    definition: str = ""
    language: str = ""
    """Of the definition: msg or idl; empty if there is none."""
    encoding: str = "cdr"
    """cdr or ros1; messages in anything else cannot be read."""
    keep: bool = False
    """Whether messages are kept, or only counted."""
    stamps: list[int] = field(default_factory=list)
    """When each message was recorded, ns."""
    messages: list[bytes] = field(default_factory=list)

    def add(self, stamp: int, message: bytes) -> None:
        """Take a message. A stamp beyond 63 bits is no date, and is dropped later as an outlier."""
        self.stamps.append(min(stamp, _LATEST))
        if self.keep:
            self.messages.append(message)


Wanted = Callable[[str], bool]
"""Whether messages of a type are to be kept."""
Topics = dict[int, Topic]
"""By the number that a file gives them."""


def scan(path: Path, wanted: Wanted, notes: Notes) -> list[Topic]:
    """All topics of a bag, with the messages of the types that are wanted.

    Args:
        path: a file, or a folder with `metadata.yaml` or with such files.
        wanted: whether to keep messages of a type.
        notes: is told what is damaged.
    """
    scanners = {MCAP: _scan_mcap, SQLITE: _scan_sqlite, ROS1: _scan_ros1}
    found: dict[tuple[str, str], Topic] = {}
    for file, squeezed in _files(path, notes):
        budget = Budget(file)
        with _plain(file, budget) as plain:
            with plain.open("rb") as stream:
                head = stream.read(16)
            scanner = next((scanner for magic, scanner in scanners.items() if head.startswith(magic)), None)
            if scanner is None:
                raise GaitError(f"{file} is no bag: it is neither MCAP nor sqlite3 nor of ROS 1; copy it again")
            topics: Topics = {}
            scanner(plain, topics, wanted, notes, budget)
        for topic in topics.values():
            if squeezed and topic.keep:
                _decompress(topic, budget, notes)
            known = found.setdefault((topic.name, topic.kind), topic)
            if known is not topic:
                known.stamps += topic.stamps
                known.messages += topic.messages
    return list(found.values())


def _files(path: Path, notes: Notes) -> list[tuple[Path, bool]]:
    """The files of a bag in their order, and whether each of their messages is compressed."""
    if not path.is_dir():
        return [(path, False)]
    metadata = path / "metadata.yaml"
    names, squeezed = [], False
    try:
        if metadata.exists():
            with os_errors(f"cannot read {metadata}"):
                tree: Any = load_yaml(metadata.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
            listed = dict.fromkeys(Path(name).name for name in tree["relative_file_paths"])
            names = [name for name in listed if name.isprintable() and len(name.encode()) < 256]
            squeezed = str(tree.get("compression_mode", "")).lower() == "message"
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        notes.say(f"{metadata.name} cannot be read, so the files are taken by name")
    others = sorted(file for file in path.iterdir() if file.suffix in (".mcap", ".db3", ".zstd"))
    files = [path / name for name in names] or others
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        notes.say(f"{missing[0]} is missing from the folder" + (f", and {len(missing) - 1} more" * (len(missing) > 1)))
    if len(missing) == len(files):
        raise GaitError(f"{path} is a folder without a bag in it: give a file, or a folder with metadata.yaml")
    return [(file, squeezed) for file in files if file.is_file()]


@contextlib.contextmanager
def _plain(path: Path, budget: Budget) -> Iterator[Path]:
    """The file itself, or a copy without the compression that `ros2 bag record` puts around a file."""
    with os_errors(f"cannot read {path}"), path.open("rb") as file:
        if not file.read(4).startswith(ZSTD):
            yield path
            return
        file.seek(0)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "bag"
            with copy.open("wb") as out, contextlib.suppress(UnpackError):
                for part in zstd_parts(file):
                    budget.take(len(part))
                    out.write(part)
            yield copy


def _decompress(topic: Topic, budget: Budget, notes: Notes) -> None:
    """Messages that were compressed one by one; those that are damaged are left out."""
    packed = list(zip(topic.stamps, topic.messages, strict=True))
    topic.stamps, topic.messages = [], []
    for stamp, message in packed:
        with contextlib.suppress(UnpackError):
            topic.add(stamp, unpack("zstd", message, budget))
    if len(topic.messages) < len(packed):
        notes.say(f"{topic.name}: {len(packed) - len(topic.messages)} damaged messages left out")


def _scan_mcap(path: Path, topics: Topics, wanted: Wanted, notes: Notes, budget: Budget) -> None:
    """MCAP of ROS 2, of ROS 1, or of no profile."""
    from mcap.records import Channel, Metadata, Schema

    schemas: dict[int, Schema] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        try:
            for record in mcap_records(stream, budget):
                if isinstance(record, Stamped):
                    if record.channel in topics:
                        topics[record.channel].add(record.ns, record.data)
                elif isinstance(record, Schema):
                    schemas[record.id] = record
                elif isinstance(record, Channel) and record.id not in topics:
                    topics[record.id] = _topic(record, schemas.get(record.schema_id), wanted)
                elif isinstance(record, Metadata) and record.name == METADATA_NAME:
                    notes.about.update(record.metadata)
                elif isinstance(record, Damaged):
                    notes.say(f"{path.name}: {record.words}")
        except RecordError:
            notes.say(f"{path.name} {_CUT}")


def _topic(channel: Any, schema: Any | None, wanted: Wanted) -> Topic:
    topic = Topic(channel.topic, "", encoding=channel.message_encoding)
    if schema is not None:
        topic.kind, topic.language = _ros2_name(schema.name), _LANGUAGES.get(schema.encoding, "")
        topic.definition = schema.data.decode("utf-8", errors="replace") if topic.language else ""
        topic.keep = wanted(topic.kind)
    return topic


def _scan_ros1(path: Path, topics: Topics, wanted: Wanted, notes: Notes, budget: Budget) -> None:
    """ROS 1 bags, format 2.0."""
    from rosbags.rosbag1.reader import Header, ReaderError, RecordType, read_bytes, read_uint32

    def take(stream: Any, size: int, inside: bool = False) -> None:
        """Records up to the end of the stream; of a chunk that is cut short, those before the cut are still good."""
        while stream.tell() < size:
            header = Header.read(stream)
            kind = header.get_uint8("op")
            if kind == RecordType.CONNECTION:
                about, number = Header.read(stream), header.get_uint32("conn")
                name = about["topic"] if "topic" in about else header["topic"]
                text = about["message_definition"].decode("utf-8", errors="replace")
                topic = Topic(name.decode("utf-8", errors="replace"), _ros2_name(about.get_string("type")), text, "msg")
                topic.encoding, topic.keep = "ros1", wanted(topic.kind)
                topics.setdefault(number, topic)
            elif kind == RecordType.CHUNK and not inside:
                # Reading beyond the end gives what is left, whatever length a damaged record claims.
                data = stream.read(read_uint32(stream))
                try:
                    data = unpack(header.get_string("compression"), data, budget)
                except (UnpackError, ReaderError):
                    notes.say(f"{path.name}: a damaged chunk was left out")
                    continue
                take(BytesIO(data), len(data), inside=True)
            else:
                data = read_bytes(stream, read_uint32(stream))
                if kind == RecordType.MSGDATA and (number := header.get_uint32("conn")) in topics:
                    topics[number].add(header.get_time("time"), data)

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        stream.seek(len(ROS1))
        try:
            take(stream, len(stream))
        except (ReaderError, ValueError, KeyError, AssertionError, struct.error):
            notes.say(f"{path.name} {_CUT}")


def _scan_sqlite(path: Path, topics: Topics, wanted: Wanted, notes: Notes, budget: Budget) -> None:
    """ROS 2 bags in sqlite3, the format before MCAP. A column may hold values of any type, whatever it is declared."""
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as base:
            _bound(base, path.stat().st_size)
            definitions: dict[str, tuple[str, str]] = {}
            with contextlib.suppress(sqlite3.OperationalError):
                rows = base.execute("SELECT topic_type, encoding, encoded_message_definition FROM message_definitions")
                for name, kind, text in rows:
                    if isinstance(text, str) and kind in _LANGUAGES:
                        definitions[name] = text, _LANGUAGES[kind]
            for number, *words in base.execute("SELECT id, name, type, serialization_format FROM topics"):
                if isinstance(number, int) and all(isinstance(word, str) for word in words):
                    name, kind, encoding = words
                    topics[number] = Topic(name, kind, *definitions.get(kind, ("", "")), encoding, wanted(kind))
            # Pictures and clouds stay on the disk.
            chosen = ",".join(str(number) for number, topic in topics.items() if topic.keep)
            strange = 0
            for number, stamp, data in base.execute(
                f"SELECT topic_id, timestamp, CASE WHEN topic_id IN ({chosen}) THEN data END FROM messages ORDER BY id"
            ):
                # Pages of the file may be shared by any number of rows.
                budget.take(_ROW + (len(data) if isinstance(data, bytes) else 0))
                if number not in topics:
                    continue
                if isinstance(stamp, int) and (isinstance(data, bytes) or not topics[number].keep):
                    topics[number].add(stamp, data)
                else:
                    strange += 1
            notes.say(f"{path.name}: {strange} rows that are damaged were left out" if strange else "")
    except (sqlite3.Error, ValueError, OverflowError):
        if not any(topic.stamps for topic in topics.values()):
            raise GaitError(f"{path} is a damaged bag, or a database that is no bag: copy or record it again") from None
        notes.say(f"{path.name} {_CUT}")


def _bound(base: sqlite3.Connection, size: int) -> None:
    """Refuse a database that may never end: with tables that are computed, or that takes far too many steps."""
    steps = iter(range((_STEPS * size) // _TICK + 100))
    base.set_progress_handler(lambda: next(steps, None) is None, _TICK)
    base.execute("PRAGMA trusted_schema = OFF")
    for table in ("topics", "messages", "message_definitions"):
        for kind, text in base.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)):
            words = str(text).upper()
            if kind != "table" or "VIRTUAL" in words or " AS " in words or "GENERATED" in words:
                raise ValueError(f"{table} is computed")


def _ros2_name(name: str) -> str:
    """The name of a type as ROS 2 has it, with msg in the middle."""
    package, _, bare = name.rpartition("/")
    return f"{package.removesuffix('/msg')}/msg/{bare}" if package else name
