"""Robot: what the rest of the package knows about a machine, read from one YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gait.arrays import Array
from gait.errors import GaitError
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
    "leg.offsets": _LINKS,
    "links": ("base", *_LINKS),
    "joints": tuple(_JOINTS),
    "imu": ("position", "quat_wxyz"),
    "shapes": ("base", *_RADII),
    "part": ("mass", "com", "inertia", "mirror"),
}


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
            if not path.is_file():
                raise GaitError(
                    f"unknown robot '{name_or_path}': choose one of {', '.join(robot_names())}"
                    " or give the path of a YAML file"
                )
        try:
            tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            raise GaitError(f"cannot read robot file {path}: {reason}") from None
        except yaml.YAMLError as error:
            where = getattr(error, "problem_mark", None)
            line = f" at line {where.line + 1}" if where else ""
            raise GaitError(f"robot file {path} is not valid YAML{line}: correct its syntax") from None
        return _parse(tree, str(path))

    @staticmethod
    def of(tree: object, source: str) -> Robot:
        """The robot of a description that is at hand already, as a YAML file would hold it.

        Args:
            tree: the description.
            source: where it comes from, for messages.
        """
        return _parse(tree, source)

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


def _parse(tree: object, source: str) -> Robot:
    root = _section(tree, "", source)
    leg, joints, links, imu, shapes = (
        _section(root[key], key, source) for key in ("leg", "joints", "links", "imu", "shapes")
    )
    shifts = _section(leg["offsets"], "leg.offsets", source)
    if not isinstance(root["legs"], Mapping) or not root["legs"]:
        raise GaitError(f"{source}: `legs` must map each leg's name to its hip position [x, y, z]")
    names = tuple(str(name) for name in root["legs"])
    hips = [_numbers(hip, 3, f"legs.{name}", source) for name, hip in root["legs"].items()]
    per_leg = {key: _numbers(joints[key], 3, f"joints.{key}", source) for key in _SCHEMA["joints"]}
    if not (per_leg["lower"] < per_leg["upper"]).all():
        raise GaitError(f"{source}: every joints.lower must be below its joints.upper")
    if not ((per_leg["lower"] <= per_leg["stand"]) & (per_leg["stand"] <= per_leg["upper"])).all():
        raise GaitError(f"{source}: `joints.stand` must lie between joints.lower and joints.upper")
    joint_labels = _joint_labels(leg["joints"], source)
    signs = _axis_signs(leg["axes"], source)
    chain = [_numbers(shifts[key], 3, f"leg.offsets.{key}", source) for key in _LINKS]
    offsets = np.array([[hip, *(_mirror(vector, hip, ("y",)) for vector in chain)] for hip in hips])
    for key, vector in zip(_LINKS, chain, strict=True):
        if key != "hip" and not np.linalg.norm(vector) > 0.0:
            raise GaitError(f"{source}: `leg.offsets.{key}` must not be zero: give where the {key} ends")
    quat = _numbers(imu["quat_wxyz"], 4, "imu.quat_wxyz", source)
    if abs(np.linalg.norm(quat) - 1.0) > 1e-6:
        raise GaitError(f"{source}: imu.quat_wxyz must have length 1")
    joint_arrays = {_JOINTS[key]: np.tile(value, len(names)) for key, value in per_leg.items()}
    leg_links = [[_merge(links[key], hip, f"links.{key}", source) for key in _LINKS] for hip in hips]
    return Robot(
        name=str(root["name"]),
        base_link=str(root["base_link"]),
        leg_names=names,
        joint_names=tuple(f"{name}_{joint}_joint" for name in names for joint in joint_labels),
        offsets=offsets,
        signs=np.tile(signs, (len(names), 1)),
        foot_radius=_positive(leg["foot_radius"], "leg.foot_radius", source, zero=True),
        base=_merge(links["base"], np.zeros(3), "links.base", source),
        links=tuple((hip, thigh, calf) for hip, thigh, calf in leg_links),
        **joint_arrays,
        imu_position=_numbers(imu["position"], 3, "imu.position", source),
        imu_quat_wxyz=quat,
        shapes=Shapes(
            base=_numbers(shapes["base"], 3, "shapes.base", source),
            **{name: _positive(shapes[name], f"shapes.{name}", source) for name in _RADII},
        ),
    )


def _section(value: object, path: str, source: str, optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """A mapping with exactly the keys of the schema: unknown or missing ones are an error."""
    allowed = _SCHEMA[path]
    place = f"`{path}`" if path else "the file"
    if not isinstance(value, Mapping):
        raise GaitError(f"{source}: {place} must be a mapping with the keys {', '.join(allowed)}")
    unknown = [str(key) for key in value if key not in allowed]
    if unknown:
        raise GaitError(f"{source}: unknown key '{unknown[0]}' in {place}; the keys there are {', '.join(allowed)}")
    missing = [key for key in allowed if key not in value and key not in optional]
    if missing:
        raise GaitError(f"{source}: {place} lacks the key '{missing[0]}'")
    return value


def _numbers(value: object, count: int, path: str, source: str) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise GaitError(f"{source}: `{path}` must be {count} numbers, got {value!r}")
    return array


def _positive(value: object, path: str, source: str, zero: bool = False) -> float:
    number = float(_numbers([value], 1, path, source)[0])
    if number < 0.0 or (number == 0.0 and not zero):
        raise GaitError(f"{source}: `{path}` must be positive, got {value!r}")
    return number


def _joint_labels(value: object, source: str) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 3:
        raise GaitError(f"{source}: `leg.joints` must be three names, base to foot")
    return [str(label) for label in value]


def _axis_signs(value: object, source: str) -> Array:
    axes = [str(axis) for axis in value] if isinstance(value, Sequence) else []
    if [axis.removeprefix("-") for axis in axes] != ["x", "y", "y"]:
        raise GaitError(f"{source}: `leg.axes` must be [x, y, y], with a minus sign where a joint turns backwards")
    return np.array([-1.0 if axis.startswith("-") else 1.0 for axis in axes])


def _mirror(vector: Array, hip: Array, axes: Sequence[str]) -> Array:
    """Flip x for rear legs and y for right legs, where `axes` asks for it."""
    flip = np.array([-1.0 if "x" in axes and hip[0] < 0 else 1.0, -1.0 if "y" in axes and hip[1] < 0 else 1.0, 1.0])
    mirrored: Array = vector * flip
    return mirrored


def _merge(parts: object, hip: Array, path: str, source: str) -> Link:
    """One rigid link from its parts (parallel axes)."""
    if not isinstance(parts, Sequence) or isinstance(parts, str) or not parts:
        raise GaitError(f"{source}: `{path}` must be a list of parts, each with mass, com and inertia")
    links = []
    for part in parts:
        entry = _section(part, "part", source, optional=("mirror",))
        axes = entry.get("mirror", ())
        xx, yy, zz, xy, xz, yz = _numbers(entry["inertia"], 6, f"{path}.inertia", source)
        flip = np.diag(_mirror(np.ones(3), hip, axes))
        links.append(
            Link(
                mass=_positive(entry["mass"], f"{path}.mass", source),
                com=_mirror(_numbers(entry["com"], 3, f"{path}.com", source), hip, axes),
                inertia=flip @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ flip,
            )
        )
    return combined(links)
