"""From a model to a Robot: where its feet and its IMU are, and the chains between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.lie import quat_from_rotation
from gait.robot.description import ENDLESS, JOINTS, USUAL, usual_shapes
from gait.robot.model_tree import Frame, ModelJoint, ModelTree, moved_link, words_of
from gait.robot.robot import Robot
from gait.robot.serial_chain import MOST_JOINTS, Chain, Foot, Link, combined
from gait.robot.soles import place_rank, sole_of

_FEET = {"foot", "feet", "sole", "toe", "toes", "ankle"}
"""Words in the names of feet."""
_GENERAL = _FEET | {
    "link", "frame", "joint", "site", "body", "geom", "collision", "contact", "center", "centre", "tip", "end", "pos",
    "sensor", "roll", "pitch", "yaw", "x", "y", "z", "calf", "lower", "leg", "lleg", "shank", "ft", "imu", "fixed",
    "point", "force",
}  # fmt: skip
"""Words that do not tell one leg from another."""
_NO_NAME = {"description", "scene", "mjx", "feetonly", "flat", "rough", "terrain"}
"""Words of a model's name that do not name the robot."""
_SIDES = {"l": "left", "r": "right"}
_LOW = 0.15
"""Share of the robot's height within which ends of limbs are as low as feet."""


def import_model(path: Path, feet: str = "", base: str = "", imu: str = "") -> Robot:
    """The robot of a URDF or MJCF file; what could not be told is asked for in the error."""
    return robot_of(read_model(path), feet=feet, base=base, imu=imu)


def with_soles(robot: Robot, sole: str) -> Robot:
    """The robot with flat feet where its model has no shape for them.

    Args:
        robot: as it was imported.
        sole: how far soles reach to the back, front, right and left of the feet, m, in base axes at zero, separated by
            commas: `-0.05,0.1,-0.04,0.04`.
    """
    try:
        back, front, right, left = (float(number) for number in sole.split(","))
    except ValueError:
        raise GaitError(f"--sole must be four numbers such as -0.05,0.1,-0.04,0.04 (m), got '{sole}'") from None
    if not (back < front and right < left and np.isfinite([back, front, right, left]).all()):
        raise GaitError(f"--sole {sole}: back must be less than front, and right less than left")
    corners = np.array([[x, y, 0.0] for x in (back, front) for y in (right, left)])
    centre = corners.mean(axis=0)
    legs = []
    for leg in robot.legs:
        offsets = leg.offsets.copy()
        offsets[-1] += centre
        flat = replace(leg, offsets=offsets, foot=Foot(leg.foot.radius, corners - centre))
        legs.append(leg if leg.foot.is_flat else flat)
    return replace(robot, legs=tuple(legs))


def read_model(path: Path) -> ModelTree:
    """The model of a URDF or MJCF file, told apart by its content."""
    if not path.is_file():
        raise GaitError(f"cannot read robot file {path}: no such file or directory")
    with path.open("rb") as stream:
        head = stream.read(1 << 16)
    if b"<mujoco" in head and b"<robot" not in head.split(b"<mujoco")[0]:
        from gait.robot.mjcf_reader import read_mjcf

        return read_mjcf(path)
    from gait.robot.urdf_reader import read_urdf

    return read_urdf(path)


