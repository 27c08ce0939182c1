"""Messages of robots: what we decode and encode is what general decoders and encoders make of the same bytes."""

import re
import struct

import needs
import numpy as np
import pytest

from gait import Robot
from gait.io.ros import messages
from gait.io.ros.definitions import IMU, JOINT_STATE
from gait.io.ros.messages import UNITREE_JOINTS, FieldReader
from gait.live import go1, play
from gait.live.ignored import Ignored
from gait.live.sources import RosSource, UnitreeSamples, dds_name, unitree_order
from gait.log.sample import Sample

NAMES = ("FR_hip_joint", "a", "longer/name_of_a_joint")
NS = 1_700_000_000_123_456_789


def sample(seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    # Unitree's messages are float32.
    numbers = [rng.normal(size=n).astype(np.float32).astype(np.float64) for n in (3, 3, 12, 12, 12, 12)]
    gyro, accel, q, dq, q_des, tau = numbers
    return Sample(1.0, gyro, accel, q, dq, q_des, tau)


# ROS


@pytest.fixture(scope="module")
def store():  # type: ignore[no-untyped-def]
    typesys = needs.package("rosbags.typesys")
    return typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)


def ros_imu(store, frame: str):  # type: ignore[no-untyped-def]
    t = store.types
    rng = np.random.default_rng(1)
    stamp = t["builtin_interfaces/msg/Time"](*divmod(NS, 10**9))
    vector = t["geometry_msgs/msg/Vector3"]
    return t["sensor_msgs/msg/Imu"](
        t["std_msgs/msg/Header"](stamp, frame),
        t["geometry_msgs/msg/Quaternion"](*rng.normal(size=4)),
        rng.normal(size=9),
        vector(0.1, 0.2, 0.3),
        rng.normal(size=9),
        vector(1.0, 2.0, 9.8),
        rng.normal(size=9),
    )


@pytest.mark.parametrize("frame", ["", "imu", "imu_link_of_the_robot"])
@pytest.mark.parametrize("little", [True, False])
def test_an_imu_message_is_read(store, frame: str, little: bool) -> None:  # type: ignore[no-untyped-def]
    data = bytes(store.serialize_cdr(ros_imu(store, frame), "sensor_msgs/msg/Imu", little_endian=little))
    found, layout = FieldReader(IMU, "imu").read(data)
    assert layout.stamp(data) == NS
    assert found["gyro"].tolist() == [0.1, 0.2, 0.3] and found["accel"].tolist() == [1.0, 2.0, 9.8]
    assert found["gyro"].dtype == np.dtype("float64") and found["gyro"].dtype.isnative


@pytest.mark.parametrize("frame", ["", "base", "x" * 13])
@pytest.mark.parametrize("little", [True, False])
def test_a_joint_message_is_read_with_whatever_it_has(store, frame: str, little: bool) -> None:  # type: ignore[no-untyped-def]
    t = store.types
    decoder = FieldReader(JOINT_STATE, "joints")
    for names, effort in ((NAMES, np.arange(3.0)), (NAMES, np.empty(0)), (NAMES[:2], np.ones(2))):
        n = len(names)
        header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](*divmod(NS, 10**9)), frame)
        message = t["sensor_msgs/msg/JointState"](header, list(names), np.arange(n) + 0.5, -np.arange(n * 1.0), effort)
        data = bytes(store.serialize_cdr(message, "sensor_msgs/msg/JointState", little_endian=little))
        found, layout = decoder.read(data)
        assert (layout.stamp(data), layout.texts["name"]) == (NS, names)
        assert found["q"].tolist() == message.position.tolist() and found["dq"].tolist() == message.velocity.tolist()
        assert found["tau"].tolist() == effort.tolist()
        assert decoder.read(data)[1] is layout, "the layout of a shape is found once"


@pytest.mark.parametrize("little", [True, False])
def test_messages_of_xcdr2_are_aligned_to_four(store, little: bool) -> None:  # type: ignore[no-untyped-def]
    order, name = ("<" if little else ">"), b"a\0"
    data = struct.pack(f"{order}iII4s", 5, 6, 1, b"\0\0\0\0") + struct.pack(f"{order}II4s", 1, 2, name + b"\0\0")
    # Numbers begin right behind their count, at a multiple of four that is none of eight.
    data += struct.pack(f"{order}Id", 1, 0.5) + struct.pack(f"{order}II", 0, 0)
    found, layout = FieldReader(JOINT_STATE, "joints").read(bytes([0, 7 if little else 6, 0, 0]) + data)
    assert layout.texts["name"] == ("a",) and found["q"].tolist() == [0.5]


