"""The MuJoCo model: the terrains, and a robot built from its YAML that stands on one.

Contact settings. The step is 1 ms with semi-implicit Euler, so a recorded joint torque is the torque that acted. Feet
are spheres on an elliptic friction cone with `impratio` 20: friction is then twenty times as stiff as the normal
direction, and a foot that should hold does not creep. Ground contacts have a time constant of 6 ms and an impedance of
0.95 to 0.99: feet sink 0.2 mm under a standing robot and at most 1.6 mm in a trot at 1 m/s, while landing feet together
push with two to four times the robot's weight. Four rows a contact: normal, two tangents, and the torsion of a contact
patch of a few millimetres.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.robot import Link, Robot, combined
from gait.sim.kernels import forward
from gait.sim.physics import mujoco

if TYPE_CHECKING:
    from gait.sim.settings import EpisodeConfig

TIMESTEP = 0.001
"""Seconds of one physics step, as in world.xml."""
CONTACT_TIME = 0.0048
"""Time constant of the ground contact in seconds at stiffness 1."""
CIRCLE_RADIUS = 1.0
"""Radius in metres of the circle that is walked on `circular`; its centre is at y = +radius from the start."""
PLATE_FRICTION = 0.08
"""Sliding friction of the slippery half of `circular`, unless an episode says otherwise."""
SLOPE_ANGLE = 0.17
"""Steepness of `slope` in radians; it climbs along +x."""


@dataclass(frozen=True)
class Terrain:
    """A kind of ground."""

    friction: float
    """Sliding friction unless an episode says otherwise."""
    friction_range: tuple[float, float]
    """What randomised episodes draw from."""
    build: Callable[[Any, EpisodeConfig, np.random.Generator], None]
    """Adds the ground to an MjSpec, for an episode whose friction is given."""
    loose: bool = False
    """Whether the terrain has loose objects."""


_PLANE, _BOX, _ELLIPSOID = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_ELLIPSOID
# Torsional and rolling friction in metres: a contact patch of a few millimetres under a 23 mm rubber ball.
_SPIN = (0.004, 0.0002)
SOLIMP = (0.95, 0.99, 0.001, 0.5, 2.0)
"""Impedance from 0.95 at first touch to 0.99 at 1 mm: nearly rigid at once, so that feet hardly sink."""
_SOFT = 0.9
"""Impedance of a contact that gives way: low enough that the load, not the solver, decides how far."""
_SINK_LOAD = 10.5
"""Weight on a foot over that of the mass which the solver assigns to its contact, in the stance of a trot."""
_POINT = 1e-3
"""Radius of a foot that is described as a point, m."""
_THIN = 1e-6
"""Least second moment of mass over the greatest, where an inertia is corrected: rounding must not make it negative."""


def ground_geom(parent: Any, config: EpisodeConfig, spin: Any = _SPIN, condim: int = 4, **geom: Any) -> Any:
    """Add a geom that feet walk on; its contact parameters win over those of the robot."""
    solref, solimp = contact_solref(config.restitution, config.contact_stiffness), SOLIMP
    if config.sink > 0.0:
        solref, solimp = soft_solref(config.restitution, config.sink), (_SOFT, _SOFT, *SOLIMP[2:])
    contact = {"solref": list(solref), "solimp": list(solimp), "condim": condim, "priority": 1}
    return parent.add_geom(friction=[config.friction, *spin], contype=1, conaffinity=1, **contact, **geom)


def _flat(spec: Any, config: EpisodeConfig, rng: np.random.Generator, material: str = "grid") -> None:
    ground_geom(spec.worldbody, config, name="floor", type=_PLANE, size=[0, 0, 1], material=material)


_slippery = partial(_flat, material="plate")


def _debris(spec: Any, config: EpisodeConfig, rng: np.random.Generator) -> None:
    """Loose pebbles and planks on a plane, dense along the first metres of the way."""
    _flat(spec, config, rng)

    def loose(name: str, half: Any, kind: Any, place: Any, yaw: float, density: float, tint: list[float]) -> None:
        body = spec.worldbody.add_body(name=name, pos=list(place), quat=[np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
        body.add_freejoint()
        # Stones have edges: they neither spin nor roll for long.
        ground_geom(body, config, spin=(0.02, 0.004), condim=6, type=kind, size=list(half), density=density, rgba=tint)

    for i in range(48):
        half = rng.uniform([0.010, 0.010, 0.006], [0.025, 0.025, 0.014])
        # Along the two tracks that the feet of a walking robot follow.
        place = (rng.uniform(0.35, 3.2), rng.choice([-0.13, 0.13]) + 0.07 * rng.normal(), half[2])
        loose(f"pebble{i}", half, _ELLIPSOID, place, rng.uniform(0, 6.28), 2500.0, [0.5, 0.5, 0.45, 1])
    for i in range(10):
        half = np.array([rng.uniform(0.10, 0.25), rng.uniform(0.03, 0.06), rng.uniform(0.004, 0.009)])
        place = (0.5 + 0.27 * i, rng.uniform(-0.2, 0.2), half[2] + 0.03)
        loose(f"plank{i}", half, _BOX, place, rng.uniform(0, 6.28), 600.0, [0.6, 0.45, 0.25, 1])


def _circular(spec: Any, config: EpisodeConfig, rng: np.random.Generator) -> None:
    """Two half planes that meet at x = 0: slippery ahead of the start, rubber behind it."""
    plate = replace(config, friction=config.slippery_friction)
    for name, side, material, half in (("rubber", -25, "grid", config), ("plate", 25, "plate", plate)):
        box = {"type": _BOX, "size": [25, 25, 0.5], "pos": [side, 0, -0.5], "material": material}
        ground_geom(spec.worldbody, half, name=name, **box)


def _rough(spec: Any, config: EpisodeConfig, rng: np.random.Generator) -> None:
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
    ground_geom(spec.worldbody, config, name="floor", material="grid", **floor)


def _slope(spec: Any, config: EpisodeConfig, rng: np.random.Generator) -> None:
    """A plane that climbs along +x from 0.6 m ahead of the start."""
    _flat(spec, config, rng)
    length, thick = 40.0, 1.0
    c, s = np.cos(SLOPE_ANGLE), np.sin(SLOPE_ANGLE)
    centre = np.array([0.6, 0.0, 0.0]) + length / 2 * np.array([c, 0, s]) - thick / 2 * np.array([-s, 0, c])
    turn = [np.cos(SLOPE_ANGLE / 2), 0, -np.sin(SLOPE_ANGLE / 2), 0]
    box = {"type": _BOX, "size": [length / 2, 20, thick / 2], "pos": list(centre), "quat": turn, "material": "grid"}
    ground_geom(spec.worldbody, config, name="ramp", **box)


TERRAINS = {
    "flat": Terrain(0.7, (0.3, 1.0), _flat),
    "rubber": Terrain(0.9, (0.8, 1.0), _flat),
    "slippery": Terrain(0.087, (0.083, 0.095), _slippery),
    "debris": Terrain(0.7, (0.5, 0.9), _debris, loose=True),
    "circular": Terrain(0.9, (0.8, 1.0), _circular),
    "rough": Terrain(0.7, (0.5, 1.0), _rough),
    "slope": Terrain(0.8, (0.6, 1.0), _slope),
    "ice": Terrain(0.12, (0.05, 0.25), _slippery),
}


def find_terrain(name: str) -> Terrain:
    """The terrain of that name."""
    if name not in TERRAINS:
        raise GaitError(f"unknown terrain '{name}': choose one of {', '.join(TERRAINS)}")
    return TERRAINS[name]


def scaled_robot(robot: Robot, link_scale: Array, foot_scale: float = 1.0) -> Robot:
    """The same robot with other links and feet: `link_scale` (L, 3) multiplies hip, thigh and calf offsets."""
    return robot.with_links(list(np.asarray(link_scale, dtype=np.float64)[:, :, None]), foot_scale)


@lru_cache
def damping_ratio(restitution: float) -> float:
    """The damping ratio of a contact that returns a share of the impact speed.

    A ground that pushes like a spring and damper but never pulls returns e = exp(-2 z acos(z) / sqrt(1 - z^2))
    of the impact speed at damping ratio z. Inverting that gives z; at z = 1.2 and e = 0.1 it ends, because a stronger
    damper would only make impacts harder.
    """
    low, high = 0.02, 1.2
    for _ in range(40):
        middle = 0.5 * (low + high)
        root = np.sqrt(abs(1.0 - middle * middle))
        angle = np.arccos(middle) if middle < 1.0 else np.arccosh(middle)
        low, high = (middle, high) if np.exp(-2.0 * middle * angle / root) > restitution else (low, middle)
    return round(0.5 * (low + high), 6)


def contact_solref(restitution: float, stiffness: float) -> tuple[float, float]:
    """MuJoCo's contact time constant and damping ratio: stiffness goes with the inverse square of their product."""
    ratio = damping_ratio(restitution)
    return CONTACT_TIME / (ratio * float(np.sqrt(stiffness))), ratio


