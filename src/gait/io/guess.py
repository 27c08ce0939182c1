"""What a column or a dataset holds, from its name."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gait.io.joints import words_of
from gait.log import Log
from gait.log.fields import AXES

AXES_OF = {one.name: AXES[one.axes[0]] for one in Log.FIELDS if one.axes in (("xyz",), ("wxyz",))}
"""Names of the components of each field of the IMU and of the body's ground truth."""
PER_JOINT = tuple(one.name for one in Log.FIELDS if one.axes == ("joint",))
"""Fields with one number for each joint."""
_DEGREE = math.pi / 180.0
UNITS = {
    "deg": _DEGREE, "deg/s": _DEGREE, "dps": _DEGREE, "degrees": _DEGREE,
    "g": 9.80665, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "mm": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
    "rad": 1.0, "rad/s": 1.0, "m": 1.0, "m/s": 1.0, "m/s^2": 1.0, "m/s2": 1.0, "nm": 1.0, "n": 1.0,
}  # fmt: skip
"""Words for units, and what they are in SI."""

_WORDS = {
    "time": "t time timestamp timestamps stamp stamps clock",
    "gyro": "gyro gyroscope omega angvel angular gyr",
    "accel": "accel acc accelerometer acceleration accelerations linacc",
    "rotation": "quat quaternion quaternions orientation rotation rot att attitude",
    "position": "pos position positions p xyz translation",
    "velocity": "vel velocity velocities v speed twist",
    "joint": "joint joints q dq qd motor motors qj dof jpos jvel",
    "angle": "q pos position positions angle angles qj jpos",
    "rate": "dq qd vel velocity velocities speed qdot dqj jvel",
    "torque": "tau torque torques effort efforts tauest",
    "target": "des desired target targets cmd command commands ref reference goal setpoint action",
    "world": "w world global truth gt ground",
    "body": "b body local",
}
"""Words that names of columns and datasets are made of, by what they mean."""
_TRUTH = r"truth|vicon|mocap|motion_?capture|optitrack|qualisys|vrpn|natnet|phasespace"
_MEANINGS = {meaning: frozenset(words.split()) for meaning, words in _WORDS.items()}
_SHORT = {
    **dict.fromkeys(("wx", "wy", "wz", "gx", "gy", "gz"), "gyro"),
    **dict.fromkeys(("ax", "ay", "az"), "accel"),
    **dict.fromkeys(("qw", "qx", "qy", "qz"), "quat_wb_wxyz"),
    **dict.fromkeys(("px", "py", "pz", "tx", "ty", "tz"), "pos_w"),
}


@dataclass(frozen=True)
class Guess:
    """A field of a Log, or a part of one."""

    field: str
    """`t`, or a field of Log."""
    part: str = ""
    """x, y, z or w; the name of a joint; empty for a whole field."""
    scale: float = 1.0
    """From its unit to that of the field."""


def guess_field(name: str) -> Guess | None:
    """What an array of that name may hold, such as `imu/gyro` or `joint_positions`; None if the name does not say."""
    bare, scale = _unit(name)
    field = _field(words_of(bare), words_of(re.split(r"[/:]", bare)[-1]))
    return None if field is None else Guess(field, "", scale)


def guess_column(name: str, joints: Sequence[object], meaning: object, names: Sequence[str] = ()) -> Guess | None:
    """What a column of that name may hold, such as `imu_wx`, `FR_hip_vel` or `q_3`.

    Args:
        name: of the column.
        joints: what the joints of the robot mean, as `gait.io.joints` has it.
        meaning: the same of this column.
        names: of the joints of the robot, for those that mean nothing to `gait.io.joints`, as a humanoid's do.
    """
    bare, scale = _unit(name)
    words = words_of(bare)
    if not words:
        return None
    means = _meant(words)
    if meaning is not None and meaning in joints:
        wanted = _joint_field(means) if means & {"torque", "rate", "target"} else "q"
        return None if wanted is None else Guess(wanted, bare, scale)
    if (named := _named_joint(words, names)) is not None:
        return Guess(*named, scale)
    tail = words[-1]
    if tail in _SHORT:
        return Guess(_SHORT[tail], tail[-1], scale)
    if tail in ("x", "y", "z", "w"):
        field = _field(words[:-1], words[:-1])
        if field is None and re.fullmatch(rf"gt|ground_truth|{_TRUTH}", "_".join(words[:-1])):
            # `mocap_x` beside `mocap_qx`: an axis of motion capture without another word is a position.
            field = "quat_wb_wxyz" if tail == "w" else "pos_w"
        return Guess(field, tail, scale) if field in AXES_OF else None
    index = next((word for word in reversed(words) if word.isdecimal() and len(word) < 6), None)
    if index is not None and "joint" in means:
        field = _joint_field(means)
        return None if field is None else Guess(field, f"joint_{int(index)}", scale)
    return Guess("t", "", scale) if "time" in means and "joint" not in means else None


