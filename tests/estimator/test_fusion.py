"""Measurements of other sensors on a walk: late ones at their time, outliers, frames, resets, and what they cost when
there are none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import gait
from gait import Estimator, GaitError, Log, State, lie
from gait.arrays import Array
from gait.external import KINDS, Correction, ExternalSensor
from gait.samples import SAMPLE

LEVER = np.array([0.2, 0.05, 0.1])
MOUNTED = lie.quat_from_rotation(lie.so3_exp(np.array([0.1, -0.4, 1.0])))


@pytest.fixture(scope="module")
def walk() -> Log:
    return gait.open_log(SAMPLE).reorder("go1").slice(0.0, 6.0)


def sensor_pose(log: Log, k: int) -> tuple[Array, Array]:
    """True position and orientation of the sensor."""
    R = lie.rotation_from_quat(log.quat_wb_wxyz[k])
    return log.pos_w[k] + R @ LEVER, R @ lie.rotation_from_quat(MOUNTED)


def started(log: Log, method: str = "gait-legs", **settings: float) -> Estimator:
    sensor = ExternalSensor(p_bs=LEVER, quat_bs_wxyz=MOUNTED, **settings)
    est = Estimator.load("go1", method, sensors={"lidar": sensor})
    est.start_as(log)
    return est


def drive(est: Estimator, log: Log, latency: int, each: Callable[[int], Correction | None]) -> Iterator[State]:
    """States of a walk; `each` is called with the row that was `latency` rows ago."""
    for k, row in enumerate(log.rows()):
        est.update(row)
        if k >= latency:
            each(k - latency)
        yield est.predict(row.t)


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_a_late_pose_bounds_the_drift(walk: Log, method: str) -> None:
    """10 Hz, 100 ms late, one in twenty a metre off: errors are those of the pose, and nothing jumps."""
    rng, est, std = np.random.default_rng(0), started(walk, method, std=(0.03, 0.01)), (0.03, 0.01)
    results, jumps, errors, nees = [], [], [], []

    def pose(k: int) -> Correction | None:
        if k % 50:
            return None
        p, R = sensor_pose(walk, k)
        p = p + std[0] * rng.normal(size=3)
        outlier = rng.random() < 0.05
        if outlier:
            p = p + np.array([0.6, -0.8, 0.0])
        before = est.predict(walk.t[k]).vel_b
        R = lie.so3_exp(std[1] * rng.normal(size=3)) @ R
        done = est.correct("pose", walk.t[k], (p, lie.quat_from_rotation(R)), sensor="lidar")
        assert done.taken != outlier, done
        assert (done.test_ratio > 1.0) == outlier
        results.append(done)
        jumps.append(np.linalg.norm(est.predict(walk.t[k]).vel_b - before))
        return done

    for k, state in enumerate(drive(est, walk, 50, pose)):
        error = state.pos_w - walk.pos_w[k]
        errors.append(np.linalg.norm(error))
        nees.append(error @ np.linalg.solve(state.pose_cov[:3, :3], error))
    assert len(results) >= 55
    assert max(jumps) < 0.05
    assert np.sqrt(np.mean(np.square(errors))) < 0.03 and max(errors) < 0.08
    assert 0.5 < np.mean(nees) < 6.0


def test_a_late_measurement_is_taken_as_if_it_had_come_in_time(walk: Log) -> None:
    """Buffer and replay: the state equals that of an estimator which had the measurement at once, bit for bit."""
    late, once = started(walk), started(walk)
    rows = list(walk.rows())[:400]
    p, R = sensor_pose(walk, 301)
    pose = (p + 0.02, lie.quat_from_rotation(R))
    for k, row in enumerate(rows):
        state, other = late.update(row), once.update(row)
        if k == 200:
            # Another sensor's, which came in time, is taken again behind the late one.
            assert late.correct("height", row.t, [0.3], 0.1) and once.correct("height", row.t, [0.3], 0.1)
        if k == 301:
            assert once.correct("pose", row.t, pose, sensor="lidar")
        if k == 380:
            # 0.01 s before the end of the walk so far: taken between the two when they are taken again.
            assert late.correct("velocity_b", row.t, [0.4, 0.0, 0.0], 0.2)
            assert once.correct("velocity_b", row.t, [0.4, 0.0, 0.0], 0.2)
        if k == 390:
            assert not np.array_equal(state.pos_w, other.pos_w)
            assert late.correct("pose", walk.t[301], pose, sensor="lidar")
            np.testing.assert_array_equal(late.predict(row.t).cov, once.predict(row.t).cov)
    np.testing.assert_array_equal(late.update(rows[-1])._row, once.update(rows[-1])._row)


def test_between_two_samples(walk: Log) -> None:
    """At 50 Hz a pose of a moment between two samples corrects by where the robot was then."""
    slow, errors = walk.resample(50.0), []
    est = Estimator.load("go1")
    est.start_as(slow)
    for k, row in enumerate(slow.rows()):
        state = est.update(row)
        if k % 5 == 0 and k > 20:
            i = int(np.searchsorted(walk.t, row.t - 0.0095))
            assert est.correct("pose", walk.t[i], (walk.pos_w[i], walk.quat_wb_wxyz[i]), (1e-3, 1e-3))
            errors.append(np.linalg.norm(state.pos_w - slow.pos_w[k]))
    assert np.median(errors) < 0.004  # a centimetre if it were taken at the sample


def measurements(log: Log, k: int) -> dict[str, Array]:
    """What every kind would be, of base_link."""
    R = lie.rotation_from_quat(log.quat_wb_wxyz[k])
    return {
        "position": log.pos_w[k],
        "velocity_w": log.vel_w[k],
        "velocity_b": R.T @ log.vel_w[k],
        "heading": np.array([np.arctan2(R[1, 0], R[0, 0])]),
        "height": log.pos_w[k, 2:],
        "gravity": 9.81 * R[2],
        "orientation": log.quat_wb_wxyz[k],
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("pose", "zero_velocity")])
def test_every_kind_corrects_what_it_measures(walk: Log, kind: str) -> None:
    """From a wrong start, the error of what is measured becomes a fraction of what it is without."""
    wrong = lie.quat_from_rotation(
        lie.so3_exp(np.array([0.05, -0.05, 0.3])) @ lie.rotation_from_quat(walk.quat_wb_wxyz[0])
    )

    def final(fused: bool) -> float:
        est = Estimator.load("go1", prior=gait.parameters.Prior(rotation=0.1, yaw=0.5, velocity=0.5, position=1.0))
        est.reset(quat_wb_wxyz=wrong, vel_w=[0.3, 0.3, 0.0], pos_w=walk.pos_w[0] + 0.4)
        for k, row in enumerate(walk.rows()):
            state = est.update(row)
            if k == 1000:
                break
            if fused and k % 25 == 0:
                result = est.correct(kind, row.t, measurements(walk, k)[kind], 0.01, "")
                assert result.test_ratio >= 0.0
        truth = measurements(walk, 1000)
        mine = {
            "position": state.pos_w, "velocity_w": state.vel_w, "velocity_b": state.vel_b,
            "heading": np.array([np.arctan2(state.R_wb[1, 0], state.R_wb[0, 0])]), "height": state.pos_w[2:],
            "gravity": 9.81 * state.R_wb[2], "orientation": lie.so3_log(state.R_wb),
        }  # fmt: skip
        wanted = lie.so3_log(lie.rotation_from_quat(truth[kind])) if kind == "orientation" else truth[kind]
        return float(np.linalg.norm(mine[kind] - wanted))

    fused, alone = final(True), final(False)
    # Legs and accelerometer have velocity and vertical right by themselves; the sensor must not spoil them.
    assert fused < (0.2 * alone if kind not in ("velocity_b", "gravity") else max(alone, 0.02) * 1.5)


def test_what_is_rejected_says_why(walk: Log) -> None:
    est, rows = started(walk), list(walk.rows())[:700]
    p, R = sensor_pose(walk, 0)
    pose = (p, lie.quat_from_rotation(R))
    assert est.correct("pose", 0.0, pose, sensor="lidar").message == "the estimator has not started"
    for row in rows:
        est.update(row)
    t = rows[-1].t

    def words(stamp: float, value: object = pose, kind: str = "pose", noise: object = None) -> str:
        before = est.save_state()
        done = est.correct(kind, stamp, value, noise, "lidar")  # type: ignore[arg-type]
        assert not done and est.save_state() == before
        return done.message

    assert "more than 0.5 s old" in words(t - 0.6)
    assert "later than the last sample" in words(t + 0.1)
    assert "not finite" in words(np.nan) and "not finite" in words(t, (p * np.nan, pose[1]))
    assert "not finite" in words(t, (p, 2.0 * pose[1]))
    assert "not finite" in words(t, [1.0], "height", np.array([[-1.0]]))
    assert "outlier" in words(t - 0.3, (p + 100.0, pose[1]))
    assert "out of order" in words(t - 0.4)
    p, R = sensor_pose(walk, 699)
    assert est.correct("pose", t, (p, lie.quat_from_rotation(R)), sensor="lidar")
    for wrong in (
        lambda: est.correct("speed", t, [1.0]),
        lambda: est.correct("pose", t, pose, sensor="radar"),
        lambda: est.correct("position", t, [1.0, 2.0]),
        lambda: est.correct("position", t, [1.0, 2.0, 3.0], np.eye(2)),
        lambda: est.correct("position", t, [1.0, 2.0, 3.0], [0.1, 0.1]),
        lambda: ExternalSensor(quat_bs_wxyz=(2.0, 0.0, 0.0, 0.0)),
        lambda: ExternalSensor(gate=0.0),
    ):
        with pytest.raises(GaitError):
            wrong()


def test_a_world_of_its_own_is_aligned(walk: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Poses in a world that is turned and shifted; positions alone, once the robot has walked far enough."""
    turn, shift = lie.so3_exp(np.array([0.0, 0.0, 2.0])), np.array([30.0, -7.0, 2.0])
    monkeypatch.setattr("gait.external.ALIGN_DISTANCE", 1.0)
    for kind in ("pose", "position"):
        est = Estimator.load("go1", sensors={"far": ExternalSensor(align=True, std=0.02)})
        est.start_as(walk)
        aligned = 0
        for k, row in enumerate(walk.rows()):
            est.update(row)
            if k % 50 == 0 and k:
                p, R = turn @ walk.pos_w[k] + shift, turn @ lie.rotation_from_quat(walk.quat_wb_wxyz[k])
                value = (p, lie.quat_from_rotation(R)) if kind == "pose" else p
                done = est.correct(kind, row.t, value, sensor="far")
                aligned += done.taken
                assert done or done.message.startswith("aligning"), done
                assert done or kind == "position" or k < 250
        assert aligned > 20
        assert np.linalg.norm(est.predict(walk.t[-1]).pos_w - walk.pos_w[-1]) < 0.08


