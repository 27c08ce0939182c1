"""Robot: what the rest of the package knows about a machine, read from one YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gait.arrays import Array
from gait.documents import load_yaml, named, shown
from gait.errors import GaitError, located
from gait.robot import kinematics

_HERE = Path(__file__).parent
_LINKS = ("hip", "thigh", "calf")
_RADII = ("hip_radius", "thigh_radius", "calf_radius")
_JOINTS = {
    "lower": "q_lower", "upper": "q_upper", "torque": "torque_limit", "velocity": "velocity_limit",
    "damping": "damping", "friction": "friction", "armature": "armature", "kp": "kp", "kd": "kd", "stand": "q_stand",
}  # fmt: skip
"""Fields of a Robot by the name that its file has for a leg's three joints."""
_SCHEMA: dict[str, tuple[str, ...]] = {
    "": ("name", "base_link", "leg", "legs", "links", "joints", "imu", "shapes"),
    "leg": ("joints", "axes", "offsets", "foot_radius"),
    "joints": tuple(_JOINTS),
    "links": ("base", *_LINKS),
    "imu": ("position", "quat_wxyz"),
    "shapes": ("base", *_RADII),
    "leg.offsets": _LINKS,
}
"""Keys of each section of a robot file."""
_PART = ("mass", "com", "inertia", "mirror")
"""Keys of a part of a link."""


@dataclass(frozen=True)
class Link:
    """Mass properties of one rigid link, in its own frame."""

    mass: float
    com: Array
    """Centre of mass (3,)."""
    inertia: Array
    """Inertia about the centre of mass (3, 3)."""


def combined(links: Sequence[Link]) -> Link:
    """Links that are rigidly joined, all given in one frame, as one link (parallel axes)."""
    mass = sum(link.mass for link in links)
    com: Array = np.sum([link.mass * link.com for link in links], axis=0) / mass
    inertia = np.zeros((3, 3))
    for link in links:
        shift = link.com - com
        inertia += link.inertia + link.mass * (shift @ shift * np.eye(3) - np.outer(shift, shift))
    return Link(mass, com, inertia)


@dataclass(frozen=True)
class Shapes:
    """Primitive geometry for the simulator and for drawing."""

    base: Array
    """Box of the body, full lengths (3,)."""
    hip_radius: float
    thigh_radius: float
    calf_radius: float


