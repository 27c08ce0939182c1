"""Missions of the GrandTour dataset, an ANYmal D: a group of arrays for each topic, in Zarr or in CSV files.

Names are those that the dataset publishes: `anymal_imu` with `ang_vel` and `lin_acc`, `anymal_state_actuator` with
`NN_state_joint_position` and the like for twelve joints, odometries with `pose_pos` and `pose_orien` (x, y, z, w), and
`timestamp`, in seconds, in each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.io import text_numbers
from gait.io.foreign import Piece, log_of
from gait.io.format import Notes, StreamInfo
from gait.io.zarr_arrays import DESCRIPTION, ZarrGroup
from gait.log import Log, Record
from gait.log.fields import AXES
from gait.read_options import NONE, ReadOptions

ROBOT = "anymal_c"
JOINTS = tuple(f"{leg}_{joint}" for leg in ("LF", "RF", "LH", "RH") for joint in ("HAA", "HFE", "KFE"))
"""Actuators 00 to 11."""
_IMU, _ACTUATORS, _STAMPS = "anymal_imu", "anymal_state_actuator", "timestamp"
_STATES = {"q": "state_joint_position", "dq": "state_joint_velocity", "tau": "state_joint_torque"}
_COMMAND = "command_position"
_FAR = 0.5
"""rad: where commands are farther than this from the angles, the actuators do not follow positions."""
_AXIS = re.compile(r"[._\[]?([0-3xyzw])\]?$")


class GrandTour:
    """Reads a mission, its folder `data`, or a folder of CSV files named after topics."""

    name = "GrandTour (Zarr, CSV)"
    suffixes: tuple[str, ...] = ()

    def matches(self, head: bytes) -> bool:
        """No single file is one."""
        return False

    def holds(self, folder: Path) -> bool:
        """Whether a folder is a mission."""
        return bool(_topics(folder))

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log:
        """Read a Log; rows are those of the IMU."""
        topics = _topics(path)
        groups = {name: _group(place) for name, place in topics.items()}
        able = {
            "imu": [name for name, group in groups.items() if {"ang_vel", "lin_acc", _STAMPS} <= set(group.names)],
            "joints": [name for name, group in groups.items() if f"00_{_STATES['q']}" in group.names],
            "truth": [
                name for name, group in groups.items() if {"pose_pos", "pose_orien", _STAMPS} <= set(group.names)
            ],
        }
        imu = _chosen("imu", options.imu, able["imu"], _IMU, path)
        joints = _chosen("joints", options.joints, able["joints"], _ACTUATORS, path)
        pieces = _inertial(imu, groups[imu]) + _actuators(joints, groups[joints], options, notes)
        truth = options.truth
        if truth is not None and truth != NONE:
            pieces += _pose(truth, groups[_chosen("truth", truth, able["truth"], "", path)])
        elif truth is None and able["truth"]:
            either = " or ".join(f"--truth {name}" for name in able["truth"][:6])
            notes.say(f"poses of the mission are estimates, and none is taken as ground truth: {either} if it is")
        used = {imu: "imu", joints: "joints"} | ({truth: "truth"} if truth else {})
        for name, group in groups.items():
            rows = group.shape(_STAMPS)[0] if _STAMPS in group.names else 0
            notes.streams.append(StreamInfo(name, f"{len(group.names)} arrays", rows, float("nan"), used.get(name, "")))
        if options.robot is None:
            notes.say(f"the robot is an ANYmal D, whose description does not ship with gait: {ROBOT} is taken instead")
        return log_of(pieces, replace(options, robot=options.robot or ROBOT), notes, path)

    def write(self, record: Record, path: Path) -> None:
        """Not written: `.npz` and `.mcap` hold the same."""
        raise GaitError(f"gait writes no GrandTour missions: end the name {path} with .npz or .mcap")


class _CsvGroup:
    """A CSV file of one topic: `timestamp`, and a column for each number, such as `ang_vel_x`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = text_numbers.read_lines(path)
        columns = [name.strip().strip('"') for name in (lines[0] if lines else "").split(",")]
        self._columns = text_numbers.parse(path, lines, 1, columns, ",")
        self._parts: dict[str, list[str]] = {}
        for name in columns:
            self._parts.setdefault(name if re.match(r"\d\d_", name) else _AXIS.sub("", name), []).append(name)
        self.names = list(self._parts)

    def shape(self, name: str) -> tuple[int, ...]:
        """Rows, and columns."""
        return len(self._columns[self._parts[name][0]]), len(self._parts[name])

    def read(self, name: str) -> Array:
        """The numbers of one name (n,) or (n, k)."""
        found = np.column_stack([self._columns[part] for part in self._parts[name]])
        return found[:, 0] if found.shape[1] == 1 else found


