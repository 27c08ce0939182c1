"""The streaming estimator: one path for samples and logs, equal to the torch model, and unshaken by broken sensors."""

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from log_samples import rubbish_rows
from net_samples import random_model

import gait
from gait import Estimator, GaitError, Log
from gait.engine import Engine
from gait.health import Health
from gait.methods import METHODS
from gait.nets.build import network_of
from gait.nets.model import Model
from gait.parameters import Limits, Options, Prior, ProcessNoise
from gait.train.validate import predict

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"
KINDS = ("gait", "gait-flat", "nmn")


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(0.0, 4.0)


def error(trajectory: gait.Trajectory, log: Log) -> float:
    return float(np.sqrt(np.square(trajectory.vel_b - log.vel_b).sum(1).mean()))


def feed(estimator: Estimator, log: Log) -> list[gait.State]:
    estimator.start_as(log, "truth")
    return [estimator.update(row) for row in log.rows()]


@pytest.mark.parametrize("method", METHODS)
def test_a_loop_of_updates_gives_the_bits_of_run(log: Log, method: str) -> None:
    estimator = Estimator.load("go1", method)
    trajectory = estimator.run(log)
    states = feed(estimator, log)
    for name in ("vel_w", "vel_b", "pos_w", "quat_wb_wxyz", "vel_cov", "pose_cov", "gyro_bias", "accel_bias"):
        assert np.array_equal([getattr(state, name) for state in states], getattr(trajectory, name)), name
    assert [state.health.bits for state in states] == trajectory.health.tolist()
    assert error(trajectory, log) < 0.06


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("targets", [True, False])
def test_streaming_equals_the_torch_model_over_the_whole_sequence(log: Log, kind: str, targets: bool) -> None:
    model = random_model(kind, targets=targets)
    # Random weights contradict the IMU: with their own variance they would turn the robot upside down.
    _, details = Estimator.load("go1", model, options=Options(inflation=100.0)).run_with_details(log)
    velocity, std = details.predicted
    ((expected, log_std),) = predict(network_of(model), [model.features(log)])
    np.testing.assert_allclose(velocity, expected, atol=1e-5)
    np.testing.assert_allclose(np.log(std), log_std, atol=1e-5)


def test_a_state_is_a_snapshot_in_the_words_of_log_and_trajectory(log: Log) -> None:
    estimator = Estimator.load("go1", "gait", attention=True)
    states = feed(estimator, log.slice(0.0, 0.2))
    state, later = states[50], states[-1]
    assert not np.array_equal(state.vel_b, later.vel_b)
    np.testing.assert_allclose(state.R_wb @ state.vel_b, state.vel_w, atol=1e-12)
    np.testing.assert_allclose(state.vel_b_std**2, np.diag(state.vel_cov))
    assert state.cov.shape == (15, 15) and state.attention is not None and state.attention.shape == (7, 6)
    assert state.attention.sum() == pytest.approx(1.0, abs=1e-5)
    assert state.health.ok and str(state.health) == "ok" and "vel_b" in repr(state)
    assert str(states[0].health) == "starting"


def test_joints_are_found_by_name(log: Log) -> None:
    plain = feed(Estimator.load("go1", "gait"), log.slice(0.0, 0.3))
    names = ["arm_joint", *reversed(log.joint_names)]
    estimator = Estimator.load("go1", "gait", joint_names=names)
    estimator.start_as(log, "truth")

    def shuffled(values: np.ndarray) -> list[float]:
        return [7.0, *values[::-1]]

    for row, expected in zip(log.slice(0.0, 0.3).rows(), plain, strict=True):
        q, dq, q_des = map(shuffled, (row.q, row.dq, row.q_des))
        assert np.array_equal(estimator.update(row.t, list(row.gyro), row.accel, q, dq, q_des).vel_b, expected.vel_b)


