"""`gait bench realism`: table, rows, notes and files; the simulated columns are made up, but for a slow test."""

import json
from pathlib import Path

import needs
import numpy as np
import pytest

pytest.importorskip("mujoco", reason=needs.extra("mujoco"))
pytest.importorskip("matplotlib", reason=needs.extra("matplotlib"))

from gait import Log, Robot, open_log
from gait.bench.realism import realism_report, reference_walks
from gait.bench.realism.body_motion import body_motion
from gait.bench.realism.measured_log import MeasuredLog, measure
from gait.bench.realism.quantities import QUANTITIES
from gait.bench.realism.realism_charts import PLANS, realism_charts
from gait.bench.realism.realism_table import RealismStudy
from gait.bench.realism.stances import find_stances
from gait.cli import main
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def log() -> Log:
    return open_log(SAMPLE).slice(0.0, 6.0)


@pytest.fixture(scope="module")
def measured(log: Log) -> MeasuredLog:
    return measure(log, Robot.load("go1"))


@pytest.fixture
def made_up(measured: MeasuredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def walks(*_: object) -> dict[str, list[MeasuredLog]]:
        return {"training": [measured, measured], "twin": [measured]}

    monkeypatch.setattr(realism_report, "reference_walks", walks)


def test_every_quantity_is_measured_of_the_sample_and_every_curve_drawn(measured: MeasuredLog) -> None:
    assert set(measured.values) == {quantity.name for quantity in QUANTITIES}
    missing = [name for name, value in measured.values.items() if isinstance(value, str)]
    assert missing == [], "the sample has everything"
    charts = realism_charts(RealismStudy({"sample": [measured], "training": [measured], "twin": [measured]}))
    assert len(charts) == len(PLANS)


def test_stances_are_the_contacts_of_the_simulator(log: Log) -> None:
    robot = Robot.load("go1")
    stances = find_stances(log, robot, body_motion(log, robot))
    inside = slice(200, -200)
    assert (stances.standing == log.contact)[inside].mean() > 0.9, "feet are low and slow for longer than they bear"


def test_the_twin_is_what_its_description_says(measured: MeasuredLog) -> None:
    """Figures of twin.yaml, found in its recording."""
    values = measured.values
    np.testing.assert_allclose(values["dq_step"], 0.00387736, rtol=1e-3)
    np.testing.assert_allclose(values["q_step"], [0.0302919, 0.0302919, 0.0201946], rtol=1e-2)
    np.testing.assert_allclose(values["gyro_mounting"], np.degrees([0.006, -0.007, 0.004]), atol=0.15)
    assert values["joint_latency"] == pytest.approx(4.0 + 1.6, abs=0.7), "two samples and a filter of 100 Hz"
    assert values["gyro_latency"] == pytest.approx(2.0 + 1.0, abs=0.3), "one sample, and half of one that is averaged"
    assert values["dq_lag"] == pytest.approx(1.6, abs=0.3)


def test_the_command_writes_table_figures_and_report(
    log: Log, made_up: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "walk.npz", tmp_path / "out"
    log.replace(tau=None, q_des=None).save(path)
    assert main(["bench", "realism", str(path), "--out", str(out), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["realism.residual_middle.x.walk"]["unit"] == "m/s"
    assert rows["realism.residual_middle.x.walk"]["value"] == pytest.approx(
        rows["realism.residual_middle.x.twin"]["value"], rel=1e-6
    )
    assert rows["realism.residual_low_load.walk"]["value"] is None
    assert rows["realism.residual_low_load.walk.reason"]["value"] == "neither torques nor joint targets"
    assert (out / "figures/realism-residual-phase.png").stat().st_size > 10_000
    assert "What separates a log" in (out / "report.html").read_text(encoding="utf-8")
    assert "leg: mid stance, RMS, m/s" in (out / "table.md").read_text(encoding="utf-8")


def test_what_training_does_not_show_is_named(measured: MeasuredLog) -> None:
    worse = MeasuredLog({**measured.values, "joint_latency": 25.0, "rate": 100.0}, measured.curves)
    study = RealismStudy({"robot": [worse], "training": [measured, measured], "twin": [measured]})
    (found,) = study.outside("robot")
    assert found.startswith("joint_latency 25 (") and found in study.notes()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["realism"], "name a log with ground truth: gait bench realism LOG"),
        (["realism", "nowhere.npz"], "there is no file nowhere.npz"),
        (["latency", "walk.npz"], "latency takes no logs: leave walk.npz out"),
        (["realism", "a/walk.npz", "b/walk.npz"], "two logs are named walk"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 1
    assert message in capsys.readouterr().err


def test_a_log_without_ground_truth_is_refused_by_name(
    log: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "walk.npz"
    log.replace(pos_w=None, quat_wb_wxyz=None, vel_w=None).save(path)
    assert main(["bench", "realism", str(path)]) == 1
    assert "walk.npz: the log has no ground truth" in capsys.readouterr().err


@pytest.mark.slow
def test_training_data_and_twin_are_simulated_and_measured() -> None:
    walks = reference_walks.reference_walks("trot", "rubber", 2, 71001)
    assert [len(walks[name]) for name in ("training", "twin")] == [2, 1]
    for one in (one for some in walks.values() for one in some):
        assert not isinstance(one.values["residual_middle"], str)
    again = reference_walks.reference_walks("trot", "rubber", 1, 71001)
    assert again["twin"][0].values["residual_middle"] == pytest.approx(walks["twin"][0].values["residual_middle"])
