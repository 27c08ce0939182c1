"""The MuJoCo model against the robot's YAML, MuJoCo's conventions, and how feet meet the ground."""

from dataclasses import replace

import needs
import numpy as np
import pytest

from gait import GaitError, Robot
from gait.robot import robot_names

mujoco = pytest.importorskip("mujoco", reason=needs.extra("mujoco"))

from gait.sim.settings import EpisodeConfig  # noqa: E402
from gait.sim.world import (  # noqa: E402
    TERRAINS,
    build_model,
    find_terrain,
    ground_geom,
    scaled_robot,
    stand_state,
)


@pytest.fixture(scope="module")
def go1() -> Robot:
    return Robot.load("go1")


@pytest.fixture(scope="module")
def model(go1: Robot):
    return build_model(go1, EpisodeConfig())


def rotation(quat: np.ndarray) -> np.ndarray:
    out = np.empty(9)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


def test_every_quadruped_that_ships_can_be_simulated() -> None:
    for name in robot_names():
        robot = Robot.load(name)
        if robot.num_legs == 4 and robot.num_joints == 12:
            assert build_model(robot, EpisodeConfig()).nq == 19, name


def test_an_inertia_that_no_body_has_becomes_the_nearest_one(go1: Robot) -> None:
    # The thigh of the Mini Cheetah as published: 0.0018 and 0.0004 kg m^2, but 0.0023 about the third axis.
    published = Robot.load("mini_cheetah").links[0][1].inertia
    moments = np.linalg.eigvalsh(published)
    assert moments[0] + moments[1] < moments[2]
    body = build_model(Robot.load("mini_cheetah"), EpisodeConfig()).body("fr_thigh")
    R = rotation(body.iquat)
    used = R @ np.diag(body.inertia) @ R.T
    assert body.inertia[1] + body.inertia[2] >= body.inertia[0]
    assert np.linalg.norm(used - published) < 0.06 * np.linalg.norm(published)
    empty = replace(go1.legs[0], mass=np.zeros(3))
    with pytest.raises(GaitError, match="MuJoCo cannot simulate go1: .* correct its description"):
        build_model(replace(go1, legs=(empty, *go1.legs[1:])), EpisodeConfig())


def test_masses_centres_and_inertias_are_the_robots(go1: Robot, model) -> None:
    links = {go1.base_link: go1.base}
    for leg, parts in zip(go1.leg_names, go1.links, strict=True):
        links |= {f"{leg}_{part}": link for part, link in zip(("hip", "thigh", "calf"), parts, strict=True)}
    for name, link in links.items():
        body = model.body(name)
        R = rotation(body.iquat)
        assert body.mass[0] == pytest.approx(link.mass, abs=1e-9)
        np.testing.assert_allclose(body.ipos, link.com, atol=1e-9)
        np.testing.assert_allclose(R @ np.diag(body.inertia) @ R.T, link.inertia, atol=1e-9)
    assert model.body_subtreemass[0] == pytest.approx(go1.mass, abs=1e-9)


def test_joints_and_motors_keep_order_and_limits(go1: Robot, model) -> None:
    names = [model.joint(i).name for i in range(model.njnt)]
    assert names == ["floating_base", *go1.joint_names]
    assert [model.actuator(i).name for i in range(model.nu)] == list(go1.joint_names)
    np.testing.assert_allclose(model.jnt_range[1:], np.stack([go1.q_lower, go1.q_upper], 1), atol=1e-12)
    np.testing.assert_allclose(model.dof_armature[6:], go1.armature)
    np.testing.assert_allclose(model.dof_damping[6:], go1.damping)
    np.testing.assert_allclose(model.dof_frictionloss[6:], go1.friction)
    np.testing.assert_allclose(model.actuator_forcerange[:, 1], go1.torque_limit)
    assert model.jnt_limited[1:].all() and model.opt.timestep == 0.001


@pytest.mark.parametrize("scale", [1.0, 1.01])
def test_feet_are_where_the_robot_says(go1: Robot, scale: float) -> None:
    robot = scaled_robot(go1, np.full((4, 3), scale))
    model = build_model(robot, EpisodeConfig())
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        data.qpos[:3], data.qpos[3:7] = rng.normal(size=3), rng.normal(size=4)
        data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
        data.qpos[7:] = rng.uniform(go1.q_lower, go1.q_upper)
        mujoco.mj_forward(model, data)
        feet = robot.feet(data.qpos[7:]) @ rotation(data.qpos[3:7]).T + data.qpos[:3]
        ours = np.array([data.geom(f"{leg}_foot").xpos for leg in go1.leg_names])
        np.testing.assert_allclose(ours, feet, atol=1e-9)


