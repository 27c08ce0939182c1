"""`gait export --format c`: the C file is the network and the filter, warns of nothing and survives anything."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
from c_export import Library, column
from export_samples import (
    SAMPLE,
    VARIANTS,
    fields_of,
    folded_run,
    samples_of,
    torch_run,
    trained_model,
    truth,
    windows,
)
from gait.filters import InvariantEKF, Options
from net_samples import random_inputs, random_model

from gait import Estimator, GaitError, lie
from gait.arrays import Array
from gait.cli import main
from gait.export.c import c_files
from gait.health import FIRST_LEG, Health
from gait.log.log import Log
from gait.nets import Model
from gait.robot import Robot

pytestmark = [
    needs.gcc,
    pytest.mark.usefixtures("one_thread"),
]


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE)


@pytest.fixture(scope="module")
def trained() -> Model:
    return trained_model()


@pytest.fixture(scope="module")
def predicted(trained: Model, log: Log) -> Array:
    """Velocity and log-std (N, 6) that the fold gives on the log."""
    return folded_run(trained, trained.features(log))


@pytest.fixture(scope="module")
def library(trained: Model, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(trained, tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def samples(log: Log) -> list[tuple[Array, ...]]:
    return samples_of(log)


def python_run(predicted: Array, robot: Robot, log: Log) -> dict[str, Array]:
    """The filter on what the network said, sample by sample, as plainly as it can be said."""
    R_bi, arm = lie.rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
    ekf = InvariantEKF()
    quat, vel_w, pos_w, gyro = truth(log)
    R_wb = lie.rotation_from_quat(quat)
    ekf.reset(R_wb @ R_bi, vel_w + R_wb @ np.cross(R_bi @ gyro, arm), pos_w + R_wb @ arm)
    rows = []
    for k, (velocity, log_std) in enumerate(predicted.reshape(-1, 2, 3)):
        gyro, accel = np.array(log.gyro[k]), np.array(log.accel[k])
        if k > 0:
            assert ekf.propagate(gyro, accel, float(log.t[k] - log.t[k - 1]))
            omega = R_bi @ (gyro - ekf.gyro_bias)
            measured = np.ascontiguousarray(R_bi.T @ (velocity + np.cross(omega, arm)))
            assert ekf.correct_velocity(
                measured, np.ascontiguousarray(R_bi.T @ np.diag(Options().inflation ** 2 * np.exp(2 * log_std)) @ R_bi)
            )
        R_wb = np.ascontiguousarray(ekf.R_wb @ R_bi.T)
        vel_w = ekf.vel_w - R_wb @ np.cross(R_bi @ (gyro - ekf.gyro_bias), arm)
        cov = R_wb.T @ ekf.cov[3:6, 3:6] @ R_wb
        pose = lie.quat_from_rotation(R_wb), R_wb.T @ vel_w, vel_w, ekf.pos_w - R_wb @ arm
        rows.append(np.concatenate([*pose, cov.ravel(), ekf.gyro_bias, ekf.accel_bias, velocity, log_std]))
    names = ("quat", "vel_b", "vel_w", "pos_w", "cov", "gyro_bias", "accel_bias", "velocity", "log_std")
    return {name: column(np.array(rows), name) for name in names}


def test_c_is_the_network_and_the_filter_on_a_whole_log(
    library: Library, trained: Model, log: Log, samples: list[tuple[Array, ...]], predicted: Array
) -> None:
    expected = python_run(predicted, Robot.load("go1"), log)
    assert np.abs(library.network(samples) - predicted).max() < 1e-5
    estimator = library.estimator()
    assert estimator.reset(*truth(log)) == 1
    np.testing.assert_allclose(column(estimator.read(), "vel_w"), truth(log)[1], atol=1e-12)
    health, rows = [], []
    for t, sample in zip(log.t, samples, strict=True):
        health.append(estimator.update(float(t), *sample))
        rows.append(estimator.read())
    for name, values in expected.items():
        error = np.abs(column(np.array(rows), name) - values)
        if name == "quat":  # where w passes zero, its sign is anyone's choice
            error = np.minimum(error.max(1), np.abs(column(np.array(rows), name) + values).max(1))
        assert error.max() < 1e-5, name
    trajectory = Estimator.load("go1", trained).run(log)
    for name in ("vel_b", "vel_w", "pos_w", "gyro_bias", "accel_bias"):
        assert np.abs(column(np.array(rows), name) - getattr(trajectory, name)).max() < 1e-5, name
    assert health == [Health.STARTING, *[0] * (len(log) - 1)] == trajectory.health.tolist()


@pytest.mark.parametrize("rate", [400.0, 1000.0])
def test_c_takes_other_rates_as_python_does(library: Library, trained: Model, log: Log, rate: float) -> None:
    other = log.slice(0.0, 2.0).resample(rate)
    expected = Estimator.load("go1", trained).run(other)
    estimator = library.estimator()
    estimator.reset(*truth(other))
    for k, sample in enumerate(samples_of(other)):
        assert estimator.update(float(other.t[k]), *sample) == expected.health[k]
        assert np.abs(column(estimator.read(), "vel_b") - expected.vel_b[k]).max() < 1e-5


def test_c_minds_how_the_imu_is_mounted(
    trained: Model, log: Log, samples: list[tuple[Array, ...]], predicted: Array, tmp_path: Path
) -> None:
    quat = np.array([0.8, 0.2, -0.4, 0.4])
    robot = replace(
        Robot.load("go1"), imu_quat_wxyz=quat / np.linalg.norm(quat), imu_position=np.array([0.3, -0.2, 0.1])
    )
    expected = python_run(predicted[:500], robot, log)
    estimator = Library(trained, tmp_path / "c", robot).estimator()
    estimator.reset(*truth(log))
    rows = []
    for k in range(500):
        estimator.update(float(log.t[k]), *samples[k])
        rows.append(estimator.read())
    for name, values in expected.items():
        assert np.abs(column(np.array(rows), name) - values).max() < 1e-5, name
    # At rest and tilted: up, as the IMU feels it, is up, and the heading is zero.
    force = np.array([1.0, -2.0, 9.0])
    assert estimator.reset_from_gravity(force) == 1
    R_wb = lie.rotation_from_quat(column(estimator.read(), "quat").copy())
    up = lie.rotation_from_quat(robot.imu_quat_wxyz) @ force / np.linalg.norm(force)
    np.testing.assert_allclose(R_wb @ up, [0.0, 0.0, 1.0], atol=1e-12)
    assert abs(np.arctan2(R_wb[1, 0], R_wb[0, 0])) < 1e-12
    np.testing.assert_allclose(column(estimator.read(), "pos_w"), 0.0, atol=1e-12)
    assert estimator.reset_from_gravity(np.array([0.0, 0.0, 1.0])) == 0


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_c_of_any_kind_is_the_network(variant: dict[str, Any], tmp_path: Path) -> None:
    model = random_model(**variant)
    inputs = random_inputs(model.architecture, 1, 1000)
    library = Library(model, tmp_path / "c")
    fields = list(fields_of(model, inputs[0].numpy()))
    assert np.abs(library.network(fields) - torch_run(model, inputs)).max() < 1e-5
    if model.architecture.kind == "gait":
        seen = np.ones((1000, len(model.architecture.tokens)), dtype=np.bool_)
        seen[:, 2:] = np.random.default_rng(5).random((1000, model.architecture.legs)) > 0.3
        keep = windows(seen, model.architecture.history)
        assert np.abs(library.network(fields, seen[:, 2:]) - torch_run(model, inputs, keep)).max() < 1e-5


def test_two_c_estimators_do_not_know_of_each_other(
    library: Library, log: Log, samples: list[tuple[Array, ...]]
) -> None:
    alone = []
    for start in (0, 700):
        estimator = library.estimator()
        for k in range(start, start + 300):
            estimator.update(float(log.t[k]), *samples[k])
        alone.append(estimator.read())
    one, two = library.estimator(), library.estimator()
    for k in range(300):
        one.update(float(log.t[k]), *samples[k])
        two.update(float(log.t[k + 700]), *samples[k + 700])
    np.testing.assert_array_equal(np.array([one.read(), two.read()]), alone)


BAD_IMU = Health.BAD_SAMPLE | Health.BAD_IMU | Health.NO_MEASUREMENT
SATURATED = Health.BAD_SAMPLE | Health.IMU_SATURATED | Health.NO_MEASUREMENT
BAD_TIME = Health.BAD_SAMPLE | Health.BAD_TIME


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf, 1e300], ids=str)
def test_c_lets_nothing_broken_through(
    library: Library, log: Log, samples: list[tuple[Array, ...]], broken: float
) -> None:
    estimator = library.estimator()
    estimator.reset(*truth(log))
    leg = Health.BAD_SAMPLE | Health.STALE_LEG | 1 << FIRST_LEG + 1
    imu = SATURATED if broken == 1e300 else BAD_IMU
    for k in range(400):
        sample = [part.copy() for part in samples[k]]
        expected = 0 if k else Health.STARTING
        if k % 8 == 7:
            field = k // 8 % 5
            sample[field][2 if field < 2 else 4] = broken
            expected = imu if field < 2 else leg
        assert estimator.update(float(log.t[k]), *sample) == expected, k
        assert np.isfinite(estimator.read()).all()
        assert np.abs(column(estimator.read(), "vel_b") - log.vel_b[k]).max() < 0.5
    everything = [np.full_like(part, broken) for part in samples[0]]
    all_legs = imu | Health.STALE_LEG | 0b1111 << FIRST_LEG
    for k in range(400, 420):
        assert estimator.update(float(log.t[k]), *everything) == all_legs
        assert np.isfinite(estimator.read()).all()
    assert estimator.update(float(log.t[420]), *samples[420]) == 0
    assert estimator.update(float(log.t[421]), *[None] * 5) & BAD_IMU


def test_c_holds_the_velocity_where_the_imu_is_silent(
    library: Library, log: Log, samples: list[tuple[Array, ...]]
) -> None:
    estimator = library.estimator()
    estimator.reset(*truth(log))
    for k in range(100):
        estimator.update(float(log.t[k]), *samples[k])
    before = estimator.read()
    assert estimator.update(float(log.t[100]), np.full(3, np.nan), *samples[100][1:]) == BAD_IMU
    after = estimator.read()
    np.testing.assert_allclose(column(after, "vel_w"), column(before, "vel_w"), atol=1e-12)
    moved = column(after, "pos_w") - column(before, "pos_w")
    assert np.linalg.norm(moved - 0.002 * column(before, "vel_w")) < 1e-3 * 0.07
    assert np.trace(column(after, "cov").reshape(3, 3)) > np.trace(column(before, "cov").reshape(3, 3))


def test_c_minds_the_clock(library: Library, log: Log, samples: list[tuple[Array, ...]]) -> None:
    estimator = library.estimator()
    estimator.reset(*truth(log))
    for k in range(100):
        estimator.update(float(log.t[k]), *samples[k])
    before = estimator.read()
    for t in (float(log.t[99]), float(log.t[98]), np.nan, np.inf):
        assert estimator.update(t, *samples[100]) == BAD_TIME
        np.testing.assert_array_equal(estimator.read(), before)
    # After a pause the network starts anew: it says what it says of a first sample.
    assert estimator.update(float(log.t[99]) + 0.5, *samples[100]) == Health.TIME_GAP
    after = estimator.read()
    first = library.network([samples[100]])[0]
    np.testing.assert_array_equal(np.concatenate([column(after, "velocity"), column(after, "log_std")]), first)
    assert estimator.update(float(log.t[99]) + 0.502, *samples[101]) == 0
    # A clock that was set anew, and stamps that nobody can mean.
    assert estimator.update(-5.0, *samples[102]) == Health.TIME_GAP | Health.BAD_TIME
    assert estimator.update(-4.998, *samples[103]) == 0
    assert estimator.update(1e300, *samples[104]) & Health.TIME_GAP
    assert np.isfinite(estimator.read()).all()


def test_c_bridges_a_pause_as_python_does(library: Library, log: Log, samples: list[tuple[Array, ...]]) -> None:
    """No leg speaks, so nothing but the bridge moves the state."""
    silent = [samples[100][0], samples[100][1], *[np.full(12, np.nan)] * 3]
    estimator = library.estimator()
    estimator.reset(*truth(log))
    estimator.update(1.0, *silent)
    estimator.update(1.5, *silent)
    robot, ekf = Robot.load("go1"), InvariantEKF()
    quat, vel_w, pos_w, gyro = truth(log)
    R_wb = lie.rotation_from_quat(quat)
    lever = np.cross(gyro, robot.imu_position)
    ekf.reset(R_wb, vel_w + R_wb @ lever, pos_w + R_wb @ robot.imu_position)
    o, root = ekf.options, np.sqrt(0.5)
    ekf._noise[:2] = o.gap_rate * root, o.gap_accel * root
    assert ekf.propagate(np.zeros(3), np.ascontiguousarray(-o.gravity * R_wb[2]), 0.5)
    found = estimator.read()
    np.testing.assert_allclose(column(found, "pos_w"), ekf.pos_w - ekf.R_wb @ robot.imu_position, atol=1e-9)
    np.testing.assert_allclose(column(found, "cov").reshape(3, 3), ekf.vel_b_cov, atol=1e-9)
    # Half a second: long enough for every power of it in the transition matrix to count.
    np.testing.assert_allclose(estimator.covariance(), ekf.cov, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(column(found, "quat"), quat * np.sign(quat[0]), atol=1e-9)


def test_c_refuses_a_start_that_is_none(library: Library, log: Log) -> None:
    estimator = library.estimator()
    level = estimator.read()
    for i in range(4):
        state = [part.copy() for part in truth(log)]
        state[i][:] = np.nan
        assert estimator.reset(*state) == 0
    assert estimator.reset(np.zeros(4), *truth(log)[1:]) == 0
    assert estimator.reset_from_gravity(np.full(3, np.nan)) == 0
    np.testing.assert_array_equal(estimator.read(), level)
    assert estimator.reset(*truth(log)[:3], None) == 1


def test_the_example_of_the_documentation_runs(trained: Model, tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "docs/export.md").read_text()
    model = tmp_path / "m.safetensors"
    trained.save(model)
    assert main(["export", str(model), "--format", "c", "--out", str(tmp_path / "gait_go1")]) == 0
    (tmp_path / "main.c").write_text(text.split("```c\n")[1].split("```")[0])
    command = "gcc -std=c99 -O3 main.c gait_go1.c -lm -o main && ./main"
    assert command in text
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "vel_b" in done.stdout, done.stderr
    assert main(["export", str(model), "--format", "onnx", "--out", str(tmp_path / "gait_go1.onnx")]) == 0
    code = text.split("```python\n")[1].split("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and len(done.stdout.split()) >= 6, done.stderr


def test_a_network_of_one_robot_is_not_exported_for_another(trained: Model) -> None:
    with pytest.raises(GaitError, match="gait runs only on go1, .*: use gait-legs"):
        c_files(trained, "gait_go2", Robot.load("go2"))
