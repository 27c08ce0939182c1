"""Bags written by rosbags and mcap and read by gait: what is in them comes back, and what was guessed is said."""

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bags import EPOCH, Make, Message, messages_of, smooth_walk, store, write_plain_mcap, write_ros1, write_ros2
from rosbags.highlevel import AnyReader

from gait import GaitError, Log, open_log
from gait.io import Reading, ReadOptions, read
from gait.read_options import NONE

EXACT = ("gyro", "accel", "q", "dq", "q_des", "tau", "pos_w")
FORMS = ("ros1", "sqlite3", "mcap", "plain mcap", "ros1 mcap")


@pytest.fixture(scope="module")
def log() -> Log:
    return smooth_walk(0.3)


def make_for(form: str) -> Make:
    return Make(ros1=form.startswith("ros1"))


def write(form: str, folder: Path, messages: list[Message]) -> Path:
    """A bag of one of the forms; small chunks, so that there are several."""
    if form == "ros1":
        return write_ros1(folder / "walk.bag", messages, chunk=1 << 15)
    if "mcap" in form and form != "mcap":
        return write_plain_mcap(folder / "walk.mcap", messages, ros1=form == "ros1 mcap", chunk=1 << 15)
    return write_ros2(folder / "walk", messages, mcap=form == "mcap")


def said(reading: Reading, words: str) -> bool:
    return any(re.search(words, note) for note in reading.notes)


# What comes back


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_bag_gives_the_log_back(form: str, log: Log, tmp_path: Path) -> None:
    path = write(form, tmp_path, messages_of(log, make_for(form)))
    reading = read(path)
    found = reading.log
    for name in EXACT:
        np.testing.assert_array_equal(getattr(found, name), getattr(log, name), err_msg=name)
    np.testing.assert_allclose(found.vel_w, log.vel_w, atol=1e-12)
    np.testing.assert_allclose(found.t, EPOCH / 1e9 + log.t, atol=3e-7)
    assert found.joint_names == log.joint_names and found.has_truth
    assert said(reading, "time: stamps of the headers") and said(reading, "so go1 is taken")
    assert {stream.used for stream in reading.streams} == {"imu", "joints", "targets", "truth"}
    assert all(stream.count == len(log) for stream in reading.streams)


@pytest.mark.parametrize("form", ["sqlite3", "mcap"])
def test_a_file_out_of_its_folder_is_read_whatever_it_is_called(form: str, log: Log, tmp_path: Path) -> None:
    folder = write(form, tmp_path, messages_of(log, Make()))
    inside = next(path for path in folder.iterdir() if path.suffix != ".yaml")
    lone = tmp_path / "some #odd%20 name.bin"
    shutil.copy(inside, lone)
    assert len(open_log(lone)) == len(log)
    (folder / "metadata.yaml").unlink()
    assert len(open_log(folder)) == len(log)


def test_a_bag_in_parts_is_put_together_and_a_missing_part_is_told(log: Log, tmp_path: Path) -> None:
    messages = messages_of(log, Make())
    half = len(messages) // 2
    first, second = write_ros2(tmp_path / "a", messages[:half]), write_ros2(tmp_path / "b", messages[half:])
    shutil.copy(second / "b.db3", first / "b.db3")
    metadata = yaml.safe_load((first / "metadata.yaml").read_text())
    metadata["rosbag2_bagfile_information"]["relative_file_paths"] = ["a.db3", "b.db3", "c.db3"]
    (first / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    reading = read(first)
    assert len(reading.log) == len(log)
    assert said(reading, "c.db3 is missing")


@pytest.mark.parametrize("mode", ["FILE", "MESSAGE"])
def test_compressed_bags_are_read(mode: str, log: Log, tmp_path: Path) -> None:
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    writer = Writer(tmp_path / "walk", version=9, storage_plugin=StoragePlugin.SQLITE3)
    writer.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with writer:
        connections: dict[str, Any] = {}
        for topic, ns, message in messages_of(log, Make()):
            kind = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store())
            writer.write(connections[topic], ns, store().serialize_cdr(message, kind))
    np.testing.assert_array_equal(open_log(tmp_path / "walk").q, log.q)


