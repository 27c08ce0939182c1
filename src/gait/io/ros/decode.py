"""From the messages of a topic to a signal: columns of numbers, joints in the robot's order, stamps of either clock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError, located
from gait.io.format import Notes
from gait.io.joints import match_joints
from gait.io.ros import definitions
from gait.io.ros.containers import Topic
from gait.io.ros.layout import Block, Paths, blocks
from gait.io.ros.messages import FIELDS, NAMED, has_target, unitree_motors

_NEEDED = {"imu": ("gyro", "accel"), "joints": ("q",), "targets": ("q_des",), "truth": ("pos_w", "quat_wb_wxyz")}
"""Fields without which messages are of no use; the definition in a file may leave out any."""


class Rows(NamedTuple):
    """Fields of the messages of a topic, in the order in which they were recorded; stamps are whole nanoseconds."""

    name: str
    places: AnyArray
    """Their places among all messages (n,)."""
    recorded: AnyArray
    header: AnyArray | None
    """None if the type has no header."""
    arrays: dict[str, AnyArray]

    def change(self, change: Callable[[AnyArray], AnyArray]) -> Rows:
        """The same with other fields: some joints, say."""
        return self._replace(arrays={name: change(array) for name, array in self.arrays.items()})


def decode(topic: Topic, role: str, joints: tuple[str, ...], names: str | None, notes: Notes) -> Rows:
    """Read the messages of a topic for one purpose.

    Args:
        topic: as scanned.
        role: imu, joints, targets, truth or feet.
        joints: names of the robot's joints (of its legs, for feet).
        names: what the user says about names, as `ReadOptions.joint_names`.
        notes: is told what was guessed and what cannot be read.
    """
    ros1 = topic.encoding == "ros1"
    if topic.encoding not in ("cdr", "ros1"):
        raise GaitError(f"{topic.name} is written in {topic.encoding or 'an unknown way'}: record it in ROS, or as CSV")
    found, bad, why = blocks(topic.messages, topic.kind, _types(topic, ros1), packed=ros1)
    if not found:
        raise GaitError(f"no message of {topic.name} can be read as {topic.kind} ({why or 'it has none'})")
    if bad:
        notes.say(f"{topic.name}: {bad} of {len(topic.messages)} messages cannot be read ({why})")
    if topic.kind in NAMED and role in ("joints", "targets"):
        return _named_joints(topic, found, role, joints, names, notes)
    rows = _collect(topic, found, role)
    if role == "feet":
        return rows._replace(arrays=_feet(rows.arrays, found[0].layout.texts.get("name", ()), joints))
    if role in ("joints", "targets"):
        index = list(match_joints(unitree_motors(topic.kind, joints), joints, names).index)
        rows = rows.change(lambda array: array[:, index])
    return _with_targets(rows, notes) if "kp" in rows.arrays else rows


def _types(topic: Topic, ros1: bool) -> definitions.Fields:
    """Definitions that the bag carries, else those that gait knows."""
    if topic.definition:
        # The parser fails in ways of its own.
        with contextlib.suppress(Exception):
            types = definitions.parse(topic.definition, topic.kind, idl=topic.language == "idl")
            if topic.kind in types:
                time = "builtin_interfaces/msg/Time"
                return {time: definitions.known(ros1)[time], **types}
    return definitions.known(ros1)


def _collect(topic: Topic, found: Sequence[Block], role: str) -> Rows:
    """The fields that all blocks have."""
    fields = FIELDS[topic.kind][role]
    index = np.concatenate([block.rows for block in found])
    order = np.argsort(index)
    shared = [name for name, path in fields.items() if all(block.layout.has(path) for block in found)]
    if not shared:
        raise GaitError(f"messages have no field {fields[next(iter(fields))]}: they are of another version")

    def column(path: Paths) -> AnyArray | None:
        parts = [block.read(path) for block in found]
        alike = len({part.shape[1:] for part in parts}) == 1 and parts[0].size
        return np.concatenate(parts)[order] if alike else None

    header = None
    if all(block.layout.has("header.stamp.sec") for block in found):
        sec, nanosec = column("header.stamp.sec"), column("header.stamp.nanosec")
        assert sec is not None and nanosec is not None
        header = sec * 1_000_000_000 + nanosec
    recorded = np.array(topic.stamps, dtype=np.int64)[index[order]]
    columns = {name: column(fields[name]) for name in shared}
    arrays = {name: array for name, array in columns.items() if array is not None}
    needed = [name for name in _NEEDED.get(role, ()) if name not in arrays]
    if needed:
        raise GaitError(f"{topic.name} has no numbers for {needed[0]}: its messages are of another version")
    return Rows(topic.name, index[order], recorded, header, arrays)


def _feet(arrays: Mapping[str, AnyArray], names: tuple[str, ...], legs: tuple[str, ...]) -> dict[str, AnyArray]:
    index = [names.index(leg) for leg in legs if leg in names]
    if len(index) != len(legs):
        raise GaitError(f"the feet in the log are {', '.join(names)}, but the legs of the robot are {', '.join(legs)}")
    found = {"t": arrays["t"][:, 0]} if "t" in arrays else {}
    for name, width in (("contact", 1), ("foot_force", 1), ("foot_vel_w", 3)):
        if name in arrays and arrays[name].shape[1] == width * len(names):
            per_foot = arrays[name].reshape(-1, len(names), width)[:, index]
            found[name] = per_foot if width > 1 else per_foot[..., 0]
    if "contact" in found:
        found["contact"] = found["contact"] != 0
    return found


def _named_joints(
    topic: Topic, found: Sequence[Block], role: str, joints: tuple[str, ...], names: str | None, notes: Notes
) -> Rows:
    """Joint states by name. Several publishers may share a topic, each with joints of its own."""
    groups: dict[tuple[str, ...], list[Block]] = {}
    short = ""
    for block in found:
        at = NAMED[topic.kind]
        count, listed = block.layout.count(f"{at}position"), block.layout.texts.get(f"{at}name", ())
        if count < len(listed):
            short = f"{len(listed)} names but {count} positions"
            continue
        if 0 < len(listed) < count:
            less = f"{count} positions but {len(listed)} names"
            notes.say(f"{topic.name}: {less}; the first {len(listed)} positions are taken to be those with a name")
        if count:
            listed = (*listed, *(f"joint_{i}" for i in range(len(listed), count)))
            groups.setdefault(listed, []).append(block)
    if not groups:
        lacks = f"messages with {short}, so which is which is not known" if short else "no joint angles"
        raise GaitError(f"{topic.name} has {lacks}: choose another topic with --{role}")
    sets = {}
    for listed, several in groups.items():
        rows = _collect(topic, several, role)
        sets[listed] = rows._replace(arrays={k: v for k, v in rows.arrays.items() if v.shape[1] == len(listed)})
    whole = [key for key in sets if len(key) >= len(joints)]
    together = tuple(dict.fromkeys(name for key in sets for name in key))
    if not whole and len(together) >= len(joints):
        notes.say(f"{topic.name}: joints come in {len(sets)} kinds of message, and were put together")
        listed, rows = together, _join(list(sets.values()))
    else:
        listed = max(whole or sets, key=lambda key: len(sets[key].places))
        rows = sets[listed]
    with located(topic.name):
        match = match_joints(listed, joints, names)
    notes.say(f"{topic.name}: {match.note}" if match.note else "")
    if listed in sets and len(sets) > 1:
        others = len(topic.messages) - len(rows.places)
        notes.say(f"{topic.name}: {others} messages name other joints, and were left out")
    return rows.change(lambda array: array[:, list(match.index)])


def _join(sets: Sequence[Rows]) -> Rows:
    """One row for each message of the publisher that starts last, with what the others published just before."""
    last = max(sets, key=lambda rows: int(rows.places[0]))
    shared = set.intersection(*(set(rows.arrays) for rows in sets))
    before = [np.searchsorted(rows.places, last.places, side="right") - 1 for rows in sets]
    arrays = {}
    for name in shared:
        arrays[name] = np.concatenate([rows.arrays[name][at] for rows, at in zip(sets, before, strict=True)], axis=1)
    return last._replace(arrays=arrays)


def _with_targets(rows: Rows, notes: Notes) -> Rows:
    """Without the commands that give no angle: motors off, or driven by torque alone."""
    real = np.all(has_target(rows.arrays["q_des"]) & (rows.arrays.pop("kp") > 0.0), axis=1)
    if not real.all():
        count = f"{int((~real).sum())} of {len(real)}"
        notes.say(f"{rows.name}: {count} commands give no angle for a joint, and were left out")
    header = None if rows.header is None else rows.header[real]
    return rows.change(lambda array: array[real])._replace(recorded=rows.recorded[real], header=header)