def robot_of(tree: ModelTree, feet: str = "", base: str = "", imu: str = "") -> Robot:
    """The robot of a model."""
    inertial = _imu_frame(tree, imu, base)
    base_body = _base_body(tree, base, inertial)
    if inertial is not None and tree.group[inertial.body] != tree.group[base_body]:
        raise GaitError(
            f"{tree.source}: joints lie between the IMU on {tree.bodies[inertial.body].name} and the base"
            f" {tree.bodies[base_body].name}: estimate the link that carries it with --base"
            f" {tree.bodies[inertial.body].name}"
        )
    if inertial is None:
        tree.notes.append(f"no IMU is named in it: it is taken to be at the origin of {tree.bodies[base_body].name}")
        inertial = Frame("", base_body, np.eye(3), np.zeros(3))
    ends = _given_feet(tree, feet) if feet else _found_feet(tree, base_body)
    legs = _chains(tree, base_body, ends)
    R, p = tree.poses(base_body)[inertial.body]
    values = {key: [] for key in JOINTS}  # type: dict[str, list[float]]
    for leg in legs:
        for name in leg.joint_names:
            for key, value in _values(_joint_of(tree, name)).items():
                values[key].append(value)
    masses = _masses(tree, base_body, legs, ends)
    chains = []
    for leg, own in zip(legs, masses[1:], strict=True):
        arrays: dict[str, Any] = {
            name: np.array([getattr(link, name) for link in own]) for name in ("mass", "com", "inertia")
        }
        rotors = [_values(_joint_of(tree, name))["armature"] for name in leg.joint_names]
        fields = {name: getattr(leg, name) for name in ("axes", "offsets", "slides", "source", "ratio", "shift")}
        chains.append(
            Chain(
                **fields, **arrays, armature=np.array(rotors), name=leg.name, joint_names=leg.joint_names, foot=leg.foot
            )
        )
    return Robot(
        name=_file_name(tree),
        base_link=tree.bodies[base_body].name,
        legs=tuple(chains),
        base=masses[0][0],
        **{field: np.array(values[key]) for key, field in JOINTS.items() if key != "armature"},  # type: ignore[arg-type]
        imu_position=p + R @ inertial.p,
        imu_quat_wxyz=quat_from_rotation(R @ inertial.R),
        shapes=usual_shapes(chains),
        source=f"imported from {Path(tree.source).name}",
    )


def _file_name(tree: ModelTree) -> str:
    words = re.findall(r"[a-z0-9]+", tree.name.lower())
    return "_".join(word for word in words if word not in _NO_NAME) or "robot"


def _joint_of(tree: ModelTree, name: str) -> ModelJoint:
    return next(joint for body in tree.bodies for joint in body.joints if joint.name == name)


def _values(joint: ModelJoint) -> dict[str, float]:
    """Limits, gains and stance of a joint, with the usual ones for what its file does not tell."""
    out = {**USUAL, "lower": -ENDLESS, "upper": ENDLESS, "stand": 0.0, **joint.values}
    out["stand"] = float(np.clip(out["stand"], out["lower"], out["upper"]))
    return {key: out[key] for key in JOINTS}


def stance_of(tree: ModelTree) -> dict[str, float]:
    """Every joint in stance; those that follow others do."""
    joints = {joint.name: joint for body in tree.bodies for joint in body.joints}
    out = {name: _values(joint)["stand"] for name, joint in joints.items()}
    for name, joint in joints.items():
        if joint.leader in joints:
            out[name] = joint.ratio * out[joint.leader] + joint.shift
    return out


def _choices(option: str, names: Sequence[str]) -> str:
    shown = [f"--{option} {name}" for name in dict.fromkeys(names)]
    return "; ".join(shown[:12]) + ("; ..." if len(shown) > 12 else "")


def _frame(tree: ModelTree, name: str, option: str) -> Frame:
    found = tree.named(name)
    if not found:
        near = [f.name for f in tree.frames if name.lower() in f.name.lower() or f.name.lower() in name.lower()]
        raise GaitError(
            f"{tree.source} has no link or site '{name}': choose from {_choices(option, near or _names(tree))}"
        )
    return found[0]


def _names(tree: ModelTree) -> list[str]:
    return [frame.name for frame in tree.frames if frame.name]


def _imu_frame(tree: ModelTree, imu: str, base: str) -> Frame | None:
    """Where the IMU is: as given, or the one that the file names; on the base, where there are several."""
    if imu:
        return _frame(tree, imu, "imu")
    found = [frame for name in tree.imus for frame in tree.named(name)[:1]]
    root = tree.group[_frame(tree, base, "base").body] if base else 0
    here = [frame for frame in found if tree.group[frame.body] == root] or ([] if base else found)
    if not here:
        return None
    poses = tree.poses(0)
    places = {tuple(np.round(poses[f.body][1] + poses[f.body][0] @ f.p, 4)) for f in here}
    turns = {tuple(np.round(poses[f.body][0] @ f.R, 3).ravel()) for f in here}
    if len(places) > 1 or len(turns) > 1:
        raise GaitError(
            f"{tree.source} has several IMUs: choose with {_choices('imu', [frame.name for frame in here])}"
        )
    others = [frame.name for frame in found if frame not in here]
    if others:
        tree.notes.append(f"IMU {here[0].name}; others: {_choices('imu', others)}")
    return here[0]


