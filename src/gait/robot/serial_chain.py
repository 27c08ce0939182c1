"""A leg as a serial chain of links, from base_link to its foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gait.arrays import Array, BoolArray, IntArray
from gait.lie import skew

MOST_JOINTS, MOST_CORNERS = 12, 4
"""Of one leg and of one foot, as the core has room for them."""


@dataclass(frozen=True)
class Link:
    """Mass properties of one rigid link, in its own frame."""

    mass: float
    com: Array
    """Centre of mass (3,)."""
    inertia: Array
    """Inertia about the centre of mass (3, 3)."""


def combined(links: Sequence[Link]) -> Link:
    """Links that are rigidly joined, all given in one frame, as one link (parallel axes)."""
    mass = sum(link.mass for link in links)
    if not mass > 0.0:  # some files have inertia without mass
        return Link(0.0, np.zeros(3), np.sum([np.zeros((3, 3)), *(link.inertia for link in links)], axis=0))
    com: Array = np.sum([link.mass * link.com for link in links], axis=0) / mass
    inertia = np.zeros((3, 3))
    for link in links:
        shift = link.com - com
        inertia += link.inertia + link.mass * (shift @ shift * np.eye(3) - np.outer(shift, shift))
    return Link(mass, com, inertia)


@dataclass(frozen=True)
class Foot:
    """What touches the ground: a point or sphere at the end of the chain, or a sole with corners."""

    radius: float = 0.0
    """Of the sphere, or of the spheres at the corners, m."""
    corners: Array = field(default_factory=lambda: np.zeros((0, 3)))
    """Corners of a flat foot around its centre, in the last link's frame (C, 3); none of a point or a sphere."""

    @property
    def is_flat(self) -> bool:
        """Whether the foot has a sole."""
        return len(self.corners) > 0


@dataclass(frozen=True, eq=False)
class Chain:
    """A leg of S links, each with a joint before it, and J encoders.

    Link frames are parallel to base_link where all joints are at zero, so a chain is its axes and offsets alone. Link s
    turns about its axis, or slides along it, by `ratio[s] * q[source[s]] + shift[s]`: there are as many encoders as
    links, unless a joint follows another one.
    """

    axes: Array
    """Unit axis of each joint (S, 3)."""
    offsets: Array
    """From base_link to the first joint, from joint to joint, and from the last to the foot's centre (S + 1, 3)."""
    mass: Array
    """Of each link (S,), kg."""
    com: Array
    """Centre of mass from the link's joint (S, 3)."""
    inertia: Array
    """About the centre of mass (S, 3, 3)."""
    armature: Array
    """Rotor inertia as the joint feels it (J,), kg m^2."""
    name: str = ""
    joint_names: tuple[str, ...] = ()
    """Of the joints with an encoder, base to foot."""
    foot: Foot = field(default_factory=Foot)
    slides: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Joints that are prismatic (S,); none by default."""
    source: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Encoder that each joint follows (S,); its own by default."""
    ratio: Array = field(default_factory=lambda: np.zeros(0))
    """(S,); 1 by default."""
    shift: Array = field(default_factory=lambda: np.zeros(0))
    """(S,), rad or m; 0 by default."""
    shared: int = 0
    """First joints that other legs have too, as those of a waist: their torques do not tell the force on this foot."""

    def __post_init__(self) -> None:
        """Fill in the defaults."""
        n = len(self.axes)
        usual = {"slides": np.zeros(n, np.bool_), "source": np.arange(n), "ratio": np.ones(n), "shift": np.zeros(n)}
        for name, values in usual.items():
            if len(getattr(self, name)) != n:
                object.__setattr__(self, name, values)

    @property
    def num_joints(self) -> int:
        """How many encoders the leg has."""
        return len(self.armature)

    @property
    def length(self) -> float:
        """From the hip to the foot along the links, m: what positions are scaled by."""
        return float(np.linalg.norm(self.offsets[self._hip + 1 :], axis=1).sum())

    @property
    def hip_b(self) -> Array:
        """Where the leg begins, in base_link at zero (3,): the last joint of its hip."""
        return np.asarray(self.offsets[: self._hip + 1].sum(axis=0))

    @property
    def _hip(self) -> int:
        """The last joint with most of the leg behind it: hips, and waists before them, have joints close together."""
        behind = np.cumsum(np.linalg.norm(self.offsets[:0:-1], axis=1))[::-1]
        return 1 if len(self.axes) == 3 else int(np.flatnonzero(behind >= 0.7 * behind[0])[-1])

    def moved(self, q: Array) -> Array:
        """Angles or lengths of the links' joints (..., S) of encoders (..., J)."""
        return np.asarray(self.ratio * np.asarray(q)[..., self.source] + self.shift)

    def gathered(self, per_link: Array) -> Array:
        """Columns (..., S) of the links' joints, summed up for the encoders that they follow (..., J)."""
        out = np.zeros((*per_link.shape[:-1], self.num_joints))
        for s, j in enumerate(self.source):
            out[..., j] += self.ratio[s] * per_link[..., s]
        return out

    def link_poses(self, q: Array) -> tuple[Array, Array, Array]:
        """Rotation of each link (..., S, 3, 3), points of the joints and the foot (..., S + 1, 3), axes (..., S, 3).

        All are in base_link, for encoders (..., J).
        """
        moved = self.moved(q)
        R = np.broadcast_to(np.eye(3), (*moved.shape[:-1], 3, 3))
        p = np.broadcast_to(self.offsets[0], (*moved.shape[:-1], 3))
        rotations, points, axes = [], [], []
        for s, axis in enumerate(self.axes):
            by, z = moved[..., s, None], R @ axis
            if self.slides[s]:
                p = p + by * z
            points.append(p)
            if not self.slides[s]:
                hat = skew(axis)
                R = R @ (np.eye(3) + np.sin(by)[..., None] * hat + (1.0 - np.cos(by))[..., None] * (hat @ hat))
            rotations.append(R)
            axes.append(z)
            p = p + R @ self.offsets[s + 1]
        return np.stack(rotations, -3), np.stack([*points, p], -2), np.stack(axes, -2)

    def jacobians(self, q: Array) -> tuple[Array, Array]:
        """Foot velocity (..., 3, J) and angular velocity of the foot (..., 3, J) by the joints, in base_link."""
        _, points, axes = self.link_poses(q)
        slides = self.slides[:, None]
        linear = np.where(slides, axes, np.cross(axes, points[..., -1:, :] - points[..., :-1, :]))
        angular = np.where(slides, 0.0, axes)
        return self.gathered(np.swapaxes(linear, -1, -2)), self.gathered(np.swapaxes(angular, -1, -2))
