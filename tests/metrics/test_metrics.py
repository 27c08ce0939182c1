"""Metrics against evo, against brute force, against cases worked out by hand, and their invariances."""

import math
from pathlib import Path

import needs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectories import clock, from_rotvec, log_of, moved, spoil, straight, turn_z, walk

from gait import Trajectory
from gait.metrics import VelocityError, align, ate, drift, relative_error, slip_mask, summary, velocity_rmse
from gait.metrics.align import METHODS
from gait.quaternions import rotate

TIGHT = {"rtol": 0.0, "atol": 1e-6}


@pytest.fixture(scope="module")
def truth() -> Trajectory:
    return walk(clock(30.0, 100.0))


@pytest.fixture(scope="module")
def estimate(truth: Trajectory) -> Trajectory:
    return spoil(truth)


# --- against evo ---------------------------------------------------------------------------------------------------


class Evo:
    """The independent implementation, reading the TUM files that we write."""

    def __init__(self, folder: Path, truth: Trajectory, estimate: Trajectory) -> None:
        needs.package("evo")
        from evo.core import metrics
        from evo.tools import file_interface

        self.metrics, self.read = metrics, file_interface.read_tum_trajectory_file
        self.files = folder / "truth.tum", folder / "estimate.tum"
        truth.to_tum(self.files[0])
        estimate.to_tum(self.files[1])
        self.relations = (metrics.PoseRelation.translation_part, metrics.PoseRelation.rotation_angle_rad)

    def ape(self, method: str) -> list[np.ndarray]:
        truth, estimate = (self.read(str(file)) for file in self.files)
        if method == "se3":
            estimate.align(truth)
        elif method == "first":
            estimate.align_origin(truth)
        return [self._run(self.metrics.APE(relation), truth, estimate) for relation in self.relations]

    def rpe(self, delta: float, unit: str) -> list[np.ndarray]:
        truth, estimate = (self.read(str(file)) for file in self.files)
        options = {"delta_unit": self.metrics.Unit(unit), "all_pairs": True, "pairs_from_reference": True}
        return [self._run(self.metrics.RPE(r, delta=delta, **options), truth, estimate) for r in self.relations]

    @staticmethod
    def _run(metric, truth, estimate) -> np.ndarray:
        metric.process_data((truth, estimate))
        return np.asarray(metric.error)


@pytest.fixture(scope="module")
def evo(tmp_path_factory: pytest.TempPathFactory, truth: Trajectory, estimate: Trajectory) -> Evo:
    return Evo(tmp_path_factory.mktemp("tum"), truth, estimate)


@pytest.mark.parametrize("method", ["none", "first", "se3"])
def test_ate_equals_evo_ape(evo: Evo, method: str) -> None:
    ours = ate(Trajectory.from_tum(evo.files[1]), Trajectory.from_tum(evo.files[0]), method)
    position, rotation = evo.ape(method)
    np.testing.assert_allclose(ours.position.values, position, **TIGHT)
    np.testing.assert_allclose(ours.rotation.values, rotation, **TIGHT)
    assert ours.position.rmse == pytest.approx(math.sqrt(np.mean(position**2)), abs=1e-6)
    assert ours.rotation.std == pytest.approx(np.std(rotation), abs=1e-6)
    assert ours.position.rmse > 0.05 and ours.rotation.rmse > 0.05


def test_relative_error_over_5_s_equals_evo_rpe(evo: Evo) -> None:
    ours = relative_error(Trajectory.from_tum(evo.files[1]), Trajectory.from_tum(evo.files[0]), seconds=5.0)
    position, rotation = evo.rpe(500, "frames")
    assert len(position) == 3001 - 500
    np.testing.assert_allclose(ours.position.values, position, **TIGHT)
    np.testing.assert_allclose(ours.rotation.values, rotation, **TIGHT)
    assert ours.position.mean == pytest.approx(position.mean(), abs=1e-6)
    assert ours.position.rmse > 0.05 and ours.rotation.rmse > 0.02