@pytest.mark.parametrize("method", ["gait", "iekf"])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"gyro1": np.nan}, "gyro not finite"),
        ({"accel2": np.inf}, "accelerometer not finite"),
        ({"gyro0": 50.0}, "gyro saturated"),
        ({"accel": 1e9}, "accelerometer saturated"),
        ({"q4": np.nan}, "leg FL stale"),
        ({"dq0": -np.inf}, "leg FR stale"),
        ({"q8": 40.0}, "leg RR stale"),
        ({"dq10": 1e5}, "leg RL stale"),
    ],
)
def test_a_broken_sensor_is_left_out_and_named(log: Log, method: str, values: dict[str, float], words: str) -> None:
    estimator = Estimator.load("go1", method)
    part = log.slice(0.0, 1.5)
    # A Log refuses nan, so it goes in sample by sample.
    estimator.start_as(part, "truth")
    states = []
    for k, row in enumerate(part.rows()):
        if 500 <= k < 505:
            changed = {}
            for name, value in values.items():
                field = name.rstrip("0123456789")
                array = changed.setdefault(field, np.array(getattr(row, field)))
                array[... if field == name else int(name[len(field) :])] = value
            row = row._replace(**changed)
        states.append(estimator.update(row))
    for k, state in enumerate(states):
        assert np.isfinite(state.vel_w).all() and np.isfinite(state.cov).all(), k
        assert (words in str(state.health)) == (500 <= k < 505), (k, str(state.health))
    if "leg" not in words:
        # Blind, the filter is less sure.
        assert states[502].vel_b_std.min() > states[499].vel_b_std.min()
    # A moment later all is as if nothing had been.
    clean = Estimator.load("go1", method).run(part)
    assert np.linalg.norm(states[-1].vel_b - clean.vel_b[-1]) < 0.05


def test_a_stuck_encoder_is_found_and_a_robot_at_rest_is_not(log: Log) -> None:
    estimator = Estimator.load("go1", "gait")
    estimator.start_as(log, "truth")
    q, dq = np.array(log.q), np.array(log.dq)
    q[500:700, :3], dq[500:700, :3] = q[500, :3], dq[500, :3]
    bits = []
    for k, row in enumerate(log.slice(0.0, 2.0).rows()):
        bits.append(str(estimator.update(row._replace(q=q[k], dq=dq[k])).health))
    assert "leg FR stale" in bits[540] and "ok" in bits[499] and "ok" in bits[510] and "ok" in bits[701]
    still = next(iter(log.rows()))
    estimator.reset()
    for k in range(200):
        state = estimator.update(still._replace(t=k * 0.002, gyro=np.zeros(3), accel=np.array([0.0, 0.0, 9.81])))
    assert state.health.ok


def test_a_leg_can_be_flagged_as_broken(log: Log) -> None:
    estimator = Estimator.load("go1", "gait", attention=True)
    estimator.start_as(log, "truth")
    for row in log.slice(0.0, 0.1).rows():
        state = estimator.update(*row[:6], leg_ok=[True, True, False, True])
    assert str(state.health) == "leg RR stale" and state.attention is not None
    assert state.attention[:, 4].max() == 0.0 and state.attention[:, 3].max() > 0.0


def test_stamps_may_repeat_go_back_pause_and_begin_anew(log: Log) -> None:
    estimator = Estimator.load("go1", "gait")
    rows = list(log.slice(0.0, 2.0).rows())
    estimator.start_as(log, "truth")
    states = {k: estimator.update(row) for k, row in enumerate(rows[:500])}
    before = states[499]
    for t in (rows[499].t, rows[499].t - 0.5, np.nan, np.inf):
        state = estimator.update(rows[499]._replace(t=t))
        assert str(state.health) == "stamp not later than the last"
        assert np.array_equal(state.vel_w, before.vel_w) and np.array_equal(state.cov, before.cov)
    state = estimator.update(rows[560])
    assert str(state.health) == "gap 0.12 s" and np.isfinite(state.vel_w).all()
    assert state.pose_cov[0, 0] > before.pose_cov[0, 0]
    for row in rows[561:700]:
        state = estimator.update(row)
    assert state.health.ok and np.linalg.norm(state.vel_b - log.vel_b[699]) < 0.1
    state = estimator.update(rows[700]._replace(t=-1000.0))
    assert "clock set back" in str(state.health) and state.t == -1000.0
    for k in range(700, 960):  # which is shown for half a second
        state = estimator.update(rows[k]._replace(t=-999.998 + 0.002 * (k - 700)))
    assert state.health.ok
    assert np.isfinite(estimator.update(rows[702]._replace(t=1e9)).cov).all()


