"""What came of reading a file: the record, what was guessed on the way, and what else the file holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from gait.errors import GaitError
from gait.log import Log, Trajectory


@dataclass(frozen=True)
class StreamInfo:
    """One topic of a bag, or one group of another file, whether it was used or not."""

    name: str
    kind: str
    """Type of its messages, such as sensor_msgs/msg/Imu."""
    count: int
    rate: float
    """Hz; nan where it was not looked at."""
    used: str = ""
    """What for: imu, joints, targets, truth; empty if not at all."""


@dataclass
class Notes:
    """Filled while a file is read; every line is a sentence without its full stop."""

    lines: list[str] = field(default_factory=list)
    streams: list[StreamInfo] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    """What gait itself put into a bag beside the messages."""

    def say(self, line: str) -> None:
        """Tell the user; the same line twice is told once."""
        if line and line not in self.lines:
            self.lines.append(line)


@dataclass(frozen=True)
class Reading:
    """A record with all that there is to say about where it came from."""

    record: Log | Trajectory
    path: str
    notes: tuple[str, ...] = ()
    """What was guessed, mended or left out, a sentence each."""
    streams: tuple[StreamInfo, ...] = ()
    """What a bag or an HDF5 file holds; empty for files that are one table."""

    @property
    def log(self) -> Log:
        """The record, if it is a Log; otherwise an error that says so."""
        if not isinstance(self.record, Log):
            raise GaitError(f"{self.path} holds a Trajectory, not a Log: give a file with IMU and joint data")
        return self.record

    @property
    def trajectory(self) -> Trajectory:
        """The record, if it is a Trajectory; otherwise an error that says so."""
        if not isinstance(self.record, Trajectory):
            raise GaitError(f"{self.path} holds a Log, not a Trajectory: give the output of an estimator")
        return self.record