@pytest.mark.parametrize("metres", [0.5, 3.0])
def test_relative_error_over_distance_equals_evo_rpe(evo: Evo, metres: float) -> None:
    ours = relative_error(Trajectory.from_tum(evo.files[1]), Trajectory.from_tum(evo.files[0]), metres=metres)
    position, rotation = evo.rpe(metres, "m")
    np.testing.assert_allclose(ours.position.values, position, **TIGHT)
    np.testing.assert_allclose(ours.rotation.values, rotation, **TIGHT)


def test_distance_windows_of_a_robot_that_pauses_equal_evo(tmp_path: Path) -> None:
    t = clock(20.0, 50.0)
    # The walk's own clock stands still from 6 to 9 s and from 12 to 14 s.
    own = t - np.clip(t - 6.0, 0.0, 3.0) - np.clip(t - 12.0, 0.0, 2.0)
    pauses = walk(np.unique(own))
    rows = np.searchsorted(pauses.t, own)
    truth = Trajectory(t=t, **{name: getattr(pauses, name)[rows] for name in ("pos_w", "vel_w", "quat_wb_wxyz")})
    estimate = spoil(truth)
    position, rotation = Evo(tmp_path, truth, estimate).rpe(1.0, "m")
    ours = relative_error(estimate, truth, metres=1.0)
    np.testing.assert_allclose(ours.position.values, position, **TIGHT)
    np.testing.assert_allclose(ours.rotation.values, rotation, **TIGHT)


# --- alignment -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_yaw_alignment_is_what_brute_force_finds(seed: int) -> None:
    optimize = needs.package("scipy.optimize")
    truth = walk(clock(20.0, 20.0), seed)
    estimate = moved(spoil(truth, seed + 10), turn_z(1.3 * seed - 2.0), np.array([3.0, -1.0, 0.5]))

    def cost(x: np.ndarray) -> float:
        placed = rotate(turn_z(x[0]), estimate.pos_w) + x[1:]
        return float(np.mean(np.sum((truth.pos_w - placed) ** 2, axis=1)))

    starts = [np.array([yaw, 0.0, 0.0, 0.0]) for yaw in np.linspace(-3.0, 3.0, 7)]
    best = min((optimize.minimize(cost, x, tol=1e-14) for x in starts), key=lambda found: found.fun)
    ours = align(estimate, truth, "yaw")
    assert ours.yaw == pytest.approx(math.remainder(best.x[0], 2.0 * math.pi), abs=1e-5)
    np.testing.assert_allclose(ours.translation, best.x[1:], atol=1e-5)
    assert ate(estimate, truth, "yaw").position.rmse ** 2 <= best.fun + 1e-12
    assert ours.quat_wxyz[1] == ours.quat_wxyz[2] == 0.0


def test_more_freedom_never_fits_worse(truth: Trajectory, estimate: Trajectory) -> None:
    none, yaw, full = (ate(estimate, truth, method).position.rmse for method in ("none", "yaw", "se3"))
    assert full < yaw < none


def test_se3_alignment_undoes_a_mirror_prone_motion() -> None:
    truth = walk(clock(20.0, 20.0))
    flat = truth.replace(pos_w=truth.pos_w * [1.0, 1.0, 0.0])
    found = ate(moved(flat, from_rotvec(np.array([2.0, -1.0, 0.7])), np.array([1.0, 2.0, 3.0])), flat, "se3")
    assert found.position.rmse < 1e-12 and found.rotation.rmse < 1e-12


def test_heading_of_a_standing_robot_comes_from_its_orientation() -> None:
    t = clock(10.0, 50.0)
    rng = np.random.default_rng(0)
    truth = walk(t).replace(pos_w=0.01 * rng.normal(size=(len(t), 3)))
    estimate = moved(truth, turn_z(1.0), np.ones(3))
    noisy = estimate.replace(pos_w=estimate.pos_w + 0.01 * rng.normal(size=(len(t), 3)))
    assert align(noisy, truth, "yaw").yaw == pytest.approx(-1.0, abs=1e-12)


# --- invariances ---------------------------------------------------------------------------------------------------

