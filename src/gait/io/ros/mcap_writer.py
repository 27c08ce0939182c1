"""MCAP files of standard ROS 2 messages, as Foxglove, PlotJuggler and ROS read them: odometry, and whole Logs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gait._version import __version__
from gait.arrays import AnyArray, Array
from gait.errors import GaitError, os_errors
from gait.health import HealthReport
from gait.io import clock
from gait.io.atomic import atomic_path
from gait.io.format import header
from gait.io.ros.containers import METADATA_NAME
from gait.io.ros.definitions import (
    DIAGNOSTICS,
    FEET,
    FOOT_STATES,
    IMU,
    IMU_FRAME,
    JOINT_STATE,
    ODOMETRY,
    TRANSFORMS,
    full_text,
)
from gait.io.ros.diagnostics import DiagnosticEncoder
from gait.io.ros.layout import Given, MessageWriter, Paths
from gait.io.ros.messages import FIELDS, NO_ORIENTATION
from gait.io.ros.odometry import Converter, Encoder, FootEncoder
from gait.log import Log, Record, Trajectory
from gait.robot import Robot
from gait.state import State, StateArrays

Progress = Callable[[float], None]
CHUNK = 256 * 1024
"""Bytes that are compressed and written at once: a quarter of a second at 1 kHz, and done in about a millisecond."""
FLUSH = 0.5
"""Seconds of messages that may be in memory only."""
LOG_CHUNK = 8 * 1024 * 1024
"""The same of a whole Log, which is at hand."""
ROWS = 4096
"""Rows of a trajectory that are converted at once."""
FINE = 2.0**-30
"""Step of the velocity in an odometry message, m/s: turning it into the body frame rounds it anyway."""


class _Disk:
    """Has the system write a file to the disk, in a thread: it may take longer than a sample lasts."""

    def __init__(self, file: int) -> None:
        self._file, self._due, self._ended = file, threading.Event(), False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self) -> None:
        """Begin to, if it has not begun."""
        self._due.set()

    def close(self) -> None:
        """Wait for the last."""
        self._ended = True
        self._due.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            self._due.wait()
            self._due.clear()
            # A full disk is told where the messages are written.
            with suppress(OSError):
                os.fsync(self._file)


class McapRecorder:
    """Writes `/odom` and `/tf`, message by message, and `/tf_static` once; `close` makes the file complete.

    A file is never overwritten. If the process is killed, or the power fails, all but the last second is on the disk:
    every half second what there is becomes a chunk, and a thread has the system write it to the disk.

    Example:
        with McapRecorder("walk.mcap", robot="go1") as recorder:
            recorder.write(ns, converter.of(state, gyro))
    """

    def __init__(self, path: str | Path, encoder: Encoder | None = None, **about: str) -> None:
        """Begin a file.

        Args:
            path: of a file that does not exist yet.
            encoder: for the names of the frames.
            about: kept in the file: the name of the `robot`, the `method` of the estimate, the `source` of the samples.
        """
        self.path, self.count = Path(path), 0
        self._encoder = encoder or Encoder()
        if self.path.exists():
            raise GaitError(f"{path} exists: name a file that does not, or move it away")
        with os_errors(f"cannot write {path}"):
            self._file = self.path.open("xb")
        about = {**dict.fromkeys(("robot", "method", "source"), ""), **about, "frame": self._encoder.frame}
        self._writer = _begin(self._file, {**about, "version": __version__}, chunk_size=CHUNK)
        self._flushed, self._disk = time.monotonic(), _Disk(self._file.fileno())
        self._odometry, self._transform = self.channel("/odom", ODOMETRY), self.channel("/tf", TRANSFORMS)
        self._static: tuple[int, Robot] | None = None

    def describe(self, robot: Robot) -> None:
        """Write the pose of the robot's IMU with the first message, to /tf_static."""
        self._static = self.channel("/tf_static", TRANSFORMS), robot

    def write(self, ns: int, values: Array) -> None:
        """Write the numbers of an odometry message (`Converter`) with their time in nanoseconds."""
        self.write_messages(ns, self._encoder.odometry(ns, values), self._encoder.transform(ns, values))

    def write_messages(self, ns: int, odometry: bytes, transform: bytes) -> None:
        """Write messages that are encoded already."""
        if self._static is not None:
            channel, robot = self._static
            self._static = None
            self.write_to(channel, ns, self._encoder.imu_transform(ns, robot))
        self.write_to(self._odometry, ns, odometry)
        self.write_to(self._transform, ns, transform)
        self.count += 1

    def channel(self, topic: str, kind: str) -> int:
        """Begin a topic of messages of some type, and give the number to write to."""
        return _channel(self._writer, topic, kind)

    def write_to(self, channel: int, ns: int, message: bytes) -> None:
        """Write a message of any topic."""
        # The format has no time before 1970.
        stamp = max(ns, 0)
        with os_errors(f"cannot write {self.path}"):
            self._writer.add_message(channel, stamp, message, stamp, self.count)
            now = time.monotonic()
            if now - self._flushed >= FLUSH:
                self._flushed = now
                self._writer.flush()
                self._file.flush()
                self._disk.write()

    def close(self) -> None:
        """Write what is left, and the index."""
        if not self._file.closed:
            self._disk.close()
            with os_errors(f"cannot write {self.path}"), self._file:
                self._writer.finish()
                self._file.flush()
                os.fsync(self._file.fileno())

    def __enter__(self) -> McapRecorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def write_mcap(
    path: Path,
    trajectory: Trajectory,
    robot: Robot,
    gyro: Array | None = None,
    progress: Progress = lambda share: None,
    states: StateArrays | None = None,
) -> None:
    """Write a whole trajectory as odometry.

    Args:
        path: of a file that does not exist yet.
        trajectory: what to write.
        robot: whose IMU measured.
        gyro: for the turn rate (N, 3), in IMU axes.
        progress: called with the share that is written.
        states: of an estimator with feet, which go to /foot_states.
    """
    converter, stamps = Converter(robot, rate=trajectory.rate or 500.0), clock.to_ns(trajectory.t)
    with McapRecorder(path, robot=robot.name, method=trajectory.source) as recorder:
        recorder.describe(robot)
        diagnostics = _Diagnosis(recorder, trajectory, robot) if trajectory.health is not None else None
        feet = FootEncoder(robot.leg_names) if states is not None and states.foot_pos_w is not None else None
        channel = recorder.channel("/foot_states", FOOT_STATES) if feet is not None else -1
        for start in range(0, len(trajectory), ROWS):
            rows = slice(start, start + ROWS)
            part = trajectory.replace(**{name: array[rows] for name, array in trajectory.arrays().items()})
            values = converter.of(part, None if gyro is None else gyro[rows])
            for i, (ns, numbers) in enumerate(zip(stamps[rows].tolist(), values, strict=True), start=start):
                recorder.write(ns, numbers)
                if diagnostics is not None:
                    diagnostics.write(i, ns, None if states is None else states[i])
                if feet is not None:
                    recorder.write_to(channel, ns, feet.encode(ns, states[i]))  # type: ignore[index]
            progress(start / len(trajectory))


