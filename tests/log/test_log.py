"""Log and Trajectory: what they accept, what they refuse and in which words, and what their methods return."""

import copy
import dataclasses
import inspect
import pickle
import re
from pathlib import Path

import needs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_samples import log_arrays, make_log, make_trajectory, unit_quaternions

import gait
from gait import GaitError, Log, Robot, Trajectory, quaternions
from gait.io.guess import AXES_OF, PER_JOINT
from gait.log.imu_noise import ImuNoise

DOCS = Path(__file__).parents[2] / "docs" / "log.md"


def matrices(quat: np.ndarray) -> np.ndarray:
    """Rotation matrices by the textbook, to check the quaternion code against."""
    w, x, y, z = quat.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


# What a Log is made of


def test_arrays_are_contiguous_float64_and_read_only() -> None:
    arrays = log_arrays()
    given_q = np.asfortranarray(arrays["q"].astype(np.float32))
    log = make_log(q=given_q, contact=arrays["contact"].astype(float), t=list(arrays["t"]))
    for name, array in log.arrays().items():
        assert array.dtype == (np.bool_ if name == "contact" else np.float64), name
        assert array.flags.c_contiguous and not array.flags.writeable, name
    np.testing.assert_array_equal(log.q, given_q)
    with pytest.raises(ValueError, match="read-only"):
        log.q[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        log.q = log.dq  # type: ignore[misc]


def test_everything_follows_the_table_of_fields() -> None:
    sensed = [field for field in Log.FIELDS if not field.text.startswith("ground truth")]
    assert gait.Sample._fields == tuple(field.name for field in sensed)
    needed = [field.required for field in sensed]
    assert needed == sorted(needed, reverse=True), "those that are required come first, as positional arguments must"
    assert PER_JOINT == ("q", "dq", "q_des", "tau")
    assert set(AXES_OF) == {"gyro", "accel", "pos_w", "quat_wb_wxyz", "vel_w"}
    for kind, fields in ((Log, Log.FIELDS), (Trajectory, Trajectory.FIELDS)):
        parameters = inspect.signature(kind).parameters
        assert list(parameters)[: len(fields)] == [field.name for field in fields], "what help shows"
        assert all((parameters[field.name].default is None) != field.required for field in fields)
    log = make_log()
    for field in Log.FIELDS:
        assert log.need(field.name)[0].size == len(field.columns(log.labels))


def test_the_callers_arrays_stay_the_callers() -> None:
    arrays = log_arrays()
    log = Log(**arrays)
    before = log.gyro.copy()
    arrays["gyro"][:] = 7.0
    view = arrays["accel"][:]
    view.flags.writeable = False
    np.testing.assert_array_equal(log.gyro, before)
    hidden = make_log(accel=view)
    arrays["accel"][:] = 7.0
    assert not (hidden.accel == 7.0).any(), "a read-only view does not make the memory behind it constant"


def test_slices_share_memory_and_copies_stay_read_only() -> None:
    log = make_log()
    assert np.shares_memory(log.slice(0.01, 0.05).q, log.q)
    for twin in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log)):
        assert twin == log
        assert not twin.q.flags.writeable


def test_only_what_is_required_is_needed() -> None:
    arrays = log_arrays()
    log = Log(**{name: arrays[name] for name in ("t", "gyro", "accel", "q", "dq")})
    assert log.robot == "go1" and log.leg_names == Robot.load("go1").leg_names
    assert log.tau is None and log.contact is None and not log.has_truth
    with pytest.raises(GaitError, match="the log has no quat_wb_wxyz"):
        _ = log.vel_b
    with pytest.raises(GaitError, match="no field 'torque'"):
        log.need("torque")


def test_derived_figures() -> None:
    arrays = log_arrays(101, rate=400.0)
    log = Log(**arrays)
    assert (len(log), log.rate, log.duration) == (101, 400.0, 0.25)
    expected = np.einsum("nji,nj->ni", matrices(arrays["quat_wb_wxyz"]), arrays["vel_w"])
    np.testing.assert_allclose(log.vel_b, expected, atol=1e-14)
    assert "go1, 101 rows, 400 Hz, 0.25 s, truth" in repr(log)