@pytest.mark.parametrize("kind", ["BZ2", "LZ4"])
def test_compressed_ros1_bags_are_read(kind: str, log: Log, tmp_path: Path) -> None:
    from rosbags.rosbag1 import Writer

    writer = Writer(tmp_path / "walk.bag")
    writer.set_compression(Writer.CompressionFormat[kind])
    with writer:
        connections: dict[str, Any] = {}
        for topic, ns, message in messages_of(log, Make(True)):
            msgtype = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, msgtype, typestore=store(True))
            writer.write(connections[topic], ns, store(True).serialize_ros1(message, msgtype))
    np.testing.assert_array_equal(open_log(tmp_path / "walk.bag").q, log.q)


def test_old_bags_without_definitions_are_read(log: Log, tmp_path: Path) -> None:
    folder = write_ros2(tmp_path / "walk", messages_of(log, Make()))
    with sqlite3.connect(folder / "walk.db3") as base:
        base.execute("DROP TABLE message_definitions")
    np.testing.assert_array_equal(open_log(folder).tau, log.tau)


def test_what_gait_writes_other_libraries_read(log: Log, tmp_path: Path) -> None:
    from mcap.reader import make_reader

    for small in (False, True):
        path = tmp_path / f"walk{small}.mcap"
        log.save(path, compress=small)
        with AnyReader([path]) as reader:
            rows = dict.fromkeys(reader.topics, 0)
            for connection, ns, raw in reader.messages():
                message: Any = reader.deserialize(raw, connection.msgtype)
                i = rows[connection.topic]
                rows[connection.topic] += 1
                assert ns == round(log.t[i] * 1e9) == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
                if connection.topic == "/joint_states":
                    np.testing.assert_array_equal(message.position, log.q[i])
                    np.testing.assert_array_equal(message.effort, log.need("tau")[i])
                    assert tuple(message.name) == log.joint_names
                if connection.topic == "/imu/data":
                    assert message.angular_velocity.z == log.gyro[i, 2]
                    assert message.orientation_covariance[0] == -1.0, "there is no orientation"
                if connection.topic == "/ground_truth/odom":
                    assert message.pose.pose.orientation.w == log.need("quat_wb_wxyz")[i, 0]
                    assert message.twist.twist.linear.x == pytest.approx(log.vel_b[i, 0], abs=1e-9)
        assert set(rows.values()) == {len(log)}
        with path.open("rb") as file:
            assert sum(1 for _ in make_reader(file).iter_messages()) == len(log) * len(rows)


def test_a_log_survives_mcap(tmp_path: Path) -> None:
    from log_samples import make_log

    log = make_log(joint_names=None, contact=np.random.default_rng(0).random((50, 4)) < 0.5)
    log.save(tmp_path / "log.mcap")
    reading = read(tmp_path / "log.mcap")
    found = reading.log
    for name in (*EXACT, "contact"):
        np.testing.assert_array_equal(getattr(found, name), getattr(log, name), err_msg=name)
    np.testing.assert_allclose(found.foot_vel_w, log.foot_vel_w, rtol=1e-6)
    np.testing.assert_allclose(found.vel_w, log.vel_w, atol=1e-8)
    assert (found.robot, found.source) == (log.robot, log.source)
    assert reading.notes == ("time: stamps of the headers",)


# Names


@pytest.mark.parametrize("form", FORMS)
def test_other_names_in_another_order_are_mapped(form: str, log: Log, tmp_path: Path) -> None:
    legs, joints = {"FL": "LF", "FR": "RF", "RL": "LH", "RR": "RH"}, {"hip": "HAA", "thigh": "HFE", "calf": "KFE"}
    order = [log.joint_names.index(f"{leg}_{joint}_joint") for leg in legs for joint in joints]
    names = [f"{leg}_{joint}" for leg in legs.values() for joint in joints.values()]
    messages = messages_of(log, make_for(form), order=order, names=names, imu="/sensors/imu", truth="/vicon/go1/odom")
    reading = read(write(form, tmp_path, messages))
    np.testing.assert_array_equal(reading.log.q, log.q)
    np.testing.assert_array_equal(reading.log.q_des, log.q_des)
    assert said(reading, "/joint_states: joints matched by what their names mean, such as RF_HAA for FR_hip_joint")


def test_joints_that_nobody_can_name_are_asked_for(log: Log, tmp_path: Path) -> None:
    names = [f"m{i}" for i in range(12)]
    path = write("plain mcap", tmp_path, messages_of(log, Make(), names=names))
    with pytest.raises(GaitError, match=r"/joint_states: cannot tell which joint is FR_hip_joint") as refusal:
        read(path)
    typed = re.search("--joint-names '(.*)'", str(refusal.value))
    assert typed is not None
    np.testing.assert_array_equal(open_log(path, ReadOptions(joint_names=typed[1])).q, log.q)


