"""What the user says about a log that gait wrote itself: its robot, its joints, units, what to leave out, its clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gait.errors import GaitError, located
from gait.io.format import Notes
from gait.io.joints import match_joints
from gait.io.scaling import scaled
from gait.io.signals import Signal, aligned_stamps
from gait.log import Log, Trajectory
from gait.read_options import NONE, ReadOptions
from gait.robot import Robot

_OF_ROLE = {role: [one.name for one in Log.FIELDS if one.role == role] for role in ("truth", "targets")}


def as_asked(record: Log | Trajectory, options: ReadOptions, notes: Notes, path: Path) -> Log | Trajectory:
    """A Log as the options ask for it; a Trajectory as it is."""
    if not isinstance(record, Log):
        return record
    for role in ("imu", "joints", "targets", "truth"):
        asked = getattr(options, role)
        if asked is not None and (asked != NONE or role not in _OF_ROLE):
            known = f"--{role} none, or leave --{role} out" if role in _OF_ROLE else f"leave --{role} out"
            raise GaitError(
                f"{path} is a table with the fields of gait and has no topics such as {asked}: give {known}"
            )
    with located(path):
        log = _joints(record, options, notes)
        if options.scale:
            log = log.replace(**scaled(log.arrays(), options.scale, log.labels))
    left_out = {name: None for role, names in _OF_ROLE.items() if getattr(options, role) == NONE for name in names}
    log = log.replace(**left_out) if left_out else log
    return _aligned(log, notes) if options.align_clock and log.has_truth else log


def _joints(log: Log, options: ReadOptions, notes: Notes) -> Log:
    """Joints by the names that the user gives, in the order of the robot that the user names."""
    if options.joint_names:
        robot = Robot.load(options.robot) if options.robot else log.load_robot()
        match = match_joints(log.joint_names, robot.joint_names, options.joint_names)
        ours = {log.joint_names[place]: name for place, name in zip(match.index, robot.joint_names, strict=True)}
        # A name that is free now must not meet one that another joint had.
        spare = {name: f"{name}.unused" for name in log.joint_names if name not in ours}
        log = log.replace(joint_names=[{**spare, **ours}[name] for name in log.joint_names]).reorder(robot)
    if options.robot is None:
        return log
    found = log.reorder(options.robot)
    if found.robot != log.robot:
        notes.say(f"the log says that it is of {log.robot}, and is read as one of {found.robot}, as --robot asks")
    return found


def _aligned(log: Log, notes: Notes) -> Log:
    """The log with its ground truth shifted onto the clock of the IMU, where there still is some."""
    names = [name for name in _OF_ROLE["truth"] if getattr(log, name) is not None]
    truth = Signal("ground truth", log.t, {name: log.need(name) for name in names})
    truth.t = aligned_stamps(truth, Signal("imu", log.t, {"gyro": log.gyro}), notes)
    inside = (log.t >= truth.t[0]) & (log.t <= truth.t[-1])
    if np.count_nonzero(inside) < 2:
        raise GaitError("the ground truth is off by more than the whole log: record both on one clock")
    kept = {name: array[inside] for name, array in log.arrays().items() if name not in names}
    return log.replace(**kept, **truth.at(log.t[inside]))
