"""Everything an estimator remembers can be saved, restored, copied and pickled, bit for bit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from net_samples import random_model

from gait import Estimator, GaitError, Log, State
from gait.log.sample import Sample
from gait.methods import METHODS
from gait.parameters import Limits, Options
from gait.samples import SAMPLE

WAYS: dict[str, Callable[[Estimator], Estimator]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
    "copy": copy.copy,
}


@pytest.fixture(scope="module")
def rows() -> list[Sample]:
    """A walk in which a leg is out of use from 0.3 to 0.45 s, so that another network has taken over."""
    return list(Log.load(SAMPLE).slice(0.0, 1.2).rows())


def take(estimator: Estimator, rows: list[Sample]) -> list[State]:
    ok = [True, False, True, True]
    return [estimator.update(row, leg_ok=ok if 0.3 < row.t < 0.45 else None) for row in rows]


def numbers(states: list[State]) -> np.ndarray:
    return np.array([state._row for state in states])


def walked(method: str, rows: list[Sample]) -> Estimator:
    log = Log.load(SAMPLE).slice(0.0, 0.1)
    estimator = Estimator.load("go1", method, attention=True)
    estimator.start_as(log)
    take(estimator, rows)
    return estimator


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_goes_on_as_the_original_and_on_its_own(rows: list[Sample], method: str, way: str) -> None:
    for cut in (0, 190):
        original = walked(method, rows[:cut])
        other = WAYS[way](original)
        assert (other.method, other.robot.name) == (original.method, "go1")
        # What one of them takes in the meantime does not reach the other.
        ahead = [row._replace(gyro=row.gyro * 0.5) for row in rows[cut : cut + 50]]
        again = WAYS[way](original)
        disturbed = numbers(take(again, ahead))
        first = numbers(take(original, rows[cut:]))
        assert np.array_equal(numbers(take(other, rows[cut:])), first, equal_nan=True)
        assert not np.array_equal(disturbed, first[:50], equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_restored_state_goes_on_bit_for_bit(rows: list[Sample], method: str) -> None:
    for cut in (0, 190):
        original = walked(method, rows[:cut])
        saved = original.save_state()
        first = numbers(take(original, rows[cut:]))
        # Into the same estimator, and into one that has been elsewhere.
        original.restore_state(saved)
        assert original.save_state() == saved
        assert np.array_equal(numbers(take(original, rows[cut:])), first, equal_nan=True)
        other = walked(method, [row._replace(gyro=row.gyro * 0.5) for row in rows[:77]])
        other.restore_state(saved)
        assert np.array_equal(numbers(take(other, rows[cut:])), first, equal_nan=True)


@pytest.mark.parametrize("method", ["gait", "gait-legs"])
def test_the_weights_in_use_are_part_of_a_state(rows: list[Sample], method: str) -> None:
    bare = [row._replace(q_des=None, tau=None) for row in rows]
    original, other = walked(method, bare[:100]), walked(method, rows[:100])
    other.restore_state(original.save_state())
    assert np.array_equal(numbers(take(other, bare[100:])), numbers(take(original, bare[100:])), equal_nan=True)


def test_predictions_and_parts_go_on_as_well(rows: list[Sample]) -> None:
    original = walked("gait-legs", rows[:50])
    for row in rows[50:100]:
        original.update_joints(row.t, row.q, row.dq, row.q_des, row.tau)
        original.update_imu(row.t, row.gyro, row.accel)
    other = copy.deepcopy(original)
    for row in rows[100:130]:
        assert np.array_equal(original.predict(row.t + 0.003)._row, other.predict(row.t + 0.003)._row)
        one, two = (e.update_imu(row.t, row.gyro, row.accel) for e in (original, other))
        assert np.array_equal(one._row, two._row) and one.health.ok


def test_what_was_asked_for_at_load_is_copied(rows: list[Sample]) -> None:
    names = ["arm_joint", *reversed(Log.load(SAMPLE).joint_names)]
    settings = {"joint_names": names, "attention": True, "options": Options(max_gap=0.05), "limits": Limits(accel=50.0)}
    original = Estimator.load("go1", "gait", **settings)  # type: ignore[arg-type]
    other = pickle.loads(pickle.dumps(original))
    for row in rows[:50]:
        q, dq, q_des = ([7.0, *values[::-1]] for values in (row.q, row.dq, row.q_des))
        one, two = (e.update(row.t, row.gyro, row.accel, q, dq, q_des) for e in (original, other))
        assert np.array_equal(one._row, two._row) and two.attention is not None
    assert "gap" in str(other.predict(rows[49].t + 0.06).health)
    with pytest.raises(GaitError, match="q must be 13 numbers"):
        other.update(9.0, row.gyro, row.accel, row.q, row.dq)


def test_a_model_of_ones_own_is_copied_with_its_weights(rows: list[Sample], tmp_path: Path) -> None:
    model = random_model("nmn")
    model.save(tmp_path / "mine.safetensors")
    for method in (model, tmp_path / "mine.safetensors"):
        original = Estimator.load("go1", method)
        take(original, rows[:50])
        other = copy.deepcopy(original)
        assert np.array_equal(numbers(take(other, rows[50:90])), numbers(take(original, rows[50:90])))


def test_the_state_of_another_estimator_is_refused(rows: list[Sample]) -> None:
    saved = {method: walked(method, rows[:5]).save_state() for method in METHODS}
    for method in METHODS:
        estimator = walked(method, rows[:20])
        before = estimator.save_state()
        for other in METHODS:
            if other != method:
                with pytest.raises(GaitError, match="saved by another kind of estimator: load the same robot, method"):
                    estimator.restore_state(saved[other])
        mine = saved[method]
        for broken in (b"", b"x" * 20, mine[:-1], mine + b"x", b"\0" * 32 + mine[32:]):
            with pytest.raises(GaitError, match="saved by another kind of estimator"):
                estimator.restore_state(broken)
        assert estimator.save_state() == before


def test_other_weights_options_and_robots_are_other_estimators(rows: list[Sample]) -> None:
    first = random_model("gait", 0)
    saved = Estimator.load("go1", first).save_state()
    robot = Estimator.load("go1", first).robot
    others = (
        Estimator.load("go1", random_model("gait", 1)),
        Estimator.load("go1", first, options=Options(inflation=3.0)),
        Estimator.load("go1", first, limits=Limits(hold=0.2)),
        Estimator.load(replace(robot, imu_position=robot.imu_position + 0.01), first),
    )
    for other in others:
        with pytest.raises(GaitError, match="saved by another kind of estimator"):
            other.restore_state(saved)
    Estimator.load("go1", random_model("gait", 0)).restore_state(saved)


def test_what_cannot_be_copied_says_so() -> None:
    loaded = Estimator.load("go1", "iekf")
    made = Estimator(loaded.robot, loaded._contexts[0].engine, "iekf")
    with pytest.raises(GaitError, match=r"only an estimator from `Estimator.load` can be copied or pickled"):
        copy.deepcopy(made)
    # Its state can be saved all the same.
    made.restore_state(loaded.save_state())
