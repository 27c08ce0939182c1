"""What a leg says about the body, in numbers that mean the same on every robot. Compiled, for training and running.

A leg whose foot stands still measures the velocity of the body by itself, v = -(J dq + w x p), plus what a round foot
rolls. Beside it stand the things that tell how far to believe it: where the foot is, in lengths of the leg, and the
force of the ground on it, in weights of the robot.

Joints are read later than the IMU. The turning w that belongs to them is that of the moment when they were read: with
the present one a body that pitches to and fro would seem to move to and fro as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gait import lie
from gait._compile import kernel, types
from gait.arrays import Array
from gait.errors import GaitError
from gait.filters.contacts import ground_force
from gait.parameters import Options
from gait.robot import Robot
from gait.robot.dynamics import leg_torque
from gait.robot.kinematics import calf_rate, foot_velocity, leg_fk

if TYPE_CHECKING:
    from gait.log.log import Log

SHARED = 6
"""Numbers of a sample that all legs share: angular rate and specific force in the axes of the base."""
POSITION, VELOCITY, FORCE, HASTE = 0, 3, 6, 9
"""Where the foot's position, the velocity that the leg measures and the ground's force begin among those of a leg; then
how fast the joints change the foot's velocity, m/s^2, which no network reads: what is read late is off by as much."""
PER_LEG = 12
REACH = 0.1
"""How far one unit of the network's output shifts a velocity, m/s: it begins with small corrections."""
SMOOTHING = 0.004
"""Time constant of the joint accelerations and torques behind the ground's force, s."""
RATES = 8
"""Angular rates that are remembered: joints may be late by one sample less."""
GRAVITY = 9.81


class Body(NamedTuple):
    """What the features need to know of a robot."""

    offsets: Array
    """Link offsets (L, 4, 3)."""
    signs: Array
    """Joint directions (L, 3)."""
    inertial: Array
    """Mass, centre and inertia of the links (L, 3, 10)."""
    armature: Array
    """Rotor inertias (J,)."""
    mount: Array
    """Axes of the IMU in the base (3, 3)."""
    foot_radius: float
    leg_length: float
    """Thigh and calf of the longest leg, m."""
    weight: float
    """Newtons."""
    delay: float
    """Seconds by which joints are read later than the IMU."""


class Motion(NamedTuple):
    """What the features remember of the sample before, and room to work in."""

    dq: Array
    """Joint velocities (J,)."""
    ddq: Array
    """Smoothed joint accelerations (J,)."""
    tau: Array
    """Smoothed joint torques (J,)."""
    begun: Array
    """1 after the first sample (1,)."""
    rates: Array
    """The last angular rates of the base, newest first (RATES, 3)."""
    work: Array
    """(8, 3)."""


def body_of(robot: Robot, delay: float | None = None) -> Body:
    """A robot as the features see it, whose joints are as late as usual unless a delay is given."""
    length = np.linalg.norm(robot.offsets[:, 2], axis=1) + np.linalg.norm(robot.offsets[:, 3], axis=1)
    return Body(
        np.ascontiguousarray(robot.offsets), np.ascontiguousarray(robot.signs),
        np.ascontiguousarray(robot.leg_inertial), np.ascontiguousarray(robot.armature, dtype=np.float64),
        lie.rotation_from_quat(robot.imu_quat_wxyz), float(robot.foot_radius), float(length.max()),
        float(robot.mass) * GRAVITY, Options().joint_delay if delay is None else delay,
    )  # fmt: skip


def new_motion(legs: int) -> Motion:
    """As before the first sample."""
    dq, ddq, tau = np.zeros((3, 3 * legs))
    return Motion(dq, ddq, tau, np.zeros(1), np.zeros((RATES, 3)), np.zeros((8, 3)))


_V, _M, _T = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
_v, _m, _t = np.zeros(3), np.zeros((3, 3)), np.zeros((1, 3, 3))
BODY = types.typeof(Body(_t, _m, _t, _v, _m, 0.0, 0.0, 0.0, 0.0))
MOTION = types.typeof(Motion(_v, _v, _v, _v, _m, _m))


@kernel(types.void(BODY, MOTION, _V, types.float64, _V))
def _late_rate(body: Body, motion: Motion, rate: Array, dt: float, out: Array) -> None:
    """The angular rate of the moment when the joints were read; this one is remembered."""
    rates = motion.rates
    for k in range(RATES - 1, -1, -1):
        for i in range(3):
            if k > 0 and motion.begun[0] > 0.0:
                rates[k, i] = rates[k - 1, i]
            else:
                rates[k, i] = rate[i]
    steps = min(body.delay / dt, RATES - 1.001) if dt > 0.0 else 0.0
    last = int(steps)
    for i in range(3):
        out[i] = rates[last, i] + (steps - last) * (rates[last + 1, i] - rates[last, i])