def test_what_a_played_log_sends_is_what_ros_would_send(store) -> None:  # type: ignore[no-untyped-def]
    gyro, accel = np.arange(3.0), np.arange(3.0) + 5.0
    data = messages.encode_imu(NS, gyro, accel)
    message = store.deserialize_cdr(data, "sensor_msgs/msg/Imu")
    assert bytes(store.serialize_cdr(message, "sensor_msgs/msg/Imu")) == data
    assert (message.angular_velocity.z, message.linear_acceleration.x, message.orientation_covariance[0]) == (2, 5, -1)
    for values in ((np.arange(3.0),), (np.arange(3.0), np.ones(3)), (np.arange(3.0), np.ones(3), np.zeros(3))):
        data = messages.encode_joints(NS, NAMES, *values)
        message = store.deserialize_cdr(data, "sensor_msgs/msg/JointState")
        assert bytes(store.serialize_cdr(message, "sensor_msgs/msg/JointState")) == data
        assert message.name == list(NAMES) and len(message.velocity) == (3 if len(values) > 1 else 0)


class Network:
    """A node whose topics hold what a test puts there."""

    domain = 0

    def __init__(self, **topics: bytes) -> None:
        self.topics = topics

    def reader(self, topic: str, kind: object) -> "Network.Topic":
        return self.Topic(topic, [(self.topics[topic], NS)])

    def wait(self, timeout: float) -> None:
        """Nothing to wait for."""

    class Topic:
        def __init__(self, topic: str, messages: list[tuple[bytes, int]]) -> None:
            self.topic, self.messages, self.count = topic, messages, len(messages)

        def take(self, most: int = 0) -> list[tuple[bytes, int]]:
            return self.messages


def test_what_is_no_message_is_ignored_and_told_in_a_sentence() -> None:
    pytest.importorskip("cyclonedds", reason="the extra `live` is not installed")
    from gait.live.sources import Topics

    imu, robot = messages.encode_imu(NS, np.zeros(3), np.zeros(3)), Robot.load("go1")

    def refused(imu: bytes, joints: bytes, words: str) -> None:
        source = RosSource(Network(imu=imu, joints=joints), robot, Topics("imu", "joints"))  # type: ignore[arg-type]
        for _ in range(3):
            list(source.poll(0.0))
        (told,) = source.ignored.news()
        assert re.search(words, told) and "3 ignored on" in source.status()
        assert source.ignored.news() == [], "a reason is told once"

    good = messages.encode_joints(NS, robot.joint_names, np.zeros(12), np.zeros(12))
    refused(b"\x00\x03\x00\x00" + imu[4:], good, "cannot be read as sensor_msgs/msg/Imu: it is not in plain CDR")
    refused(imu[:-8], good, "cannot be read as sensor_msgs/msg/Imu: the message is too short")
    refused(imu + imu, good, "another version of sensor_msgs/msg/Imu")
    refused(imu, messages.encode_joints(NS, NAMES, np.zeros(2), np.zeros(2)), "3 names but 2 positions")
    refused(imu, messages.encode_joints(NS, robot.joint_names, np.zeros(12)), "joints has no velocities")
    gripper = messages.encode_joints(NS, ("left_finger", "right_finger"), np.zeros(2), np.zeros(2))
    refused(imu, gripper, "ignored on joints: the robot has 12 joints but the log has 2")
    refused(
        messages.encode_imu(-(10**18), np.zeros(3), np.zeros(3)), good, "ignored on imu: its stamp of -1e.09 s is no"
    )


def test_a_gripper_on_the_same_topic_does_not_stop_the_robot() -> None:
    needs.package("cyclonedds")
    from gait.live.sources import Topics

    robot, stamps = Robot.load("go1"), [NS + i * 2_000_000 for i in range(4)]
    source = RosSource(Network(imu=b"", joints=b""), robot, Topics("imu", "joints"))  # type: ignore[arg-type]
    imu = [(messages.encode_imu(ns, np.zeros(3), np.ones(3)), ns) for ns in stamps]
    legs = [(messages.encode_joints(ns, robot.joint_names, np.full(12, 0.5), np.zeros(12)), ns) for ns in stamps]
    gripper = [(messages.encode_joints(ns, ("left_finger",), np.ones(1), np.ones(1)), ns) for ns in stamps]
    both = [one for pair in zip(legs, gripper, strict=True) for one in pair]
    source._imu.messages, source._joints.messages = imu, both  # type: ignore[attr-defined]
    arrivals = list(source.poll(0.0))
    assert [arrival.ns for arrival in arrivals] == stamps
    assert all((arrival.sample.q == 0.5).all() for arrival in arrivals)
    assert source.ignored.counts == {"joints": 4}


def test_random_senders_find_no_end_of_reasons_but_few_are_told() -> None:
    ignored = Ignored()
    for i in range(1000):
        ignored.add("rt/imu", f"reason {i}")
    assert len(ignored.news()) == 8 and ignored.words() == "1000 ignored on rt/imu"


def test_topics_of_ros_have_another_name_in_dds() -> None:
    assert [dds_name(name) for name in ("/odom", "odom", "rt/odom", "/a/b", "")] == ["rt/odom"] * 3 + ["rt/a/b", ""]


