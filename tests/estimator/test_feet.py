"""Leg outputs against ground truth: contacts, slip, forces, footholds and ground; nothing of them goes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gait
from gait import Estimator, Log, lie
from gait.io.ros.definitions import FOOT_STATES, store
from gait.io.ros.odometry import FootEncoder
from gait.reference.chain import joint_torques
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def walk() -> Log:
    return gait.open_log(SAMPLE).reorder("go1").slice(0.0, 6.0)


@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf"])
def test_contacts_and_footholds_of_every_method(walk: Log, method: str) -> None:
    """F1 against true contacts on rubber; feet where forward kinematics puts them; a flat ground under them."""
    est = Estimator.load("go1", method, feet=True)
    trajectory, states = est.run_with_details(walk)
    plain = Estimator.load("go1", method).run(walk)
    np.testing.assert_array_equal(trajectory.vel_b, plain.vel_b)
    true, probability = np.asarray(walk.contact)[1:], np.asarray(states.contact, dtype=float)[1:]
    called = probability > 0.5
    f1 = 2.0 * (called & true).sum() / (called.sum() + true.sum())
    assert f1 > 0.96 and ((probability >= 0.0) & (probability <= 1.0)).all()
    k = 2000
    feet_b = est.robot.feet(walk.q[k])
    wanted = states.pos_w[k] + feet_b @ lie.rotation_from_quat(states.quat_wb_wxyz[k]).T
    assert states.foot_pos_w is not None
    np.testing.assert_allclose(states.foot_pos_w[k], wanted, atol=1e-9)
    height, slope = np.asarray(states.ground_height)[1000:], np.asarray(states.ground_slope)[1000:]
    assert np.abs(height).max() < 0.06, "the floor is at zero; the estimate drifts a little"
    assert np.degrees(np.median(slope[:, 0])) < 1.0
    weight = np.nanmean(np.nansum(np.asarray(states.foot_force)[500:], axis=1))
    assert weight == pytest.approx(9.81 * est.robot.mass, rel=0.15), "on average the feet carry the robot"
    slip = np.asarray(states.slip)
    assert np.median(slip[1:][true]) < 0.1 < np.median(slip[1:][~true])


def test_update_gives_the_same_as_run(walk: Log) -> None:
    est = Estimator.load("go1", feet=True)
    _, states = est.run_with_details(walk.slice(0.0, 0.5))
    est.start_as(walk)
    for k, row in enumerate(walk.slice(0.0, 0.5).rows()):
        state = est.update(row)
        np.testing.assert_array_equal(state.contact, np.asarray(states.contact)[k])
    np.testing.assert_array_equal(state.foot_pos_w, states[k].foot_pos_w)
    assert Estimator.load("go1").update(row).contact is None


def test_without_torques_forces_are_not_known(walk: Log) -> None:
    bare = walk.slice(0.0, 1.0).replace(tau=None, q_des=None)
    states = Estimator.load("go1", feet=True).run_with_details(bare)[1]
    assert np.isnan(np.asarray(states.contact)).all() and np.isnan(np.asarray(states.foot_force)).all()
    assert states.foot_pos_w is not None and np.isfinite(states.foot_pos_w[10:]).all()


def test_a_slope_is_seen() -> None:
    """A robot that stands with its legs as on a slope of ten degrees, its body level with the ground."""
    robot, angle = gait.Robot.load("go1"), np.radians(10.0)
    R = lie.so3_exp(np.array([0.0, -angle, 0.0]))  # nose up
    est = Estimator.load(robot, feet=True)
    est.reset(quat_wb_wxyz=lie.quat_from_rotation(R))
    accel = R.T @ np.array([0.0, 0.0, 9.81])
    # Torques that carry a quarter of the weight with each foot, by virtual work on the heights of the feet.
    steps = 1e-6 * np.eye(robot.num_joints)
    moved = [((robot.feet(robot.q_stand + off) - robot.feet(robot.q_stand)) @ R.T)[:, 2].sum() for off in steps]
    tau = -9.81 * robot.mass / 4.0 * np.array(moved) / 1e-6
    for k in range(50):
        state = est.update(0.002 * k, [0.0, 0.0, 0.0], accel, robot.q_stand, 0.0 * robot.q_stand, None, tau)
    assert np.asarray(state.contact).min() > 0.75
    slope = np.asarray(state.ground_slope)
    assert slope[0] == pytest.approx(angle, abs=0.01) and slope[1] == pytest.approx(np.tan(angle), abs=0.02)


def test_feet_as_a_message(walk: Log) -> None:
    est = Estimator.load("go1", feet=True)
    states = est.run_with_details(walk.slice(0.0, 0.2))[1]
    state = states[len(states) - 1]
    found = store().deserialize_cdr(FootEncoder(est.robot.leg_names).encode(123, state), FOOT_STATES)
    assert list(found.name) == list(est.robot.leg_names) and found.header.frame_id == "odom"
    np.testing.assert_allclose(found.contact, state.contact, atol=1e-6)
    np.testing.assert_allclose(found.position, np.ravel(state.foot_pos_w), atol=1e-12)
    np.testing.assert_allclose(found.ground_slope, state.ground_slope, atol=1e-12)


def test_run_writes_feet(tmp_path: Path) -> None:
    from mcap.reader import make_reader

    from gait.cli import main

    gait.open_log(SAMPLE).slice(0.0, 1.0).save(tmp_path / "walk.npz")
    assert main(["run", str(tmp_path / "walk.npz"), "--out", str(tmp_path / "run"), "--json"]) == 0
    with (tmp_path / "run" / "trajectory.mcap").open("rb") as file:
        topics = [channel.topic for _, channel, _ in make_reader(file).iter_messages()]
    assert topics.count("/foot_states") == topics.count("/odom") > 100
    assert "Contact of each foot" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_feet_in_the_air_are_none_and_a_wrong_ground_does_not_keep_feet_off_it() -> None:
    """Held in the air from the start; then on the ground; then on one half a metre higher, as by a pose reset."""
    robot = gait.Robot.load("go1")
    est = Estimator.load(robot, feet=True)
    est.reset(quat_wb_wxyz=[1.0, 0.0, 0.0, 0.0])
    level, q, zero = np.array([0.0, 0.0, 9.81]), robot.q_stand, 0.0 * robot.q_stand
    steps = 1e-6 * np.eye(robot.num_joints)
    moved = np.array([(robot.feet(q + off) - robot.feet(q))[:, 2].sum() for off in steps]) / 1e-6
    stand = -9.81 * robot.mass / 4.0 * moved
    legs = zip(robot.chains, robot.by_leg(q), strict=True)
    hang = np.concatenate([joint_torques(chain, part, 0.0 * part, 0.0 * part, -level) for chain, part in legs])
    for k in range(50):
        state = est.update(0.002 * k, np.zeros(3), level, q, zero, None, hang)
    assert np.asarray(state.contact).max() < 0.3
    for k in range(50, 100):
        state = est.update(0.002 * k, np.zeros(3), level, q, zero, None, stand)
    assert np.asarray(state.contact).min() > 0.75
    est.reset_pose([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5])
    for k in range(100, 110):
        state = est.update(0.002 * k, np.zeros(3), level, q, zero, None, stand)
    assert np.asarray(state.contact).min() > 0.75 and float(state.ground_height) > 0.1
