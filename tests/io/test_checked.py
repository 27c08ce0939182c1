"""Logs with errors that people make: what is wrong is said with the option that corrects it; `--fix` corrects it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import EPOCH, Make, messages_of, write_plain_mcap

from gait import GaitError, Log
from gait.cli import main
from gait.io import ReadOptions, open_log, read
from gait.io.checked import correcting_words, read_checked, warnings_of
from gait.samples import SAMPLE

SIGNS = np.ones(12)
SIGNS[[0, 3]] = -1.0


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(5.0, 12.0)


def blind(log: Log) -> Log:
    return log.replace(pos_w=None, quat_wb_wxyz=None, vel_w=None, foot_vel_w=None)


def late(log: Log, rows: int = 50) -> Log:
    """With ground truth that lags by so many rows."""
    then = np.maximum(np.arange(len(log)) - rows, 0)
    return log.replace(**{name: log.need(name)[then] for name in ("pos_w", "quat_wb_wxyz", "vel_w")})


WRONG = {
    "gyro": lambda log: log.replace(gyro=np.degrees(log.gyro)),
    "gyro, no truth": lambda log: blind(log).replace(gyro=np.degrees(log.gyro)),
    "accel": lambda log: log.replace(accel=log.accel / 9.80665),
    "joints": lambda log: log.replace(q=np.degrees(log.q), dq=np.degrees(log.dq), q_des=np.degrees(log.q_des)),
    "dq": lambda log: log.replace(dq=np.degrees(log.dq)),
    "q_des": lambda log: log.replace(q_des=np.degrees(log.q_des)),
    "truth in mm": lambda log: log.replace(pos_w=1e3 * log.pos_w, vel_w=1e3 * log.vel_w),
    "two at once": lambda log: log.replace(gyro=np.degrees(log.gyro), accel=log.accel / 9.80665),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_certain_is_fixed(name: str, log: Log, tmp_path: Path) -> None:
    path = tmp_path / "wrong.npz"
    WRONG[name](log).save(path)
    _, findings = read_checked(path, ReadOptions())
    wrong = [one for one in findings if not one.ok and one.name != "start"]
    assert wrong and all(one.certain and one.fix in one.words for one in wrong)
    reading, findings = read_checked(path, ReadOptions(fix=True))
    assert not warnings_of([one for one in findings if one.name != "start"], ReadOptions(fix=True))
    assert any(note.startswith("fixed: ") for note in reading.notes)
    for field in ("gyro", "accel", "q", "dq", "q_des", *(("pos_w", "vel_w") if "no" not in name else ())):
        np.testing.assert_allclose(getattr(reading.log, field), getattr(log, field), rtol=1e-9, err_msg=field)
    # What is said to correct it does so, in the words of the command line.
    scale = ",".join(one.fix.removeprefix("--scale ") for one in wrong)
    np.testing.assert_allclose(open_log(path, ReadOptions(scale=scale)).gyro, log.gyro, rtol=1e-9)


def test_the_clock_of_the_truth_is_aligned_in_native_files_too(log: Log, tmp_path: Path) -> None:
    late(log).save(tmp_path / "late.npz")
    reading, _ = read_checked(tmp_path / "late.npz", ReadOptions(fix=True))
    found = reading.log
    assert abs(len(log) - len(found) - 50) <= 2
    rows = np.searchsorted(log.t, found.t - 1e-6)
    np.testing.assert_allclose(found.vel_w, log.vel_w[rows], atol=0.03)
    np.testing.assert_array_equal(found.q, log.q[rows])


def test_flipped_hips_swapped_legs_and_another_robot_are_said(log: Log, tmp_path: Path) -> None:
    flipped = blind(log).replace(q=log.q * SIGNS, dq=log.dq * SIGNS)
    flipped.save(tmp_path / "flipped.npz")
    _, findings = read_checked(tmp_path / "flipped.npz", ReadOptions())
    legs = next(one for one in findings if one.name == "legs")
    assert legs.fix == "--scale joints.FR_hip_joint=-1,joints.FL_hip_joint=-1" and not legs.certain
    mended = open_log(tmp_path / "flipped.npz", ReadOptions(scale=legs.fix.removeprefix("--scale ")))
    np.testing.assert_array_equal(mended.q, log.q)

    order = [3, 4, 5, 0, 1, 2, *range(6, 12)]
    blind(log).replace(q=log.q[:, order], dq=log.dq[:, order]).save(tmp_path / "swapped.npz")
    _, findings = read_checked(tmp_path / "swapped.npz", ReadOptions())
    legs = next(one for one in findings if one.name == "legs")
    names = legs.fix.removeprefix("--joint-names ")
    np.testing.assert_array_equal(open_log(tmp_path / "swapped.npz", ReadOptions(joint_names=names)).q, log.q)

    log.save(tmp_path / "walk.npz")
    reading, findings = read_checked(tmp_path / "walk.npz", ReadOptions(robot="go2"))
    robot = next(one for one in findings if one.name == "robot")
    assert not robot.ok and robot.fix == "--robot go1"
    assert "the log says that it is of go1, and is read as one of go2, as --robot asks" in reading.notes


def test_run_and_eval_say_what_is_wrong(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    WRONG["gyro"](log).save("wrong.npz")
    words = "LOOK gyro: it turns at up to"
    assert main(["run", "wrong.npz", "--write", "tum"]) == 0
    text = capsys.readouterr().out
    assert words in text and "--scale gyro=deg/s" in text and "--fix corrects what is certain" in text
    assert main(["eval", "wrong.npz", "--methods", "iekf"]) == 0
    assert words in capsys.readouterr().out
    assert main(["eval", "wrong.npz", "--methods", "gait-legs", "--fix", "--json"]) == 0
    found = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found["gait-legs.velocity_rmse"] < 0.02 and not any("check" in name for name in found)


def test_a_tum_file_has_differences_for_velocities_and_eval_says_so(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log.save("walk.npz")
    log.save("path.tum")
    assert main(["eval", "walk.npz", "path.tum"]) == 0
    assert "path.tum has no velocities: they are differences of its positions" in capsys.readouterr().out


def test_a_recording_of_an_estimate_is_not_scored_against_itself(log: Log, tmp_path: Path) -> None:
    make = Make()
    messages = [*messages_of(log.slice(5.0, 5.4), make, truth="/odom")]
    path = tmp_path / "live.mcap"
    write_plain_mcap(path, messages)
    reading = read(path)
    assert not reading.log.has_truth
    assert any("/odom may be an estimate: --truth /odom if it is the truth" in note for note in reading.notes)
    assert read(path, ReadOptions(truth="/odom")).log.has_truth


def test_units_and_signs_of_a_bag(log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "walk.mcap"
    blind(log).replace(gyro=np.degrees(log.gyro)).save(path)
    found = open_log(path, ReadOptions(scale="gyro=deg/s, joints.RL_calf_joint=-1,accel.y=0.5"))
    np.testing.assert_allclose(found.gyro, log.gyro, rtol=1e-9)
    for name in ("q", "dq", "tau", "q_des"):
        np.testing.assert_array_equal(getattr(found, name)[:, 11], -getattr(log, name)[:, 11])
        np.testing.assert_array_equal(getattr(found, name)[:, :11], getattr(log, name)[:, :11])
    np.testing.assert_array_equal(found.accel[:, 1], 0.5 * log.accel[:, 1])
    for scale, words in (
        ("gyro=furlong", "--scale gives gyro 'furlong': give a factor such as -1, or a unit"),
        ("giro=deg", "--scale speaks of 'giro': choose one of gyro, accel"),
        ("q.FR_knee=-1", "--scale speaks of q.FR_knee, but q has FR_hip_joint"),
        ("gyro=0", "give a factor"),
    ):
        with pytest.raises(GaitError, match=words):
            open_log(path, ReadOptions(scale=scale))
    (tmp_path / "map.yaml").write_text("a: gyro.x\n")
    assert main(["info", str(path), "--columns", str(tmp_path / "map.yaml")]) == 1
    assert "--columns is for CSV and HDF5" in capsys.readouterr().err


def test_more_positions_than_names_are_read_and_fewer_explained(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part, make = log.slice(5.0, 5.4), Make()

    def bag(count: int, names: tuple[str, ...]) -> Path:
        messages = [one for one in messages_of(part, make, truth=None) if one[0] != "/joint_states"]
        for i, t in enumerate(part.t):
            ns = EPOCH + round(t * 1e9)
            padded = [np.concatenate([array[i], np.zeros(4)])[:count] for array in (part.q, part.dq)]
            messages.append(("/joint_states", ns, make.joints(ns, names, *padded)))
        path = tmp_path / f"{count}_{len(names)}.mcap"
        write_plain_mcap(path, sorted(messages, key=lambda one: one[1]))
        return path

    extra = (*part.joint_names, "arm_1", "arm_2", "arm_3")
    reading = read(bag(16, extra))
    np.testing.assert_array_equal(reading.log.q, part.q)
    assert any("16 positions but 15 names; the first 15 positions are taken" in note for note in reading.notes)
    short = bag(11, extra)
    with pytest.raises(GaitError, match="15 names but 11 positions, so which is which is not known"):
        read(short)
    # `gait info` lists the topics all the same.
    assert main(["info", str(short)]) == 1
    said = capsys.readouterr()
    assert "/joint_states" in said.out and "sensor_msgs/msg/Imu" in said.out and "11 positions" in said.err


def test_stamps_that_collapse_are_refused(log: Log, tmp_path: Path) -> None:
    header = "time,wx,wy,wz,ax,ay,az," + ",".join(f"q_{i}" for i in range(12))
    rows = np.column_stack([np.floor(log.t), log.gyro, log.accel, log.q])
    np.savetxt(tmp_path / "coarse.csv", rows, delimiter=",", header=header, comments="", fmt="%.9g")
    with pytest.raises(GaitError, match=r"3500 samples have 7 different stamps, which were rounded"):
        open_log(tmp_path / "coarse.csv", ReadOptions(joint_names=",".join(log.joint_names)))


@pytest.mark.parametrize("column", ["wz", "q_4"])
def test_holes_in_one_column_are_bridged_and_said(column: str, log: Log, tmp_path: Path) -> None:
    names = ["time", "wx", "wy", "wz", "ax", "ay", "az", *(f"q_{i}" for i in range(12))]
    rows = np.column_stack([log.t, log.gyro, log.accel, log.q])
    holes = np.arange(len(rows)) % 4 != 0
    # The sensor was silent for longer than can be bridged, too.
    holes[2000:2200] = True
    rows[holes, names.index(column)] = np.nan
    np.savetxt(tmp_path / "holes.csv", rows, delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    reading = read(tmp_path / "holes.csv", ReadOptions(joint_names=",".join(log.joint_names)))
    assert len(reading.log) >= len(log) - 210
    note = next(note for note in reading.notes if note.startswith(f"column {column}: "))
    assert "cells are not numbers, and were interpolated; " in note and "rows in longer gaps are dropped" in note
    field = "gyro" if column == "wz" else "q"
    assert any(note.startswith(f"{field}: ") and "of 3500 rows have numbers" in note for note in reading.notes)


def test_a_pose_in_a_table_is_truth_only_if_it_says_so(log: Log, tmp_path: Path) -> None:
    part = log.slice(5.0, 5.4)

    def table(prefix: str) -> Path:
        pose = [f"{prefix}{name}" for name in ("px", "py", "pz", "qw", "qx", "qy", "qz")]
        names = ["time", "wx", "wy", "wz", "ax", "ay", "az", *(f"q_{i}" for i in range(12)), *pose]
        rows = np.column_stack([part.t, part.gyro, part.accel, part.q, part.need("pos_w"), part.need("quat_wb_wxyz")])
        path = tmp_path / f"{prefix}table.csv"
        np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="", fmt="%.12g")
        return path

    order = ",".join(log.joint_names)
    assert open_log(table("gt_"), ReadOptions(joint_names=order)).has_truth
    reading = read(table("odom_"), ReadOptions(joint_names=order))
    assert not reading.log.has_truth
    assert any("odom_px and odom_qw may be an estimate" in note for note in reading.notes)
    assert open_log(table("odom_"), ReadOptions(joint_names=order, truth="odom_px")).has_truth


def test_a_low_rate_is_said(log: Log) -> None:
    from gait.log.checks import check_log

    rate = next(one for one in check_log(log.resample(55.0)) if one.name == "rate")
    assert not rate.ok and rate.words.startswith("55 Hz:")


def test_an_order_of_legs_is_corrected_where_the_file_has_other_names(log: Log, tmp_path: Path) -> None:
    """Two hips have the wrong sign as well: what was typed for them moves on with the legs."""
    order = [3, 4, 5, 0, 1, 2, *range(6, 12)]
    wrong = np.ones(12)
    wrong[[0, 6]] = -1.0
    arrays = {"pos": (log.q * wrong)[:, order], "vel": (log.dq * wrong)[:, order]}
    columns = {"time": log.t, **{f"w{axis}": log.gyro[:, i] for i, axis in enumerate("xyz")}}
    columns |= {f"a{axis}": log.accel[:, i] for i, axis in enumerate("xyz")}
    columns |= {f"{name}_{what}": one[:, i] for what, one in arrays.items() for i, name in enumerate(log.joint_names)}
    table = np.column_stack(list(columns.values()))
    np.savetxt(tmp_path / "log.csv", table, delimiter=",", header=",".join(columns), comments="", fmt="%.12g")
    options = ReadOptions()
    for _ in range(3):
        reading, findings = read_checked(tmp_path / "log.csv", options)
        words = correcting_words(findings, options)
        if not words:
            break
        options = ReadOptions(
            **{one[2:].replace("-", "_"): value for one, value in zip(words[::2], words[1::2], strict=True)}
        )
    np.testing.assert_allclose(reading.log.q, log.q, atol=1e-9)


def test_ground_truth_comes_from_a_file_of_its_own(log: Log, tmp_path: Path) -> None:
    blind(log).save(tmp_path / "walk.npz")
    log.save(tmp_path / "truth.tum")
    read_in = open_log(tmp_path / "walk.npz", ReadOptions(truth=str(tmp_path / "truth.tum")))
    np.testing.assert_allclose(read_in.pos_w, log.pos_w, atol=1e-9)
    np.testing.assert_allclose(read_in.vel_w, log.vel_w, atol=0.05)
    late(log).save(tmp_path / "late.tum")
    asked = ReadOptions(truth=str(tmp_path / "late.tum"))
    _, findings = read_checked(tmp_path / "walk.npz", asked)
    assert [one.name for one in findings if not one.ok and one.certain] == ["truth_clock"]
    reading, findings = read_checked(tmp_path / "walk.npz", replace(asked, fix=True))
    assert not warnings_of(findings, asked)
    np.testing.assert_allclose(reading.log.pos_w, log.pos_w[np.searchsorted(log.t, reading.log.t - 1e-6)], atol=0.01)
    log.slice(t1=6.0).save(tmp_path / "elsewhere.tum")
    part = tmp_path / "part.npz"
    blind(log).slice(8.0).save(part)
    with pytest.raises(GaitError, match="elsewhere.tum and the log do not overlap in time"):
        open_log(part, ReadOptions(truth=str(tmp_path / "elsewhere.tum")))
