"""What is fuzzed: for each kind of file, whole ones, how it is read, and damage below its checksums and compression."""

import io
import json
import random
import shutil
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bags import Make, messages_of, smooth_walk, write_plain_mcap, write_ros1, write_ros2
from mcap.writer import CompressionType, Writer
from mutate import mutant
from packets import PACKETS

from gait import Log, Robot
from gait.io import ReadOptions, open_any, read
from gait.log import Trajectory
from gait.nets.model import WEIGHTS, load_model
from gait.samples import SAMPLE

ROWS = 40
Inner = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Reader:
    """A reader and files for it."""

    name: str
    wholes: Callable[[Path], list[bytes]]
    """Whole files; the folder is for work."""
    read: Callable[[Path], object]
    file: str
    """Name of a file, as its reader expects it."""
    text: bool = False
    inner: Inner | None = None
    """Damage to the content, in a container that is whole."""
    beside: tuple[str, ...] = ()
    """Files that `wholes` made and that must lie beside it."""

    def mutant(self, whole: bytes, rng: random.Random) -> bytes:
        """One damaged file."""
        if self.inner is not None and rng.random() < 0.5:
            return self.inner(whole, rng)
        return mutant(whole, rng, self.text)


def walk() -> Log:
    """Small, with every field that a bag has."""
    return smooth_walk(ROWS / 500.0)


# Bags


def _ros1(folder: Path) -> list[bytes]:
    messages = messages_of(walk(), Make(True))
    files = [write_ros1(folder / "a.bag", messages, chunk=4096).read_bytes()] * 2
    return files + [write_ros1(folder / f"{kind}.bag", messages, 4096, kind).read_bytes() for kind in ("BZ2", "LZ4")]


def _sqlite(folder: Path) -> list[bytes]:
    shutil.rmtree(folder / "s", ignore_errors=True)
    return [(write_ros2(folder / "s", messages_of(walk(), Make())) / "s.db3").read_bytes()]


def _mcap(folder: Path) -> list[bytes]:
    messages = messages_of(walk(), Make())
    files = [write_plain_mcap(folder / "p.mcap", messages, chunk=4096).read_bytes()]
    Log.load(SAMPLE).slice(0.0, 0.1).save(folder / "own.mcap")
    files.append((folder / "own.mcap").read_bytes())
    for kind, chunks in ((CompressionType.LZ4, True), (CompressionType.NONE, True), (CompressionType.NONE, False)):
        files.append(_rewritten(files[0], kind, chunks))
    return [*files, files[-1]]


def _rewritten(data: bytes, kind: CompressionType, chunks: bool) -> bytes:
    from mcap.reader import make_reader

    out, channels = io.BytesIO(), {}
    writer = Writer(out, chunk_size=4096, compression=kind, use_chunking=chunks, enable_crcs=chunks)
    writer.start()
    for schema, channel, message in make_reader(io.BytesIO(data)).iter_messages():
        if channel.topic not in channels:
            number = writer.register_schema(schema.name, schema.encoding, schema.data)
            channels[channel.topic] = writer.register_channel(channel.topic, channel.message_encoding, number)
        writer.add_message(channels[channel.topic], message.log_time, message.data, message.publish_time)
    writer.finish()
    return out.getvalue()


def _mcap_messages(whole: bytes, rng: random.Random) -> bytes:
    """Damaged messages, definitions and metadata in chunks whose checksums are right."""
    from mcap.reader import make_reader

    out, channels = io.BytesIO(), {}
    writer = Writer(out, chunk_size=4096, compression=rng.choice(list(CompressionType)))
    writer.start()
    texts = rng.random() < 0.4
    writer.add_metadata(
        "gait", {"log": mutant(b'{"gait": "log", "version": 1, "robot": "go1"}', rng, True).decode("latin-1")}
    )
    for schema, channel, message in make_reader(io.BytesIO(whole)).iter_messages():
        if channel.topic not in channels:
            data = mutant(schema.data, rng, True) if texts and rng.random() < 0.7 else schema.data
            number = writer.register_schema(schema.name, schema.encoding, data)
            channels[channel.topic] = writer.register_channel(channel.topic, channel.message_encoding, number)
        data = mutant(message.data, rng, False) if not texts and rng.random() < 0.3 else message.data
        writer.add_message(channels[channel.topic], message.log_time, data, message.publish_time)
    writer.finish()
    return out.getvalue()