def test_joints_without_names_are_taken_in_the_order_one_gives(log: Log, tmp_path: Path) -> None:
    path = write("sqlite3", tmp_path, messages_of(log, Make(), names=[]))
    with pytest.raises(GaitError, match="--joint-names 'joint_0=FR_hip_joint,"):
        read(path)
    found = open_log(path, ReadOptions(joint_names=",".join(reversed(log.joint_names))))
    np.testing.assert_array_equal(found.q, log.q[:, ::-1])


def test_an_arm_beside_the_legs_is_left_out(log: Log, tmp_path: Path) -> None:
    make = Make()
    messages = messages_of(log, make, targets=None)
    for i in range(1, len(messages), 3):
        topic, ns, state = messages[i]
        arm = make.joints(
            ns, ["arm_1", *state.name], [9.0, *state.position], [9.0, *state.velocity], [9.0, *state.effort]
        )
        messages[i] = (topic, ns, arm)
        messages.append((topic, ns + 1000, make.joints(ns, ["gripper"], [0.1])))
    reading = read(write("plain mcap", tmp_path, sorted(messages, key=lambda one: one[1])))
    np.testing.assert_array_equal(reading.log.q, log.q)
    assert reading.log.q_des is None
    assert said(reading, "1 more left out") and said(reading, "150 messages name other joints")


def test_legs_that_come_one_by_one_are_put_together(log: Log, tmp_path: Path) -> None:
    make = Make()
    messages = [one for one in messages_of(log, make) if one[0] != "/joint_states"]
    for i, t in enumerate(log.t):
        ns = EPOCH + round(t * 1e9)
        for leg in range(4):
            part = slice(3 * leg, 3 * leg + 3)
            state = make.joints(ns, log.joint_names[part], log.q[i, part], log.dq[i, part])
            messages.append(("/joint_states", ns + leg, state))
    reading = read(write("plain mcap", tmp_path, sorted(messages, key=lambda one: one[1])))
    assert said(reading, "joints come in 4 kinds of message")
    np.testing.assert_array_equal(reading.log.q, log.q)


# Topics


def test_several_topics_are_asked_for_with_the_words_to_type(log: Log, tmp_path: Path) -> None:
    make = Make()
    messages = messages_of(log, make, imu="/front/imu")
    messages += [
        ("/rear/imu", ns, make.imu(ns, [9, 9, 9], [0, 0, 9])) for topic, ns, _ in messages if topic == "/front/imu"
    ]
    path = write("plain mcap", tmp_path, messages)
    with pytest.raises(GaitError, match=r"2 topics for imu: choose with --imu /front/imu or --imu /rear/imu$"):
        read(path)
    np.testing.assert_array_equal(open_log(path, ReadOptions(imu="front/imu")).gyro, log.gyro)
    assert open_log(path, ReadOptions(imu="/rear/imu")).gyro[0, 0] == 9.0
    with pytest.raises(GaitError, match=r"has no topic /rear_imu with messages: did you mean --imu /rear/imu\?"):
        read(path, ReadOptions(imu="/rear_imu"))
    with pytest.raises(GaitError, match="/joint_states holds sensor_msgs/msg/JointState, which tells nothing of imu"):
        read(path, ReadOptions(imu="/joint_states"))


def test_odd_names_are_found_by_type_and_commands_by_what_the_name_says(log: Log, tmp_path: Path) -> None:
    messages = messages_of(log, Make(), imu="/x/y", joints="/q", targets="/low_level/desired_joints", truth="/z")
    path = write("sqlite3", tmp_path, messages)
    reading = read(path)
    np.testing.assert_array_equal(reading.log.q_des, log.q_des)
    # An odometry may be anybody's estimate, and gait's own is one.
    assert not reading.log.has_truth
    assert said(reading, "no topic is named as ground truth; /z may be an estimate: --truth /z if it is the truth")
    assert read(path, ReadOptions(truth="/z")).log.has_truth
    bare = read(path, ReadOptions(truth=NONE, targets=NONE)).log
    assert bare.q_des is None and not bare.has_truth


def test_a_bag_without_an_imu_says_what_it_has(log: Log, tmp_path: Path) -> None:
    messages = [one for one in messages_of(log, Make()) if one[0] == "/ground_truth"]
    with pytest.raises(GaitError, match=r"has no imu: sensor_msgs/Imu .* needed, but it has /ground_truth \(nav_msgs"):
        read(write("plain mcap", tmp_path, messages))


