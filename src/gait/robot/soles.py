"""Feet from contact geometry: a sphere, a sole with corners, or a point where nothing is known."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot.model_tree import Frame, ModelTree, words_of
from gait.robot.serial_chain import MOST_CORNERS, Foot

FLAT = 0.03
"""Extent, m, from which on contact points are a sole."""
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
    # The link that carries the foot in stance, seen from where it is at zero.
    R_zero, p_zero = zero[group]
    R_stance, p_stance = stance[group]
    turn = R_stance @ R_zero.T
    if shapes:
        at_zero = np.vstack([zero[i][1] + shape.points @ zero[i][0].T for i, shape in shapes])
        radii = np.concatenate([np.full(len(shape.points), shape.radius) for _, shape in shapes])
        below = (p_stance + (at_zero - p_zero) @ turn.T)[:, 2] - radii
        near = below < below.min() + 0.004 + 0.05 * min(float(np.ptp(at_zero, axis=0).max()), 0.3)
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