def test_free_joint_velocity_is_linear_in_the_world_and_angular_in_the_body(model) -> None:
    data = mujoco.MjData(model)
    data.qpos[:3] = 0.0, 0.0, 5.0
    data.qpos[3:7] = np.array([0.5, 0.5, -0.5, 0.5])
    data.qpos[7:] = 0.0, 0.8, -1.5, 0.0, 0.8, -1.5, 0.0, 0.8, -1.5, 0.0, 0.8, -1.5
    velocity, rate = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7, -0.4])
    data.qvel[:3], data.qvel[3:6] = velocity, rate
    R, pos, step = rotation(data.qpos[3:7]), data.qpos[:3].copy(), 1e-6
    mujoco.mj_integratePos(model, data.qpos, data.qvel, step)
    np.testing.assert_allclose((data.qpos[:3] - pos) / step, velocity, atol=1e-6)
    skew = R.T @ (rotation(data.qpos[3:7]) - R) / step
    np.testing.assert_allclose([skew[2, 1], skew[0, 2], skew[1, 0]], rate, atol=1e-5)


def test_payload_and_shift_move_the_base(go1: Robot) -> None:
    build = EpisodeConfig(payload_mass=2.0, payload_position=(0.1, 0.0, 0.08), com_shift=(0.01, 0.0, 0.0))
    body = build_model(go1, build).body(go1.base_link)
    assert body.mass[0] == pytest.approx(go1.base.mass + 2.0)
    moment = go1.base.mass * (go1.base.com + np.array([0.01, 0, 0])) + 2.0 * np.array([0.1, 0, 0.08])
    np.testing.assert_allclose(body.ipos, moment / (go1.base.mass + 2.0), atol=1e-9)


@pytest.mark.parametrize("stiffness", [0.5, 1.0, 2.0])
def test_a_standing_robot_hardly_sinks_and_weighs_what_it_weighs(go1: Robot, stiffness: float) -> None:
    model = build_model(go1, EpisodeConfig(contact_stiffness=stiffness))
    data = mujoco.MjData(model)
    data.qpos[:] = stand_state(go1)
    for _ in range(1500):
        data.ctrl[:] = 100.0 * (go1.q_stand - data.qpos[7:]) - 2.0 * data.qvel[6:]
        mujoco.mj_step(model, data)
    heights = np.array([data.geom(f"{leg}_foot").xpos[2] for leg in go1.leg_names])
    assert (heights > go1.foot_radius - 0.001).all()
    force = -data.sensordata[1:13].reshape(4, 3).sum(axis=0)
    assert force[2] == pytest.approx(go1.mass * 9.81, rel=0.01)
    assert np.abs(data.qvel[:3]).max() < 0.01


def test_a_foot_bounces_as_much_as_restitution_says() -> None:
    def rebound(restitution: float) -> float:
        spec = mujoco.MjSpec()
        spec.option.timestep = 0.0005
        config = EpisodeConfig(friction=0.8, restitution=restitution)
        ground_geom(spec.worldbody, config, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        ball = spec.worldbody.add_body(pos=[0, 0, 0.2])
        ball.add_freejoint()
        ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], density=2000)
        model = spec.compile()
        data = mujoco.MjData(model)
        speeds = []
        for _ in range(1000):
            mujoco.mj_step(model, data)
            speeds.append(data.qvel[2])
        return max(speeds) / -min(speeds)

    for restitution in (0.1, 0.25, 0.5):
        assert rebound(restitution) == pytest.approx(restitution, abs=0.04)
    assert rebound(0.0) < 0.12


@pytest.mark.parametrize("terrain", TERRAINS)
def test_every_terrain_compiles_and_leads_with_the_robot(go1: Robot, terrain: str) -> None:
    model = build_model(go1, EpisodeConfig(terrain=terrain), np.random.default_rng(3))
    assert model.joint(0).name == "floating_base"
    assert model.joint(12).name == go1.joint_names[-1]
    loose = [model.body(i).name for i in range(model.nbody) if model.body(i).name.startswith(("pebble", "plank"))]
    assert len(loose) >= 36 if terrain == "debris" else not loose


def test_circular_is_half_rubber_half_slippery(go1: Robot) -> None:
    model = build_model(go1, EpisodeConfig(terrain="circular", friction=0.9, slippery_friction=0.1))
    assert model.geom("rubber").friction[0] == pytest.approx(0.9)
    assert model.geom("plate").friction[0] == pytest.approx(0.1)


def test_unknown_terrain_lists_the_choices() -> None:
    with pytest.raises(GaitError, match="unknown terrain 'moon': choose one of flat, rubber, slippery"):
        find_terrain("moon")