def _base_body(tree: ModelTree, base: str, imu: Frame | None) -> int:
    """The link to estimate: as given, or the first of those that are fixed to the IMU and have mass."""
    if base:
        return _frame(tree, base, "base").body
    root = tree.group[imu.body] if imu is not None else 0
    rigid = [i for i, group in enumerate(tree.group) if group == root]
    total = sum(tree.bodies[i].link.mass for i in rigid)
    heaviest = max(rigid, key=lambda i: tree.bodies[i].link.mass)
    R, p = tree.poses(root)[heaviest]
    light = total > 0.0 and tree.bodies[root].link.mass < 0.02 * total
    return heaviest if light and not (np.allclose(R, np.eye(3)) and np.allclose(p, 0.0)) else root


def _given_feet(tree: ModelTree, feet: str) -> list[list[Frame]]:
    frames = [_frame(tree, name.strip(), "feet") for name in feet.split(",") if name.strip()]
    if len({tree.group[frame.body] for frame in frames}) != len(frames):
        raise GaitError(f"--feet {feet}: two of these are on the same link; name one for each leg")
    return [[frame] for frame in frames]


def _found_feet(tree: ModelTree, base: int) -> list[list[Frame]]:
    """Frames on the last link of each leg: links and sites with the name of a foot, else the lowest ends of limbs."""
    named: dict[int, list[Frame]] = {}
    for frame in tree.frames:
        if set(words_of(frame.name)) & _FEET and _movable(tree, base, frame.body):
            named.setdefault(tree.group[frame.body], []).append(frame)
    ends = [group for group in named if not any(_above(tree, base, group, other) for other in named if other != group)]
    if not ends:
        ends = _lowest_ends(tree, base)
        named = {group: [f for f in tree.frames if tree.group[f.body] == group and f.name] for group in ends}
    if not ends:
        leaves = [tree.bodies[i].name for i in range(len(tree.bodies)) if not tree.children[i]]
        raise GaitError(f"{tree.source}: which links are its feet? Give them with --feet {','.join(leaves[:8])}")
    return [sorted(named[group], key=_place) for group in ends]


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
    poses = tree.poses(base, stance_of(tree))
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


class _Leg:
    """A chain before it has masses."""

    def __init__(self, name: str, joints: list[tuple[int, ModelJoint, bool]]) -> None:
        self.name, self.joints = name, joints
        encoders: list[str] = []
        source, ratio, shift = [], [], []
        by_name = {joint.name: joint for _, joint, _ in joints}
        for _, joint, _ in joints:
            leader, scale, more = joint.name, 1.0, 0.0
            seen = {joint.name}
            while (own := by_name.get(leader, joint if leader == joint.name else None)) is not None and own.leader:
                leader, scale, more = own.leader, scale * own.ratio, more + scale * own.shift
                if leader in seen:
                    break
                seen.add(leader)
            if leader not in encoders:
                encoders.append(leader)
            source.append(encoders.index(leader))
            ratio.append(scale)
            shift.append(more - joint.reference)
        self.joint_names = tuple(encoders)
        self.source, self.ratio, self.shift = np.array(source), np.array(ratio), np.array(shift)
        self.slides = np.array([joint.slides for _, joint, _ in joints], dtype=np.bool_)
        self.axes: Array = np.zeros((len(joints), 3))
        self.offsets: Array = np.zeros((len(joints) + 1, 3))
        self.foot = Foot()


