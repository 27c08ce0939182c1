"""Robot descriptions as YAML files hold them: one leg for all, mirrored (`leg`), or each leg as a chain of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.documents import named, shown
from gait.errors import GaitError
from gait.robot.robot import Robot, Shapes
from gait.robot.serial_chain import MOST_CORNERS, MOST_JOINTS, Chain, Foot, Link, combined

_LINKS = ("hip", "thigh", "calf")
_RADII = ("hip_radius", "thigh_radius", "calf_radius")
JOINTS = {
    "lower": "q_lower", "upper": "q_upper", "torque": "torque_limit", "velocity": "velocity_limit",
    "damping": "damping", "friction": "friction", "armature": "armature", "kp": "kp", "kd": "kd", "stand": "q_stand",
}  # fmt: skip
"""Fields of a Robot by the name that its file has for a joint."""
USUAL = {"torque": 1e4, "velocity": 1e3, "damping": 0.0, "friction": 0.0, "armature": 0.0, "kp": 0.0, "kd": 0.0}
"""What a chain's joint has where its file does not tell, and limits of joints that turn without end."""
ENDLESS = 1e3
"""Limit of a joint that turns without end, rad."""
MOST_DELAY = 0.1
"""Largest latency of the joints, s."""
_SCHEMA: dict[str, tuple[str, ...]] = {
    "": ("name", "base_link", "leg", "legs", "links", "joints", "imu", "shapes", "source", "zeros", "joint_delay"),
    "leg": ("joints", "axes", "offsets", "foot_radius"),
    "joints": tuple(JOINTS),
    "links": ("base", *_LINKS),
    "imu": ("position", "quat_wxyz"),
    "shapes": ("base", *_RADII),
    "leg.offsets": _LINKS,
}
"""Keys of each section of a file with one leg for all."""
_CHAINS = ("name", "base_link", "source", "imu", "base", "legs", "shapes", "zeros", "joint_delay")
_LEG = ("joints", "foot")
_FOOT = ("centre", "radius", "corners")
_JOINT = ("name", "type", "axis", "offset", *JOINTS, "follows", "ratio", "shift", *("mass", "com", "inertia"))
"""Keys of a file with a chain for each leg."""
OPTIONAL = ("source", "shapes", "zeros", "joint_delay")
_PART = ("mass", "com", "inertia", "mirror")
"""Keys of a part of a link."""


def parse(tree: Any) -> Robot:
    """The robot of a description; unknown or missing keys are an error."""
    legs = tree.get("legs") if isinstance(tree, Mapping) else None
    if (
        isinstance(legs, Mapping)
        and legs
        and "leg" not in tree
        and all(isinstance(leg, Mapping) for leg in legs.values())
    ):
        return _chains(tree)
    return _one_leg(tree)