# Clocks


@pytest.mark.parametrize("form", FORMS)
def test_without_stamps_the_time_of_recording_serves(form: str, log: Log, tmp_path: Path) -> None:
    path = write(form, tmp_path, messages_of(log, make_for(form), stamped=False))
    reading = read(path)
    assert said(reading, r"time: when messages were recorded \(the headers have none\)")
    np.testing.assert_allclose(reading.log.t, EPOCH / 1e9 + log.t, atol=3e-7)
    np.testing.assert_array_equal(reading.log.q, log.q)
    with pytest.raises(GaitError, match="no stamps in its headers: give --time message"):
        read(path, ReadOptions(time="header"))


def test_headers_on_another_clock_are_used_if_all_are_on_it(log: Log, tmp_path: Path) -> None:
    late = 3_600_000_000_000
    messages = [(topic, ns + late, message) for topic, ns, message in messages_of(log, Make())]
    path = write("plain mcap", tmp_path, messages)
    assert open_log(path).t[0] == pytest.approx(EPOCH / 1e9, abs=1e-6)
    assert open_log(path, ReadOptions(time="message")).t[0] == pytest.approx(EPOCH / 1e9 + 3600, abs=1e-6)


def test_headers_that_disagree_are_not_used(log: Log, tmp_path: Path) -> None:
    make = Make()
    messages = messages_of(log, make, truth=None)
    for i, (topic, ns, _) in enumerate(messages):
        if topic == "/imu/data":
            messages[i] = (topic, ns, make.imu(ns - EPOCH + 5 * 10**9, [0, 0, 0], [0, 0, 9.81]))
    reading = read(write("plain mcap", tmp_path, messages))
    assert said(reading, r"time: when messages were recorded \(the headers disagree\)")
    np.testing.assert_array_equal(reading.log.q, log.q)


def mixed(log: Log, make: Make, offset: float = 0.0) -> list[Message]:
    """IMU at 500 Hz, joints at 400 Hz, poses at 100 Hz on a clock that is off by so much."""
    found: list[Message] = []
    for i, t in enumerate(log.t):
        ns = EPOCH + round(t * 1e9)
        found.append(("/imu", ns, make.imu(ns, log.gyro[i], log.accel[i])))
        if i % 5 == 0:
            ns = EPOCH + round((t + 0.0007) * 1e9)
            late = ns + round(offset * 1e9)
            found.append(("/vicon/go1", ns, make.pose(late, log.need("pos_w")[i], log.need("quat_wb_wxyz")[i])))
    for t in np.arange(0.0005, log.t[-1], 0.0025):
        ns = EPOCH + round(t * 1e9)
        q = np.tile([0.0, 0.8, -1.5], 4) + 0.2 * np.sin(10.0 * t + np.arange(12))
        found.append(("/joint_states", ns, make.joints(ns, log.joint_names, q)))
    return sorted(found, key=lambda one: one[1])


def test_rates_that_differ_are_put_on_one_clock(tmp_path: Path) -> None:
    log = smooth_walk(2.0)
    reading = read(write("plain mcap", tmp_path, mixed(log, Make())))
    found = reading.log
    rows = np.searchsorted(log.t, found.t - EPOCH / 1e9 - 1e-4)
    np.testing.assert_array_equal(found.gyro, log.gyro[rows])
    np.testing.assert_allclose(found.q, log.q[rows], atol=2e-4)
    inner = slice(20, -20)
    np.testing.assert_allclose(found.dq[inner], log.dq[rows][inner], atol=0.02)
    np.testing.assert_allclose(found.vel_w[inner], log.vel_w[rows][inner], atol=0.01)
    # Poses are stamped 0.7 ms late, at half a metre a second.
    np.testing.assert_allclose(found.pos_w[inner], log.pos_w[rows][inner], atol=1e-3)
    assert said(reading, "/joint_states at 400 Hz interpolated to the stamps of /imu at 500 Hz")
    assert said(reading, "/vicon/go1 at 100 Hz interpolated") and said(reading, "velocity from positions")
    assert said(reading, "no joint velocities, so they come from the angles")


