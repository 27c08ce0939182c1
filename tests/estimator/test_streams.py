"""IMU and joints that come apart, at their own rates; the state carried on to a later time; where `run` starts."""

from __future__ import annotations

import numpy as np
import pytest

from gait import Estimator, GaitError, Log, Robot, State, Trajectory
from gait.health import Health
from gait.log.sample import Sample
from gait.methods import METHODS
from gait.parameters import LEGS_NOISE, Limits, Options, Prior, ProcessNoise
from gait.reference.disagreement import ConsistencyMonitor
from gait.reference.filter import ReferenceFilter, base_state, imu_state, prior_std
from gait.samples import SAMPLE

PARTS = ("quat_wb_wxyz", "vel_w", "pos_w", "vel_b", "gyro_bias", "accel_bias", "vel_cov", "pose_cov", "cov")


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(0.0, 4.0)


def give_joints(estimator: Estimator, row: Sample, t: float | None = None) -> None:
    estimator.update_joints(row.t if t is None else t, row.q, row.dq, row.q_des, row.tau)


def assert_same(one: State, other: State) -> None:
    for name in PARTS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.t == other.t and one.health.bits == other.health.bits


def rmse(states: list[State], log: Log) -> float:
    truth = np.stack([np.interp([s.t for s in states], log.t, log.vel_b[:, i]) for i in range(3)], axis=1)
    return float(np.sqrt(np.square(np.array([s.vel_b for s in states]) - truth).sum(1).mean()))


@pytest.mark.parametrize("method", METHODS)
def test_at_one_rate_parts_are_as_good_as_whole_samples(log: Log, method: str) -> None:
    whole, parts = Estimator.load("go1", method), Estimator.load("go1", method)
    whole.start_as(log)
    parts.start_as(log)
    for row in log.slice(0.0, 1.0).rows():
        give_joints(parts, row)
        assert_same(parts.update_imu(row.t, row.gyro, row.accel), whole.update(row))


@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf"])
@pytest.mark.parametrize(("imu", "joints"), [(500, 250), (500, 100), (1000, 250), (1000, 100)])
def test_joints_may_come_less_often_than_the_imu(log: Log, method: str, imu: int, joints: int) -> None:
    """Held joints are late by half their period: 2 ms at 250 Hz, 5 ms at 100 Hz, where feet swing at 3 m/s and more."""
    estimator, usual = Estimator.load("go1", method), Estimator.load("go1", method)
    fast = log if imu == 500 else log.resample(float(imu))
    estimator.start_as(fast, "truth")
    states, every = [], imu // joints
    for k, row in enumerate(fast.rows()):
        if k % every == 0:
            give_joints(estimator, row)
        states.append(estimator.update_imu(row.t, row.gyro, row.accel))
    assert {word for state in states[100:] for word in state.health.words} <= {"no measurement", "measurement rejected"}
    error, best = rmse(states, log), rmse([usual.update(row) for row in _started(usual, log)], log)
    assert best < 0.02 and error < best + 0.012
    assert len({state.t for state in states}) == len(fast)


def _started(estimator: Estimator, log: Log) -> list[Sample]:
    estimator.start_as(log, "truth")
    return list(log.rows())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("hold", [0.1, 0.03])
def test_joints_that_stop_are_flagged_after_the_time_they_are_held(log: Log, method: str, hold: float) -> None:
    estimator = Estimator.load("go1", method, limits=Limits(hold=hold))
    estimator.start_as(log)
    rows, last = list(log.slice(0.0, 1.2).rows()), 250
    flagged = []
    for k, row in enumerate(rows):
        if k <= last or k >= 500:
            give_joints(estimator, row)
        state = estimator.update_imu(row.t, row.gyro, row.accel)
        assert np.isfinite(state.cov).all() and np.isfinite(state.vel_b).all()
        flagged.append(bool(state.health.flags & Health.STALE_LEG))
        if flagged[-1]:
            assert state.health.flags & Health.NO_MEASUREMENT and "leg FR stale" in str(state.health)
    first = flagged.index(True)
    assert rows[first].t - rows[last].t == pytest.approx(hold, abs=0.0021)
    assert all(flagged[first:500]) and not any(flagged[500:])


