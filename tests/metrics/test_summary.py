"""Time association, the rows of a run, and what happens when there is nothing to compare."""

import numpy as np
import pytest
from trajectories import clock, log_of, moved, spoil, straight, turn_z, walk

from gait import GaitError, Trajectory
from gait.metrics import associate, ate, drift, relative_error, slip_mask, summary, velocity_rmse


def values(rows: list) -> dict[str, float]:
    return {row.name: row.value for row in rows}


# --- association ---------------------------------------------------------------------------------------------------


def test_equal_clocks_are_passed_through_untouched() -> None:
    truth = walk(clock(2.0, 100.0))
    estimate = spoil(truth)
    pair = associate(estimate, log_of(truth))
    assert np.shares_memory(pair.estimate.pos_w, estimate.pos_w)
    assert len(pair.t) == len(truth) and pair.rows.tolist() == list(range(len(truth)))
    rounded = estimate.replace(t=np.round(estimate.t + 1e-8, 9))
    assert np.shares_memory(associate(rounded, truth).truth.pos_w, truth.pos_w)


def test_truth_on_another_clock_is_interpolated() -> None:
    # Motion capture at 200 Hz, an estimator at 500 Hz that starts earlier and ends later.
    truth = walk(1.0 + clock(8.0, 200.0))
    estimate = walk(clock(12.0, 500.0))
    pair = associate(estimate, truth)
    assert pair.t[0] == 1.0 and pair.t[-1] == 9.0 and len(pair.t) == 4001
    assert pair.rows[0] == 500
    # Half a step of 2.5 ms at the accelerations of this walk (0.26 m/s^2, and 3 rad/s^2 in rotation).
    found = ate(estimate, truth, "none")
    assert 0.0 < found.position.max < 2e-6 and 0.0 < found.rotation.max < 2e-5 and 0.0 < found.velocity_w.max < 1e-5
    assert relative_error(estimate, truth, 5.0).position.max < 5e-5
    assert velocity_rmse(estimate, truth).rmse < 1e-4


def test_interpolated_errors_agree_with_the_exact_ones() -> None:
    exact = walk(clock(10.0, 500.0))
    estimate = spoil(exact)
    sparse = walk(clock(10.0, 200.0))
    direct, across = values(summary(estimate, exact)), values(summary(estimate, sparse))
    assert direct.keys() == across.keys()
    for name, value in direct.items():
        assert across[name] == pytest.approx(value, abs=2e-5), name


def test_estimates_in_a_gap_of_the_truth_are_left_out() -> None:
    t = clock(10.0, 100.0)
    truth = walk(t[(t < 4.0) | (t > 6.0)])
    estimate = walk(clock(10.0, 200.0))
    pair = associate(estimate, truth)
    assert not np.any((pair.t > 3.991) & (pair.t < 6.009))
    assert ate(estimate, truth, "none").position.max < 1e-5
    assert len(associate(estimate, truth, max_gap=3.0).t) == len(estimate)
    # Windows whose end falls into the gap have no truth to be judged by.
    found = relative_error(estimate, truth, 2.0)
    assert found.position.max < 1e-4
    assert not np.any((estimate.t[found.ends] > 3.991) & (estimate.t[found.ends] < 6.009))
    np.testing.assert_allclose(estimate.t[found.ends] - estimate.t[found.starts], 2.0, atol=1e-9)


def test_mask_is_on_the_clock_of_the_estimate() -> None:
    truth = walk(clock(4.0, 100.0) + 1.0)
    estimate = walk(clock(6.0, 100.0) + 0.005)
    late = estimate.t > 3.0
    estimate = estimate.replace(vel_b=estimate.vel_b + np.where(late, 0.5, 0.0)[:, None] * [1.0, 0.0, 0.0])
    assert velocity_rmse(estimate, truth, late).rmse == pytest.approx(0.5, abs=1e-3)
    assert velocity_rmse(estimate, truth, ~late).rmse < 1e-3


# --- rows ----------------------------------------------------------------------------------------------------------


