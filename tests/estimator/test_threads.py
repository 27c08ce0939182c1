"""One estimator in several threads: they take turns, and nothing is torn."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from gait import Estimator, Log, State
from gait.health import Health
from gait.log.sample import Sample
from gait.methods import METHODS
from gait.parameters import Limits
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(0.0, 4.0)


def side_by_side(*works: Callable[[], None]) -> None:
    """Run them in threads that start together; the first exception is raised here."""
    failed: list[BaseException] = []
    gate = threading.Barrier(len(works))

    def guarded(work: Callable[[], None]) -> None:
        try:
            gate.wait(30.0)
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
        assert not thread.is_alive()
    if failed:
        raise failed[0]


def whole(state: State) -> bool:
    """Finite, and the parts of one and the same state."""
    vel_w, vel_b = state.vel_w, state.vel_b
    return (
        bool(np.isfinite(state.cov).all() and np.isfinite(state.pose_cov).all())
        and np.allclose(state.R_wb @ vel_b, vel_w, atol=1e-9)
        and np.allclose(np.linalg.norm(state.quat_wb_wxyz), 1.0, atol=1e-9)
        and np.allclose(state.cov, state.cov.T, atol=1e-12)
    )


@pytest.mark.parametrize("method", METHODS)
def test_four_threads_hammer_one_estimator(log: Log, method: str) -> None:
    """Each brings every fourth sample. One that comes too late is refused, so what was taken is an order of its own."""
    limits = Limits(clock_reset=np.inf)
    estimator = Estimator.load("go1", method, attention=True, limits=limits)
    estimator.start_as(log)
    rows, found = list(log.rows()), dict[int, State]()

    def hammer(k: int) -> Callable[[], None]:
        return lambda: found.update({i: estimator.update(rows[i]) for i in range(k, len(rows), 4)})

    side_by_side(*(hammer(k) for k in range(4)))
    assert len(found) == len(rows) and all(map(whole, found.values()))
    # Replayed in the order of their stamps, the samples that were taken give the same numbers.
    alone = Estimator.load("go1", method, attention=True, limits=limits)
    alone.start_as(log)
    taken = [i for i in range(len(rows)) if not found[i].health.flags & Health.BAD_TIME]
    assert len(taken) > len(rows) // 4
    for i in taken:
        assert np.array_equal(alone.update(rows[i])._row, found[i]._row, equal_nan=True)


@pytest.mark.parametrize("method", ["gait-legs", "gait", "iekf"])
def test_imu_and_joints_from_two_threads(log: Log, method: str) -> None:
    estimator = Estimator.load("go1", method)
    estimator.start_as(log)
    states: list[State] = []
    rows = list(log.rows())

    def imu() -> None:
        states.extend(estimator.update_imu(row.t, row.gyro, row.accel) for row in rows)

    def joints() -> None:
        for row in rows:
            estimator.update_joints(row.t, row.q, row.dq, row.q_des, row.tau)

    side_by_side(imu, joints)
    assert len(states) == len(rows) and all(map(whole, states))
    assert [state.t for state in states] == [row.t for row in rows]
    # Whichever was ahead: with joints in time the state settles, and torques are used again.
    for row in Log.load(SAMPLE).slice(4.0, 16.0).rows():
        estimator.update_joints(row.t, row.q, row.dq, row.q_des, row.tau)
        state = estimator.update_imu(row.t, row.gyro, row.accel)
    assert state.health.ok


def test_everything_else_may_be_called_meanwhile(log: Log) -> None:
    """Predictions, saved states, copies of it and resets, while samples come in."""
    import copy

    estimator = Estimator.load("go1", "gait-legs", attention=True)
    estimator.start_as(log)
    rows, done = list(log.rows()), threading.Event()
    seen: list[State] = []

    def samples() -> None:
        try:
            seen.extend(estimator.update(row) for row in rows)
        finally:
            done.set()

    def predictions() -> None:
        while not done.is_set():
            seen.append(estimator.predict(rows[-1].t + 0.001))

    def copies() -> None:
        while not done.is_set():
            saved = estimator.save_state()
            other = copy.deepcopy(estimator)
            seen.append(other.predict(0.0))
            other.restore_state(saved)
            seen.append(other.update(rows[-1]._replace(t=1e6)))

    side_by_side(samples, predictions, copies)
    assert all(map(whole, seen)) and len(seen) > len(rows)


def test_runs_of_a_log_wait_for_each_other(log: Log) -> None:
    estimator, part = Estimator.load("go1", "gait"), log.slice(0.0, 1.0)
    want, found = estimator.run(part).vel_w, []
    side_by_side(*[lambda: found.extend(estimator.run(part).vel_w for _ in range(5))] * 3)
    assert len(found) == 15 and all(np.array_equal(want, one) for one in found)


def test_threads_with_estimators_of_their_own_are_as_alone(log: Log) -> None:
    rows: list[Sample] = list(log.slice(0.0, 1.0).rows())

    def final(estimator: Estimator) -> np.ndarray:
        estimator.start_as(log)
        return np.array([estimator.update(row)._row for row in rows])

    want = {method: final(Estimator.load("go1", method)) for method in METHODS}
    found: dict[str, np.ndarray] = {}

    def work(method: str, estimator: Estimator) -> Callable[[], None]:
        return lambda: found.update({method: final(estimator)})

    side_by_side(*(work(method, Estimator.load("go1", method)) for method in METHODS))
    assert all(np.array_equal(found[method], want[method], equal_nan=True) for method in METHODS)