def guess_pose(name: str) -> Guess | None:
    """What a column of a pose holds that the user names, such as `odom_x` and `odom_qw`."""
    bare, scale = _unit(name)
    words = words_of(bare)
    tail, means = words[-1], _meant(words[:-1])
    if tail in _SHORT and _SHORT[tail] in ("pos_w", "quat_wb_wxyz"):
        return Guess(_SHORT[tail], tail[-1], scale)
    if tail not in ("x", "y", "z", "w") or means & {"velocity", "gyro", "accel"}:
        return None
    return Guess("quat_wb_wxyz" if "rotation" in means or tail == "w" else "pos_w", tail, scale)


def _named_joint(words: Sequence[str], names: Sequence[str]) -> tuple[str, str] | None:
    """Field and joint of a column that has the whole name of a joint in it, such as `left_knee_joint_pos`."""
    for joint in sorted(names, key=lambda name: -len(words_of(name))):
        own = words_of(joint)
        for i in range(len(words) - len(own) + 1):
            if own and list(words[i : i + len(own)]) == own:
                rest = [*words[:i], *words[i + len(own) :]]
                means = _meant(rest) & {"angle", "rate", "torque", "target"}
                # Temperatures and currents have the name of a joint too.
                field = _joint_field(means) if means else None if rest else "q"
                return None if field is None else (field, joint)
    return None


def says_truth(name: str) -> bool:
    """Whether the name of a topic, column or dataset speaks of ground truth or of motion capture."""
    return "gt" in words_of(name) or re.search(_TRUTH, name.lower()) is not None


def _meant(words: Sequence[str]) -> set[str]:
    """What the words of a name speak of."""
    return {meaning for meaning, known in _MEANINGS.items() if known & set(words)}


def _unit(name: str) -> tuple[str, float]:
    """The name without its unit, and the unit: `gyro x [deg/s]`, `time_ms`."""
    found = re.search(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$", name)
    if found and found[1].lower() in UNITS:
        return name[: found.start()].strip(), UNITS[found[1].lower()]
    head, _, tail = name.rpartition("_")
    if head and tail.lower() in ("deg", "dps", "ms", "us", "ns", "s", "sec", "secs", "rad"):
        return head, UNITS[tail.lower()]
    return name, 1.0


def _joint_field(means: set[str]) -> str | None:
    for meaning, field in (("torque", "tau"), ("rate", "dq")):
        if meaning in means:
            return None if "target" in means else field
    if "target" in means:
        return "q_des"
    return "q" if means & {"angle", "joint"} else None


def _field(words: Sequence[str], last: Sequence[str]) -> str | None:
    every, own = _meant(words), _meant(last)
    if "gyro" in own or ("velocity" in own and {"angular", "ang"} & set(words)):
        return "t" if "time" in own else "gyro"
    for meaning, field in (("time", "t"), ("accel", "accel"), ("rotation", "quat_wb_wxyz")):
        if meaning in own:
            return field
    if "joint" in every or "torque" in own or ("target" in own and "velocity" not in own):
        return _joint_field(every)
    if "position" in own:
        return "pos_w"
    # Without a word on the frame a velocity may be in either; positions tell it better.
    return "vel_w" if "velocity" in own and "world" in every and "body" not in every else None
