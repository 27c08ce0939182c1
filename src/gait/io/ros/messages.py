"""From messages to signals: which field of which type is which field of a Log."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.joints import match_joints
from gait.io.reading import Notes
from gait.io.ros import definitions
from gait.io.ros.layout import Block, blocks
from gait.io.ros.topic import Topic
from gait.io.signals import Signal

UNITREE = ("unitree_go", "unitree_legged_msgs", "ros2_unitree_legged_msgs")
_LEGS = ("FR", "FL", "RR", "RL")
UNITREE_JOINTS = tuple(f"{leg}_{joint}_joint" for leg in _LEGS for joint in ("hip", "thigh", "calf"))
"""Motors 0 to 11 of every Unitree quadruped."""
NO_TARGET = 1e3
"""Beyond any angle: Unitree's way to say that a motor has no target."""

_POSES = {
    "nav_msgs/msg/Odometry": ("pose.pose.position", "pose.pose.orientation"),
    "geometry_msgs/msg/PoseStamped": ("pose.position", "pose.orientation"),
    "geometry_msgs/msg/PoseWithCovarianceStamped": ("pose.pose.position", "pose.pose.orientation"),
    "geometry_msgs/msg/TransformStamped": ("transform.translation", "transform.rotation"),
}


@dataclass(frozen=True)
class Decoded:
    """A signal on either clock; stamps are whole nanoseconds (n,)."""

    signal: Signal
    recorded: AnyArray
    header: AnyArray | None
    """None if the type has no header, or nobody filled it in."""


def roles_of(kind: str) -> tuple[str, ...]:
    """What messages of a type may be used for."""
    package, _, name = kind.partition("/msg/")
    if package in UNITREE:
        return {"LowState": ("imu", "joints"), "LowCmd": ("targets",)}.get(name, ())
    if kind in _POSES:
        return ("truth",)
    return {
        "sensor_msgs/msg/Imu": ("imu",),
        "sensor_msgs/msg/JointState": ("joints", "targets"),
        definitions.FEET_TYPE: ("feet",),
    }.get(kind, ())


def decode(topic: Topic, role: str, joints: tuple[str, ...], names: str | None, notes: Notes) -> Decoded:
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
    found, bad, why = blocks(topic.messages, topic.kind, _types(topic, ros1), aligned=not ros1)
    if not found:
        raise GaitError(f"no message of {topic.name} can be read as {topic.kind} ({why or 'it has none'})")
    if bad:
        notes.say(f"{topic.name}: {bad} of {len(topic.messages)} messages cannot be read ({why})")
    package = topic.kind.partition("/")[0]
    if role in ("joints", "targets") and package not in UNITREE:
        parts = _named_joints(topic, found, role, joints, names, notes)
    else:
        read: Callable[[Block], dict[str, AnyArray]] = {
            "imu": _unitree_imu if package in UNITREE else _imu,
            "joints": lambda block: _unitree_joints(block, joints, names),
            "targets": lambda block: _unitree_targets(block, joints, names),
            "truth": lambda block: _pose(block, *_POSES.get(topic.kind, ("", ""))),
            "feet": lambda block: _feet(block, joints),
        }[role]
        parts = [(block, read(block)) for block in found]
    rows = np.concatenate([block.rows for block, _ in parts])
    order = np.argsort(rows)
    shared = set.intersection(*(set(arrays) for _, arrays in parts))
    arrays = {
        name: np.concatenate([arrays[name] for _, arrays in parts])[order] for name in parts[0][1] if name in shared
    }
    recorded = np.array(topic.stamps, dtype=np.int64)[rows[order]]
    if package in UNITREE and role == "targets":
        arrays, kept = _real_targets(topic, arrays, notes)
        order, recorded = order[kept], recorded[kept]
    stamps = [_stamps(block) for block, _ in parts]
    header = None
    if all(stamp is not None for stamp in stamps):
        header = np.concatenate([stamp for stamp in stamps if stamp is not None])[order]
        # A clock that starts at zero says so once.
        header = None if np.count_nonzero(header == 0) > 1 else header
    return Decoded(Signal(topic.name, recorded / 1e9, arrays), recorded, header)


