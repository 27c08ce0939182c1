"""Checks of encoders and torques, one by one, as an estimator shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from core_calls import inside
from faulty_samples import FAULT, RATE, Edit, error, run, sample_log, standing, words

from gait import Estimator, Robot
from gait.health import Health
from gait.log.sample import Sample

NAN, TURN = np.full(12, np.nan), np.array([0.0, 0.0, 0.5])
BAD_TORQUE = "torques do not support the robot's weight: ignored"


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_velocities_that_are_zero_are_replaced(method: str) -> None:
    states = run(method, lambda k, row: row._replace(dq=np.zeros(12)), seconds=2.0)
    assert "leg FR: dq is zero while q moves" in words(states[FAULT : FAULT + RATE // 5])
    assert error(states)[FAULT + RATE // 5 :].max() < 0.35  # 1.25 m/s with zeros
    assert "leg FR stale" not in words(states)


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_an_encoder_that_is_stuck_is_found(method: str) -> None:
    q = sample_log().q[FAULT, 4]

    def edit(k: int, row: Sample) -> Sample:
        held = row.q.copy()
        held[4] = q
        return row._replace(q=held)

    states = run(method, edit, seconds=2.0)
    assert {w for w in words(states) if "leg" in w} == {"leg FL stale: encoder stuck"}
    assert error(states).max() < 0.35


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_a_joint_that_hardly_moves_is_not_stuck(method: str) -> None:
    """Its angle stays within the resolution of the encoder while the leg walks on."""
    q, rng = np.round(sample_log().q[FAULT, 3], 3), np.random.default_rng(0)

    def edit(k: int, row: Sample) -> Sample:
        still, slow = row.q.copy(), row.dq.copy()
        still[3], slow[3] = q, rng.normal(0.0, 0.01)
        return row._replace(q=still, dq=slow)

    assert not any("stuck" in w for w in words(run(method, edit, seconds=2.0)))


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_a_flicker_at_rest_makes_no_leg_stale(method: str) -> None:
    estimator, first = Estimator.load("go1", method), standing(1)[0]
    for k in range(RATE):
        q = first.q.copy()
        q[0] += 0.0002 * (k % 7 == 0)
        state = estimator.update(first._replace(t=k / RATE, q=q, dq=np.zeros(12)))
        assert "stale" not in str(state.health), k


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
@pytest.mark.parametrize(
    "edit",
    [lambda k, row: row._replace(tau=-row.tau), lambda k, row: row._replace(tau=0.0 * row.tau)],
    ids=["negated", "zero"],
)
def test_torques_that_do_not_carry_the_robot_are_ignored(edit: Edit, method: str) -> None:
    states = run(method, edit, seconds=2.0)
    assert BAD_TORQUE in words(states) and BAD_TORQUE in states[-1].health.words
    assert states[-1].health.flags & Health.BAD_TORQUE
    settled = error(states)[FAULT + RATE // 2 :]
    assert settled.max() < 0.3 and BAD_TORQUE not in words(run(method, lambda k, row: row))


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_torques_that_carry_the_robot_again_are_used_again(method: str) -> None:
    """Also where they never agree with those of the joint targets: the sample's controller feeds torques forward."""
    fault = range(FAULT, FAULT + RATE // 2)
    states = run(method, lambda k, row: row._replace(tau=-row.tau) if k in fault else row, seconds=3.0)
    assert BAD_TORQUE in states[fault[-1]].health.words
    assert all(BAD_TORQUE not in state.health.words for state in states[fault[-1] + int(1.5 * RATE) :])


def kinematic(estimator: Estimator) -> bool:
    """Whether the network without torques is in use."""
    return bool(inside(estimator._context).legs.kinematic)


def test_the_weights_without_torques_take_over_and_give_back() -> None:
    estimator = Estimator.load("go1", "gait-legs")
    estimator.start_as(sample_log(), "truth")
    seen = []
    for k, row in enumerate(sample_log().slice(0.0, 2.0).rows()):
        lost = 0.4 <= k / RATE < 0.8
        state = estimator.update(row._replace(tau=NAN, q_des=NAN) if lost else row)
        seen.append(kinematic(estimator))
        assert "stale" not in str(state.health)
    changes = np.flatnonzero(np.diff(seen)) / RATE
    assert changes == pytest.approx([0.5, 1.3], abs=0.01)  # after 0.1 s without, and 0.5 s with them


def test_a_first_sample_without_torques_does_not_decide() -> None:
    estimator = Estimator.load("go1", "gait-legs")
    estimator.start_as(sample_log(), "truth")
    for k, row in enumerate(sample_log().slice(0.0, 1.0).rows()):
        estimator.update(row._replace(tau=None, q_des=None) if k == 0 else row)
        if k in (1, 200):
            assert kinematic(estimator)
    assert not kinematic(estimator)


def test_legs_of_a_robot_on_its_back_are_not_used() -> None:
    estimator = Estimator.load("go1", "gait-legs")
    estimator.reset(quat_wb_wxyz=np.array([0.0, 1.0, 0.0, 0.0]))
    for row in standing(RATE // 2, upright=False):
        dq = 3.0 * np.sin(20.0 * row.t + np.arange(12.0))
        q = row.q + 3.0 / 20.0 * (1.0 - np.cos(20.0 * row.t + np.arange(12.0)))
        state = estimator.update(row._replace(q=q, dq=dq))
    assert "no measurement" in state.health.words
    assert state.leg_test_ratio is not None and not state.leg_test_ratio.any()


def test_joints_at_a_low_rate_are_not_stale_while_the_body_turns() -> None:
    """Only `hold` seconds without change count then; 0.05 s if other legs move."""
    estimator, repeated = Estimator.load("go1", "gait-legs"), standing(1)[0]
    for k, row in enumerate(standing(RATE)):
        repeated = row if k % 35 == 0 else repeated  # for 70 ms
        state = estimator.update(row._replace(q=repeated.q, dq=repeated.dq, gyro=row.gyro + TURN))
        assert "stale" not in str(state.health)


def test_torques_and_targets_that_go_missing_are_told() -> None:
    lost = np.full(12, np.nan)
    states = run("gait-legs", lambda k, row: row._replace(tau=lost, q_des=lost))
    assert "torques and targets missing" in states[FAULT + RATE // 5].health.words
    assert not any(s.health.flags & Health.NO_TORQUE for s in states[:FAULT])


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_an_encoder_with_the_other_sign_contradicts_its_target(method: str) -> None:
    sign = np.where(np.arange(12) == 4, -1.0, 1.0)
    states = run(method, lambda k, row: row._replace(q=sign * row.q, dq=sign * row.dq))
    assert "leg FL stale" in states[FAULT + RATE // 5].health.words


def test_a_contact_aided_filter_waits_for_what_tells_contacts() -> None:
    log = sample_log().slice(0.0, 0.5)
    estimator = Estimator.load("go1", "iekf")
    estimator.start_as(log, "truth")
    states = [estimator.update(*row[: 7 if k else 5]) for k, row in enumerate(log.rows())]
    assert "starting" in states[0].health.words and "no measurement" not in states[-1].health.words


def test_torques_of_a_leg_at_its_stop_are_not_judged() -> None:
    """The stop bears what they do not tell; the sample's zero torques are ignored if no joint is at a stop."""
    robot = Robot.load("go1")
    upper = robot.q_upper.copy()
    upper[0] = sample_log().q[:, 0].min()
    for one, ignored in ((robot, True), (replace(robot, q_upper=upper), False)):
        estimator = Estimator.load(one, "gait-legs")
        estimator.start_as(sample_log(), "truth")
        states = [estimator.update(row._replace(tau=0.0 * row.tau)) for row in sample_log().slice(0.0, 1.0).rows()]
        assert (BAD_TORQUE in words(states)) is ignored


def test_the_first_sample_counts_for_no_time() -> None:
    """Whatever its stamp: torques are doubted after a while of contradiction, not at once."""
    estimator = Estimator.load("go1", "gait-legs")
    estimator.start_as(sample_log(), "truth")
    rows = list(sample_log().slice(0.0, 0.15).rows())
    states = [estimator.update(row._replace(t=row.t + 1e6, tau=-row.tau)) for row in rows]
    first = next(k for k, s in enumerate(states) if s.health.flags & Health.BAD_TORQUE)
    assert first / RATE >= 0.07
