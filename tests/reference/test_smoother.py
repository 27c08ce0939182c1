"""The smoother: the core against the reference, and the reference against batch least squares."""

from __future__ import annotations

import copy
import ctypes

import core_calls
import numpy as np
import pytest

import gait
from gait import Estimator, GaitError, Log, Trajectory
from gait.arrays import Array
from gait.binding import CSample, aligned_bytes, core, pointer
from gait.engine import Context, Engine
from gait.parameters import Prior, ProcessNoise
from gait.reference.filter import ReferenceFilter, prior_std
from gait.reference.smoother import recorded_step, smooth_back
from gait.robot import Robot
from gait.samples import SAMPLE
from gait.smoothing import IMU_DELAY, IMU_DELAY_STD, as_read, smooth_once, smooth_with

DT, STEPS = 0.002, 40


@pytest.fixture(scope="module")
def walk() -> Log:
    return gait.open_log(SAMPLE).reorder("go1").slice(0.0, 6.0)


def imu(rng: np.random.Generator) -> tuple[Array, Array]:
    """Rates and forces of a body that moves about."""
    t = DT * np.arange(STEPS)[:, None]
    gyro = 0.5 * np.sin(10.0 * t + rng.normal(size=3))
    return gyro, np.array([0.0, 0.0, 9.81]) + np.sin(7.0 * t + rng.normal(size=3))


def test_core_against_reference() -> None:
    """Steps and velocities of a method of the caller, recorded by both: the same smoothed state at every stamp."""
    rng, robot = np.random.default_rng(0), Robot.load("go1")
    engine = Engine(robot, noise=ProcessNoise())
    context, library = Context(engine), core()
    room = aligned_bytes(library.gait_recorder_bytes(engine.config_at, 64))
    library.gait_recorder_init(pointer(room), engine.config_at, 64)
    context.reset(np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.3, 0.0, 0.0]), np.zeros(3), np.zeros(3))
    held = core_calls.CContext.from_address(context.at)
    gyro, accel = imu(rng)
    ekf, records = ReferenceFilter(ProcessNoise()), []
    q = np.ascontiguousarray(robot.q_stand)
    for k in range(STEPS):
        arrays = [np.ascontiguousarray(values) for values in (gyro[k], accel[k], q, 0.0 * q)]
        sample = CSample(t=DT * k, **dict(zip(("gyro", "accel", "q", "dq"), map(pointer, arrays), strict=True)))
        ready, state = ctypes.c_int(), np.empty(engine.state_doubles)
        health = library.gait_begin(context.at, ctypes.addressof(sample), ctypes.addressof(ready))
        if k == 0:
            f = held.filter
            R = np.ctypeslib.as_array(f.R).reshape(3, 3).copy()
            ekf.start(R, np.array(f.x[0]), np.array(f.x[1]), prior_std(Prior()))
            ekf.P = np.ctypeslib.as_array(f.P)[: 15 * 16].reshape(15, 16)[:, :15].copy()
            library.gait_record(context.at, pointer(room))
        else:
            records.append(recorded_step(ekf, gyro[k], accel[k], DT))
        H = np.zeros((3, 15))
        H[:, 3:6] = np.eye(3)
        z, N = ekf.R @ np.array([0.3, 0.1, 0.0]) - ekf.v + 0.02 * rng.normal(size=3), 1e-3 * np.eye(3)
        assert library.gait_correct(context.at, 3, *map(pointer, (z, H, N)))
        ekf.correct(z, H, N)
        library.gait_end(context.at, health, pointer(state))
    smoothed = smooth_back(records, ekf)
    carry, out = np.zeros(library.gait_carry_bytes(), np.uint8), np.empty(engine.state_doubles + 15 * 15)
    for k in (STEPS - 1, STEPS - 2, 17, 0):
        assert library.gait_lagged(pointer(room), context.at, DT * (STEPS - 1 - k), pointer(carry), pointer(out))
        np.testing.assert_allclose(out[engine.state_doubles :].reshape(15, 15), smoothed[k].P, rtol=1e-6, atol=1e-12)
        found = core_calls.CFilter.from_buffer(carry)
        np.testing.assert_allclose(np.array(found.R).reshape(3, 3), smoothed[k].R, atol=1e-9)
        np.testing.assert_allclose(np.array(found.x)[:2], [smoothed[k].v, smoothed[k].p], atol=1e-9)
        np.testing.assert_allclose(np.array(found.b), [smoothed[k].gyro_bias, smoothed[k].accel_bias], atol=1e-9)


def test_reference_against_least_squares() -> None:
    """Covariances of all states at once, by the inverse of the information of prior, steps and measurements."""
    rng = np.random.default_rng(1)
    gyro, accel = imu(rng)
    ekf, steps = ReferenceFilter(ProcessNoise()), 6
    ekf.start(np.eye(3), np.array([0.3, 0.0, 0.0]), np.zeros(3), np.full(15, 0.01))
    H = np.zeros((3, 15))
    H[:, 3:6] = np.eye(3)
    records, prior = [], ekf.P
    for k in range(steps):
        records.append(recorded_step(ekf, gyro[k], accel[k], DT))
        ekf.correct(1e-6 * rng.normal(size=3), H, 1e-4 * np.eye(3))
    smoothed = smooth_back(records, ekf)
    A = np.zeros((15 * (steps + 1), 15 * (steps + 1)))
    A[:15, :15] += np.linalg.inv(prior)
    for k, record in enumerate(records):
        Q = record.predicted.P - record.Phi @ record.before.P @ record.Phi.T + 1e-18 * np.eye(15)
        W, i, j = np.linalg.inv(Q), slice(15 * k, 15 * k + 15), slice(15 * k + 15, 15 * k + 30)
        A[i, i] += record.Phi.T @ W @ record.Phi
        A[j, j] += W + H.T @ H / 1e-4
        A[i, j] -= record.Phi.T @ W
        A[j, i] -= W @ record.Phi
    covs = np.linalg.inv(A)
    for k in (0, 3, steps):
        block = covs[15 * k : 15 * k + 15, 15 * k : 15 * k + 15]
        np.testing.assert_allclose(smoothed[k].P, block, rtol=2e-3, atol=1e-12)


