"""Robot and filter parameters as the C core takes them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.binding import ABOUT_ANY, ABOUT_X, ALONG, MAX_JOINTS, MAX_LEGS, MAX_LINKS, CRobot, CSettings, fill
from gait.errors import GaitError
from gait.parameters import LEG_INSTANT, Limits, Options, Prior, ProcessNoise
from gait.robot import Robot, inertial_rows

AT_REST = Prior(rotation=0.1, velocity=0.5)
"""What is known after a start from gravity: the robot was at rest, more or less."""


def core_robot(robot: Robot, limits: Limits | None = None, gravity: float = -9.81) -> CRobot:
    """A robot as the core takes it, joint limits widened by their margins."""
    limits = limits or Limits()
    chains = robot.chains
    links = [len(chain.axes) for chain in chains]
    if robot.num_legs > MAX_LEGS or robot.num_joints > MAX_JOINTS or sum(links) > MAX_LINKS:
        size = f"{robot.num_legs} legs with {robot.num_joints} joints"
        raise GaitError(f"{robot.name} has {size}: the core takes at most {MAX_LEGS} with {MAX_JOINTS}")
    c = CRobot(legs=robot.num_legs, joints=robot.num_joints)
    c.leg_start[: robot.num_legs + 1] = robot.leg_start.tolist()
    c.link_start[: robot.num_legs + 1] = np.cumsum([0, *links]).tolist()
    c.weight, c.leg_length = robot.mass * abs(gravity), robot.leg_length
    kinds = [_kind(axis, slides) for chain in chains for axis, slides in zip(chain.axes, chain.slides, strict=True)]
    c.link_kind[: len(kinds)] = [kind for kind, _ in kinds]
    c.link_joint[: len(kinds)] = np.concatenate([chain.source for chain in chains]).tolist()
    c.shared[: robot.num_legs] = [chain.shared for chain in chains]
    c.corner_count[: robot.num_legs] = [len(chain.foot.corners) for chain in chains]
    for leg, chain in enumerate(chains):
        fill(c.corners[leg], chain.foot.corners)
    axes = np.concatenate([chain.axes for chain in chains])
    # About an axis of the frame: its direction goes into the ratio.
    signs = np.array([sign for _, sign in kinds])
    values = {
        "R_bi": lie.rotation_from_quat(robot.imu_quat_wxyz).ravel(),
        "p_bi": robot.imu_position,
        "hips_b": robot.hips_b,
        "axes": axes * signs[:, None],
        "ratio": signs * np.concatenate([chain.ratio for chain in chains]),
        "shift": signs * np.concatenate([chain.shift for chain in chains]),
        "offsets": np.concatenate([chain.offsets[:-1] for chain in chains]),
        "feet": np.array([chain.offsets[-1] for chain in chains]),
        "foot_radius": np.array([chain.foot.radius for chain in chains]),
        "inertial": np.concatenate([inertial_rows(chain) for chain in chains]),
        "armature": robot.armature,
        "kp": robot.kp,
        "kd": robot.kd,
        "torque_limit": robot.torque_limit,
        "q_lower": robot.q_lower + robot.zeros - limits.joint_margin,
        "q_upper": robot.q_upper + robot.zeros + limits.joint_margin,
        "dq_limit": robot.velocity_limit * limits.joint_speed,
    }
    for name, value in values.items():
        fill(getattr(c, name), value)
    return c


def _kind(axis: Array, slides: bool) -> tuple[int, float]:
    """How a link moves, and the sign of its axis where that is an axis of the frame."""
    if slides:
        return ALONG, 1.0
    k = int(np.argmax(np.abs(axis)))
    return (ABOUT_X + k, float(axis[k])) if abs(axis[k]) == 1.0 else (ABOUT_ANY, 1.0)


def deviations(prior: Prior) -> list[float]:
    """Standard deviations of rotation, velocity, position, gyro bias and accelerometer bias (15)."""
    p = prior
    std = [p.rotation, p.rotation, p.yaw, *[p.velocity] * 3, *[p.position] * 3]
    return [*std, *[p.gyro_bias] * 3, *[p.accel_bias] * 3]


def core_settings(noise: ProcessNoise, prior: Prior, options: Options, limits: Limits) -> CSettings:
    """The filter's parameters as the core takes them."""
    s, o = CSettings(), options
    for one in fields(noise):
        setattr(s.noise, one.name, getattr(noise, one.name))
    for name in (
        "gravity", "max_gap", "gap_accel", "gap_rate", "inflation", "leg_inflation", "joint_delay", "joint_delay_std",
        "exact_mean", "exact_phi", "flexure",
    ):  # fmt: skip
        setattr(s, name, getattr(o, name))
    s.leg_instant, s.leg_gate, s.max_gyro, s.max_accel = LEG_INSTANT, o.leg_guard, limits.gyro, limits.accel
    s.hold, s.stale, s.clock_reset = limits.hold, limits.stale, limits.clock_reset
    s.joint_margin = limits.joint_margin
    s.prior_std[:], s.rest_std[:] = deviations(prior), deviations(AT_REST)
    return s
