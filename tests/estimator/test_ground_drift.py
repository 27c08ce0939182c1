"""The vertical drift of a recording: taken out on level ground, left where the ground rises or nothing stands."""

from __future__ import annotations

import numpy as np
import pytest

import gait
from gait import Trajectory
from gait.arrays import Array
from gait.ground_drift import MEASURED, NOISE, estimated_slope, without_drift
from gait.samples import SAMPLE
from gait.smoothing import smooth

PERIOD, SPEED = 0.01, 0.4
HIPS = np.array([[0.2, -0.1], [0.2, 0.1], [-0.2, -0.1], [-0.2, 0.1]])


def walk(slope: float, drift: float) -> tuple[Trajectory, Array, Array]:
    """15 s up a slope by a robot on two legs at a time, whose estimate drifts: estimate, feet, and who stands."""
    t = PERIOD * np.arange(1500)
    pos_w = np.stack([SPEED * t, 0.0 * t, 0.3 + slope * SPEED * t + drift * t], axis=1)
    vel_w = np.tile([SPEED, 0.0, slope * SPEED + drift], (len(t), 1))
    first = (t // 0.25).astype(int) % 2 == 0
    stands = np.stack([first, ~first, ~first, first], axis=1).astype(float)
    feet = np.zeros((len(t), 4, 3))
    feet[..., :2] = pos_w[:, None, :2] + HIPS - [0.5, 0.0] * ((t % 0.25) * SPEED)[:, None, None]
    feet[..., 2] = slope * feet[..., 0] + drift * t[:, None]
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
    return Trajectory(t=t, quat_wb_wxyz=still, vel_w=vel_w, pos_w=pos_w), feet, stands


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_drift_goes_and_the_slope_stays(slope: float) -> None:
    before, feet, stands = walk(slope, 0.02)
    after = without_drift(before, feet, stands, PERIOD)
    true = slope * SPEED
    assert abs(after.vel_w[100:-100, 2].mean() - true) < 0.005, "0.02 m/s before"
    assert abs(after.pos_w[-1, 2] - 0.3 - true * after.t[-1]) < 0.12, "0.3 m before"
    np.testing.assert_array_equal(after.vel_w[:, :2], before.vel_w[:, :2])
    np.testing.assert_allclose(after.vel_b, after.vel_w, atol=1e-12)


def test_a_little_is_left_to_the_velocity_and_taken_out_of_the_position() -> None:
    before, feet, stands = walk(0.0, 0.5 * NOISE)
    after = without_drift(before, feet, stands, PERIOD)
    np.testing.assert_allclose(after.vel_w, before.vel_w, atol=1e-6)
    assert abs(after.pos_w[-1, 2] - 0.3) < 0.5 * abs(before.pos_w[-1, 2] - 0.3)


def test_without_feet_nothing_is_known() -> None:
    before, feet, _ = walk(0.0, 0.02)
    for unknown in (feet, np.full_like(feet, np.nan)):
        after = without_drift(before, unknown, np.zeros(feet.shape[:2]), PERIOD)
        np.testing.assert_array_equal(after.pos_w, before.pos_w)


def test_slopes_are_level_gentle_or_steep() -> None:
    found = estimated_slope(np.array([0.0, 0.01, 0.1, -0.3]))
    np.testing.assert_allclose(found.value[[0, 2, 3]], [0.0, 0.1, -0.3], rtol=0.1)
    assert abs(found.value[1]) < 0.003, "as much is measured on level ground"
    assert (found.variance < 1.3 * MEASURED**2).all() and found.variance[0] < 0.3 * found.variance[2]


def test_of_a_walk() -> None:
    """The height of the sample, whose ground is level, drifts less; and only if asked for."""
    log = gait.open_log(SAMPLE).slice(0.0, 10.0)
    true = log.need("pos_w")[-500:, 2]
    off = [np.abs(smooth(log, ground=ground).pos_w[-500:, 2] - true).mean() for ground in (True, False)]
    assert off[0] < 0.9 * off[1]