def _one_leg(tree: Any) -> Robot:
    """Legs of an abduction joint about x and two joints about y, all alike but for where they are."""
    for path in _SCHEMA:
        section(_at(tree, path), path, optional=("source", "zeros", "joint_delay") if not path else ())
    if not isinstance(tree["legs"], Mapping) or not tree["legs"]:
        raise GaitError("`legs` must map each leg's name to its hip position [x, y, z]")

    def three(path: str, count: int = 3) -> Array:
        return numbers(_at(tree, path), count, path)

    names = tuple(named(name) for name in tree["legs"])
    hips = [numbers(hip, 3, f"legs.{name}") for name, hip in tree["legs"].items()]
    per_leg = {key: three(f"joints.{key}") for key in JOINTS}
    if not (per_leg["lower"] < per_leg["upper"]).all():
        raise GaitError("every joints.lower must be below its joints.upper")
    if not ((per_leg["lower"] <= per_leg["stand"]) & (per_leg["stand"] <= per_leg["upper"])).all():
        raise GaitError("`joints.stand` must lie between joints.lower and joints.upper")
    labels = tree["leg"]["joints"]
    if not isinstance(labels, Sequence) or isinstance(labels, str) or len(labels) != 3:
        raise GaitError("`leg.joints` must be three names, base to foot")
    axes = np.eye(3)[[0, 1, 1]] * _axis_signs(tree["leg"]["axes"])[:, None]
    offsets = {key: three(f"leg.offsets.{key}") for key in _LINKS}
    for key in ("thigh", "calf"):
        if not np.linalg.norm(offsets[key]) > 0.0:
            raise GaitError(f"`leg.offsets.{key}` must not be zero: give where the {key} ends")
    links = tree["links"]
    foot = Foot(positive(tree["leg"]["foot_radius"], "leg.foot_radius", zero=True))

    def leg(name: str, hip: Array) -> Chain:
        parts = [_merge(links[key], hip, f"links.{key}") for key in _LINKS]
        return Chain(
            axes=axes,
            offsets=np.array([hip, *(vector * _signs(hip, ("y",)) for vector in offsets.values())]),
            **_arrays(parts),
            armature=per_leg["armature"],
            name=name,
            joint_names=tuple(f"{name}_{named(label)}_joint" for label in labels),
            foot=foot,
        )

    legs = tuple(map(leg, names, hips))
    return Robot(
        name=named(tree["name"]),
        base_link=named(tree["base_link"]),
        legs=legs,
        base=_merge(links["base"], np.zeros(3), "links.base"),
        **{JOINTS[key]: np.tile(value, len(names)) for key, value in per_leg.items() if key != "armature"},
        imu_position=three("imu.position"),
        imu_quat_wxyz=_unit(three("imu.quat_wxyz", 4), "imu.quat_wxyz"),
        shapes=Shapes(three("shapes.base"), *(positive(tree["shapes"][key], f"shapes.{key}") for key in _RADII)),
        zeros=_zeros(tree.get("zeros"), [name for one in legs for name in one.joint_names]),
        source=named(tree.get("source", "")),
        joint_delay=_joint_delay(tree.get("joint_delay")),
    )


def _chains(tree: Mapping[str, Any]) -> Robot:
    """Legs that are chains of any joints."""
    section(tree, "", _CHAINS, OPTIONAL)
    imu = section(tree["imu"], "imu")
    values: dict[str, list[float]] = {key: [] for key in JOINTS}
    legs = tuple(_leg_chain(named(name), leg, values) for name, leg in tree["legs"].items())
    shapes = tree.get("shapes")
    if shapes is not None:
        section(shapes, "shapes")
    return Robot(
        name=named(tree["name"]),
        base_link=named(tree["base_link"]),
        legs=legs,
        base=_link(section(tree["base"], "base", _PART[:3]), "base"),
        **{field: np.array(values[key]) for key, field in JOINTS.items() if key != "armature"},
        imu_position=numbers(imu["position"], 3, "imu.position"),
        imu_quat_wxyz=_unit(numbers(imu["quat_wxyz"], 4, "imu.quat_wxyz"), "imu.quat_wxyz"),
        shapes=usual_shapes(legs)
        if shapes is None
        else Shapes(numbers(shapes["base"], 3, "shapes.base"), *(positive(shapes[k], f"shapes.{k}") for k in _RADII)),
        zeros=_zeros(tree.get("zeros"), [name for leg in legs for name in leg.joint_names]),
        source=named(tree.get("source", "")),
        joint_delay=_joint_delay(tree.get("joint_delay")),
    )