@pytest.mark.parametrize("method", ["gait-legs", "iekf", "gait"])
def test_smoothing_a_walk(walk: Log, method: str) -> None:
    """A smaller covariance than the filter's, a smaller error, and the same state in the end."""
    alone, same = Estimator.load("go1", method).run(walk), smooth_once(Estimator.load("go1", method), walk)
    np.testing.assert_allclose(same.smoothed.vel_b[-1], alone.vel_b[-1], atol=1e-9)
    std = [np.sqrt(np.einsum("nii->n", one.vel_cov)) for one in (alone, same.smoothed)]
    assert (std[1] < 1.02 * std[0]).mean() > 0.95 and std[1].mean() < 0.9 * std[0].mean()
    filtered, smoothed = smooth_with(Estimator.load("go1", method), walk)[:2]
    np.testing.assert_array_equal(filtered.vel_b, alone.vel_b)
    rms = [np.sqrt(((one.vel_b - walk.vel_b) ** 2).sum(1).mean()) for one in (filtered, smoothed)]
    assert rms[1] < 0.97 * rms[0]
    errors = smoothed.vel_b - walk.vel_b
    nees = np.einsum("ni,nij,nj->n", errors, np.linalg.inv(smoothed.vel_cov), errors).mean()
    assert 0.1 < nees < 6.0  # careful: legs are inflated for their weight beside the IMU
    assert np.linalg.eigvalsh(smoothed.pose_cov).min() > -1e-9


def test_parts_do_not_show(walk: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gait.smooth(walk)
    monkeypatch.setattr("gait.smoothing.PART", 700)
    np.testing.assert_allclose(gait.smooth(walk).pos_w, whole.pos_w, atol=1e-12)


def test_other_rates_have_more_steps_than_samples(walk: Log) -> None:
    slow = walk.resample(100.0)
    done = smooth_with(Estimator.load("go1"), slow)
    rms = [np.sqrt(((one.vel_b - slow.vel_b) ** 2).sum(1).mean()) for one in (done.filtered, done.smoothed)]
    assert rms[1] < rms[0]


def test_a_lag_is_the_smoother_up_to_now(walk: Log) -> None:
    rows = list(walk.rows())[:700]
    est = Estimator.load("go1", lag=0.2)
    est.start_as(walk)
    for k, row in enumerate(rows):
        state = est.update(row)
        if k == 20:
            assert est.lagged().t == rows[0].t, "the earliest there is"
    past = est.lagged()
    assert state.t - past.t == pytest.approx(0.2, abs=1e-6)
    short = walk.slice(0.0, rows[-1].t + 1e-4)
    i = len(short) - 1 - 100
    whole = smooth_once(Estimator.load("go1"), short).smoothed
    np.testing.assert_allclose(past.vel_b, whole.vel_b[i], atol=1e-9)
    np.testing.assert_allclose(past.vel_cov, whole.vel_cov[i], atol=1e-12)
    before = Estimator.load("go1").run(short)
    np.testing.assert_array_equal(state.vel_b, before.vel_b[-1])
    # A late measurement takes the record back with it.
    assert est.correct("height", rows[-1].t, [state.pos_w[2] + 0.01], 0.01)
    for row in list(walk.rows())[700:800]:
        state = est.update(row)
    assert est.correct("height", state.t - 0.1, [state.pos_w[2] + 0.01], 0.01)
    past = est.lagged()
    assert state.t - past.t == pytest.approx(0.2, abs=1e-6) and np.isfinite(past._row).all()
    copied = copy.deepcopy(est)
    assert copied.lagged().t == pytest.approx(copied.predict(-np.inf).t), "what was recorded is not copied"


def test_the_latency_of_the_imu_is_taken_off() -> None:
    """The state of `IMU_DELAY` later, and in the covariance what that may be off."""
    t = DT * np.arange(500)
    vel_w = np.stack([np.sin(20.0 * t), 0.0 * t, 0.0 * t], axis=1)
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    claimed = np.tile(1e-4 * np.eye(3), (len(t), 1, 1)), np.tile(1e-4 * np.eye(6), (len(t), 1, 1))
    late = Trajectory(t=t, quat_wb_wxyz=still, vel_w=vel_w, pos_w=0.1 * vel_w, vel_cov=claimed[0], pose_cov=claimed[1])
    found, k = as_read(late), np.arange(100, 400)
    np.testing.assert_allclose(found.vel_b[k, 0], np.sin(20.0 * (t[k] + IMU_DELAY)), atol=1e-3)
    np.testing.assert_allclose(found.pos_w, 0.1 * found.vel_w, atol=1e-12)
    added = (IMU_DELAY_STD * 20.0 * np.cos(20.0 * t[k])) ** 2
    np.testing.assert_allclose(found.need("vel_cov")[k, 0, 0], 1e-4 + added, rtol=0.01, atol=1e-8)


def test_mistakes() -> None:
    with pytest.raises(GaitError, match=r"lag=0\.2"):
        Estimator.load("go1").lagged()
    with pytest.raises(GaitError, match="at most 2"):
        Estimator.load("go1", lag=5.0)
