"""Learned controllers: what a policy reads, and its walks as Logs and collections."""

import json
from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import pytest

pytest.importorskip("mujoco", reason=needs.extra("mujoco"))
pytest.importorskip("onnxruntime", reason=needs.extra("onnxruntime"))
from policies import OBSERVATION, SIZE, write_observation, write_policy, write_recurrent_policy, write_table

from gait import Estimator, GaitError, Log, Robot
from gait.cli import main
from gait.lie import so3_exp
from gait.sim.collect import collect, simulate_episode
from gait.sim.episode import RawEpisode, Simulation, run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.plan import CollectConfig
from gait.sim.policy.observation import PolicyConfig, Term, per_joint, policy_config_of_metadata, read_policy_config
from gait.sim.policy.observer import Observer, Seen, check_size
from gait.sim.policy.rig import rig_of, shipped_observations
from gait.sim.settings import POLICY, SCHEDULES, CommandRanges, EpisodeConfig, PolicyFiles, Push

ZERO = np.zeros((SIZE, 4)), np.zeros(4)


def files(folder: Path, weights=ZERO[0], bias=ZERO[1], paired: bool = False, **settings) -> PolicyFiles:
    """A table and a policy for it."""
    policy = write_policy(folder / "table.onnx", weights, bias)
    return PolicyFiles(str(policy), str(write_table(folder, paired)), str(write_observation(folder)), **settings)


def stand(policy: PolicyFiles, seconds: float = 0.5, **settings) -> RawEpisode:
    """The table under its policy."""
    given = {"terrain": "scene", "gait": POLICY, "control_rate": 50, "settle": 0.5, **settings}
    return run_episode(EpisodeConfig(policy=policy, seconds=seconds, **given), 0)


def test_a_table_stands_and_feels_its_weight(tmp_path: Path) -> None:
    raw = stand(files(tmp_path))
    assert raw.fell_at is None and raw.contact.all()
    np.testing.assert_allclose(raw.foot_force_w[-1].sum(axis=0), [0.0, 0.0, 10 * 9.81], atol=1.0)
    np.testing.assert_allclose(raw.pos_w[-1, 2], 0.3 * np.cos(0.1) + 0.03, atol=0.01)
    np.testing.assert_allclose(raw.foot_pos_w[-1, :, 2], 0.03, atol=0.005)
    assert np.abs(raw.foot_vel_w[-1]).max() < 0.01
    # tau = kp (q_des - q) - kd dq, with the joint's damping as kd.
    expected = 60.0 * (raw.q_des - raw.q) - 2.0 * raw.dq
    np.testing.assert_allclose(raw.tau, np.clip(expected, -40.0, 40.0), atol=1e-9)


def test_payload_motor_strength_and_pushes_act(tmp_path: Path) -> None:
    table = files(tmp_path)
    loaded = stand(table, payload_mass=2.0, motor_strength=0.9)
    np.testing.assert_allclose(loaded.foot_force_w[-1, :, 2].sum(), 12 * 9.81, atol=1.0)
    np.testing.assert_allclose(loaded.tau, 0.9 * np.clip(60 * (loaded.q_des - loaded.q) - 2 * loaded.dq, -40, 40))
    before, after = stand(table), stand(table, pushes=(Push(0.1, 0.1, (60.0, 0.0, 0.0)),))
    np.testing.assert_array_equal(before.vel_w[:100], after.vel_w[:100])
    assert np.abs(np.diff(after.vel_w[:, 0])).max() < 0.02, "a force over time, no jump of the velocity"
    assert after.vel_w[101:200, 0].max() > 0.1


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("terrain", ["scene", "flat"])
def test_friction_is_that_of_the_ground(tmp_path: Path, paired: bool, terrain: str) -> None:
    """A push that friction 1 holds makes the table slide on friction 0.1."""
    table, shove = files(tmp_path, paired=paired), (Push(0.1, 0.3, (40.0, 0.0, 0.0)),)
    slides = [
        float(np.ptp(stand(table, terrain=terrain, friction=mu, pushes=shove).foot_pos_w[..., 0], axis=0).max())
        for mu in (1.0, 0.1)
    ]
    assert slides[1] > 3.0 * slides[0], slides


