"""Random relatives of a scene's robot: other lengths, masses and feet, within what its policy walks with.

The scene is changed, and the robot's description is read from the changed scene as `gait robot import` reads any: what
an estimator or a training gets is what was simulated. Left and right legs change alike.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gait.errors import GaitError
from gait.robot import Chain, Robot
from gait.robot.leg_detection import robot_of
from gait.robot.mjcf_reader import tree_of
from gait.sim.physics import mujoco
from gait.sim.policy.mjcf import Scene
from gait.sim.policy.rig import Rig, known_robot, rig_of
from gait.sim.settings import EpisodeConfig, PolicyFiles
from gait.sim.variety import Variant

LENGTHS, MASSES, SOLES = 0.1, 0.15, 0.15
"""Largest difference of factors from 1."""


def draw_relative(rng: np.random.Generator, name: str) -> Variant:
    """Draw a robot that a policy made for another one still walks with."""

    def factor(spread: float) -> float:
        return round(float(rng.uniform(1.0 - spread, 1.0 + spread)), 4)

    return Variant(
        name=name,
        thigh=factor(LENGTHS),
        calf=factor(LENGTHS),
        base=(1.0, factor(LENGTHS)),
        base_mass=factor(MASSES),
        leg_mass=factor(MASSES),
        foot=factor(SOLES),
    )


def episode_rig(config: EpisodeConfig) -> Rig:
    """The policy of an episode, with the robot of that episode."""
    assert config.policy is not None
    return rig_of(config.policy) if config.variant is None else _relative(config.policy, config.variant)


@lru_cache(maxsize=4)
def _relative(files: PolicyFiles, variant: Variant) -> Rig:
    """The rig of a policy with another robot under it. Shared: its arrays must not be changed."""
    rig = rig_of(files)
    known = known_robot(rig)
    scene = RelativeScene(rig.scene, known, variant)
    robot = replace(scene.described(known), name=variant.name, source=f"a random relative of {known.name}")
    if isinstance(rig.robot, Robot):
        return replace(rig, scene=scene, robot=robot)
    return replace(rig, scene=scene, robot=replace(rig.robot, name=variant.name, described=robot))


class RelativeScene(Scene):
    """A scene with a relative of its robot."""

    def __init__(self, scene: Scene, robot: Robot, variant: Variant) -> None:
        self._robot, self._variant = robot, variant
        super().__init__(scene.path)

    def _parsed(self) -> tuple[Any, tuple[str, ...]]:
        spec, dropped = super()._parsed()
        vary_scene(spec, self._robot, self._variant)
        return spec, dropped

    def described(self, like: Robot) -> Robot:
        """The description of the robot in the scene, with the legs in the order and by the names of another one."""
        found = robot_of(tree_of(self.nominal, self.path, self.dropped), base=self.base)
        by_joints = {leg.joint_names: leg for leg in found.legs}
        if {leg.joint_names for leg in like.legs} != set(by_joints):
            raise GaitError(f"{self.path}: the legs found in the scene are not those of {like.name}")
        legs = tuple(replace(by_joints[leg.joint_names], name=leg.name) for leg in like.legs)
        order = [found.joint_names.index(name) for name in like.joint_names]
        arrays: dict[str, Any] = {
            name: value[order]
            for name, value in vars(found).items()
            if isinstance(value, np.ndarray) and value.shape == (found.num_joints,)
        }
        return replace(found, legs=legs, imu_position=like.imu_position, imu_quat_wxyz=like.imu_quat_wxyz, **arrays)


def vary_scene(spec: Any, robot: Robot, variant: Variant) -> None:
    """Change the bodies of a spec to those of a variant."""
    bodies = {joint.name: body for body in spec.bodies for joint in body.joints}
    for leg in robot.legs:
        factors = stretches(leg, variant)
        for k, name in enumerate(leg.joint_names):
            body = bodies[name]
            body.pos = np.array(body.pos) * ((*variant.base, 1.0) if k == 0 else factors[k - 1])
            _scale(body, factors[k], variant.leg_mass)
    _weigh_upper(spec.body(robot.base_link), {bodies[leg.joint_names[0]].name for leg in robot.legs}, variant.base_mass)


def _weigh_upper(body: Any, legs: set[str], mass: float) -> None:
    """Another mass of everything but the legs."""
    if body.name in legs:
        return
    if body.explicitinertial:
        _weigh(body, mass)
    for child in body.bodies:
        _weigh_upper(child, legs, mass)


def stretches(leg: Chain, variant: Variant) -> list[float]:
    """How much each link of a leg is stretched: those of the thigh, then those of the calf, then those of the foot."""
    lengths = np.linalg.norm(leg.offsets[1:], axis=1)
    # The ankle is the last joint at the end of a long link, the knee the long one before it.
    calf = int(np.flatnonzero(lengths[:-1] > 0.5 * lengths[:-1].max())[-1])
    return [variant.thigh] * calf + [variant.calf] + [variant.foot] * (len(lengths) - calf - 1)


def _scale(body: Any, size: float, mass: float) -> None:
    """A link of another size and mass; what hangs on its joints is moved by the caller."""
    for part in (*body.geoms, *body.sites):
        part.pos = np.array(part.pos) * size
    for geom in body.geoms:
        if geom.type != mujoco.mjtGeom.mjGEOM_MESH:
            geom.size = np.array(geom.size) * size
    for child in body.bodies:
        if not len(child.joints):
            child.pos = np.array(child.pos) * size
            _scale(child, size, mass)
    if body.explicitinertial:
        body.ipos = np.array(body.ipos) * size
    _weigh(body, mass, size)


def _weigh(body: Any, mass: float, size: float = 1.0) -> None:
    """Another mass of the same shape, which may be larger."""
    if not body.explicitinertial:
        raise GaitError(f"the body {body.name} has no <inertial>: a robot without cannot be varied")
    body.mass *= mass
    # Of the two ways to give an inertia, the one that is not used is not finite, or zero.
    body.fullinertia = np.array(body.fullinertia) * mass * size**2
    body.inertia = np.array(body.inertia) * mass * size**2
