"""Random relatives of a scene's robot: what is described is what is simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import pytest

pytest.importorskip("mujoco", reason=needs.extra("mujoco"))

import mujoco

from gait import Estimator, Robot
from gait.lie import rotation_from_quat
from gait.nets.architecture import architecture_of
from gait.sim.collect import record_episode, simulate_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.plan import CollectConfig
from gait.sim.policy.mjcf import Scene
from gait.sim.policy.scene_variety import LENGTHS, RelativeScene, draw_relative
from gait.sim.variety import Variant
from gait.train.data import read_episodes

JOINT = """<body name="{side}_{name}" pos="{pos}"><inertial pos="0 0 -0.1" mass="{mass}" diaginertia="0.02 0.02 0.01"/>
<joint name="{side}_{name}_joint" axis="{axis}" range="-2 2"/>"""
LINKS = (("hip", "1 0 0", 1.0), ("thigh", "0 1 0", 3.0), ("shin", "0 1 0", 2.0), ("ankle", "0 1 0", 0.5))


def biped(folder: Path) -> Scene:
    """Two legs of four joints with soles on a trunk."""
    legs = ""
    for side, y in (("left", 0.1), ("right", -0.1)):
        places = (f"0 {y} -0.1", "0.02 0 -0.05", "0 0 -0.35", "0 0 -0.3")
        for (name, axis, mass), pos in zip(LINKS, places, strict=True):
            legs += JOINT.format(side=side, name=name, pos=pos, mass=mass, axis=axis)
        legs += f'<geom name="{side}_foot" type="box" pos="0.03 0 -0.05" size="0.1 0.04 0.01"/>' + "</body>" * 4
    path = folder / "biped.xml"
    path.write_text(f"""<mujoco model="biped"><worldbody><body name="trunk"><freejoint/>
        <inertial pos="0 0 0.2" mass="15" diaginertia="0.3 0.3 0.2"/><site name="imu"/>{legs}
        <body name="head" pos="0 0 0.5"><inertial pos="0 0 0" mass="2" diaginertia="0.01 0.01 0.01"/>
        <joint name="neck_joint" axis="0 0 1"/></body></body></worldbody></mujoco>""")
    return Scene(path)


def test_a_relative_is_as_described(tmp_path: Path) -> None:
    scene = biped(tmp_path)
    robot = Robot.load(scene.path)
    same = RelativeScene(scene, robot, Variant("same")).described(robot)
    for a, b in zip(same.legs, robot.legs, strict=True):
        assert all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("offsets", "mass", "com", "inertia"))
    variant = Variant("v", thigh=1.1, calf=0.9, base=(1.0, 1.2), base_mass=1.1, leg_mass=0.8, foot=1.15)
    relative = RelativeScene(scene, robot, variant)
    made = relative.described(robot)
    assert made.mass == pytest.approx(17.0 * 1.1 + 13.0 * 0.8)
    old, new = (np.linalg.norm(one.legs[0].offsets, axis=1) for one in (robot, made))
    assert new[1:] / old[1:] == pytest.approx([1.1, 1.1, 0.9, 1.15])
    assert made.legs[0].offsets[0] == pytest.approx([0.0, 0.12, -0.1])
    assert np.ptp(made.legs[0].foot.corners, axis=0)[:2] == pytest.approx([0.23, 0.092])
    # The model that is simulated, at some angles.
    model, q = relative.spec().compile(), np.random.default_rng(0).normal(0.0, 0.3, made.num_joints)
    data = mujoco.MjData(model)
    for name, angle in zip(made.joint_names, q, strict=True):
        data.joint(name).qpos[:] = angle
    mujoco.mj_kinematics(model, data)
    for leg, foot in zip(made.leg_names, made.feet(q), strict=True):
        geom = data.geom(f"{leg}_foot")
        assert geom.xpos - 0.0115 * geom.xmat.reshape(3, 3)[:, 2] == pytest.approx(foot, abs=1e-12)


def test_relatives_are_drawn_close_by() -> None:
    drawn = [draw_relative(np.random.default_rng(seed), "x") for seed in range(200)]
    for name in ("thigh", "calf"):
        values = [getattr(one, name) for one in drawn]
        assert 1.0 - LENGTHS <= min(values) < 0.92 and 1.08 < max(values) <= 1.0 + LENGTHS
    assert len({one.thigh for one in drawn}) > 150


def test_random_g1s_walk_carry_their_description_and_are_read_by_a_training(tmp_path: Path) -> None:
    policy = needs.shared("policies/g1_policy.onnx")
    needs.playground()
    plan = CollectConfig(
        policy=str(policy), model="g1", terrain="flat", seconds=1.0, sensors="exact", varied=True, nominal=True
    )
    variants = [draw_episode(plan, number)[0].variant for number in range(2)]
    assert variants[0] is not None and variants[0] != variants[1] and variants[0].name == "g1-0-0"
    path = tmp_path / "episode_00000.npz"
    row, _ = record_episode(plan, 0, path)
    assert row["robot"] == "g1-0-0"
    (episode,), (subject,) = read_episodes([str(path)], architecture_of({"kind": "gait-legs"}), [None])
    assert subject.leg_names == ("left", "right") and len(subject.joint_names) == 29
    assert (episode.present[0] == [True, True, False, False]).all()
    done = simulate_episode(plan, 0)
    log = done.log.reorder(robot := done.log.load_robot())
    assert robot.leg_length != Robot.load("g1").leg_length
    at = np.arange(2, len(done.raw.t), 2)[: len(log)]
    R_wb = np.array([rotation_from_quat(quat) for quat in log.quat_wb_wxyz])
    feet = log.pos_w[:, None] + np.einsum("nij,nlj->nli", R_wb, robot.feet(log.q))
    soles = np.linalg.norm(feet - done.raw.foot_pos_w[at], axis=2)
    # The sole is half the height of the foot's box below its centre.
    assert soles == pytest.approx(0.008 * variants[0].foot, abs=1e-4)


def test_an_estimator_feeds_the_g1(tmp_path: Path) -> None:
    """Its arms are driven by the policy and no part of the estimate."""
    policy = needs.shared("policies/g1_policy.onnx")
    needs.playground()
    plan = CollectConfig(policy=str(policy), model="g1", terrain="flat", seconds=1.0, feedback="iekf", nominal=True)
    done = simulate_episode(replace(plan, sensors="exact"), 0)
    assert done.raw.fell_at is None and done.log.robot == "g1" and not done.log.description
    estimate = Estimator.load("g1", "iekf").run(done.log)
    assert np.abs(estimate.vel_w - done.log.vel_w).max() < 0.3