def soft_solref(restitution: float, sink: float) -> tuple[float, float]:
    """The same for a contact that gives way by `sink` metres in the stance of a trot.

    A contact of impedance d and natural frequency w carries d / (1 - d) (w^2 sink) of the mass behind it.
    """
    ratio, frequency = damping_ratio(restitution), np.sqrt(_SINK_LOAD * 9.81 * (1.0 - _SOFT) / (_SOFT * sink))
    return 1.0 / (_SOFT * ratio * float(frequency)), ratio


def build_model(robot: Robot, config: EpisodeConfig, rng: np.random.Generator | None = None) -> Any:
    """The compiled MuJoCo model: terrain, robot, motors and the contact sensors of feet and body.

    Random terrains draw from `rng`.
    """
    spec = build_spec(robot, config, rng)
    try:
        return spec.compile()
    except ValueError as error:
        why = " ".join(str(error).split())
        raise GaitError(f"MuJoCo cannot simulate {robot.name}: {why}; correct its description") from None


def build_spec(robot: Robot, config: EpisodeConfig, rng: np.random.Generator | None = None) -> Any:
    """The same before it is compiled, as an MjSpec."""
    return ground_spec(robot.name, config, rng, lambda spec: _add_robot(spec, robot, config))


def ground_spec(
    name: str, config: EpisodeConfig, rng: np.random.Generator | None, add_robot: Callable[[Any], None]
) -> Any:
    """An MjSpec with the robot that `add_robot` adds, on the terrain of an episode."""
    terrain = find_terrain(config.terrain)
    spec = mujoco.MjSpec.from_file(str(Path(__file__).with_name("world.xml")))
    spec.modelname = name
    if terrain.loose:
        let_things_sleep(spec)
    else:
        # One robot is one island: looking for more costs a tenth of the step.
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    friction = terrain.friction if config.friction is None else config.friction
    # The robot comes first, so that its coordinates lead the state on any terrain.
    add_robot(spec)
    terrain.build(spec, replace(config, friction=friction), rng or np.random.default_rng(0))
    return spec


