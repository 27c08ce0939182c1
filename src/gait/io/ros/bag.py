"""Bags as a format of gait: choose topics and a clock, read, merge."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.documents import load_json
from gait.errors import GaitError, located
from gait.io import clock
from gait.io.format import Notes, StreamInfo, parse_header
from gait.io.guess import says_truth
from gait.io.ros.containers import MCAP, ROS1, SQLITE, ZSTD, Topic, scan
from gait.io.ros.decode import Rows, decode
from gait.io.ros.messages import is_unitree, roles_of, says_command
from gait.io.signals import Signal, merge
from gait.log import Log, Record
from gait.read_options import NONE, ReadOptions
from gait.robot import Robot, robot_names

APART = 1.0
"""Stamps in headers that are further than this (s) from the times of recording are of another clock."""
_SENDERS = {"unitree_go/": "go2", "unitree_hg/": "g1", "anymal_msgs/": "anymal_c"}
"""Whose messages are in these packages, if nothing else is said."""
_NEEDED = {"imu": "sensor_msgs/Imu", "joints": "sensor_msgs/JointState"}


class Bag:
    """ROS 1, ROS 2 and MCAP recordings. They hold what the robot said; a Log is made of it."""

    name = "bag"
    suffixes: tuple[str, ...] = (".mcap",)

    def matches(self, head: bytes) -> bool:
        """MCAP, sqlite3, a ROS 1 bag, or one of the first two in zstd."""
        return head.startswith((MCAP, SQLITE, ROS1, ZSTD))

    def read(self, path: Path, options: ReadOptions, notes: Notes) -> Log:
        """Read a file, or a folder with a bag in it."""
        if options.columns is not None:
            raise GaitError(
                f"--columns is for CSV and HDF5, and {path} is a bag: choose topics with --imu, --joints, --targets and"
                " --truth, joints with --joint-names, and units with --scale, such as --scale gyro=deg/s"
            )
        topics = scan(path, lambda kind: bool(roles_of(kind)), notes)
        # Known even if nothing can be made of them.
        notes.streams += [_stream(topic) for topic in topics]
        ours = _written_by_gait(notes)
        notes.robot = str(ours.get("robot") or _sender(topics))
        own = _robot_of(ours, topics, path) if options.robot is None or ours else None
        robot = own if options.robot is None and own is not None else Robot.load(str(options.robot))
        if own is not None and robot.name != own.name:
            notes.say(f"the log says that it is of {own.name}, and is read as one of {robot.name}, as --robot asks")
        chosen = choose(topics, options, str(path), notes)
        for i, topic in enumerate(topics):
            used = ", ".join(role for role, one in chosen.items() if one.name == topic.name)
            notes.streams[i] = replace(notes.streams[i], used=used)
        if options.robot is None and not ours:
            sender = _sender(topics)
            why = (
                f"its messages are of the package of {sender}"
                if sender
                else "the bag does not say which robot it is of"
            )
            notes.say(f"{why}, so {robot.name} is taken: --robot chooses another")

        decoded = {}
        for role, topic in chosen.items():
            names = robot.leg_names if role == "feet" else robot.encoder_names
            decoded[role] = decode(topic, role, names, options.joint_names, notes)
        if "targets" in decoded and not len(decoded["targets"].recorded):
            del decoded["targets"]
        signals = _on_clock(decoded, options, notes)
        feet = signals.get("feet")
        exact = None if feet is None else feet.arrays.pop("t", None)
        if feet is not None and not feet.arrays:
            del signals["feet"]
        asked = next((role for role in ("truth", "targets") if getattr(options, role) is not None), "")
        source = str(ours.get("source") or path.name)
        with located(path):
            log = merge(signals, robot, notes, source, options, keep=asked)
        return log if exact is None or feet is None else _with_time(log, feet.t, exact)

    def write(self, record: Record, path: Path, compress: bool = False) -> None:
        """Write MCAP with standard ROS 2 messages, as any ROS tool reads it; smaller without its index."""
        from gait.io.ros.mcap_writer import write_log

        write_log(record, path, small=compress)


def _sender(topics: Sequence[Topic]) -> str:
    """The robot whose makers' messages there are; empty for those of all robots."""
    return next((robot for package, robot in _SENDERS.items() if any(package in t.kind for t in topics)), "")