def _chains(tree: ModelTree, base: int, ends: list[list[Frame]]) -> list[_Leg]:
    """The legs, in the order FR, FL, RR, RL of a quadruped, else as the file has them; `ends` is put in that order."""
    zero, legs = tree.poses(base), list[_Leg]()
    stance = tree.poses(base, stance_of(tree))
    for name, frames in zip(_leg_names(tree, base, ends), ends, strict=True):
        joints = tree.joints_between(base, frames[0].body)
        if not 1 <= len(joints) <= MOST_JOINTS:
            raise GaitError(
                f"{tree.source}: {len(joints)} joints lie between {tree.bodies[base].name} and {frames[0].name}, where"
                f" 1 to {MOST_JOINTS} can be; choose other links with --feet and --base"
            )
        leg, points = _Leg(name, joints), []
        for s, (body, joint, outward) in enumerate(joints):
            R, p = zero[body]
            axis = R @ joint.axis * (1.0 if outward else -1.0)
            nearest = np.round(axis)
            # Rotations of a quarter turn are rounded in most files: about an axis of the base to the last bit.
            leg.axes[s] = nearest if np.allclose(axis, nearest, atol=1e-12) else axis
            points.append(p + R @ joint.anchor)
        centre, leg.foot = sole_of(tree, frames, zero, stance)
        leg.offsets = np.diff(np.vstack([np.zeros(3), *points, centre]), axis=0)
        legs.append(leg)
    if len(legs) == 4:
        hips = np.array([leg.offsets[:-1].sum(axis=0) for leg in legs])
        rear, left = hips[:, 0] < hips[:, 0].mean(), hips[:, 1] > hips[:, 1].mean()
        order = sorted(range(4), key=lambda i: (rear[i], left[i]))
        legs, ends[:] = [legs[i] for i in order], [ends[i] for i in order]
    return legs


def _leg_names(tree: ModelTree, base: int, ends: list[list[Frame]]) -> list[str]:
    """What tells each foot from the others in its name, or in that of its first own joint."""
    found = []
    for frames in ends:
        joints = [joint.name for _, joint, _ in tree.joints_between(base, frames[0].body)]
        for name in (*(frame.name for frame in frames), tree.bodies[frames[0].body].name, *joints[::-1]):
            case = {word.lower(): word for word in name.replace("-", "_").split("_")}
            words = [_SIDES.get(word, case.get(word, word)) for word in words_of(name) if word not in _GENERAL]
            if words:
                break
        name = "_".join(words) or frames[0].name
        found.append(f"leg{name}" if name.isdigit() else name)
    return found if len(set(found)) == len(found) else [frames[0].name for frames in ends]


def _masses(tree: ModelTree, base: int, legs: list[_Leg], ends: list[list[Frame]]) -> list[list[Link]]:
    """Links of the base and of each leg, in their own frames; limbs that are no legs are held in stance.

    A link that two legs share, as behind a waist, belongs to the first of them.
    """
    owner: dict[int, tuple[int, int]] = {}  # by the child body of an edge: leg, first link behind that edge
    inner: dict[int, bool] = {}
    for i, leg in enumerate(legs):
        for s, (body, _, outward) in enumerate(leg.joints):
            if owner.get(body, (i, 0))[0] == i:
                owner[body], inner[body] = (i, s), outward
    free = {joint.name for leg in legs for _, joint, _ in leg.joints}
    held = {name: value for name, value in stance_of(tree).items() if name not in free}
    poses = tree.poses(base, held)
    parts: list[list[list[Link]]] = [[[]]]
    parts += [[[] for _ in leg.joints] for leg in legs]
    todo: list[tuple[int, int, tuple[int, int]]] = [(base, -1, (-1, 0))]
    while todo:
        body, came_from, place = todo.pop()
        link = tree.bodies[body].link
        if link.mass > 0.0 or link.inertia.any():
            own = parts[0][0] if place[0] < 0 else parts[1 + place[0]][place[1]]
            own.append(moved_link(link, *poses[body]))
        edges = [(child, child) for child in tree.children[body]]
        if tree.bodies[body].parent >= 0:
            edges.append((tree.bodies[body].parent, body))
        for other, edge in edges:
            if other != came_from:
                behind = edge in owner and inner[edge] == (other == edge)
                todo.append((other, body, owner[edge] if behind else place))
    out = [[combined(parts[0][0])]]
    for leg, links_of_leg in zip(legs, parts[1:], strict=True):
        joints = np.cumsum(leg.offsets[:-1], axis=0)
        out.append([_about(combined(links), p) for links, p in zip(links_of_leg, joints, strict=True)])
    return out


def _about(link: Link, joint: Array) -> Link:
    """A link from its joint."""
    return Link(link.mass, link.com - joint if link.mass > 0.0 else np.zeros(3), link.inertia)
