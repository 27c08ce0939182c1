"""A leg as a serial chain: where its foot is, how it moves, and the joint torques that a motion takes.

Link frames are parallel to base_link where all joints are at zero, so a chain is its axes and offsets alone. All
results are in base_link. Legs may have any number of joints.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot import Chain, Robot


def chains_of(robot: Robot) -> list[Chain]:
    """The legs of a robot."""
    return list(robot.chains)


def per_leg(chains: list[Chain], joints: Array) -> list[Array]:
    """Numbers of all joints, leg by leg."""
    return np.split(joints, np.cumsum([chain.num_joints for chain in chains])[:-1])


def foot_position(chain: Chain, q: Array) -> Array:
    """Centre of the foot (3,)."""
    return np.asarray(chain.link_poses(q)[1][-1])


def foot_jacobian(chain: Chain, q: Array) -> Array:
    """J (3, J) with foot velocity = J dq on a base that rests: z_j x (foot - p_j), or z_j of a joint that slides."""
    return chain.jacobians(q)[0]


def foot_velocity(chain: Chain, q: Array, dq: Array, w_b: Array) -> Array:
    """J dq + w x p: velocity of the foot less that of base_link, whose negative a foot at rest measures."""
    return foot_jacobian(chain, q) @ dq + np.cross(w_b, foot_position(chain, q))


def foot_rate(chain: Chain, q: Array, dq: Array, w_b: Array) -> Array:
    """Angular velocity of the last link, which carries the foot."""
    return w_b + chain.jacobians(q)[1] @ dq


def joint_torques(chain: Chain, q: Array, dq: Array, ddq: Array, gravity_b: Array) -> Array:
    """Torques (J,) of a leg that touches nothing, on a base that does not turn, by Newton and Euler.

    Args:
        chain: the leg.
        q: joint angles (J,).
        dq: joint velocities (J,).
        ddq: joint accelerations (J,).
        gravity_b: gravity less the acceleration of the base (3,), which is minus the specific force.
    """
    rotations, points, axes = chain.link_poses(q)
    rates, accelerations = chain.ratio * dq[chain.source], chain.ratio * ddq[chain.source]
    w, alpha, a, at = np.zeros(3), np.zeros(3), -gravity_b, points[0]
    forces, moments, centres = [], [], []
    for s, (R, z) in enumerate(zip(rotations, axes, strict=True)):
        r = points[s] - at
        a, at = a + np.cross(alpha, r) + np.cross(w, np.cross(w, r)), points[s]
        if chain.slides[s]:
            a = a + z * accelerations[s] + 2.0 * np.cross(w, z) * rates[s]
        else:
            alpha = alpha + z * accelerations[s] + np.cross(w, z) * rates[s]
            w = w + z * rates[s]
        c, inertia = R @ chain.com[s], R @ chain.inertia[s] @ R.T
        forces.append(chain.mass[s] * (a + np.cross(alpha, c) + np.cross(w, np.cross(w, c))))
        moments.append(inertia @ alpha + np.cross(w, inertia @ w))
        centres.append(points[s] + c)
    # A joint carries all links from its own on: z . sum of (moment + (centre - p) x force), or z . sum of forces.
    loads = [
        np.sum(forces[s:], axis=0)
        if chain.slides[s]
        else np.sum(moments[s:] + np.cross(np.array(centres[s:]) - points[s], forces[s:]), axis=0)
        for s in range(len(axes))
    ]
    return chain.gathered(np.einsum("sa,sa->s", axes, np.array(loads))) + chain.armature * ddq
