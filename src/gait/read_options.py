"""How to read a log from elsewhere: one set of options that every verb with a log shares.

It stands outside `gait.io` so that a command line can be parsed before numpy is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

NONE = "none"
"""Given for a topic: leave it out even if there is one."""


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What to say about a file where guessing is not enough. Files that gait wrote need none of it."""

    robot: str | None = None
    """The robot, a name or the path of a YAML file: its joints, in its order. What the file says by default, or go1."""
    imu: str | None = None
    """Topic of the IMU in a bag, or group in an HDF5 file."""
    joints: str | None = None
    """Topic of the joint states."""
    targets: str | None = None
    """Topic of the joint angles that the controller asks for; none to do without."""
    truth: str | None = None
    """Topic of the ground truth pose; none to do without."""
    joint_names: str | None = None
    """Which joint is which: theirs=ours,... or, for joints without names, ours in their order, with commas."""
    columns: Path | None = None
    """YAML file that maps columns of a CSV or datasets of an HDF5 file to fields: `imu_wx: gyro.x`."""
    time: Literal["auto", "header", "message"] = "auto"
    """Stamps in the headers of messages, or the times at which they were recorded."""
    align_clock: bool = False
    """Estimate the time offset of the ground truth from the angular rates, and remove it."""


def given_words(options: ReadOptions) -> list[str]:
    """The words of a command line that say the same, for the next command."""
    words: list[str] = []
    for field in fields(ReadOptions):
        value = getattr(options, field.name)
        if value != field.default:
            words.append(f"--{field.name.replace('_', '-')}")
            words += [] if value is True else [str(value)]
    return words
