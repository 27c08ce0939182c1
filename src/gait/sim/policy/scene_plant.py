"""The robot of a scene as a plant: torque drives in place of its actuators, sensors of ours, loads and other ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.robot import Robot
from gait.robot.mjcf_reader import delete
from gait.sim.physics import mujoco
from gait.sim.plant import Plant
from gait.sim.policy.ground import lay_ground
from gait.sim.policy.mjcf import base_link
from gait.sim.policy.rig import Rig
from gait.sim.settings import EpisodeConfig
from gait.sim.world import TIMESTEP, contact_sensor, loaded_base, set_inertia

ITERATIONS = 50
"""Solver iterations at least: scenes made for training have as few as one."""
LEAST_HEIGHT = 0.4
"""A base this low over its lowest foot, relative to standing, is on the ground."""
_FRAME = ("POS", "QUAT", "LINVEL", "ANGVEL")
_WIDTH = 13
"""Numbers of a foot's frame."""


def scene_plant(rig: Rig, config: EpisodeConfig, rng: np.random.Generator) -> Plant:
    """Build the scene of a policy for an episode."""
    spec = rig.scene.spec()
    option = spec.option
    option.timestep = TIMESTEP
    option.iterations, option.ls_iterations = (max(n, ITERATIONS) for n in (option.iterations, option.ls_iterations))
    lay_ground(spec, config, rng, rig.files.rigid)
    if rig.scene.dropped:
        _add_bones(spec)
    names, count = rig.robot.joint_names, rig.robot.num_legs
    set_inertia(spec.body(rig.scene.base), loaded_base(base_link(rig.scene.nominal, rig.scene.base), config))
    for actuator in list(spec.actuators):
        delete(spec, actuator)
    for name in names:
        motor = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_motor()
    contact_sensor(spec, "base_contact", rig.scene.base, mujoco.mjtConDataField.mjCONDATA_FOUND, _BODY)
    kinds = [_GEOM if foot in {geom.name for geom in spec.geoms} else _BODY for foot in rig.feet]
    for leg, foot, kind in zip(rig.robot.leg_names, rig.feet, kinds, strict=True):
        contact_sensor(spec, f"{leg}_force", foot, mujoco.mjtConDataField.mjCONDATA_FORCE, kind)
    add_foot_frames(spec, rig.feet, kinds)
    try:
        model = spec.compile()
    except ValueError as error:
        raise GaitError(f"MuJoCo cannot build {rig.scene.path} on {config.terrain}: {error}") from None
    joints = [model.joint(name) for name in names]
    dofs = np.array([joint.dofadr[0] for joint in joints])
    for joint in joints:
        # The drive has its own limit; recorded torque is torque that acts.
        model.jnt_actfrclimited[joint.id] = 0
    model.dof_frictionloss[dofs] *= config.joint_friction
    model.dof_damping[dofs] *= config.joint_damping
    model.dof_damping[dofs[rig.damped]] = 0.0
    _stretch(rig, model, config)
    feet = FootFrames(model, rig.feet, kinds)
    start = model.qpos0.copy()
    start[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    qpos_at = np.array([joint.qposadr[0] for joint in joints])
    start[qpos_at] = rig.pose
    start[2] = height = feet.height_over(model, start)
    return Plant(
        robot=rig.robot,
        model=model,
        start=start,
        q_start=rig.pose.copy(),
        kp=rig.kp.copy(),
        kd=rig.kd.copy(),
        limit=rig.limit,
        qpos_at=qpos_at,
        qvel_at=dofs,
        ctrl_at=np.arange(len(names)),
        feet=feet,
        frames=(1 + 3 * count, 1 + (3 + _WIDTH) * count),
        least_height=LEAST_HEIGHT * height,
    )


_GEOM, _BODY = mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_BODY


def add_foot_frames(spec: Any, feet: Sequence[str], kinds: Sequence[Any]) -> None:
    """Sensors of the poses and velocities of feet, as `FootFrames` reads them."""
    for field in _FRAME:
        for foot, kind in zip(feet, kinds, strict=True):
            sensor = getattr(mujoco.mjtSensor, f"mjSENS_FRAME{field}")
            frame = _GEOM if kind == _GEOM else mujoco.mjtObj.mjOBJ_XBODY
            spec.add_sensor(name=f"{foot}_{field}", type=sensor, objtype=frame, objname=foot)


class FootFrames:
    """Places of the feet and velocities of their lowest points, from the frames that MuJoCo's sensors report."""

    def __init__(self, model: Any, feet: tuple[str, ...], kinds: list[Any]) -> None:
        self._geoms = [model.geom(name).id if kind == _GEOM else -1 for name, kind in zip(feet, kinds, strict=True)]
        self._model, self._names, self._kinds = model, feet, kinds

    def __call__(self, rows: Array, frames: Array) -> tuple[Array, Array]:
        """(N, L, 3) each, of frames (N, 13 L): positions of all feet, then quaternions, velocities, angular rates."""
        count = len(self._names)
        place, quat, velocity, omega = (
            part.reshape(len(frames), count, -1)
            for part in np.split(frames, np.cumsum([3 * count, 4 * count, 3 * count]), axis=1)
        )
        depth = np.stack([self._depth(i, quat[:, i]) for i in range(count)], axis=1)  # (N, L)
        # omega x (0, 0, -depth)
        sole = velocity.copy()
        sole[..., 0] -= omega[..., 1] * depth
        sole[..., 1] += omega[..., 0] * depth
        return place.copy(), sole

    def height_over(self, model: Any, qpos: Array) -> float:
        """How high the base must be for the lowest foot to touch the plane z = 0."""
        data = mujoco.MjData(model)
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        lowest = []
        for i, (name, kind) in enumerate(zip(self._names, self._kinds, strict=True)):
            place = data.geom(name).xpos if kind == _GEOM else data.body(name).xpos
            axes = data.geom(name).xmat if kind == _GEOM else data.body(name).xmat
            quat = np.empty(4)
            mujoco.mju_mat2Quat(quat, axes)
            lowest.append(place[2] - self._depth(i, quat[None])[0])
        return float(-min(lowest))

    def _depth(self, foot: int, quat: Array) -> Array:
        """How far the lowest point is below the centre (N,), for orientations (N, 4)."""
        geom, shapes = self._geoms[foot], mujoco.mjtGeom
        if geom < 0:
            return np.zeros(len(quat))
        size, kind = self._model.geom_size[geom], self._model.geom_type[geom]
        w, x, y, z = quat.T
        # The world's z axis in the axes of the geom.
        up = np.abs(np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)], axis=1))
        flat = np.hypot(up[:, 0], up[:, 1])
        depths: dict[Any, Callable[[], Array]] = {
            shapes.mjGEOM_SPHERE: lambda: np.full(len(quat), size[0]),
            shapes.mjGEOM_BOX: lambda: up @ size,
            shapes.mjGEOM_CAPSULE: lambda: size[0] + size[1] * up[:, 2],
            shapes.mjGEOM_CYLINDER: lambda: size[0] * flat + size[1] * up[:, 2],
            shapes.mjGEOM_ELLIPSOID: lambda: np.linalg.norm(up * size, axis=1),
        }
        depth = depths.get(kind)
        return np.zeros(len(quat)) if depth is None else np.asarray(depth())


