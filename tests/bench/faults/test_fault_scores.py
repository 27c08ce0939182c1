"""The scorer on errors that were made up: every figure has a known answer."""

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import gait
from gait import Estimator, Log
from gait.bench.faults.fault import Fault, Span, nothing
from gait.bench.faults.fault_scores import (
    LEEWAY,
    TOLERANCE,
    FaultScore,
    allowed,
    calm,
    raised,
    recovery_time,
    refusal,
    score_fault,
)
from gait.bench.faults.fault_table import figure, figure_lines, letters, percent, tally, verdict_lines
from gait.bench.faults.feed import Feed
from gait.bench.faults.run_faults import FaultRow
from gait.bench.faults.track import Track, _indefinite, follow
from gait.health import Health
from gait.samples import SAMPLE

RATE, SECONDS = 500, 20
SPAN = Span(9.0, 11.0, 20.0)
FAULT = Fault("made-up", "errors made up", nothing, flag="something")
ROWS = np.arange(RATE * SECONDS)
DURING, AFTER = slice(4500, 5500), slice(5500, 10000)


def track(**changes: Any) -> Track:
    """An estimate without error and with a std of 0.1 everywhere."""
    n = len(ROWS)
    fields: dict[str, Any] = {
        "time": ROWS / RATE,
        "velocity": np.zeros((n, 3)), "velocity_std": np.full((n, 3), 0.1),
        "position": np.zeros((n, 3)), "position_std": np.full((n, 3), 0.1),
        "yaw": np.zeros((n, 1)), "yaw_std": np.full((n, 1), 0.1),
        "health": np.zeros(n, dtype=np.uint32),
        "not_finite": np.zeros(n, dtype=bool), "indefinite": np.zeros(n, dtype=bool),
    }  # fmt: skip
    return Track(**{**fields, **changes})


def score(fault: Fault = FAULT, clean: Track | None = None, **changes: Any) -> FaultScore:
    return score_fault(fault, SPAN, track(**changes), clean or track())


def velocity(rows: slice, value: float, axis: int = 0) -> np.ndarray:
    error = np.zeros((len(ROWS), 3))
    error[rows, axis] = value
    return error


def test_nothing_wrong_passes() -> None:
    health = np.zeros(len(ROWS), dtype=np.uint32)
    health[DURING] = Health.REJECTED
    found = score(health=health)
    assert found.failures == [] and found.verdict == "ok"
    assert found.detection == 0.0 and found.recovery == 0.0
    assert found.worst_during == found.worst_after == 0.0


def test_an_error_of_four_std_counts_and_one_of_two_does_not() -> None:
    """4 std in 30 of 1000 rows of one of three components: 1 % of the components, so 99 % are within."""
    edge = score(velocity=velocity(slice(4500, 4530), 0.4))
    assert edge.within_during["velocity"] == pytest.approx(0.99) and "vel" not in edge.failures
    beyond = score(velocity=velocity(slice(4500, 4531), -0.4))
    assert beyond.within_during["velocity"] < 0.99 and "vel" in beyond.failures
    assert score(velocity=velocity(DURING, 0.2)).within_during["velocity"] == 1.0
    late = score(velocity=velocity(AFTER, 0.4))
    assert late.within_after["velocity"] == pytest.approx(2.0 / 3.0) and late.within_during["velocity"] == 1.0


@pytest.mark.parametrize(("name", "short", "width"), [("yaw", "yaw", 1), ("position", "pos", 3)])
def test_yaw_and_position_are_judged_by_their_own_std(name: str, short: str, width: int) -> None:
    error = np.zeros((len(ROWS), width))
    error[AFTER] = 0.4
    assert short in score(**{name: error}).failures
    assert short not in score(**{name: error, f"{name}_std": np.full_like(error, 0.2)}).failures
    assert set(score(**{name: error}).failures) == {short, "flag"}


def test_nan_is_not_within_and_is_counted() -> None:
    bad = np.zeros(len(ROWS), dtype=bool)
    bad[4600:4610] = True
    found = score(velocity=velocity(slice(4600, 4610), np.nan), not_finite=bad)
    assert found.not_finite == 10 and found.worst_during == np.inf and "nan" in found.failures
    assert found.within_during["velocity"] == pytest.approx(1.0 - 10 / 3000)
    assert "cov" in score(indefinite=bad).failures


@pytest.mark.parametrize("rows", [1, 250, 1000])
def test_recovery_time_is_exact(rows: int) -> None:
    """Wrong in the first rows after the fault: right again at the row behind them."""
    found = score(velocity=velocity(slice(4500, 5500 + rows), 0.06))
    assert found.recovery == pytest.approx(rows / RATE)
    assert ("slow" in found.failures) == (rows / RATE > 2.0)