# Unitree


def test_a_go2_state_and_command_are_those_of_the_general_decoder() -> None:
    needs.package("cyclonedds")
    from gait.live import idl

    state, order = (idl.raw(f"unitree_go/msg/{name}").__idl__ for name in ("LowState", "LowCmd"))
    row, samples = sample(), UnitreeSamples("unitree_go", Robot.load("go2"))
    data = play.encode_state("unitree_go", row, 77)
    message = state.deserialize(data)
    assert state.serialize(message, use_version_2=False) == data, "every byte has its place"
    assert message.imu_state.gyroscope == pytest.approx(row.gyro) and message.motor_state[11].tau_est == row.tau[11]
    for i, motor in enumerate(message.motor_state):
        motor.mode, motor.temperature, motor.lost, motor.ddq, motor.q_raw = 255, 254, 2**32 - 1, 1e9, 1e9
        motor.reserve = [2**32 - 1, 0x7F800001]
        motor.q += 1.0 if i == 3 else 0.0
    assert message.tick == 77
    message.tick, message.imu_state.rpy = 78, [9.0, 9.0, 9.0]
    found = samples.state(state.serialize(message, use_version_2=False))
    assert np.allclose(found["q"], row.q + (np.arange(12) == 3)) and np.array_equal(found["dq"], row.dq)
    assert np.array_equal(found["tau"], row.tau) and np.array_equal(found["gyro"], row.gyro)
    assert np.array_equal(found["accel"], row.accel) and found["tick"] == 78

    data = play.encode_command("unitree_go", row.q_des)
    command = order.deserialize(data)
    assert order.serialize(command, use_version_2=False) == data
    command.motor_cmd[5].q, command.motor_cmd[6].kp, command.motor_cmd[6].mode = 2.146e9, 60.0, 10
    found_targets = samples.target(order.serialize(command, use_version_2=False))
    assert np.isnan(found_targets[5]) and np.array_equal(np.delete(found_targets, 5), np.delete(row.q_des, 5))


def test_the_structs_of_a_go1_have_the_places_that_its_header_gives() -> None:
    # The same fields once more, as C would pack them.
    state = "<2sBB2I2IH" + "4f3f3f3fb" + "BfffffffbII" * 20 + "BBBBiH2b2b10H" + "4h4h" + "I40sII"
    assert struct.calcsize(state) == go1.size_of("LowState") == 937
    command = "<2sBB2I2IH" + "BfffffIII" * 20 + "B3s" + "40sII"
    assert struct.calcsize(command) == go1.size_of("LowCmd") == 734
    row, samples = sample(), UnitreeSamples(go1.SDK, Robot.load("go1"), packed=True)
    data = play.encode_state(go1.SDK, row, 12345)
    values = struct.unpack(state, data)
    assert values[12:15] == pytest.approx(row.gyro) and values[8 + 14 + 11 * 2 + 1] == pytest.approx(row.q[2])
    found = samples.state(data)
    assert found["tick"] == 12345
    for name in ("gyro", "accel", "q", "dq", "tau"):
        assert np.array_equal(found[name], getattr(row, name)), name
    assert np.array_equal(samples.target(play.encode_command(go1.SDK, row.q_des)), row.q_des)
    assert np.isnan(samples.target(play.encode_command(go1.SDK, np.full(12, 2.146e9)))).all()
    state, second = samples.state(data), 1_000_000_000
    assert samples.sample(state, 0, 0).q_des is None, "before the first command"
    samples.command(0, play.encode_command(go1.SDK, row.q_des))
    assert samples.sample(state, 0, None).q_des is None
    assert np.array_equal(samples.sample(state, 0, second // 10).q_des, row.q_des)
    assert np.isnan(samples.sample(state, 0, second).q_des).all(), "a command does not hold for ever"


def test_motors_are_matched_to_joints_by_name() -> None:
    robot = Robot.load("go1")
    assert [UNITREE_JOINTS[i] for i in unitree_order("unitree_go", robot)] == list(robot.joint_names)


def test_ticks_become_stamps_whatever_their_unit() -> None:
    start = 5_000_000_000
    for unit, step in ((1_000, 2_000), (1_000_000, 2)):
        clock = go1.TickClock()
        tick = 2**32 - 50 * step
        stamps = [clock.stamp((tick + i * step) % 2**32, start + i * 2_000_000 + i % 3 * 70_000) for i in range(300)]
        assert clock.unit == unit
        assert set(np.diff(stamps[go1.TickClock.PACKETS :])) == {2_000_000}, "no jitter, and no jump where it wraps"
    still = go1.TickClock()
    stamps = [still.stamp(0, start + i * 2_000_000) for i in range(200)]
    assert stamps[-1] == start + 199 * 2_000_000, "a tick that stands still is not used"
