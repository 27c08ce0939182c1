"""Checks of gyro and accelerometer, one by one, as an estimator shows them."""

from __future__ import annotations

import numpy as np
import pytest
from faulty_samples import FAULT, RATE, Edit, error, run, sample_log, standing, words

from gait import Estimator
from gait.health import Health
from gait.log.sample import Sample

NAN = np.full(3, np.nan)
STUCK = sample_log().gyro[FAULT], sample_log().accel[FAULT]
FAULTS: dict[str, tuple[Edit, Health]] = {
    "gyro not finite": (lambda k, row: row._replace(gyro=NAN), Health.BAD_IMU | Health.GYRO),
    "accelerometer not finite": (lambda k, row: row._replace(accel=NAN), Health.BAD_IMU | Health.ACCEL),
    "imu not finite": (lambda k, row: row._replace(gyro=NAN, accel=NAN), Health.GYRO | Health.ACCEL),
    "gyro stuck": (lambda k, row: row._replace(gyro=STUCK[0]), Health.IMU_STUCK | Health.GYRO),
    "accelerometer stuck": (lambda k, row: row._replace(accel=STUCK[1]), Health.IMU_STUCK | Health.ACCEL),
    "imu stuck": (lambda k, row: row._replace(gyro=STUCK[0], accel=STUCK[1]), Health.GYRO | Health.ACCEL),
    "accelerometer saturated": (lambda k, row: row._replace(accel=row.accel + 500.0), Health.IMU_SATURATED),
    "gyro saturated": (lambda k, row: row._replace(gyro=row.gyro + 100.0), Health.IMU_SATURATED),
    "accelerometer in g?": (lambda k, row: row._replace(accel=row.accel / 9.81), Health.IMU_UNITS),
    "gyro in deg/s?": (lambda k, row: row._replace(gyro=np.degrees(row.gyro)), Health.IMU_UNITS),
    "gravity is not along the vertical: check the axes of the imu": (
        lambda k, row: row._replace(accel=row.accel[[2, 1, 0]]),
        Health.IMU_AXES,
    ),
}


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
@pytest.mark.parametrize("word", FAULTS)
def test_a_fault_is_named_and_soon(word: str, method: str) -> None:
    edit, flags = FAULTS[word]
    states = run(method, edit)
    usual = {"no measurement", "measurement rejected"} if method == "iekf" else set()
    assert words(states[10:FAULT]) <= usual
    assert word in words(states[FAULT : FAULT + 2 * RATE // 5])
    last = states[FAULT + 2 * RATE // 5].health
    assert last.flags & flags == flags and last.flags & Health.BAD_SAMPLE and not last.ok
    assert all(np.isfinite(s.vel_b).all() for s in states)


def test_values_that_are_cut_off_are_named() -> None:
    states = run("gait-legs", lambda k, row: row._replace(gyro=np.clip(row.gyro, -0.5, 0.5)))
    assert "gyro saturated" in words(states[FAULT:])


def test_a_single_spike_is_not_used() -> None:
    clean = run("gait-legs", lambda k, row: row)
    spiked = run("gait-legs", lambda k, row: row._replace(gyro=row.gyro + 15.0) if k == FAULT else row)
    assert "gyro spike" in words(spiked[FAULT : FAULT + 1]) and not words(spiked[FAULT + 2 :])
    assert abs(yaw_of(clean[FAULT].quat_wb_wxyz) - yaw_of(spiked[FAULT].quat_wb_wxyz)) < 0.005  # not 0.03
    assert spiked[FAULT].pose_cov[5, 5] > clean[FAULT].pose_cov[5, 5]  # its size is in the variance


def yaw_of(quat: np.ndarray) -> float:
    w, x, y, z = quat
    return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def test_a_gyro_is_used_without_an_accelerometer() -> None:
    lost = run("gait-legs", lambda k, row: row._replace(accel=NAN))
    clean = run("gait-legs", lambda k, row: row)
    assert abs(yaw_of(lost[-1].quat_wb_wxyz) - yaw_of(clean[-1].quat_wb_wxyz)) < 0.01
    both = run("gait-legs", lambda k, row: row._replace(accel=NAN, gyro=NAN))
    assert lost[-1].pose_cov[5, 5] < 0.01 * both[-1].pose_cov[5, 5]


def test_blind_uncertainty_does_not_depend_on_the_sample_rate() -> None:
    stds = []
    for rate in (200, 1000):
        estimator = Estimator.load("go1", "gait-legs")
        for row in standing(round(2.5 * rate), rate):
            blind = row.t >= 0.5
            state = estimator.update(row._replace(gyro=NAN, accel=NAN) if blind else row)
        stds.append(np.sqrt(state.pose_cov[5, 5]))
    assert stds[0] == pytest.approx(stds[1], rel=0.01) and stds[0] == pytest.approx(2.0, rel=0.1)  # 1 rad/s for 2 s


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_biases_have_limits(method: str) -> None:
    offset = np.array([2.5, 0.0, 0.0])
    states = run(method, lambda k, row: row._replace(accel=row.accel + offset, gyro=row.gyro + 0.4), seconds=4.0)
    assert max(np.abs(s.accel_bias).max() for s in states) <= 1.5
    assert max(np.abs(s.gyro_bias).max() for s in states) <= 0.2
    assert error(run(method, lambda k, row: row)).max() < 0.2


def test_a_spike_that_returns_at_once_is_told_a_sample_later() -> None:
    spike = np.array([40.0, 25.0, 10.0])
    states = run("gait-legs", lambda k, row: row._replace(accel=row.accel + (k == FAULT) * spike))
    assert "accelerometer spike" in states[FAULT + 1].health.words
    assert not any(s.health.flags & Health.IMU_SPIKE for s in states[:FAULT])


def test_a_hard_landing_is_no_spike() -> None:
    """From one sample to the next it reaches 90 m/s^2, and stays for some samples."""

    def edit(k: int, row: Sample) -> Sample:
        return row._replace(accel=row.accel + np.array([0.0, 0.0, 90.0 * (FAULT <= k < FAULT + 4)]))

    assert not any("spikes" in word for word in words(run("gait-legs", edit)))
