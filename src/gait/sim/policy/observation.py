"""What a policy reads and what its actions mean: the YAML file beside an ONNX file, and ONNX metadata in its terms."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from gait.errors import GaitError, located, os_errors

PerJoint: TypeAlias = float | tuple[float, ...] | Mapping[str, float]
"""A value of every joint: one number for all, one for each in the order of `joints`, or by name or pattern."""
ALIASES = {
    "base_lin_vel": "base_velocity", "base_ang_vel": "gyro", "velocity_commands": "command", "commands": "command",
    "generated_commands": "command", "twist": "command", "joint_pos": "joint_positions",
    "joint_pos_rel": "joint_positions", "dof_pos": "joint_positions", "joint_vel": "joint_velocities",
    "joint_vel_rel": "joint_velocities", "dof_vel": "joint_velocities", "actions": "last_action",
    "action": "last_action", "gait_phase": "phase",
}  # fmt: skip
"""Names that mjlab, Isaac Lab and legged_gym have for the terms."""
TERMS = (
    "base_velocity", "gyro", "projected_gravity", "command", "joint_positions", "joint_velocities", "last_action",
    "phase",
)  # fmt: skip
"""What an observation can be made of."""


@dataclass(frozen=True)
class Term:
    """A part of the observation."""

    term: str
    """One of `TERMS`, or what mjlab, Isaac Lab and legged_gym call it."""
    scale: float | tuple[float, ...] = 1.0
    """What the values are multiplied by: one number, or one for each value."""
    history: int = 1
    """How many control steps of it are read, the present one included."""
    at: str = "base"
    """For base_velocity, gyro and projected_gravity: the point and the axes, `base` for the base link's origin or `imu`
    for the IMU. The velocity at the IMU is that of the base plus omega x p_bi."""
    relative: bool = True
    """For joint_positions: relative to the pose."""
    frequency: float = 0.0
    """For phase: cycles a second."""
    offsets: tuple[float, ...] = (0.0,)
    """For phase: the angles at the start, rad. The values are all cosines, then all sines."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "term", ALIASES.get(self.term, self.term))
        if self.term not in TERMS:
            raise GaitError(f"unknown term '{self.term}': the terms are {', '.join(TERMS)}")
        if self.at not in ("base", "imu"):
            raise GaitError(f"`at` of the term {self.term} must be base or imu, got {self.at!r}")
        if self.history < 1:
            raise GaitError(f"`history` of the term {self.term} must be 1 or more, got {self.history}")
        if self.term == "phase" and not self.frequency > 0.0:
            raise GaitError("the term phase needs its `frequency`, in cycles a second")

    def width(self, joints: int) -> int:
        """How many numbers one control step of it has, for a policy of so many joints."""
        if self.term == "phase":
            return 2 * len(self.offsets)
        return joints if self.term in ("joint_positions", "joint_velocities", "last_action") else 3


@dataclass(frozen=True)
class PolicyConfig:
    """A policy: what it reads, what its actions mean, and the robot it drives. What is left out comes from the ONNX
    file's metadata, then from the scene."""

    terms: tuple[Term, ...] = ()
    """The observation, in order."""
    joints: tuple[str, ...] = ()
    """Names of the joints in the order of the policy."""
    pose: str | PerJoint | None = None
    """Joint angles of action zero, rad: the name of a key of the scene, or values."""
    action_scale: PerJoint | None = None
    """Radians of joint target for an action of 1: target = pose + action_scale * action."""
    rate: int | None = None
    """Control steps a second."""
    kp: PerJoint | None = None
    """Position gains of the drives, N m/rad; by default those of the scene's position actuators."""
    kd: PerJoint | None = None
    """Velocity gains, N m s/rad; by default those of the scene: of its actuators or, where these have none, its joint
    damping."""
    torque_limit: PerJoint | None = None
    """N m; by default the scene's."""
    imu: str | None = None
    """Site or body that carries the IMU, fixed to the base."""
    feet: Mapping[str, str] = field(default_factory=dict)
    """The geom, or body, that is the foot of each leg."""
    robot: str | None = None
    """Robot that gait knows the scene's by: joints and legs of a Log are in its order. By default the Log has the
    scene's names."""
    model: str | None = None
    """The scene: a path relative to this file, or `package:path` for a file of an installed Python package."""
    history: int = 1
    """How many control steps of the whole observation are read, after the history of its terms."""
    newest_first: bool = False
    """Whether histories begin with the present; otherwise with the oldest."""
    observation_clip: float | None = None
    """Largest absolute value in the observation."""
    action_clip: float | None = None
    """Largest absolute value of an action."""
    commands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ranges of `vx`, `vy` (m/s) and `yaw_rate` (rad/s) that commands are drawn from."""

    def __post_init__(self) -> None:
        for name in self.commands:
            if name not in ("vx", "vy", "yaw_rate"):
                raise GaitError(f"unknown key '{name}' in `commands`; the keys there are vx, vy, yaw_rate")
        for name, least in (("rate", 1), ("history", 1), ("observation_clip", 0.0), ("action_clip", 0.0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise GaitError(f"`{name}` must be {least} or more, got {value}")

    def over(self, other: PolicyConfig) -> PolicyConfig:
        """This one, and `other` for what it leaves out."""
        empty = PolicyConfig()
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(other, **{name: value for name, value in own.items() if value != getattr(empty, name)})


def read_policy_config(path: Path) -> PolicyConfig:
    """The YAML file of a policy; unknown keys and values of the wrong kind are errors that name them."""
    with located(path):
        try:
            with os_errors("cannot read it"):
                tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, yaml.YAMLError):
            raise GaitError("this is not valid YAML: correct its syntax") from None
        config: PolicyConfig = _made(PolicyConfig, tree, "the file")
        return config


def policy_config_of_metadata(metadata: Mapping[str, str]) -> PolicyConfig:
    """What the metadata of an ONNX file say, with the keys of mjlab's exporter and its relatives for Isaac Lab."""
    known = {
        "joint_names": "joints", "default_joint_pos": "pose", "action_scale": "action_scale",
        "joint_stiffness": "kp", "joint_damping": "kd", "observation_names": "terms",
    }  # fmt: skip
    found: dict[str, Any] = {}
    for key, name in known.items():
        entries = [entry.strip(" '\"[]()") for entry in metadata.get(key, "").split(",")]
        entries = [entry for entry in entries if entry]
        if not entries:
            continue
        with located(f"`{key}` in the metadata of the policy"):
            if key == "observation_names":
                found[name] = tuple(Term(entry) for entry in entries)
            elif key == "joint_names":
                # Names may carry the entity they belong to.
                found[name] = tuple(entry.rsplit("/", 1)[-1] for entry in entries)
            else:
                found[name] = _numbers(entries)
    return PolicyConfig(**found)


