"""Which links of a model are its feet, and what its legs are called."""

from __future__ import annotations

import re

import numpy as np

from gait.errors import GaitError
from gait.robot.frame_choice import frame_named
from gait.robot.joint_values import stance_of
from gait.robot.model_tree import Frame, ModelTree, words_of
from gait.robot.soles import place_rank

_TOES = {"toe", "toes"}
_FEET = {"foot", "feet", "sole", "ankle"} | _TOES
"""Words in the names of feet."""
_GENERAL = _FEET | {
    "link", "frame", "joint", "site", "body", "geom", "collision", "contact", "center", "centre", "tip", "end", "pos",
    "sensor", "roll", "pitch", "yaw", "x", "y", "z", "calf", "lower", "leg", "lleg", "shank", "ft", "imu", "fixed",
    "point", "force",
}  # fmt: skip
"""Words that do not tell one leg from another."""
_DRIVES = {"crank", "rod", "spring", "motor", "bracket"}
"""Words of parts that move a foot, such as a foot crank."""
_SIDES = {"l": "left", "r": "right"}
_LOW = 0.15
"""Share of the robot's height within which ends of limbs are as low as feet."""


def given_feet(tree: ModelTree, feet: str) -> list[list[Frame]]:
    """Frames that the user named, one for each leg."""
    frames = [frame_named(tree, name.strip(), "feet") for name in feet.split(",") if name.strip()]
    if len({tree.group[frame.body] for frame in frames}) != len(frames):
        raise GaitError(f"--feet {feet}: two of these are on the same link; name one for each leg")
    return [[frame] for frame in frames]


def found_feet(tree: ModelTree, base: int) -> list[list[Frame]]:
    """Frames on the last link of each leg: links and sites with the name of a foot, else the lowest ends of limbs."""
    named: dict[int, list[Frame]] = {}
    for frame in tree.frames:
        words = set(words_of(frame.name))
        if words & _FEET and not words & _DRIVES and _movable(tree, base, frame.body):
            named.setdefault(tree.group[frame.body], []).append(frame)
    named = {group: frames for group, frames in named.items() if not _is_toe_of(tree, base, group, named)}
    ends = [group for group in named if not any(_above(tree, base, group, other) for other in named if other != group)]
    if not ends:
        ends = _lowest_ends(tree, base)
        named = {group: [f for f in tree.frames if tree.group[f.body] == group and f.name] for group in ends}
    if not ends:
        leaves = [tree.bodies[i].name for i in range(len(tree.bodies)) if not tree.children[i]]
        raise GaitError(f"{tree.source}: which links are its feet? Give them with --feet {','.join(leaves[:8])}")
    return [sorted(named[group], key=_place) for group in ends]


def _is_toe_of(tree: ModelTree, base: int, group: int, named: dict[int, list[Frame]]) -> bool:
    """Whether a group is toes on a joint of their own before a foot, whose sole is what stands."""
    words = [set(words_of(frame.name)) & _FEET for frame in named[group]]
    if not all(own <= _TOES for own in words):
        return False
    feet = [g for g, frames in named.items() if any(set(words_of(f.name)) & {"foot", "feet", "sole"} for f in frames)]
    return any(foot != group and _above(tree, base, foot, group) for foot in feet)


def _place(frame: Frame) -> tuple[int, int, int]:
    """The smaller, the better a frame tells where a foot is: plain names first, then the last link."""
    return place_rank(frame), len(words_of(frame.name)), -frame.body


def _movable(tree: ModelTree, base: int, body: int) -> bool:
    return bool(tree.joints_between(base, body))


def _above(tree: ModelTree, base: int, group: int, other: int) -> bool:
    """Whether a rigid group lies on the way from the base to another one."""
    bodies = {tree.group[body] for body, _ in tree.path(base, other)} | {
        tree.group[tree.bodies[body].parent] for body, _ in tree.path(base, other)
    }
    return group in bodies - {tree.group[other]}


def _lowest_ends(tree: ModelTree, base: int) -> list[int]:
    """Rigid groups at the end of limbs that reach as low as the lowest one, in stance."""
    # In the root, whose z axis is up more often than that of a link with an IMU.
    poses = tree.poses(0, stance_of(tree))
    lowest: dict[int, float] = {}
    top = -np.inf
    for i, body in enumerate(tree.bodies):
        R, p = poses[i]
        points = [p[2], *(float((p + shape.points @ R.T)[:, 2].min()) - shape.radius for shape in body.shapes)]
        top = max(top, *points)
        lowest[tree.group[i]] = min(lowest.get(tree.group[i], np.inf), *points)
    inner = {tree.group[body.parent] for i, body in enumerate(tree.bodies) if body.joints and body.parent >= 0}
    ends = {g: low for g, low in lowest.items() if g not in inner and _movable(tree, base, g)}
    if not ends:
        return []
    bottom = min(ends.values())
    return [group for group, low in ends.items() if low < bottom + _LOW * (top - bottom)]


def leg_names(tree: ModelTree, base: int, ends: list[list[Frame]]) -> list[str]:
    """What tells each foot from the others in its name, or in that of its first own joint."""
    found = []
    for frames in ends:
        joints = [joint.name for _, joint, _ in tree.joints_between(base, frames[0].body)]
        for name in (*(frame.name for frame in frames), tree.bodies[frames[0].body].name, *joints[::-1]):
            case = {word.lower(): word for word in re.split(r"[^A-Za-z0-9]+", name)}
            words = [_SIDES.get(word, case.get(word, word)) for word in words_of(name) if word not in _GENERAL]
            if words:
                break
        found.append(words)
    names = ["_".join(words) or frames[0].name for words, frames in zip(_own_parts(found), ends, strict=True)]
    names = [f"leg{name}" if name.isdigit() else name for name in names]
    return names if len(set(names)) == len(names) else [frames[0].name for frames in ends]


def _own_parts(names: list[list[str]]) -> list[list[str]]:
    """Lists of words without those that all of them begin or end with, as a prefix of the robot."""
    for at in (0, -1):
        while len(names) > 1 and all(len(words) > 1 for words in names) and len({words[at] for words in names}) == 1:
            names = [words[1:] if at == 0 else words[:-1] for words in names]
    return names
