"""Contacts, slips and the contact-aided filter of the reference, on numbers that are known."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from reference_samples import random_joints
from synthetic import walking_log

from gait import Log, Robot
from gait.lie import rotation_from_quat
from gait.parameters import ContactAided, ContactDetection, SlipRejection
from gait.reference.chain import chains_of, foot_jacobian, joint_torques
from gait.reference.contact_aided import ReferenceContactAided
from gait.reference.contacts import (
    SLIP_MOST,
    LegContact,
    ground_force,
    hysteresis,
    pd_torques,
    rolling_velocity,
    slip_limit,
    slip_velocity,
)

DETECTION = ContactDetection(touch_down=0.2, lift_off=0.1, touch_down_dwell=0.01, lift_off_dwell=0.004)


@pytest.fixture(scope="module")
def walk() -> Log:
    return walking_log(1.2)


def run(log: Log, params: ContactAided, contact_from: str) -> tuple[ReferenceContactAided, np.ndarray, np.ndarray]:
    """The filter after the log, its velocities and contacts."""
    estimator = ReferenceContactAided(Robot.load("go1"), params, contact_from)
    estimator.start(rotation_from_quat(log.quat_wb_wxyz[0]), log.vel_w[0], log.pos_w[0], log.gyro[0])
    velocity, contact, rows = [log.vel_b[0]], [estimator.contact], list(log.rows())
    for last, row in pairwise(rows):
        velocity.append(estimator.step(row, row.t - last.t).vel_b)
        contact.append(estimator.contact)
    return estimator, np.array(velocity), np.array(contact)


def rmse(velocity: np.ndarray, log: Log) -> float:
    return float(np.sqrt(np.square(velocity - log.vel_b).sum(1).mean()))


def test_ground_force_balances_the_torques() -> None:
    robot, rng = Robot.load("go1"), np.random.default_rng(0)
    for chain in chains_of(robot):
        q = random_joints(robot, rng)[:3]
        force, tau_free = rng.normal(size=3) * 50, rng.normal(size=3)
        tau = tau_free - foot_jacobian(chain, q).T @ force
        np.testing.assert_allclose(ground_force(chain, q, tau, tau_free, 0.4), force, atol=1e-9)
        assert not ground_force(chain, np.array([0.3, 0.2, 0.0]), np.ones(3), np.zeros(3), 0.4).any()
        assert not ground_force(chain, q, np.full(3, np.nan), np.zeros(3), 0.4).any()


def test_hysteresis_with_dwell() -> None:
    dt, contact, waiting, seen = 0.002, False, 0.0, []
    loads = [0.15] * 3 + [0.25] * 4 + [0.15] + [0.25] * 6 + [0.15] * 3 + [0.05] * 3
    for load in loads:
        contact, waiting = hysteresis(contact, waiting, load, DETECTION, dt)
        seen.append(contact)
    # Five samples above touch-down start it, the interrupted four do not; two below lift-off end it.
    assert seen == [False] * 12 + [True] * 6 + [False] * 2


def test_force_of_a_leg_has_its_motion_taken_off() -> None:
    chain, g, dt = chains_of(Robot.load("go1"))[0], np.array([0.0, 0.0, -9.81]), 0.002
    leg = LegContact(chain, ContactDetection(smoothing=0.0), 0.426)
    force, t = np.array([3.0, -2.0, 40.0]), np.arange(5) * dt
    q = np.array([[0.1, 0.8, -1.5]]) + 0.1 * np.sin(20 * t)[:, None]
    dq = np.tile(2.0 * np.cos(20 * t)[:, None], 3)
    for k in range(5):
        ddq = (dq[k] - dq[k - 1]) / dt if k else np.zeros(3)
        tau = joint_torques(chain, q[k], dq[k], ddq, g) - foot_jacobian(chain, q[k]).T @ force
        np.testing.assert_allclose(leg.ground_wrench(q[k], dq[k], tau, g, dt)[:3], force, atol=1e-9)
    leg.lose()
    tau = joint_torques(chain, q[4], dq[0], np.zeros(3), g)
    np.testing.assert_allclose(leg.ground_wrench(q[4], dq[0], tau, g, dt), 0.0, atol=1e-9)
    leg.ground_wrench(q[4], dq[0], np.full(3, np.nan), g, dt)
    np.testing.assert_allclose(leg.tau, tau, atol=1e-12)


def test_torques_of_pd_loops_have_limits() -> None:
    robot = Robot.load("go1")
    e, dq = np.full(12, 0.1), np.full(12, 2.0)
    np.testing.assert_allclose(pd_torques(robot, e, dq), robot.kp * 0.1 - robot.kd * 2.0)
    np.testing.assert_array_equal(pd_torques(robot, -e * 1e3, dq), -robot.torque_limit)


def test_a_walk_of_formulas_is_followed(walk: Log) -> None:
    estimator, velocity, _ = run(walk, ContactAided(), "contact")
    assert rmse(velocity, walk) < 1e-3
    assert sorted(estimator.ekf.feet) == np.flatnonzero(walk.contact[-1]).tolist()
    for leg, d in estimator.ekf.feet.items():  # the centre of a sphere
        centre = walk.pos_w[-1] + rotation_from_quat(walk.quat_wb_wxyz[-1]) @ estimator.robot.feet(walk.q[-1])[leg]
        np.testing.assert_allclose(d, centre, atol=2e-3)
    _, fixed, _ = run(walk, ContactAided(rolling=False), "contact")
    assert rmse(fixed, walk) > 0.02  # rolling feet matter
    _, velocity, contact = run(walk, ContactAided(), "tau")
    assert rmse(velocity, walk) < 0.01 and (contact == walk.contact).mean() > 0.95
    force = walk.contact * Robot.load("go1").mass * 9.81 / 2
    assert rmse(run(walk.replace(foot_force=force), ContactAided(), "foot_force")[1], walk) < 0.01


def test_feet_that_roll_do_not_slip(walk: Log) -> None:
    chains = chains_of(Robot.load("go1"))
    for row, vel_b, quat, contact in zip(walk.rows(), walk.vel_b, walk.quat_wb_wxyz, walk.contact, strict=True):
        up_b = rotation_from_quat(quat)[2]
        for i in np.flatnonzero(contact):
            j = slice(3 * i, 3 * i + 3)
            arguments = chains[i], row.q[j], row.dq[j], row.gyro
            roll_b = rolling_velocity(*arguments, chains[i].foot.radius * up_b)
            speed = np.linalg.norm(slip_velocity(*arguments, vel_b, roll_b))
            assert speed < 0.01 and (row.t < 0.1 or np.linalg.norm(roll_b) > 0.0)


def test_slip_rejection_inflates_the_noise_of_a_foot_that_moves(walk: Log) -> None:
    robot, count = Robot.load("go1"), 60
    part = walk.slice(0.0, count / 500)
    contact = np.ones((len(part), 4), dtype=bool)
    # All feet are said to stand, though two of them swing.
    swings = part.replace(contact=contact)
    careful = ContactAided(slip=SlipRejection(enabled=True, speed=0.05, inflation=30.0))
    estimator, velocity, _ = run(swings, careful, "contact")
    truly = walk.contact[len(part) - 1]
    speed = part.vel_b[-1] + robot.foot_velocity(part.q[-1], part.dq[-1], part.gyro[-1])
    moving = np.linalg.norm(speed, axis=1) > 0.5
    assert moving.any() and not (moving & truly).any()
    assert estimator.slips[moving].all()
    assert rmse(velocity, part) < 0.5 * rmse(run(swings, ContactAided(), "contact")[1], part)


def test_the_limit_of_slips_is_twice_the_median_speed_of_the_foot_that_moves_least() -> None:
    rng, dt = np.random.default_rng(4), 0.002
    speeds = rng.gamma(2.0, 0.05, (20000, 3))
    speeds[rng.random(20000) < 0.2] += 2.0  # all feet slip for a fifth of the time
    limit, limits = 0.05, []
    for row in speeds:
        limit = slip_limit(limit, row, 0.05, dt)
        limits.append(limit)
    assert np.mean(limits[5000:]) == pytest.approx(2.0 * np.median(speeds.min(axis=1)), rel=0.05)
    for _ in range(5000):
        limit = slip_limit(limit, np.array([1e-3, 5.0]), 0.05, dt)
    assert limit == 0.05  # the least, where feet stand
    for _ in range(5000):
        limit = slip_limit(limit, np.array([3.0]), 0.05, dt)
    assert limit == SLIP_MOST


def test_gaps_and_lost_legs_drop_feet(walk: Log) -> None:
    estimator, _, _ = run(walk.slice(0.0, 0.1), ContactAided(), "contact")
    standing = list(estimator.ekf.feet)
    row = list(walk.rows())[50]
    ok = [leg != standing[0] for leg in range(4)]
    estimator.step(row, 0.002, ok)
    assert standing[0] not in estimator.ekf.feet and not estimator.contact[standing[0]] and estimator.ekf.feet
    estimator.step(row, 0.5)
    assert not estimator.ekf.feet and not estimator.contact.any()
