"""Rising episodes: the belly carries the robot while its legs move, it gets up, and lies down again."""

from pathlib import Path

import numpy as np
import pytest

from gait import Log, Robot
from gait.sim.collect import CollectConfig, collect
from gait.sim.episode import RawEpisode, Simulation
from gait.sim.episode_sampling import draw_episode
from gait.sim.gaits import gait_id
from gait.sim.mismatch import PROFILES
from gait.sim.postures import Rising
from gait.sim.store import read_index

RISE = CollectConfig(gait="rising", terrain="flat", sensors="exact", seconds=6.0, seed=7)


@pytest.fixture(scope="module")
def several() -> list[tuple[RawEpisode, np.ndarray]]:
    """Episodes, and when their belly touches the ground."""
    made = []
    for number in range(4):
        simulation = Simulation(*draw_episode(RISE, number)[:2])
        while not simulation.done:
            simulation.step()
        raw = simulation.episode()
        made.append((raw, simulation.record[-len(raw.t) :, 73] > 0.0))
    return made


def test_it_lies_gets_up_and_lies_again(several: list[tuple[RawEpisode, np.ndarray]]) -> None:
    for raw, belly in several:
        assert raw.fell_at is None and len(raw.t) == 6001
        assert raw.pos_w[:, 2].min() < 0.08 and raw.pos_w[:, 2].max() > 0.2, "on its belly, and on its feet"
        assert belly.any() and not belly.all()
    assert 0.15 < np.mean(np.concatenate([belly for _, belly in several])) < 0.7


def test_legs_move_while_the_belly_carries(several: list[tuple[RawEpisode, np.ndarray]]) -> None:
    rates = np.concatenate([np.abs(raw.dq[belly]).max(axis=1) for raw, belly in several])
    assert (rates > 1.0).mean() > 0.2
    free = np.concatenate([(~raw.contact[belly]).mean(axis=1) for raw, belly in several])
    assert 0.2 < free.mean() < 0.95, "some feet hang free, some touch"
    # Standing legs would tell a velocity that the body does not have.
    slow = np.concatenate([np.linalg.norm(raw.vel_w[belly], axis=1) for raw, belly in several])
    assert np.median(slow) < 0.1


def test_the_trot_is_the_only_gait(several: list[tuple[RawEpisode, np.ndarray]]) -> None:
    assert {int(number) for raw, _ in several for number in np.unique(raw.gait_id)} == {-1, gait_id("trot")}
    assert any(raw.config.pushes for raw, _ in several)


def test_it_starts_on_the_ground_and_not_in_it() -> None:
    robot = Robot.load("go1")
    for seed in range(20):
        legs = Rising(robot, 40.0, 1.0, 0.004, np.random.default_rng(seed))
        state = legs.start(robot)
        lowest = robot.feet(state[7:])[:, 2].min() - robot.foot_radius + state[2]
        assert lowest >= 0.0 and state[2] < 0.13
        assert np.abs(legs.step(state[7:], np.zeros(12), state[3:7], np.zeros(3), np.zeros(3))).max() < 4.0


@pytest.mark.parametrize("sensors", PROFILES)
def test_every_robot_rises(sensors: str, tmp_path: Path) -> None:
    config = CollectConfig(gait="rising", terrain="ice", sensors=sensors, episodes=1, seconds=1.0, random_robots=True)
    for name in "ab":
        collect(config, tmp_path / name)
    log = Log.load(tmp_path / "a/episode_00000.npz")
    assert len(log) == 500 and np.isfinite(log.accel).all()
    assert read_index(tmp_path / "a") == read_index(tmp_path / "b")