def _sqlite_rows(whole: bytes, rng: random.Random) -> bytes:
    """Values of any type in a database that is whole."""
    base = sqlite3.connect(":memory:")
    base.deserialize(whole)
    values: list[Any] = [
        None,
        -1,
        2**63 - 1,
        1e300,
        "x",
        b"",
        b"\0" * 3,
        "9" * 400,
        "sensor_msgs/msg/Imu",
        "cdr",
        -(2**63),
    ]
    places = [
        ("topics", ("id", "name", "type", "serialization_format")),
        ("messages", ("topic_id", "timestamp", "data")),
    ]
    for _ in range(rng.choice((1, 2, 4))):
        table, columns = rng.choice(places)
        where = rng.choice(("", " WHERE id % 3 = 0", " WHERE id = 1"))
        value: Any = rng.choice(values)
        if table == "messages" and rng.random() < 0.6:
            (data,) = base.execute("SELECT data FROM messages ORDER BY random() LIMIT 1").fetchone()
            columns, value = ("data",), mutant(data, rng, False) if isinstance(data, bytes) else b""
        try:
            base.execute(f"UPDATE {table} SET {rng.choice(columns)} = ?{where}", (value,))
        except sqlite3.Error:
            continue
    for kind, text in base.execute("SELECT topic_type, encoded_message_definition FROM message_definitions").fetchall():
        if rng.random() < 0.3 and isinstance(text, str):
            bad = mutant(text.encode(), rng, True).decode("latin-1")
            base.execute(
                "UPDATE message_definitions SET encoded_message_definition = ? WHERE topic_type = ?", (bad, kind)
            )
    base.commit()
    found = base.serialize()
    base.close()
    return found


def _squeezed(folder: Path) -> list[bytes]:
    import zstandard

    return [zstandard.compress(_mcap(folder)[0])]


def _squeezed_inside(whole: bytes, rng: random.Random) -> bytes:
    import zstandard

    return zstandard.compress(mutant(zstandard.decompress(whole), rng, False))


def _read_folder(path: Path) -> object:
    return read(path.parent)


def _folder_metadata(folder: Path) -> list[bytes]:
    shutil.rmtree(folder / "m", ignore_errors=True)
    bag = write_ros2(folder / "m", messages_of(walk(), Make()), mcap=True)
    (folder / "m.mcap").write_bytes((bag / "m.mcap").read_bytes())
    return [(bag / "metadata.yaml").read_bytes()]


# Tables


def _trajectory() -> Trajectory:
    log = walk()
    return Trajectory(t=log.t, pos_w=log.need("pos_w"), quat_wb_wxyz=log.need("quat_wb_wxyz"), vel_w=log.need("vel_w"))


def _saved(*names: str) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        for name in names:
            record = _trajectory() if "trajectory" in name or name.endswith(".tum") else walk()
            record.save(folder / name, compress="small" in name)
        return [(folder / name).read_bytes() for name in names]

    return make


