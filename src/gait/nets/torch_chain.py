"""Legs as serial chains in torch, all legs of n robots at once: `gait.reference.chain` and what of `contacts` legs use.

Everything is in base_link. Vectors are (3, L, n), numbers of joints (J, L, n), see `torch_lie`. All legs have as many
joints.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gait.arrays import Array
from gait.lie import skew
from gait.nets.torch_filter import constant
from gait.nets.torch_lie import cross, determinant3, inverse3, product, turn, turn_back
from gait.robot import Robot

SINGULAR = 1e-5
"""Manipulability |det J|, m^3, of a leg stretched out so straight that torques tell no force."""


class LinkPoses(NamedTuple):
    """Where the links of legs are."""

    rotations: list[Tensor]
    """Of each link, J of (3, 3, L, n)."""
    points: list[Tensor]
    """Of the joints and the foot, J + 1 of (3, L, n)."""
    axes: list[Tensor]
    """Of the joints, J of (3, L, n)."""


class TorchChains(nn.Module):
    """The legs of a robot: abduction about x, then two joints about y."""

    axes: Tensor
    """Unit axis of each joint (J, 3, L, 1)."""
    offsets: Tensor
    """From base_link to the first joint, from joint to joint, and from the last to the foot (J + 1, 3, L, 1)."""
    mass: Tensor
    """Of each link (J, L, 1)."""
    com: Tensor
    """(J, 3, L, 1)."""
    inertia: Tensor
    """(J, 3, 3, L, 1)."""
    armature: Tensor
    """(J, L, 1)."""
    hat: Tensor
    """The axes as matrices (J, 3, 3, L, 1), and their squares."""
    hat2: Tensor

    def __init__(self, robot: Robot, dtype: torch.dtype) -> None:
        super().__init__()
        axes = np.eye(3)[[0, 1, 1]] * robot.signs[:, :, None]
        hat = np.array([[skew(axis) for axis in leg] for leg in axes])
        arrays: dict[str, Array] = {
            "axes": axes,
            "offsets": robot.offsets,
            "mass": np.array([[link.mass for link in links] for links in robot.links]),
            "com": np.array([[link.com for link in links] for links in robot.links]),
            "inertia": np.array([[link.inertia for link in links] for links in robot.links]),
            "armature": robot.armature.reshape(axes.shape[:2]),
            "hat": hat,
            "hat2": hat @ hat,
        }
        for name, array in arrays.items():  # (L, J, ...) to (J, ..., L, 1)
            self.register_buffer(name, constant(np.moveaxis(array, 0, -1)[..., None], dtype), persistent=False)

    def link_poses(self, q: Tensor) -> LinkPoses:
        """Of angles (J, L, n)."""
        sine, versine = torch.sin(q), 1.0 - torch.cos(q)
        eye = torch.eye(3, dtype=q.dtype, device=q.device)[..., None, None]
        p = self.offsets[0].expand(-1, -1, q.shape[-1])
        rotations, points, axes = list[Tensor](), [p], list[Tensor]()
        for j in range(len(q)):
            step = eye + sine[j] * self.hat[j] + versine[j] * self.hat2[j]
            R = step if j == 0 else product(rotations[-1], step)
            p = p + turn(R, self.offsets[j + 1])
            rotations.append(R)
            points.append(p)
            axes.append(turn(R, self.axes[j]))
        return LinkPoses(rotations, points, axes)

    def joint_torques(self, poses: LinkPoses, dq: Tensor, ddq: Tensor, gravity_b: Tensor) -> Tensor:
        """Torques (J, L, n) of legs that touch nothing, on a base that does not turn, by Newton and Euler.

        Args:
            poses: of the links.
            dq: joint velocities (J, L, n).
            ddq: joint accelerations (J, L, n).
            gravity_b: gravity less the acceleration of the base (3, n), which is minus the specific force.
        """
        points, axes = poses.points, poses.axes
        w = alpha = torch.zeros_like(points[-1])
        a, at = -gravity_b[:, None], points[0]
        forces, moments, centres = [], [], []
        for j, (R, z) in enumerate(zip(poses.rotations, axes, strict=True)):
            r = points[j] - at
            a, at = a + cross(alpha, r) + cross(w, cross(w, r)), points[j]
            alpha = alpha + z * ddq[j] + cross(w, z) * dq[j]
            w = w + z * dq[j]
            c = turn(R, self.com[j])
            forces.append(self.mass[j] * (a + cross(alpha, c) + cross(w, cross(w, c))))
            # In the link's own axes, where its inertia is constant.
            spin, own = turn_back(R, w), self.inertia[j]
            moments.append(turn(R, turn(own, turn_back(R, alpha)) + cross(spin, turn(own, spin))))
            centres.append(points[j] + c)
        # Joint j carries all links from j on: tau_j = z_j . sum of (moment + (centre - p_j) x force).
        torques = []
        for j, z in enumerate(axes):
            load = moments[j] + cross(centres[j] - points[j], forces[j])
            for k in range(j + 1, len(axes)):
                load = load + moments[k] + cross(centres[k] - points[j], forces[k])
            torques.append((z * load).sum(0))
        return torch.stack(torques) + self.armature * ddq


def foot_jacobian(poses: LinkPoses) -> Tensor:
    """J (3, J, L, n) with foot velocity = J dq on a base that rests: column j is z_j x (foot - p_j)."""
    foot = poses.points[-1]
    return torch.stack([cross(z, foot - p) for z, p in zip(poses.axes, poses.points[:-1], strict=True)], 1)


def foot_velocity(jacobian: Tensor, foot: Tensor, dq: Tensor, w_b: Tensor) -> Tensor:
    """J dq + w x p (3, L, n): velocity of the foot less that of base_link."""
    return turn(jacobian, dq) + cross(w_b[:, None], foot)


def foot_rate(poses: LinkPoses, dq: Tensor, w_b: Tensor) -> Tensor:
    """Angular velocity of the last link (3, L, n), which carries the foot."""
    return w_b[:, None] + turn(torch.stack(poses.axes, 1), dq)


def ground_force(jacobian: Tensor, tau: Tensor, tau_free: Tensor) -> Tensor:
    """Force of the ground on the feet (3, L, n): the f of J' f = tau_free - tau, or zero where a leg is singular."""
    det = determinant3(jacobian)
    told = det.abs() > SINGULAR
    force = turn_back(inverse3(jacobian, torch.where(told, det, 1.0)), tau_free - tau)
    return torch.where(told, force, 0.0)


def rolling_velocity(rate: Tensor, radius: float) -> Tensor:
    """How fast the contact point of a round foot moves along level ground (3, L, n): r w_foot x up."""
    return radius * torch.stack([rate[1], -rate[0], torch.zeros_like(rate[0])])