def test_a_robot_by_object_by_path_and_unknown_to_us(tmp_path: Path) -> None:
    arrays = log_arrays()
    robot = Robot.load("go1")
    assert make_log(robot=robot).joint_names == robot.joint_names
    yaml = Path(gait.robot.__file__).parent / "go1.yaml"
    copied = tmp_path / "mine.yaml"
    copied.write_text(yaml.read_text().replace("name: go1", "name: mine"))
    assert make_log(robot=copied).robot == make_log(robot=str(copied)).robot == "mine"
    mine = make_log(robot=copied)
    assert mine.reorder(mine.robot).joint_names == mine.joint_names  # it carries the description
    with pytest.raises(GaitError, match="unknown robot 'rex': choose one of a1"):
        mine.reorder("rex")
    assert mine.reorder(copied) is mine.reorder(Robot.load(copied)) is mine, "names that match need no change"
    copied.write_text(copied.read_text().replace("name: mine", "name: other"))
    assert make_log(robot=copied).robot == "other", "an edited file is read again"
    named = make_log(robot=str(tmp_path / "secret.yaml"), leg_names=robot.leg_names, joint_names=robot.joint_names)
    assert named.robot == "secret", "no path of this machine goes into a file"
    arrays.update(q=arrays["q"][:, :2], dq=arrays["dq"][:, :2], q_des=None, tau=None)
    arrays.update(contact=arrays["contact"][:, :1], foot_force=None, foot_vel_w=None)
    hopper = Log(**arrays, robot="hopper", leg_names=["leg"], joint_names=["hip", "knee"])
    assert hopper.robot == "hopper" and hopper.labels["joint"] == ("hip", "knee")


# What a Log refuses


def bad(name: str, value: object) -> dict:
    return {**log_arrays(), name: value}


def poked(name: str, where: object, value: float) -> dict:
    arrays = log_arrays()
    arrays[name] = np.array(arrays[name])
    arrays[name][where] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (bad("gyro", np.zeros((50, 4))), r"Log field gyro has shape \(50, 4\) but must be \(50, 3\): each row is xyz"),
        (bad("gyro", np.zeros((3, 50))), "field gyro .* transpose it"),
        (bad("accel", np.zeros((49, 3))), "field accel .* one row for each time stamp"),
        (bad("q", np.zeros((50, 11))), r"field q .* must be \(50, 12\): each row is one per joint name"),
        (bad("contact", np.zeros((50, 3))), "field contact .* one per leg name"),
        (bad("t", np.zeros((50, 1))), r"field t .* must be \(N,\)"),
        (bad("t", [0.0]), "field t has 1 rows: at least 2 are needed"),
        (bad("gyro", "fast"), "field gyro must be an array of numbers"),
        (bad("gyro", [[1.0], [1.0, 2.0]]), "field gyro .* rows differ in length"),
        (bad("gyro", np.zeros((50, 3), dtype=complex)), "field gyro must be an array of numbers, not of complex"),
        (bad("gyro", None), "field gyro is missing"),
        (bad("gyro", 1.0), r"field gyro has shape \(\)"),
        (poked("dq", (17, 3), np.nan), r"field dq is nan at row 17 \(t = 0.034 s\): drop or repair"),
        (poked("pos_w", (3, 0), -np.inf), "field pos_w is -inf at row 3"),
        (poked("t", 9, np.nan), "field t is nan at row 9"),
        (poked("t", 20, 0.01), r"field t does not increase at row 20 \(0.01 s after 0.038 s\): sort"),
        (poked("t", 20, 0.038), "field t does not increase at row 20"),
        (poked("quat_wb_wxyz", 5, 0.9), r"field quat_wb_wxyz has length 1.8 at row 5 .* w, x, y, z"),
        (bad("contact", np.full((50, 4), 0.5)), "field contact must be true or false, but row 0"),
        (bad("gyr", 1), "Log has no field 'gyr': did you mean gyro"),
        (bad("zzz", 1), "Log has no field 'zzz': the fields are t, gyro"),
        (bad("robot", "rex"), "unknown robot 'rex'"),
        (bad("leg_names", "FR"), "leg_names must be a list of names"),
        (bad("leg_names", ["FR", "FR", "RL", "RR"]), "leg_names has 'FR' twice"),
        (bad("joint_names", ["a b"] * 12), "joint_names must be a list of names without spaces"),
    ],
)
def test_bad_input_is_named(arrays: dict, message: str) -> None:
    with pytest.raises(GaitError, match=message) as caught:
        Log(**arrays)
    assert "\n" not in str(caught.value)


