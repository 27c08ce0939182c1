"""Feet of a recording: contacts by the samples around each, places and speeds by the smoothed state.

Joints and their torques are read late, so that a filter finds touch-down and lift-off late (docs/feet.md). A recording
has what is read 8 and 16 ms later: the log-odds of contact are linear in the evidence of core/feet.c at three times.
`benchmarks/contacts.py fit` fits the factors on training walks, as it does those of the core.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from gait import quaternions
from gait.arrays import AnyArray, Array, BoolArray
from gait.binding import core, pointer
from gait.log.log import Log
from gait.log.record import interpolate, places
from gait.log.trajectory import Trajectory
from gait.nets.features import FORCE, PER_LEG, POSITION, SHARED, VELOCITY, leg_features
from gait.parameters import Options
from gait.robot import Robot

AHEAD = (0.0, 0.008, 0.016)
"""Seconds after a sample at which there is evidence of its contacts."""
ALWAYS = 0.862
FACTORS = np.array([
    [1.000, 6.398, 0.000, -2.436, -44.678],
    [2.160, 4.296, -1.815, -0.621, -24.693],
    [0.000, 4.140, -1.127, 0.000, 0.000],
])  # fmt: skip
"""Log-odds, a row for each time: by vertical force in weights, by it up to a knee, by speed over the ground, by
how fast it rises, m/s, and by height, m."""


class FootConstants(NamedTuple):
    """What the contacts of core/feet.c share with those of a recording."""

    knee: float
    """Vertical force, in weights, up to which a small one counts by itself."""
    lowest: float
    highest: float
    """Limits of a foot's height over the ground, m; the upper one where that is not known."""
    load: Array
    """Log-odds of contact by force and speed alone (4,)."""
    stands: float
    """Log-odds from which on they show the ground."""


@cache
def foot_constants() -> FootConstants:
    """Those of the core."""
    values = np.empty(8)
    core().gait_foot_constants(pointer(values))
    return FootConstants(float(values[0]), float(values[1]), float(values[2]), values[3:7], float(values[7]))


def evidence(log: Log, robot: Robot, states: Trajectory, delay: float | None = None) -> tuple[Array, Array]:
    """What log-odds are made of, (N, L, 5), and the feet in the world (N, L, 3); the log in the robot's order.

    Args:
        log: the samples.
        robot: whose they are.
        states: estimate of the body at each sample.
        delay: latency of the joints, s; the usual one by default.
    """
    legs = leg_features(log, robot, delay)[:, SHARED:].reshape(len(log), robot.num_legs, PER_LEG)
    up = quaternions.rotate_inverse(states.quat_wb_wxyz, np.tile([0.0, 0.0, 1.0], (len(log), 1)))
    force = np.einsum("nlk,nk->nl", legs[..., FORCE : FORCE + 3], up)
    slip = states.vel_b[:, None] - legs[..., VELOCITY : VELOCITY + 3]
    speed, shared = np.linalg.norm(slip, axis=2), foot_constants()
    small = np.minimum(force, shared.knee)
    feet_b = legs[..., POSITION : POSITION + 3] * robot.leg_length + robot.hips_b
    turned = [quaternions.rotate(states.quat_wb_wxyz, feet_b[:, leg]) for leg in range(robot.num_legs)]
    feet_w = np.stack(turned, axis=1) + states.pos_w[:, None]
    load = shared.load
    stands = load[0] + load[1] * force + load[2] * small + load[3] * speed > shared.stands
    rise = np.maximum(np.einsum("nlk,nk->nl", slip, up), 0.0)
    return np.stack([force, small, speed, rise, heights(feet_w[..., 2], stands)], axis=-1), feet_w


def heights(z: Array, stands: BoolArray) -> Array:
    """Height of each foot (N, L) over where it last stood, within limits; the upper one where that is not known."""
    row = np.where(stands, np.arange(len(z))[:, None], -1)
    last = np.maximum.accumulate(row, axis=0)
    over = z - np.take_along_axis(z, np.maximum(last, 0), axis=0)
    lowest, highest = foot_constants()[1:3]
    return np.clip(np.where((last >= 0) & np.isfinite(over), over, highest), lowest, highest)


def around(values: Array, t: Array, later: float = 0.0) -> Array:
    """Evidence (N, L, 5) `AHEAD` of the samples and `later` still (N, L, 3, 5); at the end that of the last sample."""
    columns = []
    for ahead in AHEAD:
        before, part = places(t, np.clip(t + ahead + later, t[0], t[-1]))
        columns.append(interpolate(values, before, part, ()))
    return np.stack(columns, axis=2)


def contact_probability(values: Array, t: Array, later: float = 0.0) -> Array:
    """Of each foot (N, L), from the evidence of the whole log, which is `later` than usual, s."""
    odds = ALWAYS + np.einsum("nlak,ak->nl", around(values, t, later), FACTORS)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -40.0, 40.0))))


def with_smoothed_feet(smoothed: Trajectory, filtered: Trajectory, log: Log, robot: Robot, delay: float) -> Trajectory:
    """The smoothed trajectory with feet that go with it; what the filter did not know of them stays unknown.

    Args:
        smoothed: with the filter's feet.
        filtered: the filter's, with the same.
        log: the samples in the robot's order.
        robot: whose they are.
        delay: latency of the joints, s.
    """
    contact, slip, height = (filtered.need(name) for name in ("contact", "slip", "ground_height"))
    changes: dict[str, AnyArray] = {"ground_height": height + smoothed.pos_w[:, 2] - filtered.pos_w[:, 2]}
    without = log.tau is None and log.q_des is None
    values, feet_w = evidence(log.replace(tau=np.zeros_like(log.q)) if without else log, robot, smoothed, delay)
    seen = np.isfinite(slip)
    changes["slip"] = np.where(seen, values[..., 2], np.nan)
    changes["foot_pos_w"] = np.where(seen[..., None], feet_w, np.nan)
    if not without:
        later = delay - Options().joint_delay
        changes["contact"] = np.where(np.isfinite(contact), contact_probability(values, log.t, later), np.nan)
    return smoothed.replace(**changes)
