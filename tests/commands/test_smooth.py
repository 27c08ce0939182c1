"""`gait smooth`: the files it writes, its rows, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gait
from gait.cli import main
from gait.samples import SAMPLE


def test_smooth_writes_a_trajectory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = gait.open_log(SAMPLE).slice(0.0, 6.0)
    log.save(tmp_path / "walk.npz")
    words = ["smooth", str(tmp_path / "walk.npz"), "--out"]
    assert main([*words, str(tmp_path / "json"), "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["smoother_velocity_rmse"] < rows["filter_velocity_rmse"]
    assert rows["smoother_velocity_std"] < rows["filter_velocity_std"]
    written = gait.Trajectory.load(tmp_path / "json" / "trajectory.csv")
    np.testing.assert_allclose(written.vel_b, gait.smooth(log).vel_b, atol=1e-9)
    files = {path.name for path in (tmp_path / "json").iterdir()}
    assert files >= {"trajectory.tum", "trajectory.mcap", "results.json"}
    assert main([*words, str(tmp_path / "text")]) == 0
    printed = capsys.readouterr().out
    assert "smoother" in printed and "next: gait eval" in printed
    assert main([*words, str(tmp_path / "x"), "--method", "nothing"]) == 1
    assert not (tmp_path / "x").exists()


def test_a_choice_of_files_and_a_robot_that_the_log_carries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = Path(gait.__file__).parent / "robot" / "go1.yaml"
    (tmp_path / "mine.yaml").write_text(shipped.read_text().replace("name: go1", "name: mine"))
    log = gait.open_log(SAMPLE).slice(0.0, 2.0)
    gait.Log(**log.arrays(), robot=tmp_path / "mine.yaml").save(tmp_path / "walk.npz")
    (tmp_path / "mine.yaml").unlink()
    words = ["smooth", str(tmp_path / "walk.npz"), "--write", "tum", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"trajectory.tum", "config.json", "results.json"}
    assert f"next: gait eval {tmp_path / 'walk.npz'} {tmp_path / 'out' / 'trajectory.tum'}" in capsys.readouterr().out
    assert main(["view", words[1], "--methods", "iekf", "--out", str(tmp_path / "page.html")]) == 0
    assert "2.0 s of mine" in capsys.readouterr().out
    assert main([*words[:2], "--write", "html"]) == 1
    assert "cannot write 'html': choose some of tum, csv, mcap" in capsys.readouterr().err