def _leg_chain(name: str, tree: Any, values: dict[str, list[float]]) -> Chain:
    """One leg; what its joints have joins `values`."""
    path = f"legs.{name}"
    section(tree, path, _LEG)
    entries, foot = tree["joints"], section(tree["foot"], f"{path}.foot", _FOOT, ("radius", "corners"))
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not 1 <= len(entries) <= MOST_JOINTS:
        raise GaitError(f"`{path}.joints` must be a list of 1 to {MOST_JOINTS} joints, base to foot")
    encoders: list[str] = []
    rows: list[dict[str, Any]] = []
    armature: list[float] = []
    for entry in entries:
        if not isinstance(entry, Mapping) or "name" not in entry:
            raise GaitError(f"a joint in `{path}.joints` lacks the key 'name'")
        where = f"{path}.{named(entry['name'])}"
        must = ("name", "axis", "offset", "mass", "com", "inertia")
        section(entry, where, _JOINT, [key for key in _JOINT if key not in must])
        rows.append(_joint(entry, where, encoders))
        if "follows" not in entry:
            for key, value in _limits(entry, where).items():
                (armature if key == "armature" else values[key]).append(value)
    corners = foot.get("corners", ())
    if not isinstance(corners, Sequence) or len(corners) > MOST_CORNERS or len(corners) == 1:
        raise GaitError(f"`{path}.foot.corners` must be 2 to {MOST_CORNERS} points [x, y, z] around its centre")
    sole = np.array([numbers(corner, 3, f"{path}.foot.corners") for corner in corners]).reshape(-1, 3)
    end = numbers(foot["centre"], 3, f"{path}.foot.centre")
    return Chain(
        axes=np.array([row["axis"] for row in rows]),
        offsets=np.array([*(row["offset"] for row in rows), end]),
        **_arrays([row["link"] for row in rows]),
        armature=np.array(armature),
        name=name,
        joint_names=tuple(encoders),
        foot=Foot(positive(foot.get("radius", 0.0), f"{path}.foot.radius", zero=True), sole),
        slides=np.array([row["slides"] for row in rows]),
        source=np.array([row["source"] for row in rows]),
        ratio=np.array([row["ratio"] for row in rows]),
        shift=np.array([row["shift"] for row in rows]),
    )


def _joint(entry: Mapping[str, Any], where: str, encoders: list[str]) -> dict[str, Any]:
    """A joint and the link behind it; its name joins `encoders`, unless it follows one of them."""
    axis, kind = numbers(entry["axis"], 3, f"{where}.axis"), entry.get("type", "revolute")
    if kind not in ("revolute", "prismatic"):
        raise GaitError(f"`{where}.type` must be revolute or prismatic, got {shown(kind)}")
    if abs(np.linalg.norm(axis) - 1.0) > 1e-6:
        raise GaitError(f"`{where}.axis` must have length 1")
    leader, name = entry.get("follows"), named(entry["name"])
    if leader is None:
        if name in encoders:
            raise GaitError(f"joint '{name}' stands twice in one leg")
        encoders.append(name)
    elif leader not in encoders:
        raise GaitError(f"`{where}.follows` must name a joint before it in the leg, got {shown(leader)}")
    return {
        # A file has twelve digits: what was written is read, and written again, as it is.
        "axis": axis if abs(np.linalg.norm(axis) - 1.0) < 1e-11 else axis / np.linalg.norm(axis),
        "offset": numbers(entry["offset"], 3, f"{where}.offset"),
        "slides": kind == "prismatic",
        "source": encoders.index(name if leader is None else leader),
        "ratio": float(numbers([entry.get("ratio", 1.0)], 1, f"{where}.ratio")[0]),
        "shift": float(numbers([entry.get("shift", 0.0)], 1, f"{where}.shift")[0]),
        "link": _link(entry, where),
    }


def _limits(entry: Mapping[str, Any], where: str) -> dict[str, float]:
    """Limits, gains and stance of a joint."""
    usual = {**USUAL, "lower": -ENDLESS, "upper": ENDLESS, "stand": 0.0}
    out = {key: float(numbers([entry.get(key, usual[key])], 1, f"{where}.{key}")[0]) for key in JOINTS}
    if not out["lower"] < out["upper"]:
        raise GaitError(f"`{where}.lower` must be below `{where}.upper`")
    if not out["lower"] <= out["stand"] <= out["upper"]:
        raise GaitError(f"`{where}.stand` must lie between its lower and upper")
    return out


def usual_shapes(legs: Sequence[Chain]) -> Shapes:
    """A box between the hips and legs as thick as their length has it, for what a file does not tell."""
    hips = np.array([leg.hip_b for leg in legs])
    length = max(leg.length for leg in legs)
    box = np.maximum(hips.max(axis=0) - hips.min(axis=0), [0.3 * length, 0.3 * length, 0.25 * length])
    return Shapes(box, 0.1 * length, 0.04 * length, 0.03 * length)