def test_contacts_stay_soft_unless_told_otherwise(tmp_path: Path) -> None:
    """Feet sink in by as much on other ground of the same friction, which softness depends on."""

    def sunk(terrain: str, rigid: bool = False) -> float:
        raw = stand(files(tmp_path, rigid=rigid), terrain=terrain, friction=0.6)
        return 0.03 - float(raw.foot_pos_w[-1, :, 2].mean())

    assert abs(sunk("flat") - sunk("scene")) < 1e-5
    assert sunk("flat", rigid=True) < 0.2 * sunk("flat")


@pytest.mark.parametrize("terrain", ["rough", "debris", "circular", "slope", "slippery"])
def test_any_terrain_carries_it(tmp_path: Path, terrain: str) -> None:
    raw = stand(files(tmp_path), terrain=terrain, seconds=0.2)
    assert raw.fell_at is None and raw.contact[-1].sum() >= 3


def test_a_table_that_tips_over_has_fallen(tmp_path: Path) -> None:
    table = files(tmp_path)
    assert stand(table, pushes=(Push(0.0, 0.5, (0.0, 400.0, 0.0)),), seconds=2.0).fell_at is not None


def test_joints_go_by_name_whatever_the_order_of_the_policy(tmp_path: Path) -> None:
    """Metadata of an exporter name the joints backwards; the Log has the scene's order."""
    metadata = {"joint_names": "d_joint,c_joint,b_joint,a_joint", "action_scale": "0.4,0.3,0.2,0.1"}
    policy = write_policy(tmp_path / "p.onnx", *ZERO[:1], np.array([0.1, 0.2, 0.3, 0.4]), metadata)
    text = OBSERVATION.replace("action_scale: 0.5\n", "")
    rig_files = PolicyFiles(str(policy), str(write_table(tmp_path)), str(write_observation(tmp_path, text)))
    raw = stand(rig_files)
    np.testing.assert_allclose(raw.q_des[-1], [0.14, 0.16, -0.04, -0.06], atol=1e-6)
    assert rig_of(rig_files).robot.joint_names == ("a_joint", "b_joint", "c_joint", "d_joint")


def test_the_policy_reads_the_simulated_state(tmp_path: Path) -> None:
    """A policy that returns parts of its observation shows what it read."""
    weights = np.zeros((SIZE, 4))
    weights[9:12, :3], weights[8, 3] = np.eye(3), 0.1  # the command, and gravity along z
    policy = files(tmp_path, weights)
    config = EpisodeConfig(policy=policy, gait=POLICY, terrain="scene", seconds=0.1, settle=0.5, control_rate=50)
    raw = run_episode(replace(config, commands=(replace(config.commands[0], vx=0.02, vy=0.01, yaw_rate=-0.02),)), 0)
    moved = (raw.q_des[-1] - [0.1, 0.1, -0.1, -0.1]) / 0.5
    np.testing.assert_allclose(moved, [0.02, 0.01, -0.02, -0.1], atol=2e-3)


def test_a_recurrent_policy_keeps_its_state_within_an_episode(tmp_path: Path) -> None:
    policy = write_recurrent_policy(tmp_path / "r.onnx", SIZE, 4)
    given = PolicyFiles(str(policy), str(write_table(tmp_path)), str(write_observation(tmp_path)))
    for _ in range(2):
        raw = stand(given, seconds=0.1, settle=0.1)
        np.testing.assert_allclose(raw.q_des[0, 0] - 0.1, 0.5 * 0.06, atol=1e-6)


def seen(rng: np.random.Generator, count: int = 4) -> Seen:
    R, rest = so3_exp(rng.normal(size=3)), [rng.normal(size=3) for _ in range(3)]
    return Seen(rng.normal(size=count), rng.normal(size=count), R, *rest, rng.normal(size=count), 0.4)