@pytest.mark.parametrize("method", METHODS)
def test_the_imu_may_begin_before_the_joints(log: Log, method: str) -> None:
    """Weights are chosen by what the first joints bring, not by what the IMU lacks."""
    estimator, late = Estimator.load("go1", method), Estimator.load("go1", method)
    estimator.start_as(log)
    rows = list(log.slice(0.0, 1.0).rows())
    for k, row in enumerate(rows[:10]):
        state = estimator.update_imu(row.t, row.gyro, row.accel)
        assert "starting" in str(state.health) and (k == 0 or "no measurement" in str(state.health))
        assert np.isfinite(state.cov).all() and state.t == row.t
    for row in rows[10:]:
        give_joints(estimator, row)
        state = estimator.update_imu(row.t, row.gyro, row.accel)
    assert state.health.ok and np.linalg.norm(state.vel_b - log.vel_b[len(rows) - 1]) < 0.1
    # The same as whole samples whose encoders were not there at first.
    late.start_as(log)
    nothing = np.full(12, np.nan)
    for k, row in enumerate(rows):
        expected = late.update(row._replace(q=nothing, dq=nothing) if k < 10 else row)
    np.testing.assert_allclose(state.vel_b, expected.vel_b, atol=1e-9)


def test_joints_without_targets_take_the_weights_without(log: Log) -> None:
    estimator, whole = Estimator.load("go1", "gait"), Estimator.load("go1", "gait")
    estimator.start_as(log)
    whole.start_as(log)
    for row in log.slice(0.0, 0.2).rows():
        estimator.update_joints(row.t, row.q, row.dq)
        assert_same(estimator.update_imu(row.t, row.gyro, row.accel), whole.update(row._replace(q_des=None, tau=None)))


def test_mistakes_in_parts_are_told_in_a_sentence(log: Log) -> None:
    estimator = Estimator.load("go1", "iekf")
    row = next(iter(log.rows()))
    with pytest.raises(GaitError, match=r"gyro must be 3 numbers, got an array of shape \(2,\)"):
        estimator.update_imu(0.0, row.gyro[:2], row.accel)
    with pytest.raises(GaitError, match="a sample is made of numbers"):
        estimator.update_imu(0.0, row.gyro, "x")
    with pytest.raises(GaitError, match="its stamp is one"):
        estimator.update_imu("now", row.gyro, row.accel)  # type: ignore[arg-type]
    with pytest.raises(GaitError, match="its stamp is one"):
        estimator.predict("soon")  # type: ignore[arg-type]
    with pytest.raises(GaitError, match=r"dq must be 12 numbers, got an array of shape \(3,\)"):
        estimator.update_joints(0.0, row.q, row.dq[:3], row.q_des)
    estimator.update_joints(0.0, row.q, row.dq)  # contacts are not told yet
    # What was refused has left nothing behind, not even a choice of weights.
    assert estimator._given is None
    give_joints(estimator, row)
    assert np.isfinite(estimator.update_imu(row.t, row.gyro, row.accel).cov).all()


def test_bad_imu_samples_by_themselves_are_left_out(log: Log) -> None:
    estimator = Estimator.load("go1", "gait-legs")
    estimator.start_as(log)
    for k, row in enumerate(log.slice(0.0, 0.5).rows()):
        give_joints(estimator, row)
        gyro, t = row.gyro.copy(), row.t
        if k == 100:
            gyro[0] = np.nan
        if k == 150:
            t = np.nan
        state = estimator.update_imu(t, gyro, row.accel)
        assert np.isfinite(state.cov).all() and np.isfinite(state.vel_b).all()
        words = {100: "gyro not finite", 150: "stamp not later than the last"}.get(k)
        assert words is None or words in str(state.health)
    assert state.health.ok


# Prediction