def _types(topic: Topic, ros1: bool) -> definitions.Fields:
    """Definitions that the bag carries, else those that gait knows."""
    if topic.definition:
        try:
            types = definitions.parse(topic.definition, topic.kind, idl=topic.language == "idl")
        except Exception:
            # The parser fails in ways of its own.
            types = {}
        if topic.kind in types:
            base = definitions.known(ros1)
            return {"builtin_interfaces/msg/Time": base["builtin_interfaces/msg/Time"], **types}
    return definitions.known(ros1)


def _stamps(block: Block) -> AnyArray | None:
    if not block.has("header.stamp.sec"):
        return None
    return np.asarray(block.array("header.stamp.sec") * 1_000_000_000 + block.array("header.stamp.nanosec"))


def _xyz(block: Block, path: str) -> AnyArray:
    return block.stack(*(f"{path}.{axis}" for axis in "xyz"))


def _imu(block: Block) -> dict[str, AnyArray]:
    return {"gyro": _xyz(block, "angular_velocity"), "accel": _xyz(block, "linear_acceleration")}


def _pose(block: Block, position: str, orientation: str) -> dict[str, AnyArray]:
    quat = block.stack(*(f"{orientation}.{axis}" for axis in "wxyz"))
    found = {"pos_w": _xyz(block, position), "quat_wb_wxyz": quat}
    if block.has("twist.twist.linear.x"):
        found["twist"] = _xyz(block, "twist.twist.linear")
    return found


def _feet(block: Block, legs: tuple[str, ...]) -> dict[str, AnyArray]:
    names = block.texts("name")
    index = [names.index(leg) for leg in legs if leg in names]
    if len(index) != len(legs):
        raise GaitError(f"the feet in the log are {', '.join(names)}, but the legs of the robot are {', '.join(legs)}")
    count = len(names)
    found = {}
    for ours, theirs in (("contact", "contact"), ("foot_force", "force"), ("foot_vel_w", "velocity")):
        values = block.array(theirs)
        if values.shape[1] == count * (3 if ours == "foot_vel_w" else 1):
            values = values.reshape(len(values), count, -1)[:, index]
            found[ours] = {"contact": values[..., 0] != 0, "foot_force": values[..., 0]}.get(ours, values)
    if block.parts["t"].count == 1:
        found["t"] = block.array("t")[:, 0]
    return found


# Joints by name


def _named_joints(
    topic: Topic, found: list[Block], role: str, joints: tuple[str, ...], names: str | None, notes: Notes
) -> list[tuple[Block, dict[str, AnyArray]]]:
    """Joint states by name. Several senders may share a topic, each with joints of its own."""
    apart = [part for block in found for part in block.split("name")]
    sets: dict[tuple[str, ...], list[Block]] = {}
    for block in apart:
        count = block.parts["position"].count
        listed = tuple(block.texts("name")) or tuple(f"joint_{i}" for i in range(count))
        if count == len(listed):
            sets.setdefault(listed, []).append(block)
    if not sets:
        raise GaitError(f"{topic.name} has no joint angles: choose another topic with --{role}")
    whole = [key for key in sets if len(key) >= len(joints)]
    together = tuple(dict.fromkeys(name for key in sets for name in key))
    if not whole and len(together) >= len(joints):
        return [_join(sets, together, joints, names, topic, notes)]
    listed = max(whole or sets, key=lambda key: sum(len(block.rows) for block in sets[key]))
    index = list(_match(topic, listed, joints, names, notes))
    if len(sets) > 1:
        others = len(topic.messages) - sum(len(block.rows) for block in sets[listed])
        notes.say(f"{topic.name}: {others} messages name other joints, and were left out")
    parts = [(block, _joint_arrays(block, len(listed), index)) for block in sets[listed]]
    return parts


def _match(
    topic: Topic, listed: tuple[str, ...], joints: tuple[str, ...], names: str | None, notes: Notes
) -> tuple[int, ...]:
    try:
        found = match_joints(listed, joints, names)
    except GaitError as error:
        raise GaitError(f"{topic.name}: {error}") from None
    notes.say(f"{topic.name}: {found.note}" if found.note else "")
    return found.index


def _joint_arrays(block: Block, count: int, index: list[int]) -> dict[str, AnyArray]:
    found = {"q": block.array("position")[:, index]}
    for ours, theirs in (("dq", "velocity"), ("tau", "effort")):
        if block.parts[theirs].count == count:
            found[ours] = block.array(theirs)[:, index]
    return found


