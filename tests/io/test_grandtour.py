"""Missions of GrandTour: Zarr groups in folders and tar files, CSV files, and Blosc buffers against golden ones."""

from __future__ import annotations

import json
import struct
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import zstandard

from gait import GaitError, Log, Robot, open_log
from gait.cli import main
from gait.io import ReadOptions, read
from gait.io.blosc import unpack_blosc
from gait.io.grandtour import JOINTS
from gait.io.limits import UnpackError

GOLDEN = Path(__file__).parent / "messages" / "blosc.json"
ROWS, START = 400, 1.7275e9


def mission_arrays() -> dict[str, dict[str, np.ndarray]]:
    """What the ANYmal of a mission sends, standing and shifting its weight: joints at 400 Hz, the IMU at 200 Hz."""
    robot = Robot.load("anymal_c")
    t = START + np.arange(ROWS) / 400.0
    sway = 0.05 * np.sin(2.0 * np.pi * (t - START))
    stand = dict(zip(robot.joint_names, robot.q_stand, strict=True))
    actuators: dict[str, np.ndarray] = {"timestamp": t}
    for i, name in enumerate(JOINTS):
        actuators[f"{i:02d}_state_joint_position"] = stand[name] + (i + 1) * 0.01 * sway
        actuators[f"{i:02d}_state_joint_velocity"] = np.gradient(actuators[f"{i:02d}_state_joint_position"], t)
        actuators[f"{i:02d}_state_joint_torque"] = np.full(ROWS, float(i))
        actuators[f"{i:02d}_command_position"] = np.zeros(ROWS) + 7.0
    imu = {
        "timestamp": t[::2], "ang_vel": np.tile([0.0, 0.0, 0.1], (ROWS // 2, 1)),
        "lin_acc": np.tile([0.0, 0.0, 9.81], (ROWS // 2, 1)),
    }  # fmt: skip
    half = 0.05 * (t[::4] - START)
    odometry = {
        "timestamp": t[::4], "pose_pos": np.tile([1.0, 2.0, 0.5], (ROWS // 4, 1)),
        "pose_orien": np.stack([0.0 * half, 0.0 * half, np.sin(half), np.cos(half)], 1),
    }  # fmt: skip
    return {"anymal_state_actuator": actuators, "anymal_imu": imu, "anymal_state_odometry": odometry}


def packed(data: bytes, compressor: str) -> tuple[bytes, dict[str, str] | None]:
    if compressor == "zlib":
        return zlib.compress(data), {"id": "zlib"}
    if compressor == "zstd":
        return zstandard.ZstdCompressor().compress(data), {"id": "zstd"}
    if compressor == "blosc":  # with the flag for blocks that are stored as they are
        return struct.pack("<4B3I", 2, 1, 2, 8, len(data), len(data), len(data) + 16) + data, {"id": "blosc"}
    return data, None


def write_zarr(folder: Path, compressor: str = "zstd", chunk: int = 150) -> Path:
    """A mission as it is published, with chunks that the rows do not fill."""
    for topic, arrays in mission_arrays().items():
        for name, values in arrays.items():
            place = folder / "data" / topic / name
            place.mkdir(parents=True)
            chunks = [chunk, *values.shape[1:]]
            for i in range(-(-len(values) // chunk)):
                part = np.zeros(chunks)
                own = values[i * chunk : (i + 1) * chunk]
                part[: len(own)] = own
                data, kind = packed(part.astype("<f8").tobytes(), compressor)
                (place / ".".join(["0"] * values.ndim).replace("0", str(i), 1)).write_bytes(data)
            about = {"zarr_format": 2, "shape": values.shape, "chunks": chunks, "dtype": "<f8", "order": "C"}
            (place / ".zarray").write_text(
                json.dumps({**about, "compressor": kind, "fill_value": 0.0, "filters": None})
            )
        (folder / "data" / topic / ".zgroup").write_text('{"zarr_format": 2}')
    return folder


def tarred(folder: Path) -> Path:
    """The same with a tar file for each topic, as they are downloaded."""
    for topic in list((folder / "data").iterdir()):
        with tarfile.open(topic.with_suffix(".tar"), "w") as tar:
            tar.add(topic, arcname=topic.name)
        for file in sorted(topic.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        topic.rmdir()
    return folder


def write_csv(folder: Path) -> Path:
    folder.mkdir()
    for topic, arrays in mission_arrays().items():
        names, columns = [], []
        for name, values in arrays.items():
            axes = [""] if values.ndim == 1 else [f"_{axis}" for axis in "xyzw"[: values.shape[1]]]
            names += [f"{name}{axis}" for axis in axes]
            columns += list(values.reshape(len(values), -1).T)
        lines = [",".join(repr(float(x)) for x in row) for row in zip(*columns, strict=True)]
        (folder / f"{topic}.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    return folder


def check(log: Log) -> None:
    arrays = mission_arrays()
    actuators = arrays["anymal_state_actuator"]
    assert log.robot == "anymal_c" and log.q_des is None and log.tau is not None
    assert log.duration == pytest.approx(0.995, abs=0.011)
    for i, name in enumerate(JOINTS):
        k = log.joint_names.index(name)
        np.testing.assert_allclose(log.q[:190, k], actuators[f"{i:02d}_state_joint_position"][:380:2], atol=1e-9)
        assert log.tau[5, k] == float(i)
    np.testing.assert_allclose(log.gyro[0], [0.0, 0.0, 0.1])
    np.testing.assert_allclose(log.accel[0], [0.0, 0.0, 9.81])


@pytest.mark.parametrize("compressor", ["none", "zlib", "zstd", "blosc"])
def test_a_mission_in_zarr(tmp_path: Path, compressor: str) -> None:
    found = read(write_zarr(tmp_path / "2024-11-02-17-18-32", compressor))
    check(found.log)
    said = "\n".join(found.notes)
    assert "--truth anymal_state_odometry if it is" in said and "ANYmal D" in said
    assert "command_position is" in said and found.log.pos_w is None
    check(open_log(tmp_path / "2024-11-02-17-18-32" / "data"))


def test_a_mission_in_tar_files_or_csv(tmp_path: Path) -> None:
    check(open_log(tarred(write_zarr(tmp_path / "mission"))))
    check(open_log(write_csv(tmp_path / "tables")))


def test_an_odometry_that_is_asked_for_is_the_ground_truth(tmp_path: Path) -> None:
    log = open_log(write_zarr(tmp_path / "m"), ReadOptions(truth="anymal_state_odometry", targets="none"))
    assert log.pos_w is not None and log.quat_wb_wxyz is not None
    np.testing.assert_allclose(log.pos_w[0], [1.0, 2.0, 0.5])
    # About z by 0.1 rad/s; the file has x, y, z, w.
    np.testing.assert_allclose(log.quat_wb_wxyz[100], [np.cos(0.025), 0.0, 0.0, np.sin(0.025)], atol=1e-6)


def test_verbs_read_a_mission(tmp_path: Path) -> None:
    mission = write_zarr(tmp_path / "m")
    assert main(["info", str(mission)]) == 0
    assert main(["convert", str(mission), str(tmp_path / "m.npz")]) == 0
    check(open_log(tmp_path / "m.npz"))
    assert main(["run", str(mission), "--out", str(tmp_path / "run")]) == 0


def test_what_is_missing_or_damaged_is_one_sentence(tmp_path: Path) -> None:
    mission = write_zarr(tmp_path / "m")
    with pytest.raises(GaitError, match="no topic stim for imu: choose with --imu anymal_imu"):
        open_log(mission, ReadOptions(imu="stim"))
    imu = mission / "data" / "anymal_imu"
    (imu / "ang_vel" / "0.0").write_bytes(b"\x01\x02")
    with pytest.raises(GaitError, match="ang_vel is damaged or in an unknown form"):
        open_log(mission)
    (imu / "ang_vel" / "0.0").unlink()  # never written: the fill value
    assert open_log(mission).gyro[0, 2] == 0.0
    about = json.loads((imu / "lin_acc" / ".zarray").read_text())
    (imu / "lin_acc" / ".zarray").write_text(json.dumps({**about, "shape": [1 << 39, 3]}))
    with pytest.raises(GaitError, match="unpacks to more than"):
        open_log(mission)
    (imu / "lin_acc" / ".zarray").write_text(json.dumps({**about, "dtype": "|O"}))
    with pytest.raises(GaitError, match="no array of numbers of Zarr 2"):
        open_log(mission)
    for file in imu.rglob("*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(GaitError, match="no topic for imu: download data/anymal_imu"):
        open_log(mission)


def golden_values() -> np.ndarray:
    """Numbers whose Blosc buffers are golden: more than one block, the last one shorter."""
    return np.round(np.sin(np.arange(20_000) * 0.002), 2)


@pytest.mark.parametrize("name", ["lz4", "zstd", "zlib", "lz4-plain", "stored"])
def test_golden_blosc_buffers(name: str) -> None:
    """Written by numcodecs 0.16.6 (`Blosc(cname, 5, shuffle)`) of `golden_values`, or of the first of them."""
    one = json.loads(GOLDEN.read_text())[name]
    data = zlib.decompress(bytes.fromhex(one["buffer"]))
    want = golden_values()[: one["count"]].astype(one["dtype"]).tobytes()
    assert unpack_blosc(data) == want
    for cut in (3, 15, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(UnpackError):
            unpack_blosc(data[:cut])
