"""Joints that give way under load in torch, for n robots at once: `gait.reference.flexure`, line by line.

Robots stand last, see `torch_lie`. Torques are not judged, and all feet are soles.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gait.nets.torch_chain import LinkPoses
from gait.nets.torch_lie import cross, square, turn
from gait.reference.flexure import LASTS, LEAST_STD, LOW_PASS, MEMORY, MOST, STANDS_ON
from gait.robot import Robot


def flexure_velocity(poses: LinkPoses, tau_rate: Tensor, lever: Tensor) -> Tensor:
    """What a unit of compliance adds to the velocities of legs (3, L, n), given rates of their torques (J, L, n)."""
    return cross(turn(poses.angular, tau_rate), lever) - turn(poses.jacobian, tau_rate)


class TorchFlexure(nn.Module):
    """The compliance of the joints, from sample to sample."""

    compliance: Tensor
    """rad/(N m) (n,)."""
    sums: Tensor
    """Of the fit: told and known (2, n)."""
    off: Tensor
    """Velocities of legs less the predicted one through a low-pass (3, L, n), and what a unit of compliance adds."""
    bent: Tensor

    def __init__(self, robot: Robot, n: int, period: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.dt = period
        self.most = MOST / (0.25 * robot.mass * 9.81 * robot.leg_length)
        shapes = {"compliance": (n,), "sums": (2, n), "off": (3, robot.num_legs, n), "bent": (3, robot.num_legs, n)}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape, dtype=dtype))

    def begin(self, begins: Tensor) -> None:
        """Forget what is known of robots that begin (n,)."""
        for name in ("compliance", "sums", "off", "bent"):
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
        across = square(self.bent)
        # With c taken off already, what is left is as much as is missing of it.
        along = (self.off * self.bent).sum(0) + self.compliance * across
        sums = (1.0 - dt / MEMORY) * self.sums + torch.stack([(weight * along).sum(0), (weight * across).sum(0)])
        # A standard deviation less than was found: as large as it surely is, and none where there is none.
        found = sums[1] > 0.0
        known = torch.where(found, sums[1], 1.0)
        sure = torch.where(found, (sums[0] - torch.sqrt(known)) / known, 0.0)
        self.sums = torch.where(chosen, sums, self.sums)
        self.compliance = torch.where(chosen, torch.clamp(sure, 0.0, self.most), self.compliance)
