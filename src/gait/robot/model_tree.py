"""A robot model as its file has it: bodies, joints, contact shapes and named frames; readers of formats make one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.lie import so3_exp
from gait.robot.serial_chain import Link


@dataclass
class ModelJoint:
    """A joint between a body and its parent."""

    name: str
    axis: Array
    """In the frame of its body (3,), unit length."""
    anchor: Array
    """In the frame of its body (3,)."""
    slides: bool = False
    reference: float = 0.0
    """What its encoder reads where the model is as drawn."""
    values: dict[str, float] = field(default_factory=dict)
    """Limits, gains and stance by the names that a robot file has for them; those that are not known are left out."""
    leader: str = ""
    """Joint that it follows by ratio * leader + shift, if any."""
    ratio: float = 1.0
    shift: float = 0.0


@dataclass
class ContactShape:
    """Points of a body that may touch the ground: spheres of one radius, in its frame (K, 3)."""

    points: Array
    radius: float = 0.0
    collides: bool = True
    name: str = ""


@dataclass
class Body:
    """A rigid body; its frame is where its joints are at their reference."""

    name: str
    parent: int
    R: Array
    """In the frame of its parent (3, 3), and so is p."""
    p: Array
    link: Link
    joints: list[ModelJoint] = field(default_factory=list)
    shapes: list[ContactShape] = field(default_factory=list)


@dataclass
class Frame:
    """A place with a name on a body."""

    name: str
    body: int
    R: Array
    p: Array


@dataclass
class ModelTree:
    """Bodies with parents before children, the first one without a parent."""

    name: str
    bodies: list[Body]
    frames: list[Frame]
    imus: list[str]
    """Frames that are known to carry the IMU."""
    source: str
    notes: list[str] = field(default_factory=list)
    """What a reader left out or took for granted."""
    balls: dict[int, str] = field(default_factory=dict)
    """Ball joints by the body that they move, which is held as drawn."""
    loops: list[tuple[int, int]] = field(default_factory=list)
    """Bodies that are held together beside the tree, as by rods."""

    @cached_property
    def children(self) -> list[list[int]]:
        """Bodies that hang on each body."""
        out: list[list[int]] = [[] for _ in self.bodies]
        for i, body in enumerate(self.bodies[1:], 1):
            out[body.parent].append(i)
        return out

    @cached_property
    def group(self) -> list[int]:
        """The first body of the rigid group that each body belongs to."""
        out: list[int] = []
        for i, body in enumerate(self.bodies):
            out.append(i if i == 0 or body.joints else out[body.parent])
        return out

    def named(self, name: str) -> list[Frame]:
        """Frames of that name: bodies, sites, and shapes with a name."""
        return [frame for frame in self.frames if frame.name == name]

    def path(self, start: int, end: int) -> list[tuple[int, bool]]:
        """Edges from one body to another: the child body of each, and whether it is entered from its parent."""

        def up(body: int) -> list[int]:
            out = [body]
            while self.bodies[out[-1]].parent >= 0:
                out.append(self.bodies[out[-1]].parent)
            return out

        first, last = up(start), up(end)
        while first and last and first[-1] == last[-1]:
            first.pop(), last.pop()
        return [(body, False) for body in first] + [(body, True) for body in reversed(last)]

    def joints_between(self, start: int, end: int) -> list[tuple[int, ModelJoint, bool]]:
        """Joints from one body to another: body, joint, and whether the joint is passed from parent to child."""
        out = []
        for body, outward in self.path(start, end):
            joints = self.bodies[body].joints
            out += [(body, joint, outward) for joint in (joints if outward else joints[::-1])]
        return out

    def poses(self, base: int, q: dict[str, float] | None = None) -> list[tuple[Array, Array]]:
        """Rotation and place of each body in the base, with some joints at other values than their reference."""
        out: list[tuple[Array, Array]] = []
        for body in self.bodies:
            R, p = (np.eye(3), np.zeros(3)) if body.parent < 0 else out[body.parent]
            p, R = p + R @ body.p, R @ body.R
            for joint in body.joints:
                by = (q or {}).get(joint.name, joint.reference) - joint.reference
                if joint.slides:
                    p = p + R @ joint.axis * by
                else:
                    turned = R @ so3_exp(joint.axis * by)
                    p = p + (R - turned) @ joint.anchor
                    R = turned
            out.append((R, p))
        R0, p0 = out[base]
        return [(R0.T @ R, R0.T @ (p - p0)) for R, p in out]


_SIDED = re.compile(r"^(l|r|left|right|[fbhr][lr]|[lr][fbh])(foot|feet|sole|toes?|ankle)$")
"""A foot with its side in one word."""


def words_of(name: str) -> list[str]:
    """Parts of a name in lower case: `leftAnkle_roll` has left, ankle and roll, `lfoot` has l and foot."""
    words = re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return [part for word in words for part in _SIDED.sub(r"\1 \2", word).split()]


def turn_after(first: str, second: str) -> str:
    """Roll, pitch and yaw, degrees, of two turns of axes, the second one in the axes that the first one leaves."""
    one, two = (
        rotation_rpy(np.radians([float(angle) for angle in turn.split(",")]).tolist()) for turn in (first, second)
    )
    turn = one @ two
    pitch = -np.arcsin(np.clip(turn[2, 0], -1.0, 1.0))
    if abs(turn[2, 0]) > 1.0 - 1e-9:  # roll and yaw turn about one axis there
        roll, yaw = 0.0, np.arctan2(-turn[0, 1], turn[1, 1])
    else:
        roll, yaw = np.arctan2(turn[2, 1], turn[2, 2]), np.arctan2(turn[1, 0], turn[0, 0])
    return ",".join(f"{round(float(angle), 3) + 0.0:g}" for angle in np.degrees([roll, pitch, yaw]))


def rotation_rpy(rpy: Sequence[float]) -> Array:
    """Of roll, pitch and yaw about fixed axes, as URDF has them."""
    roll, pitch, yaw = rpy
    x, y, z = np.eye(3)
    return np.asarray(so3_exp(z * yaw) @ so3_exp(y * pitch) @ so3_exp(x * roll))


def moved_link(link: Link, R: Array, p: Array) -> Link:
    """Mass properties in another frame."""
    return Link(link.mass, p + R @ link.com, R @ link.inertia @ R.T)


def turn_body(tree: ModelTree, i: int, R: Array) -> None:
    """Give a body other axes, those of `R` in its old ones; nothing else moves, its name stays with the old frame."""
    body = tree.bodies[i]
    body.R, body.link = body.R @ R, moved_link(body.link, R.T, np.zeros(3))
    for joint in body.joints:
        joint.axis, joint.anchor = R.T @ joint.axis, R.T @ joint.anchor
    for shape in body.shapes:
        shape.points = shape.points @ R
    for child in (tree.bodies[k] for k in tree.children[i]):
        child.R, child.p = R.T @ child.R, R.T @ child.p
    for frame in tree.frames:
        if frame.body == i:
            frame.R, frame.p = R.T @ frame.R, R.T @ frame.p


def sphere(centre: Array, radius: float, **named: object) -> ContactShape:
    """A sphere."""
    return ContactShape(np.asarray(centre, dtype=np.float64).reshape(1, 3), radius, **named)  # type: ignore[arg-type]


def box(R: Array, p: Array, half: Array, **named: object) -> ContactShape:
    """The corners of a box of these half lengths."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return ContactShape(p + (signs * half) @ R.T, **named)  # type: ignore[arg-type]


def rod(R: Array, p: Array, radius: float, half: float, round_ends: bool, **named: object) -> ContactShape:
    """A capsule, or a cylinder: the rims of its ends, or, where it lies, its ends as spheres."""
    ends = p + np.array([[0.0, 0.0, -half], [0.0, 0.0, half]]) @ R.T
    if round_ends or abs(R[2, 2]) < 0.7:
        return ContactShape(ends, radius, **named)  # type: ignore[arg-type]
    angles = np.arange(8) * np.pi / 4.0
    rim = radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], 1) @ R.T
    return ContactShape((ends[:, None] + rim).reshape(-1, 3), **named)  # type: ignore[arg-type]


def checked(tree: ModelTree) -> ModelTree:
    """The tree, if its numbers are ones and its names tell its joints apart."""
    names = [joint.name for body in tree.bodies for joint in body.joints]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GaitError(f"{tree.source} has two joints '{twice}': every joint must have its own name")
    for body in tree.bodies:
        arrays = [body.R, body.p, body.link.com, body.link.inertia, *(joint.axis for joint in body.joints)]
        if not all(np.isfinite(array).all() for array in arrays):
            raise GaitError(f"{tree.source}: the numbers of '{body.name}' are not finite")
    return tree
