"""Messages of robots: what we decode and encode is what general decoders and encoders make of the same bytes."""

import struct

import needs
import numpy as np
import pytest

from gait import Robot
from gait.errors import GaitError
from gait.live import cdr, go1, play
from gait.live.sources import UNITREE_JOINTS, dds_name, unitree_order
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
    found = cdr.decode_imu(data)
    assert found.ns == NS and found.gyro.tolist() == [0.1, 0.2, 0.3] and found.accel.tolist() == [1.0, 2.0, 9.8]
    assert found.gyro.dtype == np.dtype("float64") and found.gyro.dtype.isnative


@pytest.mark.parametrize("frame", ["", "base", "x" * 13])
@pytest.mark.parametrize("little", [True, False])
def test_a_joint_message_is_read_with_whatever_it_has(store, frame: str, little: bool) -> None:  # type: ignore[no-untyped-def]
    t = store.types
    decoder = cdr.JointDecoder()
    for names, effort in ((NAMES, np.arange(3.0)), (NAMES, np.empty(0)), (NAMES[:2], np.ones(2))):
        n = len(names)
        header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](*divmod(NS, 10**9)), frame)
        message = t["sensor_msgs/msg/JointState"](header, list(names), np.arange(n) + 0.5, -np.arange(n * 1.0), effort)
        found = decoder(bytes(store.serialize_cdr(message, "sensor_msgs/msg/JointState", little_endian=little)))
        assert (found.ns, found.names) == (NS, names) and found.q.tolist() == message.position.tolist()
        assert found.dq is not None and found.dq.tolist() == message.velocity.tolist()
        assert (
            (found.tau is None)
            if not len(effort)
            else (found.tau is not None and found.tau.tolist() == effort.tolist())
        )


def test_what_a_played_log_sends_is_what_ros_would_send(store) -> None:  # type: ignore[no-untyped-def]
    gyro, accel = np.arange(3.0), np.arange(3.0) + 5.0
    data = play.encode_imu(NS, gyro, accel)
    message = store.deserialize_cdr(data, "sensor_msgs/msg/Imu")
    assert bytes(store.serialize_cdr(message, "sensor_msgs/msg/Imu")) == data
    assert (message.angular_velocity.z, message.linear_acceleration.x, message.orientation_covariance[0]) == (2, 5, -1)
    for values in ((np.arange(3.0),), (np.arange(3.0), np.ones(3)), (np.arange(3.0), np.ones(3), np.zeros(3))):
        data = play.encode_joints(NS, NAMES, *values)
        message = store.deserialize_cdr(data, "sensor_msgs/msg/JointState")
        assert bytes(store.serialize_cdr(message, "sensor_msgs/msg/JointState")) == data
        assert message.name == list(NAMES) and len(message.velocity) == (3 if len(values) > 1 else 0)


def test_what_is_no_message_is_refused_in_a_sentence() -> None:
    with pytest.raises(GaitError, match="plain CDR"):
        cdr.decode_imu(b"\x00\x03\x00\x00" + bytes(400))
    data = play.encode_joints(NS, NAMES, np.zeros(2), np.zeros(2))
    with pytest.raises(GaitError, match="3 names but 2 positions"):
        cdr.JointDecoder()(data)


def test_topics_of_ros_have_another_name_in_dds() -> None:
    assert [dds_name(name) for name in ("/odom", "odom", "rt/odom", "/a/b", "")] == ["rt/odom"] * 3 + ["rt/a/b", ""]


# Unitree


def test_a_go2_state_and_command_are_those_of_the_general_decoder() -> None:
    needs.package("cyclonedds")
    from gait.live import idl

    row = sample()
    data = play.encode_low_state(row, 77)
    message = idl.LowState.__idl__.deserialize(data)
    assert idl.LowState.__idl__.serialize(message, use_version_2=False) == data, "every byte has its place"
    assert message.imu_state.gyroscope == pytest.approx(row.gyro) and message.motor_state[11].tau_est == row.tau[11]
    for i, motor in enumerate(message.motor_state):
        motor.mode, motor.temperature, motor.lost, motor.ddq, motor.q_raw = 255, 254, 2**32 - 1, 1e9, 1e9
        motor.reserve = [2**32 - 1, 0x7F800001]
        motor.q += 1.0 if i == 3 else 0.0
    assert message.tick == 77
    message.tick, message.imu_state.rpy = 78, [9.0, 9.0, 9.0]
    found = cdr.decode_low_state(idl.LowState.__idl__.serialize(message, use_version_2=False))
    assert np.allclose(found.q, row.q + (np.arange(12) == 3)) and np.array_equal(found.dq, row.dq)
    assert np.array_equal(found.tau, row.tau) and np.array_equal(found.gyro, row.gyro)
    assert np.array_equal(found.accel, row.accel) and found.tick == 78

    data = play.encode_low_cmd(row.q_des)
    command = idl.LowCmd.__idl__.deserialize(data)
    assert idl.LowCmd.__idl__.serialize(command, use_version_2=False) == data
    command.motor_cmd[5].q, command.motor_cmd[6].kp, command.motor_cmd[6].mode = 2.146e9, 60.0, 10
    found_targets = cdr.decode_low_cmd(idl.LowCmd.__idl__.serialize(command, use_version_2=False))
    assert np.isnan(found_targets[5]) and np.array_equal(np.delete(found_targets, 5), np.delete(row.q_des, 5))


def test_the_structs_of_a_go1_have_the_places_that_its_header_gives() -> None:
    # The same fields once more, as C would pack them.
    state = "<2sBB2I2IH" + "4f3f3f3fb" + "BfffffffbII" * 20 + "BBBBiH2b2b10H" + "4h4h" + "I40sII"
    assert struct.calcsize(state) == go1.LOW_STATE.itemsize == 937
    command = "<2sBB2I2IH" + "BfffffIII" * 20 + "B3s" + "40sII"
    assert struct.calcsize(command) == go1.LOW_CMD.itemsize == 734
    row = sample()
    data = play.encode_go1_state(row, 12345)
    values = struct.unpack(state, data)
    assert values[12:15] == pytest.approx(row.gyro) and values[8 + 14 + 11 * 2 + 1] == pytest.approx(row.q[2])
    tick, found = go1.decode_state(data)
    assert tick == 12345
    for name in ("gyro", "accel", "q", "dq", "tau"):
        assert np.array_equal(getattr(found, name), getattr(row, name)), name
    assert np.array_equal(go1.decode_command(play.encode_go1_command(row.q_des)), row.q_des)
    assert np.isnan(go1.decode_command(play.encode_go1_command(np.full(12, 2.146e9)))).all()


def test_motors_are_matched_to_joints_by_name() -> None:
    robot = Robot.load("go1")
    assert [UNITREE_JOINTS[i] for i in unitree_order(robot)] == list(robot.joint_names)


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
