"""Airborne episodes: a carried robot obeys physics, its sensors agree with it, and other episodes stay as they are."""

import json
import math
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml

from gait import GaitError, Log, Robot, lie
from gait.sim.airborne import MAX_FORCE, MAX_TORQUE, Grasp, HandTarget, pull
from gait.sim.collect import CollectConfig, collect
from gait.sim.episode import RawEpisode, Simulation, run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.gaits import gait_id
from gait.sim.handled import HandledLegs
from gait.sim.mismatch import PROFILES, sensors_of
from gait.sim.sensor_step import SAMPLE_DT
from gait.sim.sensors import sense
from gait.sim.settings import EpisodeConfig
from gait.sim.store import read_index
from gait.train.config import TrainConfig, config_of, read_config, write_config

GRAVITY = np.array([0.0, 0.0, -9.81])
QUICK = CollectConfig(episodes=4, seconds=0.3, terrain="flat", stationary_share=0.25)


class Handled:
    """An episode in hand, and what MuJoCo itself says of the forces on the way."""

    def __init__(self) -> None:
        simulation = Simulation(EpisodeConfig(gait="airborne", terrain="rubber", seconds=12.0), seed=7)
        model = simulation.model
        imu, felt = model.site("imu").id, np.empty(6)
        self.rows: list[tuple[int, bool, np.ndarray]] = []
        """Row, whether it is held, specific force at the IMU in its own axes."""
        base = model.body("trunk").id
        advance = simulation.physics

        def watched(model: object, data: mujoco.MjData) -> None:
            advance(model, data)
            count[0] += 1
            if count[0] % 10 == 0:
                # The step has left accelerations behind that belong to the state before it.
                mujoco.mj_rnePostConstraint(model, data)
                mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_SITE, imu, felt, 1)
                held = bool(np.abs(data.xfrc_applied[base]).max() > 0.0)
                self.rows.append((count[0] - 1 - simulation._settle, held, felt[3:].copy()))

        count = [0]
        simulation.physics = watched
        while not simulation.done:
            simulation.step()
        self.raw = simulation.episode()
        self.robot = simulation.robot


@pytest.fixture(scope="module")
def handled() -> Handled:
    return Handled()


@pytest.fixture(scope="module")
def several() -> list[RawEpisode]:
    """Six episodes as a collection draws them."""
    config = CollectConfig(gait="airborne", terrain="flat", sensors="exact", seconds=8.0, seed=2)
    return [run_episode(*draw_episode(config, number)[:2]) for number in range(6)]


def test_the_imu_feels_the_hand_as_mujoco_says(handled: Handled) -> None:
    raw, lever = handled.raw, handled.robot.imu_position
    R = np.array([lie.rotation_from_quat(quat) for quat in raw.quat_wb_wxyz])
    vel = raw.vel_w + np.einsum("nij,nj->ni", R, np.cross(raw.omega_b, lever))
    kinds: dict[bool, list[float]] = {True: [], False: []}
    for row, held, felt in handled.rows:
        if row >= 0:
            force = R[row].T @ ((vel[row + 1] - vel[row]) / 1e-3 - GRAVITY)
            kinds[held].append(float(np.linalg.norm(force - felt)))
    assert min(map(len, kinds.values())) > 200, "it must be held, and left alone"
    for errors in kinds.values():
        assert np.median(errors) < 0.05 and np.percentile(errors, 95) < 0.5


def test_strapdown_follows_a_robot_that_is_carried_and_dropped(handled: Handled) -> None:
    log = sense(handled.raw, handled.robot, sensors_of("exact"), np.random.default_rng(0))
    R = [lie.rotation_from_quat(quat) for quat in log.quat_wb_wxyz]
    lever, stride = handled.robot.imu_position, round(SAMPLE_DT * 1000)
    swing = [r @ np.cross(w, lever) for r, w in zip(R, handled.raw.omega_b[stride::stride], strict=True)]
    vel = log.vel_w + swing
    v, worst = vel[0], 0.0
    for k in range(1, len(log)):
        _, once, _ = lie.gammas(log.gyro[k] * SAMPLE_DT)
        v = v + (R[k - 1] @ once @ log.accel[k] + GRAVITY) * SAMPLE_DT
        worst = max(worst, float(np.abs(v - vel[k]).max()))
    assert np.abs(vel).max() > 1.0 and worst < 1e-6


def test_free_flight_weighs_nothing_and_a_steady_hand_carries_the_weight(handled: Handled) -> None:
    raw = handled.raw
    off = ~raw.contact.any(axis=1)
    free = [np.linalg.norm(f) for row, held, f in handled.rows if row >= 0 and not held and off[row]]
    carried = [f[2] for row, held, f in handled.rows if row >= 0 and held and off[row]]
    # Legs that swing jolt the base, so the middle of many counts.
    assert len(free) > 20 and np.median(free) < 4.0
    assert np.median(carried) == pytest.approx(9.81, abs=2.0)