def test_nothing_but_outliers_resets_the_pose(walk: Log) -> None:
    """A robot that was carried while nobody looked: after two seconds its sensor is right, and biases stay."""
    est = started(walk, std=(0.02, 0.02))
    moved, messages = np.array([5.0, 1.0, 0.0]), []
    for k, row in enumerate(walk.rows()):
        est.update(row)
        if k % 50 == 49:
            p, R = sensor_pose(walk, k - 40)
            p = p + (moved if k > 1000 else 0.0)
            messages.append(est.correct("pose", walk.t[k - 40], (p, lie.quat_from_rotation(R)), sensor="lidar").message)
    assert sum("reset" in message for message in messages) == 1
    state = est.predict(walk.t[-1])
    np.testing.assert_allclose(state.pos_w, walk.pos_w[-1] + moved, atol=0.05)
    assert messages[-1] == ""


@pytest.mark.parametrize("method", ["gait-legs", "iekf"])
def test_reset_pose_keeps_velocity_and_biases(walk: Log, method: str) -> None:
    est, rows = Estimator.load("go1", method), list(walk.rows())
    est.start_as(walk)
    for row in rows[:2000]:
        before = est.update(row)
    quat = lie.quat_from_rotation(lie.so3_exp(np.array([0.0, 0.0, 1.5])) @ before.R_wb)
    twin = copy.deepcopy(est)
    est.reset_pose(quat, [10.0, 20.0, 0.3], rotation_std=0.005, position_std=0.04)
    after = est.predict(-np.inf)
    np.testing.assert_allclose(after.quat_wb_wxyz, quat, atol=1e-9)
    np.testing.assert_allclose(after.pos_w, [10.0, 20.0, 0.3], atol=1e-9)
    for name in ("vel_b", "gyro_bias", "accel_bias", "vel_cov"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), atol=1e-9)
    assert np.abs(after.gyro_bias).max() > 1e-4
    np.testing.assert_allclose(np.diag(after.pose_cov)[:3], 0.04**2, rtol=5e-3)  # base_link beside the IMU
    # A turn about the vertical changes nothing of what follows in the body.
    for row in rows[2000:2200]:
        turned, straight = est.update(row), twin.update(row)
    np.testing.assert_allclose(turned.vel_b, straight.vel_b, atol=5e-3)


