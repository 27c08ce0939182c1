"""Joints that give way under load in torch, for n robots at once: `gait.reference.flexure`, line by line.

Robots stand last, see `torch_lie`. Torques are not judged, and all legs have as many joints.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from gait.nets.torch_chain import LinkPoses
from gait.nets.torch_filter import constant
from gait.nets.torch_lie import cross, square, turn
from gait.reference.flexure import (
    ASSUMED,
    LASTS,
    LEAST_STD,
    LOW_PASS,
    MEMORY,
    MOST,
    STANDS_ON,
    USUAL,
    USUAL_STD,
    bending_torque,
)
from gait.robot import Robot


def flexure_velocity(poses: LinkPoses, tau_rate: Tensor, lever: Tensor) -> Tensor:
    """What a unit of compliance adds to the velocities of legs (3, L, n), given rates of their torques (J, L, n)."""
    return cross(turn(poses.angular, tau_rate), lever) - turn(poses.jacobian, tau_rate)


def weight_flexure(poses: LinkPoses, dq: Tensor, force: float) -> tuple[Tensor, Tensor]:
    """Of legs that carry a vertical force with tau = -J' f: d(tau)/dt (J, L, n), and (dJ/dt) tau (3, L, n)."""
    J, W, rates, sway = poses.jacobian, poses.angular, [], torch.zeros_like(poses.jacobian[:, 0])
    for j in range(len(dq)):
        turned = [cross(W[:, min(i, j)], J[:, max(i, j)]) * dq[i] for i in range(len(dq))]
        moves = torch.stack(turned).sum(0)  # of column j of J
        rates.append(-force * moves[2])
        sway = sway - force * J[2, j] * moves
    return torch.stack(rates), sway


class TorchFlexure(nn.Module):
    """The compliance of the joints, from sample to sample."""

    fitted: Tensor
    """Axes along which it is fitted (3, L, 1)."""
    compliance: Tensor
    """rad/(N m) (n,)."""
    sums: Tensor
    """Of the fit: told and known (2, n)."""
    off: Tensor
    """Velocities of legs less the predicted one through a low-pass (3, L, n), and what a unit of compliance adds."""
    bent: Tensor

    def __init__(self, robot: Robot, n: int, period: float, dtype: torch.dtype, used: bool = True) -> None:
        """Set up for n robots; if it is not `used`, joints are rigid."""
        super().__init__()
        self.dt, self.unit, self.used = period, bending_torque(robot), used
        self.first, self.assumed = used * (USUAL - USUAL_STD) / self.unit, used * ASSUMED / self.unit
        fitted = np.array([[1.0, 1.0, leg.foot.is_flat] for leg in robot.legs])
        self.register_buffer("fitted", constant(fitted.T[..., None], dtype), persistent=False)
        shapes = {"compliance": (n,), "sums": (2, n), "off": (3, robot.num_legs, n), "bent": (3, robot.num_legs, n)}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape, dtype=dtype))
        self.compliance += self.first

    def begin(self, begins: Tensor) -> None:
        """Forget what is known of robots that begin (n,)."""
        self.compliance = torch.where(begins, self.first, self.compliance)
        for name in ("sums", "off", "bent"):
            setattr(self, name, torch.where(begins, 0.0, getattr(self, name)))

    def learn(self, off: Tensor, velocity: Tensor, load: Tensor, chosen: Tensor) -> None:
        """Fit the compliance to one more sample.

        Args:
            off: velocities that legs measure less the predicted one (3, L, n).
            velocity: what a unit of compliance adds to them (3, L, n).
            load: normal forces as shares of the weight (L, n).
            chosen: robots that are upright and have this sample (n,).
        """
        dt = self.dt
        share = dt / (LOW_PASS + dt)
        self.off = torch.where(chosen, self.off + share * (off - self.off), self.off)
        self.bent = torch.where(chosen, self.bent + share * (velocity - self.bent), self.bent)
        weight = dt / LASTS / (LEAST_STD**2 + square(self.off)) * (chosen & (load > STANDS_ON))
        across = square(self.fitted * self.bent)
        # With c taken off already, what is left is as much as is missing of it.
        along = (self.off * self.fitted * self.bent).sum(0) + self.compliance * across
        sums = (1.0 - dt / MEMORY) * self.sums + torch.stack([(weight * along).sum(0), (weight * across).sum(0)])
        # One standard deviation below the estimate, and at least 0.
        prior = (self.unit / USUAL_STD) ** 2
        known = sums[1] + prior
        likely = (sums[0] + prior * USUAL / self.unit) / known
        surely = torch.clamp(likely - 1.0 / torch.sqrt(known), 0.0, MOST / self.unit)
        self.sums = torch.where(chosen, sums, self.sums)
        self.compliance = torch.where(chosen, surely, self.compliance)
