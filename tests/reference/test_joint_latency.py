"""The latency of the joints from a log: found where it was put, and left alone where nothing tells."""

from __future__ import annotations

import numpy as np
import pytest

import gait
from gait import Estimator, Log
from gait.joint_latency import MOST, Passes, joint_latency
from gait.log import Trajectory
from gait.parameters import Options
from gait.samples import SAMPLE
from gait.smoothing import smooth_once, smooth_with


@pytest.fixture(scope="module")
def walk() -> Log:
    return gait.open_log(SAMPLE).reorder("go1").slice(0.0, 10.0)


def later(log: Log, samples: int) -> Log:
    """The log with joints read so many samples later."""
    rows = np.maximum(np.arange(len(log)) - samples, 0)
    return log.replace(**{name: np.asarray(getattr(log, name))[rows] for name in ("q", "dq", "tau")})


def test_found_where_it_was_put(walk: Log) -> None:
    """Joints 8 ms later are found about 8 ms later, and smoothing with that is better than with the usual latency."""
    estimator = Estimator.load("go1")
    found = {samples: smooth_with(estimator, later(walk, samples)) for samples in (0, 4)}
    first, then = (found[samples].latency for samples in (0, 4))
    assert first is not None and then is not None and then.significant
    assert 0.004 < then.value - first.value < 0.012 and 0.0 <= then.value <= MOST
    error = [
        np.sqrt(np.square(one.smoothed.vel_b - walk.vel_b).sum(1).mean())
        for one in (found[4], smooth_once(estimator, later(walk, 4)))
    ]
    assert error[0] < error[1]
    np.testing.assert_array_equal(found[4].filtered.vel_b, estimator.run(later(walk, 4)).vel_b)


def test_where_it_is_given_it_is_not_looked_for(walk: Log) -> None:
    short = walk.slice(0.0, 9.5)
    for estimator in (Estimator.load("go1", options=Options()), Estimator.load("go1", "iekf")):
        assert smooth_with(estimator, short).latency is None
    assert smooth_with(Estimator.load("go1"), walk.slice(0.0, 4.0)).latency is None, "too short to tell"


def test_without_a_minimum_there_is_no_latency() -> None:
    """A cost that does not depend on the latency; and one with its least at 6 ms, the same in every block."""
    t = 0.01 * np.arange(1200)
    still = {"t": t, "quat_wb_wxyz": np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)), "pos_w": np.zeros((len(t), 3))}

    def passes(moved: float) -> Passes:
        one = Trajectory(vel_w=np.zeros((len(t), 3)), **still)
        return Passes(one, Trajectory(vel_w=np.tile([moved, 0.0, 0.0], (len(t), 1)), **still))

    assert joint_latency(lambda delay: passes(0.01), 0.004, 0.004) is None
    found = joint_latency(lambda delay: passes(0.01 + 100.0 * (delay - 0.006) ** 2), 0.004, 0.004)
    assert found is not None and found.value == pytest.approx(0.004 + 0.8 * 0.002, abs=1e-6)
