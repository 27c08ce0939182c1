"""The settings of the model-based methods: how they are read, what all methods share, how they are found."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import tune_baselines as tuning
import tune_inflation
import yaml
from knobs import Budget, Knob, Point, search
from synthetic import walking_log

from gait import Estimator, GaitError, Log, Robot
from gait.bench.courses import COURSES
from gait.parameters import (
    BASELINES,
    BASELINES_FILE,
    ContactAided,
    Options,
    Prior,
    ProcessNoise,
    SlipRejection,
    read_baselines,
)
from gait.train.faults import MILD, with_faults


@pytest.fixture(scope="module")
def walk() -> Log:
    return walking_log(1.5)


@pytest.fixture(scope="module")
def halves(walk: Log) -> tuning.Halves:
    found = [with_faults(walk, Robot.load("go1"), np.random.default_rng(seed), MILD) for seed in range(4)]
    episodes = [tuning.Episode("flat", one.log, one.robot) for one in found]
    return episodes[:2], episodes[2:]


def test_the_file_sets_both_methods_and_all_of_it_arrives() -> None:
    tree = yaml.safe_load(BASELINES_FILE.read_text(encoding="utf-8"))
    assert list(tree) == list(BASELINES) == ["iekf", "iekf-sr"]
    assert [params.slip.enabled for params in BASELINES.values()] == [False, True]
    for name, part in tree.items():
        params = asdict(BASELINES[name])
        for key, value in part.items():
            assert params[key] == ({**params[key], **value} if isinstance(value, dict) else value)
        assert BASELINES[name].detection.lift_off <= BASELINES[name].detection.touch_down


def test_an_estimator_takes_the_tuned_settings() -> None:
    for name, params in BASELINES.items():
        config = Estimator.load("go1", name)._context.engine.config
        assert (config.contacts.contact_std, config.contacts.kinematics_std) == (params.contact, params.kinematics)
        for field, value in asdict(params.detection).items():
            assert getattr(config.contacts, field) == value, field
        assert config.contacts.slip_speed == (params.slip.speed if params.slip.enabled else math.inf)
        assert config.contacts.slip_inflation == params.slip.inflation
        assert config.contacts.rolling == float(params.rolling)


def test_what_is_not_measurement_noise_is_shared_with_the_networks() -> None:
    for params in BASELINES.values():
        assert (params.imu, params.prior, params.options) == (ProcessNoise(), Prior(), Options())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iekf: {detection: {touchdown: 0.1}}", "iekf, detection has no setting 'touchdown': did you mean touch_down?"),
        ("iekf: {slip: {speeds: 0.1}}", "iekf, slip has no setting 'speeds': did you mean speed?"),
        ("iekf: {imu: {gyro: 0.1}}", "iekf has no setting 'imu': the settings are detection, slip, contact"),
        ("iekf: {7: 1}", "iekf has no setting '7': the settings are"),
        ("iekf: {contact: wide}", "iekf, contact is 'wide': give a finite number of at least 0"),
        ("iekf: {contact: -1}", "iekf, contact is -1: give a finite"),
        ("iekf: {kinematics: .inf}", "iekf, kinematics is inf: give a finite"),
        ("iekf: {kinematics: true}", "iekf, kinematics is True: give a finite"),
        ("iekf: {rolling: 1}", "iekf, rolling is 1: give true or false"),
        ("iekf: {detection: 3}", "iekf, detection must hold names and values: give some of touch_down"),
        ("iekf:", "iekf must hold names and values: give some of detection"),
        ("- iekf", "name no method: give at least one"),
        ("iekf: {", "not valid YAML: correct their syntax"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_says_what_to_do(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GaitError) as caught:
        read_baselines(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(GaitError, match="cannot read the baselines .*: No such file"):
        read_baselines(tmp_path / "none.yaml")


def test_whole_numbers_become_floats(tmp_path: Path) -> None:
    """The core takes doubles."""
    path = tmp_path / "mine.yaml"
    path.write_text("iekf-sr: {slip: {enabled: true, inflation: 30}, contact: 1}", encoding="utf-8")
    params = read_baselines(path)["iekf-sr"]
    assert isinstance(params.slip.inflation, float) and isinstance(params.contact, float)


def test_what_the_search_writes_is_what_the_package_reads(tmp_path: Path) -> None:
    tuned = {
        "iekf": ContactAided(contact=0.3, kinematics=0.0021),
        "iekf-sr": ContactAided(slip=SlipRejection(True, 0.11, 210.0), contact=1e-05),
    }
    tuning.write_settings(tuned, tmp_path / "baselines.yaml")
    assert read_baselines(tmp_path / "baselines.yaml") == tuned


def test_the_documentation_shows_the_settings_that_ship() -> None:
    assert tuning.settings_as_markdown(BASELINES) in (tuning.DOCS / "filters.md").read_text(encoding="utf-8")


def test_tuning_uses_none_of_the_episodes_that_methods_are_judged_on() -> None:
    judged = {course.seed for courses in COURSES.values() for course in courses}
    assert tuning.SEED not in {777, 778, 20261115} | judged


def test_disturbing_changes_the_sensors_and_never_the_truth(walk: Log) -> None:
    log = tune_inflation.disturb(walk, np.random.default_rng(1))
    for name in ("t", "pos_w", "quat_wb_wxyz", "vel_w", "contact"):
        np.testing.assert_array_equal(getattr(log, name), getattr(walk, name))
    delay = next(k for k in tune_inflation.DELAYS if np.array_equal(log.dq[10:], walk.dq[10 - k : -k]))
    offset = log.q[10:] - walk.q[10 - delay : -delay]
    np.testing.assert_allclose(offset, offset[:1].repeat(len(offset), 0), atol=1e-12)
    assert 0.003 < offset[0].std() < 0.03
    np.testing.assert_allclose(log.gyro - walk.gyro, (log.gyro - walk.gyro)[:1].repeat(len(log), 0), atol=1e-12)
    assert not np.array_equal(log.q, tune_inflation.disturb(walk, np.random.default_rng(2)).q)


def bowl(point: Point) -> float:
    """Least at a = 0.2, b = 3."""
    return 1.0 + math.log(point["a"] / 0.2) ** 2 + math.log(point["b"] / 3.0) ** 2


def test_the_search_finds_the_bottom_within_its_range() -> None:
    knobs = (Knob("a", 0.001, 10.0), Knob("b", 0.01, 2.0))
    found = search(knobs, [{"a": 5.0, "b": 0.02}], bowl, bowl, seed=3)
    error, best = found[0]
    assert best["a"] == pytest.approx(0.2, rel=0.1) and best["b"] == 2.0  # 3 lies outside
    assert error == bowl(best) == min(found)[0]
    assert all(knob.low <= point[knob.name] <= knob.high for _, point in found for knob in knobs)


def test_every_second_draw_keeps_what_is_known_to_be_good() -> None:
    knobs, seen = (Knob("a", 0.1, 10.0), Knob("b", 0.1, 10.0)), []
    search(knobs, [], lambda point: seen.append(point) or 1.0, bowl, 0, Budget(draws=10), {"a": 0.2})  # type: ignore[func-returns-value]
    assert [point["a"] == 0.2 for point in seen] == [False, True] * 5
    assert len({point["b"] for point in seen}) == 10


def test_a_bad_start_gets_better_and_the_same_seed_finds_the_same(
    halves: tuning.Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a walk without slips, feet that may wander at 2 m/sqrt(s) throw away what they measure."""
    monkeypatch.setattr(tuning, "QUICK_SECONDS", 0.8)
    bad = ContactAided(contact=2.0, kinematics=0.05)
    monkeypatch.setitem(tuning.BEFORE, "iekf", bad)
    budget = Budget(draws=6, kept=2, refined=1, factors=(2.0,), sweeps=1)
    points = [tuning.tune("iekf", halves, budget=budget) for _ in range(2)]
    assert points[0] == points[1]
    for half in halves:
        before, after = (tuning.errors_of(params, half) for params in (bad, tuning.params_of(points[0])))
        assert tuning.geometric_mean(np.ravel(after)) < 0.5 * tuning.geometric_mean(np.ravel(before))


def test_a_point_and_its_settings_are_the_same_thing() -> None:
    for params in (*BASELINES.values(), *tuning.BEFORE.values()):
        again = tuning.params_of(tuning.point_of(params))
        assert (again.contact, again.kinematics, again.slip) == (params.contact, params.kinematics, params.slip)
        assert again.detection.lift_off == params.detection.lift_off
