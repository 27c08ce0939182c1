"""Many robots at once: each does what an Estimator does."""

from __future__ import annotations

import numpy as np
import pytest

from gait import Batch, Estimator, Log
from gait.errors import GaitError
from gait.methods import METHODS
from gait.samples import SAMPLE

FIELDS = ("gyro", "accel", "q", "dq", "q_des", "tau")


@pytest.fixture(scope="module")
def logs() -> list[Log]:
    """Five walks of the same length: pieces of the sample."""
    log = Log.load(SAMPLE)
    return [log.slice(start, start + 0.4) for start in (0.0, 1.0, 2.5, 4.0, 6.0)]


def sample_at(logs: list[Log], i: int) -> dict[str, np.ndarray]:
    return {
        "t": np.array([log.t[i] for log in logs]),
        **{k: np.array([getattr(log, k)[i] for log in logs]) for k in FIELDS},
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads", [1, 2])
def test_each_robot_does_what_an_estimator_does(logs: list[Log], method: str, threads: int) -> None:
    batch = Batch("go1", len(logs), method, threads=threads)
    alone = [Estimator.load("go1", method) for _ in logs]
    for i in range(min(map(len, logs))):
        given = sample_at(logs, i)
        states = batch.update(**given)
        for k, estimator in enumerate(alone):
            want = estimator.update(**{name: value[k] for name, value in given.items()})
            for name in ("vel_b", "vel_w", "pos_w", "quat_wb_wxyz", "vel_cov", "pose_cov", "vel_b_std", "gyro_bias"):
                assert np.array_equal(getattr(states, name)[k], getattr(want, name)), name
            assert states.t[k] == want.t and states.health[k] == want.health.flags
    assert len(batch) == len(states) == len(logs)


def test_resets_of_some_robots_leave_the_others_alone(logs: list[Log]) -> None:
    batch, other = Batch("go1", len(logs)), Batch("go1", len(logs))
    for i in range(50):
        batch.update(**sample_at(logs, i)), other.update(**sample_at(logs, i))
    start = logs[0]
    assert start.quat_wb_wxyz is not None and start.vel_w is not None and start.pos_w is not None
    batch.reset([1, 3], quat_wb_wxyz=start.quat_wb_wxyz[50], vel_w=start.vel_w[50], pos_w=start.pos_w[50])
    estimator = Estimator.load("go1")
    estimator.reset(quat_wb_wxyz=start.quat_wb_wxyz[50], vel_w=start.vel_w[50], pos_w=start.pos_w[50])
    for i in range(50, 100):
        given = sample_at(logs, i)
        states, same = batch.update(**given), other.update(**given)
        assert np.array_equal(states.vel_w[[0, 2, 4]], same.vel_w[[0, 2, 4]])
        assert not np.allclose(states.pos_w[[1, 3]], same.pos_w[[1, 3]])
        want = estimator.update(**{name: value[1] for name, value in given.items()})
        assert np.array_equal(states.pos_w[1], want.pos_w)
    # Flags choose as well as numbers, and gravity starts a robot at rest.
    batch.reset(np.array([False, False, True, False, False]), accel=[0.0, 0.0, 9.81])
    assert np.array_equal(batch.update(**sample_at(logs, 100)).vel_w[0], other.update(**sample_at(logs, 100)).vel_w[0])


def test_a_clone_goes_on_as_its_source(logs: list[Log]) -> None:
    batch = Batch("go1", len(logs), "gait")
    for i in range(60):
        batch.update(**sample_at(logs, i))
    batch.clone(2, [0, 4])
    assert np.array_equal(batch.states.vel_w[0], batch.states.vel_w[2])
    for i in range(60, 90):
        states = batch.update(**sample_at([logs[2]] * 5, i))
        assert np.array_equal(states.vel_b[0], states.vel_b[2]) and np.array_equal(states.vel_b[4], states.vel_b[2])
        assert not np.array_equal(states.vel_b[1], states.vel_b[2])


def test_robots_without_a_sample_stay(logs: list[Log]) -> None:
    batch, other = Batch("go1", 5, "gait", threads=2), Batch("go1", 5, "gait", threads=1)
    for i in range(30):
        skip = np.array([False, i % 2 == 1, False, False, True])
        states, before = batch.update(**sample_at(logs, i), skip=skip), batch.states.t[4]
        assert states.t[4] == before and np.isfinite(states.vel_w[:4]).all()
        whole = other.update(**sample_at(logs, i))
        assert np.array_equal(states.vel_w[0], whole.vel_w[0])


def test_without_targets(logs: list[Log]) -> None:
    batch, alone = Batch("go1", 5, "gait", targets=False), Estimator.load("go1", "gait")
    for i in range(20):
        given = sample_at(logs, i)
        states = batch.update(*(given[name] for name in ("t", "gyro", "accel", "q", "dq")))
        want = alone.update(*(given[name][3] for name in ("t", "gyro", "accel", "q", "dq")))
        assert np.array_equal(states.vel_w[3], want.vel_w)


def test_mistakes_are_told_in_a_sentence(logs: list[Log]) -> None:
    batch, given = Batch("go1", 5), sample_at(logs, 0)
    with pytest.raises(GaitError, match=r"q must be an array of shape \(5, 12\), got \(5, 11\)"):
        batch.update(**{**given, "q": given["q"][:, :11]})
    with pytest.raises(GaitError, match=r"skip must be 5 flags, got an array of shape \(4,\)"):
        batch.update(**given, skip=[True] * 4)
    with pytest.raises(GaitError, match="robots are numbered 0 to 4"):
        batch.reset([5])
    with pytest.raises(GaitError, match="vel_w must have 2 rows"):
        batch.reset([0, 1], quat_wb_wxyz=[1.0, 0.0, 0.0, 0.0], vel_w=np.zeros((3, 3)))
    with pytest.raises(GaitError, match="robot 2 is not that of a robot at rest"):
        batch.reset([2], accel=[0.0, 0.0, 1.0])
    with pytest.raises(GaitError, match="a batch of 0 robots"):
        Batch("go1", 0)
