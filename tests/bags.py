"""Bags for tests, written by other libraries: rosbags and mcap. Messages are encoded by rosbags, not by gait."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import Writer as McapWriter
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from scipy.spatial.transform import Rotation

from gait import Log
from gait.io.ros import definitions

Message = tuple[str, int, Any]
"""Topic, time of recording in ns, and the message."""
EPOCH = 1_700_000_000_000_000_000


def store(ros1: bool = False) -> Any:
    """Types of standard messages, and those of Unitree from their definitions."""
    return definitions.store(ros1)


class Make:
    """Messages of one ROS."""

    def __init__(self, ros1: bool = False) -> None:
        self.ros1 = ros1
        self.types = store(ros1).types

    def new(self, name: str, /, **fields: Any) -> Any:
        """A message with zeros for what is not given."""
        definition = store(self.ros1).fielddefs[name][1]
        values = {field: fields.get(field, self._zero(*desc)) for field, desc in definition}
        return self.types[name](**values)

    def _zero(self, kind: int, what: Any) -> Any:
        if kind == 1:
            return "" if what[0] == "string" else 0
        if kind == 2:
            return self.new(what)
        (inner_kind, inner), count = what
        count = count if kind == 3 else 0
        if inner_kind == 1 and inner[0] != "string":
            return np.zeros(count, dtype={"bool": "?", "byte": "u1", "char": "u1"}.get(inner[0], inner[0]))
        return [self._zero(inner_kind, inner) for _ in range(count)]

    def header(self, ns: int, frame: str = "base") -> Any:
        stamp = self.new("builtin_interfaces/msg/Time", sec=ns // 10**9, nanosec=ns % 10**9)
        return self.new("std_msgs/msg/Header", stamp=stamp, frame_id=frame)

    def xyz(self, values: Sequence[float], kind: str = "Vector3") -> Any:
        return self.new(f"geometry_msgs/msg/{kind}", x=float(values[0]), y=float(values[1]), z=float(values[2]))

    def quaternion(self, wxyz: Sequence[float]) -> Any:
        w, x, y, z = map(float, wxyz)
        return self.new("geometry_msgs/msg/Quaternion", x=x, y=y, z=z, w=w)

    def imu(self, ns: int, gyro: Any, accel: Any) -> Any:
        return self.new(
            "sensor_msgs/msg/Imu",
            header=self.header(ns, "imu"),
            angular_velocity=self.xyz(gyro),
            linear_acceleration=self.xyz(accel),
        )

    def joints(self, ns: int, names: Sequence[str], q: Any, dq: Any = (), tau: Any = ()) -> Any:
        arrays = {"position": q, "velocity": dq, "effort": tau}
        numbers = {name: np.array(values, dtype=np.float64) for name, values in arrays.items()}
        return self.new("sensor_msgs/msg/JointState", header=self.header(ns, ""), name=list(names), **numbers)

    def odometry(self, ns: int, pos: Any, wxyz: Any, twist: Any = (0, 0, 0)) -> Any:
        pose = self.new("geometry_msgs/msg/Pose", position=self.xyz(pos, "Point"), orientation=self.quaternion(wxyz))
        velocity = self.new("geometry_msgs/msg/Twist", linear=self.xyz(twist))
        return self.new(
            "nav_msgs/msg/Odometry",
            header=self.header(ns, "world"),
            child_frame_id="base",
            pose=self.new("geometry_msgs/msg/PoseWithCovariance", pose=pose),
            twist=self.new("geometry_msgs/msg/TwistWithCovariance", twist=velocity),
        )

    def pose(self, ns: int, pos: Any, wxyz: Any) -> Any:
        pose = self.new("geometry_msgs/msg/Pose", position=self.xyz(pos, "Point"), orientation=self.quaternion(wxyz))
        return self.new("geometry_msgs/msg/PoseStamped", header=self.header(ns, "world"), pose=pose)

    def transform(self, ns: int, pos: Any, wxyz: Any) -> Any:
        transform = self.new("geometry_msgs/msg/Transform", translation=self.xyz(pos), rotation=self.quaternion(wxyz))
        return self.new(
            "geometry_msgs/msg/TransformStamped", header=self.header(ns), child_frame_id="go1", transform=transform
        )


def messages_of(
    log: Log,
    make: Make,
    *,
    start: int = EPOCH,
    imu: str = "/imu/data",
    joints: str = "/joint_states",
    targets: str | None = "/joint_commands",
    truth: str | None = "/ground_truth",
    stamped: bool = True,
    names: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
) -> list[Message]:
    """A Log as messages; `order` and `names` change the order of the joints and what they are called."""
    order = list(range(len(log.joint_names))) if order is None else list(order)
    names = [log.joint_names[i] for i in order] if names is None else names
    found: list[Message] = []
    for i, t in enumerate(log.t):
        ns = start + round(t * 1e9)
        at = ns if stamped else 0
        found.append((imu, ns, make.imu(at, log.gyro[i], log.accel[i])))
        tau = () if log.tau is None else log.tau[i, order]
        found.append((joints, ns, make.joints(at, names, log.q[i, order], log.dq[i, order], tau)))
        if targets and log.q_des is not None:
            found.append((targets, ns, make.joints(at, names, log.q_des[i, order])))
        if truth and log.has_truth:
            assert log.pos_w is not None and log.quat_wb_wxyz is not None
            found.append((truth, ns, make.odometry(at, log.pos_w[i], log.quat_wb_wxyz[i], log.vel_b[i])))
    return found


def write_ros1(path: Path, messages: Sequence[Message], chunk: int | None = None, packed: str = "") -> Path:
    """A ROS 1 bag; packed in BZ2 or LZ4, or not at all."""
    writer = Writer1(path)
    if packed:
        writer.set_compression(Writer1.CompressionFormat[packed])
    with writer:
        if chunk is not None:
            writer.chunk_threshold = chunk
        _write(writer, messages, store(True), lambda one: store(True).serialize_ros1(one, one.__msgtype__))
    return path


def write_ros2(path: Path, messages: Sequence[Message], mcap: bool = False) -> Path:
    """A ROS 2 bag: a folder with metadata.yaml and a file."""
    plugin = StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3
    with Writer2(path, version=9, storage_plugin=plugin) as writer:
        _write(writer, messages, store(), lambda one: store().serialize_cdr(one, one.__msgtype__))
    return path


def _write(writer: Any, messages: Sequence[Message], types: Any, encode: Callable[[Any], Any]) -> None:
    connections: dict[str, Any] = {}
    for topic, ns, message in messages:
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, message.__msgtype__, typestore=types)
        writer.write(connections[topic], ns, encode(message))


def write_plain_mcap(path: Path, messages: Sequence[Message], ros1: bool = False, chunk: int = 1 << 16) -> Path:
    """An MCAP file of no profile, as other recorders than rosbag2 leave it."""
    types = store(ros1)
    with path.open("wb") as file:
        writer = McapWriter(file, chunk_size=chunk)
        writer.start()
        channels: dict[str, int] = {}
        for topic, ns, message in messages:
            kind = message.__msgtype__
            if topic not in channels:
                text = types.generate_msgdef(kind, ros_version=1 if ros1 else 2)[0]
                name = kind.replace("/msg/", "/") if ros1 else kind
                schema = writer.register_schema(name, "ros1msg" if ros1 else "ros2msg", text.encode())
                channels[topic] = writer.register_channel(topic, "ros1" if ros1 else "cdr", schema)
            raw = types.serialize_ros1(message, kind) if ros1 else types.serialize_cdr(message, kind)
            writer.add_message(channels[topic], ns, bytes(raw), ns)
        writer.finish()
    return path


def smooth_walk(seconds: float = 4.0, rate: float = 500.0, seed: int = 0) -> Log:
    """A body that sways as it goes, with a gyro and an accelerometer that agree with its motion."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate)) / rate
    phases, speeds = rng.uniform(0, 6, 9), rng.uniform(2.0, 9.0, 9)

    def angles(at: np.ndarray) -> np.ndarray:
        return np.stack([0.2 * np.sin(speeds[k] * at + phases[k]) * np.sin(0.7 * at + k) for k in range(3)], axis=1)

    def turn(at: np.ndarray) -> Rotation:
        return Rotation.from_euler("xyz", angles(at))

    h = 1e-5
    gyro = (turn(t - h).inv() * turn(t + h)).as_rotvec() / (2 * h)
    pos = np.stack([0.5 * t, 0.05 * np.sin(speeds[3] * t), 0.3 + 0.01 * np.sin(speeds[4] * t)], axis=1)
    vel = np.stack(
        [np.full_like(t, 0.5), 0.05 * speeds[3] * np.cos(speeds[3] * t), 0.01 * speeds[4] * np.cos(speeds[4] * t)],
        axis=1,
    )
    acc = np.stack(
        [0 * t, -0.05 * speeds[3] ** 2 * np.sin(speeds[3] * t), -0.01 * speeds[4] ** 2 * np.sin(speeds[4] * t)], axis=1
    )
    accel = turn(t).inv().apply(acc + np.array([0.0, 0.0, 9.81]))
    wave = np.sin(10.0 * t[:, None] + np.arange(12))
    q = np.tile([0.0, 0.8, -1.5], 4) + 0.2 * wave
    dq = 2.0 * np.cos(10.0 * t[:, None] + np.arange(12))
    return Log(
        t=t, gyro=gyro, accel=accel, q=q, dq=dq, q_des=q + 0.05, tau=3.0 * wave,
        pos_w=pos, quat_wb_wxyz=turn(t).as_quat(scalar_first=True), vel_w=vel,
    )  # fmt: skip
