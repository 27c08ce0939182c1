"""`gait export --format c` of `gait-legs`: the C file is the estimator, on any robot, and survives anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
import yaml
from c_export import Library, column
from export_samples import SAMPLE, samples_of, truth
from gait.runtime import engines, velocity_aided
from gait.runtime.samples import Limits
from test_legs_runtime import legs_model

import gait
from gait import Estimator, Log, Robot, Trajectory
from gait.arrays import Array
from gait.cli import main
from gait.export import c
from gait.health import Health
from gait.nets import Model, load_model

pytestmark = [
    needs.gcc,
    pytest.mark.usefixtures("one_thread"),
]
VARIANTS: list[dict[str, Any]] = [
    {"correction": True},
    {"head_width": 0},
    {"targets": False, "position": False},
    {"frames": 1, "hidden": 70, "mlp": 20, "heads": 3, "head_width": 5},
    {"frames": 3, "stride": 3, "hidden": 10, "mlp": 100, "heads": 1, "head_width": 40},
]
RUBBISH = (np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1e-300, 42.0)
ERRORS = {"vel_b": 1e-5, "vel_w": 1e-5, "pos_w": 1e-5, "gyro_bias": 1e-6, "accel_bias": 1e-5, "vel_cov": 1e-7}
"""How far C may be from Python."""
Samples = list[tuple[Any, ...]]
Told = dict[str, Any]


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE)


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return {"forces": legs_model(), "kinematic": legs_model(targets=False), "shipped": load_model("gait-legs-0")}


@pytest.fixture(scope="module")
def libraries(models: dict[str, Model], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    return {name: Library(model, tmp_path_factory.mktemp("c")) for name, model in models.items()}


def given(log: Log, *names: str) -> Samples:
    """What `gait_update` takes, with null pointers for all but these of targets and torques."""
    rows = samples_of(log, "tau")
    return [(*row[:4], row[4] if "q_des" in names else None, row[5] if "tau" in names else None) for row in rows]


def c_run(library: Library, log: Log, samples: Samples) -> tuple[Array, list[int]]:
    """What C says from the true start on, and its health bits."""
    estimator = library.estimator()
    assert estimator.reset(*truth(log)) == 1
    health, rows = [], []
    for t, sample in zip(log.t, samples, strict=True):
        health.append(estimator.update(float(t), *sample))
        rows.append(estimator.read())
    return np.array(rows), health


def python_run(robot: Robot | str, model: Model, log: Log, samples: Samples, **flags: Any) -> Told:
    """What Python says of the same samples."""
    estimator = Estimator.load(robot, model)
    quat, vel_w, pos_w, gyro = truth(log)
    estimator.reset(quat_wb_wxyz=quat, vel_w=vel_w, pos_w=pos_w, gyro=gyro)
    states = [estimator.update(float(t), *sample, **flags) for t, sample in zip(log.t, samples, strict=True)]
    told = {name: np.array([getattr(state, name) for state in states]) for name in ERRORS}
    return told | {"health": np.array([state.health.bits for state in states])}


def told_of(trajectory: Trajectory) -> Told:
    return {name: np.asarray(getattr(trajectory, name)) for name in (*ERRORS, "health")}


def assert_same(rows: Array, health: list[int], expected: Told) -> None:
    for name, limit in ERRORS.items():
        found = column(rows, "cov" if name == "vel_cov" else name)
        assert np.abs(found - expected[name].reshape(len(rows), -1)).max() < limit, name
    assert health == expected["health"].tolist()


@pytest.mark.parametrize("rate", [500.0, 400.0])
@pytest.mark.parametrize(
    ("name", "fields"),
    [("shipped", ("tau",)), ("forces", ("q_des", "tau")), ("forces", ("q_des",)), ("kinematic", ())],
    ids=str,
)
def test_c_is_the_estimator_on_a_whole_log(
    libraries: dict[str, Library], models: dict[str, Model], log: Log, name: str, fields: tuple[str, ...], rate: float
) -> None:
    log = log if rate == log.rate else log.resample(rate)
    rows, health = c_run(libraries[name], log, given(log, *fields))
    absent = {field: None for field in ("q_des", "tau") if field not in fields}
    assert_same(rows, health, told_of(Estimator.load("go1", models[name]).run(log.replace(**absent))))
    assert health == [Health.STARTING, *[0] * (len(log) - 1)]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_c_of_any_size_is_the_estimator(variant: dict[str, Any], log: Log, tmp_path: Path) -> None:
    model, part = legs_model(**variant), log.slice(0.0, 1.0)
    rows, health = c_run(Library(model, tmp_path / "c"), part, given(part, "tau"))
    assert_same(rows, health, told_of(Estimator.load("go1", model).run(part)))


def test_c_runs_on_other_robots(log: Log, tmp_path: Path) -> None:
    """A Go2, a Go1 whose IMU is turned and elsewhere, and one with two legs: of each only the description differs."""
    model, part = legs_model(), log.slice(0.0, 1.0)
    tree = yaml.safe_load((Path(gait.__file__).parent / "robot/go1.yaml").read_text())
    tree["legs"] = {name: tree["legs"][name] for name in ("FR", "RL")}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump({**tree, "name": "two"}, sort_keys=False))
    quat = np.array([0.8, 0.2, -0.4, 0.4])
    turned = replace(
        Robot.load("go1"), imu_quat_wxyz=quat / np.linalg.norm(quat), imu_position=np.array([0.3, -0.2, 0.1])
    )
    found = []
    for i, robot in enumerate((Robot.load("go2"), turned, Robot.load(tmp_path / "two.yaml"))):
        samples, axes = given(part, "tau"), gait.lie.rotation_from_quat(robot.imu_quat_wxyz)
        imu = [tuple(np.ascontiguousarray(values @ axes) for values in sample[:2]) for sample in samples]
        legs = [0, 1, 2, 9, 10, 11] if robot.num_legs == 2 else list(range(12))
        joints = [tuple(None if values is None else values[legs] for values in sample[2:]) for sample in samples]
        mine: Samples = [(*a, *b) for a, b in zip(imu, joints, strict=True)]
        start = part.replace(gyro=part.gyro @ axes)
        rows, health = c_run(Library(model, tmp_path / str(i), robot), start, mine)
        assert_same(rows, health, python_run(robot, model, start, mine))
        found.append(column(rows, "vel_b"))
    assert np.abs(found[0] - found[1]).max() > 1e-3  # the description counts


def test_the_verb_takes_another_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    legs_model().save(tmp_path / "legs.safetensors")
    words = ["export", str(tmp_path / "legs.safetensors"), "--format", "c", "--out", str(tmp_path / "legs")]
    assert main(words) == 0 and main([*words[:-1], str(tmp_path / "other"), "--robot", "go2"]) == 0
    assert "gait-legs" in capsys.readouterr().out
    assert (tmp_path / "legs.c").read_text() != (tmp_path / "other.c").read_text()
    assert "of go2" in (tmp_path / "other.h").read_text().splitlines()[0]


@pytest.mark.parametrize("rate", [500.0, 400.0])
def test_c_leaves_out_what_is_broken_as_python_does(
    libraries: dict[str, Library], models: dict[str, Model], log: Log, rate: float
) -> None:
    """Legs and torques that fail for a while, one after the other and together, and come back."""
    part = log.slice(0.0, 2.0).resample(rate)
    samples = given(part, "tau")
    for k, sample in enumerate(samples):
        second, (_, _, q, dq, _, tau) = k / rate, sample
        if 0.2 < second < 0.4 or 1.5 < second < 1.505:
            q[4] = np.nan
        if 0.3 < second < 0.35:
            dq[9:] = 1e300
        if 0.6 < second < 0.65:  # q, beyond its stops
            q[0] = 4.0
        if 0.8 < second < 1.13:  # longer than a torque is held
            tau[7] = (np.nan, 1e9)[k % 2]
        if 1.3 < second < 1.305:
            tau[:] = np.nan
        if 1.7 < second < 1.72:
            q[:] = np.inf
    rows, health = c_run(libraries["forces"], part, samples)
    assert_same(rows, health, python_run("go1", models["forces"], part, samples))
    legs = Health.BAD_SAMPLE | Health.STALE_LEG
    assert legs | 1 << 17 in health and legs | 1 << 18 in health
    assert legs | Health.NO_MEASUREMENT | 0b1111 << 16 in health and health[-1] == 0
    # A leg that is flagged in Python is one that says nothing in C.
    whole = given(part, "tau")
    silent: Samples = [(a, b, np.where(np.arange(12) // 3 == 2, np.nan, q), *rest) for a, b, q, *rest in whole]
    rows, health = c_run(libraries["forces"], part, silent)
    flags = {"leg_ok": np.array([True, True, False, True])}
    assert_same(rows, health, python_run("go1", models["forces"], part, whole, **flags))


def test_targets_stand_in_for_the_torques_of_one_leg(
    libraries: dict[str, Library], models: dict[str, Model], log: Log
) -> None:
    part = log.slice(0.0, 1.0)
    samples = given(part, "q_des", "tau")
    for sample in samples[100:400]:
        sample[5][5] = np.nan
    rows, health = c_run(libraries["shipped"], part, samples)
    assert_same(rows, health, python_run("go1", models["shipped"], part, samples))
    assert health[1:] == [0] * (len(part) - 1)


@pytest.mark.parametrize("name", ["forces", "kinematic", "shipped"])
def test_nothing_a_sensor_says_makes_nan(libraries: dict[str, Library], log: Log, name: str) -> None:
    estimator, rng, t = libraries[name].estimator(), np.random.default_rng(0), 0.0
    estimator.reset(*truth(log))
    for whole in given(log.slice(0.0, 6.0), "q_des", "tau"):
        sample = list(whole)
        for i, values in enumerate(sample):
            if rng.random() < 0.1:
                values[rng.integers(len(values))] = rng.choice(RUBBISH)
            elif rng.random() < 0.02:
                values[:] = rng.choice(RUBBISH)
            elif rng.random() < 0.02:
                sample[i] = None
        t += rng.choice([0.002, 0.002, 0.002, 0.0, -0.001, 0.0053, 1e-9, 0.3, -5.0, 1e6])
        estimator.update(rng.choice([t, t, t, t, np.nan]), *sample)
        assert np.isfinite(estimator.read()).all() and np.isfinite(estimator.covariance()).all()
        assert np.linalg.norm(column(estimator.read(), "vel_b")) < 40.0


def test_what_c_believes_of_sensors_is_what_python_believes() -> None:
    limits = Limits()
    assert (c.LIMITS["MAX_GYRO"], c.LIMITS["MAX_ACCEL"]) == (limits.gyro, limits.accel)
    assert c.LIMITS["CLOCK_RESET"] == limits.clock_reset and c.JITTER == engines.JITTER
    for name in ("LONGEST_GAP", "MAX_SPEED", "MAX_STD"):
        assert c.LIMITS[name] == getattr(velocity_aided, name)
