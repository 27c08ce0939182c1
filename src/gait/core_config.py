"""Robot and filter parameters as the C core takes them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from gait import lie
from gait.binding import MAX_JOINTS, MAX_LEGS, CRobot, CSettings, fill
from gait.errors import GaitError
from gait.parameters import LEG_INSTANT, Limits, Options, Prior, ProcessNoise
from gait.robot import Robot

AT_REST = Prior(rotation=0.1, velocity=0.5)
"""What is known after a start from gravity: the robot was at rest, more or less."""


def core_robot(robot: Robot, limits: Limits | None = None, gravity: float = -9.81) -> CRobot:
    """A robot as the core takes it, joint limits widened by their margins."""
    limits = limits or Limits()
    if robot.num_legs > MAX_LEGS or robot.num_joints > MAX_JOINTS:
        size = f"{robot.num_legs} legs with {robot.num_joints} joints"
        raise GaitError(f"{robot.name} has {size}: the core takes at most {MAX_LEGS} with {MAX_JOINTS}")
    c = CRobot(legs=robot.num_legs, joints=robot.num_joints)
    c.leg_start[: robot.num_legs + 1] = [3 * leg for leg in range(robot.num_legs + 1)]
    lengths = np.linalg.norm(robot.offsets[:, 2], axis=1) + np.linalg.norm(robot.offsets[:, 3], axis=1)
    c.weight, c.foot_radius, c.leg_length = robot.mass * abs(gravity), robot.foot_radius, lengths.max()
    values = {
        "R_bi": lie.rotation_from_quat(robot.imu_quat_wxyz).ravel(),
        "p_bi": robot.imu_position,
        "offsets": robot.offsets,
        "signs": robot.signs,
        "inertial": robot.leg_inertial,
        "armature": robot.armature,
        "kp": robot.kp,
        "kd": robot.kd,
        "torque_limit": robot.torque_limit,
        "q_lower": robot.q_lower - limits.joint_margin,
        "q_upper": robot.q_upper + limits.joint_margin,
        "dq_limit": robot.velocity_limit * limits.joint_speed,
    }
    for name, value in values.items():
        fill(getattr(c, name), value)
    return c


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
        "exact_mean", "exact_phi",
    ):  # fmt: skip
        setattr(s, name, getattr(o, name))
    s.leg_instant, s.leg_gate, s.max_gyro, s.max_accel = LEG_INSTANT, o.leg_guard, limits.gyro, limits.accel
    s.hold, s.stale, s.clock_reset = limits.hold, limits.stale, limits.clock_reset
    s.prior_std[:], s.rest_std[:] = deviations(prior), deviations(AT_REST)
    return s