def test_terms_are_in_the_axes_and_at_the_point_they_say() -> None:
    rng = np.random.default_rng(3)
    now, p_bi, R_bi, pose = seen(rng), rng.normal(size=3), so3_exp(rng.normal(size=3)), rng.normal(size=4)
    terms = [Term(name, at=at) for at in ("base", "imu") for name in ("base_velocity", "gyro", "projected_gravity")]
    config = PolicyConfig(terms=(*terms, Term("joint_pos"), Term("joint_pos", relative=False)))
    values = Observer(config, pose, p_bi, R_bi)(now)
    vel_b, R_wi = now.R_wb.T @ now.vel_w, now.R_wb @ R_bi
    np.testing.assert_allclose(values[:3], vel_b, rtol=1e-6)
    np.testing.assert_allclose(values[3:6], now.omega_b, rtol=1e-6)
    np.testing.assert_allclose(values[6:9], now.R_wb.T @ [0, 0, -1], rtol=1e-6)
    # In the world: a point of the body moves with v + w x r.
    point_w = now.vel_w + np.cross(now.R_wb @ now.omega_b, now.R_wb @ p_bi)
    np.testing.assert_allclose(values[9:12], R_wi.T @ point_w, rtol=1e-5)
    np.testing.assert_allclose(values[12:15], R_bi.T @ now.omega_b, rtol=1e-5)
    np.testing.assert_allclose(values[15:18], R_wi.T @ [0, 0, -1], rtol=1e-5)
    np.testing.assert_allclose(values[18:], [*(now.q - pose), *now.q], rtol=1e-5)