def test_rows_of_a_run_are_the_metrics_by_name() -> None:
    truth = walk(clock(20.0, 100.0))
    estimate = spoil(truth)
    log = log_of(truth)
    rows = summary(estimate, log)
    found, units = values(rows), {row.name: row.unit for row in rows}
    absolute, relative, velocity = ate(estimate, log), relative_error(estimate, log, 5.0), velocity_rmse(estimate, log)
    assert found["ate_pos"] == absolute.position.rmse and units["ate_pos"] == "m"
    assert found["ate_vel"] == absolute.velocity.rmse and units["ate_vel"] == "m/s"
    assert found["ate_rot"] == absolute.rotation.rmse and units["ate_rot"] == "rad"
    assert found["ate_rot_mean"] == absolute.rotation.mean and found["ate_rot_std"] == absolute.rotation.std
    assert found["re_pos_5s"] == relative.position.rmse and units["re_pos_5s"] == "m"
    assert found["re_vel_5s_mean"] == relative.velocity.mean and found["re_rot_5s_std"] == relative.rotation.std
    assert found["velocity_rmse"] == velocity.rmse
    assert [found[f"velocity_rmse_{axis}"] for axis in "xyz"] == velocity.axes.tolist()
    assert found["drift"] == drift(estimate, log).position and units["drift"] == "m/m"
    assert found["duration"] == 20.0 and found["samples"] == 2001
    assert len(found) == len(rows) and all(np.isfinite(list(found.values())))
    assert "re_pos_0.5s" in values(summary(estimate, log, seconds=0.5))
    assert relative_error(estimate, log, metres=2.0).rows()[0].name == "re_pos_2m"


def test_rows_while_slipping() -> None:
    truth = straight(seconds=10.0)
    slips = (truth.t > 2.0) & (truth.t < 3.0)
    feet = np.zeros((len(truth), 4, 3))
    feet[slips, 1] = [0.0, 0.8, 0.0]
    log = log_of(truth, foot_vel_w=feet)
    contact = np.ones((len(truth), 4), dtype=bool)
    estimate = truth.replace(vel_b=truth.vel_b + np.where(slips, 0.2, 0.0)[:, None] * [0.0, 1.0, 0.0])
    found = values(summary(estimate, log, contact=contact))
    assert found["velocity_rmse_slip"] == pytest.approx(0.2) and found["velocity_rmse_slip_y"] == pytest.approx(0.2)
    assert found["slip_fraction"] == pytest.approx(np.mean(slip_mask(log, contact)))
    none = values(summary(estimate, log, contact=~contact))
    assert none["slip_fraction"] == 0.0 and "velocity_rmse_slip" not in none
    # The same on a faster clock: a flag holds until the next sample.
    fast = straight(seconds=10.0, rate=400.0)
    late = (fast.t > 2.0 + 1e-9) & (fast.t < 3.0)
    fast = fast.replace(vel_b=fast.vel_b + np.where(late, 0.2, 0.0)[:, None] * [0.0, 1.0, 0.0])
    assert values(summary(fast, log, contact=contact))["velocity_rmse_slip"] == pytest.approx(0.2, abs=1e-3)


def test_rows_of_consistency_need_a_covariance() -> None:
    truth = straight(seconds=10.0)
    sigma = np.array([0.1, 0.2, 0.05])
    error = sigma * np.random.default_rng(0).normal(size=(len(truth), 3))
    plain = truth.replace(vel_b=truth.vel_b + error)
    assert "nees_vel" not in values(summary(plain, truth))
    found = values(summary(plain.replace(vel_cov=np.tile(np.diag(sigma**2), (len(truth), 1, 1))), truth))
    assert found["nees_vel"] == pytest.approx(3.0, abs=0.3)
    assert found["coverage_vel_1sigma"] == pytest.approx(0.683, abs=0.03)
    assert found["coverage_vel_2sigma"] == pytest.approx(0.954, abs=0.02)