def after(estimator: Estimator, log: Log, samples: int = 300) -> tuple[State, Sample]:
    estimator.start_as(log)
    rows = list(log.rows())
    for row in rows[:samples]:
        state = estimator.update(row)
    return state, rows[samples - 1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ahead", [1e-4, 0.002, 0.05])
def test_a_prediction_is_the_propagation_without_measurement(log: Log, method: str, ahead: float) -> None:
    """By the reference: the state and covariance after the sample, moved on with its gyro and accelerometer.

    What is reported beyond them, the open disagreement of the sample, stays as it was: velocities have it on top,
    poses at least.
    """
    estimator, robot = Estimator.load("go1", method), Robot.load("go1")
    state, row = after(estimator, log, samples=140)  # before the noise is estimated
    got = estimator.predict(row.t + ahead)
    R_bi, p_bi = np.eye(3), robot.imu_position
    assert np.array_equal(robot.imu_quat_wxyz, [1.0, 0.0, 0.0, 0.0])
    ekf = ReferenceFilter(LEGS_NOISE if estimator.by_leg else ProcessNoise(), Options())
    at_imu = imu_state(state.R_wb, state.vel_w, state.pos_w, row.gyro - state.gyro_bias, R_bi, p_bi)
    ekf.start(*at_imu, prior_std(Prior()))
    ekf.gyro_bias, ekf.accel_bias = state.gyro_bias.copy(), state.accel_bias.copy()
    ekf.P = state.cov[:15, :15].copy()

    def reported() -> State:
        return ConsistencyMonitor(ekf, R_bi).reported(base_state(ekf, row.gyro, R_bi, p_bi))

    now = reported()
    ekf.propagate(row.gyro, row.accel, ahead)
    want = reported()
    for name in ("quat_wb_wxyz", "vel_w", "pos_w", "vel_b"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-9, atol=1e-9, err_msg=name)
    still = state.vel_cov - now.vel_cov
    np.testing.assert_allclose(got.vel_cov, want.vel_cov + still, rtol=1e-9, atol=1e-9)
    least = np.where(state.pose_cov - now.pose_cov > 1e-12, state.pose_cov, want.pose_cov)
    np.testing.assert_allclose(got.pose_cov, np.maximum(want.pose_cov, least), rtol=1e-9, atol=1e-9)
    assert got.t == row.t + ahead and got.health.ok and got.cov.shape == state.cov.shape
    assert got.pose_cov[0, 0] > state.pose_cov[0, 0]


@pytest.mark.parametrize("method", METHODS)
def test_a_prediction_changes_nothing(log: Log, method: str) -> None:
    asked, quiet = Estimator.load("go1", method, attention=True), Estimator.load("go1", method, attention=True)
    asked.start_as(log)
    quiet.start_as(log)
    for row in log.slice(0.0, 0.4).rows():
        for t in (row.t - 1.0, row.t, row.t + 0.003, row.t + 0.5, np.nan, np.inf):
            assert np.isfinite(asked.predict(t).cov).all()
        assert_same(asked.update(row), quiet.update(row))


@pytest.mark.parametrize("method", METHODS)
def test_a_prediction_far_ahead_is_a_gap(log: Log, method: str) -> None:
    estimator = Estimator.load("go1", method)
    state, row = after(estimator, log)
    near, far = estimator.predict(row.t + 0.09), estimator.predict(row.t + 0.5)
    assert near.health.ok and str(far.health) == "gap 0.50 s" and far.t == row.t + 0.5
    assert np.linalg.norm(far.vel_w - state.vel_w) < 0.1  # velocity is held
    assert np.trace(far.vel_cov) > 10.0 * np.trace(near.vel_cov)
    # No further than thirty seconds, whatever is asked for: what lies beyond is as unknown.
    assert np.array_equal(estimator.predict(row.t + 31.0).cov, estimator.predict(1e9).cov)
    assert str(estimator.predict(row.t).health) == "ok" and np.array_equal(
        estimator.predict(row.t - 1.0).cov, state.cov
    )


def test_before_the_first_measurement_a_prediction_says_so(log: Log) -> None:
    for method in METHODS:
        estimator = Estimator.load("go1", method)
        assert str(estimator.predict(1.0).health) == "starting"
        estimator.update(next(iter(log.rows())))
        assert str(estimator.predict(log.t[0] + 0.002).health) == "starting"


def test_a_prediction_is_closer_than_the_last_state(log: Log) -> None:
    """What it is for: a controller that needs the position 20 ms later."""
    estimator, ahead = Estimator.load("go1", "gait-legs"), 10
    trajectory = estimator.run(log)
    estimator.start_as(log)
    predicted, held = [], []
    for k, row in enumerate(log.rows()):
        state = estimator.update(row)
        if k + ahead < len(log) and k > 100:
            later = trajectory.pos_w[k + ahead]
            predicted.append(np.linalg.norm(estimator.predict(log.t[k + ahead]).pos_w - later))
            held.append(np.linalg.norm(state.pos_w - later))
    assert np.median(predicted) < 0.2 * np.median(held)


# Where a run starts


def without_truth(log: Log) -> Log:
    return log.replace(pos_w=None, quat_wb_wxyz=None, vel_w=None)


@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf"])
def test_a_run_starts_at_the_ground_truth_if_there_is_one(log: Log, method: str) -> None:
    part, estimator = log.slice(0.0, 1.0), Estimator.load("go1", method)

    def same(one: Trajectory, other: Trajectory) -> bool:
        return np.array_equal(one.vel_w, other.vel_w) and np.array_equal(one.quat_wb_wxyz, other.quat_wb_wxyz)

    truth, gravity = estimator.run(part, "truth"), estimator.run(part, "gravity")
    assert same(estimator.run(part), truth) and same(estimator.run(part, "auto"), truth)
    assert not same(truth, gravity)
    assert same(estimator.run(without_truth(part)), gravity)
    np.testing.assert_allclose(truth.pos_w[0], part.pos_w[0], atol=1e-12)
    assert np.abs(gravity.pos_w[0]).max() < 1e-9
    with pytest.raises(GaitError, match="no ground truth to start from"):
        estimator.run(without_truth(part), "truth")