@pytest.mark.parametrize("method", ["gait", "iekf", "flat"])
def test_nothing_a_sensor_says_makes_nan_or_raises(log: Log, method: str) -> None:
    estimator = Estimator.load("go1", random_model("gait-flat") if method == "flat" else method)
    estimator.start_as(log, "truth")
    for row in rubbish_rows(log):
        state = estimator.update(row)
        everything = [state.vel_b, state.vel_w, state.pos_w, state.quat_wb_wxyz, state.vel_b_std, state.cov.ravel()]
        assert np.isfinite(np.concatenate([*everything, state.pose_cov.ravel(), [state.t]])).all()
        assert abs(np.linalg.norm(state.quat_wb_wxyz) - 1.0) < 1e-6 and np.linalg.norm(state.vel_b) < 40.0


@pytest.mark.parametrize(("rate", "worse"), [(1000.0, 1.3), (400.0, 1.5), (200.0, 3.0)])
def test_other_rates_cost_little(log: Log, rate: float, worse: float) -> None:
    estimator = Estimator.load("go1", "gait")
    usual = error(estimator.run(log), log)
    other = log.resample(rate)
    assert error(estimator.run(other), other) < worse * usual


def test_jitter_of_a_fifth_of_a_period_changes_no_step_of_the_network(log: Log) -> None:
    estimator = Estimator.load("go1", "gait")
    jitter = np.random.default_rng(0).uniform(-1.9e-4, 1.9e-4, len(log))
    _, clean = estimator.run_with_details(log)
    _, shaken = estimator.run_with_details(log.replace(t=log.t + jitter))
    assert np.array_equal(clean.predicted[0], shaken.predicted[0])


def test_an_imu_turned_by_a_right_angle_is_turned_back(log: Log, tmp_path: Path) -> None:
    """The robot's YAML says how the IMU sits; a network whose inertial weights are turned alike sees the same."""
    model = gait.nets.load_model("gait-0")  # type: ignore[attr-defined]
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # IMU axes in the base
    weights = {name: np.array(array) for name, array in model.weights.items()}
    for name, first in (("gyro", 0), ("accel", 3)):
        weights[f"embed.{name}.weight"] = (weights[f"embed.{name}.weight"] @ turn).astype(np.float32)
        weights["std"][first : first + 3] = weights["std"][first : first + 3] @ np.abs(turn)
        weights["mean"][first : first + 3] = weights["mean"][first : first + 3] @ turn
    tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
    tree["imu"]["quat_wxyz"] = [float(np.sqrt(0.5)), 0.0, 0.0, float(np.sqrt(0.5))]
    (tmp_path / "turned.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    turned = log.replace(gyro=log.gyro @ turn, accel=log.accel @ turn)
    expected = Estimator.load("go1", model).run(log)
    result = Estimator.load(tmp_path / "turned.yaml", replace(model, weights=weights)).run(turned)
    np.testing.assert_allclose(result.vel_b, expected.vel_b, atol=1e-5)
    np.testing.assert_allclose(result.pos_w, expected.pos_w, atol=1e-5)


def test_two_estimators_in_two_threads_are_as_alone(log: Log) -> None:
    methods = ("gait", "iekf")
    alone = [Estimator.load("go1", method).run(log) for method in methods]
    estimators = [Estimator.load("go1", method) for method in methods]
    results: dict[int, list[gait.State]] = {}
    threads = [
        threading.Thread(target=lambda i=i, e=e: results.update({i: feed(e, log)})) for i, e in enumerate(estimators)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, trajectory in enumerate(alone):
        assert np.array_equal([state.vel_w for state in results[i]], trajectory.vel_w)


@pytest.mark.parametrize("method", METHODS)
def test_updates_leave_nothing_behind(log: Log, method: str) -> None:
    estimator = Estimator.load("go1", method, attention=True)
    rows = iter(list(log.rows()))
    estimator.start_as(log, "truth")
    for row in islice(rows, 100):
        estimator.update(row)
    tracemalloc.start()
    for row in islice(rows, 10):
        estimator.update(row)
    before = tracemalloc.get_traced_memory()[0]
    for row in rows:
        estimator.update(row)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 4096


def test_a_robot_at_rest_finds_its_own_tilt(log: Log) -> None:
    estimator = Estimator.load("go1", "gait")
    roll, pitch = 0.2, -0.1
    force = 9.81 * np.array([-np.sin(pitch), np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)])
    estimator.reset(accel=np.tile(force, (20, 1)))
    row = next(iter(log.rows()))
    state = estimator.update(row._replace(gyro=np.zeros(3), accel=force))
    np.testing.assert_allclose(state.R_wb[2] * 9.81, force, atol=1e-9)
    np.testing.assert_allclose(state.pos_w, 0.0, atol=1e-12)
    assert abs(np.arctan2(state.R_wb[1, 0], state.R_wb[0, 0])) < 1e-12
    # Thrown into the air it waits for a moment of rest.
    estimator.reset()
    assert "starting" in str(estimator.update(row._replace(accel=np.zeros(3))).health)
    state = estimator.update(row._replace(t=row.t + 0.002, gyro=np.zeros(3), accel=force))
    np.testing.assert_allclose(state.R_wb[2] * 9.81, force, atol=1e-9)


def test_limits_can_be_set(log: Log) -> None:
    estimator = Estimator.load("go1", limits=Limits(accel=5.0))
    estimator.start_as(log, "truth")
    for row in log.slice(0.0, 0.02).rows():
        state = estimator.update(row)
    assert "accelerometer saturated" in str(state.health) and state.health.flags & Health.IMU_SATURATED


def test_mistakes_are_told_in_a_sentence(log: Log, tmp_path: Path) -> None:
    row = next(iter(log.rows()))
    estimator = Estimator.load("go1", "iekf")
    with pytest.raises(GaitError, match=r"q must be 12 numbers, got an array of shape \(11,\)"):
        estimator.update(row._replace(q=row.q[1:]))
    with pytest.raises(GaitError, match="none of tau, foot_force, contact is there"):
        estimator.run(log.replace(tau=None, q_des=None, contact=None, foot_force=None))
    estimator.update(*row[:6])  # torques come from the targets
    with pytest.raises(GaitError, match="unknown method 'magic': choose one of gait"):
        Estimator.load("go1", "magic")
    with pytest.raises(GaitError, match="there is no file"):
        Estimator.load("go1", tmp_path / "none.safetensors")
    with pytest.raises(GaitError, match="joint_names lacks 'FR_hip_joint'"):
        Estimator.load("go1", joint_names=["a", "b"])
    with pytest.raises(GaitError, match="reads the joint targets q_des"):
        Estimator.load("go1", random_model("nmn")).run(log.replace(q_des=None))
    with pytest.raises(GaitError, match="give a rotation as a unit quaternion"):
        estimator.reset(quat_wb_wxyz=(2.0, 0.0, 0.0, 0.0))
    with pytest.raises(GaitError, match="not that of a robot at rest"):
        estimator.reset(accel=(0.0, 0.0, 1.0))
    with pytest.raises(GaitError, match="unknown start 'here'"):
        estimator.run(log, start="here")
    tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**tree, "name": "mine"}, sort_keys=False))
    with pytest.raises(GaitError, match="method gait has no weights for mine, only for go1"):
        Estimator.load(tmp_path / "mine.yaml", "gait")
    assert Estimator.load(tmp_path / "mine.yaml", "iekf").robot.name == "mine"
    # The default runs on any robot.
    assert Estimator.load(tmp_path / "mine.yaml").method == "gait-legs"


