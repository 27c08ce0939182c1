"""The MuJoCo model: a robot built from its YAML, standing on a terrain.

Contact settings. The step is 1 ms with semi-implicit Euler, so a recorded joint torque is the torque that acted. Feet
are spheres on an elliptic friction cone with `impratio` 20: friction is then twenty times as stiff as the normal
direction, and a foot that should hold does not creep. Ground contacts have a time constant of 6 ms and an impedance of
0.95 to 0.99: feet sink 0.2 mm under a standing robot and at most 1.6 mm in a trot at 1 m/s, while landing feet together
push with two to four times the robot's weight. Four rows a contact: normal, two tangents, and the torsion of a contact
patch of a few millimetres.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.robot import Link, Robot, combined
from gait.sim.kernels import forward
from gait.sim.physics import mujoco
from gait.sim.settings import EpisodeConfig
from gait.sim.terrain import Surface, find_terrain

TIMESTEP = 0.001
"""Seconds of one physics step, as in world.xml."""
CONTACT_TIME = 0.0048
"""Time constant of the ground contact in seconds at stiffness 1."""


def scaled_robot(robot: Robot, link_scale: Array) -> Robot:
    """The same robot with links of other lengths: `link_scale` (L, 3) multiplies hip, thigh and calf offsets."""
    offsets = robot.offsets.copy()
    offsets[:, 1:] *= np.asarray(link_scale, dtype=np.float64)[:, :, None]
    return replace(robot, offsets=offsets)


def contact_solref(restitution: float, stiffness: float) -> tuple[float, float]:
    """MuJoCo's contact time constant and damping ratio for a bounce and a stiffness.

    A ground that pushes like a spring and damper but never pulls returns e = exp(-2 z acos(z) / sqrt(1 - z^2))
    of the impact speed at damping ratio z. Inverting that gives z; at z = 1.2 and e = 0.1 it ends, because a stronger
    damper would only make impacts harder. The stiffness goes with the inverse square of time constant times ratio.
    """
    low, high = 0.02, 1.2
    for _ in range(40):
        middle = 0.5 * (low + high)
        root = np.sqrt(abs(1.0 - middle * middle))
        angle = np.arccos(middle) if middle < 1.0 else np.arccosh(middle)
        low, high = (middle, high) if np.exp(-2.0 * middle * angle / root) > restitution else (low, middle)
    ratio = round(0.5 * (low + high), 6)
    return CONTACT_TIME / (ratio * float(np.sqrt(stiffness))), ratio


def build_model(robot: Robot, config: EpisodeConfig, rng: np.random.Generator | None = None) -> Any:
    """The compiled MuJoCo model: terrain, robot, motors and the contact sensors of feet and body.

    Random terrains draw from `rng`.
    """
    terrain = find_terrain(config.terrain)
    spec = mujoco.MjSpec.from_file(str(Path(__file__).with_name("world.xml")))
    spec.modelname = robot.name
    if terrain.loose:
        # What lies still sleeps until something touches it.
        spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        spec.option.sleep_tolerance = 0.005
    else:
        # One robot is one island: looking for more costs a tenth of the step.
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    friction = terrain.friction if config.friction is None else config.friction
    solref = contact_solref(config.restitution, config.contact_stiffness)
    # The robot comes first, so that its coordinates lead the state whatever lies around.
    _add_robot(spec, robot, config)
    terrain.build(spec, Surface(friction, config.slippery_friction, solref), rng or np.random.default_rng(0))
    return spec.compile()


def stand_state(robot: Robot, height: float = 0.0) -> Array:
    """Generalised position (19,) of the robot standing on the plane z = `height`: base pose wxyz, then joints."""
    feet, _ = forward(robot, robot.q_stand)
    drop = -float(feet[:, 2].mean()) + robot.foot_radius
    return np.concatenate([[0.0, 0.0, drop + height, 1.0, 0.0, 0.0, 0.0], robot.q_stand])


def _inertia(body: Any, link: Link) -> None:
    i = link.inertia
    body.mass = link.mass
    body.ipos = list(link.com)
    body.fullinertia = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    body.explicitinertial = True


def _shape(body: Any, **geom: Any) -> Any:
    # Robot geoms meet the world but never each other, and add no mass: the links' inertias are given.
    return body.add_geom(contype=0, conaffinity=1, condim=4, **geom)


def _loaded_base(robot: Robot, config: EpisodeConfig) -> Link:
    """The base with its payload and shifted centre of mass as one rigid link."""
    links = [replace(robot.base, com=robot.base.com + np.array(config.com_shift))]
    if config.payload_mass > 0.0:
        side = 0.12
        box = config.payload_mass * side**2 / 6.0 * np.eye(3)
        links.append(Link(config.payload_mass, np.array(config.payload_position), box))
    return combined(links)


def _add_robot(spec: Any, robot: Robot, config: EpisodeConfig) -> None:
    shapes = robot.shapes
    base = spec.worldbody.add_body(name=robot.base_link, pos=[0, 0, 0.4])
    base.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    base.add_freejoint(name="floating_base")
    _inertia(base, _loaded_base(robot, config))
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": list(shapes.base / 2)}
    _shape(base, name=robot.base_link, **box, rgba=[0.75, 0.77, 0.8, 1])
    base.add_site(name="imu", pos=list(robot.imu_position), quat=list(robot.imu_quat_wxyz))
    _contact_sensor(spec, "base_contact", robot.base_link, mujoco.mjtConDataField.mjCONDATA_FOUND)
    for i, leg in enumerate(robot.leg_names):
        parent = base
        for k, part in enumerate(("hip", "thigh", "calf")):
            body = parent.add_body(name=f"{leg}_{part}", pos=list(robot.offsets[i, k]))
            _inertia(body, robot.links[i][k])
            _joint(spec, body, robot, config, 3 * i + k)
            _link_shape(body, robot, part, robot.offsets[i, k + 1])
            parent = body
        sphere = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [robot.foot_radius, 0, 0], "rgba": [0.1, 0.1, 0.1, 1]}
        _shape(parent, name=f"{leg}_foot", pos=list(robot.offsets[i, 3]), **sphere)
        _contact_sensor(spec, f"{leg}_force", f"{leg}_foot", mujoco.mjtConDataField.mjCONDATA_FORCE)


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


def _contact_sensor(spec: Any, name: str, geom: str, field: Any) -> None:
    """Net contact force in the world frame on a geom, or just whether it touches anything."""
    net = 3  # reduce the contacts to their net force, expressed in the world frame
    kind, of = mujoco.mjtSensor.mjSENS_CONTACT, mujoco.mjtObj.mjOBJ_GEOM
    spec.add_sensor(name=name, type=kind, objtype=of, objname=geom, intprm=[1 << int(field), net, 1])
