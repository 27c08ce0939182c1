"""`gait run`: the numbers of the metrics, files that other tools read, and a folder that is whole or not there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import needs
import numpy as np
import pytest
from cli_samples import fails, rows

from gait import Estimator, Log, Robot, Trajectory
from gait.cli import main
from gait.errors import install_hint
from gait.metrics import summary

FILES = {"config.json", "report.html", "results.json", "trajectory.csv", "trajectory.mcap", "trajectory.tum"}


def test_with_truth_the_rows_are_those_of_the_metrics(path: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(path), "--method", "gait", "--json"]) == 0
    found = rows(capsys)
    expected = {row.name: row.value for row in summary(Estimator.load("go1", "gait").run(log), log)}
    for name in ("velocity_rmse", "re_pos_5s", "re_rot_5s", "ate_vel", "coverage_vel_2sigma", "drift"):
        assert found[name] == pytest.approx(expected[name]), name
    assert found["health_ok"] > 0.99 and found["step"] > 0.0
    folder = Path("runs/run/latest")
    assert {file.name for file in folder.iterdir()} == FILES
    assert json.loads((folder / "results.json").read_text())["rows"][0]["name"] == "duration"
    assert json.loads((folder / "config.json").read_text())["start"] == "truth"
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("walk.npz by gait", "Body velocity", "Seen from above", "Attention on each leg", "Accuracy"):
        assert words in page, words


def test_the_files_hold_the_trajectory(path: Path, log: Log) -> None:
    assert main(["run", str(path), "--method", "iekf", "--out", "here"]) == 0
    expected = Estimator.load("go1", "iekf").run(log)
    again = Trajectory.load("here/trajectory.csv")
    assert np.array_equal(again.vel_b, expected.vel_b) and np.array_equal(again.pose_cov, expected.pose_cov)
    poses = Trajectory.load("here/trajectory.tum")
    assert np.allclose(poses.pos_w, expected.pos_w, atol=1e-14) and np.allclose(poses.t, log.t, atol=1e-9)


def test_without_truth_the_start_is_said_and_nothing_is_told_of_accuracy(
    path: Path, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = log.replace(pos_w=None, quat_wb_wxyz=None, vel_w=None, foot_vel_w=None)
    blind.save(path)
    assert main(["run", str(path), "--out", "here"]) == 0
    text = capsys.readouterr().out
    assert "no ground truth: taken to begin at rest" in text and "rms error" not in text and "own std" in text
    found = {row["name"]: row["value"] for row in json.loads(Path("here/results.json").read_text())["rows"]}
    assert not any("rmse" in name or name.startswith(("re_", "ate_")) for name in found)
    expected = Estimator.load("go1").run(blind, "gravity")
    assert np.array_equal(Trajectory.load("here/trajectory.csv").pos_w, expected.pos_w)
    page = Path("here/report.html").read_text(encoding="utf-8")
    for words in ("Standard deviation of the velocity", "taken to begin at rest", "Standard deviation of each leg"):
        assert words in page, words
    assert "no ground truth" in fails(capsys, "run", path, "--start", "truth")


def test_a_glance_fits_a_terminal_and_the_next_command_works(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["run", str(path), "--out", "here"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 20 and max(map(len, text.splitlines()[:-1])) <= 80
    assert re.search(r"velocity, rms error, m/s +0\.\d", text) and re.search(r"drift in 5 s, m +0\.\d", text)
    assert "wrote here" in text
    assert main([*text.split("next: gait ")[1].split(), "--out", "again.html"]) == 0


def test_nothing_is_overwritten_and_nothing_half_done_is_left(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = path.with_name("taken")
    taken.mkdir()
    (taken / "mine.txt").write_text("mine")
    assert "taken exists" in fails(capsys, "run", path, "--out", taken)
    before = sorted(path.parent.rglob("*"))

    def broken(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    from gait.report import html as report

    monkeypatch.setattr(report, "write_report", broken)
    assert "no space left" in fails(capsys, "run", path, "--out", path.with_name("new"))
    assert sorted(path.parent.rglob("*")) == before
    assert "unknown method 'magic'" in fails(capsys, "run", path, "--method", "magic")
    assert sorted(path.parent.rglob("*")) == before


def test_a_gap_is_reported_and_does_not_stop_the_run(path: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    late = np.array(log.t)
    late[1500:] += 0.5
    log.replace(t=late).save(path)
    assert main(["run", str(path), "--out", "here"]) == 0
    text = capsys.readouterr().out
    assert "1 gap, the longest of 0.502 s" in text and "time gap" in text


def test_a_missing_package_is_one_sentence_and_nothing_is_left(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    assert install_hint("view") in fails(capsys, "run", path, "--view", "a.rrd", "--out", "there")
    assert not Path("there").exists() and not Path("a.rrd").exists()


# The view


def test_the_skeleton_ends_where_the_feet_are() -> None:
    robot = Robot.load("go1")
    q = robot.q_stand + np.random.default_rng(1).normal(size=(7, 12)) * 0.4
    lines = np.stack(robot.skeleton(q), axis=1)
    assert lines.shape == (7, 4, 4, 3) and np.allclose(lines[..., 3, :], robot.feet(q), atol=1e-14)
    assert np.allclose(lines[..., 0, :], robot.offsets[:, 0])
    assert np.allclose(np.linalg.norm(np.diff(lines, axis=-2), axis=-1), [0.08, 0.213, 0.213])


def test_a_view_file_holds_robot_velocity_attention_and_truth(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs.package("rerun")
    assert main(["run", str(path), "--out", "here", "--view", "a.rrd"]) == 0
    assert "next: rerun a.rrd" in capsys.readouterr().out
    tool = Path(sys.executable).with_name("rerun")
    text = subprocess.run([tool, "rrd", "print", "a.rrd"], capture_output=True, text=True, check=True).stdout
    for name in ("/world/robot/legs", "/velocity/forward/truth", "/velocity/up/upper", "/attention/FR", "/std/left"):
        assert re.search(rf"{name}\b", text), name
    assert "/world/way/truth" in text
    assert "exists" in fails(capsys, "run", path, "--view", "a.rrd")
    assert "end in .rrd" in fails(capsys, "run", path, "--view", "a.png")
