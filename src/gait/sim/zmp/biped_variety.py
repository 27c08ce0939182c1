"""Bipeds with soles under stiff position control, as described or drawn at random around one.

A controller that follows planned joint angles needs drives that are stiffer than those a policy has, so gains, rotor
inertia and torque limits are set here, in proportion to weight and leg length, and stand in the description of a log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.robot import Chain, Foot, Link, Robot
from gait.robot.serial_chain import combined
from gait.sim.policy.scene_variety import stretches
from gait.sim.settings import EpisodeConfig
from gait.sim.variety import Variant
from gait.sim.world import TIMESTEP

GRAVITY = 9.81
STIFFNESS, ANKLES = 4.0, 0.6
"""Position gain over weight times leg length, and that of the ankles' joints relative to the others."""
LEG_JOINTS = 5, 6, 7
"""How many joints of its own a leg may have: without an ankle that rolls, or with toes on a joint."""
DAMPING_TIME = 0.02
"""Velocity gain over position gain, s."""
_QUICK = 50.0
"""Natural frequency of a drive with its own rotor, rad/s, at least."""
_ROTOR = 2.5
"""Rotor inertia over the velocity gain times the time step, at least: the damping is explicit."""
_STRONG = 1.5
"""Torque limit over weight times leg length, at least."""
_ROOM = 0.3
"""How much farther joints turn than described, rad: relatives squat more deeply than the robot they come from."""