def test_recovery_has_to_stay() -> None:
    error = velocity(slice(4500, 5600), 0.06)
    error[6600] = 0.06
    assert score(velocity=error).recovery == pytest.approx((6601 - 5500) / RATE)
    assert score(velocity=velocity(slice(9000, 10000), 0.06)).recovery == np.inf
    assert score(velocity=velocity(AFTER, 0.9 * TOLERANCE)).recovery == 0.0


def test_recovery_of_a_lasting_fault_counts_from_its_begin() -> None:
    lasting = replace(FAULT, lasts="on")
    span = Span(9.0, 30.0, 20.0)
    found = score_fault(lasting, span, track(velocity=velocity(slice(4500, 5000), 0.2)), track())
    assert found.recovery == pytest.approx(1.0) and np.isnan(found.worst_after)
    whole = score_fault(replace(FAULT, lasts="whole"), span, track(velocity=velocity(AFTER, 1.0)), track())
    assert np.isnan(whole.recovery) and "slow" not in whole.failures


def test_what_counts_as_right_follows_the_clean_run() -> None:
    clean = track(velocity=velocity(slice(0, 10000), 0.1))
    np.testing.assert_allclose(allowed(clean, clean.time), 0.3)
    slip = track(velocity=velocity(slice(6000, 6001), 0.5))
    assert allowed(slip, np.array([12.0])) == pytest.approx(0.55)
    assert allowed(track(), np.array([12.0])) == pytest.approx(TOLERANCE)
    assert recovery_time(track(velocity=velocity(AFTER, 0.29)), clean, 11.0) == 0.0


def test_detection_counts_new_flags_alone() -> None:
    health = np.zeros(len(ROWS), dtype=np.uint32)
    health[:] = Health.NO_MEASUREMENT
    clean = track(health=health.copy())
    assert score(clean=clean, health=health).detection == np.inf
    health[4550] |= Health.REJECTED
    found = score(clean=clean, health=health)
    assert found.detection == pytest.approx(0.1) and "flag" not in found.failures
    health[4550] = 0
    health[4700] |= Health.SLIP
    assert score(clean=clean, health=health).detection == pytest.approx(0.4)
    assert "flag" in score(clean=clean, health=health).failures
    assert "flag" not in score(replace(FAULT, flag=""), clean, health=health).failures


def test_flags_of_the_clean_run_may_shift_a_little() -> None:
    def flagged(row: int) -> np.ndarray:
        health = np.zeros(len(ROWS), dtype=np.uint32)
        health[row : row + 5] = Health.NO_MEASUREMENT
        return health

    clean = track(health=flagged(5000))
    shift = round(LEEWAY * RATE)
    assert score(clean=clean, health=flagged(5000 - shift)).detection == np.inf
    assert score(clean=clean, health=flagged(5000 - shift - 1)).detection == pytest.approx((499 - shift) / RATE)
    early = np.zeros(len(ROWS), dtype=np.uint32)
    early[:4500] = Health.REJECTED
    assert score(health=early).detection == np.inf


def test_detection_counts_from_the_first_changed_sample() -> None:
    health = np.zeros(len(ROWS), dtype=np.uint32)
    health[4800] = Health.BAD_IMU
    assert score_fault(FAULT, SPAN, track(health=health), track(), first=4790).detection == pytest.approx(0.02)


def test_a_flag_is_an_alarm_where_nothing_is_wrong() -> None:
    quiet = Fault("quiet", "nothing wrong", nothing, quiet=True)
    health = np.zeros(len(ROWS), dtype=np.uint32)
    health[:] = Health.STARTING
    assert score(quiet, health=health).failures == []
    health[5000] |= Health.STALE_LEG
    assert score(quiet, health=health).failures == ["alarm"]


def test_a_change_of_feet_is_no_alarm() -> None:
    quiet = Fault("quiet", "nothing wrong", nothing, quiet=True)
    health = np.zeros(len(ROWS), dtype=np.uint32)
    health[5000:5025] = Health.NO_MEASUREMENT
    assert score(quiet, health=health).failures == []
    health[5025] = Health.NO_MEASUREMENT
    assert score(quiet, health=health).failures == ["alarm"]


def test_what_the_clean_run_fails_is_not_the_faults_doing() -> None:
    wrong = np.full((len(ROWS), 3), 1.0)
    clean = follow(Estimator.load("go1", "iekf"), Feed.of(gait.open_log(SAMPLE).slice(None, 2.0)))
    off = replace(clean, position=np.full_like(clean.position, 100.0))
    span = Span(0.5, 1.0, 2.0)
    quiet = replace(FAULT, flag="")
    found = score_fault(quiet, span, off, off)
    assert found.inherited == ("pos",) and found.failures == ["pos"] and found.caused == []
    assert score_fault(quiet, span, off, clean).caused == ["pos"]
    assert score(quiet, position=wrong).inherited == ()