class _Diagnosis:
    """Writes the health of a trajectory to /diagnostics."""

    def __init__(self, recorder: McapRecorder, trajectory: Trajectory, robot: Robot) -> None:
        self._recorder, self._bits, self._legs = recorder, trajectory.need("health"), robot.leg_names
        self._gaps = np.diff(trajectory.t, prepend=trajectory.t[0])
        self._encoder = DiagnosticEncoder(robot.name, trajectory.source)
        self._channel = recorder.channel("/diagnostics", DIAGNOSTICS)

    def write(self, i: int, ns: int, state: State | None) -> None:
        """The health of row i, if a message is due."""
        health = HealthReport(int(self._bits[i]), self._legs, float(self._gaps[i]))
        if self._encoder.due(ns, health):
            self._recorder.write_to(self._channel, ns, self._encoder.encode(ns, health, state))


def write_log(record: Record, path: Path, small: bool = False) -> None:
    """Write all fields of a Log, each message with its time in the header too.

    Args:
        record: the Log.
        path: the file.
        small: without an index, which takes a third of the room; every reader then reads from front to back.
    """
    from mcap.writer import IndexType

    if not isinstance(record, Log):
        raise GaitError(
            f"cannot write a Trajectory to {path}: `gait run` writes odometry as MCAP, and .npz holds it too"
        )
    ns = clock.to_ns(record.t)
    if ns[0] < 0:
        raise GaitError(f"cannot write {path}: MCAP has no time before zero, and the log starts at {record.t[0]:g} s")
    topics = _topics(record, ns)
    index = ("repeat_channels", "repeat_schemas", "use_statistics", "use_summary_offsets")
    bare = {"index_types": IndexType.NONE, **dict.fromkeys(index, False)}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        writer = _begin(file, {"log": header(record)}, chunk_size=LOG_CHUNK, **(bare if small else {}))
        channels = [_channel(writer, topic, kind) for topic, kind, _ in topics]
        # In the order of time, as readers without an index expect it.
        for i, stamp in enumerate(ns.tolist()):
            for channel, (_, _, messages) in zip(channels, topics, strict=True):
                writer.add_message(channel, stamp, messages[i].tobytes(), stamp)
        writer.finish()


def _begin(file: Any, about: dict[str, str], **options: Any) -> Any:
    from mcap.writer import Writer

    writer = Writer(file, **options)
    writer.start(profile="ros2", library=f"gait {__version__}")
    writer.add_metadata(METADATA_NAME, about)
    return writer


def _channel(writer: Any, topic: str, kind: str) -> int:
    schema = writer.register_schema(kind, "ros2msg", full_text(kind).encode())
    return int(writer.register_channel(topic, "cdr", schema))


def _topics(log: Log, ns: AnyArray) -> list[tuple[str, str, AnyArray]]:
    """Name, type and messages (N, size) of each topic that the log has something for."""
    arrays = log.arrays()
    if "t" not in clock.pack(log.t):
        # Whole nanoseconds give the seconds back, and every message has those.
        del arrays["t"]
    if log.has_truth:
        arrays["twist"] = np.rint(log.vel_b / FINE) * FINE
    topics: list[tuple[str, str, str, Given]] = [
        ("/imu/data", IMU, "imu", {"header.frame_id": IMU_FRAME}),
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