def _written_by_gait(notes: Notes) -> dict[str, Any]:
    """What the Log said of itself, if gait wrote the file from one."""
    try:
        return parse_header(notes.about["log"], "the file")[1] if "log" in notes.about else {}
    except GaitError:
        return {}


def _robot_of(ours: dict[str, Any], topics: Sequence[Topic], path: Path) -> Robot:
    """The robot that the file carries, or one that it names and gait knows, never the path of a file; else that of its
    messages."""
    name = str(ours.get("robot", _sender(topics) or "go1"))
    if ours.get("description"):
        with contextlib.suppress(ValueError):
            return Robot.of(load_json(str(ours["description"])), str(path))
    if name not in robot_names():
        known = ", ".join(robot_names())
        raise GaitError(f"{path} is of the robot '{name}', which gait does not know: give --robot, {known} or a file")
    return Robot.load(name)


def _with_time(log: Log, stamps: Array, exact: Array) -> Log:
    """The Log with the seconds that were written beside the stamps, to the last bit."""
    rows = np.clip(np.searchsorted(stamps, log.t), 0, len(stamps) - 1)
    same = (stamps[rows] == log.t).all() and np.abs(exact[rows] - log.t).max() < clock.ROUNDING
    return log.replace(t=exact[rows]) if same else log


def _stream(topic: Topic) -> StreamInfo:
    signal = Signal(topic.name, np.array(topic.stamps, dtype=np.float64) / 1e9)
    return StreamInfo(topic.name, topic.kind, len(signal.t), signal.rate)


def _on_clock(decoded: dict[str, Rows], options: ReadOptions, notes: Notes) -> dict[str, Signal]:
    """Signals with stamps: those of the headers where all agree with the times of recording."""
    # A clock that starts at zero has one stamp of zero; more are headers without stamps.
    headers = {
        role: rows.header
        for role, rows in decoded.items()
        if rows.header is not None and np.count_nonzero(rows.header == 0) <= 1
    }
    bare = [rows.name for role, rows in decoded.items() if role not in headers]
    shift = {role: float(np.median(ns - decoded[role].recorded)) / 1e9 for role, ns in headers.items() if len(ns)}
    if options.time == "header" and bare:
        raise GaitError(f"{bare[0]} has no stamps in its headers: give --time message, or leave --time out")
    use = options.time == "header"
    if options.time == "auto" and shift:
        spread, far = max(shift.values()) - min(shift.values()), max(map(abs, shift.values()))
        # Headers on one other clock (a robot's that was never set) are fine as long as all are on it.
        use = spread < APART and (far < APART or not bare)
    if not use:
        why = " (the headers disagree)" if shift else " (the headers have none)"
        notes.say(f"time: when messages were recorded{'' if options.time == 'message' else why}")
    elif bare:
        names = ", ".join(dict.fromkeys(bare))
        notes.say(f"time: stamps of the headers; {names} has none there, so when its messages were recorded")
    else:
        notes.say("time: stamps of the headers")
    return {
        role: Signal(rows.name, clock.from_ns(headers.get(role, rows.recorded) if use else rows.recorded), rows.arrays)
        for role, rows in decoded.items()
    }