def per_joint(value: PerJoint, joints: Sequence[str], name: str) -> list[float]:
    """A value of each of the joints."""
    if isinstance(value, Mapping):
        found = []
        for joint in joints:
            matching = [number for pattern, number in value.items() if re.fullmatch(pattern, joint)]
            if len(matching) != 1:
                what = "no" if not matching else "more than one"
                raise GaitError(f"`{name}` has {what} entry for the joint {joint}: give it one")
            found.append(float(matching[0]))
        return found
    if isinstance(value, tuple):
        if len(value) != len(joints):
            raise GaitError(f"`{name}` has {len(value)} values, but there are {len(joints)} joints: give one for each")
        return [float(number) for number in value]
    return [float(value)] * len(joints)


def _numbers(entries: Sequence[str]) -> Any:
    try:
        numbers = tuple(float(entry) for entry in entries)
    except ValueError:
        raise GaitError(f"these are no numbers: {', '.join(entries)}") from None
    return numbers[0] if len(numbers) == 1 else numbers


def _made(kind: type[Any], tree: object, place: str) -> Any:
    """A dataclass from a mapping with some of its keys."""
    hints = typing.get_type_hints(kind)
    if not isinstance(tree, Mapping):
        raise GaitError(f"{place} must be a mapping with some of the keys {', '.join(hints)}")
    for key in tree:
        if key not in hints:
            raise GaitError(f"unknown key '{key}' in {place}; the keys there are {', '.join(hints)}")
    return kind(**{key: _converted(key, value, hints[key]) for key, value in tree.items()})


def _converted(key: str, value: object, hint: Any) -> Any:
    if key == "terms":
        entries = value if isinstance(value, list) else []
        if not entries:
            raise GaitError("`terms` must be a list of terms, in the order of the observation")
        terms = [{"term": entry} if isinstance(entry, str) else entry for entry in entries]
        return tuple(_made(Term, term, f"entry {i + 1} of `terms`") for i, term in enumerate(terms))
    if key == "feet" and isinstance(value, list):
        value = {str(name): str(name) for name in value}
    if isinstance(value, list):
        value = tuple(value)
    elif isinstance(value, dict):
        value = {str(k): tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    if not _fits(value, hint):
        raise GaitError(f"`{key}` must be {_words(hint)}, got {value!r}")
    return float(value) if hint is float and isinstance(value, int) else value


def _fits(value: object, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        same = inner[-1] is Ellipsis
        right = isinstance(value, tuple) and (same or len(value) == len(inner))
        return right and all(_fits(entry, inner[0]) for entry in typing.cast("tuple[Any, ...]", value))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(entry, inner[1]) for entry in value.values())
    if inner:
        return any(_fits(value, choice) for choice in inner)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is hint


def _words(hint: Any) -> str:
    names = {"float": "a number", "int": "a whole number", "str": "a name", "bool": "true or false"}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return "a list of " + _words(inner[0]).removeprefix("a ") + "s"
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping of names"
    if inner:
        return " or ".join(dict.fromkeys(_words(choice) for choice in inner if choice is not type(None)))
    return names.get(str(hint.__name__), str(hint.__name__))
