"""From a model to a Robot: the chains from the link that carries its IMU to its feet, with their masses."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.lie import quat_from_rotation
from gait.robot.description import JOINTS, usual_shapes
from gait.robot.foot_detection import found_feet, given_feet, leg_names
from gait.robot.frame_choice import base_body, imu_frame
from gait.robot.joint_values import joint_of, stance_of, values_of
from gait.robot.model_tree import Frame, ModelJoint, ModelTree, moved_link, rotation_rpy, turn_body
from gait.robot.robot import Robot
from gait.robot.serial_chain import MOST_JOINTS, Chain, Foot, Link, combined
from gait.robot.soles import sole_of

_NO_NAME = {"description", "scene", "mjx", "feetonly", "flat", "rough", "terrain"}
"""Words of a model's name that do not name the robot."""


def import_model(path: Path, feet: str = "", base: str = "", imu: str = "", rpy: str = "") -> Robot:
    """The robot of a URDF or MJCF file; what could not be told is asked for in the error."""
    return robot_of(read_model(path), feet=feet, base=base, imu=imu, rpy=rpy)


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


def robot_of(tree: ModelTree, feet: str = "", base: str = "", imu: str = "", rpy: str = "") -> Robot:
    """The robot of a model, whose base may be turned by `rpy`."""
    inertial = imu_frame(tree, imu, base)
    root = base_body(tree, base, inertial)
    if inertial is not None and tree.group[inertial.body] != tree.group[root]:
        raise GaitError(
            f"{tree.source}: joints lie between the IMU on {tree.bodies[inertial.body].name} and the base"
            f" {tree.bodies[root].name}: estimate the link that carries it with --base"
            f" {tree.bodies[inertial.body].name}"
        )
    if rpy:
        turn_body(tree, root, _turn(rpy))
    if inertial is None:
        tree.notes.append(f"no IMU is named in it: it is taken to be at the origin of {tree.bodies[root].name}")
        inertial = Frame("", root, np.eye(3), np.zeros(3))
    ends = given_feet(tree, feet) if feet else found_feet(tree, root)
    legs = _chains(tree, root, ends)
    _note_loops(tree, legs)
    R, p = tree.poses(root)[inertial.body]
    values = {key: [] for key in JOINTS}  # type: dict[str, list[float]]
    for leg in legs:
        for name in leg.joint_names:
            for key, value in values_of(joint_of(tree, name)).items():
                values[key].append(value)
    masses = _masses(tree, root, legs, ends)
    chains = []
    for leg, own in zip(legs, masses[1:], strict=True):
        arrays: dict[str, Any] = {
            name: np.array([getattr(link, name) for link in own]) for name in ("mass", "com", "inertia")
        }
        rotors = [values_of(joint_of(tree, name))["armature"] for name in leg.joint_names]
        fields = {name: getattr(leg, name) for name in ("axes", "offsets", "slides", "source", "ratio", "shift")}
        chains.append(
            Chain(
                **fields, **arrays, armature=np.array(rotors), name=leg.name, joint_names=leg.joint_names, foot=leg.foot
            )
        )
    return Robot(
        name=_file_name(tree),
        base_link=f"{tree.bodies[root].name}_turned" if rpy else tree.bodies[root].name,
        legs=tuple(chains),
        base=masses[0][0],
        **{field: np.array(values[key]) for key, field in JOINTS.items() if key != "armature"},  # type: ignore[arg-type]
        imu_position=p + R @ inertial.p,
        imu_quat_wxyz=quat_from_rotation(R @ inertial.R),
        shapes=usual_shapes(chains),
        source=f"imported from {Path(tree.source).name}",
    )


def _turn(rpy: str) -> Array:
    """The rotation that the user gave in degrees."""
    try:
        angles = [float(number) for number in rpy.split(",")]
    except ValueError:
        angles = []
    if len(angles) != 3 or not np.isfinite(angles).all():
        raise GaitError(f"--rpy must be three angles such as 0,0,180 (degrees), got '{rpy}'")
    turn = rotation_rpy(np.radians(angles).tolist())
    nearest = np.round(turn)
    return nearest if np.allclose(turn, nearest, atol=1e-12) else turn


def _note_loops(tree: ModelTree, legs: list[_Leg]) -> None:
    """Say what a closed loop around joints of a leg means for it."""
    own = {body: joint.name for leg in legs for body, joint, _ in leg.joints}
    joints, rods = list[str](), list[str]()
    for one, two in tree.loops:
        inside = [own[body] for body, _ in tree.path(one, two) if body in own]
        joints += inside
        rods += [f"{tree.bodies[one].name} to {tree.bodies[two].name}"] if inside else []
    if joints:
        tree.notes.append(
            f"closed loops are not followed ({', '.join(rods)}): legs are the joints on the way to each foot, so the"
            f" log must have an angle of each, {', '.join(dict.fromkeys(joints))} too; torques of these do not tell"
            " the force on the foot: leave tau out"
        )


def _file_name(tree: ModelTree) -> str:
    words = re.findall(r"[a-z0-9]+", tree.name.lower())
    return "_".join(word for word in words if word not in _NO_NAME) or "robot"


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
    for name, frames in zip(leg_names(tree, base, ends), ends, strict=True):
        joints = tree.joints_between(base, frames[0].body)
        if not 1 <= len(joints) <= MOST_JOINTS:
            raise GaitError(
                f"{tree.source}: {len(joints)} joints lie between {tree.bodies[base].name} and {frames[0].name}, where"
                f" 1 to {MOST_JOINTS} can be: estimate another link with --base {tree.bodies[0].name}, or choose other"
                " links with --feet"
            )
        balls = [tree.balls[body] for body, _ in tree.path(base, frames[0].body) if body in tree.balls]
        if balls:
            raise GaitError(
                f"{tree.source}: the joint '{balls[0]}' on the way to {frames[0].name} is a ball joint, and only hinge"
                " and slide joints are supported there; choose other links with --feet and --base"
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
    _note_bare(tree, [frames[0] for frames in ends])
    if len(legs) == 4:
        hips = np.array([leg.offsets[:-1].sum(axis=0) for leg in legs])
        rear, left = hips[:, 0] < hips[:, 0].mean(), hips[:, 1] > hips[:, 1].mean()
        order = sorted(range(4), key=lambda i: (rear[i], left[i]))
        legs, ends[:] = [legs[i] for i in order], [ends[i] for i in order]
    return legs


def _note_bare(tree: ModelTree, feet: list[Frame]) -> None:
    """Say which feet have no shape, and how to give them one."""
    shaped = {tree.group[i] for i, body in enumerate(tree.bodies) if body.shapes}
    bare = [foot.name for foot in feet if tree.group[foot.body] not in shaped]
    if bare:
        tree.notes.append(
            f"no shape of {', '.join(bare)} could be read, so they are points; if they are flat, say how far soles"
            " reach to the back, front, right and left of them, m, such as --sole -0.05,0.1,-0.04,0.04"
        )


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
