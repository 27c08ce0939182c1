"""Ice: ground for training on which feet slip often and the trot stays up."""

import numpy as np
import pytest

from gait.bench.courses import TERRAINS
from gait.sim.collect import CollectConfig
from gait.sim.episode import run_episode
from gait.sim.episode_sampling import draw_episode

ICE = CollectConfig(terrain="ice", sensors="exact", seconds=3.0, seed=2)


def test_friction_is_drawn_from_ice_to_wet_stone() -> None:
    drawn = [draw_episode(ICE, number)[0].friction for number in range(200)]
    assert 0.05 <= min(drawn) < 0.06 and 0.24 < max(drawn) <= 0.25
    assert np.mean(drawn) == pytest.approx(0.15, abs=0.01)


def test_feet_slip_and_the_robot_stays_up() -> None:
    raws = [run_episode(*draw_episode(ICE, number)[:2]) for number in range(2)]
    assert all(raw.fell_at is None for raw in raws)
    speed = np.concatenate([np.linalg.norm(raw.foot_vel_w, axis=2)[raw.contact] for raw in raws])
    assert (speed > 0.1).mean() > 0.1


def test_the_benchmark_does_not_walk_on_it() -> None:
    assert "ice" not in TERRAINS
