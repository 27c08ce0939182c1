"""A biped that gait describes as a plant: its chains as bodies, and soles of real size that touch the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

from gait.errors import GaitError
from gait.robot import Chain, Robot
from gait.sim.physics import mujoco
from gait.sim.plant import Plant
from gait.sim.policy.scene_plant import FootFrames, add_foot_frames
from gait.sim.settings import EpisodeConfig
from gait.sim.world import contact_sensor, ground_spec, loaded_base, set_inertia

THICKNESS = 0.012
"""Of a sole, m."""
_GEOM = mujoco.mjtObj.mjOBJ_GEOM
_GHOST = {"contype": 0, "conaffinity": 0}
"""What is there to be seen alone."""


def biped_plant(robot: Robot, config: EpisodeConfig, rng: np.random.Generator) -> Plant:
    """Build a robot with soles on a terrain."""
    spec = ground_spec(robot.name, config, rng, lambda spec: _add_biped(spec, robot, config))
    try:
        model = spec.compile()
    except ValueError as error:
        raise GaitError(f"MuJoCo cannot simulate {robot.name}: {' '.join(str(error).split())}") from None
    joints, count = np.arange(robot.num_joints), robot.num_legs
    feet = tuple(f"{leg}_foot" for leg in robot.leg_names)
    frames = FootFrames(model, feet, [_GEOM] * count)
    start = model.qpos0.copy()
    start[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    start[7 : 7 + len(joints)] = robot.q_stand
    start[2] = height = frames.height_over(model, start)
    return Plant(
        robot=robot,
        model=model,
        start=start[: 7 + len(joints)],
        q_start=robot.q_stand.copy(),
        kp=robot.kp.copy(),
        kd=robot.kd.copy(),
        limit=robot.torque_limit,
        qpos_at=joints + 7,
        qvel_at=joints + 6,
        ctrl_at=joints,
        feet=frames,
        frames=(1 + 3 * count, 1 + 16 * count),
        least_height=0.4 * height,
    )


def _add_biped(spec: Any, robot: Robot, config: EpisodeConfig) -> None:
    base = spec.worldbody.add_body(name=robot.base_link, pos=[0, 0, 1])
    base.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    base.add_freejoint(name="floating_base")
    set_inertia(base, loaded_base(robot.base, config))
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": list(robot.shapes.base / 2)}
    base.add_geom(name=robot.base_link, contype=0, conaffinity=1, rgba=[0.75, 0.77, 0.8, 1], **box)
    top = 2.0 * robot.base.com
    trunk = {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "size": [float(robot.shapes.base[0]) / 2, 0, 0]}
    base.add_geom(fromto=[0, 0, 0, *top], rgba=[0.75, 0.77, 0.8, 1], mass=0.0, **trunk, **_GHOST)
    base.add_site(name="imu", pos=list(robot.imu_position), quat=list(robot.imu_quat_wxyz))
    contact_sensor(spec, "base_contact", robot.base_link, mujoco.mjtConDataField.mjCONDATA_FOUND)
    for i, leg in enumerate(robot.legs):
        _add_leg(spec, base, robot, leg, int(robot.leg_start[i]), config)
    feet = tuple(f"{leg}_foot" for leg in robot.leg_names)
    for leg_name, foot in zip(robot.leg_names, feet, strict=True):
        contact_sensor(spec, f"{leg_name}_force", foot, mujoco.mjtConDataField.mjCONDATA_FORCE)
    add_foot_frames(spec, feet, [_GEOM] * len(feet))


def _add_leg(spec: Any, base: Any, robot: Robot, leg: Chain, first: int, config: EpisodeConfig) -> None:
    parent = base
    for s, (name, link) in enumerate(zip(leg.joint_names, robot.links[robot.leg_index(leg.name)], strict=True)):
        body = parent.add_body(name=f"{name}_link", pos=list(leg.offsets[s]))
        set_inertia(body, link)
        body.add_joint(
            name=name,
            type=mujoco.mjtJoint.mjJNT_HINGE,
            axis=list(leg.axes[s]),
            range=[robot.q_lower[first + s], robot.q_upper[first + s]],
            damping=robot.damping[first + s] * config.joint_damping,
            frictionloss=robot.friction[first + s] * config.joint_friction,
            armature=leg.armature[s],
        )
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_motor()
        tip = leg.offsets[s + 1]
        if np.linalg.norm(tip) > 0.02:
            bone = {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "size": [robot.shapes.calf_radius, 0, 0]}
            body.add_geom(fromto=[0.0, 0.0, 0.0, *tip], mass=0.0, rgba=[0.3, 0.32, 0.35, 1], **bone, **_GHOST)
        parent = body
    corners = leg.offsets[-1] + leg.foot.corners
    half = 0.5 * np.ptp(corners, axis=0)
    centre = corners.mean(axis=0) + np.array([0.0, 0.0, 0.5 * THICKNESS - leg.foot.radius])
    sole = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": [half[0], half[1], 0.5 * THICKNESS]}
    parent.add_geom(
        name=f"{leg.name}_foot", pos=list(centre), contype=0, conaffinity=1, condim=4, mass=0.0,
        rgba=[0.1, 0.1, 0.1, 1], **sole,
    )  # fmt: skip