@dataclass(frozen=True)
class BipedVariant(Variant):
    """A variant with soles. `hip` is the distance of the legs, `foot` the height of the ankle."""

    drop: float = 1.0
    """Height of base_link above the hips, a factor."""
    sole: tuple[float, float] = (1.0, 1.0)
    """Length and width of the soles, factors."""
    ahead: float = 0.0
    """Shift of the soles along x, m."""
    imu: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Shift of the IMU, m."""
    stiffness: float = 1.0
    """Of the drives, beyond what weight and length ask for."""
    damping_time: float = DAMPING_TIME
    """Velocity gain over position gain, s."""


def draw_biped(rng: np.random.Generator, name: str) -> BipedVariant:
    """Draw a biped between the size of a child and that of a grown person."""

    def uniform(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 4)

    size = rng.uniform(0.65, 1.3)
    weight = float(size) ** 2.5
    return BipedVariant(
        name=name,
        hip=round(size * uniform(0.5, 1.3), 4),
        thigh=round(size * uniform(0.85, 1.15), 4),
        calf=round(size * uniform(0.85, 1.15), 4),
        base_mass=round(weight * uniform(0.6, 1.5), 4),
        leg_mass=round(weight * uniform(0.7, 1.8), 4),
        foot=round(size * uniform(0.7, 1.7), 4),
        drop=round(size * uniform(0.0, 1.6), 4),
        sole=(round(size * uniform(0.75, 1.4), 4), round(size * uniform(0.8, 1.7), 4)),
        ahead=round(size * uniform(-0.02, 0.02), 4),
        imu=(
            round(size * uniform(-0.12, 0.08), 4),
            round(size * uniform(-0.05, 0.05), 4),
            round(size * uniform(-0.05, 0.4), 4),
        ),
        stiffness=round(float(np.exp(rng.uniform(*np.log((0.4, 2.5))))), 4),
        damping_time=uniform(0.01, 0.03),
    )


def draw_biped_episode(rng: np.random.Generator, config: EpisodeConfig) -> EpisodeConfig:
    """Friction and control rate of an episode: ground that holds, and some that is slippery."""
    friction = rng.uniform(0.5, 1.2) if rng.random() < 0.85 else rng.uniform(0.2, 0.4)
    return replace(config, friction=friction, control_rate=int(rng.choice((200, 250, 500))))


def check_biped(robot: Robot) -> None:
    """Raise a GaitError unless the robot has two legs of five to seven joints of their own, with soles."""
    fits = robot.num_legs == 2 and all(
        leg.num_joints == len(leg.axes)
        and leg.num_joints - leg.shared in LEG_JOINTS
        and leg.foot.is_flat
        and not leg.slides.any()
        for leg in robot.chains
    )
    if not fits:
        feet = "; if its feet are flat, give their soles with `gait robot import FILE --sole`"
        points = robot.num_legs == 2 and not any(leg.foot.is_flat for leg in robot.legs)
        raise GaitError(
            "the gait zmp needs two legs of five to seven joints that turn, with soles, which"
            f" {robot.name} does not have: choose another gait, or --robot g1{feet if points else ''}"
        )


def without_waist(robot: Robot) -> Robot:
    """The robot with the joints that both legs share held where they stand, so that they belong to the base."""
    waist = robot.chains[0].shared
    if not waist:
        return robot
    own = np.concatenate([np.arange(first + waist, last) for first, last in pairwise(robot.leg_start)])
    held = [leg.link_poses(q) for leg, q in zip(robot.chains, robot.by_leg(robot.q_stand), strict=True)]
    links = [robot.base] + [
        Link(float(leg.mass[s]), points[s] + R[s] @ leg.com[s], R[s] @ leg.inertia[s] @ R[s].T)
        for leg, (R, points, _) in zip(robot.legs, held, strict=True)
        for s in range(waist)
    ]
    legs = tuple(_cut(leg, waist, R, points) for leg, (R, points, _) in zip(robot.legs, held, strict=True))
    columns = {
        name: getattr(robot, name)[own]
        for name in (
            "q_lower", "q_upper", "torque_limit", "velocity_limit", "damping", "friction", "kp", "kd", "q_stand",
            "zeros",
        )
    }  # fmt: skip
    return replace(robot, legs=legs, base=combined(links), **columns)


def _cut(leg: Chain, waist: int, R: Array, points: Array) -> Chain:
    """A leg without its first joints, in axes of the base as the last of them turns them."""
    turn, last = R[waist - 1], len(leg.axes)
    return replace(
        leg,
        axes=leg.axes[waist:] @ turn.T,
        offsets=np.concatenate([points[waist : waist + 1], leg.offsets[waist + 1 :] @ turn.T]),
        mass=leg.mass[waist:],
        com=leg.com[waist:] @ turn.T,
        inertia=turn @ leg.inertia[waist:] @ turn.T,
        armature=leg.armature[waist:],
        joint_names=leg.joint_names[waist:],
        foot=replace(leg.foot, corners=leg.foot.corners @ turn.T),
        slides=leg.slides[waist:],
        source=np.arange(last - waist),
        ratio=leg.ratio[waist:],
        shift=leg.shift[waist:],
    )


@lru_cache(maxsize=8)
def biped_of(name_or_path: str, variant: BipedVariant | None) -> Robot:
    """The robot, or a relative of it, with stiff drives. Shared, so nobody may change its arrays."""
    robot = Robot.load(name_or_path)
    check_biped(robot)
    robot = without_waist(robot)
    return _driven(robot, BipedVariant(robot.name)) if variant is None else _driven(_varied(robot, variant), variant)


def _varied(robot: Robot, variant: BipedVariant) -> Robot:
    size = 0.5 * (variant.thigh + variant.calf)
    base = Link(
        robot.base.mass * variant.base_mass,
        robot.base.com * size,
        robot.base.inertia * variant.base_mass * size**2,
    )
    shapes = robot.shapes
    radii = {name: getattr(shapes, name) * size for name in ("hip_radius", "thigh_radius", "calf_radius")}
    return replace(
        robot,
        name=variant.name,
        source=f"a random relative of {robot.name}",
        legs=tuple(_varied_leg(leg, variant) for leg in robot.legs),
        base=base,
        imu_position=robot.imu_position * size + np.array(variant.imu),
        shapes=replace(shapes, base=shapes.base * size, **radii),
    )


def _varied_leg(leg: Chain, variant: BipedVariant) -> Chain:
    factors = np.array(stretches(leg, variant))
    offsets = leg.offsets * np.concatenate([[1.0], factors])[:, None]
    # The hips' distance is spread over the joints before the thigh.
    hips = len(leg.axes) - 3
    offsets[:hips, 1] = leg.offsets[:hips, 1] * variant.hip
    offsets[0] = leg.offsets[0] * (1.0, variant.hip, variant.drop)
    offsets[-1, 0] += variant.ahead
    return replace(
        leg,
        offsets=offsets,
        mass=leg.mass * variant.leg_mass,
        com=leg.com * factors[:, None],
        inertia=leg.inertia * variant.leg_mass * (factors**2)[:, None, None],
        foot=Foot(leg.foot.radius, leg.foot.corners * (*variant.sole, 1.0)),
    )


def _ankle(leg: Chain) -> int:
    """The first joint of the ankle: the one behind the last long link."""
    lengths = np.linalg.norm(leg.offsets[1:-1], axis=1)
    return int(np.flatnonzero(lengths > 0.5 * lengths.max())[-1]) + 1


def _driven(robot: Robot, variant: BipedVariant) -> Robot:
    """The robot with drives that hold planned angles."""
    load = robot.mass * GRAVITY * robot.leg_length
    ankles = [np.arange(leg.num_joints) >= _ankle(leg) for leg in robot.legs]
    kp: Array = STIFFNESS * variant.stiffness * load * np.where(np.concatenate(ankles), ANKLES, 1.0)
    # Heavy rotors in a light robot need stiffer drives than its weight does, or the feet come late.
    kp = np.maximum(kp, _QUICK**2 * robot.armature)
    kd = variant.damping_time * kp
    rotor = robot.by_leg(_ROTOR * kd * TIMESTEP)
    legs = tuple(
        replace(leg, armature=np.maximum(leg.armature, own)) for leg, own in zip(robot.legs, rotor, strict=True)
    )
    return replace(
        robot,
        legs=legs,
        # A description has the velocity gain of a servo as the joint's damping too: it must not act twice, for what a
        # joint takes beyond its drive's torque looks like a force on the foot.
        damping=np.where(robot.damping == robot.kd, 0.0, robot.damping),
        kp=kp,
        kd=kd,
        torque_limit=np.maximum(robot.torque_limit, _STRONG * load),
        q_lower=robot.q_lower - _ROOM,
        q_upper=robot.q_upper + _ROOM,
    )
