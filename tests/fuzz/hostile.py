"""Files that are made to exhaust a reader: small, well-formed, and gigabytes or an endless loop inside."""

import io
import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable

import numpy as np
from readers import walk

GIGABYTES = 2 << 30
ZEROS = bytes(1 << 20)
COUNT = GIGABYTES // len(ZEROS)


def _zstd() -> bytes:
    import zstandard

    out, one = io.BytesIO(), zstandard.ZstdCompressor()
    with one.stream_writer(out, closefd=False) as writer:
        for _ in range(COUNT):
            writer.write(ZEROS)
    return out.getvalue()


def _zstd_claim() -> bytes:
    """A frame that says it holds a terabyte, and a little of it."""
    import zstandard

    whole = zstandard.ZstdCompressor(write_content_size=True).compress(bytes(1 << 18))
    # Magic, descriptor with an eight-byte content size and a window, window, size, the same blocks.
    head = zstandard.get_frame_parameters(whole)
    blocks = whole[zstandard.frame_header_size(whole) :]
    assert head.content_size == 1 << 18
    return whole[:4] + bytes([0b11000000, 0x58]) + struct.pack("<Q", 1 << 40) + blocks


def _lz4() -> bytes:
    import lz4.frame

    one = lz4.frame.LZ4FrameCompressor()
    return one.begin() + b"".join(one.compress(ZEROS) for _ in range(COUNT)) + one.flush()


