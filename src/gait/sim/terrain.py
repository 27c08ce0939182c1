"""Terrains: what lies under the feet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gait.errors import GaitError
from gait.sim.physics import mujoco

CIRCLE_RADIUS = 1.0
"""Radius in metres of the circle that is walked on `circular`; its centre lies at y = +radius from the start."""
PLATE_FRICTION = 0.08
"""Sliding friction of the slippery half of `circular`, unless an episode says otherwise."""
SLOPE_ANGLE = 0.17
"""Steepness of `slope` in radians; it climbs along +x."""


@dataclass(frozen=True)
class Surface:
    """How a foot meets the ground."""

    friction: float
    """Sliding friction coefficient."""
    slippery_friction: float
    """Sliding friction coefficient of the slippery half of `circular`."""
    solref: tuple[float, float]
    """MuJoCo contact reference: time constant in seconds and damping ratio."""


@dataclass(frozen=True)
class Terrain:
    """A kind of ground."""

    name: str
    friction: float
    """Sliding friction unless an episode says otherwise."""
    friction_range: tuple[float, float]
    """What randomised episodes draw from."""
    build: Callable[[Any, Surface, np.random.Generator], None]
    """Adds the ground to an MjSpec."""
    loose: bool = False
    """Whether things lie about that can move."""


_PLANE, _BOX, _ELLIPSOID = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_ELLIPSOID
# Torsional and rolling friction in metres: a contact patch of a few millimetres under a 23 mm rubber ball.
_TORSION, _ROLLING = 0.004, 0.0002
SOLIMP = (0.95, 0.99, 0.001, 0.5, 2.0)
"""Impedance from 0.95 at first touch to 0.99 at 1 mm: nearly rigid at once, so that feet hardly sink."""


def ground_geom(
    parent: Any,
    surface: Surface,
    friction: float | None = None,
    spin: tuple[float, float] = (_TORSION, _ROLLING),
    condim: int = 4,
    **geom: Any,
) -> Any:
    """Add a geom that feet walk on; its contact parameters win over those of the robot."""
    mu = surface.friction if friction is None else friction
    contact = {"solref": list(surface.solref), "solimp": list(SOLIMP), "condim": condim, "priority": 1}
    return parent.add_geom(friction=[mu, *spin], contype=1, conaffinity=1, **contact, **geom)


def _flat(spec: Any, surface: Surface, rng: np.random.Generator, material: str = "grid") -> None:
    ground_geom(spec.worldbody, surface, name="floor", type=_PLANE, size=[0, 0, 1], material=material)


_slippery = partial(_flat, material="plate")


def _debris(spec: Any, surface: Surface, rng: np.random.Generator) -> None:
    """Loose pebbles and planks on a plane, dense along the first metres of the way."""
    _flat(spec, surface, rng)

    def loose(name: str, half: Any, kind: Any, place: Any, yaw: float, density: float, tint: list[float]) -> None:
        body = spec.worldbody.add_body(name=name, pos=list(place), quat=[np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
        body.add_freejoint()
        # Stones have edges: they neither spin nor roll for long.
        ground_geom(body, surface, spin=(0.02, 0.004), condim=6, type=kind, size=list(half), density=density, rgba=tint)

    for i in range(48):
        half = rng.uniform([0.010, 0.010, 0.006], [0.025, 0.025, 0.014])
        # Along the two tracks that the feet of a walking robot follow.
        place = (rng.uniform(0.35, 3.2), rng.choice([-0.13, 0.13]) + 0.07 * rng.normal(), half[2])
        loose(f"pebble{i}", half, _ELLIPSOID, place, rng.uniform(0, 6.28), 2500.0, [0.5, 0.5, 0.45, 1])
    for i in range(10):
        half = np.array([rng.uniform(0.10, 0.25), rng.uniform(0.03, 0.06), rng.uniform(0.004, 0.009)])
        place = (0.5 + 0.27 * i, rng.uniform(-0.2, 0.2), half[2] + 0.03)
        loose(f"plank{i}", half, _BOX, place, rng.uniform(0, 6.28), 600.0, [0.6, 0.45, 0.25, 1])


def _circular(spec: Any, surface: Surface, rng: np.random.Generator) -> None:
    """Two half planes that meet at x = 0: slippery ahead of the start, rubber behind it."""
    for name, side, mu, material in (
        ("rubber", -1.0, surface.friction, "grid"),
        ("plate", 1.0, surface.slippery_friction, "plate"),
    ):
        box = {"type": _BOX, "size": [25, 25, 0.5], "pos": [side * 25, 0, -0.5], "material": material}
        ground_geom(spec.worldbody, surface, friction=mu, name=name, **box)


def _rough(spec: Any, surface: Surface, rng: np.random.Generator) -> None:
    """A height field of smoothed noise, a few centimetres high, flat around the start."""
    cells, half, top = 160, 8.0, 0.05
    noise = rng.normal(size=(cells, cells))
    for axis in (0, 1):
        noise = sum(np.roll(noise, k, axis) for k in (-1, 0, 1)) / 3.0  # type: ignore[assignment]
    x = np.linspace(-half, half, cells)
    near = np.hypot(*np.meshgrid(x, x))
    heights = (noise - noise.min()) / np.ptp(noise)
    blend = np.clip((near - 0.4) / 0.6, 0.0, 1.0)
    heights = 0.5 + (heights - 0.5) * blend
    field = spec.add_hfield(name="rough", nrow=cells, ncol=cells, size=[half, half, top, 0.1])
    field.userdata = heights.ravel()
    floor = {"type": mujoco.mjtGeom.mjGEOM_HFIELD, "hfieldname": "rough", "pos": [0, 0, -0.5 * top]}
    ground_geom(spec.worldbody, surface, name="floor", material="grid", **floor)


def _slope(spec: Any, surface: Surface, rng: np.random.Generator) -> None:
    """A plane that climbs along +x from 0.6 m ahead of the start."""
    _flat(spec, surface, rng)
    length, thick = 40.0, 1.0
    c, s = np.cos(SLOPE_ANGLE), np.sin(SLOPE_ANGLE)
    centre = np.array([0.6, 0.0, 0.0]) + length / 2 * np.array([c, 0, s]) - thick / 2 * np.array([-s, 0, c])
    turn = [np.cos(SLOPE_ANGLE / 2), 0, -np.sin(SLOPE_ANGLE / 2), 0]
    box = {"type": _BOX, "size": [length / 2, 20, thick / 2], "pos": list(centre), "quat": turn, "material": "grid"}
    ground_geom(spec.worldbody, surface, name="ramp", **box)


TERRAINS: dict[str, Terrain] = {
    terrain.name: terrain
    for terrain in (
        Terrain("flat", 0.7, (0.3, 1.0), _flat),
        Terrain("rubber", 0.9, (0.8, 1.0), _flat),
        Terrain("slippery", 0.087, (0.083, 0.095), _slippery),
        Terrain("debris", 0.7, (0.5, 0.9), _debris, loose=True),
        Terrain("circular", 0.9, (0.8, 1.0), _circular),
        Terrain("rough", 0.7, (0.5, 1.0), _rough),
        Terrain("slope", 0.8, (0.6, 1.0), _slope),
        Terrain("ice", 0.12, (0.05, 0.25), _slippery),
    )
}
TERRAIN_NAMES = tuple(TERRAINS)


def find_terrain(name: str) -> Terrain:
    """The terrain of that name."""
    if name not in TERRAINS:
        raise GaitError(f"unknown terrain '{name}': choose one of {', '.join(TERRAINS)}")
    return TERRAINS[name]