_Group = ZarrGroup | _CsvGroup


def _topics(folder: Path) -> dict[str, Path]:
    """Topics of a mission by name: folders or tar files of Zarr, or CSV files."""
    for place in (folder, folder / "data"):
        found = {}
        for entry in sorted(place.iterdir()) if place.is_dir() else ():
            if entry.is_dir() and (entry / _STAMPS / DESCRIPTION).is_file():
                found[entry.name] = entry
            elif entry.suffix in (".tar", ".csv") and entry.is_file():
                found.setdefault(entry.stem, entry)
        if _ACTUATORS in found or (_IMU in found and len(found) > 1):
            return found
    return {}


def _group(place: Path) -> _Group:
    return _CsvGroup(place) if place.suffix == ".csv" else ZarrGroup(place)


def _chosen(role: str, asked: str | None, able: Sequence[str], usual: str, path: Path) -> str:
    """The topic for a purpose: as asked, the usual one, or the only one."""
    wanted = asked.strip("/") if asked else usual
    if wanted in able:
        return wanted
    if not asked and len(able) == 1:
        return able[0]
    paste = " or ".join(f"--{role} {name}" for name in able[:6])
    if not able:
        raise GaitError(f"{path} has no topic for {role}: download data/{usual or 'anymal_state_odometry'}* of it too")
    raise GaitError(f"{path} has no topic {wanted} for {role}: choose with {paste}")


def _stamps(topic: str, group: _Group) -> Array:
    if _STAMPS not in group.names:
        raise GaitError(f"{group.path} lacks {_STAMPS}: copy {topic} again")
    return group.read(_STAMPS).reshape(-1)


def _piece(field: str, topic: str, name: str, t: Array, values: Array, names: Sequence[str] = ()) -> Piece:
    if len(values) != len(t):
        raise GaitError(f"{topic}/{name} has {len(values)} rows for {len(t)} stamps: copy it again")
    return Piece(field, f"{topic}/{name}", t, values.reshape(len(t), -1), tuple(names), sure=True)


def _inertial(topic: str, group: _Group) -> list[Piece]:
    t, found = _stamps(topic, group), []
    for field, name in (("gyro", "ang_vel"), ("accel", "lin_acc")):
        values = group.read(name)
        if values.shape != (len(t), 3):
            raise GaitError(f"{topic}/{name} must have three numbers for each of {len(t)} stamps: copy it again")
        found.append(_piece(field, topic, name, t, values))
    return found


def _actuators(topic: str, group: _Group, options: ReadOptions, notes: Notes) -> list[Piece]:
    t, found = _stamps(topic, group), []
    for field, name in {**_STATES, "q_des": _COMMAND}.items():
        names = [f"{i:02d}_{name}" for i in range(len(JOINTS))]
        if set(names) <= set(group.names) and not (field == "q_des" and options.targets == NONE):
            columns = [group.read(one).reshape(-1) for one in names]
            if len({len(column) for column in columns}) > 1:
                raise GaitError(f"{group.path}: {name} of its joints differ in length: copy it again")
            found.append(_piece(field, topic, f"NN_{name}", t, np.column_stack(columns), JOINTS))
    fields = {piece.field: piece for piece in found}
    if "q_des" in fields and options.targets is None:
        apart = float(np.nanmedian(np.abs(fields["q_des"].values - fields["q"].values)))
        if not apart < _FAR:
            notes.say(
                f"{_COMMAND} is {apart:.2g} rad from the joint angles and is left out: --targets {topic} takes it"
            )
            found.remove(fields["q_des"])
    return found


def _pose(topic: str, group: _Group) -> list[Piece]:
    t, turn = _stamps(topic, group), group.read("pose_orien")
    if turn.shape != (len(t), 4):
        raise GaitError(f"{topic}/pose_orien must have four numbers for each of {len(t)} stamps: copy it again")
    return [
        _piece("pos_w", topic, "pose_pos", t, group.read("pose_pos")),
        _piece("quat_wb_wxyz", topic, "pose_orien", t, turn[:, [3, 0, 1, 2]], AXES["wxyz"]),
    ]