@dataclass(frozen=True, eq=False)
class Robot:
    """A legged robot with legs of three joints: abduction about x, then two about y.

    Arrays over joints are leg by leg in the order of `leg_names`; `joint_names` spells that order out.
    """

    name: str
    base_link: str
    leg_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    offsets: Array
    """Base to hip, hip to thigh, thigh to calf, calf to foot centre (L, 4, 3)."""
    signs: Array
    """+1 or -1, the direction of each joint about its axis (L, 3)."""
    foot_radius: float
    base: Link
    links: tuple[tuple[Link, Link, Link], ...]
    """Hip, thigh and calf link of each leg."""
    q_lower: Array
    q_upper: Array
    torque_limit: Array
    velocity_limit: Array
    damping: Array
    friction: Array
    armature: Array
    kp: Array
    kd: Array
    q_stand: Array
    imu_position: Array
    imu_quat_wxyz: Array
    shapes: Shapes

    @staticmethod
    def load(name_or_path: str | Path) -> Robot:
        """Load a robot that ships with the package by name, or any robot by the path of its YAML file."""
        path = Path(name_or_path)
        if path.suffix not in (".yaml", ".yml"):
            path = _HERE / f"{name_or_path}.yaml"
            # Not by looking for the file: a name may come from another one, and hold anything.
            if str(name_or_path) not in robot_names():
                raise GaitError(
                    f"unknown robot '{name_or_path}': choose one of {', '.join(robot_names())}"
                    " or give the path of a YAML file"
                )
        try:
            return Robot.of(load_yaml(path.read_text(encoding="utf-8")), str(path))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            raise GaitError(f"cannot read robot file {path}: {reason}") from None
        except yaml.YAMLError as error:
            where = getattr(error, "problem_mark", None)
            line = f" at line {where.line + 1}" if where else ""
            raise GaitError(f"robot file {path} is not valid YAML{line}: correct its syntax") from None

    @staticmethod
    def of(tree: object, source: str) -> Robot:
        """The robot of a description that is at hand already, as a YAML file would hold it.

        Args:
            tree: the description.
            source: where it comes from, for messages.
        """
        with located(source):
            return _parse(tree)

    @property
    def num_legs(self) -> int:
        """How many legs the robot has."""
        return len(self.leg_names)

    @property
    def num_joints(self) -> int:
        """How many joints the robot has."""
        return len(self.joint_names)

    @property
    def mass(self) -> float:
        """Total mass in kg."""
        return self.base.mass + sum(link.mass for leg in self.links for link in leg)

    @property
    def knee_sign(self) -> float:
        """Sign of the calf angle in the middle of its range: which way the knee bends."""
        return float(np.sign(self.q_lower[2] + self.q_upper[2]))

    @property
    def leg_inertial(self) -> Array:
        """Mass, centre of mass and inertia [xx, yy, zz, xy, xz, yz] of each leg link (L, 3, 10)."""
        rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
        return np.array([[[link.mass, *link.com, *link.inertia[rows, columns]] for link in leg] for leg in self.links])

    def forward(self, q: Array) -> tuple[Array, Array]:
        """Foot positions (..., L, 3) and Jacobians (..., L, 3, 3) in the base frame for joints (..., J)."""
        q = np.asarray(q, dtype=np.float64)
        if q.shape[-1:] != (self.num_joints,):
            raise GaitError(
                f"joint array of shape {q.shape} does not fit {self.name}: its last axis must be {self.num_joints}"
            )
        angles = np.moveaxis(q.reshape(*q.shape[:-1], self.num_legs, 3), -1, 0)  # (3, ..., L)
        foot, *columns = kinematics.leg_forward(np.moveaxis(self.offsets, 0, -1), self.signs.T, angles)
        jac = np.stack([np.stack(column, -1) for column in columns], -1)
        return np.stack(foot, -1), jac

    def feet(self, q: Array) -> Array:
        """Foot positions (..., L, 3) in the base frame."""
        return self.forward(q)[0]

    def jacobian(self, q: Array) -> Array:
        """Leg Jacobians (..., L, 3, 3): foot velocity in the base frame = J dq."""
        return self.forward(q)[1]

    def skeleton(self, q: Array) -> Array:
        """Hip joint, thigh joint, knee and foot of each leg in the base frame (..., L, 4, 3), of joints (..., J)."""
        # Each is the foot of a leg that ends there.
        ends = [self.offsets * (np.arange(4) <= last)[:, None] for last in range(4)]
        return np.stack([replace(self, offsets=offsets).feet(q) for offsets in ends], axis=-2)

    def foot_velocity(self, q: Array, dq: Array, gyro: Array) -> Array:
        """J dq + w x p for each foot (..., L, 3); a foot at rest measures the base velocity as minus this."""
        feet, jac = self.forward(q)
        dq = np.asarray(dq, dtype=np.float64).reshape(feet.shape)
        gyro = np.asarray(gyro, dtype=np.float64)[..., None, :]
        velocity: Array = np.einsum("...ij,...j->...i", jac, dq) + np.cross(gyro, feet)
        return velocity

    def inverse(self, leg: str, foot_b: Array) -> Array:
        """Joint angles (3,) of one leg that put its foot at `foot_b` (3,) in the base frame."""
        foot = np.array(foot_b, dtype=np.float64)
        if foot.shape != (3,) or not np.isfinite(foot).all():
            raise GaitError(f"foot_b must be three finite numbers, got {foot_b!r}")
        index = self.leg_index(leg)
        *q, within = kinematics.leg_inverse(self.offsets[index], self.signs[index], self.knee_sign, foot)
        if not within:
            raise GaitError(f"foot position {foot.tolist()} is out of reach of leg {leg}: move it nearer to the hip")
        return np.array(q)

    def leg_index(self, leg: str) -> int:
        """Position of a leg by name."""
        if leg not in self.leg_names:
            raise GaitError(f"robot {self.name} has no leg '{leg}': its legs are {', '.join(self.leg_names)}")
        return self.leg_names.index(leg)


def robot_names() -> list[str]:
    """Names of the robots that ship with the package."""
    return sorted(path.stem for path in _HERE.glob("*.yaml"))


