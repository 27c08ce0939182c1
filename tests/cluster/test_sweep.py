"""Sweeps: what a file asks for, early stopping, resuming, one table."""

import json
from pathlib import Path
from typing import Any

import needs
import pytest
from training_samples import TINY, write_collection

from gait import GaitError
from gait.cli import main
from gait.cluster.sweep_plan import read_sweep
from gait.train.loop import MODEL

VALUES = "\n".join(f"  {name}: {value}" for name, value in TINY.items())


def write_sweep(folder: Path, extra: str = "") -> Path:
    path = folder / "sweep.yaml"
    path.write_text(f"values:\n{VALUES}\nmethods: [gait, nmn]\nseeds: [0, 1]\ndata: {{made-up: data}}\n{extra}")
    return path


def test_a_file_is_methods_times_seeds_times_data(tmp_path: Path) -> None:
    sweep = read_sweep(write_sweep(tmp_path))
    assert [trial.name for trial in sweep.trials] == [
        "gait-made-up-0",
        "gait-made-up-1",
        "nmn-made-up-0",
        "nmn-made-up-1",
    ]
    assert sweep.trials[3].config.network == "nmn" and sweep.trials[3].config.seed == 1 and sweep.stop_early is None
    assert sweep.trials[0].config.data == ("data",) and sweep.trials[0].config.steps == TINY["steps"]
    assert len(read_sweep("examples/sweep.yaml").trials) == 9


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("seed: [1]", "has an unknown key 'seed': choose from config, values, methods, seeds, data, stop_early"),
        ("stop_early: {after: 3}", "stop_early takes after and keep"),
        ("stop_early: {after: 99, keep: 0.5}", "stop_early.after must be a number between validate_every"),
        ("stop_early: {after: 3, keep: 0.9}", "stop_early.keep must be above 0 and at most 0.5, got 0.9"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, extra: str, said: str) -> None:
    with pytest.raises(GaitError, match=said.replace(".", r"\.")):
        read_sweep(write_sweep(tmp_path, extra))
    (tmp_path / "twice.yaml").write_text("methods: [gait, gait]\n")
    with pytest.raises(GaitError, match="asks for gait-data-0 twice"):
        read_sweep(tmp_path / "twice.yaml")


def test_a_trial_tells_what_is_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends as a trial that has failed for good, and not by an error, which Ray Tune would repeat."""
    needs.package("ray.tune")
    from gait.cluster import trials

    monkeypatch.chdir(tmp_path)
    trial = read_sweep(write_sweep(tmp_path)).trials[0]
    ended = trials.run_trial({"trial": trial, "out": str(tmp_path / "out"), "seconds": 1.0})
    assert ended[trials.METRIC] == float("inf") and "data" in ended[trials.FAILURE]


@pytest.mark.slow
def test_a_sweep_resumes_and_makes_one_table(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs.package("ray")
    cluster.processors()
    monkeypatch.chdir(tmp_path)
    write_collection(tmp_path / "data")
    words = ["sweep", str(write_sweep(tmp_path)), "--out", "out", "--json"]
    assert main(words) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["trials"] == 4 and rows["stopped"] == 0 and rows["gait-made-up-0.iterations"] == TINY["iterations"]
    mean = (rows["gait-made-up-0.velocity_rmse"] + rows["gait-made-up-1.velocity_rmse"]) / 2
    assert rows["gait.made-up.velocity_rmse"] == pytest.approx(mean)
    # One training is lost: the others are kept as they are.
    kept = (tmp_path / "out/nmn-made-up-1" / MODEL).stat().st_mtime_ns
    for path in (tmp_path / "out/gait-made-up-0").glob("*.safetensors"):
        path.unlink()
    assert main(words) == 0
    again = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert again == rows and (tmp_path / "out/nmn-made-up-1" / MODEL).stat().st_mtime_ns == kept
    assert "gait, seed 1" in (tmp_path / "out/report.html").read_text()


@pytest.mark.slow
def test_a_training_at_fault_keeps_the_others(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.processors()
    monkeypatch.chdir(tmp_path)
    write_collection(tmp_path / "data")
    (tmp_path / "sweep.yaml").write_text(f"values:\n{VALUES}\ndata: {{a: data, b: none}}\n")
    assert main(["sweep", "sweep.yaml", "--out", "out"]) == 1
    said = capsys.readouterr().err
    assert "1 of 2 trainings failed; gait-b-0: " in said and "it has no index.jsonl" in said, said
    assert (tmp_path / "out/gait-a-0" / MODEL).exists() and not (tmp_path / "out/gait-b-0/stopped.json").exists()
    # The same command repeats that one alone.
    write_collection(tmp_path / "none")
    kept = (tmp_path / "out/gait-a-0" / MODEL).stat().st_mtime_ns
    assert main(["sweep", "sweep.yaml", "--out", "out"]) == 0
    assert (tmp_path / "out/gait-a-0" / MODEL).stat().st_mtime_ns == kept


@pytest.mark.slow
def test_a_sweep_stops_early(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.processors()
    monkeypatch.chdir(tmp_path)
    write_collection(tmp_path / "data")
    sweep = write_sweep(tmp_path, "stop_early: {after: 3, keep: 0.5}")
    assert main(["sweep", str(sweep), "--out", "early", "--json"]) == 0
    early = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert 1 <= early["stopped"] <= 3
    ends = [early[f"{name}-made-up-{seed}.iterations"] for name in ("gait", "nmn") for seed in (0, 1)]
    assert min(ends) == 3 and max(ends) == TINY["iterations"]
