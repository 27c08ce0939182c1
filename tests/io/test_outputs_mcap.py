"""MCAP files: the bytes of an independent encoder, numbers that come back, and a file that is whole whenever closed."""

from pathlib import Path

import needs
import numpy as np
import pytest
from log_samples import make_trajectory

from gait import Estimator, Log, Robot
from gait.errors import GaitError
from gait.io.ros import definitions
from gait.io.ros.mcap_writer import McapRecorder, write_mcap
from gait.io.ros.odometry import WIDTH, Converter, Encoder
from gait.samples import SAMPLE

mcap = pytest.importorskip("mcap", reason=needs.extra("mcap"))
rosbags = pytest.importorskip("rosbags.typesys", reason=needs.extra("rosbags.typesys"))


@pytest.fixture(scope="module")
def store() -> "rosbags.store.Typestore":
    return rosbags.get_typestore(rosbags.Stores.ROS2_HUMBLE)


def messages(path: Path) -> list[tuple[str, str, int, bytes]]:
    from mcap.reader import make_reader

    with path.open("rb") as file:
        reader = make_reader(file)
        found = [(c.topic, s.name, m.log_time, m.data) for s, c, m in reader.iter_messages()]
        summary = reader.get_summary()
        assert summary is not None and summary.statistics.message_count == len(found)
    return found


@pytest.mark.parametrize("names", [("odom", "base_link"), ("w", "b"), ("map/odom_frame", "robot/base")])
def test_messages_are_those_of_an_independent_encoder(names: tuple[str, str], store: "rosbags.store.Typestore") -> None:
    values, ns = np.random.default_rng(1).normal(size=WIDTH), 1_700_000_000_123_456_789
    encoder = Encoder(*names)
    for data, kind in ((encoder.odometry(ns, values), "nav_msgs/msg/Odometry"),):
        message = store.deserialize_cdr(data, kind)
        assert bytes(store.serialize_cdr(message, kind)) == data
        assert (message.header.frame_id, message.child_frame_id) == names
        assert (message.header.stamp.sec, message.header.stamp.nanosec) == divmod(ns, 10**9)
        pose, twist = message.pose, message.twist
        assert [pose.pose.position.z, pose.pose.orientation.w] == [values[2], values[6]]
        assert np.array_equal(pose.covariance, values[7:43]) and np.array_equal(twist.covariance, values[49:])
        assert [twist.twist.linear.x, twist.twist.angular.z] == [values[43], values[48]]
    data = encoder.transform(ns, values)
    message = store.deserialize_cdr(data, "tf2_msgs/msg/TFMessage")
    assert bytes(store.serialize_cdr(message, "tf2_msgs/msg/TFMessage")) == data
    (one,) = message.transforms
    assert (one.header.frame_id, one.child_frame_id) == names
    assert [one.transform.translation.x, one.transform.rotation.x] == [values[0], values[3]]


def test_the_definitions_in_a_file_are_those_of_ros(store: "rosbags.store.Typestore") -> None:
    for kind in (
        definitions.IMU,
        definitions.JOINT_STATE,
        definitions.ODOMETRY,
        definitions.TRANSFORMS,
        definitions.DIAGNOSTICS,
        definitions.FEET,
    ):
        text = definitions.full_text(kind)
        parsed = rosbags.get_types_from_msg(text, kind)
        assert len(parsed) == text.count("MSG:") + 1
        for name, definition in parsed.items():
            if name != definitions.FEET:
                assert store.fielddefs[name][1] == definition[1], name


def test_a_trajectory_comes_back_with_covariances(tmp_path: Path, store: "rosbags.store.Typestore") -> None:
    log = Log.load(SAMPLE)
    log = log.slice(t1=float(log.t[0]) + 1.0)
    robot = Robot.load("go1")
    trajectory = Estimator.load(robot).run(log)
    write_mcap(tmp_path / "a.mcap", trajectory, robot, log.gyro)
    found = messages(tmp_path / "a.mcap")
    odometry = [store.deserialize_cdr(data, kind) for topic, kind, _, data in found if topic == "/odom"]
    topics = [topic for topic, *_ in found]
    assert len(odometry) == len(log) == topics.count("/tf") and topics.count("/tf_static") == 1
    assert set(topics) == {"/odom", "/tf", "/tf_static", "/diagnostics"}
    last = odometry[-1]
    assert last.header.stamp.sec + 1e-9 * last.header.stamp.nanosec == pytest.approx(log.t[-1], abs=1e-9)
    assert last.twist.twist.linear.x == trajectory.vel_b[-1, 0] and last.pose.pose.position.y == trajectory.pos_w[-1, 1]
    assert last.pose.pose.orientation.w == trajectory.quat_wb_wxyz[-1, 0]
    twist = np.array(last.twist.covariance).reshape(6, 6)
    assert np.array_equal(twist[:3, :3], trajectory.vel_cov[-1]) and (np.diag(twist) > 0.0).all()
    assert np.array_equal(np.reshape(last.pose.covariance, (6, 6)), trajectory.pose_cov[-1])
    rate = last.twist.twist.angular
    assert np.allclose([rate.x, rate.y, rate.z], log.gyro[-1] - trajectory.gyro_bias[-1], atol=1e-12)


def test_a_state_and_a_row_of_a_trajectory_are_the_same_message() -> None:
    log = Log.load(SAMPLE)
    log = log.slice(t1=float(log.t[0]) + 0.5)
    estimator = Estimator.load("go1")
    rows = Converter(estimator.robot).of(estimator.run(log), log.gyro)
    estimator.start_as(log, "truth")
    converter = Converter(estimator.robot)
    for i, row in enumerate(log.rows()):
        assert np.allclose(converter.of(estimator.update(row), row.gyro), rows[i], rtol=1e-12, atol=1e-15)


def test_closing_early_leaves_a_readable_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), McapRecorder(tmp_path / "a.mcap") as recorder:
        for i in range(2000):
            recorder.write(i * 2_000_000, np.full(WIDTH, float(i)))
        raise KeyboardInterrupt
    assert len(messages(tmp_path / "a.mcap")) == 4000
    recorder.close()


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    path.write_bytes(b"mine")
    with pytest.raises(GaitError, match="exists"):
        McapRecorder(path)
    assert path.read_bytes() == b"mine"
    with pytest.raises(GaitError, match="cannot write"):
        McapRecorder(tmp_path / "none" / "a.mcap")


def test_a_trajectory_without_covariances_can_be_written(tmp_path: Path) -> None:
    trajectory = make_trajectory(vel_cov=None, pose_cov=None)
    write_mcap(tmp_path / "a.mcap", trajectory, Robot.load("go1"))
    topics = [topic for topic, *_ in messages(tmp_path / "a.mcap")]
    assert topics.count("/odom") == topics.count("/tf") == len(trajectory)