@kernel(types.void(BODY, MOTION, _V, _V, _V, _V, _V, types.float64, _V))
def leg_features_into(
    body: Body, motion: Motion, gyro: Array, accel: Array, q: Array, dq: Array, tau: Array, dt: float, out: Array
) -> None:
    """The features of one sample.

    Args:
        body: the robot.
        motion: what is remembered; brought up to this sample.
        gyro: angular rate in the axes of the IMU (3,).
        accel: specific force in the axes of the IMU (3,).
        q: joint angles (J,).
        dq: joint velocities (J,).
        tau: joint torques (J,).
        dt: seconds since the sample before.
        out: angular rate, specific force, then position, velocity, force and haste of each leg (6 + 12 L,).
    """
    work, legs = motion.work, body.signs.shape[0]
    # The last two are used twice, since there is no more room.
    foot, down, moved_or_force, turn_or_free = work[0], work[1], work[2], work[3]
    rate, jac = work[4], work[5:8]
    for i in range(3):
        out[i] = out[3 + i] = 0.0
        for j in range(3):
            out[i] += body.mount[i, j] * gyro[j]
            out[3 + i] += body.mount[i, j] * accel[j]
        down[i] = -out[3 + i]
    _late_rate(body, motion, out[0:3], dt, rate)
    share = dt / (SMOOTHING + dt) if motion.begun[0] > 0.0 else 0.0
    for leg in range(legs):
        a, z = 3 * leg, 3 * leg + 3
        ddq, torque = motion.ddq[a:z], motion.tau[a:z]
        for i in range(3):
            if share > 0.0:
                ddq[i] += share * ((dq[a + i] - motion.dq[a + i]) / dt - ddq[i])
                torque[i] += share * (tau[a + i] - torque[i])
            else:
                ddq[i], torque[i] = 0.0, tau[a + i]
            motion.dq[a + i] = dq[a + i]
        leg_fk(body.offsets, body.signs, leg, q[a:z], foot, jac)
        foot_velocity(jac, dq[a:z], rate, foot, moved_or_force)
        calf_rate(body.signs, leg, q[a:z], dq[a:z], rate, turn_or_free)
        mine = out[SHARED + PER_LEG * leg : SHARED + PER_LEG * (leg + 1)]
        for i in range(3):
            hip = body.offsets[leg, 0, i] + body.offsets[leg, 1, i]
            mine[POSITION + i] = (foot[i] - hip) / body.leg_length
            mine[VELOCITY + i] = -moved_or_force[i]
            mine[HASTE + i] = jac[i, 0] * ddq[0] + jac[i, 1] * ddq[1] + jac[i, 2] * ddq[2]
        # The centre of a foot that rolls moves by its turning times its height over the ground.
        mine[VELOCITY] += turn_or_free[1] * body.foot_radius
        mine[VELOCITY + 1] -= turn_or_free[0] * body.foot_radius
        leg_torque(
            body.offsets, body.signs, body.inertial, body.armature, leg, q[a:z], dq[a:z], ddq, down, turn_or_free
        )  # fmt: skip
        ground_force(jac, torque, turn_or_free, moved_or_force)
        for i in range(3):
            mine[FORCE + i] = moved_or_force[i] / body.weight
    motion.begun[0] = 1.0


@kernel(types.void(BODY, MOTION, _M, _M, _M, _M, _M, _V, _M))
def _rows_into(
    body: Body, motion: Motion, gyro: Array, accel: Array, q: Array, dq: Array, tau: Array, dt: Array, out: Array
) -> None:
    for k in range(len(out)):
        leg_features_into(body, motion, gyro[k], accel[k], q[k], dq[k], tau[k], dt[k], out[k])


def leg_features(log: Log, robot: Robot, body: Body | None = None) -> Array:
    """Features (N, 6 + 12 L) of a Log whose joints have the robot's order.

    Args:
        log: the samples.
        robot: whose they are.
        body: another idea of the robot's links than its description.

    Raises:
        GaitError: if the log has neither torques nor targets, which tell the ground's force.
    """
    body, legs = body or body_of(robot), robot.num_legs
    out = np.empty((len(log), SHARED + PER_LEG * legs))
    dt = np.diff(log.t, prepend=log.t[0] - 1.0 / log.rate)
    # A Log's arrays are read-only, which is another type to the compiler.
    arrays = (log.gyro, log.accel, log.q, log.dq, joint_torques(log, robot))
    gyro, accel, q, dq, tau = (np.array(a, dtype=np.float64) for a in arrays)
    _rows_into(body, new_motion(legs), gyro, accel, q, dq, tau, dt, out)
    return out


def joint_torques(log: Log, robot: Robot) -> Array:
    """Measured torques (N, J), or what the joints' PD loops make of the targets."""
    if log.tau is not None:
        return np.asarray(log.tau)
    if log.q_des is None:
        raise GaitError(
            "the log has neither joint torques nor joint targets, which this network reads: record one of them, or use"
            " a model without (gait-legs-kinematic-0)"
        )
    wanted = robot.kp * (log.q_des - log.q) - robot.kd * log.dq
    return np.clip(wanted, -robot.torque_limit, robot.torque_limit)


def flipped(vectors: int) -> list[bool]:
    """Which numbers change their sign in a mirror: rates about x and z, and whatever lies along y.

    Args:
        vectors: how many of legs stand behind angular rate and specific force.
    """
    return [True, False, True, *[False, True, False] * (1 + vectors)]