def test_a_second_network_takes_over_while_a_leg_is_dead(log: Log) -> None:
    first, second = random_model("gait", 0), random_model("gait", 1)
    robot = gait.Robot.load("go1")
    engine = Engine(robot, model=first, dead_leg=second)
    estimator = Estimator(robot, engine, "both")
    estimator.start_as(log, "truth")
    rows, ok = list(log.slice(0.0, 1.6).rows()), np.array([True, True, False, True])
    flagged = slice(50, 400)
    states = [
        estimator.update(*row, leg_ok=ok if flagged.start <= k < flagged.stop else None) for k, row in enumerate(rows)
    ]
    velocity = np.array([state.predicted[0] for state in states])

    def expected(model: Model, part: slice, hidden: bool) -> np.ndarray:
        keep = torch.ones(1, part.stop - part.start, 7, 6, dtype=torch.bool)
        keep[..., 4] = not hidden
        with torch.no_grad():
            features = torch.from_numpy(model.features(log)[None, part].astype(np.float32))
            return network_of(model).run(features, None, keep).velocity[0].numpy()

    # 0.05 s of silence are 26 samples; after half a second without, the first returns and starts again.
    switch, back = 75, 650
    np.testing.assert_allclose(velocity[:50], expected(first, slice(0, 50), False), atol=1e-5)
    np.testing.assert_allclose(velocity[switch:400], expected(second, slice(switch, 400), True), atol=1e-5)
    np.testing.assert_allclose(velocity[back:790], expected(first, slice(back, 790), False), atol=1e-5)


