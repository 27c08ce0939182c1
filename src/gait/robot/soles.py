"""Feet from contact geometry: a sphere, a sole with corners, or a point where nothing is known."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.lie import so3_exp
from gait.robot.model_tree import Frame, ModelTree, words_of
from gait.robot.serial_chain import MOST_CORNERS, Foot

FLAT = 0.03
"""Extent, m, from which on contact points are a sole."""
MOST_TILT = 0.2
"""Of a sole in stance, rad."""
_LEVEL = 0.01
"""Tilt, rad, up to which a sole is level."""
_ORDER = ("sole", "foot", "feet", "toe", "ankle")
"""Words of the frames that are the place of a foot without geometry, the best first."""


def sole_of(
    tree: ModelTree, frames: list[Frame], zero: list[tuple[Array, Array]], stance: list[tuple[Array, Array]]
) -> tuple[Array, Foot]:
    """Centre of a foot in the base at zero (3,), and the foot.

    Args:
        tree: the model.
        frames: on the last link of the leg.
        zero: poses of the bodies in the base where all joints are at zero.
        stance: the same in stance, which tells what is below.
    """
    group = tree.group[frames[0].body]
    bodies = [i for i, own in enumerate(tree.group) if own == group]
    shapes = [(i, shape) for i in bodies for shape in tree.bodies[i].shapes]
    shapes = [pair for pair in shapes if pair[1].collides] or shapes
    # A ball on a link of its own is the foot, however the shank behind it lies where the stance is not known.
    own = [(i, shape) for i, shape in shapes if {"foot", "feet", "toe"} & set(words_of(tree.bodies[i].name))]
    if len(own) == 1 and len(own[0][1].points) == 1 and own[0][1].radius > 0.0:
        shapes = own
    turn = stance[group][0] @ zero[group][0].T  # of the link that carries the foot, from zero to stance
    if shapes:
        at_zero = np.vstack([zero[i][1] + shape.points @ zero[i][0].T for i, shape in shapes])
        radii = np.concatenate([np.full(len(shape.points), shape.radius) for _, shape in shapes])
        turn = _levelled(at_zero, radii, turn)
        below = at_zero @ turn[2] - radii
        near = _lowest(at_zero, below)
        points, radius = at_zero[near], float(radii[near][np.argmin(below[near])])
        corners = _corners(points, turn)
        if corners is not None:
            # Corners of the lowest points, lowered to where spheres of this radius would stand.
            centre = corners.mean(axis=0)
            return centre, Foot(radius, corners - centre)
        lowest = points[int(np.argmin(below[near]))]
        return (lowest if radius > 0.0 else points.mean(axis=0)), Foot(radius)
    frame = frames[0]
    R, p = zero[frame.body]
    return p + R @ frame.p, Foot()


def _lowest(points: Array, below: Array) -> BoolArray:
    """Which points (K, 3) are as low as the lowest, given the heights of what they stand for (K,)."""
    return np.asarray(below < below.min() + 0.004 + 0.05 * min(float(np.ptp(points, axis=0).max()), 0.3))


def _levelled(points: Array, radii: Array, turn: Array) -> Array:
    """The rotation to stance, tilted further to where a flat foot would come to rest on level ground (3, 3).

    A stance is seldom level to the degree. A foot that is put down turns until a point above the middle of what touches
    the ground is as low as it can be. What does not rest on a sole then, as a sphere, an edge or the side of a
    cylinder, stays as in stance.

    Args:
        points: of the foot at zero (K, 3).
        radii: around them (K,).
        turn: from zero to stance.
    """
    below = points @ turn[2] - radii
    reach = MOST_TILT * min(float(np.ptp(points, axis=0).max()), 0.3)
    low = points[below <= below.min() + reach]  # what can come to touch the ground
    span = max(float(np.ptp(low, axis=0).max()), FLAT)
    middle = 0.5 * (low.min(axis=0) + low.max(axis=0)) + 0.5 * span * turn[2]

    def height(tilt: Array) -> float:
        up = (so3_exp(tilt) @ turn)[2]
        return float(up @ middle - (points @ up - radii).min())

    best, step = np.zeros(3), MOST_TILT / 4.0
    least = height(best)
    while step > 1e-5:
        tries = [best + step * np.array([x, y, 0.0]) for x in (-1, 0, 1) for y in (-1, 0, 1)]
        heights = [height(one) if np.abs(one).max() <= MOST_TILT else np.inf for one in tries]
        found = int(np.argmin(heights))
        if heights[found] < least - 1e-9:
            best, least = tries[found], heights[found]
        else:
            step *= 0.5
    level = np.asarray(so3_exp(best) @ turn)
    below = points @ level[2] - radii
    rest = (points @ level.T)[below < below.min() + 0.0005, :2]
    _, _, axes = np.linalg.svd(rest - rest.mean(axis=0))
    is_sole = len(rest) > 2 and np.ptp(rest @ axes.T, axis=0).min() >= FLAT
    return level if is_sole and _LEVEL < np.abs(best).max() < MOST_TILT - step else turn


def place_rank(frame: Frame) -> int:
    """The smaller, the better a frame tells where a foot is."""
    words = words_of(frame.name)
    return next((k for k, word in enumerate(_ORDER) if word in words), len(_ORDER))


def _corners(points: Array, turn: Array) -> Array | None:
    """At most four points that span the sole (C, 3), or None of what is no larger than a point."""
    flat = points @ turn.T  # in stance, where the sole is level
    yaw = _yaw(flat[:, :2])
    turn = np.array([[np.cos(yaw), np.sin(yaw), 0.0], [-np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]]) @ turn
    flat = points @ turn.T
    low, high = flat[:, :2].min(axis=0), flat[:, :2].max(axis=0)
    long, wide = high - low
    if max(long, wide) < FLAT:
        return None
    distinct = flat[np.unique(np.round(flat[:, :2], 3), axis=0, return_index=True)[1]]
    if len(distinct) > MOST_CORNERS:
        # The plane of the sole, which need not be level in stance.
        plane = np.linalg.lstsq(np.column_stack([flat[:, :2], np.ones(len(flat))]), flat[:, 2], rcond=None)[0]
        if min(long, wide) < 0.3 * FLAT:  # an edge
            middle = 0.5 * (low + high)
            ends = (
                ([low[0], middle[1]], [high[0], middle[1]])
                if long > wide
                else ([middle[0], low[1]], [middle[0], high[1]])
            )
            distinct = np.array([[*end, plane @ [*end, 1.0]] for end in ends])
        else:
            distinct = np.array([[x, y, plane @ [x, y, 1.0]] for x in (high[0], low[0]) for y in (high[1], low[1])])
    return np.asarray(distinct @ turn)


def _yaw(points: Array) -> float:
    """By how much the box around points in a plane (K, 2) turns to be the smallest, rad; 0 unless it matters."""
    hull = _hull(points)
    best, least = 0.0, 0.98 * _area(points, 0.0)
    for edge in np.diff(np.vstack([hull, hull[:1]]), axis=0):
        yaw = float((np.arctan2(edge[1], edge[0]) + np.pi / 4.0) % (np.pi / 2.0) - np.pi / 4.0)
        if (area := _area(hull, yaw)) < least:
            best, least = yaw, area
    return best


def _area(points: Array, yaw: float) -> float:
    along = points @ np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    return float(np.prod(np.ptp(along, axis=0)))


def _hull(points: Array) -> Array:
    """The convex hull (H, 2), by monotone chains."""
    ordered = [tuple(point) for point in np.unique(np.round(points, 6), axis=0)]
    halves = []
    for side in (ordered, ordered[::-1]):
        half: list[tuple[float, ...]] = []
        for point in side:
            while len(half) > 1 and _left(half[-2], half[-1], point) <= 0.0:
                half.pop()
            half.append(point)
        halves += half[:-1]
    return np.array(halves or ordered)


def _left(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
