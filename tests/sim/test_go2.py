"""The Go2: its published figures, and that it walks every gait by the description alone."""

import numpy as np
import pytest

from gait import Log, Robot
from gait.cli import main
from gait.robot import robot_names
from gait.sim.collect import CollectConfig
from gait.sim.episode import run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.walkbench import WALKING_GAITS, figures


@pytest.fixture(scope="module")
def go2() -> Robot:
    return Robot.load("go2")


def test_figures_are_the_published_ones(go2: Robot) -> None:
    assert go2.mass == pytest.approx(15.019, abs=1e-6)
    assert go2.leg_names == ("FR", "FL", "RR", "RL") and go2.joint_names[4] == "FL_thigh_joint"
    assert go2.torque_limit[:3].tolist() == [23.7, 23.7, 45.43]
    # With straight legs the feet lie below the ends of the hip links.
    feet = go2.feet(np.zeros(12))
    np.testing.assert_allclose(feet[1], [0.1934, 0.0465 + 0.0955, -0.426], atol=1e-12)
    np.testing.assert_allclose(feet[2], [-0.1934, -0.0465 - 0.0955, -0.426], atol=1e-12)


def test_links_are_mirrored_as_published(go2: Robot) -> None:
    rear_right, front_left = go2.links[2], go2.links[1]
    np.testing.assert_allclose(rear_right[0].com, [0.0054, -0.00194, -0.000105])
    assert rear_right[0].inertia[0, 1] == pytest.approx(-3.01e-06) and rear_right[0].inertia[1, 2] == pytest.approx(
        1.42e-06
    )
    np.testing.assert_allclose(rear_right[1].com, front_left[1].com * [1.0, -1.0, 1.0])


@pytest.mark.parametrize("gait", WALKING_GAITS)
def test_it_walks(gait: str) -> None:
    config = CollectConfig(robot="go2", gait=gait, terrain="rubber", sensors="exact", seconds=4.0, seed=3)
    for number in range(2):
        result = figures(run_episode(*draw_episode(config, number)[:2]))
        assert not result.fell and result.pair_agreement > 0.85


def test_the_command_line_knows_it(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {"go1", "go2"} <= set(robot_names())
    assert main(["info"]) == 0
    assert "go2" in capsys.readouterr().out
    assert main(["sim", "--robot", "go2", "--episodes", "1", "--seconds", "0.5", "--out", str(tmp_path)]) == 0
    assert Log.load(tmp_path / "episode_00000.npz").robot == "go2"
