"""What training minimises."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from gait.nets.base import Outputs


def mean_absolute(residual: Tensor) -> Tensor:
    """Mean over samples of the L1 norm of the residual (..., 3)."""
    return residual.abs().sum(-1).mean()


def negative_log_likelihood(residual: Tensor, log_std: Tensor) -> Tensor:
    """Mean over samples of 0.5 log det S + 0.5 r' S^-1 r, with S = diag(exp(2 u))."""
    return (log_std + 0.5 * torch.square(residual * torch.exp(-log_std))).sum(-1).mean()


def loss_of(outputs: Outputs, velocity: Tensor, contact: Tensor, contact_weight: float) -> Tensor:
    """The loss of a piece of sequences: L1 where the network gave no log-std, else the likelihood; contacts if any."""
    residual = velocity - outputs.velocity
    loss = mean_absolute(residual) if outputs.log_std is None else negative_log_likelihood(residual, outputs.log_std)
    if outputs.contact is not None and contact_weight > 0.0:
        loss = loss + contact_weight * binary_cross_entropy_with_logits(outputs.contact, contact)
    return loss