def choose(topics: Sequence[Topic], options: ReadOptions, where: str, notes: Notes) -> dict[str, Topic]:
    """The topic for each purpose: imu, joints, and where there are any targets, truth and feet.

    Raises:
        GaitError: if there is none for the IMU or the joints, or several might do; the message has what to type.
    """
    full = [topic for topic in topics if topic.stamps]
    chosen: dict[str, Topic] = {}
    for role in ("imu", "joints", "targets", "truth"):
        asked = getattr(options, role)
        if asked is not None and asked != NONE:
            chosen[role] = named_topic(asked, role, full, where)
    for role in ("imu", "joints", "targets", "truth", "feet"):
        if role not in chosen and getattr(options, role, None) != NONE:
            found = _guess(role, full, chosen, where, notes)
            if found is not None:
                chosen[role] = found
    return chosen


def named_topic(asked: str, role: str, topics: Sequence[Topic], where: str) -> Topic:
    """The topic of a name that is of use for a purpose; if there is none, an error with what to type."""
    same = [topic for topic in topics if topic.name.strip("/") == asked.strip("/")]
    if not same:
        fitting = [topic.name for topic in topics if role in roles_of(topic.kind)]
        near = difflib.get_close_matches(asked, [topic.name for topic in topics], n=1)
        fix = f"did you mean --{role} {near[0]}?" if near else _paste(role, fitting) or "see `gait info` for its topics"
        raise GaitError(f"{where} has no topic {asked} with messages: {fix}")
    able = [topic for topic in same if role in roles_of(topic.kind)]
    if not able:
        raise GaitError(f"{asked} holds {same[0].kind or 'messages of no type'}, which tells nothing of {role}")
    return able[0]


def _guess(role: str, topics: Sequence[Topic], chosen: dict[str, Topic], where: str, notes: Notes) -> Topic | None:
    able = [topic for topic in topics if role in roles_of(topic.kind)]
    if role == "joints":
        # The state of the robot is what does not speak of commands; with one topic alone there is no choice.
        able = [topic for topic in able if topic is not chosen.get("targets")]
        able = [topic for topic in able if not says_command(topic.name)] or able
    if role == "targets":
        able = [topic for topic in able if topic is not chosen.get("joints")]
        able = [topic for topic in able if is_unitree(topic.kind) or says_command(topic.name)]
    if role == "truth":
        # The odometry of a robot, gait's own too, is an estimate: to score against it would flatter or slander.
        named = [topic for topic in able if says_truth(topic.name)]
        if able and not named:
            either = _paste(role, [topic.name for topic in able])
            listed = ", ".join(topic.name for topic in able[:6])
            notes.say(f"no topic is named as ground truth; {listed} may be an estimate: {either} if it is the truth")
        able = named
    if role in ("imu", "joints"):
        # One message with both has both on one clock.
        able = [topic for topic in able if is_unitree(topic.kind)] or able
    if len(able) > 1:
        best = _best(role, able)
        if best is None:
            names = [topic.name for topic in able]
            none = f", or --{role} {NONE}" if role not in _NEEDED else ""
            raise GaitError(f"{where} has {len(able)} topics for {role}: choose with {_paste(role, names)}{none}")
        left = ", ".join(topic.name for topic in able if topic is not best)
        notes.say(f"{best.name} taken for {role}, not {left}: --{role} TOPIC chooses another")
        return best
    if not able and role in _NEEDED:
        kinds = ", ".join(sorted({f"{topic.name} ({topic.kind or topic.encoding})" for topic in topics})[:8])
        raise GaitError(
            f"{where} has no {role}: {_NEEDED[role]} or a Unitree LowState is needed, but it has {kinds or 'nothing'}"
        )
    return able[0] if able else None


def _best(role: str, able: Sequence[Topic]) -> Topic | None:
    """The one that a plain name makes likely, if there is but one."""
    plain = {"imu": ("imu/data", "imu"), "joints": ("joint_states",), "truth": ("ground_truth",)}.get(role, ())
    for name in plain:
        fitting = [topic for topic in able if topic.name.strip("/") == name]
        if len(fitting) == 1:
            return fitting[0]
    return None


def _paste(role: str, names: Sequence[str]) -> str:
    return " or ".join(f"--{role} {name}" for name in names[:6])
