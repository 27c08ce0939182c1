"""What an estimator with `gait-legs` keeps beside the rest: the robot, its last samples and the features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait._compile import kernel, types, uncompiled
from gait.arrays import Array
from gait.nets.leg_features import BODY, MOTION, PER_LEG, RATES, SHARED, Body, Motion, body_of
from gait.parameters import Options
from gait.robot import Robot
from gait.runtime.leg_fusion import INSTANT, SETTINGS, WORK

TAU_MARGIN = 3.0
"""A torque that is so many times the joint's limit was not measured but made up by a broken sensor."""
NEVER = 1e9
"""Seconds: longer than any."""
_FIXED = SETTINGS + 2 + WORK + 4 + 1 + 24 + 3 * RATES
_PER_LEG = 9 + 12 + 3 + 30 + 3 + 9 + 9 + 1 + 9 * 3 + PER_LEG
_SAMPLES = 3 * SHARED


class LegRoom(NamedTuple):
    """All of it, as views of one buffer."""

    settings: Array
    """Of `fuse_legs`."""
    clock: Array
    """When the network took its last sample, and seconds for which a torque is held (2,)."""
    work: Array
    """Room of the fusion."""
    body: Body
    """The robot."""
    motion: Motion
    """What the features remember."""
    gains: Array
    """kp, kd and the torque limit (3, J)."""
    age: Array
    """Seconds since a leg's torques were last known (L,)."""
    samples: Array
    """The last sample, this one, and what the network takes (3, 6 + 3 J): gyro, accel, q, dq, tau."""
    features: Array
    """Of `gait.nets.leg_features` (6 + 12 L,)."""


_V, _M = types.float64[::1], types.float64[:, ::1]
_v, _m = np.zeros(3), np.zeros((3, 3))
ROOM = types.types.NamedTuple([_V, _V, _V, BODY, MOTION, _M, _V, _M, _V], LegRoom)


def count_room(legs: int) -> int:
    """Numbers that it takes."""
    return _FIXED + _SAMPLES + SHARED + _PER_LEG * legs


@kernel(ROOM(types.float64[::1], types.int64, types.int64, _M))
def room_in(floats: Array, start: int, legs: int, mount: Array) -> LegRoom:
    """What is kept from `start` on, as views."""
    s, j = start, 3 * legs
    clock, work = s + SETTINGS, s + SETTINGS + 2
    scalars = work + WORK + 9 * legs
    begun, rates = scalars + 4, scalars + 5
    motion_work = rates + 3 * RATES
    offsets = motion_work + 24
    signs = offsets + 12 * legs
    inertial = signs + 3 * legs
    armature = inertial + 30 * legs
    moved = armature + j
    gains = moved + 3 * j
    age = gains + 3 * j
    samples = age + legs
    features = samples + 3 * (SHARED + 3 * j)
    body = Body(
        floats[offsets:signs].reshape(legs, 4, 3), floats[signs:inertial].reshape(legs, 3),
        floats[inertial:armature].reshape(legs, 3, 10), floats[armature:moved], mount, floats[scalars],
        floats[scalars + 1], floats[scalars + 2], floats[scalars + 3],
    )  # fmt: skip
    motion = Motion(
        floats[moved : moved + j], floats[moved + j : moved + 2 * j], floats[moved + 2 * j : moved + 3 * j],
        floats[begun : begun + 1], floats[rates:motion_work].reshape(RATES, 3),
        floats[motion_work:offsets].reshape(8, 3),
    )  # fmt: skip
    return LegRoom(
        floats[s:clock], floats[clock:work], floats[work:scalars], body, motion, floats[gains:age].reshape(3, j),
        floats[age:samples], floats[samples:features].reshape(3, SHARED + 3 * j),
        floats[features : features + SHARED + PER_LEG * legs],
    )  # fmt: skip


def put_robot(floats: Array, start: int, mount: Array, robot: Robot, options: Options, hold: float) -> LegRoom:
    """Write what stays the same; returns the views."""
    body, legs = body_of(robot, options.joint_delay), robot.num_legs
    scalars = start + SETTINGS + 2 + WORK + 9 * legs
    floats[scalars : scalars + 4] = body.foot_radius, body.leg_length, body.weight, body.delay
    room = uncompiled(room_in)(floats, start, legs, mount)
    for ours, theirs in zip(room.body[:4], body[:4], strict=True):
        ours[...] = theirs
    room.gains[...] = robot.kp, robot.kd, robot.torque_limit
    room.settings[:] = (
        options.leg_inflation**2, options.leg_guard**2, INSTANT**2, options.joint_delay,
        (options.joint_delay_std / INSTANT) ** 2,
    )  # fmt: skip
    room.clock[1] = hold
    return room


def forget_legs(room: LegRoom) -> None:
    """As before the first sample."""
    room.age[:] = NEVER
    room.motion.begun[:] = 0.0
    room.samples[...] = 0.0
