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
