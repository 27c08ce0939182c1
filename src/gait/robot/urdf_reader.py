"""URDF: links, joints and collision geometry, by the standard library's XML parser; meshes are not read."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError, os_errors
from gait.robot.model_tree import (
    Body,
    ContactShape,
    Frame,
    ModelJoint,
    ModelTree,
    box,
    checked,
    rod,
    rotation_rpy,
    sphere,
)
from gait.robot.serial_chain import Link

_LARGEST = 64 << 20
"""Bytes of a file; the largest published ones have one million."""
_MOVABLE = ("revolute", "continuous", "prismatic")
_STANCES = ("half_sitting", "standing", "stand", "stance", "reference", "home")
"""Names of the group state of an SRDF file that is the stance, in order of preference."""


def read_urdf(path: Path) -> ModelTree:
    """The model of a URDF file."""
    with os_errors(f"cannot read {path}"):
        text = path.read_bytes() if path.stat().st_size < _LARGEST else b""
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise GaitError(f"{path} is not valid XML: {error}") from None
    if path.suffix.lower() == ".xacro" or any("/xacro}" in str(element.tag) for element in root.iter()):
        raise GaitError(
            f"{path} is a xacro file: expand it first with `xacro {path.name} > {path.name.split('.')[0]}_full.urdf`"
        )
    if root.tag != "robot":
        raise GaitError(f"{path} is no URDF: its first element is <{root.tag}>, not <robot>")
    try:
        return checked(_tree(root, path))
    except (ValueError, TypeError, OverflowError) as error:
        raise GaitError(f"{path} has a number that cannot be read: {error}") from None


def _tree(root: ET.Element, path: Path) -> ModelTree:
    links = {link.get("name", ""): link for link in root.findall("link")}
    joints = {child: joint for joint in root.findall("joint") if (child := _end(joint, "child"))}
    roots = [name for name in links if name not in joints]
    unknown = {_end(joint, "parent") for joint in joints.values()} | set(joints)
    if missing := sorted(unknown - set(links)):
        raise GaitError(f"{path}: a joint names the link '{missing[0]}', which is not there")
    if not links or len(roots) != 1:
        raise GaitError(f"{path} must have one link that no joint has as its child, it has {len(roots)}")
    by_parent: dict[str, list[str]] = {}
    for child, joint in joints.items():
        by_parent.setdefault(_end(joint, "parent"), []).append(child)
    stance, bodies, todo = _stance(path), list[Body](), [(roots[0], -1)]
    while todo:
        name, parent = todo.pop(0)
        bodies.append(_body(name, links[name], joints.get(name), parent, stance))
        todo += [(child, len(bodies) - 1) for child in by_parent.get(name, ())]
    frames = [Frame(body.name, i, np.eye(3), np.zeros(3)) for i, body in enumerate(bodies)]
    imus = [body.name for body in bodies if "imu" in body.name.lower()]
    return ModelTree(root.get("name", path.stem), bodies, frames, imus, str(path))


def _body(name: str, link: ET.Element, joint: ET.Element | None, parent: int, stance: dict[str, float]) -> Body:
    R, p = _origin(joint)
    made = [] if joint is None or joint.get("type") not in _MOVABLE else [_joint(joint, stance)]
    kind = "fixed" if joint is None else joint.get("type", "fixed")
    if kind == "planar":
        raise GaitError(f"the joint '{joint.get('name')}' is planar: only revolute and prismatic joints are supported")  # type: ignore[union-attr]
    shapes = [shape for one in link.findall("collision") for shape in _shapes(one, True)]
    if not shapes:
        shapes = [shape for one in link.findall("visual") for shape in _shapes(one, False)]
    return Body(name, parent, R, p, _inertial(link.find("inertial")), made, shapes)


def _joint(joint: ET.Element, stance: dict[str, float]) -> ModelJoint:
    name, limit, dynamics = joint.get("name", ""), joint.find("limit"), joint.find("dynamics")
    axis = _vector(joint.find("axis"), "xyz", (1.0, 0.0, 0.0))
    if not np.linalg.norm(axis) > 0.0:
        raise GaitError(f"the axis of the joint '{name}' is zero")
    values: dict[str, float] = {}
    if limit is not None and joint.get("type") != "continuous":
        lower, upper = float(limit.get("lower", 0.0)), float(limit.get("upper", 0.0))
        if lower < upper:
            values |= {"lower": lower, "upper": upper}
    for element, keys in ((limit, ("effort", "velocity")), (dynamics, ("damping", "friction"))):
        for key in keys:
            if element is not None and float(element.get(key, 0.0)) > 0.0:
                values["torque" if key == "effort" else key] = float(element.get(key, 0.0))
    if name in stance:
        values["stand"] = stance[name]
    made = ModelJoint(name, axis / np.linalg.norm(axis), np.zeros(3), joint.get("type") == "prismatic", values=values)
    mimic = joint.find("mimic")
    if mimic is not None:
        made.leader = mimic.get("joint", "")
        made.ratio, made.shift = float(mimic.get("multiplier", 1.0)), float(mimic.get("offset", 0.0))
    return made


def _shapes(element: ET.Element, collides: bool) -> list[ContactShape]:
    R, p = _origin(element)
    geometry = element.find("geometry")
    for shape in () if geometry is None else geometry:
        size = {key: float(shape.get(key, 0.0)) for key in ("radius", "length")}
        if shape.tag == "sphere":
            return [sphere(p, size["radius"], collides=collides)]
        if shape.tag == "box":
            return [box(R, p, 0.5 * _vector(shape, "size", (0.0, 0.0, 0.0)), collides=collides)]
        if shape.tag in ("cylinder", "capsule"):
            return [rod(R, p, size["radius"], 0.5 * size["length"], shape.tag == "capsule", collides=collides)]
    return []


def _inertial(element: ET.Element | None) -> Link:
    if element is None:
        return Link(0.0, np.zeros(3), np.zeros((3, 3)))
    R, p = _origin(element)
    mass, found = element.find("mass"), element.find("inertia")
    xx, yy, zz, xy, xz, yz = (
        0.0 if found is None else float(found.get(key, 0.0)) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Link(0.0 if mass is None else max(float(mass.get("value", 0.0)), 0.0), p, R @ inertia @ R.T)


def _origin(element: ET.Element | None) -> tuple[Array, Array]:
    origin = None if element is None else element.find("origin")
    return rotation_rpy(_vector(origin, "rpy", (0.0, 0.0, 0.0)).tolist()), _vector(origin, "xyz", (0.0, 0.0, 0.0))


def _vector(element: ET.Element | None, key: str, usual: tuple[float, float, float]) -> Array:
    text = None if element is None else element.get(key)
    found = np.array(usual if text is None else [float(word) for word in text.split()])
    if found.shape != (3,):
        raise ValueError(f"{key}='{text}' is not three numbers")
    return found


def _end(joint: ET.Element, tag: str) -> str:
    found = joint.find(tag)
    return "" if found is None else found.get("link", "")


def _stance(path: Path) -> dict[str, float]:
    """Joint angles of the stance, from the SRDF file that lies in the folder `srdf` beside a published URDF."""
    for file in sorted([*path.parent.glob("*.srdf"), *path.parent.parent.glob("srdf/*.srdf")]):
        try:
            root = ET.fromstring(file.read_bytes())
        except (ET.ParseError, OSError):
            continue
        states = {state.get("name", ""): state for state in root.findall("group_state")}
        for name in _STANCES:
            if name in states:
                pairs = [(joint.get("name", ""), joint.get("value", "").split()) for joint in states[name]]
                return {joint: float(value[0]) for joint, value in pairs if len(value) == 1}
    return {}