def let_things_sleep(spec: Any) -> None:
    """Loose objects sleep until something touches them."""
    spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    spec.option.sleep_tolerance = 0.005


def stand_state(robot: Robot) -> Array:
    """Generalised position (19,) of the robot standing on the plane z = 0: base pose wxyz, then joints."""
    feet, _ = forward(robot, robot.q_stand)
    height = -float(feet[:, 2].mean()) + robot.foot_radius
    return np.concatenate([[0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0], robot.q_stand])


def set_inertia(body: Any, link: Link) -> None:
    """Give a body of an MjSpec its mass properties."""
    i = _possible(link.inertia)
    body.mass = link.mass
    body.ipos = list(link.com)
    body.iquat, body.inertia = [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    body.fullinertia = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    body.explicitinertial = True


def _possible(inertia: Array) -> Array:
    """The inertia itself if a body can have it, else the nearest one: published ones are rounded, or measured.

    No principal moment exceeds the sum of the others: the second moments of mass, which they are made of, are positive.
    """
    moments = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    values, axes = np.linalg.eigh(moments)
    if values[0] >= 0.0:
        return inertia
    moments = (axes * np.maximum(values, _THIN * values[-1])) @ axes.T
    return np.asarray(np.trace(moments) * np.eye(3) - moments)


def _shape(body: Any, **geom: Any) -> Any:
    # Robot geoms meet the world but never each other, and add no mass: the links' inertias are given.
    return body.add_geom(contype=0, conaffinity=1, condim=4, **geom)


def loaded_base(base: Link, config: EpisodeConfig) -> Link:
    """The base with its payload and shifted centre of mass as one rigid link."""
    links = [replace(base, com=base.com + np.array(config.com_shift))]
    if config.payload_mass > 0.0:
        box = config.payload_mass * 0.12**2 / 6.0 * np.eye(3)  # a cube of 12 cm
        links.append(Link(config.payload_mass, np.array(config.payload_position), box))
    return combined(links)


def _add_robot(spec: Any, robot: Robot, config: EpisodeConfig) -> None:
    shapes = robot.shapes
    base = spec.worldbody.add_body(name=robot.base_link, pos=[0, 0, 0.4])
    base.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    base.add_freejoint(name="floating_base")
    set_inertia(base, loaded_base(robot.base, config))
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": list(shapes.base / 2)}
    _shape(base, name=robot.base_link, **box, rgba=[0.75, 0.77, 0.8, 1])
    base.add_site(name="imu", pos=list(robot.imu_position), quat=list(robot.imu_quat_wxyz))
    contact_sensor(spec, "base_contact", robot.base_link, mujoco.mjtConDataField.mjCONDATA_FOUND)
    for i, leg in enumerate(robot.leg_names):
        parent = base
        for k, part in enumerate(("hip", "thigh", "calf")):
            body = parent.add_body(name=f"{leg}_{part}", pos=list(robot.offsets[i, k]))
            set_inertia(body, robot.links[i][k])
            _joint(spec, body, robot, config, 3 * i + k)
            _link_shape(body, robot, part, robot.offsets[i, k + 1])
            parent = body
        size = [max(robot.foot_radius, _POINT), 0, 0]
        sphere = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": size, "rgba": [0.1, 0.1, 0.1, 1]}
        _shape(parent, name=f"{leg}_foot", pos=list(robot.offsets[i, 3]), **sphere)
        contact_sensor(spec, f"{leg}_force", f"{leg}_foot", mujoco.mjtConDataField.mjCONDATA_FORCE)


def _joint(spec: Any, body: Any, robot: Robot, config: EpisodeConfig, joint: int) -> None:
    """One joint and its motor."""
    name, sign, limit = robot.joint_names[joint], robot.signs.ravel()[joint], robot.torque_limit[joint]
    body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_HINGE,
        axis=[sign, 0, 0] if joint % 3 == 0 else [0, sign, 0],
        range=[robot.q_lower[joint], robot.q_upper[joint]],
        damping=robot.damping[joint] * config.joint_damping,
        frictionloss=robot.friction[joint] * config.joint_friction,
        armature=robot.armature[joint],
    )
    motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.set_to_motor()
    motor.forcerange, motor.forcelimited = [-limit, limit], True


