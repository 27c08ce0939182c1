"""Which topic is used for what: by its type, by its name where that says more, and else by asking."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from gait.errors import GaitError
from gait.io.format import Notes
from gait.io.ros.containers import Topic
from gait.io.ros.messages import is_unitree, roles_of, says_command, says_truth
from gait.read_options import NONE, ReadOptions

_NEEDED = {"imu": "sensor_msgs/Imu", "joints": "sensor_msgs/JointState"}


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
            chosen[role] = _named(asked, role, full, where)
    for role in ("imu", "joints", "targets", "truth", "feet"):
        if role not in chosen and getattr(options, role, None) != NONE:
            found = _guess(role, full, chosen, where, notes)
            if found is not None:
                chosen[role] = found
    return chosen


def _named(asked: str, role: str, topics: Sequence[Topic], where: str) -> Topic:
    same = [topic for topic in topics if topic.name.strip("/") == asked.strip("/")]
    if not same:
        fitting = [topic.name for topic in topics if role in roles_of(topic.kind)]
        near = difflib.get_close_matches(asked, [topic.name for topic in topics], n=1)
        hint = (
            f"did you mean --{role} {near[0]}?" if near else _paste(role, fitting) or "see `gait info` for its topics"
        )
        raise GaitError(f"{where} has no topic {asked} with messages: {hint}")
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
        able = [topic for topic in able if says_truth(topic.name)] or able
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
    if role == "truth" and able and not says_truth(able[0].name):
        notes.say(f"{able[0].name} taken as ground truth: --truth none if it is an estimate")
    return able[0] if able else None


def _best(role: str, able: Sequence[Topic]) -> Topic | None:
    """The one that a plain name makes likely, if there is but one."""
    plain = {"imu": ("imu/data", "imu"), "joints": ("joint_states",), "truth": ("ground_truth", "odom")}.get(role, ())
    for name in plain:
        fitting = [topic for topic in able if topic.name.strip("/") == name]
        if len(fitting) == 1:
            return fitting[0]
    return None


def _paste(role: str, names: Sequence[str]) -> str:
    return " or ".join(f"--{role} {name}" for name in names[:6])