def _foreign_csv(folder: Path) -> list[bytes]:
    log = walk()
    names = ["time_us", "wx", "wy", "wz", "ax", "ay", "az", *(f"{name}_pos" for name in log.joint_names)]
    rows = np.column_stack([log.t * 1e6, log.gyro, log.accel, log.q])
    return ["\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())]).encode() + b"\n"]


def _npz_members(whole: bytes, rng: random.Random) -> bytes:
    """Damaged arrays in an archive whose checksums are right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            if name == chosen and rng.random() < 0.5:
                data = mutant(data, rng, rng.random() < 0.3)
            elif name == chosen:
                data = _npy(data, rng)
            way = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
            new.writestr(name, data, way)
    return out.getvalue()


def _npy(data: bytes, rng: random.Random) -> bytes:
    """An array whose header says another shape or type."""
    shape = rng.choice(
        ("(2305843009213693951,)", "(4611686018427387904, 3)", "(0,)", "()", "(-1,)", "(40, 0)", "(1000000000,)")
    )
    descr = rng.choice(("<f8", ">f8", "<U1000000000", "|O", "<i8", "<c16", "|S0", "|V8", "<M8[ns]", "<f2"))
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    if rng.random() < 0.3:
        text = "[" * rng.choice((10, 200, 5000)) + text
    body = text.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(body)) + body + data[128:]


def _hdf5(folder: Path) -> list[bytes]:
    import h5py

    log, files = walk(), []
    for name, more in (("a.h5", {}), ("b.h5", {"compression": "gzip", "chunks": True})):
        with h5py.File(folder / name, "w") as file:
            for key, array in (("imu/time", log.t), ("imu/gyro", log.gyro), ("imu/accel", log.accel)):
                file.create_dataset(key, data=array, **more)
            for key, array in (("time", log.t), ("position", log.q), ("velocity", log.dq)):
                file.create_dataset(f"joints/{key}", data=array, **more)
            file["joints"].attrs["names"] = list(log.joint_names)
        files.append((folder / name).read_bytes())
    return files


def _hdf5_shapes(whole: bytes, rng: random.Random) -> bytes:
    """Datasets of any shape and type, most of whose values were never written."""
    import h5py

    out = io.BytesIO(whole)
    with h5py.File(out, "r+") as file:
        for key in rng.sample(
            ("imu/time", "imu/gyro", "imu/accel", "joints/time", "joints/position", "joints/names"), 2
        ):
            if key in file:
                del file[key]
            rows = rng.choice((0, 1, 2, ROWS, 10**6, 5 * 10**8, 2**40))
            shape = rng.choice(((rows,), (rows, 3), (rows, 12), (rows, 10**5), (2, 2, 2), ()))
            kind = rng.choice(
                ("f8", "f4", "i8", "u1", "S10", "S100000", h5py.string_dtype(), "c16", [("a", "f8")], "?")
            )
            chunks: Any = tuple(min(n, 64) or 1 for n in shape) if shape else None
            more = {"chunks": chunks, "compression": rng.choice((None, "gzip"))} if shape else {}
            try:
                file.create_dataset(key, shape=shape, dtype=kind, **more)
            except (ValueError, TypeError, OSError):
                continue
        if rng.random() < 0.3:
            file["joints"].attrs["names"] = rng.choice(
                (["x"] * 1000, "a,b", 3.0, np.zeros((3, 3)), np.array([b"\xff\xfe"]))
            )
    return out.getvalue()


# Descriptions and models


def _file(*paths: Path) -> Callable[[Path], list[bytes]]:
    return lambda folder: [path.read_bytes() for path in paths]


def _model_header(whole: bytes, rng: random.Random) -> bytes:
    """A damaged header before arrays that are whole."""
    size = int.from_bytes(whole[:8], "little")
    tree, rest = json.loads(whole[8 : 8 + size]), whole[8 + size :]
    if rng.random() < 0.7:
        about = json.loads(tree["__metadata__"]["header"])
        if rng.random() < 0.5:
            about["architecture"][rng.choice(list(about["architecture"]))] = rng.choice(
                (10**9, 10**18, -1, 0, 1e308, None, "x", [], True, 2**70)
            )
            text = json.dumps(about)
        else:
            text = mutant(json.dumps(about).encode(), rng, True).decode("latin-1")
        tree["__metadata__"]["header"] = text
        head = json.dumps(tree).encode()
    else:
        head = mutant(json.dumps(tree).encode(), rng, True)
    return len(head).to_bytes(8, "little") + head + rest


def _train_config(path: Path) -> object:
    from gait.train.config import read_config

    return read_config(path)


def _baselines(path: Path) -> object:
    from gait.parameters import read_baselines

    return read_baselines(path)


def _columns(path: Path) -> object:
    return read(path.parent / "table.csv", ReadOptions(columns=path))


def _column_map(folder: Path) -> list[bytes]:
    (folder / "table.csv").write_bytes(_foreign_csv(folder)[0])
    return [b"wx: gyro.x deg/s\nwy: gyro.y\nwz: gyro.z\nax: accel.x\nFR_hip_joint_pos: q.FR_hip_joint\ntime_us: t us\n"]


def _collection(path: Path) -> object:
    from gait.train.data import read_collection

    (path.parent / "index.jsonl").write_text('{"episode": 0, "file": "episode_00000.npz"}\n')
    return read_collection(path.parent)


def _index(path: Path) -> object:
    from gait.sim.store import read_index

    return read_index(path.parent)


def _index_lines(folder: Path) -> list[bytes]:
    rows = [{"episode": i, "file": f"episode_{i:05d}.npz", "falls": 0, "friction": 0.8} for i in range(3)]
    return ["".join(json.dumps(row) + "\n" for row in rows).encode()]


ROOT = Path(__file__).parents[2]
PACKAGE = WEIGHTS.parent
ROBOTS = [PACKAGE / "robot" / f"{name}.yaml" for name in ("go1", "go2")]
READERS = {
    one.name: one
    for one in (
        Reader("mcap", _mcap, open_any, "a.mcap", inner=_mcap_messages),
        Reader("ros1", _ros1, open_any, "a.bag"),
        Reader("sqlite3", _sqlite, open_any, "a.db3", inner=_sqlite_rows),
        Reader("zstd", _squeezed, open_any, "a.mcap.zstd", inner=_squeezed_inside),
        Reader("metadata", _folder_metadata, _read_folder, "metadata.yaml", text=True, beside=("m.mcap",)),
        Reader("csv", _saved("log.csv", "trajectory.csv"), open_any, "a.csv", text=True),
        Reader("foreign-csv", _foreign_csv, open_any, "a.csv", text=True),
        Reader("tum", _saved("a.tum"), open_any, "a.tum", text=True),
        Reader("npz", _saved("log.npz", "small.npz", "trajectory.npz"), open_any, "a.npz", inner=_npz_members),
        Reader("hdf5", _hdf5, open_any, "a.h5", inner=_hdf5_shapes),
        Reader("robot", _file(*ROBOTS), Robot.load, "a.yaml", text=True),
        Reader("model", _file(*(WEIGHTS / f"{name}.safetensors" for name in ("gait-legs-0", "gait-0"))), load_model,
               "a.safetensors", inner=_model_header),
        Reader("train-config", _file(*sorted((ROOT / "configs").glob("*.yaml"))), _train_config, "a.yaml", text=True),
        Reader("baselines", _file(*PACKAGE.glob("*.yaml")), _baselines, "a.yaml", text=True),
        Reader("column-map", _column_map, _columns, "map.yaml", text=True, beside=("table.csv",)),
        Reader("collection", lambda folder: [json.dumps({"version": "1", "sensors": "exact", "seed": 3, "robot": "go1"},
               indent=2).encode()], _collection, "collection.json", text=True),
        Reader("index", _index_lines, _index, "index.jsonl", text=True),
        *(Reader(name, wholes, take, "message") for name, (wholes, take) in PACKETS.items()),
    )
}  # fmt: skip