@pytest.mark.parametrize("offset", [0.137, -0.42, 25.0])
def test_a_constant_offset_of_the_truth_is_found(offset: float, tmp_path: Path) -> None:
    log = smooth_walk(8.0)
    path = write("plain mcap", tmp_path, mixed(log, Make(), offset))
    reading = read(path, ReadOptions(align_clock=True, time="header"))
    note = next(note for note in reading.notes if "was aligned" in note)
    found = float(re.search("by ([0-9.]+) ms", note)[1]) / 1e3  # type: ignore[index]
    assert ("ahead" in note) == (offset > 0)
    # Poses are stamped 0.7 ms late on purpose: that is found too.
    assert found == pytest.approx(abs(offset + 0.0007), abs=1e-3)
    rows = np.searchsorted(log.t, reading.log.t - EPOCH / 1e9 - 1e-4)
    np.testing.assert_allclose(reading.log.pos_w, log.need("pos_w")[rows], atol=2e-3)


def test_a_truth_of_another_walk_is_not_aligned(tmp_path: Path) -> None:
    log, other = smooth_walk(8.0), smooth_walk(8.0, seed=5)
    stolen = log.replace(quat_wb_wxyz=other.quat_wb_wxyz)
    path = write("plain mcap", tmp_path, mixed(stolen, Make()))
    with pytest.raises(GaitError, match="cannot align the clock of /vicon/go1: it does not turn as the gyro does"):
        read(path, ReadOptions(align_clock=True))


# Untidy logs


def test_repeats_and_disorder_are_mended_and_told(log: Log, tmp_path: Path) -> None:
    messages = messages_of(log, Make(), targets=None)
    messages.insert(40, messages[39])
    messages[60], messages[63] = messages[63], messages[60]
    reading = read(write("plain mcap", tmp_path, messages))
    np.testing.assert_array_equal(reading.log.q, log.q)
    np.testing.assert_array_equal(reading.log.gyro, log.gyro)
    assert said(reading, "1 samples with a repeated stamp dropped") and said(reading, "1 samples were out of order")


def test_a_clock_that_is_reset_leaves_the_longest_part(tmp_path: Path) -> None:
    log = smooth_walk(1.0)
    messages = [
        (topic, ns if ns < EPOCH + 3 * 10**8 else ns - 10**12, message)
        for topic, ns, message in messages_of(log, Make(), stamped=False)
    ]
    reading = read(write("plain mcap", tmp_path, messages))
    assert len(reading.log) == 350
    np.testing.assert_array_equal(reading.log.q, log.q[150:])
    assert said(reading, r"/imu/data: the clock was reset 1 time \(first by -999.998 s\).* 350 of 500")


def test_pauses_are_left_out_where_joints_pause_and_bridged_where_truth_does(tmp_path: Path) -> None:
    log = smooth_walk(2.0)
    pause = {"/joint_states": (0.5, 0.8), "/ground_truth": (1.2, 1.6)}

    def kept(topic: str, ns: int) -> bool:
        low, high = pause.get(topic, (9.0, 9.0))
        return not low < (ns - EPOCH) / 1e9 < high

    messages = [one for one in messages_of(log, Make()) if kept(one[0], one[1])]
    reading = read(write("plain mcap", tmp_path, messages))
    assert [round(length, 3) for _, length in reading.log.gaps()] == [0.3]
    assert said(reading, "/joint_states: pauses of more than 0.1 s, whose 149 rows are left out")
    assert said(reading, "/ground_truth: 1 pauses of more than 0.1 s, the longest 0.40 s, bridged")


def test_a_truth_that_covers_little_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    log = smooth_walk(2.0)
    messages = [one for one in messages_of(log, Make()) if one[0] != "/ground_truth" or one[1] < EPOCH + 4 * 10**8]
    path = write("plain mcap", tmp_path, messages)
    reading = read(path)
    assert not reading.log.has_truth and len(reading.log) == len(log)
    assert said(
        reading, "/ground_truth: covers 200 of 1000 rows, and was left out; --truth /ground_truth keeps that part"
    )
    asked = open_log(path, ReadOptions(truth="/ground_truth"))
    assert asked.has_truth and len(asked) == 200


def test_zero_torque_and_a_twist_in_the_world_are_noticed(tmp_path: Path) -> None:
    log = smooth_walk(2.0).replace(tau=np.zeros((1000, 12)))
    turned = log.replace(quat_wb_wxyz=np.tile([np.cos(0.6), 0, 0, np.sin(0.6)], (1000, 1)))
    make = Make()
    messages = messages_of(turned, make, truth=None)
    for i, t in enumerate(log.t):
        ns = EPOCH + round(t * 1e9)
        pose = make.odometry(ns, log.need("pos_w")[i], turned.need("quat_wb_wxyz")[i], log.need("vel_w")[i])
        messages.append(("/odom", ns, pose))
    reading = read(write("plain mcap", tmp_path, messages), ReadOptions(truth="/odom"))
    assert reading.log.tau is None and said(reading, "all torques are zero")
    np.testing.assert_array_equal(reading.log.vel_w, log.vel_w)
    assert said(reading, "the twist is in the world frame, as the positions tell")


