"""ROS conventions, read back by rosbags: covariances in the order and frames of nav_msgs, tf frames, diagnostics."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import needs
import numpy as np
import pytest

from gait import Estimator, Log, Robot, State, lie
from gait.health import FIRST_LEG, Health, HealthReport
from gait.io.ros.diagnostics import ERROR, LEAST_PERIOD, OK, PERIOD, WARN, DiagnosticEncoder, level_of
from gait.io.ros.mcap_writer import write_mcap
from gait.io.ros.odometry import Converter, Encoder
from gait.reference.disagreement import MOUNTING_STD
from gait.samples import SAMPLE

mcap = pytest.importorskip("mcap", reason=needs.extra("mcap"))
rosbags = pytest.importorskip("rosbags.typesys", reason=needs.extra("rosbags.typesys"))


@pytest.fixture(scope="module")
def store() -> "rosbags.store.Typestore":
    return rosbags.get_typestore(rosbags.Stores.ROS2_HUMBLE)


@pytest.fixture(scope="module")
def walked() -> tuple[Log, Robot, State]:
    """A log that turns to another heading, its robot, and the state at its end."""
    log = Log.load(SAMPLE)
    turn = lie.so3_exp(np.array([0.0, 0.0, 1.1]))
    quats = np.array([lie.quat_from_rotation(turn @ lie.rotation_from_quat(quat)) for quat in log.quat_wb_wxyz])
    moved = log.replace(quat_wb_wxyz=quats, vel_w=log.vel_w @ turn.T, pos_w=log.pos_w @ turn.T + [3.0, -2.0, 0.0])
    estimator = Estimator.load("go1", "iekf")
    moved = moved.slice(t1=float(log.t[0]) + 3.0)
    estimator.start_as(moved, "truth")
    for row in moved.rows():
        state = estimator.update(row)
    return moved, estimator.robot, state


def read_back(store: "rosbags.store.Typestore", robot: Robot, state: State, gyro: np.ndarray) -> SimpleNamespace:
    data = Encoder().odometry(123, Converter(robot).of(state, gyro))
    return store.deserialize_cdr(data, "nav_msgs/msg/Odometry")


def test_the_covariance_of_odometry_is_that_of_the_states_the_filter_holds_possible(
    walked: tuple[Log, Robot, State], store: "rosbags.store.Typestore"
) -> None:
    """Draws from the filter's own error, turned into what nav_msgs means: x, y, z and rotation about fixed axes of the
    world, and the twist in the child frame."""
    log, robot, state = walked
    message = read_back(store, robot, state, log.gyro[-1])
    rng = np.random.default_rng(0)
    R_bi, p_bi = lie.rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
    w_b = R_bi @ (log.gyro[-1] - state.gyro_bias)
    R, p = state.R_wb @ R_bi, state.pos_w + state.R_wb @ p_bi
    v = state.vel_w + state.R_wb @ np.cross(w_b, p_bi)
    # Small draws, so that the comparison is of first order; the covariance is scaled back afterwards.
    scale = 0.01
    pose, twist = [], []
    for xi in rng.multivariate_normal(np.zeros(9), state.cov[:9, :9], size=40_000, method="cholesky") * scale:
        turn, (dv, dp) = lie.sek3_exp(-xi)
        R_wb = turn @ R @ R_bi.T
        pos, vel = turn @ p + dp - R_wb @ p_bi, turn @ v + dv - R_wb @ np.cross(w_b, p_bi)
        pose.append(np.concatenate([pos - state.pos_w, lie.so3_log(R_wb @ state.R_wb.T)]))
        twist.append(R_wb.T @ vel - state.vel_b)
    found, claimed = np.cov(np.array(pose).T) / scale**2, np.reshape(message.pose.covariance, (6, 6))
    # How well base_link is known in the IMU joins roll and pitch on the way out.
    found[[3, 4], [3, 4]] += MOUNTING_STD**2
    # The heading is known no better than gyro and legs agree on it.
    found[5, 5] = max(found[5, 5], state.pose_cov[5, 5])
    std = np.sqrt(np.diag(claimed))
    assert np.allclose(found / np.outer(std, std), claimed / np.outer(std, std), atol=0.04), "as correlations"
    velocity = np.reshape(message.twist.covariance, (6, 6))[:3, :3]
    size = np.sqrt(np.outer(np.diag(velocity), np.diag(velocity)))
    # What no measurement shows, latency of joints and a gyro bias that has just changed, joins each axis of the twist.
    beyond = velocity / size - np.cov(np.array(twist).T) / scale**2 / size
    assert np.abs(beyond - np.diag(np.diag(beyond))).max() < 0.04 and np.diag(beyond).min() > -0.04
    assert np.diag(beyond).max() < 0.15


def test_the_heading_is_the_last_axis_and_the_twist_is_in_the_child_frame(
    walked: tuple[Log, Robot, State], store: "rosbags.store.Typestore"
) -> None:
    log, robot, state = walked
    message = read_back(store, robot, state, log.gyro[-1])
    variance = np.diag(np.reshape(message.pose.covariance, (6, 6)))
    assert variance[5] == state.pose_cov[5, 5], "rotation about z of the world comes last"
    forward = message.twist.twist.linear
    world = state.R_wb @ [forward.x, forward.y, forward.z]
    assert np.allclose(world, state.vel_w, atol=1e-12), "turned by the pose it is the velocity in odom"
    assert abs(forward.x - state.vel_w[0]) > 0.1, "which this heading makes another vector"
    rate = message.twist.twist.angular
    R_bi = lie.rotation_from_quat(robot.imu_quat_wxyz)
    assert np.allclose([rate.x, rate.y, rate.z], R_bi @ (log.gyro[-1] - state.gyro_bias))


def test_tf_frames_are_those_of_the_robot(store: "rosbags.store.Typestore") -> None:
    quat = lie.quat_from_rotation(lie.so3_exp(np.array([0.3, -0.2, 2.0])))
    robot = dataclasses.replace(Robot.load("go1"), imu_position=np.array([0.1, -0.2, 0.3]), imu_quat_wxyz=quat)
    data = Encoder("odom", "body").imu_transform(7 * 10**9 + 5, robot)
    (one,) = store.deserialize_cdr(data, "tf2_msgs/msg/TFMessage").transforms
    assert (one.header.frame_id, one.child_frame_id) == ("body", "imu_link")
    assert (one.header.stamp.sec, one.header.stamp.nanosec) == (7, 5)
    translation, rotation = one.transform.translation, one.transform.rotation
    assert [translation.x, translation.y, translation.z] == [0.1, -0.2, 0.3]
    assert np.allclose([rotation.w, rotation.x, rotation.y, rotation.z], quat)


@pytest.mark.parametrize(
    ("bits", "level", "words"),
    [
        (0, OK, "ok"),
        (Health.SLIP, WARN, "foot slips"),
        (Health.STALE_LEG | 1 << (FIRST_LEG + 1), WARN, "leg FL stale"),
        (Health.BAD_IMU | Health.GYRO, ERROR, "gyro not finite"),
        (Health.DIVERGED | Health.SLIP, ERROR, "foot slips, diverged"),
    ],
)
def test_health_becomes_a_level_and_words(bits: int, level: int, words: str, store: "rosbags.store.Typestore") -> None:
    health = HealthReport(int(bits), ("FR", "FL", "RR", "RL"))
    data = DiagnosticEncoder("go1", "gait-legs").encode(5, health)
    message = store.deserialize_cdr(data, "diagnostic_msgs/msg/DiagnosticArray")
    assert bytes(store.serialize_cdr(message, "diagnostic_msgs/msg/DiagnosticArray")) == data
    (status,) = message.status
    assert (status.level, status.message, status.hardware_id) == (level, words, "go1") and level_of(health) == level
    assert status.name == "gait: gait-legs" and not status.values


def test_a_state_adds_figures(walked: tuple[Log, Robot, State], store: "rosbags.store.Typestore") -> None:
    state = walked[2]
    data = DiagnosticEncoder("go1", "iekf").encode(5, state.health, state)
    (status,) = store.deserialize_cdr(data, "diagnostic_msgs/msg/DiagnosticArray").status
    values = {one.key: one.value for one in status.values}
    assert values["resets"] == "0" and values["valid_velocity"] == "True"
    assert float(values["vel_std_x"]) == pytest.approx(state.vel_b_std[0], rel=1e-2)


def test_messages_come_once_a_second_and_at_once_where_health_changes() -> None:
    encoder, fine, slips = DiagnosticEncoder("go1", "iekf"), HealthReport(0), HealthReport(int(Health.SLIP))
    assert encoder.due(0, fine) and not encoder.due(PERIOD - 1, fine) and encoder.due(PERIOD, fine)
    assert not encoder.due(PERIOD + LEAST_PERIOD - 1, slips), "but not more than ten times a second"
    assert encoder.due(PERIOD + LEAST_PERIOD, slips) and not encoder.due(PERIOD + 2 * LEAST_PERIOD, slips)
    assert encoder.due(5, slips), "a clock that was set back"


def test_a_trajectory_in_a_file_has_frames_and_diagnostics(tmp_path: Path, store: "rosbags.store.Typestore") -> None:
    from mcap.reader import make_reader

    log, robot = Log.load(SAMPLE), Robot.load("go1")
    log = log.slice(t1=float(log.t[0]) + 3.0)
    gyro = np.array(log.gyro)
    gyro[700:1000] = gyro[700]
    log = log.replace(gyro=gyro)
    estimate, states = Estimator.load(robot).run_with_details(log)
    write_mcap(tmp_path / "a.mcap", estimate, robot, log.gyro, states=states)
    with (tmp_path / "a.mcap").open("rb") as file:
        found = [(c.topic, s.name, m.data) for s, c, m in make_reader(file).iter_messages()]
    static = [data for topic, _, data in found if topic == "/tf_static"]
    (one,) = store.deserialize_cdr(static[0], "tf2_msgs/msg/TFMessage").transforms
    assert len(static) == 1 and one.header.frame_id == "base_link"
    assert one.transform.translation.y == robot.imu_position[1]
    kinds = {kind for topic, kind, _ in found if topic == "/diagnostics"}
    assert kinds == {"diagnostic_msgs/msg/DiagnosticArray"}
    messages = [store.deserialize_cdr(data, kind) for topic, kind, data in found if topic == "/diagnostics"]
    levels = [message.status[0].level for message in messages]
    assert levels[0] <= WARN and ERROR in levels, "the gyro fails on the way"
    assert "gyro stuck" in messages[levels.index(ERROR)].status[0].message
