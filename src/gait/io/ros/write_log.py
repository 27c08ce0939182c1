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
from gait.io.ros.containers import METADATA_NAME
from gait.io.ros.definitions import FEET, IMU, JOINT_STATE, ODOMETRY, full_text
from gait.io.ros.layout import Given, MessageWriter, Paths
from gait.io.ros.messages import FIELDS
from gait.io.ros.sensor_messages import NO_ORIENTATION
from gait.log.log import Log
from gait.log.record import Record

if TYPE_CHECKING:
    pass

FINE = 2.0**-30
"""Step of the velocity in an odometry message, m/s: turning it into the body frame rounds it anyway."""
_CHUNK = 8 * 1024 * 1024


def write_mcap(record: Record, path: Path, small: bool = False) -> None:
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
        for topic, kind, _ in topics:
            schema = writer.register_schema(kind, "ros2msg", full_text(kind).encode())
            channels.append(writer.register_channel(topic, "cdr", schema))
        # In the order of time, as readers without an index expect it.
        for i, stamp in enumerate(ns.tolist()):
            for channel, (_, _, messages) in zip(channels, topics, strict=True):
                writer.add_message(channel, stamp, messages[i].tobytes(), stamp)
        writer.finish()


def _topics(log: Log, ns: AnyArray) -> list[tuple[str, str, AnyArray]]:
    """Name, type and messages (N, size) of each topic that the log has something for."""
    arrays = log.arrays()
    if "t" not in clock.pack(log.t):
        # Whole nanoseconds give the seconds back, and every message has those.
        del arrays["t"]
    if log.has_truth:
        arrays["twist"] = np.rint(log.vel_b / FINE) * FINE
    topics: list[tuple[str, str, str, Given]] = [
        ("/imu/data", IMU, "imu", {"header.frame_id": "imu_link"}),
        ("/joint_states", JOINT_STATE, "joints", {"name": log.joint_names}),
        ("/joint_commands", JOINT_STATE, "targets", {"name": log.joint_names}),
        ("/ground_truth/odom", ODOMETRY, "truth", {"header.frame_id": "world", "child_frame_id": "base"}),
        ("/feet", FEET, "feet", {"name": log.leg_names}),
    ]
    found = []
    for topic, kind, role, texts in topics:
        values: dict[Paths, Any] = {
            path: arrays[name].reshape(len(log), -1) for name, path in FIELDS[kind][role].items() if name in arrays
        }
        if values and (role != "truth" or log.has_truth):
            lists = {str(path): array.shape[1] for path, array in values.items() if kind in (JOINT_STATE, FEET)}
            if kind == IMU:
                values |= {"orientation_covariance": NO_ORIENTATION, "orientation.w": 1.0}
            found.append((topic, kind, MessageWriter(kind, {**texts, **lists}).encode_all(ns, values)))
    return found