def _bz2() -> bytes:
    import bz2

    return bz2.compress(ZEROS * 64) * (COUNT // 64)


def _record(kind: int, body: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(body)) + body


def _text(word: bytes) -> bytes:
    return struct.pack("<I", len(word)) + word


def _chunk(kind: bytes, data: bytes, size: int = GIGABYTES) -> bytes:
    body = struct.pack("<QQQI", 0, 1, size, 0) + _text(kind) + struct.pack("<Q", len(data)) + data
    return b"\x89MCAP0\r\n" + _record(1, _text(b"") + _text(b"")) + _record(6, body)


def _ros1_record(header: dict[bytes, bytes], data: bytes) -> bytes:
    fields = b"".join(_text(name + b"=" + value) for name, value in header.items())
    return _text(fields) + _text(data)


def _ros1(kind: bytes, data: bytes) -> bytes:
    return b"#ROSBAG V2.0\n" + _ros1_record({b"op": b"\x05", b"compression": kind, b"size": b"\0\0\0\0"}, data)


def _ros1_nested() -> bytes:
    """Chunks in chunks in chunks."""
    data = b""
    for _ in range(2000):
        data = _ros1_record({b"op": b"\x05", b"compression": b"none", b"size": b"\0\0\0\0"}, data)
    return b"#ROSBAG V2.0\n" + data


def _mcap_topic(definition: bytes, data: bytes) -> bytes:
    """One message of a type whose definition comes with it."""
    schema = struct.pack("<H", 1) + _text(b"sensor_msgs/msg/Imu") + _text(b"ros2msg") + _text(definition)
    channel = struct.pack("<HH", 1, 1) + _text(b"/imu") + _text(b"cdr") + struct.pack("<I", 0)
    messages = b"".join(_record(5, struct.pack("<HIQQ", 1, 0, i, i) + data) for i in range(3))
    return b"\x89MCAP0\r\n" + _record(1, _text(b"") + _text(b"")) + _record(3, schema) + _record(4, channel) + messages


EMPTY_LIST = b"pkg/Nothing[4000000000] many\n" + b"=" * 80 + b"\nMSG: pkg/Nothing\n"
LAYERS = b"pkg/A0[100] x\n" + b"".join(
    b"=" * 80 + f"\nMSG: pkg/A{i}\npkg/A{i + 1}[100] x\n".encode() for i in range(20)
) + b"=" * 80 + b"\nMSG: pkg/A20\n"  # fmt: skip
MANY_TEXTS = b"string[] names\n"


def _sqlite(script: str) -> bytes:
    base = sqlite3.connect(":memory:")
    base.executescript(script)
    base.commit()
    data = base.serialize()
    base.close()
    return data


_TOPICS = """
CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT);
INSERT INTO topics VALUES (1, '/imu', 'sensor_msgs/msg/Imu', 'cdr');
"""
ENDLESS_VIEW = (
    _TOPICS
    + """
CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
SELECT id, 1 AS topic_id, id AS timestamp, x'00' AS data FROM n;
"""
)
COMPUTED = (
    _TOPICS
    + """
CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id, timestamp, data AS (zeroblob(900000000)));
INSERT INTO messages (topic_id, timestamp) VALUES (1, 1), (1, 2), (1, 3), (1, 4);
"""
)


def _npz(name: str, data: bytes, times: int) -> bytes:
    """An archive of gait with one more member, `data` so many times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.npy", _npy(np.array(json.dumps({"gait": "log", "version": 1}))))
        with archive.open(name, "w", force_zip64=True) as member:
            member.write(_npy_head("<f8", f"({times * len(data) // 8},)"))
            for _ in range(times):
                member.write(data)
    return out.getvalue()


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _npy_head(descr: str, shape: str) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _hdf5(make: Callable[..., None]) -> bytes:
    import h5py

    out, log = io.BytesIO(), walk()
    with h5py.File(out, "w") as file:
        file["imu/time"], file["imu/accel"], file["joints/time"] = log.t, log.accel, log.t
        file["joints/position"] = log.q
        make(file)
    return out.getvalue()


def _never_written(file: object) -> None:
    file.create_dataset("imu/gyro", shape=(5 * 10**8, 3), dtype="f8", chunks=(1000, 3))  # type: ignore[attr-defined]


def _many_groups(file: object) -> None:
    group = file  # type: ignore[var-annotated]
    for _ in range(500):
        group = group.create_group("g")  # type: ignore[attr-defined]


def _strings(file: object) -> None:
    file.create_dataset("joints/names", shape=(10**8,), dtype="S100", chunks=(1000,))  # type: ignore[attr-defined]


LAUGHS = "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
SELF = "&a [*a, *a]\n"
WIDE = "t," + ",".join(f"c{i}" for i in range(200_000)) + "\n1\n"
DEEP = "[" * 100_000

HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "mcap-zstd-bomb": ("mcap", lambda: _chunk(b"zstd", _zstd())),
    "mcap-zstd-claim": ("mcap", lambda: _chunk(b"zstd", _zstd_claim(), 1 << 62)),
    "mcap-lz4-bomb": ("mcap", lambda: _chunk(b"lz4", _lz4())),
    "mcap-list-of-nothing": ("mcap", lambda: _mcap_topic(EMPTY_LIST, b"\0\1\0\0" + bytes(8))),
    "mcap-layers-of-lists": ("mcap", lambda: _mcap_topic(LAYERS, b"\0\1\0\0" + bytes(8))),
    "mcap-many-texts": ("mcap", lambda: _mcap_topic(
        MANY_TEXTS, b"\0\1\0\0" + struct.pack("<I", 5_000_000) + struct.pack("<II", 1, 0) * 5_000_000)),
    "mcap-long-text": ("mcap", lambda: _mcap_topic(
        MANY_TEXTS, b"\0\1\0\0" + struct.pack("<II", 1, 50_000_000) + bytes(50_000_000))),
    "zstd-bomb": ("zstd", _zstd),
    "zstd-in-zstd": ("zstd", lambda: __import__("zstandard").compress(_chunk(b"zstd", _zstd()))),
    "ros1-bz2-bomb": ("ros1", lambda: _ros1(b"bz2", _bz2())),
    "ros1-lz4-bomb": ("ros1", lambda: _ros1(b"lz4", _lz4())),
    "ros1-chunks-in-chunks": ("ros1", _ros1_nested),
    "sqlite3-endless-view": ("sqlite3", lambda: _sqlite(ENDLESS_VIEW)),
    "sqlite3-computed": ("sqlite3", lambda: _sqlite(COMPUTED)),
    "npz-bomb": ("npz", lambda: _npz("t.npy", ZEROS, COUNT)),
    "npz-many-bombs": ("npz", lambda: _npz("unknown.npy", ZEROS, COUNT)),
    "hdf5-never-written": ("hdf5", lambda: _hdf5(_never_written)),
    "hdf5-groups-in-groups": ("hdf5", lambda: _hdf5(_many_groups)),
    "hdf5-strings": ("hdf5", lambda: _hdf5(_strings)),
    **{f"{kind}-{name}": (kind, lambda text=text: text.encode())  # type: ignore[misc]
       for kind in ("robot", "train-config", "baselines", "column-map", "metadata")
       for name, text in (("billion-laughs", LAUGHS), ("merges", MERGES), ("itself", SELF), ("deep", DEEP),
                          ("long", "- 1\n" * 10_000_000))},
    "csv-wide": ("csv", WIDE.encode),
    "csv-deep-header": ("csv", lambda: f"# gait: {DEEP}\nt_ns,gyro.x\n1,2\n".encode()),
    "collection-deep": ("collection", DEEP.encode),
    "index-deep": ("index", lambda: (DEEP + "\n" + "{}\n").encode()),
}  # fmt: skip
"""The reader, and a function that makes the file."""
