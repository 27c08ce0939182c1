"""Test ratios, resets, validity and events, as an estimator shows them."""

from __future__ import annotations

import numpy as np
import pytest
from core_calls import inside
from faulty_samples import FAULT, RATE, error, run, sample_log, words

from gait import Estimator, quaternions
from gait.health import Health
from gait.log.sample import Sample


@pytest.mark.parametrize("method", ["gait-legs", "iekf", "iekf-sr"])
def test_a_clean_walk_is_valid_and_undisputed(method: str) -> None:
    states = run(method, lambda k, row: row, seconds=4.0)
    assert all(all(s.valid) for s in states[FAULT:])
    assert states[-1].resets == 0 and not words(states[10:]) - {"foot slips", "measurement rejected", "no measurement"}
    assert np.mean([s.test_ratio for s in states[10:]]) < 2.0
    assert all(s.leg_test_ratio is not None and s.leg_test_ratio.shape == (4,) for s in states)


@pytest.mark.parametrize("size", [0.3, 5.0])
def test_a_wrong_leg_has_a_large_test_ratio_or_is_left_out(size: float) -> None:
    def edit(k: int, row: Sample) -> Sample:
        return row._replace(dq=row.dq + (np.arange(12) // 3 == stands) * size * (k < FAULT + 20))

    stands = int(np.flatnonzero(sample_log().contact[FAULT : FAULT + 20].all(axis=0))[0])
    states = run("gait-legs", edit)
    worst = np.max([s.leg_test_ratio for s in states[FAULT : FAULT + 20]], axis=0)
    # The gate finds an error that the network does not recognise; one that it does is not fused, or covered.
    if size < 2.0:
        assert worst[stands] > 1.2 and worst.argmax() == stands
    assert error(states).max() < 0.03


def test_a_velocity_that_is_wrong_for_long_is_reset() -> None:
    """The accelerometer is wrong by more than any bias: four agreeing legs win."""
    states = run("gait-legs", lambda k, row: row._replace(accel=row.accel + np.array([6.0, 0.0, 0.0])), seconds=3.0)
    assert states[-1].resets > 0 and {"imu and legs disagree", "velocity reset"} <= words(states)
    shown = [bool(s.health.flags & Health.RESET) for s in states]
    first = next(k for k, s in enumerate(states) if s.resets)
    assert all(shown[first : first + RATE // 2 - 1]) and not any(shown[:first])
    assert error(states)[-RATE:].max() < 1.5 < error(states).max()


def test_a_blind_robot_is_not_valid_for_long() -> None:
    lost = np.full(3, np.nan)
    states = run("gait-legs", lambda k, row: row._replace(gyro=lost, accel=lost), seconds=2.0)
    assert all(states[FAULT - 1].valid)
    assert not states[-1].valid.velocity and not states[-1].valid.attitude and states[-1].valid.position


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_a_divergence_leaves_large_variances_and_is_shown(method: str) -> None:
    estimator = Estimator.load("go1", method)
    log = sample_log().slice(0.0, 2.0)
    estimator.start_as(log, "truth")
    states = []
    for k, row in enumerate(log.rows()):
        if k == FAULT:
            inside(estimator._context).filter.x[0][0] = 50.0
        states.append(estimator.update(row))
    diverged = [bool(s.health.flags & Health.DIVERGED) for s in states]
    assert diverged.index(True) == FAULT and sum(diverged) == pytest.approx(RATE // 2, abs=3)
    after = states[FAULT + 1]
    assert after.pose_cov[5, 5] > 1.0 and after.pose_cov[0, 0] > 25.0 and after.resets == 1
    assert not states[-1].valid.position and states[-1].valid.velocity and error(states)[-RATE // 2 :].max() < 0.3


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_a_clock_that_was_set_back_is_followed(method: str) -> None:
    states = run(method, lambda k, row: row._replace(t=row.t - 0.5))
    named = [k for k, s in enumerate(states) if "clock set back 0.5 s" in s.health.words]
    assert FAULT < named[0] <= FAULT + RATE // 20
    times = np.array([s.t for s in states[named[0] :]])
    assert (np.diff(times) > 0.0).all() and error(states)[named[0] + 50 :].max() < 0.3
    shown = [bool(s.health.flags & Health.CLOCK_BACK) for s in states]
    assert sum(shown) == pytest.approx(RATE // 2, abs=25) or shown[-1]


@pytest.mark.parametrize("lost", [0.03, 0.09])
def test_a_short_gap_is_flagged_and_inflates_the_covariance(lost: float) -> None:
    count = round(lost * RATE)
    states = run("gait-legs", lambda k, row: None if k < FAULT + count else row)
    assert f"gap {lost + 1 / RATE:.2f} s" in words(states[FAULT : FAULT + 1])
    assert np.trace(states[FAULT].vel_cov) > np.trace(states[FAULT - 1].vel_cov)


def test_a_single_lost_sample_is_no_gap() -> None:
    assert not words(run("gait-legs", lambda k, row: None if k % 50 == 0 else row)[10:])


def test_slip_rejection_never_rejects_all_feet() -> None:
    """With a start that is wrong by 1 m/s every foot seems to slip."""
    log = sample_log().slice(0.0, 2.0)
    estimator = Estimator.load("go1", "iekf-sr")
    quat, vel, pos = log.quat_wb_wxyz[0], log.vel_w[0] + [1.0, 0.0, 0.0], log.pos_w[0]
    estimator.reset(quat_wb_wxyz=quat, vel_w=vel, pos_w=pos, gyro=log.gyro[0])
    states = [estimator.update(row) for row in log.rows()]
    off = error(states)
    assert off[5] > 0.8 and off[RATE:].max() < 0.3


def test_a_bias_that_jumps_is_found() -> None:
    """Measurements that differ from the IMU into one direction for longer than any slip show a bias."""
    states = run("gait-legs", lambda k, row: row._replace(accel=row.accel + 0.5), seconds=3.5)
    # How much of it is a tilt takes longer to tell, except vertically.
    assert states[-1].accel_bias[2] - states[FAULT].accel_bias[2] == pytest.approx(0.4, abs=0.2)
    assert error(states)[FAULT + RATE :].max() < 0.05 and states[-1].resets == 0


def test_a_clean_walk_has_no_cause_to_doubt_a_bias() -> None:
    states = run("gait-legs", lambda k, row: row, seconds=4.0)
    std = np.array([np.sqrt(np.diag(s.cov)[12:15]) for s in states])
    assert (np.diff(std[RATE // 2 :], axis=0) < 1e-4).all()


def test_a_slip_is_no_bias() -> None:
    """One that begins and ends with a jump makes differences of one sign for no longer than 0.3 s."""

    def edit(k: int, row: Sample) -> Sample:
        return row._replace(dq=row.dq * (1.0 + 0.2 * (FAULT + 200 < k < FAULT + 500)))

    std = np.array([np.sqrt(np.diag(s.cov)[12:15]) for s in run("gait-legs", edit, seconds=3.0)])
    assert (np.diff(std[FAULT:], axis=0) < 1e-3).all()


def test_legs_that_were_stuck_leave_what_they_corrected_in_the_variance() -> None:
    held = list(sample_log().slice(0.0, 1.0).rows())[FAULT - 1]
    states = run("iekf", lambda k, row: row._replace(q=held.q, dq=held.dq, tau=held.tau), seconds=1.2)
    log = sample_log()
    found = next(k for k, s in enumerate(states) if k >= FAULT and any("stale" in w for w in s.health.words))
    off = np.array([s.vel_b for s in states]) - log.vel_b[: len(states)]
    std = np.sqrt([np.diag(s.vel_cov) for s in states])
    assert np.linalg.norm(off[found]) > 0.1 and (np.abs(off[found:]) < 3.0 * std[found:]).all()


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_the_heading_of_a_gyro_with_a_wrong_scale_is_within_its_std(method: str) -> None:
    """Legs measure a rate about z as well: the reported std follows the difference within tenths of a second."""
    turning = np.array([0.0, 0.0, 0.06])
    states = run(method, lambda k, row: row._replace(gyro=row.gyro + turning), seconds=4.0)
    log = sample_log()
    turn = quaternions.multiply(np.array([s.quat_wb_wxyz for s in states]), quaternions.inverse(log.quat_wb_wxyz))
    off = np.abs(quaternions.heading(turn[: len(states)]))
    std = np.sqrt([s.pose_cov[5, 5] for s in states])
    assert off[-1] > 0.03 and np.mean(off[FAULT:] < 3.0 * std[FAULT:]) > 0.99