def test_a_log_without_velocity_or_a_robot_that_stands_still_gets_the_other_rows() -> None:
    truth = walk(clock(10.0, 50.0))
    found = values(summary(spoil(truth), log_of(truth, vel_w=None)))
    assert "ate_pos" in found and "re_rot_5s" in found
    assert not [name for name in found if "vel" in name]
    still = straight(speed=0.0)
    found = values(summary(still, still))
    assert "velocity_rmse" in found and "drift" not in found


def test_inputs_are_left_alone_and_results_do_not_change() -> None:
    truth = walk(clock(10.0, 50.0))
    estimate = spoil(truth)
    copies = truth.replace(), estimate.replace()
    assert summary(estimate, truth) == summary(estimate, truth)
    assert (truth, estimate) == copies


# --- bad input -----------------------------------------------------------------------------------------------------


def test_nothing_to_compare_gives_one_sentence() -> None:
    truth = walk(clock(4.0, 50.0))
    estimate = spoil(truth)
    blind = log_of(truth, pos_w=None, quat_wb_wxyz=None, vel_w=None)
    one = Trajectory(**{name: array[:1] for name, array in estimate.arrays().items()})
    line = straight(seconds=4.0, rate=50.0)
    still = straight(speed=0.0)
    for call, words in (
        (lambda: summary(estimate, truth), "no sub-trajectory lasts 5 s, the run has 4 s with truth"),
        (lambda: relative_error(estimate, truth, metres=100.0), "no sub-trajectory is 100 m long"),
        (lambda: relative_error(estimate, truth, 1.0, metres=1.0), "give seconds or metres"),
        (lambda: relative_error(estimate, truth, -1.0), "give a positive one"),
        (lambda: relative_error(estimate, truth, float("nan")), "give a positive one"),
        (lambda: relative_error(estimate, truth, 1.0, alignment="se3"), "choose first or yaw"),
        (lambda: relative_error(estimate, truth, 1.0, velocity="mean"), "choose change or end"),
        (lambda: ate(one, truth), "the estimate has 1 pose: metrics need at least two"),
        (lambda: ate(estimate, one), "share fewer than two instants"),
        (lambda: ate(estimate, blind), "the log has no ground truth pos_w"),
        (lambda: ate(estimate, log_of(truth, quat_wb_wxyz=None)), "the log has no ground truth quat_wb_wxyz"),
        (lambda: velocity_rmse(estimate, log_of(truth, vel_w=None)), "the log has no ground truth vel_w"),
        (lambda: ate(estimate.replace(t=estimate.t + 100.0), truth), "share fewer than two instants"),
        (lambda: ate(estimate, walk(clock(4.0, 0.7))), "more than 0.1 s apart"),
        (lambda: ate(estimate, truth, "sim3"), "unknown alignment 'sim3': choose one of none, first, yaw, se3"),
        (lambda: ate(line, line, "se3"), "the positions lie on one line"),
        (lambda: ate(moved(line, turn_z(0.3), np.ones(3)), line, "se3"), "the positions lie on one line"),
        (lambda: drift(still, still), "the robot travels only 0 m"),
        (lambda: velocity_rmse(estimate, truth, np.zeros(len(truth), dtype=bool)), "the mask selects no sample"),
        (lambda: velocity_rmse(estimate, truth, np.ones(3, dtype=bool)), r"the mask has shape \(3,\)"),
        (lambda: slip_mask(log_of(truth), np.ones((201, 4))), "the log has no ground truth foot_vel_w"),
        (lambda: slip_mask(log_of(truth, foot_vel_w=np.zeros((201, 4, 3))), np.ones((201, 2))), "contact has shape"),
        (lambda: summary(estimate, truth, contact=np.ones((201, 4)), seconds=1.0), "give the log as the truth"),
    ):
        with pytest.raises(GaitError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_window_as_long_as_the_run() -> None:
    truth = walk(clock(5.0, 100.0))
    assert len(relative_error(spoil(truth), truth, 5.0).starts) == 1
    shorter = walk(clock(4.99, 100.0))
    with pytest.raises(GaitError, match="no sub-trajectory lasts 5 s"):
        relative_error(shorter, shorter, 5.0)