def _link_shape(body: Any, robot: Robot, part: str, tip: Array) -> None:
    """A cylinder for the hip, a capsule from joint to joint for the others."""
    if part == "hip":
        cylinder = {"type": mujoco.mjtGeom.mjGEOM_CYLINDER, "size": [robot.shapes.hip_radius, 0.02, 0.0]}
        _shape(body, **cylinder, quat=[0.7071068, 0.7071068, 0, 0], rgba=[0.2, 0.2, 0.22, 1])
        return
    radius = robot.shapes.thigh_radius if part == "thigh" else robot.shapes.calf_radius
    capsule = {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "size": [radius, 0, 0], "fromto": [0.0, 0.0, 0.0, *tip]}
    _shape(body, **capsule, rgba=[0.3, 0.32, 0.35, 1])


def contact_sensor(spec: Any, name: str, of: str, field: Any, kind: Any = mujoco.mjtObj.mjOBJ_GEOM) -> None:
    """Net contact force in the world frame on a geom or body, or just whether it touches anything."""
    # The 3 reduces the contacts to their net force, expressed in the world frame.
    sensor = mujoco.mjtSensor.mjSENS_CONTACT
    spec.add_sensor(name=name, type=sensor, objtype=kind, objname=of, intprm=[1 << int(field), 3, 1])
