"""CSV and HDF5 from elsewhere: by a map, by what the names say, and by asking."""

import re
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from bags import smooth_walk

from gait import GaitError, Log
from gait.cli import main
from gait.errors import install_hint
from gait.io import Reading, ReadOptions, open_log, read
from gait.robot import Robot

LEGS, LINKS = ("FL", "FR", "RL", "RR"), ("hip", "thigh", "calf")
ORDER = [f"{leg}_{link}_joint" for leg in LEGS for link in LINKS]


@pytest.fixture(scope="module")
def log() -> Log:
    return smooth_walk(0.4)


def index(log: Log) -> list[int]:
    return [log.joint_names.index(name) for name in ORDER]


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    lines = [",".join("" if np.isnan(value) else repr(value) for value in row) for row in rows]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def theirs(log: Log, joint: str = "{leg}_{link}_{what}") -> dict[str, np.ndarray]:
    """The log with the names of another tool, legs in another order, degrees and milliseconds."""
    quat = log.need("quat_wb_wxyz")
    columns = {"time_ms": log.t * 1e3, "note": np.arange(len(log)) * 1.0}
    columns |= {f"imu_gyro_{axis} [deg/s]": np.degrees(log.gyro[:, i]) for i, axis in enumerate("xyz")}
    columns |= {f"imu_acc_{axis}": log.accel[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gt_p{axis}": log.need("pos_w")[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"gt_q{axis}": quat[:, i] for i, axis in enumerate("wxyz")}
    for what, array in {"pos": log.q, "vel": log.dq, "tau": log.need("tau"), "pos_des": log.need("q_des")}.items():
        for k, name in enumerate(ORDER):
            leg, link, _ = name.split("_")
            columns[joint.format(leg=leg, link=link, what=what, k=k)] = array[:, log.joint_names.index(name)]
    return columns


def close(found: Log, log: Log) -> None:
    np.testing.assert_allclose(found.t, log.t, atol=1e-9)
    for name in ("gyro", "accel", "q", "dq", "q_des", "tau", "pos_w", "quat_wb_wxyz"):
        np.testing.assert_allclose(getattr(found, name), getattr(log, name), atol=1e-9, err_msg=name)


def said(reading: Reading, words: str) -> bool:
    return any(words in note for note in reading.notes)


# CSV


def test_columns_are_guessed_from_their_names_with_units_and_joints(log: Log, tmp_path: Path) -> None:
    reading = read(write_csv(tmp_path / "log.csv", theirs(log)))
    close(reading.log, log)
    np.testing.assert_allclose(reading.log.vel_w[20:-20], log.need("vel_w")[20:-20], atol=5e-3)
    assert said(reading, "columns guessed: time_ms for t, imu_gyro_x [deg/s] for gyro.x")
    assert said(reading, "columns left out: note") and said(reading, "joints matched by what their names mean")


def test_axes_of_motion_capture_without_another_word_are_positions(log: Log, tmp_path: Path) -> None:
    columns = {name.replace("gt_p", "mocap_").replace("gt_q", "mocap_q"): one for name, one in theirs(log).items()}
    assert "mocap_x" in columns and "mocap_qw" in columns
    close(read(write_csv(tmp_path / "log.csv", columns)).log, log)


def test_joints_of_a_humanoid_are_found_by_their_whole_names(log: Log, tmp_path: Path) -> None:
    g1 = Robot.load("g1")
    columns = {name: values for name, values in theirs(log).items() if name[:3] in ("tim", "imu")}
    for i, joint in enumerate(reversed(g1.joint_names)):
        value = np.full(len(log), 0.01 * i)
        columns |= {f"{joint}.position": value, f"vel_{joint}": -value, f"{joint}_temperature": value + 40.0}
    path = write_csv(tmp_path / "log.csv", columns)
    found = read(path, ReadOptions(robot="g1")).log
    expected = np.tile(0.01 * np.arange(g1.num_joints)[::-1], (len(log), 1))
    np.testing.assert_allclose(found.q, expected, atol=1e-9)
    np.testing.assert_allclose(found.dq, -expected, atol=1e-9)
    with pytest.raises(GaitError, match="nothing in it looks like q: .* if it is of no go1, give --robot"):
        read(path)


def test_a_map_of_columns_beats_guessing(log: Log, tmp_path: Path) -> None:
    columns = theirs(log)
    odd = {name: f"c{i}" for i, name in enumerate(columns)}
    path = write_csv(tmp_path / "log.csv", {odd[name]: values for name, values in columns.items()})
    with pytest.raises(GaitError, match="has no column of time: name it with --columns map.yaml"):
        read(path)
    fields = {"pos": "q", "vel": "dq", "tau": "tau", "pos_des": "q_des"}
    lines = ["c0: t ms", "c1: null"]
    for name, mine in list(odd.items())[2:]:
        head, _, tail = name.split(" ")[0].rpartition("_")
        if name.startswith("imu_gyro"):
            lines.append(f"{mine}: gyro.{tail} deg/s")
        elif name.startswith("imu_acc"):
            lines.append(f"{mine}: accel.{tail}")
        elif name.startswith("gt"):
            lines.append(f"{mine}: {'pos_w' if tail[0] == 'p' else 'quat_wb_wxyz'}.{tail[1]}")
        else:
            leg, link, what = name.split("_", 2)
            lines.append(f"{mine}: {fields[what]}.{leg}_{link}_joint")
        assert head
    (tmp_path / "map.yaml").write_text("\n".join(lines))
    close(read(path, ReadOptions(columns=tmp_path / "map.yaml")).log, log)


def test_joints_by_number_are_asked_for(log: Log, tmp_path: Path) -> None:
    columns = {name: values for name, values in theirs(log).items() if not name.startswith(LEGS)}
    columns |= {f"motor_{k}_q": log.q[:, i] for k, i in enumerate(index(log))}
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(GaitError, match="which joint is FR_hip_joint .* --joint-names 'joint_0=FR_hip_joint,"):
        read(path)
    reading = read(path, ReadOptions(joint_names=",".join(ORDER)))
    np.testing.assert_array_equal(reading.log.q, log.q)
    np.testing.assert_allclose(reading.log.dq[10:-10], log.dq[10:-10], atol=0.02)
    assert said(reading, "no joint velocities, so they come from the angles") and reading.log.q_des is None


def test_empty_cells_are_samples_that_did_not_come(tmp_path: Path) -> None:
    log = smooth_walk(1.0)
    columns = theirs(log)
    for name in columns:
        if name.startswith("gt_"):
            columns[name] = np.where(np.arange(len(log)) % 5 == 0, columns[name], np.nan)
    reading = read(write_csv(tmp_path / "log.csv", columns))
    assert said(reading, "gt_px at 100 Hz interpolated to the stamps of imu_gyro_x [deg/s] at 500 Hz")
    np.testing.assert_allclose(reading.log.pos_w, log.need("pos_w")[: len(reading.log)], atol=1e-4)


def test_what_is_wrong_with_a_table_is_told_with_the_fix(log: Log, tmp_path: Path) -> None:
    columns = theirs(log)
    path = tmp_path / "log.csv"

    def refused(words: str, **options: Path) -> None:
        with pytest.raises(GaitError, match=words):
            read(path, ReadOptions(**options))

    write_csv(path, {name: values for name, values in columns.items() if not name.startswith("imu_gyro")})
    refused(
        "nothing in it looks like gyro: name it with --columns map.yaml, a file with lines such as `their_name: gyro.x`"
    )
    write_csv(path, {name: values for name, values in columns.items() if name != "imu_acc_y"})
    refused("has imu_acc_x, imu_acc_z for accel, but nothing for accel.y")
    angle, force = (next(name for name in columns if name.endswith(end)) for end in ("_pos", "_tau"))
    nothing = np.full(len(log), np.nan)
    write_csv(path, {**columns, angle: nothing})
    refused(f"column {re.escape(angle)} holds no numbers, and without q there is no estimate: record it")
    reading = read(write_csv(path, {**columns, force: nothing}))
    assert reading.log.tau is None and said(reading, f"column {force} holds no numbers, so tau is left out")
    write_csv(path, columns)
    path.write_text(path.read_text().partition("\n")[2])
    refused("log.csv begins with numbers: its first line must name the columns")
    write_csv(path, columns)
    path.write_text(path.read_text().replace("\n0.0,0.0", "\nstart,0.0"))
    refused("line 2 has 'start' for time_ms: a number is needed there, or leave the column out")
    write_csv(path, columns)
    path.write_text(path.read_text().replace("\n0.0,0.0", "\n0.0,0.0,7.0"))
    refused(f"line 2 has {len(columns) + 1} values where {len(columns)} are due")
    write_csv(path, columns)
    for text, words in (
        ("nose: gyro.x", "map.yaml speaks of 'nose', which .* has not"),
        ("note: nose", "maps note to 'nose', which is no field of a Log"),
        ("note: gyro.x parsec", "gives note the unit 'parsec'"),
        ("- a", "must hold lines such as"),
        ("a: [", "is not valid YAML"),
    ):
        (tmp_path / "map.yaml").write_text(text)
        refused(words, columns=tmp_path / "map.yaml")
    refused("cannot read", columns=tmp_path / "none.yaml")
    # A recording that was stopped in the middle of a line loses that line.
    path.write_text(path.read_text()[:-200])
    assert len(read(path).log) == len(log) - 1


# HDF5


def write_hdf5(path: Path, log: Log, names: bool = True, scalar_last: bool = False) -> Path:
    with h5py.File(path, "w") as file:
        file["imu/time"] = log.t
        file["imu/gyro"], file["imu/accel"] = log.gyro, log.accel
        joints = file.create_group("joints")
        joints["time"] = log.t
        joints["position"], joints["velocity"] = log.q[:, index(log)], log.dq[:, index(log)]
        joints["torque"], joints["desired_position"] = log.need("tau")[:, index(log)], log.need("q_des")[:, index(log)]
        if names:
            joints.attrs["names"] = ORDER
        file["mocap/stamps_ns"] = np.rint(log.t[::4] * 1e9).astype(np.int64)
        file["mocap/position"] = log.need("pos_w")[::4]
        quat = log.need("quat_wb_wxyz")[::4]
        file["mocap/orientation"] = quat[:, [1, 2, 3, 0]] if scalar_last else quat
        file["camera"] = np.zeros((3, 8, 8))
    return path


@pytest.mark.parametrize("scalar_last", [True, False])
def test_an_hdf5_file_is_read_by_its_names(scalar_last: bool, log: Log, tmp_path: Path) -> None:
    reading = read(write_hdf5(tmp_path / "log.h5", log, scalar_last=scalar_last))
    found, rows = reading.log, slice(0, len(reading.log))
    for name in ("gyro", "accel", "q", "dq", "q_des", "tau"):
        np.testing.assert_array_equal(getattr(found, name), getattr(log, name)[rows], err_msg=name)
    np.testing.assert_allclose(found.quat_wb_wxyz, log.need("quat_wb_wxyz")[rows], atol=1e-3)
    np.testing.assert_allclose(found.pos_w, log.need("pos_w")[rows], atol=1e-3)
    order = (
        "quaternions are x, y, z, w, by comparison with the gyro"
        if scalar_last
        else "quaternions taken to be w, x, y, z"
    )
    assert said(reading, order)
    assert {stream.used for stream in reading.streams} == {"", "imu", "joints", "targets", "truth"}


def test_hdf5_without_names_and_with_a_map(log: Log, tmp_path: Path) -> None:
    path = write_hdf5(tmp_path / "log.h5", log, names=False)
    with pytest.raises(GaitError, match="joints/position: cannot tell which joint is FR_hip_joint"):
        read(path)
    with h5py.File(path, "a") as file:
        file.move("imu/gyro", "imu/blob")
    options = ReadOptions(joint_names=",".join(ORDER))
    with pytest.raises(GaitError, match="nothing in it looks like gyro"):
        read(path, options)
    (tmp_path / "map.yaml").write_text("imu/blob: gyro\nmocap/position: null\n")
    found = read(path, ReadOptions(joint_names=",".join(ORDER), columns=tmp_path / "map.yaml")).log
    np.testing.assert_array_equal(found.gyro, log.gyro)
    np.testing.assert_array_equal(found.q, log.q)
    assert not found.has_truth


def test_an_npz_of_another_tool_is_read_by_its_names(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "theirs.npz"
    arrays = {"timestamps": log.t, "imu_gyro": log.gyro, "imu_acc": log.accel, "q": log.q, "dq": log.dq}
    truth = {"pos_w": log.pos_w, "quat_wb_wxyz": log.quat_wb_wxyz}
    np.savez(path, joint_names=np.array(log.joint_names), note=np.array([{}], dtype=object), **arrays, **truth)
    reading = read(path)
    for name in ("t", "gyro", "accel", "q", "dq", "pos_w", "quat_wb_wxyz"):
        np.testing.assert_allclose(getattr(reading.log, name), getattr(log, name), atol=1e-9)
    assert any("imu_acc for accel" in note for note in reading.notes)
    np.savez(path, joint_names=np.array(log.joint_names[::-1]), **arrays | {"q": log.q[:, ::-1], "dq": log.dq[:, ::-1]})
    np.testing.assert_array_equal(open_log(path).q, log.q)


def test_hdf5_that_is_cut_or_needs_its_package_is_one_sentence(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write_hdf5(tmp_path / "log.h5", log).read_bytes()
    for cut in (100, 1000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.h5").write_bytes(whole[:cut])
        with pytest.raises(GaitError, match="is damaged or cut short: copy or record it again"):
            read(tmp_path / "cut.h5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        GaitError, match=re.escape(f"h5py, which reads HDF5, is not installed: run `{install_hint('hdf5')}`")
    ):
        read(tmp_path / "log.h5")


def test_the_columns_of_a_table_that_cannot_be_read_are_listed(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = theirs(log)
    time = next(iter(columns))
    path = write_csv(
        tmp_path / "log.csv", {name if name == time else f"c{i}": v for i, (name, v) in enumerate(columns.items())}
    )
    assert main(["info", str(path)]) == 1
    printed = capsys.readouterr()
    assert "Contents of" in printed.out and f"column, {len(log)} samples, not used" in printed.out
    assert "used for t" in printed.out and "lists its contents" in printed.err
    assert read(write_csv(tmp_path / "good.csv", columns)).streams[0].used == "t"