def _add_bones(spec: Any) -> None:
    """Something to see of a robot whose meshes are missing: a capsule from each joint to the next, without mass."""
    capsule, clear = mujoco.mjtGeom.mjGEOM_CAPSULE, {"contype": 0, "conaffinity": 0, "density": 0.0, "mass": 0.0}
    for body in spec.bodies:
        if body.name == "world":
            continue
        for child in body.bodies:
            if np.linalg.norm(child.pos) > 0.01:
                bone = {"type": capsule, "size": [0.02, 0.0, 0.0], "fromto": [0.0, 0.0, 0.0, *child.pos]}
                body.add_geom(**bone, **clear, rgba=[0.6, 0.62, 0.65, 1.0])


def _stretch(rig: Rig, model: Any, config: EpisodeConfig) -> None:
    """Legs of other lengths than described: `link_scale` multiplies the offsets along the legs of a known robot,
    `foot_scale` the radius of its feet."""
    for foot in rig.feet if config.foot_scale != 1.0 and isinstance(rig.robot, Robot) else ():
        model.geom_size[model.geom(foot).id, 0] *= config.foot_scale
    if config.link_scale is None or not isinstance(rig.robot, Robot):
        return
    names = np.reshape(rig.robot.joint_names, (rig.robot.num_legs, 3))
    for leg, scale, foot in zip(names, config.link_scale, rig.feet, strict=True):
        for name, factor in zip(leg[1:], scale[:2], strict=True):
            model.body_pos[model.jnt_bodyid[model.joint(name).id]] *= factor
        model.geom_pos[model.geom(foot).id] *= scale[2]
    mujoco.mj_setConst(model, mujoco.MjData(model))