def test_transforms_of_a_motion_capture_are_truth(tmp_path: Path) -> None:
    log, make = smooth_walk(1.0), Make(True)
    messages = messages_of(log, make, truth=None)
    for i, t in enumerate(log.t):
        ns = EPOCH + round(t * 1e9)
        messages.append(("/vicon/go1/go1", ns, make.transform(ns, log.need("pos_w")[i], log.need("quat_wb_wxyz")[i])))
    found = read(write("ros1", tmp_path, messages)).log
    np.testing.assert_allclose(found.vel_w[20:-20], log.vel_w[20:-20], atol=5e-3)


# Unitree


def unitree(log: Log, package: str, ros1: bool) -> list[Message]:
    make = Make(ros1)
    camel = package == "unitree_legged_msgs"
    state_name, imu_name, torque = ("motorState", "imu", "tauEst") if camel else ("motor_state", "imu_state", "tau_est")
    imu_type = f"{package}/msg/IMU"
    if package == "unitree_go":
        imu_type = "unitree_go/msg/IMUState"
    elif not camel:
        imu_name = "imu"
    found: list[Message] = []
    for i, t in enumerate(log.t):
        ns = EPOCH + round(t * 1e9)
        imu = make.new(imu_type, gyroscope=np.float32(log.gyro[i]), accelerometer=np.float32(log.accel[i]))
        motors, commands = [], []
        for k in range(20):
            leg = k < 12
            numbers = {"q": log.q[i, k], "dq": log.dq[i, k], torque: log.need("tau")[i, k]} if leg else {}
            motors.append(make.new(f"{package}/msg/MotorState", **{name: float(v) for name, v in numbers.items()}))
            order = {"q": float(log.need("q_des")[i, k]) if leg else 0.0, "Kp" if camel else "kp": 20.0}
            if i < 3:
                order["q"] = 2.146e9
            commands.append(make.new(f"{package}/msg/MotorCmd", **order))
        state = make.new(f"{package}/msg/LowState", **{state_name: motors, imu_name: imu})
        command = make.new(f"{package}/msg/LowCmd", **{"motorCmd" if camel else "motor_cmd": commands})
        found += [("/lowstate", ns, state), ("/lowcmd", ns, command)]
    return found


@pytest.mark.parametrize(
    ("package", "form"),
    [
        ("unitree_go", "mcap"),
        ("unitree_go", "sqlite3"),
        ("unitree_legged_msgs", "ros1"),
        ("unitree_legged_msgs", "plain mcap"),
        ("ros2_unitree_legged_msgs", "sqlite3"),
    ],
)
@pytest.mark.parametrize("defined", [True, False])
def test_unitree_messages_are_read(package: str, form: str, defined: bool, log: Log, tmp_path: Path) -> None:
    path = write(form, tmp_path, unitree(log, package, ros1=form == "ros1"))
    if not defined:
        if form != "sqlite3":
            pytest.skip("only old sqlite3 bags are without definitions")
        with sqlite3.connect(path / "walk.db3") as base:
            base.execute("DROP TABLE message_definitions")
    reading = read(path)
    found, rows = reading.log, slice(3, None)
    for name in ("gyro", "accel", "q", "dq", "q_des", "tau"):
        np.testing.assert_array_equal(getattr(found, name), np.float32(getattr(log, name)[rows]), err_msg=name)
    assert said(reading, "/lowcmd: 3 of 150 commands give no angle for a joint, and were left out")
    assert said(reading, "3 of 150 rows are left out, for which there is no targets")
    assert said(reading, "time: when messages were recorded")


def test_another_version_of_a_message_is_told(log: Log, tmp_path: Path) -> None:
    path = write("sqlite3", tmp_path, unitree(log, "unitree_go", ros1=False))
    with sqlite3.connect(path / "walk.db3") as base:
        base.execute("DROP TABLE message_definitions")
        base.execute("UPDATE messages SET data = CAST(data || x'0000000000000000' AS BLOB)")
    with pytest.raises(GaitError, match="no message of /lowstate can be read .* another version of unitree_go"):
        read(path)