def test_nothing_explodes_and_nothing_ends_early(several: list[RawEpisode]) -> None:
    for raw in several:
        assert raw.fell_at is None and raw.t[-1] == pytest.approx(8.0)
        for name in ("pos_w", "quat_wb_wxyz", "vel_w", "omega_b", "q", "dq", "q_des", "tau", "foot_force_w"):
            assert np.isfinite(getattr(raw, name)).all(), name
        accel = np.linalg.norm(np.diff(raw.vel_w, axis=0) / 1e-3 - GRAVITY, axis=1)
        assert np.percentile(accel, 99.0) < 150.0
        assert np.percentile(np.abs(raw.dq), 99.9) < 35.0 and np.abs(raw.q_des).max() < 6.0
        assert np.hypot(*raw.pos_w[:, :2].T).max() < 8.0 and 0.0 < raw.pos_w[:, 2].min() < raw.pos_w[:, 2].max() < 2.0


def test_no_support_goes_with_every_velocity(several: list[RawEpisode]) -> None:
    off = np.concatenate([~raw.contact.any(axis=1) for raw in several])
    vel = np.concatenate([raw.vel_w for raw in several])[off]
    assert 0.3 < off.mean() < 0.7
    assert vel[:, :2].min() < -1.0 and vel[:, :2].max() > 1.0
    assert vel[:, 2].min() < -1.5 and vel[:, 2].max() > 1.2
    tilt = np.concatenate([1 - 2 * (raw.quat_wb_wxyz[:, 1:3] ** 2).sum(axis=1) for raw in several])
    assert (tilt < 0.0).mean() < 0.15, "a robot on its back is soon taken up again"


def test_legs_know_the_trot_and_no_other_gait(several: list[RawEpisode]) -> None:
    seen = {int(number) for raw in several for number in np.unique(raw.gait_id)}
    assert seen == {-1, gait_id("stand"), gait_id("trot")}
    moving = np.concatenate([np.abs(raw.dq).max(axis=1)[~raw.contact.any(axis=1)] for raw in several])
    assert (moving > 2.0).mean() > 0.4, "legs move while they bear nothing"


def test_legs_blend_into_every_manner_and_stay_within_reason() -> None:
    robot = Robot.load("go1")
    legs = HandledLegs(robot, 40.0, 1.0, 0.02, np.random.default_rng(1))
    still, level = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    met, last = set(), robot.q_stand.reshape(-1, 3)
    for legs.airborne in (True, False):
        for _ in range(3000):
            target = legs.step(last.ravel(), np.zeros(12), level, still, still)
            assert np.isfinite(target).all() and (np.abs(target - last) <= robot.torque_limit.max() / 40.0 + 1e-9).all()
            last = last + 0.3 * (np.clip(target, robot.q_lower.reshape(-1, 3), robot.q_upper.reshape(-1, 3)) - last)
            met.add(type(legs._motion).__name__)
    assert met == {"Controller", "RandomTargets", "Reach", "Swim", "Step", "LegMotion"}


def pulled(quat: list[float], target: list[float], **changes: float) -> np.ndarray:
    """What a hand does to a base at rest at the origin."""
    qpos, wrench = np.array([0.0, 0.0, 0.0, *quat]), np.zeros(6)
    grasp = Grasp(100.0, 20.0, 100.0, 20.0, 12.0, 1000.0, 5.0, changes.get("leash", 0.2))
    at = HandTarget(np.array(target, dtype=float), np.zeros(3), np.zeros(3), np.ones(1), np.zeros(1))
    pull(qpos, np.zeros(6), np.zeros(6), np.zeros((3, 6)), grasp, np.array([0.1, 0.3, 0.4]), at, wrench)
    return wrench


def test_the_hand_carries_pulls_and_rights() -> None:
    level, half = [1.0, 0.0, 0.0, 0.0], math.sin(0.1)
    assert pulled(level, [0.0, 0.0, 0.0]) == pytest.approx([0, 0, 12.0 * 9.81, 0, 0, 0])
    assert pulled(level, [0.1, 0.0, 0.0])[:2] == pytest.approx([12.0 * 100.0 * 0.1, 0.0])
    # Rolled by 0.2 rad: the torque rolls it back.
    assert pulled([math.cos(0.1), half, 0.0, 0.0], [0, 0, 0])[3:] == pytest.approx([-0.1 * 100.0 * 0.2, 0, 0])
    strong = pulled([0.0, 1.0, 0.0, 0.0], [9.0, 0.0, 0.0], leash=9.0)
    assert np.linalg.norm(strong[:3]) == pytest.approx(MAX_FORCE) and 0 < np.linalg.norm(strong[3:]) <= MAX_TORQUE