def test_histories_phases_scales_and_clips() -> None:
    rng = np.random.default_rng(4)
    steps = [seen(rng)._replace(time=0.1 * k, command=np.full(3, float(k))) for k in range(3)]
    phase = Term("phase", frequency=1.5, offsets=(0.0, np.pi), scale=2.0)
    config = PolicyConfig(terms=(Term("command", history=2), phase), history=2)

    def last(config: PolicyConfig) -> np.ndarray:
        observer = Observer(config, np.zeros(4), np.zeros(3), np.eye(3))
        return [observer(step) for step in steps][-1]

    angle = 2 * np.pi * 1.5 * 0.2
    now = [1, 1, 1, 2, 2, 2, *(2 * np.cos([angle, angle + np.pi])), *(2 * np.sin([angle, angle + np.pi]))]
    np.testing.assert_allclose(last(config)[10:], now, atol=1e-6)
    np.testing.assert_allclose(last(config)[:6], [0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(last(replace(config, newest_first=True))[:6], [2, 2, 2, 1, 1, 1])
    assert np.abs(last(replace(config, observation_clip=0.5))).max() == 0.5
    first = Observer(config, np.zeros(4), np.zeros(3), np.eye(3))(steps[1])
    np.testing.assert_allclose(first[:6], 1.0, err_msg="before the first step is the first step")


def test_a_wrong_size_names_the_term() -> None:
    names = ("base_velocity", "gyro", "projected_gravity", "command", "joint_positions", "joint_velocities")
    terms = (*(Term(name) for name in names), Term("last_action"))
    config = PolicyConfig(terms=terms)
    check_size(config, 4, SIZE)
    check_size(replace(config, history=3), 4, 3 * SIZE)
    for change, size, words in (
        ({"terms": terms[:3]}, SIZE, "base_velocity 3, gyro 3, projected_gravity 3"),
        ({"terms": (*terms, Term("phase", frequency=1.0))}, SIZE, "leave out the term phase"),
        ({"terms": terms[1:]}, SIZE, "takes 24 numbers but the observation has 21 .*: add the term base_velocity"),
        ({}, SIZE - 1, "correct the terms"),
        ({}, SIZE + 4, "give the term joint_positions a `history` of 2"),
        ({"history": 2}, SIZE, "2 times over"),
    ):
        with pytest.raises(GaitError, match=words):
            check_size(replace(config, **change), 4, size)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate: 50", "rat: 50", "unknown key 'rat'"),
        ("rate: 50\n", "", "nothing about `rate`"),
        ("imu: imu\n", "", "nothing about `imu`"),
        ("pose: rest\n", "", "nothing about `pose`"),
        ("pose: rest", "pose: nap", "no key 'nap'"),
        ("pose: rest", "pose: [0.1, 0.2]", "`pose` has 2 values"),
        ("action_scale: 0.5", "action_scale: {a_.*: 1, b_.*: 1, c_.*: 1}", "no entry for the joint d_joint"),
        ("action_scale: 0.5", "action_scale: fast", "`action_scale` must be a number"),
        ("imu: imu", "imu: nose", "no site or body 'nose'"),
        ("imu: imu", "imu: a_leg", "moves against the base top"),
        ("a: a_foot", "a: paw", "no geom or body 'paw'"),
        ("gyro", "giro", "unknown term 'giro'"),
        ("gyro", "{term: gyro, skale: 2}", "unknown key 'skale' in entry 2"),
        ("gyro", "{term: gyro, scale: [1, 2]}", "scale` of the term gyro"),
        ("gyro, ", "", "the policy takes 24 numbers but the observation has 21"),
        ("rate: 50", "rate: 50\nrobot: go1", "not of the robot go1"),
        ("rate: 50", "rate: 50\njoints: [a_joint]", "gives 4 actions but `joints` names 1"),
        ("rate: 50", "rate: 30", "must divide 1000"),
        ("rate: 50", "rate: 50\ncommands: {up: [0, 1]}", "unknown key 'up'"),
        ("rate: 50", "rate: [", "not valid YAML"),
    ],
)
def test_what_is_wrong_or_missing_is_said_in_one_sentence(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in OBSERVATION
    given = files(tmp_path)
    Path(given.observation).write_text(OBSERVATION.replace(old, new, 1))
    rig_of.cache_clear()
    with pytest.raises(GaitError, match=words) as error:
        rig = rig_of(given)
        Simulation(EpisodeConfig(policy=given, gait=POLICY, terrain="scene", control_rate=rig.rate), 0).step()
    assert "\n" not in str(error.value)


def test_files_that_are_not_there_or_not_what_they_should_be(tmp_path: Path) -> None:
    good = files(tmp_path)
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    (tmp_path / "bad.xml").write_text("<mujoco><worldbody/></mujoco>")
    (tmp_path / "broken.xml").write_text("<mujoco><world")
    for change, words in (
        ({"policy": "none.onnx"}, "there is no policy"),
        ({"policy": str(tmp_path / "bad.onnx")}, "no ONNX file"),
        ({"model": "none.xml"}, "there is no scene"),
        ({"model": str(tmp_path / "bad.xml")}, "no floating base"),
        ({"model": str(tmp_path / "broken.xml")}, "MuJoCo cannot load"),
        ({"model": ""}, "name an MJCF file with --model"),
        ({"observation": str(tmp_path / "none.yaml")}, "cannot read it"),
        ({"observation": ""}, "nothing about `terms`, `pose`, .* and `feet`"),
    ):
        with pytest.raises(GaitError, match=words):
            rig_of(replace(good, **change))
    text = Path(good.model).read_text().replace('<inertial pos="0 0 0" mass="8" diaginertia="0.1 0.1 0.1"/>', "")
    (tmp_path / "light.xml").write_text(text)
    with pytest.raises(GaitError, match="body top takes its mass from the mesh shell"):
        rig_of(replace(good, model=str(tmp_path / "light.xml")))


def test_metadata_of_exporters_are_read() -> None:
    config = policy_config_of_metadata(
        {
            "joint_names": "robot/a_joint,robot/b_joint",
            "joint_stiffness": "20.000,25.000", "joint_damping": "0.5,0.6",
            "default_joint_pos": "0.1,-0.2", "action_scale": "0.25", "run_path": "x", "command_names": "twist",
            "observation_names": "base_lin_vel,base_ang_vel,projected_gravity,joint_pos,joint_vel,actions,command",
        }
    )  # fmt: skip
    assert config.joints == ("a_joint", "b_joint") and config.kp == (20.0, 25.0) and config.pose == (0.1, -0.2)
    assert config.action_scale == 0.25 and [term.term for term in config.terms][:2] == ["base_velocity", "gyro"]
    with pytest.raises(GaitError, match="unknown term 'height_scan'"):
        policy_config_of_metadata({"observation_names": "height_scan"})
    mine = PolicyConfig(action_scale=0.5).over(config)
    assert mine.action_scale == 0.5 and mine.kp == config.kp, "the file wins over the metadata"
    assert per_joint({".*_hip": 1.0, ".*_calf": 2.0}, ("FR_hip", "FR_calf"), "kp") == [1.0, 2.0]


def test_the_shipped_descriptions_have_the_size_of_their_policies() -> None:
    assert shipped_observations() == ["g1", "go1"]
    folder = Path(__file__).parents[2] / "src/gait/sim/policy"
    for name, joints, size in (("go1", 12, 48), ("g1", 29, 103)):
        check_size(read_policy_config(folder / f"{name}.yaml"), joints, size)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_schedules_stay_in_their_ranges(kind: str) -> None:
    ranges = CommandRanges(vx=(-0.2, 0.5), vy=(-0.1, 0.1), yaw_rate=(-0.4, 0.4))
    commands = SCHEDULES[kind](np.random.default_rng(1), 30.0, "trot", ranges)
    for name in ("vx", "vy", "yaw_rate"):
        low, high = getattr(ranges, name)
        assert all(low <= getattr(command, name) <= high for command in commands)
    stops = [command.vx == command.vy == command.yaw_rate == 0.0 for command in commands]
    turns = np.sign([command.yaw_rate for command in commands])
    if kind == "constant":
        assert len(commands) == 1
    elif kind == "stop-and-go":
        assert not any(stops[::2]) and all(stops[1::2])
    elif kind == "turning":
        assert (turns[1:] == -turns[:-1]).all() and min(abs(command.yaw_rate) for command in commands) >= 0.2


def words(given: PolicyFiles) -> list[str]:
    return ["--policy", given.policy, "--model", given.model, "--observation", given.observation]


def test_a_collection_of_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line: Logs with ground truth, an index, a notice; the same again; other files are refused."""
    given, out = files(tmp_path), tmp_path / "out"
    command = ["sim", *words(given), "--terrain", "flat", "--episodes", "2", "--seconds", "0.5", "--out", str(out)]
    assert main([*command, "--sensors", "twin"]) == 0
    assert "missing, 1 in all: shell" in capsys.readouterr().out.replace("\n", " ")
    log = Log.load(out / "episode_00000.npz")
    assert log.robot == "table_on_four_feet" and log.has_truth and log.leg_names == ("a", "b", "c", "d")
    assert log.joint_names == ("a_joint", "b_joint", "c_joint", "d_joint") and log.rate == 500.0
    np.testing.assert_allclose(np.linalg.norm(log.accel.mean(axis=0)), 9.81, atol=0.3)
    index = [json.loads(line) for line in (out / "index.jsonl").read_text().splitlines()]
    assert [row["gait"] for row in index] == ["policy"] * 2 and 0.3 <= index[0]["friction"] <= 1.0
    settings = json.loads((out / "collection.json").read_text())
    assert settings["policy"] == "table.onnx" and settings["gait"] == "policy" and "policy_sha256" in settings
    (out / "episode_00001.npz").unlink()
    before = (out / "episode_00000.npz").read_bytes()
    assert main([*command, "--sensors", "twin", "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["resumed"] == 1 and rows["episodes"] == 2
    assert (out / "episode_00000.npz").read_bytes() == before
    write_policy(Path(given.policy), ZERO[0], np.full(4, 0.01))
    rig_of.cache_clear()
    assert main([*command, "--sensors", "twin"]) == 1
    assert "policy_sha256" in capsys.readouterr().err


def test_exact_sensors_of_a_policy_walk_carry_the_true_pose(tmp_path: Path) -> None:
    """Strapdown integration of an exact IMU at its place returns the true orientation and velocity."""
    table = files(tmp_path)
    plan = CollectConfig(
        policy=table.policy, model=table.model, observation=table.observation, terrain="scene", seconds=1.0,
        sensors="exact", nominal=True, pushes=True, seed=3,
    )  # fmt: skip
    done = simulate_episode(plan, 0)
    rig, log = rig_of(plan.files), done.log
    episode, _, _ = draw_episode(plan, 0)
    assert episode.policy == plan.files and done.raw.config == episode
    dt, R, row = 0.002, None, 0
    from gait.lie import rotation_from_quat

    R = rotation_from_quat(log.quat_wb_wxyz[0]) @ rig.R_bi
    for row in range(1, len(log)):
        R = R @ so3_exp(log.gyro[row] * dt)
    np.testing.assert_allclose(R, rotation_from_quat(log.quat_wb_wxyz[-1]) @ rig.R_bi, atol=1e-6)


def test_no_estimator_for_a_robot_that_gait_cannot_describe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = files(tmp_path)
    assert main(["sim", *words(given), "--feedback", "iekf"]) == 1
    assert "no description of table_on_four_feet" in capsys.readouterr().err
    assert main(["sim", "--model", "x.xml"]) == 1
    assert "name its ONNX file with --policy" in capsys.readouterr().err
    assert main(["sim", *words(given), "--random-robots"]) == 1


@pytest.fixture(scope="module")
def go1_walk() -> tuple[RawEpisode, Log]:
    """Five seconds of MuJoCo Playground's policy on the twin's sensors."""
    policy = needs.shared("policies/go1_policy.onnx")
    needs.playground()
    plan = CollectConfig(policy=str(policy), model="go1", terrain="flat", seconds=5.0, sensors="exact", nominal=True)
    done = simulate_episode(plan, 0)
    return done.raw, done.log


def test_the_go1_policy_walks_and_its_feet_are_where_kinematics_says(go1_walk: tuple[RawEpisode, Log]) -> None:
    raw, log = go1_walk
    robot = Robot.load("go1")
    assert raw.fell_at is None and log.joint_names == robot.joint_names and log.robot == "go1"
    from gait.quaternions import rotate

    feet_b = robot.feet(raw.q)
    quats = np.repeat(raw.quat_wb_wxyz[:, None], 4, axis=1)
    np.testing.assert_allclose(rotate(quats, feet_b) + raw.pos_w[:, None], raw.foot_pos_w, atol=1e-6)
    lifted = ~raw.contact
    assert 0.3 < raw.contact.mean() < 0.8 and lifted.any(axis=0).all()
    speed = np.linalg.norm(np.diff(raw.foot_pos_w, axis=0) / 0.001 - raw.foot_vel_w[:-1], axis=2)
    assert np.median(speed) < 0.1, "the lowest point of a foot moves nearly as its centre"


def test_estimators_agree_with_the_scene_where_its_contacts_are_rigid(go1_walk: tuple[RawEpisode, Log]) -> None:
    """Soft feet are what makes estimates err in z; without them the scene is the robot that gait describes."""
    _, log = go1_walk
    policy = str(needs.shared("policies/go1_policy.onnx"))
    plan = CollectConfig(policy=policy, model="go1", terrain="flat", seconds=5.0, sensors="exact", nominal=True)
    rigid = simulate_episode(replace(plan, rigid=True), 0).log
    errors = [
        np.sqrt(np.mean((Estimator.load("go1", "iekf").run(one).vel_b - one.vel_b) ** 2, axis=0))
        for one in (log, rigid)
    ]
    assert errors[1].max() < 0.015 and errors[0][:2].max() < 0.03 < errors[0][2] < 0.15


def test_the_twin_has_legs_of_other_lengths(go1_walk: tuple[RawEpisode, Log]) -> None:
    raw, _ = go1_walk
    plan = CollectConfig(policy=raw.config.policy.policy, model="go1", terrain="flat", seconds=0.2, sensors="twin")
    episode, seed, _ = draw_episode(plan, 0)
    twin = run_episode(episode, seed)
    from gait.quaternions import rotate
    from gait.sim.world import scaled_robot

    body = scaled_robot(Robot.load("go1"), np.array(episode.link_scale))
    quats = np.repeat(twin.quat_wb_wxyz[:, None], 4, axis=1)
    np.testing.assert_allclose(rotate(quats, body.feet(twin.q)) + twin.pos_w[:, None], twin.foot_pos_w, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["go1", "g1"])
@pytest.mark.parametrize(("terrain", "friction"), [("flat", None), ("slippery", 0.35), ("rough", None)])
def test_policies_walk_on_many_grounds(robot: str, terrain: str, friction: float | None) -> None:
    needs.playground()
    policy = str(needs.shared(f"policies/{robot}_policy.onnx"))
    same = {"terrain": terrain, "friction": friction, "seconds": 10.0, "nominal": True, "commands": "constant"}
    plan = CollectConfig(policy=policy, model=robot, **same)
    for number in range(3):
        episode, seed, _ = draw_episode(plan, number)
        assert run_episode(episode, seed).fell_at is None


@pytest.mark.slow
def test_the_g1_walks_as_in_a_recording_of_the_same_policy() -> None:
    from policy_walk import compare

    needs.playground()
    policy, recording = (needs.shared(f"policies/{name}") for name in ("g1_policy.onnx", "g1_walk.npz"))
    found, residual = compare(policy, recording)
    assert residual < 0.01, "the observation is the recording's"
    for name, (recorded, ours) in found.items():
        assert abs(ours / recorded - 1.0) < 0.1, name


def test_several_workers_write_the_same(tmp_path: Path) -> None:
    table = files(tmp_path)
    plan = CollectConfig(
        policy=table.policy, model=table.model, observation=table.observation, terrain="scene", seconds=0.1, episodes=2
    )
    collect(plan, tmp_path / "one")
    collect(plan, tmp_path / "two", workers=2)
    for name in ("index.jsonl", "episode_00000.npz", "episode_00001.npz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
