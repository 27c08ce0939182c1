"""Bipeds that follow planned footsteps: the plan, the soles on the ground, and the base on the gantry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import pytest

pytest.importorskip("mujoco", reason=needs.extra("mujoco"))

from gait import Estimator, GaitError, Robot
from gait.lie import so3_exp
from gait.nets.architecture import architecture_of
from gait.robot import Foot
from gait.robot.chain_yaml import robot_text
from gait.sim.collect import record_episode, simulate_episode
from gait.sim.episode import UNSTABLE, RawEpisode, Simulation
from gait.sim.episode_sampling import draw_episode
from gait.sim.plan import CollectConfig
from gait.sim.zmp.biped_variety import biped_of, check_biped, draw_biped, without_waist
from gait.sim.zmp.leg_inverse import leg_angles
from gait.sim.zmp.pendulum import mass_over
from gait.sim.zmp.zmp_walker import ZmpWalker, mass_centre
from gait.train.data import read_episodes

WALK = CollectConfig(gait="zmp", robot="g1", terrain="rubber", seconds=2.0, sensors="exact", nominal=True, seed=3)


@pytest.fixture(scope="module")
def walk() -> tuple[Simulation, ZmpWalker, RawEpisode]:
    simulation = Simulation(*draw_episode(WALK, 0)[:2])
    while not simulation.done:
        simulation.step()
    assert isinstance(simulation.controller, ZmpWalker)
    return simulation, simulation.controller, simulation.episode()


def planned_rows(simulation: Simulation, raw: RawEpisode) -> np.ndarray:
    """Rows of the plan, one of each row of the episode."""
    first = round(simulation.config.settle * 1000)
    return (np.arange(len(raw.t)) + first) // (1000 // simulation.config.control_rate)


def test_feet_that_are_planned_to_stand_stand(walk: tuple[Simulation, ZmpWalker, RawEpisode]) -> None:
    simulation, walker, raw = walk
    rows = planned_rows(simulation, raw)
    swings = walker.steps.swings[rows]
    assert swings.any(axis=0).all() and (~swings).any(axis=0).all()
    speed = np.linalg.norm(raw.foot_vel_w, axis=2)
    assert np.mean(speed[~swings] < 0.02) > 0.85
    assert speed[swings].max() > 0.1
    assert np.mean(raw.contact == ~swings) > 0.9


def test_feet_carry_the_weight_and_the_base_follows(walk: tuple[Simulation, ZmpWalker, RawEpisode]) -> None:
    simulation, walker, raw = walk
    weight = simulation.robot.mass * 9.81
    assert raw.foot_force_w[..., 2].sum(axis=1).mean() == pytest.approx(weight, rel=0.1)
    error = raw.pos_w - walker.base.place[planned_rows(simulation, raw)]
    assert np.abs(error).max() < 0.05
    assert raw.fell_at is None and np.ptp(raw.pos_w[:, :2], axis=0).max() > 0.05


def test_the_same_seed_walks_the_same_way() -> None:
    first, again, other = (simulate_episode(replace(WALK, seconds=0.4, seed=seed), 0).log for seed in (3, 3, 4))
    assert np.array_equal(first.q, again.q) and not np.array_equal(first.q, other.q)


def test_a_random_biped_is_read_by_a_training_and_estimated(tmp_path: Path) -> None:
    plan = replace(WALK, terrain="flat", nominal=False, varied=True, random_robots=True)
    path = tmp_path / "episode_00000.npz"
    row, _ = record_episode(plan, 0, path)
    assert row["robot"] == "g1-3-0" and "kp" not in row
    (episode,), (subject,) = read_episodes([str(path)], architecture_of({"kind": "gait-legs"}), [None])
    assert subject.leg_names == ("left", "right") and (episode.present[0] == [True, True, False, False]).all()
    log = simulate_episode(plan, 0).log
    robot = log.load_robot()
    assert robot.leg_length != Robot.load("g1").leg_length
    # Torques of a leg in the air are its own dynamics: nothing else brakes its joints.
    estimate = Estimator.load(robot, "iekf").run(log)
    assert np.sqrt(((estimate.vel_w - log.vel_w) ** 2).sum(axis=1).mean()) < 0.02


def test_random_bipeds_differ_and_are_symmetric() -> None:
    made = [biped_of("g1", draw_biped(np.random.default_rng(seed), f"b{seed}")) for seed in range(20)]
    lengths = [robot.leg_length / Robot.load("g1").leg_length for robot in made]
    assert min(lengths) < 0.8 and max(lengths) > 1.15
    for robot in made:
        left, right = robot.hips_b
        assert left == pytest.approx(right * (1.0, -1.0, 1.0), abs=1e-4) and left[1] > 0.0


def test_inverse_kinematics_puts_the_foot_there() -> None:
    robot = biped_of("g1", None)
    chain, stand = robot.chains[0], robot.by_leg(robot.q_stand)[0]
    wanted = stand + np.random.default_rng(0).normal(0.0, 0.15, (50, 6))
    rotations, points, _ = chain.link_poses(wanted)
    found, miss = leg_angles(chain, points[:, -1], rotations[:, -1], stand)
    assert miss.max() < 1e-4 and np.abs(found - wanted).max() < 1e-2


def test_knees_of_a_robot_described_with_straight_legs_bend_as_they_can(tmp_path: Path) -> None:
    path = tmp_path / "straight.yaml"
    robot = replace(Robot.load("g1"), q_stand=np.zeros(12))
    path.write_text(robot_text(robot), encoding="utf-8")
    simulation = Simulation(*draw_episode(replace(WALK, robot=str(path), seconds=0.5), 0)[:2])
    planned, _ = simulation.controller._angles(every=10)  # type: ignore[union-attr]
    knees = [robot.joint_names.index(f"{side}_knee_joint") for side in ("left", "right")]
    assert planned[:, knees].min() > 0.0 and robot.q_lower[knees].max() < 0.0


def test_an_episode_that_becomes_unstable_counts_as_a_fall() -> None:
    simulation = Simulation(*draw_episode(replace(WALK, seconds=0.5), 0)[:2])
    simulation.step()
    simulation.data.qvel[6] = 2.0 * UNSTABLE
    simulation.step()
    assert simulation.fell_row is not None


def test_the_pendulum_obeys_its_equation_and_ends_over_the_foot() -> None:
    dt, omega = 0.002, 3.7
    zmp = np.zeros((3000, 2))
    # Without jumps, across which a second difference means nothing.
    zmp[1000:2000, 1] = 0.1 * np.sin(np.pi * np.arange(1000) / 1000) ** 2
    com, pull = mass_over(zmp, omega, dt)
    assert np.abs(np.diff(com, 2, axis=0) / dt**2 - pull[1:-1]).max() < 0.02 * np.abs(pull).max()
    assert np.abs(com[-1]).max() < 1e-2 and com[1000, 1] > 0.001, "it moves before the foot takes the load"


def test_who_cannot_is_told() -> None:
    with pytest.raises(GaitError, match="five to seven joints that turn, with soles, which go1 does not have"):
        replace(WALK, robot="go1")
    g1 = Robot.load("g1")
    with pytest.raises(GaitError, match="gait robot import FILE --sole"):
        check_biped(replace(g1, legs=tuple(replace(leg, foot=Foot()) for leg in g1.legs)))
    with pytest.raises(GaitError, match="airborne_share is not for the gait zmp"):
        replace(WALK, airborne_share=0.5)


@pytest.mark.parametrize("name", ["t1", "h1"])
def test_a_waist_that_is_held_moves_nothing(name: str) -> None:
    """Feet, masses and moments of a robot without its waist are those of the robot that does not turn it."""
    robot = Robot.load(name)
    waist = robot.chains[0].shared
    stand = robot.q_stand.copy()
    stand[[0, robot.leg_start[1]]] = 0.4  # the waist, as each leg has it
    turned = replace(robot, q_stand=stand)
    held = without_waist(turned)
    assert held.num_joints == robot.num_joints - 2 * waist and held.mass == pytest.approx(robot.mass)
    q = held.q_stand + np.random.default_rng(0).uniform(-0.3, 0.3, held.num_joints)
    whole = np.concatenate([np.concatenate([[0.4], own]) for own in held.by_leg(q)])
    np.testing.assert_allclose(held.feet(q), robot.feet(whole), atol=1e-12)
    np.testing.assert_allclose(mass_centre(held, q), mass_centre(robot, whole), atol=1e-12)
    for mine, theirs in zip(held.corners(q), robot.corners(whole), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    for chain, full, own in zip(held.chains, robot.chains, held.by_leg(q), strict=True):
        (R, _, _), (R_full, _, _) = chain.link_poses(own), full.link_poses(np.concatenate([[0.4], own]))
        turned_inertia = R_full[-1] @ full.inertia[-1] @ R_full[-1].T
        np.testing.assert_allclose(R[-1] @ chain.inertia[-1] @ R[-1].T, turned_inertia, atol=1e-12)
    assert without_waist(held) is held


@pytest.mark.parametrize("name", ["t1", "h1"])
def test_bipeds_with_a_waist_or_without_an_ankle_that_rolls_walk(name: str) -> None:
    simulation = Simulation(*draw_episode(replace(WALK, robot=name, seconds=4.0), 0)[:2])
    while not simulation.done:
        simulation.step()
    raw, walker = simulation.episode(), simulation.controller
    assert isinstance(walker, ZmpWalker) and simulation.fell_row is None
    swings = walker.steps.swings[planned_rows(simulation, raw)]
    speed = np.linalg.norm(raw.foot_vel_w, axis=2)
    assert swings.any(axis=0).all() and np.mean(speed[~swings] < 0.03) > 0.8


def test_a_leg_with_fewer_joints_puts_its_foot_where_it_belongs() -> None:
    """What it cannot have is the roll of the sole."""
    chain = without_waist(Robot.load("h1")).chains[0]
    assert chain.num_joints == 5
    q = np.array([0.05, 0.1, -0.4, 0.8, -0.4])
    R, points, _ = chain.link_poses(q[None])
    tilted = R[:, -1] @ so3_exp(np.array([0.05, 0.0, 0.0]))
    found, miss = leg_angles(chain, points[:, -1], tilted, q + 0.1)
    assert miss.max() < 5e-4
    off = chain.link_poses(found)[0][0, -1] @ tilted[0].T
    assert np.arccos(np.clip((np.trace(off) - 1.0) / 2.0, -1.0, 1.0)) < 0.06


def test_heavy_rotors_in_a_light_robot_get_drives_that_are_quick(tmp_path: Path) -> None:
    g1 = Robot.load("g1")
    heavy = replace(g1, legs=tuple(replace(leg, armature=np.full(6, 2.0)) for leg in g1.legs))
    (tmp_path / "heavy.yaml").write_text(robot_text(heavy))
    driven, usual = biped_of(str(tmp_path / "heavy.yaml"), None), biped_of("g1", None)
    assert (np.sqrt(driven.kp / driven.armature) >= 49.9).all() and (driven.kp > usual.kp).all()