def _parse(tree: Any) -> Robot:
    for path in _SCHEMA:
        _section(_at(tree, path), path)
    if not isinstance(tree["legs"], Mapping) or not tree["legs"]:
        raise GaitError("`legs` must map each leg's name to its hip position [x, y, z]")

    def numbers(path: str, count: int = 3) -> Array:
        return _numbers(_at(tree, path), count, path)

    names = tuple(named(name) for name in tree["legs"])
    hips = [_numbers(hip, 3, f"legs.{name}") for name, hip in tree["legs"].items()]
    per_leg = {key: numbers(f"joints.{key}") for key in _JOINTS}
    if not (per_leg["lower"] < per_leg["upper"]).all():
        raise GaitError("every joints.lower must be below its joints.upper")
    if not ((per_leg["lower"] <= per_leg["stand"]) & (per_leg["stand"] <= per_leg["upper"])).all():
        raise GaitError("`joints.stand` must lie between joints.lower and joints.upper")
    labels = tree["leg"]["joints"]
    if not isinstance(labels, Sequence) or isinstance(labels, str) or len(labels) != 3:
        raise GaitError("`leg.joints` must be three names, base to foot")
    signs = _axis_signs(tree["leg"]["axes"])
    chain = {key: numbers(f"leg.offsets.{key}") for key in _LINKS}
    for key in ("thigh", "calf"):
        if not np.linalg.norm(chain[key]) > 0.0:
            raise GaitError(f"`leg.offsets.{key}` must not be zero: give where the {key} ends")
    quat = numbers("imu.quat_wxyz", 4)
    if abs(np.linalg.norm(quat) - 1.0) > 1e-6:
        raise GaitError("imu.quat_wxyz must have length 1")
    links = tree["links"]
    leg_links = [[_merge(links[key], hip, f"links.{key}") for key in _LINKS] for hip in hips]
    return Robot(
        name=named(tree["name"]),
        base_link=named(tree["base_link"]),
        leg_names=names,
        joint_names=tuple(f"{name}_{named(label)}_joint" for name in names for label in labels),
        offsets=np.array([[hip, *(vector * _signs(hip, ("y",)) for vector in chain.values())] for hip in hips]),
        signs=np.tile(signs, (len(names), 1)),
        foot_radius=_positive(tree["leg"]["foot_radius"], "leg.foot_radius", zero=True),
        base=_merge(links["base"], np.zeros(3), "links.base"),
        links=tuple((hip, thigh, calf) for hip, thigh, calf in leg_links),
        **{_JOINTS[key]: np.tile(value, len(names)) for key, value in per_leg.items()},
        imu_position=numbers("imu.position"),
        imu_quat_wxyz=quat,
        shapes=Shapes(numbers("shapes.base"), *(_positive(tree["shapes"][key], f"shapes.{key}") for key in _RADII)),
    )


def _at(tree: Any, path: str) -> Any:
    """What stands in a description at a path such as `leg.offsets`."""
    for key in path.split(".") if path else ():
        tree = tree[key]
    return tree


def _section(value: object, path: str, allowed: Sequence[str] = (), optional: Sequence[str] = ()) -> Mapping[str, Any]:
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


def _numbers(value: object, count: int, path: str) -> Array:
    flat = value if isinstance(value, list | tuple | np.ndarray) and len(value) == count else ()
    try:
        # Item by item: a list may hold lists in lists.
        array = np.array([float(one) for one in flat])
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"`{path}` must be {count} numbers, got {shown(value)}")
    return array


def _positive(value: object, path: str, zero: bool = False) -> float:
    number = float(_numbers([value], 1, path)[0])
    if number < 0.0 or (number == 0.0 and not zero):
        raise GaitError(f"`{path}` must be positive, got {shown(value)}")
    return number


def _axis_signs(value: object) -> Array:
    axes = [named(axis) for axis in value] if isinstance(value, Sequence) else []
    if [axis.removeprefix("-") for axis in axes] != ["x", "y", "y"]:
        raise GaitError("`leg.axes` must be [x, y, y], with a minus sign where a joint turns backwards")
    return np.array([-1.0 if axis.startswith("-") else 1.0 for axis in axes])


def _signs(hip: Array, axes: Sequence[str]) -> Array:
    """What mirrors a vector (3,): x for rear legs and y for right legs, where `axes` asks for it."""
    return np.array([-1.0 if axis in axes and hip[i] < 0 else 1.0 for i, axis in enumerate("xyz")])


def _merge(parts: object, hip: Array, path: str) -> Link:
    """One rigid link from its parts (parallel axes)."""
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise GaitError(f"`{path}` must be a list of parts, each with mass, com and inertia")
    links = []
    for part in parts:
        entry = _section(part, "part", _PART, optional=("mirror",))
        signs = _signs(hip, entry.get("mirror", ()))
        xx, yy, zz, xy, xz, yz = _numbers(entry["inertia"], 6, f"{path}.inertia")
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) * np.outer(signs, signs)
        com = signs * _numbers(entry["com"], 3, f"{path}.com")
        links.append(Link(_positive(entry["mass"], f"{path}.mass"), com, inertia))
    return combined(links)