def test_a_dead_leg_on_trot_costs_less_than_half() -> None:
    """Over the whole sample: in a few seconds of it, the usual error itself may be half or twice that of others."""
    log, estimator = Log.load(SAMPLE), Estimator.load("go1", "gait")
    usual = error(estimator.run(log), log)
    for leg in range(4):
        estimator.start_as(log, "truth")
        ok = np.arange(4) != leg
        velocity = np.array([estimator.update(*row, leg_ok=ok).vel_b for row in log.rows()])
        assert np.sqrt(np.square(velocity - log.vel_b).sum(1).mean()) < 1.5 * usual, leg


def test_inflation_scales_the_variance_of_the_network(log: Log) -> None:
    runs = [
        Estimator.load("go1", "gait", options=Options(inflation=factor)).run_with_details(log) for factor in (1.0, 4.0)
    ]
    (sure, said), (unsure, same) = runs
    assert np.array_equal(said.predicted, same.predicted)
    ratio = np.sqrt(unsure.vel_cov[1000:, 0, 0] / sure.vel_cov[1000:, 0, 0])
    # Between measurements the IMU adds the same to both, so less than four times.
    assert 1.2 < np.median(ratio) < 4.0


def test_without_targets_other_weights_are_taken(log: Log) -> None:
    estimator = Estimator.load("go1", "gait")
    without = log.replace(q_des=None)
    trajectory = estimator.run(without)
    assert error(trajectory, log) < 0.06
    estimator.start_as(without, "truth")
    states = [estimator.update(row) for row in without.rows()]
    assert np.array_equal([state.vel_w for state in states], trajectory.vel_w)
    assert not np.array_equal(estimator.run(log).vel_w, trajectory.vel_w)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (lambda: ProcessNoise(accel=-1.0), "ProcessNoise.accel is -1: give a finite number from 0 to 10000"),
        (lambda: ProcessNoise(gyro=np.nan), "gyro is nan: give a finite number"),
        (lambda: ProcessNoise(gyro="0.1"), "gyro is '0.1': give a number"),  # type: ignore[arg-type]
        (lambda: Prior(yaw=1e9), "Prior.yaw is 1e.09"),
        (lambda: Options(gravity=0.0), "gravity is 0: give a finite number from -100 to -0.1"),
        (lambda: Options(inflation=0.0), "inflation is 0: give a finite number of at least 1e-06"),
        (lambda: Options(joint_delay=4.0), "joint_delay is 4: give a finite number from 0 to 0.1"),
        (lambda: Options(exact_mean="yes"), "exact_mean is 'yes': give True or False"),  # type: ignore[arg-type]
        (lambda: Options(max_gap=True), "max_gap is True: give a number"),
    ],
    ids=range(9),
)
def test_settings_that_no_filter_can_live_with_are_refused(settings: Callable[[], object], words: str) -> None:
    with pytest.raises(GaitError, match=words):
        settings()


def test_mistakes_of_the_program_are_told_in_every_call(log: Log) -> None:
    """Not in the first one alone: numpy would make three numbers of one, and nothing would keep the last ones."""
    estimator = Estimator.load("go1", "gait")
    first, second = (row for _, row in zip(range(2), log.rows(), strict=False))
    estimator.start_as(log, "truth")
    estimator.update(first)
    for name, value in (("gyro", None), ("gyro", 1.0), ("accel", [5.0]), ("q", None), ("dq", np.zeros(3))):
        with pytest.raises(GaitError, match=f"{name} must be {len(getattr(second, name))} numbers"):
            estimator.update(second._replace(**{name: value}))
    for name, rubbish in (("t", "now"), ("gyro", ["a", "b", "c"])):
        with pytest.raises(GaitError, match="a sample is made of numbers"):
            estimator.update(second._replace(**{name: rubbish}))
    again = Estimator.load("go1", "gait")
    again.start_as(log, "truth")
    again.update(first)
    assert np.array_equal(estimator.update(second).vel_b, again.update(second).vel_b)


def test_a_start_that_is_not_whole_is_refused() -> None:
    estimator = Estimator.load("go1", "gait")
    with pytest.raises(GaitError, match="give quat_wb_wxyz too"):
        estimator.reset(vel_w=(1.0, 0.0, 0.0))
    with pytest.raises(GaitError, match="accel must be three numbers"):
        estimator.reset(accel="x")
