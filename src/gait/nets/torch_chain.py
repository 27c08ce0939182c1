"""Legs as serial chains in torch, all legs of n robots at once: `gait.reference.chain` and what of `contacts` legs use.

Everything is in base_link. Vectors are (3, L, n), numbers of joints (J, L, n), see `torch_lie`. All legs have as many
joints, of the same kinds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gait.arrays import Array
from gait.errors import GaitError
from gait.lie import skew
from gait.nets.torch_filter import constant
from gait.nets.torch_lie import cross, determinant3, inverse3, product, turn, turn_back
from gait.reference.contacts import DAMPING, LEVER, SINGULAR
from gait.reference.flat_feet import LEVEL, LIGHT, LOADED
from gait.robot import Robot


class LinkPoses(NamedTuple):
    """Where the links of legs are."""

    rotations: list[Tensor]
    """Of each link, S of (3, 3, L, n)."""
    points: list[Tensor]
    """Of the joints and the foot, S + 1 of (3, L, n)."""
    axes: list[Tensor]
    """Of the joints, S of (3, L, n)."""
    jacobian: Tensor
    """Foot velocity by the encoders (3, J, L, n): z_j x (foot - p_j), or z_j of a joint that slides."""
    angular: Tensor
    """Angular velocity of the foot by the encoders (3, J, L, n)."""


class TorchChains(nn.Module):
    """The legs of a robot."""

    axes: Tensor
    """Unit axis of each joint (S, 3, L, 1)."""
    offsets: Tensor
    """From base_link to the first joint, from joint to joint, and from the last to the foot (S + 1, 3, L, 1)."""
    mass: Tensor
    """Of each link (S, L, 1)."""
    com: Tensor
    """(S, 3, L, 1)."""
    inertia: Tensor
    """(S, 3, 3, L, 1)."""
    armature: Tensor
    """(J, L, 1)."""
    ratio: Tensor
    """Of each link to its encoder (S, L, 1), and what is added to it."""
    shift: Tensor
    corners: Tensor
    """Of soles around the centres of the feet (C, 3, L, 1)."""
    radius: Tensor
    """Of the feet (L, 1)."""
    hat: Tensor
    """The axes as matrices (S, 3, 3, L, 1), and their squares."""
    hat2: Tensor

    def __init__(self, robot: Robot, dtype: torch.dtype) -> None:
        super().__init__()
        chains = robot.chains
        kinds = {(len(c.foot.corners), tuple(c.source.tolist()), tuple(c.slides.tolist())) for c in chains}
        if len(kinds) != 1:
            raise GaitError(f"the legs of {robot.name} have different joints: use gait.Batch, which runs on the CPU")
        self.source, self.slides = chains[0].source.tolist(), chains[0].slides.tolist()
        self.length, self.shared = robot.leg_length, max(chain.shared for chain in chains)
        hat = np.array([[skew(axis) for axis in chain.axes] for chain in chains])
        names = ("axes", "offsets", "mass", "com", "inertia", "armature", "ratio", "shift")
        arrays: dict[str, Array] = {name: np.array([getattr(chain, name) for chain in chains]) for name in names}
        arrays |= {
            "corners": np.array([chain.foot.corners for chain in chains]),
            "radius": np.array([chain.foot.radius for chain in chains]),
            "hat": hat,
            "hat2": hat @ hat,
        }
        for name, array in arrays.items():  # (L, S, ...) to (S, ..., L, 1)
            self.register_buffer(name, constant(np.moveaxis(array, 0, -1)[..., None], dtype), persistent=False)

    def link_poses(self, q: Tensor) -> LinkPoses:
        """Of encoders (J, L, n)."""
        moved = self.ratio * q[self.source] + self.shift  # (S, L, n)
        sine, versine = torch.sin(moved), 1.0 - torch.cos(moved)
        eye = torch.eye(3, dtype=q.dtype, device=q.device)[..., None, None]
        p, R = self.offsets[0].expand(-1, -1, q.shape[-1]), eye.expand(-1, -1, *q.shape[1:])
        rotations, points, axes = list[Tensor](), list[Tensor](), list[Tensor]()
        for s, slides in enumerate(self.slides):
            z = turn(R, self.axes[s])
            if slides:
                p = p + moved[s] * z
            else:
                step = eye + sine[s] * self.hat[s] + versine[s] * self.hat2[s]
                R = step if s == 0 else product(R, step)
            points.append(p)
            rotations.append(R)
            axes.append(z)
            p = p + turn(R, self.offsets[s + 1])
        moves = [z if self.slides[s] else cross(z, p - points[s]) for s, z in enumerate(axes)]
        turns = [torch.zeros_like(z) if self.slides[s] else z for s, z in enumerate(axes)]
        jacobian, angular = (self._gathered(columns) for columns in (moves, turns))
        return LinkPoses(rotations, [*points, p], axes, torch.stack(jacobian, 1), torch.stack(angular, 1))

    def _gathered(self, per_link: list[Tensor]) -> list[Tensor]:
        """Of the links' joints, summed up for the encoders that they follow."""
        out: list[Tensor] = [torch.zeros(())] * len(self.armature)
        for s, j in enumerate(self.source):
            own = self.ratio[s] * per_link[s]
            out[j] = own if self.source.index(j) == s else out[j] + own
        return out

    def contact_lever(self, poses: LinkPoses, wrench: Tensor, weight: float, told: Tensor) -> Tensor:
        """From the point of each foot that touches level ground to its centre (3, L, n): `reference/flat_feet.py`.

        Args:
            poses: of the links.
            wrench: force and moment of the ground (6, L, n).
            weight: of the robot, N.
            told: legs whose torques are known (L, n).
        """
        zero = torch.zeros_like(poses.points[-1][0])
        lever = torch.stack([zero, zero, zero + self.radius])
        if not len(self.corners):
            return lever
        corners = torch.stack([turn(poses.rotations[-1], corner) for corner in self.corners])  # (C, 3, L, n)
        lowest = torch.softmax(-corners[:, 2] / LEVEL, dim=0)
        geometric = lever - (lowest[:, None] * corners).sum(0)
        normal, R = wrench[2], poses.rotations[-1]
        share = torch.clamp((normal / weight - LIGHT) / (LOADED - LIGHT), 0.0, 1.0) * told
        # up x moment, with up along z
        along = torch.stack([-wrench[4], wrench[3], zero]) / torch.where(share > 0.0, normal, 1.0)
        own = self.corners
        pressure = turn(R, torch.minimum(torch.maximum(turn_back(R, along), own.amin(0)), own.amax(0)))
        return geometric + share * (lever - pressure - geometric)

    def joint_torques(self, poses: LinkPoses, dq: Tensor, ddq: Tensor, gravity_b: Tensor) -> Tensor:
        """Torques (J, L, n) of legs that touch nothing, on a base that does not turn, by Newton and Euler.

        Args:
            poses: of the links.
            dq: joint velocities (J, L, n).
            ddq: joint accelerations (J, L, n).
            gravity_b: gravity less the acceleration of the base (3, n), which is minus the specific force.
        """
        points, axes = poses.points, poses.axes
        rates, accelerations = self.ratio * dq[self.source], self.ratio * ddq[self.source]
        w = alpha = torch.zeros_like(points[-1])
        a, at = -gravity_b[:, None], points[0]
        forces, moments, centres = [], [], []
        for j, (R, z) in enumerate(zip(poses.rotations, axes, strict=True)):
            r = points[j] - at
            a, at = a + cross(alpha, r) + cross(w, cross(w, r)), points[j]
            if self.slides[j]:
                a = a + z * accelerations[j] + 2.0 * cross(w, z) * rates[j]
            else:
                alpha = alpha + z * accelerations[j] + cross(w, z) * rates[j]
                w = w + z * rates[j]
            c = turn(R, self.com[j])
            forces.append(self.mass[j] * (a + cross(alpha, c) + cross(w, cross(w, c))))
            # In the link's own axes, where its inertia is constant.
            spin, own = turn_back(R, w), self.inertia[j]
            moments.append(turn(R, turn(own, turn_back(R, alpha)) + cross(spin, turn(own, spin))))
            centres.append(points[j] + c)
        # A joint carries all links from its own on: z . sum of (moment + (centre - p) x force), or z . sum of forces.
        torques = []
        for j, z in enumerate(axes):
            load = torch.zeros_like(z)
            for k in range(j, len(axes)):
                load = load + (forces[k] if self.slides[j] else moments[k] + cross(centres[k] - points[j], forces[k]))
            torques.append((z * load).sum(0))
        return torch.stack(self._gathered(torques)) + self.armature * ddq

    def ground_wrench(self, poses: LinkPoses, tau: Tensor, tau_free: Tensor) -> Tensor:
        """Force of the ground on the feet and, of soles, its moment about their centres (6, L, n).

        The force is the f of J' f = tau_free - tau, or zero where it is not told.
        """
        jacobian, t = poses.jacobian, tau_free - tau
        if len(t) == 3 and not self.shared and not len(self.corners):
            det = determinant3(jacobian)
            told = det.abs() > SINGULAR
            force = torch.where(told, turn_back(inverse3(jacobian, torch.where(told, det, 1.0)), t), 0.0)
            return torch.cat([force, torch.zeros_like(force)])
        A = torch.cat([jacobian, LEVER * self.length * poses.angular]) if len(self.corners) else jacobian
        A, t = A[:, self.shared :].permute(2, 3, 0, 1), t[self.shared :]  # (L, n, 3 or 6, J)
        damping = (DAMPING * self.length) ** 2 * torch.eye(A.shape[-2], dtype=A.dtype, device=A.device)
        wrench: Tensor = torch.linalg.solve(A @ A.mT + damping, A @ t.permute(1, 2, 0)[..., None])
        found = wrench[..., 0].permute(2, 0, 1)
        if not len(self.corners):
            return torch.cat([found, torch.zeros_like(found)])
        return torch.cat([found[:3], LEVER * self.length * found[3:]])


def foot_velocity(jacobian: Tensor, foot: Tensor, dq: Tensor, w_b: Tensor) -> Tensor:
    """J dq + w x p (3, L, n): velocity of the foot less that of base_link."""
    return turn(jacobian, dq) + cross(w_b[:, None], foot)


def foot_rate(poses: LinkPoses, dq: Tensor, w_b: Tensor) -> Tensor:
    """Angular velocity of the last link (3, L, n), which carries the foot."""
    return w_b[:, None] + turn(poses.angular, dq)
