"""What `update` takes: arrays, which the core reads by itself, and everything that converts to them."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gait import Estimator, Log, State
from gait.log.sample import Sample
from gait.samples import SAMPLE

KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: tuple(x.tolist()),
    "every other number": lambda x: np.repeat(x, 2)[::2],
    "big endian": lambda x: x.astype(">f8"),
    "read only": lambda x: np.frombuffer(x.astype(float).tobytes()),
    "memoryview": lambda x: memoryview(x.astype(float)),
    "unaligned": lambda x: np.frombuffer(b"x" + x.astype(float).tobytes(), offset=1),
    "masked": lambda x: np.ma.masked_array(x),
}


@pytest.fixture(scope="module")
def rows() -> list[Sample]:
    return list(Log.load(SAMPLE).slice(0.0, 0.6).rows())


def states(
    rows: list[Sample], convert: Callable[[np.ndarray], Any], method: str = "gait-legs", **given: Any
) -> np.ndarray:
    estimator = Estimator.load("go1", method, **given)
    given_rows = ([None if x is None else convert(np.asarray(x)) for x in row[1:]] for row in rows)
    return np.array([estimator.update(row.t, *rest)._row for row, rest in zip(rows, given_rows, strict=True)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_arrays_and_all_that_converts_to_them_give_the_same_state(rows: list[Sample], kind: str, method: str) -> None:
    want = states(rows, lambda x: x, method)
    assert np.array_equal(states(rows, KINDS[kind], method), want, equal_nan=True)


def test_float32_is_read_as_it_is(rows: list[Sample]) -> None:
    want = states(rows, lambda x: x.astype(np.float32).astype(np.float64))
    assert np.array_equal(states(rows, lambda x: x.astype(np.float32)), want, equal_nan=True)


def test_joints_in_another_order_and_among_others(rows: list[Sample]) -> None:
    own = Estimator.load("go1").robot.joint_names
    order = np.random.default_rng(0).permutation(len(own))
    names = ["arm", *(own[i] for i in order), "gripper"]

    def shuffled(x: np.ndarray) -> np.ndarray:
        return np.r_[9.0, x[order], 9.0] if len(x) == len(own) else x

    want = states(rows, lambda x: x)
    assert np.array_equal(states(rows, shuffled, joint_names=names), want, equal_nan=True)
    lists = states(rows, lambda x: shuffled(x).tolist(), joint_names=names)
    assert np.array_equal(lists, want, equal_nan=True)


@pytest.mark.parametrize("wrong", [np.zeros(11), np.zeros((12, 1)), np.zeros(12, dtype="U3"), [1.0] * 11, None, 3.0])
def test_what_is_no_sample_is_refused_and_changes_nothing(rows: list[Sample], wrong: Any) -> None:
    from gait.errors import GaitError

    estimator, other = Estimator.load("go1"), Estimator.load("go1")
    for row in rows[:50]:
        estimator.update(row), other.update(row)
    with pytest.raises(GaitError, match="numbers"):
        estimator.update(rows[50]._replace(dq=wrong))
    with pytest.raises(GaitError, match="numbers"):
        estimator.update(rows[50]._replace(t="now"))
    for row in rows[50:60]:
        assert np.array_equal(estimator.update(row)._row, other.update(row)._row, equal_nan=True)


def test_torques_that_come_and_go(rows: list[Sample]) -> None:
    """A field that is None is nan to the core, however it comes."""
    estimator, other = Estimator.load("go1"), Estimator.load("go1")
    for i, row in enumerate(rows):
        missing = row._replace(tau=None) if i % 7 == 3 else row
        nan = row._replace(tau=np.full(12, np.nan)) if i % 7 == 3 else row
        assert np.array_equal(estimator.update(missing)._row, other.update(nan)._row, equal_nan=True)


def test_a_flag_for_a_leg_holds_for_one_sample(rows: list[Sample]) -> None:
    estimator, other = Estimator.load("go1", "gait"), Estimator.load("go1", "gait")
    flags = [True, False, True, True]
    for row in rows[:20]:
        estimator.update(row), other.update(row)
    told = estimator.update(*rows[20], leg_ok=flags)
    assert not told.health.ok and other.update(rows[20]).health.ok
    assert estimator.update(rows[21]).health.ok


def test_a_whole_sample_is_its_fields(rows: list[Sample]) -> None:
    class Stamped(Sample):
        """What is like a sample, but not one to the core."""

    want = states(rows, lambda x: x)
    for kind in (Sample, Stamped):
        estimator = Estimator.load("go1")
        found = [estimator.update(kind(*row)) for row in rows]
        assert {type(state) for state in found} == {State}
        assert np.array_equal([state._row for state in found], want, equal_nan=True)


def test_states_are_let_go_of(rows: list[Sample]) -> None:
    estimator = Estimator.load("go1")
    kept = [estimator.update(row) for row in rows]
    counts = sys.getrefcount(estimator._layout), sys.getrefcount(State)
    tracemalloc.start()
    try:
        more = [estimator.update(row._replace(t=row.t + 1.0)) for row in rows]
        assert sys.getrefcount(estimator._layout) >= counts[0] + len(more)
        del more
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < sys.getsizeof(kept[0]._data) * len(rows) / 4
    finally:
        tracemalloc.stop()
    assert (sys.getrefcount(estimator._layout), sys.getrefcount(State)) == counts
