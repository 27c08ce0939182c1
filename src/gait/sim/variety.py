"""Robots drawn at random: what is common to four-legged robots stays, sizes and masses change.

A network that shall work on any robot must not learn one robot's lengths. `Variant` is what was drawn, `varied` makes
the description of such a robot from that of another one, in the terms of its YAML file. Torques, gains and friction go
along with mass and length, so that every one of them can walk.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gait import robot as robots
from gait.arrays import Array
from gait.documents import load_yaml
from gait.errors import located
from gait.robot import Robot
from gait.sim.kernels import forward
from gait.sim.proportions import Proportions


@dataclass(frozen=True)
class Variant:
    """How a robot differs from the one it was made from; every number is a factor."""

    name: str
    """Name of the new robot."""
    hip: float = 1.0
    """Length of the link from hip to thigh."""
    thigh: float = 1.0
    """Length."""
    calf: float = 1.0
    """Length."""
    base: tuple[float, float] = (1.0, 1.0)
    """Places of the hips along x and y."""
    base_mass: float = 1.0
    """Mass of the base."""
    leg_mass: float = 1.0
    """Mass of every link of the legs."""
    foot: float = 1.0
    """Radius of the feet."""
    strength: float = 1.0
    """Torque limits, beyond what mass and length ask for."""


def draw_variant(rng: np.random.Generator, name: str) -> Variant:
    """Draw a robot that can walk."""
    leg, uneven = rng.uniform(0.7, 1.4), rng.uniform(0.88, 1.12, 2)
    base = rng.uniform(0.75, 1.35, 2)
    # A mass grows a little slower than a volume: small robots are denser. The base is about as high as legs are long.
    size = float(leg * base[0] * base[1]) ** (2.5 / 3.0)
    return Variant(
        name=name,
        hip=round(rng.uniform(0.7, 1.4), 4),
        thigh=round(leg * uneven[0], 4),
        calf=round(leg * uneven[1], 4),
        base=(round(base[0], 4), round(base[1], 4)),
        base_mass=round(size * rng.uniform(0.75, 1.4), 4),
        leg_mass=round(leg**2.5 * rng.uniform(0.8, 1.25), 4),
        foot=round(rng.uniform(0.6, 1.6), 4),
        strength=round(rng.uniform(1.0, 1.4), 4),
    )


def varied(tree: Mapping[str, Any], variant: Variant) -> dict[str, Any]:
    """The description of a variant, as a YAML file holds it, from the description it is a variant of."""
    new, old = copy.deepcopy(dict(tree)), Robot.of(tree, "the robot to vary")
    leg = 0.5 * (variant.thigh + variant.calf)
    base = np.array([*variant.base, leg])
    new["name"] = variant.name
    new["leg"]["offsets"] = {key: _scaled(at, getattr(variant, key)) for key, at in tree["leg"]["offsets"].items()}
    new["leg"]["foot_radius"] = _scaled(tree["leg"]["foot_radius"], variant.foot)
    new["legs"] = {name: _scaled(hip, base) for name, hip in tree["legs"].items()}
    sizes = {
        "base": (base, variant.base_mass),
        "hip": (np.array([leg, variant.hip, leg]), variant.leg_mass),
        "thigh": (np.array([leg, leg, variant.thigh]), variant.leg_mass),
        "calf": (np.array([leg, leg, variant.calf]), variant.leg_mass),
    }
    new["links"] = {link: [_part(part, *sizes[link]) for part in parts] for link, parts in tree["links"].items()}
    new["imu"]["position"] = _scaled(tree["imu"]["position"], base)
    shapes = tree["shapes"]
    new["shapes"] = {name: _scaled(size, leg) for name, size in shapes.items() if name != "base"}
    new["shapes"]["base"] = _scaled(shapes["base"], base)
    made = Robot.of(new, variant.name)
    is_now, was = Proportions.of(made), Proportions.of(old)
    grown = Proportions(is_now.length / was.length, is_now.mass / was.mass)
    for key, factor in (
        ("torque", grown.stiffness * variant.strength),
        ("velocity", 1.0 / grown.time),
        ("friction", grown.stiffness),
        ("damping", grown.damping),
        ("armature", grown.inertia),
        ("kp", grown.stiffness),
        ("kd", grown.damping),
    ):
        new["joints"][key] = _scaled(tree["joints"][key], factor)
    new["joints"]["stand"] = _scaled(_stand(old, made))
    return new


def _stand(old: Robot, new: Robot) -> Array:
    """Angles of a leg that put the foot where the old robot has it, in proportion."""
    hip_to_foot = forward(old, old.q_stand)[0][0] - old.offsets[0, 0] - old.offsets[0, 1]
    scale = np.linalg.norm(new.offsets[0, 2:], axis=1).sum() / np.linalg.norm(old.offsets[0, 2:], axis=1).sum()
    q = new.inverse(new.leg_names[0], new.offsets[0, 0] + new.offsets[0, 1] + scale * hip_to_foot)
    return np.clip(q, new.q_lower[:3], new.q_upper[:3])


def _part(part: Mapping[str, Any], size: Array, mass: float) -> dict[str, Any]:
    """A rigid part, stretched along its axes by `size` (3,) and of another mass."""
    xx, yy, zz, xy, xz, yz = part["inertia"]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # Second moments stretch with the part; an inertia is made of them.
    moments = (0.5 * np.trace(inertia) * np.eye(3) - inertia) * (mass * np.outer(size, size))
    stretched = np.trace(moments) * np.eye(3) - moments
    rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    return {
        **part,
        "mass": _scaled(part["mass"], mass),
        "com": _scaled(part["com"], size),
        "inertia": _scaled(stretched[rows, columns]),
    }


def _scaled(value: Any, factor: Any = 1.0) -> Any:
    """A number or a list of them times a factor, as a file shows it: what is written is what is simulated."""
    scaled = np.asarray(value) * factor
    return [_scaled(entry) for entry in scaled] if scaled.ndim else float(f"{scaled:.6g}")


def description(name_or_path: str) -> dict[str, Any]:
    """Contents of a robot's YAML file."""
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = Path(robots.__file__).with_name(f"{name_or_path}.yaml")
    Robot.load(name_or_path)  # says what is wrong with a file
    tree: dict[str, Any] = load_yaml(path.read_text(encoding="utf-8"))
    return tree


def description_text(tree: Mapping[str, Any], comment: str) -> str:
    """The text of a YAML file with this description, below a comment."""
    return f"# {comment}\n" + yaml.safe_dump(dict(tree), sort_keys=False, default_flow_style=None, width=120)


@lru_cache(maxsize=8)
def variant_of(name_or_path: str, variant: Variant) -> Robot:
    """The variant of a robot. Shared: its arrays must not be changed."""
    with located(f"cannot vary the robot {name_or_path}"):
        return Robot.of(varied(description(name_or_path), variant), variant.name)
