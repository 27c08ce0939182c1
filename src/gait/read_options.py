"""How to read a log from elsewhere: one set of options that every verb with a log shares.

It stands outside `gait.io` so that a command line can be parsed before numpy is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, Optional

NONE = "none"
"""Given for a topic: leave it out even if there is one."""


# Not `str | None`: for that tyro imports a type checker, which doubles the time of a help.
@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What to say about a file where guessing is not enough. Files that gait wrote need none of it."""

    robot: Optional[str] = None  # noqa: UP045
    """The robot, a name or the path of its YAML, URDF or MJCF file: its joints, in its order. By default
    the one that the log names, or go1."""
    imu: Optional[str] = None  # noqa: UP045
    """Topic of the IMU in a bag, or group in an HDF5 file."""
    joints: Optional[str] = None  # noqa: UP045
    """Topic of the joint states."""
    targets: Optional[str] = None  # noqa: UP045
    """Topic of the joint angles that the controller asks for; none to do without."""
    truth: Optional[str] = None  # noqa: UP045
    """Topic (column, dataset) of the ground truth pose, or a file of it, such as mocap.tum; none to do without."""
    joint_names: Optional[str] = None  # noqa: UP045
    """Which joint is which: theirs=ours,... or, for joints without names, ours in their order, with commas."""
    columns: Optional[Path] = None  # noqa: UP045
    """YAML file that maps columns of a CSV or datasets of an HDF5 file to fields: `imu_wx: gyro.x`."""
    scale: Optional[str] = None  # noqa: UP045
    """Units and signs: field=unit or field=factor, with commas, such as gyro=deg/s,accel=g,q.FR_hip_joint=-1; `joints`
    stands for q, dq, q_des and tau."""
    time: Literal["auto", "header", "message"] = "auto"
    """Stamps in the headers of messages, or the times at which they were recorded."""
    align_clock: bool = False
    """Estimate the time offset of the ground truth from the angular rates, and remove it."""
    fix: bool = False
    """Correct what the checks are certain of, such as a gyro in degrees, and say so."""


def asked(options: ReadOptions) -> dict[str, object]:
    """The options that differ from the default, by name."""
    values = {field.name: (getattr(options, field.name), field.default) for field in fields(ReadOptions)}
    return {name: value for name, (value, default) in values.items() if value != default}


def plain_options(options: ReadOptions) -> ReadOptions:
    """The same without what a verb adds to them."""
    return ReadOptions(**{field.name: getattr(options, field.name) for field in fields(ReadOptions)})


def given_words(options: ReadOptions) -> list[str]:
    """The words of a command line that say the same, for the next command."""
    words: list[str] = []
    for name, value in asked(options).items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words