def _zeros(tree: Any, names: Sequence[str]) -> Array:
    """Zeros of the encoders by the names of their joints; those that are not there are 0."""
    if tree is None:
        return np.zeros(len(names))
    section(tree, "zeros", names, names)
    return np.array([float(numbers([tree.get(name, 0.0)], 1, f"zeros.{name}")[0]) for name in names])


def _joint_delay(value: object) -> float | None:
    delay = None if value is None else positive(value, "joint_delay", zero=True)
    if delay is not None and delay > MOST_DELAY:
        raise GaitError(f"`joint_delay` is {delay:g} s: give seconds from 0 to {MOST_DELAY:g}")
    return delay


def _arrays(links: Sequence[Link]) -> dict[str, Any]:
    """Links as a Chain has them."""
    names = ("mass", "com", "inertia")
    return {name: np.array([getattr(link, name) for link in links], dtype=np.float64) for name in names}


def _at(tree: Any, path: str) -> Any:
    """What stands in a description at a path such as `leg.offsets`."""
    for key in path.split(".") if path else ():
        tree = tree[key]
    return tree


def section(value: object, path: str, allowed: Sequence[str] = (), optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """A mapping with exactly the keys of the schema: unknown or missing ones are an error."""
    allowed = allowed or _SCHEMA[path]
    place = f"`{path}`" if path else "the file"
    if not isinstance(value, Mapping):
        raise GaitError(f"{place} must be a mapping with the keys {', '.join(allowed)}")
    for key in value:
        if key not in allowed:
            raise GaitError(f"unknown key '{named(key)}' in {place}; the keys there are {', '.join(allowed)}")
    for key in allowed:
        if key not in value and key not in optional:
            raise GaitError(f"{place} lacks the key '{key}'")
    return value


def numbers(value: object, count: int, path: str) -> Array:
    """So many finite numbers."""
    flat = value if isinstance(value, list | tuple | np.ndarray) and len(value) == count else ()
    try:
        # Item by item: a list may hold lists in lists.
        array = np.array([float(one) for one in flat])
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"`{path}` must be {count} numbers, got {shown(value)}")
    return array


def positive(value: object, path: str, zero: bool = False) -> float:
    """A positive number, or zero."""
    number = float(numbers([value], 1, path)[0])
    if number < 0.0 or (number == 0.0 and not zero):
        raise GaitError(f"`{path}` must be positive, got {shown(value)}")
    return number


def _unit(quat: Array, path: str) -> Array:
    if abs(np.linalg.norm(quat) - 1.0) > 1e-6:
        raise GaitError(f"{path} must have length 1")
    return quat


def _axis_signs(value: object) -> Array:
    axes = [named(axis) for axis in value] if isinstance(value, Sequence) else []
    if [axis.removeprefix("-") for axis in axes] != ["x", "y", "y"]:
        raise GaitError("`leg.axes` must be [x, y, y], with a minus sign where a joint turns backwards")
    return np.array([-1.0 if axis.startswith("-") else 1.0 for axis in axes])


def _signs(hip: Array, axes: Sequence[str]) -> Array:
    """What mirrors a vector (3,): x for rear legs and y for right legs, where `axes` asks for it."""
    return np.array([-1.0 if axis in axes and hip[i] < 0 else 1.0 for i, axis in enumerate("xyz")])


def _link(entry: Mapping[str, Any], path: str) -> Link:
    """Mass properties from the keys mass, com and inertia."""
    xx, yy, zz, xy, xz, yz = numbers(entry["inertia"], 6, f"{path}.inertia")
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Link(positive(entry["mass"], f"{path}.mass", zero=True), numbers(entry["com"], 3, f"{path}.com"), inertia)


def _merge(parts: object, hip: Array, path: str) -> Link:
    """One rigid link from its parts (parallel axes)."""
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise GaitError(f"`{path}` must be a list of parts, each with mass, com and inertia")
    links = []
    for part in parts:
        entry = section(part, "part", _PART, optional=("mirror",))
        signs = _signs(hip, entry.get("mirror", ()))
        positive(entry["mass"], f"{path}.mass")
        link = _link(entry, path)
        links.append(Link(link.mass, signs * link.com, link.inertia * np.outer(signs, signs)))
    return combined(links)
