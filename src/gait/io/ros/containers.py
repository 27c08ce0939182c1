"""What holds the messages: MCAP, ROS 2 sqlite3 and ROS 1 files, and folders of the first two.

All are read from front to back and without their index, which stands at the end: a recording that was cut short has
none, and what came before is still good.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from gait.errors import GaitError
from gait.io.format import reason
from gait.io.reading import Notes
from gait.io.ros import mcap, ros1
from gait.io.ros.mcap import scan_mcap
from gait.io.ros.ros1 import scan_ros1
from gait.io.ros.sqlite import scan_sqlite
from gait.io.ros.topic import Topic, Wanted

MCAP, SQLITE, ROS1, ZSTD = mcap.MAGIC, b"SQLite format 3\0", ros1.MAGIC, b"\x28\xb5\x2f\xfd"
_SCANNERS: dict[bytes, Callable[[Path, BinaryIO, Wanted, Notes], list[Topic]]] = {
    MCAP: scan_mcap,
    SQLITE: scan_sqlite,
    ROS1: scan_ros1,
}


def scan(path: Path, wanted: Wanted, notes: Notes) -> list[Topic]:
    """All topics of a bag, with the messages of the types that are wanted.

    Args:
        path: a file, or a folder with `metadata.yaml` or with such files.
        wanted: whether to keep messages of a type.
        notes: is told what is damaged.
    """
    topics: dict[tuple[str, str], Topic] = {}
    for file, squeezed in _files(path, notes):
        with _plain(file) as plain, plain.open("rb") as stream:
            head = stream.read(16)
            scanner = next((scan for magic, scan in _SCANNERS.items() if head.startswith(magic)), None)
            if scanner is None:
                raise GaitError(f"{file} is no bag: it is neither MCAP nor sqlite3 nor of ROS 1; copy it again")
            stream.seek(0)
            for topic in scanner(plain, stream, wanted, notes):
                _unpack(topic, squeezed, notes)
                known = topics.setdefault((topic.name, topic.kind), topic)
                if known is not topic:
                    known.stamps += topic.stamps
                    known.messages += topic.messages
                    known.count += topic.count
    return list(topics.values())


def _files(path: Path, notes: Notes) -> list[tuple[Path, bool]]:
    """The files of a bag in their order, and whether each of their messages is compressed."""
    if not path.is_dir():
        return [(path, False)]
    metadata = path / "metadata.yaml"
    try:
        tree: Any = yaml.safe_load(metadata.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        names = [Path(name).name for name in tree["relative_file_paths"]]
        squeezed = str(tree.get("compression_mode", "")).lower() == "message"
    except FileNotFoundError:
        names, squeezed = [], False
    except OSError as error:
        raise GaitError(f"cannot read {metadata}: {reason(error)}") from None
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        notes.say(f"{metadata.name} cannot be read, so the files are taken by name")
        names, squeezed = [], False
    files = [path / name for name in names]
    if not names:
        files = sorted(file for file in path.iterdir() if file.suffix in (".mcap", ".db3", ".zstd") and file.is_file())
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        notes.say(f"{missing[0]} is missing from the folder" + (f", and {len(missing) - 1} more" * (len(missing) > 1)))
    present = [(file, squeezed) for file in files if file.is_file()]
    if not present:
        raise GaitError(f"{path} is a folder without a bag in it: give a file, or a folder with metadata.yaml")
    return present


@contextlib.contextmanager
def _plain(path: Path) -> Iterator[Path]:
    """The file itself, or a copy without the compression that `ros2 bag record` puts around a file."""
    try:
        with path.open("rb") as file:
            if not file.read(4).startswith(ZSTD):
                yield path
                return
            import zstandard

            file.seek(0)
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "bag"
                with copy.open("wb") as out, contextlib.suppress(zstandard.ZstdError):
                    zstandard.ZstdDecompressor().copy_stream(file, out)
                yield copy
    except OSError as error:
        raise GaitError(f"cannot read {path}: {reason(error)}") from None


def _unpack(topic: Topic, squeezed: bool, notes: Notes) -> None:
    if not squeezed or not topic.messages:
        return
    kept = [(s, m) for s, m in zip(topic.stamps, map(_inflate, topic.messages), strict=True) if m is not None]
    if len(kept) < len(topic.messages):
        notes.say(f"{topic.name}: {len(topic.messages) - len(kept)} damaged messages left out")
    topic.stamps, topic.messages = [stamp for stamp, _ in kept], [message for _, message in kept]


def _inflate(message: bytes) -> bytes | None:
    import zstandard

    try:
        # The frame may not say how large it is.
        return zstandard.ZstdDecompressor().decompressobj().decompress(message)
    except zstandard.ZstdError:
        return None
