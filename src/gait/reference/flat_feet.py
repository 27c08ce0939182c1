"""Soles: where a flat foot touches the ground, and what it measures while all of it does.

Joint torques determine force and moment of the ground on the foot, and these the centre of pressure. A foot that is
hardly loaded turns about its lowest corners instead. A sole that rests does not turn, so that its joints measure the
angular rate of the body, and with it the bias of the gyro.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot import Chain

LEVEL = 0.005
"""Height by which corners of a sole differ, m, that touch the ground together."""
LIGHT, LOADED = 0.1, 0.2
"""Shares of the weight below which the lowest corners count, and above which the centre of pressure does."""
INSIDE = 0.8
"""Share of the sole's extent within which the point of contact is while all corners are loaded."""
BIAS_STD, BIAS_BY_TURN = 1.0, 40.0
"""Standard deviation of the gyro bias by a sole that rests: always, rad/s, and for each rad/s about the vertical, since
feet pivot in a turn; squares add up. Errors last for a part of a stance, so one sample counts for little."""
FASTEST = 0.9
"""Of a sole that rests, rad/s."""


def contact_lever(chain: Chain, q: Array, up_b: Array, wrench_b: Array | None = None, weight: float = 1.0) -> Array:
    """From the point of the foot that touches the ground to its centre (3,).

    A sphere touches below its centre. A sole touches where the centre of pressure is, within the box around its
    corners: of a force f and a moment m about the centre, r = up x m / (up . f). Where it is hardly loaded, or the
    wrench (6,) is not known, the corners' mean counts, with weights exp(-height / LEVEL).
    """
    lever = chain.foot.radius * up_b
    if not chain.foot.is_flat:
        return lever
    R = chain.link_poses(q)[0][-1]
    corners = chain.foot.corners @ R.T  # (C, 3)
    height = corners @ up_b
    lowest = np.exp((height.min() - height) / LEVEL)
    geometric = lever - lowest @ corners / lowest.sum()
    normal = 0.0 if wrench_b is None else float(up_b @ wrench_b[:3])
    share = min((normal / weight - LIGHT) / (LOADED - LIGHT), 1.0)
    if wrench_b is None or not share > 0.0:
        return np.asarray(geometric)
    at = R.T @ np.cross(up_b, wrench_b[3:]) / normal
    pressure = R @ np.clip(at, chain.foot.corners.min(axis=0), chain.foot.corners.max(axis=0))
    return np.asarray(geometric + share * (lever - pressure - geometric))


def sole_rests(chain: Chain, q: Array, up_b: Array, lever_b: Array, load: float) -> bool:
    """Whether all corners are loaded: the sole carries part of the weight, and its point of contact is not at an edge.

    Args:
        chain: the leg.
        q: its joint angles (J,).
        up_b: direction up (3,).
        lever_b: of `contact_lever` (3,).
        load: normal force as a share of the robot's weight.
    """
    if not chain.foot.is_flat or not load >= LOADED:
        return False
    at = chain.link_poses(q)[0][-1].T @ (chain.foot.radius * up_b - lever_b)
    low, high = chain.foot.corners.min(axis=0), chain.foot.corners.max(axis=0)
    return bool((np.abs(at - 0.5 * (low + high)) <= INSIDE * 0.5 * (high - low))[:2].all())


def sole_bias_variance(turn: float) -> float:
    """Variance of the gyro bias by a sole that rests, (rad/s)^2, on a body that turns about the vertical (rad/s)."""
    return BIAS_STD**2 + (BIAS_BY_TURN * turn) ** 2
