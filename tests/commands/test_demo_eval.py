"""`gait demo` and `gait eval --methods`: the numbers of the metrics, a table, a report, and clear refusals."""

import re
from pathlib import Path

import numpy as np
import pytest
from cli_samples import fails, rows

from gait import Estimator, Log, Trajectory
from gait.cli import main
from gait.commands import demo
from gait.commands.eval import EvalOptions
from gait.commands.eval import run as evaluate
from gait.errors import GaitError
from gait.methods import BUILT_IN
from gait.metrics import summary

# Demo


def test_demo_keeps_the_names_of_its_rows_and_writes_a_report(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SAMPLE", path)
    assert main(["demo", "--json"]) == 0
    found = rows(capsys)
    assert list(found) == [f"{name}.{what}" for name in BUILT_IN for what in demo.ROWS]
    assert all(0.0 < value < 1.0 for name, value in found.items() if not name.endswith(".step"))
    assert Path("runs/demo/latest/report.html").is_file()


def test_demo_prints_one_line_a_method_and_what_it_means(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SAMPLE", path)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo", "--out", "here/demo.html"]) == 1, "a folder that is not there"
    assert "there is no folder here" in capsys.readouterr().err
    assert main(["demo", "--out", "here"]) == 0
    text = capsys.readouterr().out
    for name in BUILT_IN:
        assert len(re.findall(rf"^ *{name} +[0-9]", text, re.MULTILINE)) == 1, name
    assert max(map(len, text.splitlines()[:10])) <= 80
    assert "velocity, m/s" in text and "5 s drift" in text and f"wrote {Path('here/report.html')}" in text
    assert main([*text.split("next: gait ")[1].split(), "--out", "again.html"]) == 0, "the next command must work"


# Methods on logs


def test_eval_of_methods_gives_what_the_metrics_give(path: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(path), "--methods", "gait", "iekf", "--json"]) == 0
    found = rows(capsys)
    for method in ("gait", "iekf"):
        expected = {row.name: row.value for row in summary(Estimator.load("go1", method).run(log), log)}
        for name in (
            "velocity_rmse",
            "re_pos_5s",
            "re_vel_5s",
            "re_rot_5s",
            "ate_vel",
            "ate_rot",
            "coverage_vel_2sigma",
        ):
            assert found[f"{method}.{name}"] == pytest.approx(expected[name]), name
        assert found[f"{method}.step"] > 0.0
    assert not any(name.startswith("nmn") for name in found)
    page = Path("runs/eval/latest/report.html").read_text(encoding="utf-8")
    for words in ("Methods on walk.npz", "Body velocity", "weights.gait", "gait eval", "sha256"):
        assert words in page, words
    assert "Log by log" not in page