def test_calm_takes_error_and_flags_from_before() -> None:
    health = np.zeros(len(ROWS), dtype=np.uint32)
    health[0], health[2000] = Health.STARTING | Health.NO_MEASUREMENT, Health.SLIP
    found = calm(track(velocity=velocity(slice(0, 4500), 0.03), health=health), 9.0)
    np.testing.assert_allclose(found.speed_error, 0.03)
    assert set(found.health.tolist()) == {int(Health.SLIP)}


def test_refusing_passes_and_raising_does_not() -> None:
    assert refusal(FAULT, "needs tau").verdict == "refused" and refusal(FAULT, "needs tau").failures == []
    assert raised(FAULT, "ZeroDivisionError").failures[0] == "raises"
    assert "raises" in score_fault(FAULT, SPAN, track(exception="ValueError: x"), track()).failures


def test_indefinite_covariances_are_found() -> None:
    good = np.diag([1e-6, 1.0, 1e6])
    bad, nan, flat = good.copy(), good.copy(), good.copy()
    bad[0, 1] = bad[1, 0] = 2e-3
    nan[2, 2] = np.nan
    flat[1, 1] = 0.0
    assert _indefinite(np.stack([good, bad, good, nan, flat])).tolist() == [False, True, False, True, True]
    assert not _indefinite(np.stack([good, good])).any()


# --- an estimator that is followed ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log() -> Log:
    return gait.open_log(SAMPLE).slice(None, 3.0)


def test_following_gives_the_errors_of_run(log: Log) -> None:
    estimator = Estimator.load("go1", "gait-legs")
    found = follow(estimator, Feed.of(log))
    trajectory = estimator.run(log.replace(contact=None))
    assert trajectory.vel_cov is not None and trajectory.pose_cov is not None
    np.testing.assert_allclose(found.velocity, trajectory.vel_b - log.vel_b, atol=1e-12)
    assert log.pos_w is not None
    np.testing.assert_allclose(found.position, trajectory.pos_w - log.pos_w, atol=1e-12)
    np.testing.assert_allclose(found.yaw_std[:, 0] ** 2, trajectory.pose_cov[:, 5, 5])
    assert np.abs(found.yaw).max() < 0.01 and not found.indefinite.any() and not found.not_finite.any()


def test_a_start_from_gravity_is_compared_from_its_own_start(log: Log) -> None:
    found = follow(Estimator.load("go1", "gait-legs"), Feed.of(log, "gravity"))
    assert np.abs(found.position[0]).max() < 1e-12 and abs(found.yaw[0, 0]) < 1e-9
    assert np.abs(found.position).max() < 0.5 and np.abs(found.yaw).max() < 0.1


def test_what_update_raises_ends_the_track(log: Log) -> None:
    class Failing(Estimator):
        calls = count()

        def update(self, *args: Any, **more: Any) -> Any:
            if next(self.calls) == 700:
                raise ZeroDivisionError("by a sensor")
            return super().update(*args, **more)

    real = Estimator.load("go1", "iekf")
    real.__class__ = Failing
    found = follow(real, Feed.of(log))
    assert found.exception == "ZeroDivisionError: by a sensor" and len(found) == 700


def test_a_missing_input_is_waited_for_and_said(log: Log) -> None:
    feed = Feed.of(log).hide("tau", slice(None)).hide("q_des", slice(None))
    found = follow(Estimator.load("go1", "iekf"), feed)
    assert not found.exception and (found.health[10:] & int(Health.NO_MEASUREMENT)).all()


# --- text ----------------------------------------------------------------------------------------------------------


def test_numbers_take_five_characters() -> None:
    assert [figure(x) for x in (0.0, 19.486, 123.4, 1e6, np.inf, np.nan)] == [
        "0.00",
        "19.49",
        "123",
        "huge",
        "never",
        "-",
    ]
    assert percent(0.9899) == "98" and percent(1.0) == "100"


def test_lines_fit_a_terminal() -> None:
    worst = velocity(slice(4500, 10000), 99999.0)
    bad = score(velocity=worst, position=worst, yaw=worst[:, :1], velocity_std=np.full((len(ROWS), 3), 1e-9))
    hidden = replace(bad, fault=replace(FAULT, hidden="no way"))
    rows = [FaultRow("sample", one.fault, {"gait-legs": one}) for one in (bad, hidden, refusal(FAULT, "needs tau"))]
    rows.append(FaultRow("sample", FAULT, {}, "the log is too short"))
    lines = figure_lines(rows, "gait-legs") + verdict_lines(rows, ["gait-legs"])
    assert max(map(len, lines)) <= 80
    assert letters(bad) == "vypfs" and letters(hidden) == "(vypfs)" and letters(rows[2].scores["gait-legs"]) == "-"
    assert tally(rows, "gait-legs") == "gait-legs passes 0 of 1 faults; 1 cannot be told from the data"