def _join(
    sets: dict[tuple[str, ...], list[Block]],
    together: tuple[str, ...],
    joints: tuple[str, ...],
    names: str | None,
    topic: Topic,
    notes: Notes,
) -> tuple[Block, dict[str, AnyArray]]:
    """One row for each message of the sender that comes last, with what the others said just before."""
    index = list(_match(topic, together, joints, names, notes))
    notes.say(f"{topic.name}: joints come in {len(sets)} kinds of message, and were put together")
    groups = []
    for listed, several in sets.items():
        rows = np.concatenate([block.rows for block in several])
        order = np.argsort(rows)
        arrays = [_joint_arrays(block, len(listed), list(range(len(listed)))) for block in several]
        shared = set.intersection(*(set(part) for part in arrays))
        groups.append(
            (several, rows[order], {name: np.concatenate([part[name] for part in arrays])[order] for name in shared})
        )
    several, first, _ = max(groups, key=lambda group: int(group[1][0]))
    shared = set.intersection(*(set(arrays) for _, _, arrays in groups))
    columns = {
        name: np.concatenate(
            [arrays[name][np.searchsorted(rows, first, side="right") - 1] for _, rows, arrays in groups], 1
        )
        for name in shared
    }
    block = several[0] if len(several) == 1 else max(several, key=lambda block: len(block.rows))
    inside = np.isin(block.rows, first)
    kept = Block(block.rows[inside], block.data[inside], block.parts)
    which = np.isin(first, kept.rows)
    return kept, {name: array[which][:, index] for name, array in columns.items()}


# Unitree


def _field(block: Block, *names: str) -> str:
    """The first of some spellings that a message has: camelCase in ROS 1, snake_case in ROS 2."""
    for name in names:
        if any(path == name or path.startswith(f"{name}.") for path in block.parts):
            return name
    raise GaitError(f"messages have no field {names[0]}: they are of a version that gait does not know")


def _unitree_imu(block: Block) -> dict[str, AnyArray]:
    imu = _field(block, "imu_state", "imu")
    return {"gyro": block.array(f"{imu}.gyroscope"), "accel": block.array(f"{imu}.accelerometer")}


def _unitree_index(joints: tuple[str, ...], names: str | None) -> tuple[int, ...]:
    return match_joints(UNITREE_JOINTS, joints, names).index


def _unitree_joints(block: Block, joints: tuple[str, ...], names: str | None) -> dict[str, AnyArray]:
    motors = _field(block, "motor_state", "motorState")
    torque = next(name for name in ("tau_est", "tauEst") if block.has(f"{motors}.0.{name}"))
    index = _unitree_index(joints, names)
    fields = {"q": "q", "dq": "dq", "tau": torque}
    return {ours: block.stack(*(f"{motors}.{i}.{theirs}" for i in index)) for ours, theirs in fields.items()}


def _unitree_targets(block: Block, joints: tuple[str, ...], names: str | None) -> dict[str, AnyArray]:
    motors = _field(block, "motor_cmd", "motorCmd")
    index = _unitree_index(joints, names)
    gain = "kp" if block.has(f"{motors}.0.kp") else "Kp"
    return {what: block.stack(*(f"{motors}.{i}.{name}" for i in index)) for what, name in (("q", "q"), ("kp", gain))}


def _real_targets(topic: Topic, arrays: dict[str, AnyArray], notes: Notes) -> tuple[dict[str, AnyArray], AnyArray]:
    """Without the commands that give no angle: motors off, or driven by torque alone."""
    real = np.asarray((np.abs(arrays["q"]) < NO_TARGET).all(axis=1) & (arrays["kp"] > 0.0).all(axis=1))
    if not real.all():
        notes.say(
            f"{topic.name}: {int((~real).sum())} of {len(real)} commands give no angle for a joint, and were left out"
        )
    return {"q_des": arrays["q"][real]}, real


def says_command(name: str) -> bool:
    """Whether the name of a topic speaks of what shall be rather than of what is."""
    return re.search(r"cmd|command|target|desired|\bdes\b|_des\b|reference|setpoint|goal", name.lower()) is not None


def says_truth(name: str) -> bool:
    """Whether the name of a topic speaks of the truth."""
    return re.search(r"truth|\bgt\b|_gt\b|vicon|mocap|optitrack|qualisys|vrpn", name.lower()) is not None
