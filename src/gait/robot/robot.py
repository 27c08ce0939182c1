"""Robot: what the rest of the package knows about a machine, read from its YAML, URDF or MJCF file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import yaml

from gait.arrays import Array
from gait.documents import load_yaml
from gait.errors import GaitError, located
from gait.robot import kinematics
from gait.robot.serial_chain import Chain, Link

_HERE = Path(__file__).parent
YAML, MODELS = (".yaml", ".yml"), (".urdf", ".xml", ".mjcf", ".xacro")
"""Endings of robot files: descriptions of our own, and models that are imported."""
_XYY = np.eye(3)[[0, 1, 1]]


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
    """A legged robot: base_link with an IMU, and legs of any joints.

    Arrays over joints are leg by leg in the order of `leg_names`; `joint_names` spells that order out.
    """

    name: str
    base_link: str
    legs: tuple[Chain, ...]
    """As described; `chains` has the zeros of the encoders in it."""
    base: Link
    """Everything that is not part of a leg."""
    q_lower: Array
    q_upper: Array
    torque_limit: Array
    velocity_limit: Array
    damping: Array
    friction: Array
    kp: Array
    kd: Array
    q_stand: Array
    imu_position: Array
    imu_quat_wxyz: Array
    shapes: Shapes
    zeros: Array = field(default_factory=lambda: np.zeros(0))
    """What each encoder reads where its joint is at the zero of the description (J,), rad; 0 by default."""
    source: str = ""
    """Where the figures come from."""
    joint_delay: float | None = None
    """Seconds by which joints are read later than the IMU, in place of the default of `gait.Options`."""

    def __post_init__(self) -> None:
        """Fill in the defaults."""
        if len(self.zeros) != self.num_joints:
            object.__setattr__(self, "zeros", np.zeros(self.num_joints))

    @staticmethod
    def load(name_or_path: str | Path, *, feet: str = "", base: str = "", imu: str = "", rpy: str = "") -> Robot:
        """Load a robot that ships with the package by name, or any robot by the path of its YAML, URDF or MJCF file.

        Args:
            name_or_path: `go1`, `unitree_go1`, `my.yaml`, `g1.urdf`, `scene.xml`.
            feet: of a URDF or MJCF, links or sites of the feet, separated by commas; found by default.
            base: of a URDF or MJCF, the link to estimate; the one that carries the IMU by default.
            imu: of a URDF or MJCF, link or site of the IMU; found by default.
            rpy: of a URDF or MJCF, roll, pitch and yaw in degrees of the axes to estimate in those of the link.
        """
        path = Path(name_or_path)
        if path.suffix.lower() in MODELS:
            from gait.robot.leg_detection import import_model

            return import_model(path, feet=feet, base=base, imu=imu, rpy=rpy)
        if path.suffix not in YAML:
            path = _HERE / f"{shipped_name(str(name_or_path))}.yaml"
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
        from gait.robot.description import parse

        with located(source):
            return parse(tree)

    @property
    def leg_names(self) -> tuple[str, ...]:
        """Of all legs, in order."""
        return tuple(leg.name for leg in self.legs)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Leg by leg, base to foot. A joint that two legs share stands with both."""
        return tuple(name for leg in self.legs for name in leg.joint_names)

    @cached_property
    def encoder_names(self) -> tuple[str, ...]:
        """The joints, each once: what a log has, and the order in which an estimator takes them."""
        return tuple(dict.fromkeys(self.joint_names))

    def expanded(self, values: Array) -> Array:
        """Numbers of the encoders (..., E) leg by leg (..., J), those of joints that legs share with each of them."""
        if len(self.encoder_names) == self.num_joints or values.shape[-1:] != (len(self.encoder_names),):
            return values
        return np.asarray(values[..., [self.encoder_names.index(name) for name in self.joint_names]])

    @property
    def num_legs(self) -> int:
        """How many legs the robot has."""
        return len(self.legs)

    @property
    def num_joints(self) -> int:
        """How many joints the robot has."""
        return len(self.joint_names)

    @property
    def mass(self) -> float:
        """Total mass in kg."""
        return self.base.mass + sum(float(leg.mass.sum()) for leg in self.legs)

    @property
    def links(self) -> tuple[tuple[Link, ...], ...]:
        """The links of each leg, base to foot."""
        return tuple(tuple(map(Link, leg.mass, leg.com, leg.inertia)) for leg in self.legs)

    @property
    def armature(self) -> Array:
        """Rotor inertia as each joint feels it (J,), kg m^2."""
        return np.concatenate([leg.armature for leg in self.legs])

    @property
    def foot_radius(self) -> float:
        """Of the feet, m."""
        return max(leg.foot.radius for leg in self.legs)

    @property
    def leg_start(self) -> Array:
        """First joint of each leg, and the number of joints (L + 1,)."""
        return np.cumsum([0, *(leg.num_joints for leg in self.legs)])

    @property
    def leg_length(self) -> float:
        """Of the longest leg from its hip to its foot, m."""
        return max(leg.length for leg in self.legs)

    @property
    def hips_b(self) -> Array:
        """Where the legs begin, in base_link (L, 3)."""
        return np.array([leg.hip_b for leg in self.legs])

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The legs with the zeros of their encoders in them: these are the ones that take a log's joint angles."""
        zeros, all_names = np.split(self.zeros, self.leg_start[1:-1]), self.joint_names
        return tuple(
            replace(
                leg,
                shift=leg.shift - leg.ratio * zero[leg.source],
                shared=sum(all_names.count(name) > 1 for name in leg.joint_names),
            )
            for leg, zero in zip(self.legs, zeros, strict=True)
        )

    @property
    def has_plain_legs(self) -> bool:
        """Whether all legs have an abduction joint about x and two joints about y: what the closed forms cover."""
        return all(
            leg.num_joints == len(leg.axes) == 3
            and not leg.slides.any()
            and np.allclose(np.abs(leg.axes), _XYY, atol=1e-6)
            for leg in self.legs
        )

    def _plain_legs(self) -> tuple[Chain, ...]:
        if not self.has_plain_legs:
            raise GaitError(
                f"the legs of {self.name} are not an abduction joint about x and two joints about y, which simulated"
                " walking and inverse kinematics need: walk it with a policy (`gait sim --policy FILE --model SCENE`)"
            )
        return self.legs

    @property
    def offsets(self) -> Array:
        """Base to hip, hip to thigh, thigh to calf, calf to foot centre (L, 4, 3), of legs about x, y and y."""
        return np.array([leg.offsets for leg in self._plain_legs()])

    @property
    def signs(self) -> Array:
        """+1 or -1, the direction of each joint about its axis (L, 3), of legs about x, y and y."""
        return np.array([np.sign((leg.axes * _XYY).sum(axis=1)) for leg in self._plain_legs()])

    def with_links(self, scale: Sequence[Array], foot_radius: float = 1.0) -> Robot:
        """The same robot with links of other lengths and feet of another radius.

        Args:
            scale: of the links of each leg (S, 1).
            foot_radius: factor.
        """
        legs = [
            replace(
                leg,
                offsets=np.vstack([leg.offsets[:1], leg.offsets[1:] * own]),
                foot=replace(leg.foot, radius=leg.foot.radius * foot_radius),
            )
            for leg, own in zip(self.legs, scale, strict=True)
        ]
        return replace(self, legs=tuple(legs))

    @property
    def knee_signs(self) -> Array:
        """Sign of each calf angle in the middle of its range, or in stance: which way the knees bend (L,)."""
        middle = self.q_lower[2::3] + self.q_upper[2::3]
        return np.asarray(np.sign(np.where(np.abs(middle) > 1e-3, middle, self.q_stand[2::3])))

    @property
    def leg_inertial(self) -> Array:
        """Mass, centre of mass and inertia [xx, yy, zz, xy, xz, yz] of each leg link (L, 3, 10)."""
        return np.array([inertial_rows(leg) for leg in self._plain_legs()])

    def forward(self, q: Array) -> tuple[Array, Array]:
        """Foot positions (..., L, 3) and Jacobians (..., L, 3, K) in the base frame for joints (..., J).

        K is the largest number of joints of a leg; columns of legs with fewer are zero.
        """
        most = max(leg.num_joints for leg in self.legs)
        feet, jacobians = [], []
        for chain, own in zip(self.chains, self.by_leg(q), strict=True):
            jacobian = chain.jacobians(own)[0]
            feet.append(chain.link_poses(own)[1][..., -1, :])
            room = [(0, 0)] * (jacobian.ndim - 1) + [(0, most - chain.num_joints)]
            jacobians.append(np.pad(jacobian, room))
        return np.stack(feet, -2), np.stack(jacobians, -3)

    def by_leg(self, values: Array) -> list[Array]:
        """Numbers of all joints (..., J), leg by leg."""
        values = self.expanded(np.asarray(values, dtype=np.float64))
        if values.shape[-1:] != (self.num_joints,):
            raise GaitError(
                f"joint array of shape {values.shape} does not fit {self.name}: its last axis must be {self.num_joints}"
            )
        return np.split(values, self.leg_start[1:-1], axis=-1)

    def feet(self, q: Array) -> Array:
        """Foot positions (..., L, 3) in the base frame."""
        return self.forward(q)[0]

    def jacobian(self, q: Array) -> Array:
        """Leg Jacobians (..., L, 3, K): foot velocity in the base frame = J dq."""
        return self.forward(q)[1]

    def skeleton(self, q: Array) -> list[Array]:
        """Joints and foot of each leg in the base frame, L of (..., S + 1, 3), of joints (..., J)."""
        return [chain.link_poses(own)[1] for chain, own in zip(self.chains, self.by_leg(q), strict=True)]

    def corners(self, q: Array) -> list[Array]:
        """Contact points of each foot in the base frame, L of (..., C, 3): its corners, or its centre."""
        out = []
        for chain, own in zip(self.chains, self.by_leg(q), strict=True):
            rotations, points, _ = chain.link_poses(own)
            corners = chain.foot.corners if chain.foot.is_flat else np.zeros((1, 3))
            out.append(points[..., -1:, :] + corners @ np.swapaxes(rotations[..., -1, :, :], -1, -2))
        return out

    def foot_velocity(self, q: Array, dq: Array, gyro: Array) -> Array:
        """J dq + w x p for each foot (..., L, 3); a foot at rest measures the base velocity as minus this."""
        feet, _ = self.forward(q)
        pairs = zip(self.chains, self.by_leg(q), self.by_leg(dq), strict=True)
        moved = [np.einsum("...ij,...j->...i", chain.jacobians(own)[0], rate) for chain, own, rate in pairs]
        velocity: Array = np.stack(moved, -2) + np.cross(np.asarray(gyro, dtype=np.float64)[..., None, :], feet)
        return velocity

    def inverse(self, leg: str, foot_b: Array) -> Array:
        """Joint angles (3,) of one leg about x, y and y that put its foot at `foot_b` (3,) in the base frame."""
        foot = np.array(foot_b, dtype=np.float64)
        if foot.shape != (3,) or not np.isfinite(foot).all():
            raise GaitError(f"foot_b must be three finite numbers, got {foot_b!r}")
        index = self.leg_index(leg)
        *q, within = kinematics.leg_inverse(self.offsets[index], self.signs[index], float(self.knee_signs[index]), foot)
        if not within:
            raise GaitError(f"foot position {foot.tolist()} is out of reach of leg {leg}: move it nearer to the hip")
        return np.array(q)

    def leg_index(self, leg: str) -> int:
        """Position of a leg by name."""
        if leg not in self.leg_names:
            raise GaitError(f"robot {self.name} has no leg '{leg}': its legs are {', '.join(self.leg_names)}")
        return self.leg_names.index(leg)


def inertial_rows(leg: Chain) -> Array:
    """Mass, centre of mass and inertia [xx, yy, zz, xy, xz, yz] of each link (S, 10)."""
    rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    return np.concatenate([leg.mass[:, None], leg.com, leg.inertia[:, rows, columns]], axis=1)


def robot_names() -> list[str]:
    """Names of the robots that ship with the package."""
    return sorted(path.stem for path in _HERE.glob("*.yaml"))


def shipped_name(name: str) -> str:
    """The shipped robot that a name means, as `Go1` and `unitree_go1` mean go1."""
    # Not by looking for the file: a name may come from another one, and hold anything.
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    by_plain = {known.replace("_", ""): known for known in robot_names()}
    bare = re.sub(r"^(unitree|anybotics|bostondynamics|booster|mit)|(description|robot|mjx)$", "", plain)
    for key in (plain, bare):
        if key in by_plain:
            return by_plain[key]
    raise GaitError(
        f"unknown robot '{name}': choose one of {', '.join(robot_names())} or give the path of a YAML, URDF or MJCF"
        " file"
    )
