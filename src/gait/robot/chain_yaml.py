"""A Robot as the text of a YAML file with a chain for each leg, and back as a description that a log carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.robot.description import ENDLESS, JOINTS, USUAL
from gait.robot.robot import Robot, inertial_rows
from gait.robot.serial_chain import Chain, Link

_HEADER = """\
# {name}. SI units, x forward, y left, z up. Written by `gait robot import`; docs/robots.md explains the keys.
# Link frames are parallel to {base} where all joints are at zero: `axis` is a joint's axis there, `offset` leads from
# the joint before it, `com` and `inertia` [xx, yy, zz, xy, xz, yz] are those of the link behind it, from its joint.
"""


def robot_tree(robot: Robot) -> dict[str, Any]:
    """The description of a robot as plain numbers, lists and mappings; `Robot.of` reads it."""
    values = {key: robot.by_leg(getattr(robot, field)) for key, field in JOINTS.items()}
    legs = {
        leg.name: _leg_tree(leg, {key: per_leg[i] for key, per_leg in values.items()})
        for i, leg in enumerate(robot.legs)
    }
    shapes = robot.shapes
    radii = {name: _plain(getattr(shapes, name)) for name in ("hip_radius", "thigh_radius", "calf_radius")}
    tree = {
        "name": robot.name,
        "base_link": robot.base_link,
        "source": robot.source,
        "imu": {"position": _plain(robot.imu_position), "quat_wxyz": _plain(robot.imu_quat_wxyz)},
        "base": _link_tree(robot.base),
        "legs": legs,
        "shapes": {"base": _plain(shapes.base), **radii},
        "zeros": {n: _plain(zero) for n, zero in zip(robot.joint_names, robot.zeros, strict=True) if zero},
        "joint_delay": robot.joint_delay,
    }
    return {key: value for key, value in tree.items() if value or value == 0.0}


def robot_text(robot: Robot) -> str:
    """The text of a robot's YAML file."""
    tree = robot_tree(robot)
    lines = [_HEADER.format(name=robot.name, base=robot.base_link)]
    for key, value in tree.items():
        if key != "legs":
            lines.append(f"{key}: {_flow(value)}\n")
            continue
        lines.append("legs:\n")
        for name, leg in value.items():
            lines.append(f"  {_word(name)}:\n    joints:\n")
            for joint in leg["joints"]:
                inertial = {part: joint[part] for part in ("mass", "com", "inertia")}
                first = {part: number for part, number in joint.items() if part not in inertial}
                lines.append(f"      - {{{_pairs(first)},\n         {_pairs(inertial)}}}\n")
            lines.append(f"    foot: {_flow(leg['foot'])}\n")
    return "".join(lines)


def _leg_tree(leg: Chain, values: Mapping[str, Array]) -> dict[str, Any]:
    joints, links = [], inertial_rows(leg)
    for s, source in enumerate(leg.source):
        first = int(np.flatnonzero(leg.source == source)[0]) == s
        name = leg.joint_names[source]
        joint: dict[str, Any] = {"name": name if first else f"{name}_{s}"}
        if not first:
            joint["follows"] = name
        if leg.slides[s]:
            joint["type"] = "prismatic"
        joint |= {"axis": _plain(leg.axes[s]), "offset": _plain(leg.offsets[s])}
        joint |= {
            key: _plain(own)
            for key, own in (("ratio", leg.ratio[s]), ("shift", leg.shift[s]))
            if own != (key == "ratio")
        }
        usual = {**USUAL, "lower": -ENDLESS, "upper": ENDLESS, "stand": 0.0}
        if first:
            joint |= {key: _plain(own[source]) for key, own in values.items() if own[source] != usual[key]}
        mass, *rest = links[s]
        joint |= {"mass": _plain(mass), "com": _plain(rest[:3]), "inertia": _plain(rest[3:])}
        joints.append(joint)
    foot: dict[str, Any] = {"centre": _plain(leg.offsets[-1])}
    if leg.foot.radius:
        foot["radius"] = _plain(leg.foot.radius)
    if leg.foot.is_flat:
        foot["corners"] = _plain(leg.foot.corners)
    return {"joints": joints, "foot": foot}


def _link_tree(link: Link) -> dict[str, Any]:
    rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    return {"mass": _plain(link.mass), "com": _plain(link.com), "inertia": _plain(link.inertia[rows, columns])}


def _plain(values: Any) -> Any:
    """Numbers as files show them: twelve digits, and what is zero but for rounding as zero."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [_plain(one) for one in array]
    number = float(f"{float(array):.12g}")
    return 0.0 if abs(number) < 1e-14 else number


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{_pairs(value)}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str):
        return _word(value)
    text = f"{value:.12g}"
    # YAML takes 1e-05 for a word.
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def _pairs(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{_word(key)}: {_flow(own)}" for key, own in value.items())


def _word(text: str) -> str:
    """A text as YAML takes it in a mapping of one line."""
    plain = text.replace("_", "").replace(" ", "").replace(".", "").replace("-", "")
    safe = (
        plain.isalnum()
        and not plain.isdigit()
        and text.lower() not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    )
    return (
        text
        if safe and not text[0].isdigit() and text == text.strip() and text[0] != "-"
        else "'" + text.replace("'", "''") + "'"
    )
