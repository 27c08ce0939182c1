"""Messages of humanoids and of ANYmal: each against a golden message that `struct` packed, and out of whole bags.

Golden messages are in `tests/io/messages`, in hexadecimal; `python tests/io/test_robot_messages.py` writes them again
from the formats below, which are the published fields in their order.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from bags import EPOCH, Make, Message, write_ros1, write_ros2

from gait import Robot
from gait.io import read
from gait.io.ros.definitions import ANYMAL, known
from gait.io.ros.layout import MessageLayout
from gait.io.ros.messages import FIELDS, G1_JOINTS, H1_2_JOINTS, H1_JOINTS, FieldReader, unitree_motors
from gait.live import play
from gait.live.sources import UnitreeSamples
from gait.log.sample import Sample

HERE = Path(__file__).parent / "messages"
FORMATS = {
    "unitree_hg/msg/LowState": "2I B B I 4f 3f 3f 3f h " + "B f f f f 2h f 2I I 4I " * 35 + "40B 4I I",
    "unitree_hg/msg/LowCmd": "B B " + "B f f f f f I " * 35 + "4I I",
    "unitree_legged_msgs/msg/HighState": (
        "2B B B 2I 2I H 4f 3f 3f 3f b "
        + "B f f f f f f f b 2I " * 20
        + "B B B B i H 8b 8b 30H 4h 4h B f B f 3f f 3f f 4f "
        + "3f " * 8
        + "40B I I"
    ),
}
"""Fields in their order, a group each."""


def packed(kind: str) -> bytes:
    """A message whose k-th number is k, small enough for its type; CDR aligns numbers to their size."""
    out, cdr, k = bytearray(b"\x00\x01\x00\x00"), not kind.startswith("unitree_legged_msgs/"), 0
    out = out if cdr else bytearray()
    for group in FORMATS[kind].split():
        count, code = int(group[:-1] or 1), group[-1]
        size = struct.calcsize(code)
        while cdr and (len(out) - 4) % size:
            out += b"\0"
        for _ in range(count):
            out += struct.pack(f"<{code}", k + 0.5 if code == "f" else k % 100)
            k += 1
    return bytes(out)


def first_of(kind: str, groups: int) -> int:
    """Which number begins a group."""
    return sum(int(group[:-1] or 1) for group in FORMATS[kind].split()[:groups])


@pytest.mark.parametrize("kind", FORMATS)
def test_golden_messages_have_their_fields_where_they_belong(kind: str) -> None:
    data = bytes.fromhex((HERE / f"{kind.replace('/msg/', '-')}.hex").read_text())
    assert data == packed(kind), "the golden file is that of the published fields"
    packs = kind.startswith("unitree_legged_msgs/")
    layout = MessageLayout.of(data, kind, known(ros1=packs), packed=packs)
    roles = FIELDS[kind]
    joints, targets = roles.get("joints", {}), roles.get("targets", {})
    motor = FORMATS[kind].split().index("B", 6 if "Low" in kind else 11)
    if kind == "unitree_hg/msg/LowCmd":
        start = first_of(kind, 2)
        np.testing.assert_array_equal(layout.read(data, targets["q_des"]), start + 1.5 + 7 * np.arange(35))
        np.testing.assert_array_equal(layout.read(data, targets["kp"]), start + 4.5 + 7 * np.arange(35))
        return
    width, count = (15, 35) if "hg" in kind else (11, 20)
    start = first_of(kind, motor)
    for offset, name in ((1, "q"), (2, "dq"), (4, "tau")):
        np.testing.assert_array_equal(layout.read(data, joints[name]), start + offset + 0.5 + width * np.arange(count))
    gyro = first_of(kind, FORMATS[kind].split().index("4f")) + 4
    np.testing.assert_array_equal(layout.read(data, roles["imu"]["gyro"]), gyro + 0.5 + np.arange(3))
    np.testing.assert_array_equal(layout.read(data, roles["imu"]["accel"]), gyro + 3.5 + np.arange(3))
    if "clock" in roles:
        assert layout.read(data, "tick") == 4


def sample(joints: int) -> Sample:
    rng = np.random.default_rng(0)
    q, dq, tau, q_des = np.float32(rng.normal(size=(4, joints))).astype(float)
    gyro, accel = np.float32(rng.normal(size=(2, 3))).astype(float)
    return Sample(0.0, gyro, accel, q, dq, q_des, tau)


def test_motors_of_humanoids_are_those_of_their_joints() -> None:
    g1, row = Robot.load("g1"), sample(12)
    samples = UnitreeSamples("unitree_hg", g1)
    found = samples.state(play.encode_state("unitree_hg", row, 7))
    for name in ("gyro", "accel", "q", "dq", "tau"):
        np.testing.assert_array_equal(found[name], getattr(row, name))
    assert found["tick"] == 7 and g1.joint_names == G1_JOINTS
    np.testing.assert_array_equal(samples.target(play.encode_command("unitree_hg", row.q_des)), row.q_des)
    turned = tuple(f"{side}_{joint}_joint" for side in ("left", "right") for joint in ("hip_yaw", "hip_pitch"))
    assert unitree_motors("unitree_hg/msg/LowState", turned) == H1_2_JOINTS
    h1, row = Robot.load("h1"), sample(12)
    found = UnitreeSamples("unitree_go", h1).state(play.encode_state("unitree_go", row))
    for i, name in enumerate(h1.encoder_names):
        assert found["q"][i] == row.q[H1_JOINTS.index(name)], name


def humanoid(log: dict[str, np.ndarray], make: Make) -> list[Message]:
    found: list[Message] = []
    for i, t in enumerate(log["t"]):
        ns = EPOCH + round(t * 1e9)
        motors, commands = [], []
        for k in range(35):
            leg = k < 12
            numbers = {"q": log["q"][i, k], "dq": log["dq"][i, k], "tau_est": log["tau"][i, k]} if leg else {}
            motors.append(make.new("unitree_hg/msg/MotorState", **{name: float(v) for name, v in numbers.items()}))
            order = {"q": float(log["q_des"][i, k]), "kp": 75.0} if leg else {}
            commands.append(make.new("unitree_hg/msg/MotorCmd", **order))
        imu = {"gyroscope": np.float32(log["gyro"][i]), "accelerometer": np.float32(log["accel"][i])}
        state = {"imu_state": make.new("unitree_hg/msg/IMUState", **imu), "motor_state": motors}
        found.append(("/lowstate", ns, make.new("unitree_hg/msg/LowState", **state)))
        found.append(("/lowcmd", ns, make.new("unitree_hg/msg/LowCmd", motor_cmd=commands)))
    return found


def walk(robot: Robot, rows: int = 60) -> dict[str, np.ndarray]:
    rng, t = np.random.default_rng(1), np.arange(rows) * 0.002
    waves = {name: 0.1 * np.sin(30.0 * t[:, None] + rng.uniform(0, 6, robot.num_joints)) for name in ("q", "tau")}
    return {
        "t": t, "gyro": 0.1 * np.sin(20.0 * t[:, None] + np.arange(3)), "q": robot.q_stand + waves["q"],
        "accel": np.array([0.0, 0.0, 9.81]) + 0.1 * np.sin(25.0 * t[:, None] + np.arange(3)),
        "dq": np.gradient(waves["q"], 0.002, axis=0), "tau": 20.0 * waves["tau"], "q_des": robot.q_stand + waves["q"],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["mcap", "sqlite3"])
def test_a_bag_of_a_g1_is_read(form: str, tmp_path: Path) -> None:
    log = walk(Robot.load("g1"))
    reading = read(write_ros2(tmp_path / "walk", humanoid(log, Make()), mcap=form == "mcap"))
    assert reading.log.robot == "g1" and any("g1" in note for note in reading.notes)
    for name in ("gyro", "accel", "q", "dq", "tau", "q_des"):
        np.testing.assert_allclose(getattr(reading.log, name), np.float32(log[name]), err_msg=name)


def test_a_bag_of_high_states_is_read(tmp_path: Path) -> None:
    log, make, package = walk(Robot.load("go1")), Make(True), "unitree_legged_msgs/msg"
    messages = []
    for i, t in enumerate(log["t"]):
        motors = [
            make.new(
                f"{package}/MotorState",
                q=float(log["q"][i, k]),
                dq=float(log["dq"][i, k]),
                tauEst=float(log["tau"][i, k]),
            )
            if k < 12
            else make.new(f"{package}/MotorState")
            for k in range(20)
        ]
        imu = make.new(
            f"{package}/IMU", gyroscope=np.float32(log["gyro"][i]), accelerometer=np.float32(log["accel"][i])
        )
        state = make.new(f"{package}/HighState", imu=imu, motorState=motors)
        messages.append(("/high_state", EPOCH + round(t * 1e9), state))
    found = read(write_ros1(tmp_path / "walk.bag", messages)).log
    for name in ("gyro", "accel", "q", "dq", "tau"):
        np.testing.assert_allclose(getattr(found, name), np.float32(log[name]), err_msg=name)


def test_a_bag_of_an_anymal_is_read(tmp_path: Path) -> None:
    robot = Robot.load("anymal_c")
    log, make = walk(robot), Make(True)
    order = np.random.default_rng(2).permutation(robot.num_joints)
    names, messages = [robot.joint_names[k] for k in order], []
    for i, t in enumerate(log["t"]):
        ns = EPOCH + round(t * 1e9)
        joints = make.new(
            "any_msgs/msg/ExtendedJointState", header=make.header(ns), name=names,
            **{field: log[key][i, order] for field, key in (("position", "q"), ("velocity", "dq"), ("effort", "tau"))},
        )  # fmt: skip
        contact = make.new("anymal_msgs/msg/Contact", header=make.header(ns), name="LF_FOOT", state=1)
        state = make.new(ANYMAL, header=make.header(ns), joints=joints, contacts=[contact])
        messages.append(("/state_estimator/anymal_state", ns, state))
        imu = make.new(
            "sensor_msgs/msg/Imu", header=make.header(ns), angular_velocity=make.xyz(log["gyro"][i]),
            linear_acceleration=make.xyz(log["accel"][i]),
        )  # fmt: skip
        messages.append(("/sensors/imu", ns, imu))
    reading = read(write_ros1(tmp_path / "walk.bag", messages))
    assert reading.log.robot == "anymal_c"
    for name in ("gyro", "accel", "q", "dq", "tau"):
        np.testing.assert_allclose(getattr(reading.log, name), log[name], err_msg=name)
    reader = FieldReader(ANYMAL, "joints", "truth")
    assert set(reader._fields) == {"q", "dq", "tau", "pos_w", "quat_wb_wxyz"}


if __name__ == "__main__":
    for name in FORMATS:
        (HERE / f"{name.replace('/msg/', '-')}.hex").write_text(packed(name).hex() + "\n")
