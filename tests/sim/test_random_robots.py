"""Robots drawn at random: each walks, is described beside its episode, and its description is what was simulated."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import pytest
import yaml

from gait import GaitError, Log, Robot, quaternions
from gait.cli import main

pytest.importorskip("mujoco", reason=needs.extra("mujoco"))

from gait.sim.collect import CollectConfig, collect
from gait.sim.episode import episode_robot, run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.proportions import Proportions
from gait.sim.store import read_index, robot_of_episode
from gait.sim.variety import Variant, description, draw_variant, varied

MANY = CollectConfig(episodes=3, seconds=0.6, terrain="rubber", sensors="exact", random_robots=True, seed=4)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many")
    collect(MANY, path)
    return path


def test_a_go1_is_as_large_as_a_go1() -> None:
    assert Proportions.of(Robot.load("go1")) == Proportions(1.0, 1.0)
    same = Robot.of(varied(description("go1"), Variant("same")), "test")
    go1 = Robot.load("go1")
    for name in ("offsets", "q_stand", "torque_limit", "armature", "kp", "imu_position"):
        np.testing.assert_allclose(getattr(same, name), getattr(go1, name), rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(same.leg_inertial, go1.leg_inertial, rtol=1e-4, atol=1e-9)


def test_robots_are_plausible_and_differ() -> None:
    tree, made = description("go1"), []
    for seed in range(30):
        robot = Robot.of(varied(tree, draw_variant(np.random.default_rng(seed), f"r{seed}")), "test")
        for link in (robot.base, *(link for leg in robot.links for link in leg)):
            moments = np.linalg.eigvalsh(link.inertia)
            assert moments[0] > 0.0 and moments[2] <= moments[0] + moments[1], "an inertia that a body can have"
        feet = robot.feet(robot.q_stand)
        size = Proportions.of(robot).length
        assert -feet[:, 2] / size == pytest.approx(0.3113, abs=0.001), "all stand in proportion"
        hips = robot.offsets[:, 0] + robot.offsets[:, 1]
        assert np.abs(feet - hips)[:, :2].max() < 0.03
        # Two standing legs can carry it: the planner asks for that in every trot.
        need = np.abs(robot.jacobian(robot.q_stand)[:, 2, :]) * robot.mass * 9.81 / 2.0
        assert (need.ravel() < robot.torque_limit).all()
        made.append((size, robot.mass, robot.foot_radius, robot.offsets[0, 0, 0]))
    spread = np.ptp(np.array(made), axis=0) / np.mean(made, axis=0)
    assert (spread > 0.4).all(), "sizes, masses, feet and bodies all vary"


def test_every_episode_has_its_own_robot_beside_it(folder: Path) -> None:
    rows = read_index(folder)
    robots = [robot_of_episode(folder / row["file"]) for row in rows]
    assert len({robot.offsets.tobytes() for robot in robots}) == 3
    assert [row["robot"] for row in rows] == [robot.name for robot in robots] == ["go1-4-0", "go1-4-1", "go1-4-2"]
    assert [row["robot_file"] for row in rows] == [f"episode_0000{i}.yaml" for i in range(3)]
    assert json.loads((folder / "collection.json").read_text())["random_robots"] is True
    drawn = episode_robot(draw_episode(MANY, 1)[0])
    assert robots[1].offsets.tobytes() == drawn.offsets.tobytes() and robots[1].mass == drawn.mass


def test_standing_feet_stand_by_the_description(folder: Path) -> None:
    for i in range(3):
        path = folder / f"episode_0000{i}.npz"
        log = Log.load(path)
        assert log.contact is not None

        def sliding(robot: Robot, log: Log = log) -> float:
            """Median speed of the lowest points of feet in contact, which roll but do not slide here."""
            q, dq = log.q.reshape(-1, 4, 3), log.dq.reshape(-1, 4, 3)
            knees = dq[..., 1] + dq[..., 2]
            calf = np.stack([dq[..., 0], knees * np.cos(q[..., 0]), knees * np.sin(q[..., 0])], axis=-1)
            down = quaternions.rotate_inverse(
                log.need("quat_wb_wxyz"), np.tile([0, 0, -robot.foot_radius], (len(log), 1))
            )
            point = robot.foot_velocity(log.q, log.dq, log.gyro) + np.cross(calf + log.gyro[:, None], down[:, None])
            return float(np.median(np.linalg.norm(log.vel_b[:, None] + point, axis=2)[log.contact]))

        own = sliding(robot_of_episode(path))
        assert own < 0.02 and sliding(Robot.load("go1")) > 2.0 * own


def test_feet_of_the_description_are_the_simulated_feet() -> None:
    episode, seed, _ = draw_episode(MANY, 0)
    raw = run_episode(replace(episode, seconds=0.2), seed)
    robot = episode_robot(episode)
    feet = robot.feet(raw.q)
    for leg in range(4):
        place = raw.pos_w + quaternions.rotate(raw.quat_wb_wxyz, feet[:, leg])
        np.testing.assert_allclose(place, raw.foot_pos_w[:, leg], atol=1e-9)
    lowest = raw.foot_pos_w[..., 2][raw.contact] - robot.foot_radius
    assert np.abs(lowest).max() < 0.004, "feet in contact touch the plane"


def test_two_workers_write_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    collect(MANY, tmp_path / "two", workers=2)
    assert contents(tmp_path / "two") == contents(folder)


def test_a_lost_or_changed_description_comes_back(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy/episode_00001.yaml").unlink()
    changed = tmp_path / "copy/episode_00002.yaml"
    changed.write_text(changed.read_text().replace("foot_radius: 0.", "foot_radius: 1."))
    assert collect(MANY, tmp_path / "copy").resumed == 1
    assert contents(tmp_path / "copy") == contents(folder)


def test_an_episode_finds_its_robot_wherever_it_is(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "walk.npz"
    shutil.copy(folder / "episode_00002.npz", alone)
    assert robot_of_episode(alone).name == "go1-4-2"  # the log carries it
    shutil.copy(folder / "episode_00001.yaml", tmp_path / "walk.yaml")
    with pytest.raises(GaitError, match=r"walk.yaml describes go1-4-1, but .*walk.npz is of go1-4-2"):
        robot_of_episode(alone)
    shutil.copy(folder / "episode_00002.yaml", tmp_path / "walk.yaml")
    assert robot_of_episode(alone).mass == robot_of_episode(folder / "episode_00002.npz").mass


def test_an_ordinary_episode_is_of_its_named_robot(tmp_path: Path) -> None:
    config = replace(MANY, random_robots=False, episodes=1, seconds=0.1)
    collect(config, tmp_path / "named")
    assert robot_of_episode(tmp_path / "named/episode_00000.npz").name == "go1"
    assert "random_robots" not in json.loads((tmp_path / "named/collection.json").read_text())
    assert "robot" not in read_index(tmp_path / "named")[0]
    mine = tmp_path / "mine.yaml"
    mine.write_text(yaml.safe_dump({**description("go1"), "name": "mine"}, sort_keys=False))
    collect(replace(config, robot=str(mine)), tmp_path / "mine")
    assert robot_of_episode(tmp_path / "mine/episode_00000.npz").name == "mine"


@pytest.mark.parametrize("gait", ["stationary", "airborne"])
def test_they_also_lie_about_and_fly(gait: str) -> None:
    for number in range(2):
        episode, seed, _ = draw_episode(replace(MANY, gait=gait, seconds=2.0), number)
        raw = run_episode(episode, seed)
        assert np.isfinite(raw.q).all() and np.abs(raw.vel_w).max() < 8.0


def test_the_twin_of_a_random_robot_walks_too(tmp_path: Path) -> None:
    arguments = ["sim", "--random-robots", "--sensors", "twin", "--episodes", "2", "--seconds", "1", "--nominal"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert robot_of_episode(tmp_path / "episode_00001.npz").name == "go1-0-1"
    assert [row["falls"] for row in read_index(tmp_path)] == [0, 0]


def test_draws_of_the_rest_stay_as_they_are() -> None:
    (mine, seed, noise), (plain, plain_seed, plain_noise) = (
        draw_episode(replace(MANY, random_robots=random), 2) for random in (True, False)
    )
    assert seed == plain_seed and noise.random() == plain_noise.random()
    assert mine.friction == plain.friction and mine.control_rate == plain.control_rate
    size = Proportions.of(episode_robot(mine))
    assert mine.kp == pytest.approx(plain.kp * size.stiffness) and mine.kp != plain.kp
    assert mine.commands[0].vx == pytest.approx(plain.commands[0].vx * size.time)
