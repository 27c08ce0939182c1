"""A Log as MCAP: standard ROS 2 messages, so that Foxglove, PlotJuggler and ROS read it too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gait._version import __version__
from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io import clock
from gait.io.atomic import atomic_path
from gait.io.format import header
from gait.io.ros import definitions, layout
from gait.io.ros.mcap import METADATA_NAME
from gait.log.log import Log

if TYPE_CHECKING:
    from gait.log.trajectory import Trajectory

IMU, JOINTS, TARGETS, TRUTH, FEET = "/imu/data", "/joint_states", "/joint_commands", "/ground_truth/odom", "/feet"
FINE = 2.0**-30
"""Step of the velocity in an odometry message, m/s: turning it into the body frame rounds it anyway."""
_CHUNK = 8 * 1024 * 1024


def write_mcap(record: Log | Trajectory, path: Path, small: bool = False) -> None:
    """Write all fields of a Log, each message with its time in the header too.

    Args:
        record: the Log.
        path: the file.
        small: without an index, which takes a third of the room; every reader then reads from front to back.
    """
    if not isinstance(record, Log):
        raise GaitError(
            f"cannot write a Trajectory to {path}: `gait run` writes odometry as MCAP, and .npz holds it too"
        )
    from mcap.writer import IndexType, Writer

    ns = clock.to_ns(record.t)
    if ns[0] < 0:
        raise GaitError(f"cannot write {path}: MCAP has no time before zero, and the log starts at {record.t[0]:g} s")
    topics = _topics(record, ns)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        bare: dict[str, Any] = {
            "index_types": IndexType.NONE,
            "repeat_channels": False,
            "repeat_schemas": False,
            "use_statistics": False,
            "use_summary_offsets": False,
        }
        writer = Writer(file, chunk_size=_CHUNK, **(bare if small else {}))
        writer.start(profile="ros2", library=f"gait {__version__}")
        writer.add_metadata(METADATA_NAME, {"log": header(record)})
        channels = []
        for name, kind, _ in topics:
            schema = writer.register_schema(kind, "ros2msg", definitions.full_text(kind).encode())
            channels.append(writer.register_channel(name, "cdr", schema))
        # In the order of time, as readers without an index expect it.
        for i, stamp in enumerate(ns.tolist()):
            for channel, (_, _, messages) in zip(channels, topics, strict=True):
                writer.add_message(channel, stamp, messages[i].tobytes(), stamp)
        writer.finish()


def _topics(log: Log, ns: AnyArray) -> list[tuple[str, str, AnyArray]]:
    """Name, type and messages (N, size) of each topic."""
    joints, legs = list(log.joint_names), list(log.leg_names)
    frame: dict[str, Any] = {"header.frame_id": "imu_link"}
    imu: dict[str, AnyArray] = {f"angular_velocity.{axis}": log.gyro[:, i] for i, axis in enumerate("xyz")}
    imu |= {f"linear_acceleration.{axis}": log.accel[:, i] for i, axis in enumerate("xyz")}
    # By convention a first covariance of -1 says that there is no orientation.
    imu["orientation_covariance"] = np.array([-1.0, *[0.0] * 8])
    imu["orientation.w"] = np.array(1.0)
    topics: list[tuple[str, str, dict[str, Any], dict[str, AnyArray]]] = [(IMU, "sensor_msgs/msg/Imu", frame, imu)]
    states: dict[str, Any] = {"name": joints, "position": len(joints), "velocity": len(joints)}
    values: dict[str, AnyArray] = {"position": log.q, "velocity": log.dq}
    if log.tau is not None:
        states["effort"], values["effort"] = len(joints), log.tau
    topics.append((JOINTS, "sensor_msgs/msg/JointState", states, values))
    if log.q_des is not None:
        targets = {"name": joints, "position": len(joints)}
        topics.append((TARGETS, "sensor_msgs/msg/JointState", targets, {"position": log.q_des}))
    if log.has_truth:
        topics.append(
            (TRUTH, "nav_msgs/msg/Odometry", {"header.frame_id": "world", "child_frame_id": "base"}, _odometry(log))
        )
    feet: dict[str, Any] = {"name": legs}
    values = {}
    for theirs, array in (("contact", log.contact), ("force", log.foot_force), ("velocity", log.foot_vel_w)):
        if array is not None:
            values[theirs] = array.reshape(len(log), -1)
            feet[theirs] = values[theirs].shape[1]
    if "t" in clock.pack(log.t):
        feet["t"], values["t"] = 1, log.t[:, None]
    if values:
        topics.append((FEET, definitions.FEET_TYPE, feet, values))
    return [(name, kind, _messages(kind, given, columns, ns)) for name, kind, given, columns in topics]


def _odometry(log: Log) -> dict[str, AnyArray]:
    quat, pos_w = log.need("quat_wb_wxyz"), log.need("pos_w")
    values = {f"pose.pose.orientation.{axis}": quat[:, i] for i, axis in enumerate("wxyz")}
    values |= {f"pose.pose.position.{axis}": pos_w[:, i] for i, axis in enumerate("xyz")}
    vel_b = np.rint(log.vel_b / FINE) * FINE
    values |= {f"twist.twist.linear.{axis}": vel_b[:, i] for i, axis in enumerate("xyz")}
    return values


def _messages(kind: str, given: dict[str, Any], columns: dict[str, AnyArray], ns: AnyArray) -> AnyArray:
    """The messages of a topic (N, size): one blank one, many times, with the columns put in."""
    message, parts = layout.blank(kind, definitions.known(), given)
    data = np.tile(np.frombuffer(message, dtype=np.uint8), (len(ns), 1))
    columns = {"header.stamp.sec": ns // 1_000_000_000, "header.stamp.nanosec": ns % 1_000_000_000, **columns}
    for path, values in columns.items():
        part = parts[path]
        dtype, width = np.dtype(part.dtype), abs(part.count)
        values = np.broadcast_to(
            values if values.ndim == 2 else values.reshape(-1, width if part.count > 0 else 1), (len(ns), width)
        )
        data[:, part.offset : part.offset + dtype.itemsize * width] = (
            np.ascontiguousarray(values.astype(dtype)).view(np.uint8).reshape(len(ns), -1)
        )
    return data