def test_the_same_seed_gives_the_same_bytes_and_another_another(tmp_path: Path) -> None:
    config = CollectConfig(gait="airborne", terrain="flat", episodes=2, seconds=1.0)
    for name in "ab":
        collect(config, tmp_path / name)
    shas = [[row["sha256"] for row in read_index(tmp_path / name)] for name in "ab"]
    assert shas[0] == shas[1] and shas[0][0] != shas[0][1]


@pytest.mark.parametrize("sensors", PROFILES)
@pytest.mark.parametrize("terrain", ["slope", "rough"])
def test_every_robot_can_be_taken_in_hand(sensors: str, terrain: str, tmp_path: Path) -> None:
    collect(CollectConfig(gait="airborne", terrain=terrain, sensors=sensors, episodes=1, seconds=1.0), tmp_path)
    log = Log.load(tmp_path / "episode_00000.npz")
    assert len(log) == 500 and log.has_truth and np.isfinite(log.accel).all()


def test_both_shares_hold_in_every_stretch() -> None:
    config = replace(QUICK, stationary_share=0.1, airborne_share=0.3)
    gaits = [draw_episode(config, number)[0].gait for number in range(100)]
    for start in range(0, 100, 20):
        stretch = gaits[start : start + 20]
        assert stretch.count("stationary") == 2 and stretch.count("airborne") == 6
    rest = replace(QUICK, stationary_share=0.1, airborne_share=0.9)
    assert {draw_episode(rest, number)[0].gait for number in range(50)} == {"stationary", "airborne"}


def test_episodes_that_stay_are_drawn_as_without_the_share() -> None:
    some, none = replace(QUICK, airborne_share=0.4), QUICK
    same = 0
    for number in range(20):
        (episode, seed, noise), (old, old_seed, old_noise) = draw_episode(some, number), draw_episode(none, number)
        assert seed == old_seed and noise.random() == old_noise.random()
        if episode.gait != "airborne":
            assert episode == old
            same += 1
    assert same == 12


def test_a_collection_without_it_does_not_mention_it(tmp_path: Path) -> None:
    collect(replace(QUICK, episodes=1), tmp_path / "old")
    settings = json.loads((tmp_path / "old/collection.json").read_text())
    assert "airborne_share" not in settings and settings["stationary_share"] == 0.25
    with pytest.raises(GaitError, match="holds a collection with airborne_share = None, not 0.5"):
        collect(replace(QUICK, episodes=1, airborne_share=0.5), tmp_path / "old")
    config = replace(QUICK, episodes=2, stationary_share=0.0, airborne_share=0.5)
    collect(config, tmp_path / "new")
    assert json.loads((tmp_path / "new/collection.json").read_text())["airborne_share"] == 0.5
    assert [row["gait"] for row in read_index(tmp_path / "new")] == ["trot", "airborne"]
    assert collect(replace(config, episodes=3), tmp_path / "new").resumed == 2


def test_shares_that_cannot_be_are_one_sentence() -> None:
    with pytest.raises(GaitError, match="airborne_share must lie between 0 and 1, got -0.1"):
        replace(QUICK, airborne_share=-0.1)
    with pytest.raises(GaitError, match="stationary_share and airborne_share together must not exceed 1"):
        replace(QUICK, airborne_share=0.8)
    with pytest.raises(GaitError, match="airborne_share must lie between 0 and 1, got 1.5"):
        TrainConfig(airborne_share=1.5)


def test_a_training_keeps_the_share(tmp_path: Path) -> None:
    older = {name: value for name, value in TrainConfig().as_dict().items() if name != "airborne_share"}
    assert config_of(older, "") == TrainConfig()
    config = TrainConfig(fresh=True, airborne_share=0.2)
    write_config(config, tmp_path / "config.yaml")
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["airborne_share"] == 0.2
    assert config_of(read_config(tmp_path / "config.yaml"), "") == config


def test_fresh_rollouts_take_the_robot_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    from gait.nets.architecture import architecture_of
    from gait.train import rollouts

    class Pool:
        def __init__(self, *args: object, **kwargs: object) -> None:
            pass

        def submit(self, function: object, plan: CollectConfig, number: int) -> None:
            plans.append(plan)
            raise InterruptedError

    plans: list[CollectConfig] = []
    monkeypatch.setattr(rollouts, "ProcessPoolExecutor", Pool)
    with pytest.raises(InterruptedError):
        rollouts.Rollouts(TrainConfig(fresh=True, airborne_share=0.2), architecture_of({"kind": "gait"}))
    assert plans[0].airborne_share == 0.2
    plan = replace(plans[0], seconds=0.5, airborne_share=0.5, stationary_share=0.0)
    assert len(rollouts.rollout(plan, 1)) == 250
