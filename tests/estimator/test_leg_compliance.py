"""Compliance of the legs: found where it was put, whatever slow error they have in common."""

from __future__ import annotations

import numpy as np

import gait
from gait import Estimator
from gait.leg_compliance import LEAST_SECONDS, MeasuredLegs, force_rates, leg_compliance
from gait.moving_average import low_pass
from gait.samples import SAMPLE
from gait.smoothing import smooth_once

PERIOD = 0.002


def test_found_where_it_was_put() -> None:
    rng, count = np.random.default_rng(5), 8000
    t = PERIOD * np.arange(count)
    phase = 2.0 * np.pi * (2.0 * t[:, None] + np.array([0.0, 0.5, 0.5, 0.0]))
    force = np.maximum(np.sin(phase), 0.0)[..., None] * [0.1, 0.05, 0.6]
    rates = np.gradient(force, PERIOD, axis=0)
    vel_b = np.stack([0.4 + 0.1 * np.sin(12.0 * t), 0.1 * np.cos(12.0 * t), 0.05 * np.sin(25.0 * t)], axis=1)
    put, common = np.array([0.008, 0.004, 0.002]), 0.03 * np.sin(0.5 * t)[:, None, None]
    measured = vel_b[:, None] + put * rates + common + 0.02 * rng.normal(size=rates.shape)
    std = np.where(force[..., 2:] > 0.0, 0.05, 5.0) * np.ones(3)
    found = leg_compliance(MeasuredLegs(measured, std), rates, vel_b, PERIOD, 0.0)
    np.testing.assert_allclose(found, put, rtol=0.2)
    short = slice(0, int(0.9 * LEAST_SECONDS / PERIOD))
    few = MeasuredLegs(measured[short], std[short])
    np.testing.assert_array_equal(leg_compliance(few, rates[short], vel_b[short], PERIOD, 0.0), 0.0)


def test_low_pass_has_no_delay_and_no_ends() -> None:
    t = PERIOD * np.arange(2000)
    np.testing.assert_allclose(low_pass(0.3 + 0.0 * t, PERIOD, 0.1), 0.3)
    np.testing.assert_allclose(low_pass(t, PERIOD, 0.1)[60:-60], t[60:-60], atol=1e-9)


def test_shifts_reach_the_legs() -> None:
    """What a smoother adds to the velocities of all legs, the estimate follows; nothing of it stays."""
    log = gait.open_log(SAMPLE).reorder("go1").slice(0.0, 4.0)
    estimator = Estimator.load("go1")
    shifts = np.tile([0.02, 0.0, 0.0], (len(log), 4, 1))
    plain, shifted = smooth_once(estimator, log), smooth_once(estimator, log, shifts=shifts)
    for before, after in zip(plain[:2], shifted[:2], strict=True):
        moved = (after.vel_b - before.vel_b)[len(log) // 2 :].mean(0)
        np.testing.assert_allclose(moved, [0.02, 0.0, 0.0], atol=0.003)
    again = smooth_once(estimator, log)
    np.testing.assert_array_equal(again.smoothed.vel_b, plain.smoothed.vel_b)
    rates = force_rates(log, estimator.robot, 0.004)
    assert rates.shape == shifts.shape and abs(rates.mean()) < 0.05 * np.abs(rates).mean()
