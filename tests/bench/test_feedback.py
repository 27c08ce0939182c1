"""Controllers fed by estimators: our own and a policy, and the statistics of the comparison."""

import json
from pathlib import Path

import needs
import numpy as np
import pytest

pytest.importorskip("mujoco", reason=needs.extra("mujoco"))
pytest.importorskip("onnxruntime", reason=needs.extra("onnxruntime"))
from policies import write_go1, write_policy

from gait.bench.feedback import Delayed, LoopWalk, Source, loop_study, loop_table, loop_walk, true_feedback, truth_of
from gait.cli import main
from gait.report.table import markdown
from gait.sim.collect import episode_feedback
from gait.sim.episode import run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.plan import CollectConfig
from gait.sim.policy.rig import rig_of


def plan_of(folder: Path, **changes: object) -> CollectConfig:
    given = write_go1(folder)
    same = {"terrain": "rubber", "sensors": "twin", "nominal": True, "seconds": 0.5, "episodes": 2, **changes}
    return CollectConfig(policy=given.policy, observation=given.observation, **same)


def test_a_policy_on_a_robot_of_ours_is_fed_by_an_estimator(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, feedback="iekf", pushes=True, seconds=1.0)
    walk = loop_walk(plan, 0)
    assert walk.fell_at is None and 0.0 < walk.velocity < 0.1, "the estimate is near ground truth, but not it"


def test_a_policy_sees_the_estimate_and_not_ground_truth(tmp_path: Path) -> None:
    """A policy whose targets are the angular rate that it reads: with the twin's gyro they are not the exact ones."""
    weights = np.zeros((48, 12))
    weights[3:6, :3] = np.eye(3)
    moved = {}
    for feedback in ("truth", "iekf"):
        plan = plan_of(tmp_path, feedback=feedback)
        write_policy(Path(plan.policy), weights, np.zeros(12))
        rig_of.cache_clear()
        episode, seed, _ = draw_episode(plan, 0)
        moved[feedback] = run_episode(episode, seed, episode_feedback(plan, episode, seed)).q_des
    difference = np.abs(moved["iekf"] - moved["truth"])
    assert 0.0 < difference.max() < 0.1


def test_our_own_controller_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "loop", "--runs", "2", "--seconds", "0.5", "--feedback", "truth,iekf", "--workers", "1"]
    assert main([*words, "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["truth.falls"] == rows["iekf.falls"] == 0 and rows["truth.velocity_rmse"] == 0.0
    assert 0.0 < rows["iekf.velocity_rmse"] < 0.1
    assert rows["iekf.tracking_difference_low"] <= rows["iekf.tracking_difference_mean"]
    assert main(["bench", "loop", "--feedback", "truth,guess"]) == 1
    assert "unknown feedback 'guess'" in capsys.readouterr().err


def test_two_workers_find_the_same(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, seconds=0.2)
    assert loop_study(plan, ("truth", "iekf"), 2) == loop_study(plan, ("truth", "iekf"))


def source(name: str, tracking: np.ndarray, falls: int = 0) -> Source:
    walks = [LoopWalk(1.0 if i < falls else None, float(value), 0.1) for i, value in enumerate(tracking)]
    return Source(name, tuple(walks))


def test_differences_are_paired_and_leave_falls_to_the_falls() -> None:
    rng = np.random.default_rng(8)
    base, gain = rng.uniform(0.1, 0.3, 20), rng.normal(0.01, 0.005, 20)
    truth, other = source("truth", base), source("gait", base + gain)
    found = other.difference(truth, "tracking")
    assert found.mean == pytest.approx(gain.mean())
    # Near the t interval, though walks differ from each other by ten times as much.
    half = 2.093 * gain.std(ddof=1) / np.sqrt(20)
    assert found.low == pytest.approx(gain.mean() - half, abs=0.4 * half)
    assert found.high == pytest.approx(gain.mean() + half, abs=0.4 * half)
    fell = source("gait", np.where(np.arange(20) < 2, 9.0, base), falls=2)
    assert fell.falls == 2 and fell.mean("tracking") < 1.0
    assert fell.difference(truth, "tracking") == (0.0, 0.0, 0.0)
    assert fell.difference(truth, "falls").mean == pytest.approx(0.1)
    all_fell = source("gait", base, falls=20)
    assert np.isnan(all_fell.difference(truth, "tracking").mean)
    text = markdown(loop_table([truth, other, all_fell], "walk"))
    assert "truth" in text and "n/a" in text and truth_of([other]) is None


def test_a_delay_passes_on_what_was_known_before() -> None:
    rows = np.zeros((100, 13))
    rows[:, 3], rows[:, 7] = 1.0, np.arange(100.0)
    delayed = Delayed(true_feedback, 30)
    fed = [delayed(rows[start : start + 20]).vel_w[0] for start in range(0, 100, 20)]
    assert fed == [0.0, 9.0, 29.0, 49.0, 69.0], "ends of the rows at 19, 39, 59, ... less 30, and the first at first"