ANGLES = st.floats(-math.pi, math.pi)
SHIFTS = st.tuples(*[st.floats(-50.0, 50.0)] * 3).map(np.array)


def everything(estimate: Trajectory, truth: Trajectory, alignment: str) -> np.ndarray:
    return np.array([row.value for row in summary(estimate, truth, alignment=alignment)])


@pytest.mark.parametrize("method", METHODS)
def test_all_errors_of_the_truth_itself_are_zero(truth: Trajectory, method: str) -> None:
    rows = {row.name: row.value for row in summary(truth, truth, alignment=method)}
    for name, value in rows.items():
        if name not in ("duration", "samples", "distance"):
            assert abs(value) < 1e-13, name


@settings(max_examples=15, deadline=None)
@given(yaw=ANGLES, shift=SHIFTS, seed=st.integers(0, 5))
def test_where_the_estimate_puts_its_world_does_not_matter(yaw: float, shift: np.ndarray, seed: int) -> None:
    truth = walk(clock(8.0, 50.0), seed)
    estimate = spoil(truth, seed)
    elsewhere = moved(estimate, turn_z(yaw), shift)
    for method in ("yaw", "first", "se3"):
        there, here = everything(elsewhere, truth, method), everything(estimate, truth, method)
        np.testing.assert_allclose(there, here, atol=1e-10)
    ours = [relative_error(e, truth, 2.0, alignment="yaw", velocity="end") for e in (estimate, elsewhere)]
    np.testing.assert_allclose(ours[0].velocity.values, ours[1].velocity.values, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(yaw=ANGLES, shift=SHIFTS, seed=st.integers(0, 5))
def test_moving_the_whole_world_changes_nothing(yaw: float, shift: np.ndarray, seed: int) -> None:
    truth = walk(clock(8.0, 50.0), seed)
    estimate = spoil(truth, seed)
    for method in METHODS:
        here = everything(estimate, truth, method)
        there = everything(moved(estimate, turn_z(yaw), shift), moved(truth, turn_z(yaw), shift), method)
        np.testing.assert_allclose(there, here, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(turn=st.tuples(ANGLES, ANGLES, ANGLES).map(np.array), shift=SHIFTS)
def test_full_alignment_takes_any_rigid_motion_away(turn: np.ndarray, shift: np.ndarray) -> None:
    truth = walk(clock(8.0, 50.0))
    estimate = spoil(truth)
    for method in ("first", "se3"):
        here = ate(estimate, truth, method)
        there = ate(moved(estimate, from_rotvec(turn), shift), truth, method)
        np.testing.assert_allclose(there.position.values, here.position.values, atol=1e-10)
        np.testing.assert_allclose(there.rotation.values, here.rotation.values, atol=1e-7)
        np.testing.assert_allclose(there.velocity_w.values, here.velocity_w.values, atol=1e-10)


def test_absolute_velocity_error_is_the_body_velocity_error(truth: Trajectory, estimate: Trajectory) -> None:
    for method in METHODS:
        assert ate(estimate, truth, method).velocity.rmse == pytest.approx(velocity_rmse(estimate, truth).rmse)


# --- cases worked out by hand --------------------------------------------------------------------------------------


def test_a_turning_estimate() -> None:
    rate = 0.01
    truth = straight()
    yaw = rate * truth.t
    quat = from_rotvec(np.stack((0 * yaw, 0 * yaw, yaw), axis=1))
    estimate = truth.replace(quat_wb_wxyz=quat, vel_w=rotate(quat, truth.vel_w), vel_b=None)
    found = relative_error(estimate, truth, 5.0)
    np.testing.assert_allclose(found.rotation.values, 5.0 * rate, atol=1e-12)
    # Seen from the body at its start, the estimated velocity has turned by 0.05 rad and the true one not at all.
    np.testing.assert_allclose(found.velocity.values, 2.0 * math.sin(0.5 * 5.0 * rate), atol=1e-12)
    end = relative_error(estimate, truth, 5.0, velocity="end").velocity.values
    np.testing.assert_allclose(end, found.velocity.values, atol=1e-12)
    absolute = ate(estimate, truth, "none")
    np.testing.assert_allclose(absolute.rotation.values, yaw, atol=1e-12)
    np.testing.assert_allclose(absolute.velocity.values, 0.0, atol=1e-12)
    np.testing.assert_allclose(absolute.velocity_w.values, 2.0 * np.sin(0.5 * yaw), atol=1e-12)
    assert drift(estimate, truth).heading == pytest.approx(rate * 20.0 / 20.0)


def test_a_tilted_estimate_and_the_two_ways_to_align_a_window() -> None:
    tilt = 0.1
    truth = straight()
    estimate = truth.replace(quat_wb_wxyz=np.tile(from_rotvec(np.array([0.0, tilt, 0.0])), (len(truth), 1)))
    whole, upright = (relative_error(estimate, truth, 5.0, alignment=way) for way in ("first", "yaw"))
    np.testing.assert_allclose(whole.rotation.values, 0.0, atol=1e-12)
    np.testing.assert_allclose(whole.position.values, 5.0 * 2.0 * math.sin(0.5 * tilt), atol=1e-12)
    np.testing.assert_allclose(upright.rotation.values, tilt, atol=1e-12)
    np.testing.assert_allclose(upright.position.values, 0.0, atol=1e-12)


def test_velocity_error_cancels_in_its_change_but_not_at_the_end() -> None:
    truth = straight()
    estimate = truth.replace(vel_w=truth.vel_w + np.array([0.0, 0.3, 0.0]), vel_b=None)
    np.testing.assert_allclose(relative_error(estimate, truth).velocity.values, 0.0, atol=1e-12)
    np.testing.assert_allclose(relative_error(estimate, truth, velocity="end").velocity.values, 0.3, atol=1e-12)


def test_drift_per_metre() -> None:
    truth = straight(speed=0.5)
    estimate = truth.replace(pos_w=truth.pos_w * [1.02, 1.0, 1.0] + np.outer(truth.t, [0.0, 0.0, -0.005]) + 7.0)
    found = drift(estimate, truth)
    assert found.distance == pytest.approx(10.0)
    assert found.position == pytest.approx(math.hypot(0.02, 0.01))
    assert found.height == pytest.approx(-0.01)
    assert found.heading == 0.0


def test_velocity_error_by_axis_and_over_a_mask() -> None:
    truth = walk(clock(4.0, 50.0))
    half = truth.t < 2.0
    error = np.where(half[:, None], [0.3, 0.0, 0.4], [0.0, 0.1, 0.0])
    estimate = truth.replace(vel_b=truth.vel_b + error)
    first, second = velocity_rmse(estimate, truth, half), velocity_rmse(estimate, truth, ~half)
    assert first.rmse == pytest.approx(0.5) and second.rmse == pytest.approx(0.1)
    np.testing.assert_allclose(first.axes, [0.3, 0.0, 0.4], atol=1e-12)
    np.testing.assert_allclose(second.bias, [0.0, 0.1, 0.0], atol=1e-12)
    whole = velocity_rmse(estimate, truth)
    assert whole.rmse**2 == pytest.approx((0.25 * half.sum() + 0.01 * (~half).sum()) / len(half))
    assert whole.rmse**2 == pytest.approx(np.sum(whole.axes**2))
    assert VelocityError(error).rmse == pytest.approx(whole.rmse)


def test_slip_is_contact_on_paper_with_a_foot_that_moves() -> None:
    truth = straight(seconds=0.05)
    feet = np.zeros((6, 4, 3))
    feet[1, 2] = [0.3, 0.0, 0.41]  # 0.508 m/s
    feet[2, 2] = [0.3, 0.0, 0.39]  # 0.492 m/s
    feet[3, 0] = feet[4, 1] = [2.0, 0.0, 0.0]
    contact = np.ones((6, 4), dtype=bool)
    contact[3, 0] = False
    log = log_of(truth, foot_vel_w=feet)
    assert slip_mask(log, contact).tolist() == [False, True, False, False, True, False]
    assert slip_mask(log, contact, threshold=0.45).tolist() == [False, True, True, False, True, False]
