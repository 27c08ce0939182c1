"""Feet of a smoothed recording: better contacts than those found live, and places that go with the smoothed state."""

from __future__ import annotations

import numpy as np
import pytest

import gait
from gait import Estimator, Log, lie
from gait.samples import SAMPLE
from gait.smoothed_feet import contact_probability
from gait.smoothing import smooth_with


@pytest.fixture(scope="module")
def walk() -> Log:
    return gait.open_log(SAMPLE).reorder("go1").slice(0.0, 7.0)


def f1(probability: object, true: object) -> float:
    called, stands = np.nan_to_num(np.asarray(probability, dtype=float)) > 0.5, np.asarray(true, dtype=bool)
    return float(2.0 * (called & stands).sum() / (called.sum() + stands.sum()))


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_contacts_are_better_than_live(walk: Log, method: str) -> None:
    estimator = Estimator.load("go1", method, feet=True)
    done = smooth_with(estimator, walk)
    live, smoothed = f1(done.filtered.contact, walk.contact), f1(done.smoothed.contact, walk.contact)
    assert smoothed > max(live, 0.97)
    k, feet_w = 2000, np.asarray(done.smoothed.foot_pos_w)
    R_wb = lie.rotation_from_quat(done.smoothed.quat_wb_wxyz[k])
    wanted = done.smoothed.pos_w[k] + estimator.robot.feet(walk.q[k]) @ R_wb.T
    np.testing.assert_allclose(feet_w[k], wanted, atol=1e-9)
    np.testing.assert_array_equal(done.filtered.contact, estimator.run(walk).contact)
    assert smooth_with(Estimator.load("go1", method), walk).smoothed.contact is None


def test_what_is_not_known_stays_so(walk: Log) -> None:
    """Without torques and targets there is no contact, but there are places."""
    bare = walk.slice(0.0, 1.0).replace(tau=None, q_des=None)
    done = smooth_with(Estimator.load("go1", feet=True), bare).smoothed
    assert np.isnan(np.asarray(done.contact)).all() and np.isfinite(np.asarray(done.foot_pos_w)[10:]).all()


def test_a_foot_at_rest_stands_if_it_carries() -> None:
    t = 0.002 * np.arange(50)
    loaded, free = np.array([0.25, 0.1, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, 0.05])
    values = np.tile(np.stack([loaded, free]), (len(t), 1, 1))
    probability = contact_probability(values, t)
    assert probability[:, 0].min() > 0.9 and probability[:, 1].max() < 0.1
