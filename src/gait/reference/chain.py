"""A leg as a serial chain: where its foot is, how it moves, and the joint torques that a motion takes.

Link frames are parallel to base_link where all joint angles are zero, so a chain is its axes and offsets alone. All
results are in base_link. Nothing here knows how many joints a leg has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.lie import so3_exp
from gait.robot import Robot


@dataclass(frozen=True)
class Chain:
    """A leg of J joints; link j turns with joint j."""

    axes: Array
    """Unit axis of each joint (J, 3)."""
    offsets: Array
    """From base_link to the first joint, from joint to joint, and from the last to the foot (J + 1, 3)."""
    mass: Array
    """Of each link (J,), kg."""
    com: Array
    """Centre of mass from the link's joint (J, 3)."""
    inertia: Array
    """About the centre of mass (J, 3, 3)."""
    armature: Array
    """Rotor inertia as the joint feels it (J,), kg m^2."""


def chains_of(robot: Robot) -> list[Chain]:
    """The legs of a robot: abduction about x, then two joints about y."""
    axes, armature = np.eye(3)[[0, 1, 1]], robot.armature.reshape(-1, 3)
    return [
        Chain(
            axes=axes * robot.signs[leg][:, None],
            offsets=robot.offsets[leg],
            mass=np.array([link.mass for link in links]),
            com=np.array([link.com for link in links]),
            inertia=np.array([link.inertia for link in links]),
            armature=armature[leg],
        )
        for leg, links in enumerate(robot.links)
    ]


def per_leg(chains: list[Chain], joints: Array) -> list[Array]:
    """Numbers of all joints, leg by leg."""
    return np.split(joints, np.cumsum([len(chain.axes) for chain in chains])[:-1])


def link_poses(chain: Chain, q: Array) -> tuple[Array, Array]:
    """Rotation of each link (J, 3, 3), and where the joints and the foot are (J + 1, 3)."""
    R, p = np.eye(3), chain.offsets[0]
    rotations, points = [], [p]
    for axis, offset, angle in zip(chain.axes, chain.offsets[1:], q, strict=True):
        R = R @ so3_exp(axis * angle)
        p = p + R @ offset
        rotations.append(R)
        points.append(p)
    return np.array(rotations), np.array(points)


def axes_b(chain: Chain, q: Array) -> Array:
    """The joint axes in base_link (J, 3)."""
    rotations, _ = link_poses(chain, q)
    return np.einsum("jab,jb->ja", rotations, chain.axes)


def foot_position(chain: Chain, q: Array) -> Array:
    """Centre of the foot (3,)."""
    return link_poses(chain, q)[1][-1]


def foot_jacobian(chain: Chain, q: Array) -> Array:
    """J (3, J) with foot velocity = J dq on a base that rests: column j is z_j x (foot - p_j)."""
    _, points = link_poses(chain, q)
    return np.cross(axes_b(chain, q), points[-1] - points[:-1]).T


def foot_velocity(chain: Chain, q: Array, dq: Array, w_b: Array) -> Array:
    """J dq + w x p: velocity of the foot less that of base_link. A foot at rest measures the base by its negative."""
    return foot_jacobian(chain, q) @ dq + np.cross(w_b, foot_position(chain, q))


def foot_rate(chain: Chain, q: Array, dq: Array, w_b: Array) -> Array:
    """Angular velocity of the last link, which carries the foot."""
    return w_b + dq @ axes_b(chain, q)


def joint_torques(chain: Chain, q: Array, dq: Array, ddq: Array, gravity_b: Array) -> Array:
    """Torques (J,) of a leg that touches nothing, on a base that does not turn, by Newton and Euler.

    Args:
        chain: the leg.
        q: joint angles (J,).
        dq: joint velocities (J,).
        ddq: joint accelerations (J,).
        gravity_b: gravity less the acceleration of the base (3,), which is minus the specific force.
    """
    rotations, points = link_poses(chain, q)
    axes = axes_b(chain, q)
    w, alpha, a, at = np.zeros(3), np.zeros(3), -gravity_b, points[0]
    forces, moments, centres = [], [], []
    for j, (R, z) in enumerate(zip(rotations, axes, strict=True)):
        r = points[j] - at
        a, at = a + np.cross(alpha, r) + np.cross(w, np.cross(w, r)), points[j]
        alpha = alpha + z * ddq[j] + np.cross(w, z) * dq[j]
        w = w + z * dq[j]
        c, inertia = R @ chain.com[j], R @ chain.inertia[j] @ R.T
        forces.append(chain.mass[j] * (a + np.cross(alpha, c) + np.cross(w, np.cross(w, c))))
        moments.append(inertia @ alpha + np.cross(w, inertia @ w))
        centres.append(points[j] + c)
    # Joint j carries all links from j on: tau_j = z_j . sum of (moment + (centre - p_j) x force).
    loads = [
        np.sum(moments[j:] + np.cross(np.array(centres[j:]) - points[j], forces[j:]), axis=0) for j in range(len(axes))
    ]
    return np.einsum("ja,ja->j", axes, np.array(loads)) + chain.armature * ddq