def test_eval_of_several_logs_has_each_and_the_mean(path: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    other = path.with_name("short.npz")
    log.slice(t1=float(log.t[0]) + 2.0).save(other)
    words = ["eval", str(path), str(other), "--methods", "iekf", "iekf-sr", "--out", "two.html"]
    assert main([*words, "--json"]) == 0
    found = rows(capsys)
    each = [found[f"{name}.iekf.velocity_rmse"] for name in ("walk", "short")]
    assert found["iekf.velocity_rmse"] == pytest.approx(np.mean(each))
    assert found["iekf.velocity_rmse.std"] == pytest.approx(np.std(each, ddof=1))
    assert "walk.iekf.re_pos_5s" in found and "iekf.re_pos_5s" not in found, "a walk of 2 s has no drift over 5 s"
    page = Path("two.html").read_text(encoding="utf-8")
    assert "Log by log" in page and "short: body velocity" in page and ">short<" in page and ">mean<" in page


def test_methods_that_lack_their_inputs_are_left_out_with_the_reason(
    path: Path, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    poor = log.replace(q_des=None, tau=None, contact=None, foot_force=None)
    poor.save(path)
    assert main(["eval", str(path), "--methods", "all"]) == 0
    text = capsys.readouterr().out
    assert set(re.findall("left out ([a-z-]+): ", text)) == set(BUILT_IN) - {"gait", "gait-legs"}
    assert "q_des" in text and re.search(r"velocity, m/s +0\.", text)
    assert "no method can read these logs" in fails(capsys, "eval", path, "--methods", "nmn")


def test_eval_may_start_from_gravity(path: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(path), "--methods", "iekf", "--start", "gravity", "--json"]) == 0
    expected = summary(Estimator.load("go1", "iekf").run(log, "gravity"), log)
    assert rows(capsys)["iekf.velocity_rmse"] == pytest.approx(
        next(row.value for row in expected if row.name == "velocity_rmse")
    )


def test_bad_input_is_refused_in_a_sentence(path: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    blind, gap = path.with_name("blind.npz"), path.with_name("gap.npz")
    log.replace(vel_w=None).save(blind)
    late = np.array(log.t)
    late[500:] += 1.0
    log.replace(t=late).save(gap)
    before = sorted(path.parent.iterdir())
    assert "or --methods all to run the estimators on the log" in fails(capsys, "eval", path)
    assert "one log and one trajectory" in fails(capsys, "eval", path, path, path)
    assert "unknown method 'magic'" in fails(capsys, "eval", path, "--methods", "magic")
    assert "blind has no truth" in fails(capsys, "eval", path, blind, "--methods", "all")
    assert "gap: the log has a gap of 1 s" in fails(capsys, "eval", gap, "--methods", "all")
    assert "given twice" in fails(capsys, "eval", path, path, "--methods", "all")
    assert "add --methods all" in fails(capsys, "eval", path, "--out", "x")
    assert "leave out --methods" in fails(capsys, "eval", path, "--methods", "all", "--alignment", "se3")
    assert sorted(path.parent.iterdir()) == before, "nothing may be left behind"


# The longest gap


def test_the_longest_gap_reaches_every_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def walk(rate: float) -> Trajectory:
        t = np.arange(0.0, 8.0, 1.0 / rate)
        zero, one = np.zeros_like(t), np.ones_like(t)
        quat = np.stack([one, zero, zero, zero], axis=1)
        return Trajectory(
            t=t, pos_w=np.stack([t, zero, zero], 1), vel_w=np.stack([one, zero, zero], 1), quat_wb_wxyz=quat
        )

    truth, estimate = walk(5.0), walk(100.0)
    sparse = {row.name: row.value for row in summary(estimate, truth)}
    dense = {row.name: row.value for row in summary(estimate, truth, max_gap=0.3)}
    assert sparse["samples"] == 40 and dense["samples"] == 781
    assert dense["re_pos_5s"] == pytest.approx(0.0, abs=1e-9) and dense["distance"] == pytest.approx(7.8)
    truth.save(tmp_path / "truth.npz")
    estimate.save(tmp_path / "estimate.npz")
    words = ["eval", str(tmp_path / "truth.npz"), str(tmp_path / "estimate.npz"), "--json"]
    assert main([*words, "--max-gap", "0.3"]) == 0
    assert rows(capsys)["samples"] == 781
    far = walk(5.0).replace(t=walk(5.0).t + 0.055)
    with pytest.raises(GaitError, match="--max-gap"):
        summary(estimate, far)


def test_the_log_comes_first_and_methods_may_have_commas(
    path: Path, log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trajectory = tmp_path / "trajectory.npz"
    Estimator.load("go1").run(log).save(trajectory)
    with pytest.raises(GaitError, match=re.escape(f"type `gait eval {path} {trajectory}`")):
        evaluate(EvalOptions(trajectory, (path,)))
    with pytest.raises(GaitError, match="give the estimated trajectory after the log"):
        evaluate(EvalOptions(trajectory))
    outcome = evaluate(EvalOptions(path, methods=("gait-legs,iekf",), out=tmp_path / "out"))
    assert {row.name.split(".")[0] for row in outcome.rows} >= {"gait-legs", "iekf"}