def test_nearly_unit_quaternions_are_scaled_and_exact_ones_kept() -> None:
    quat = log_arrays()["quat_wb_wxyz"]
    assert make_log(quat_wb_wxyz=quat).quat_wb_wxyz.tobytes() == quat.tobytes()
    rounded = quat.astype(np.float32)
    log = make_log(quat_wb_wxyz=rounded)
    np.testing.assert_allclose(np.linalg.norm(log.quat_wb_wxyz, axis=1), 1.0, atol=1e-9)
    scaled = make_log(quat_wb_wxyz=quat * 1.0009)
    np.testing.assert_allclose(scaled.quat_wb_wxyz, quat, atol=1e-15)
    assert make_log(quat_wb_wxyz=scaled.quat_wb_wxyz) == scaled, "checking twice must change nothing"
    with pytest.raises(GaitError, match="length 1.0011"):
        make_log(quat_wb_wxyz=quat * 1.0011)


# Methods


def test_reorder_goes_by_name() -> None:
    robot = Robot.load("go1")
    rng = np.random.default_rng(3)
    joints, legs = rng.permutation(12), rng.permutation(4)
    arrays = log_arrays()
    shuffled = {**arrays}
    for name in ("q", "dq", "q_des", "tau"):
        extra = np.full((50, 1), 5.0)
        shuffled[name] = np.hstack([arrays[name][:, joints], extra])
    for name in ("contact", "foot_force", "foot_vel_w"):
        shuffled[name] = arrays[name][:, legs]
    log = Log(
        **shuffled,
        leg_names=[robot.leg_names[i] for i in legs],
        joint_names=[*(robot.joint_names[i] for i in joints), "arm_joint"],
    )
    assert log.reorder("go1") == Log(**arrays)
    assert log.reorder(robot) == Log(**arrays)


def test_reorder_lists_the_choices_and_rename_follows_them() -> None:
    robot = Robot.load("go1")
    short = [name.removesuffix("_joint") for name in robot.joint_names]
    log = make_log(joint_names=short)
    with pytest.raises(GaitError, match=r"no joint 'FR_hip_joint' that go1 needs; it has FR_hip, FR_thigh.*rename"):
        log.reorder("go1")
    assert log.rename(dict(zip(short, robot.joint_names, strict=True))).reorder("go1") == make_log()
    with pytest.raises(GaitError, match="no leg 'FR'"):
        make_log(leg_names=["a", "b", "c", "d"]).reorder("go1")
    legless = make_log(leg_names=["a", "b", "c", "d"], contact=None, foot_force=None, foot_vel_w=None)
    assert legless.reorder("go1").leg_names == robot.leg_names
    with pytest.raises(GaitError, match="no joint or leg 'FR_knee'"):
        log.rename({"FR_knee": "x"})
    with pytest.raises(GaitError, match=r"no joint or leg 'nope': the joints and legs are FR_hip, .*, RL$"):
        log.rename({"nope": "x"})


def test_slice_is_half_open() -> None:
    log = make_log()
    part = log.slice(0.01, 0.02)
    np.testing.assert_array_equal(part.t, log.t[5:10])
    np.testing.assert_array_equal(part.foot_vel_w, log.foot_vel_w[5:10])
    assert log.slice() == log
    spans = {
        "from 5 s to the end leaves 0 rows: the log runs from 0 to 0.098 s, choose": (5.0, None),
        "from the start to 0.001 s leaves 1 rows": (None, 0.001),
        "from 0.02 s to 0.01 s leaves 0 rows": (0.02, 0.01),
    }
    for message, span in spans.items():
        with pytest.raises(GaitError, match=message):
            log.slice(*span)