def test_a_method_in_python_takes_the_present_alone(walk: Log) -> None:
    class Nothing:
        def __init__(self, robot: gait.Robot) -> None: ...

        def reset(self) -> None: ...

        def step(self, sample: gait.Sample, predicted_state: State) -> None: ...

    from gait import methods

    methods.register("nothing", Nothing)
    try:
        est = Estimator.load("go1", "nothing")
        est.start_as(walk)
        for row in list(walk.rows())[:100]:
            est.update(row)
        assert est.correct("height", row.t, [walk.pos_w[99, 2]])
        assert "old" in est.correct("heading", row.t - 0.1, [0.0]).message
    finally:
        del methods.METHODS["nothing"], methods._REGISTERED["nothing"]


def test_imu_and_joints_apart(walk: Log) -> None:
    """The history knows samples that come in parts."""
    late, once = (Estimator.load("go1", sensors={"x": ExternalSensor()}) for _ in range(2))
    rows = list(walk.rows())[:300]
    for k, row in enumerate(rows):
        for est in (late, once):
            est.update_joints(row.t, row.q, row.dq, row.q_des, row.tau)
            state = est.update_imu(row.t, row.gyro, row.accel)
        if k == 200:
            assert once.correct("height", row.t, [0.02], 0.05, "x")
        if k == 260:
            assert late.correct("height", rows[200].t, [0.02], 0.05, "x")
    assert state is not None
    np.testing.assert_array_equal(late.predict(-np.inf)._row, once.predict(-np.inf)._row)


