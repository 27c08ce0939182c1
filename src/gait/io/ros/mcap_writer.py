"""MCAP files of odometry and transforms, as Foxglove and ROS 2 read them."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from gait.arrays import Array
from gait.errors import GaitError, os_errors
from gait.io.clock import to_ns
from gait.io.ros.definitions import ODOMETRY, TRANSFORMS, full_text
from gait.io.ros.odometry import Converter, Encoder
from gait.robot import Robot

if TYPE_CHECKING:
    from collections.abc import Callable

    from gait.log.trajectory import Trajectory

CHUNK = 256 * 1024
"""Bytes that are compressed and written at once: a quarter of a second at 1 kHz, and done in about a millisecond."""


class McapRecorder:
    """Writes `/odom` and `/tf`, message by message; `close` makes the file complete.

    A file is never overwritten. If the process is killed, what was written so far is still there: `mcap recover` reads
    all but the last chunk.

    Example:
        with McapRecorder("walk.mcap", robot) as recorder:
            recorder.write(ns, converter.of_state(state, gyro))
    """

    def __init__(
        self, path: str | Path, encoder: Encoder | None = None, *, robot: str = "", method: str = "", source: str = ""
    ) -> None:
        """Begin a file.

        Args:
            path: of a file that does not exist yet.
            encoder: for the names of the frames.
            robot: its name, kept in the file.
            method: how the state was estimated, kept in the file.
            source: where the samples come from, kept in the file.
        """
        from mcap.writer import Writer

        from gait._version import __version__

        self.path, self.count = Path(path), 0
        self._encoder = encoder or Encoder()
        if self.path.exists():
            raise GaitError(f"{path} exists: name a file that does not, or move it away")
        with os_errors(f"cannot write {path}"):
            self._file = self.path.open("xb")
        self._writer = Writer(self._file, chunk_size=CHUNK)
        self._writer.start(profile="ros2", library=f"gait {__version__}")
        self._kinds: dict[str, int] = {}
        self._odometry, self._transform = self.channel("/odom", ODOMETRY), self.channel("/tf", TRANSFORMS)
        about = {"robot": robot, "method": method, "source": source, "frame": self._encoder.frame}
        self._writer.add_metadata("gait", {**about, "version": __version__})

    def write(self, ns: int, values: Array) -> None:
        """Write the numbers of an odometry message (`Converter`) with their time in nanoseconds."""
        self.write_messages(ns, self._encoder.odometry(ns, values), self._encoder.transform(ns, values))

    def write_messages(self, ns: int, odometry: bytes, transform: bytes) -> None:
        """Write messages that are encoded already."""
        self.write_to(self._odometry, ns, odometry)
        self.write_to(self._transform, ns, transform)
        self.count += 1

    def channel(self, topic: str, kind: str) -> int:
        """Begin a topic of messages of some type, and give the number to write to."""
        if kind not in self._kinds:
            self._kinds[kind] = self._writer.register_schema(kind, "ros2msg", full_text(kind).encode())
        number: int = self._writer.register_channel(topic, "cdr", self._kinds[kind])
        return number

    def write_to(self, channel: int, ns: int, message: bytes) -> None:
        """Write a message of any topic."""
        # The format has no time before 1970.
        time = max(ns, 0)
        with os_errors(f"cannot write {self.path}"):
            self._writer.add_message(channel, time, message, time, self.count)

    def close(self) -> None:
        """Write what is left, and the index."""
        if self._file.closed:
            return
        try:
            self._writer.finish()
        finally:
            self._file.close()

    def __enter__(self) -> McapRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_mcap(
    path: Path,
    trajectory: Trajectory,
    robot: Robot,
    gyro: Array | None = None,
    encoder: Encoder | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Write a whole trajectory.

    Args:
        path: of a file that does not exist yet.
        trajectory: what to write.
        robot: whose IMU measured.
        gyro: for the turn rate (N, 3), in IMU axes.
        encoder: for the names of the frames.
        progress: called with the share that is written.
    """
    encoder = encoder or Encoder()
    rows = Converter(robot, rate=trajectory.rate or 500.0).of_trajectory(trajectory, gyro)
    with McapRecorder(path, encoder, robot=robot.name, method=trajectory.source) as recorder:
        for i, (ns, values) in enumerate(zip(to_ns(trajectory.t).tolist(), rows, strict=True)):
            recorder.write(ns, values)
            if i % 5000 == 0:
                progress(i / len(rows))