def test_resample_interpolates_signals_holds_contact_and_turns_rotations() -> None:
    log = make_log(40, rate=100.0)
    fine = log.resample(1000.0)
    assert len(fine) == 391 and fine.rate == 1000.0
    for name in ("gyro", "q", "tau", "pos_w"):
        for k in range(3):
            np.testing.assert_allclose(
                fine.need(name)[:, k], np.interp(fine.t, log.t, log.need(name)[:, k]), atol=1e-12
            )
    np.testing.assert_allclose(fine.foot_vel_w[::10], log.foot_vel_w, atol=0)
    np.testing.assert_array_equal(fine.contact, log.contact[np.arange(391) // 10])
    for k in range(10):
        ends = log.quat_wb_wxyz[k : k + 2]
        between = np.abs(np.einsum("ij,j->i", fine.quat_wb_wxyz[10 * k : 10 * k + 11], ends[0]))
        angle = 2 * np.arccos(np.clip(between, -1.0, 1.0))
        np.testing.assert_allclose(angle, np.linspace(0, angle[-1], 11), atol=1e-6)


@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_resample_to_the_same_clock_returns_the_same_samples(start: float) -> None:
    # Steps of 0.002 added up differ from multiples of it in the last bits; that must not shift anything.
    arrays = log_arrays(2000)
    arrays["t"] = start + np.cumsum(np.full(2000, 0.002))
    log = Log(**arrays)
    again = log.resample(500.0)
    assert len(again) == len(log)
    for name, array in again.arrays().items():
        if name != "t" and start == 0.0:
            assert array.tobytes() == log.need(name).tobytes(), name
    np.testing.assert_array_equal(again.contact, log.contact)


def test_resample_refuses_gaps_and_nonsense() -> None:
    t = np.arange(50) / 500.0
    t[30:] += 0.4
    log = make_log(t=t)
    assert log.gaps() == [(29, pytest.approx(0.402))]
    with pytest.raises(GaitError, match=r"gap of 0.402 s after row 29 \(t = 0.058 s\), more than 0.1 s"):
        log.resample(100.0)
    with pytest.raises(GaitError, match=r"log.slice, or --start and --end .*\(max_gap, --max-gap\)$"):
        log.require_no_gaps()
    for limit in (0.0, -1.0, np.nan):
        with pytest.raises(GaitError, match=r"longest gap to allow \(max_gap, --max-gap\) is .*: give one above 0"):
            log.resample(100.0, max_gap=limit)
    assert len(log.resample(100.0, max_gap=1.0)) == 50
    assert log.slice(t1=0.06).gaps() == []
    for rate in (0.0, -1.0, np.nan, np.inf, 0.001):
        with pytest.raises(GaitError, match="cannot resample"):
            make_log().resample(rate)
    for rate in (1.05e9, 1e12, 1e308):
        with pytest.raises(
            GaitError, match=r"cannot resample 0.098 s .* more than 100 million rows, give a lower rate"
        ):
            make_log().resample(rate)


def test_imu_noise_has_the_asked_size_and_a_seed_repeats_it() -> None:
    log = make_log(20000)
    dt = 1.0 / log.rate
    noise = ImuNoise(gyro_noise=0.01 * dt**0.5, accel_noise=0.2 * dt**0.5, gyro_offset=(0.1, -0.2, 0.3), accel_bias=0.5)
    noisy = log.with_imu_noise(noise, seed=4)
    gyro, accel = noisy.gyro - log.gyro, noisy.accel - log.accel
    np.testing.assert_allclose(gyro.std(axis=0), 0.01, rtol=0.03)
    np.testing.assert_allclose(gyro.mean(axis=0), [0.1, -0.2, 0.3], atol=4e-4)
    np.testing.assert_allclose(accel.std(axis=0), 0.2, rtol=0.03)
    biases = noise.biases(log.t, seed=4)
    np.testing.assert_allclose(accel.mean(axis=0), biases[1][0], atol=8e-3)
    assert np.ptp(biases[1], axis=0).max() == 0.0 and np.abs(biases[1]).max() > 0.01
    assert log.with_imu_noise(noise, seed=4) == noisy
    assert log.with_imu_noise(noise, seed=5) != noisy
    louder = log.with_imu_noise(dataclasses.replace(noise, accel_noise=1.0), seed=4)
    np.testing.assert_array_equal(louder.gyro, noisy.gyro)
    np.testing.assert_array_equal(noisy.q, log.q)
    assert log.with_imu_noise(ImuNoise(), seed=1) == log


def test_bias_walk_grows_with_the_square_root_of_time() -> None:
    noise = ImuNoise(gyro_walk=0.1, accel_walk=2.0)
    t = np.array([0.0, 1.0, 1.5, 4.0])
    runs = np.array([noise.biases(t, seed) for seed in range(2000)])  # (runs, sensor, N, 3)
    spread = runs.std(axis=(0, 3))
    np.testing.assert_allclose(spread, np.sqrt(t) * np.array([[0.1], [2.0]]), rtol=0.05)


@pytest.mark.parametrize(
    "wrong",
    [{"gyro_noise": -1.0}, {"accel_noise": np.nan}, {"gyro_offset": (1.0, 2.0)}, {"accel_offset": (1.0, 2.0, np.inf)}],
)
def test_imu_noise_refuses_nonsense(wrong: dict) -> None:
    with pytest.raises(GaitError, match=f"ImuNoise {next(iter(wrong))} is"):
        ImuNoise(**wrong)


# Quaternions


def test_rotate_equals_matrices() -> None:
    rng = np.random.default_rng(0)
    quat, vector = unit_quaternions(rng, 100), rng.normal(size=(100, 3))
    R = matrices(quat)
    np.testing.assert_allclose(quaternions.rotate(quat, vector), np.einsum("nij,nj->ni", R, vector), atol=1e-14)
    np.testing.assert_allclose(quaternions.rotate_inverse(quat, vector), np.einsum("nji,nj->ni", R, vector), atol=1e-14)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-16, 0), st.floats(0, 1))