def test_nothing_is_kept_before_the_first_measurement(walk: Log) -> None:
    est = Estimator.load("go1")
    est.start_as(walk)
    rows = list(walk.rows())[:200]
    states = [est.update(row) for row in rows[:100]]
    assert not est._history and est._fusion is None
    # The buffer begins with the first measurement, which must be of the present.
    assert not est.correct("height", rows[50].t, [0.3])
    for row in rows[100:]:
        est.update(row)
    assert est.correct("height", rows[150].t, [states[-1].pos_w[2]])
    assert set(KINDS) >= {"pose", "zero_velocity"}


def test_zero_velocity(walk: Log) -> None:
    est = Estimator.load("go1", prior=gait.parameters.Prior(velocity=0.5))
    robot = est.robot
    est.reset(quat_wb_wxyz=[1.0, 0.0, 0.0, 0.0], vel_w=[0.5, 0.0, 0.0])
    state = est.update(0.0, [0.0, 0.0, 0.0], [0.0, 0.0, 9.81], robot.q_stand, 0.0 * robot.q_stand, robot.q_stand)
    assert state.vel_b[0] > 0.4
    assert est.correct("zero_velocity", 0.0)
    assert abs(est.predict(0.0).vel_b[0]) < 0.05


def test_an_imu_that_is_mounted_askew_does_not_let_poses_spoil_the_velocity(walk: Log) -> None:
    """By 0.03 rad, which every pose shows and gravity contradicts. As a new error in each pose it costs 4 %."""
    askew = lie.so3_exp(np.array([0.03, -0.015, 0.0]))

    def error(fused: bool) -> float:
        est, errors = started(walk, std=(0.03, 0.005)), []
        for k, row in enumerate(walk.rows()):
            state = est.update(row)
            if fused and k % 25 == 0:
                p, R = sensor_pose(walk, k)
                assert est.correct("pose", row.t, (p, lie.quat_from_rotation(R @ askew)), sensor="lidar").taken
                state = est.predict(row.t)
            errors.append(state.vel_b - walk.vel_b[k])
        return float(np.sqrt(np.mean(np.sum(np.square(errors[500:]), axis=1))))

    assert error(fused=True) < 1.035 * error(fused=False)


def test_a_pose_does_not_let_the_velocity_jump(walk: Log) -> None:
    """After 1 s without joints, a pose 0.1 m off: as one correction it would move the velocity by 0.11 m/s."""
    est, jumps, off = started(walk, std=(0.03, 0.01), gate=20.0), [], np.array([0.1, 0.0, 0.0])
    for k, row in enumerate(walk.rows()):
        before = est.update(row._replace(q=np.full(12, np.nan)) if 500 <= k < 1000 else row).vel_b
        if k >= 1000 and k % 50 == 0:
            p, R = sensor_pose(walk, k)
            assert est.correct("pose", row.t, (p + off, lie.quat_from_rotation(R)), sensor="lidar").taken
            jumps.append(float(np.linalg.norm(est.predict(row.t).vel_b - before)))
    assert 0.02 < max(jumps) < 0.05
    assert np.linalg.norm(est.predict(walk.t[-1]).pos_w - walk.pos_w[-1] - off) < 0.01, "later poses do the rest"