def test_slerp_equals_gtsam(seed: int, magnitude: float, part: float) -> None:
    gtsam = needs.package("gtsam")
    rng = np.random.default_rng(seed)
    start = unit_quaternions(rng, 1)
    # From nearly equal to nearly opposite rotations, and with either sign of the quaternion.
    axis = rng.normal(size=3)
    turn = gtsam.Rot3.Expmap(axis / np.linalg.norm(axis) * 10.0**magnitude * 3.1)
    begin = gtsam.Rot3(*start[0])
    quat = begin.compose(turn).toQuaternion()
    end = np.array([[quat.w(), quat.x(), quat.y(), quat.z()]]) * rng.choice([-1.0, 1.0])
    got = quaternions.slerp(start, end, np.array([part]))
    want = begin.compose(gtsam.Rot3.Expmap(part * gtsam.Rot3.Logmap(turn))).matrix()
    np.testing.assert_allclose(matrices(got)[0], want, atol=1e-9)


# Trajectory


def test_trajectory_derives_body_velocity_and_keeps_a_given_one() -> None:
    path = make_trajectory()
    expected = np.einsum("nji,nj->ni", matrices(path.quat_wb_wxyz), path.vel_w)
    np.testing.assert_allclose(path.vel_b, expected, atol=1e-14)
    assert not path.vel_b.flags.writeable
    assert (make_trajectory(vel_b=np.ones((50, 3))).vel_b == 1.0).all()
    assert path.health.dtype == np.uint32 and path.vel_cov.shape == (50, 3, 3)
    one = Trajectory(t=[0.0], quat_wb_wxyz=[[1, 0, 0, 0]], vel_w=[[1, 2, 3]], pos_w=[[0, 0, 0]])
    assert one.vel_b.tolist() == [[1, 2, 3]] and one.vel_cov is None and one.rate == 0.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vel_cov": np.zeros((50, 3))}, r"Trajectory field vel_cov has shape \(50, 3\) but must be \(50, 3, 3\)"),
        ({"health": np.full(50, -1)}, "field health must be whole numbers from 0, but row 0 has -1"),
        ({"health": np.full(50, 2**32)}, "field health must be whole numbers"),
        ({"pos_w": np.full((50, 3), np.nan)}, "field pos_w is nan at row 0"),
        ({"covariance": 1}, "Trajectory has no field 'covariance'"),
        ({"t": []}, "at least 1 are needed"),
    ],
)
def test_trajectory_refuses(wrong: dict, message: str) -> None:
    with pytest.raises(GaitError, match=message):
        make_trajectory(**wrong)


# Documentation


def test_the_documentation_has_every_field_with_its_unit() -> None:
    text = DOCS.read_text(encoding="utf-8")
    log_part, trajectory_part = text.split("## Trajectory", 1)
    for part, fields in ((log_part, Log.FIELDS), (trajectory_part, Trajectory.FIELDS)):
        for field in fields:
            row = re.search(rf"^\| `{field.name}` \|.*$", part, re.MULTILINE)
            assert row, f"docs/log.md lacks {field.name}"
            assert f"| {field.unit} |" in row[0], f"docs/log.md: {field.name} needs the unit {field.unit}"
