"""What training minimises.

Of `gait-legs`: first the likelihood of each leg, then that of a filter behind all legs.

A leg's errors are correlated in time: a foot slides for a tenth of a second, so fifty samples have the same error. A
filter that takes them for white noise is overconfident by a factor of seven. So the second stage runs a small filter
over the sequence and differentiates through its consistency: the network learns the variance of each leg that makes
such a filter consistent, and needs no factor on top.

The filter propagates the error against ground truth alone: the velocity error in the body frame, one variance an axis.
An IMU adds noise and a bias from step to step; the measurement of a leg pulls it towards its own error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from gait.nets.base import Outputs
from gait.nets.legs import LegOutputs
from gait.nets.torch_filter import gate_inflation, leg_variances
from gait.parameters import LEG_INSTANT, Options
from gait.train.devices import tensor_on

LASTING = 14.0
"""In the first stage: how much a single sample's standard deviation is inflated, as the second one finds it."""
GUARD, DELAY_STD = Options().leg_guard, Options().joint_delay_std
"""The same gate and the same allowance for the uncertainty of the delay as in core/legs.c and `TorchBatch`."""
DRIFT, BIAS = (0.008, 0.03), 0.05
"""Of the IMU in that filter: m/s/sqrt(s), evenly in the logarithm, one for each sequence, which the filter knows since
it estimates its own noise (core/adapt.c); and m/s^2 of bias that it does not estimate."""
START = 0.05
"""Standard deviation of the error at the start of a sequence, m/s."""
SETTLE = 0.1
"""Share of a sequence after which the filter's error counts."""


def mean_absolute(residual: Tensor) -> Tensor:
    """Mean over samples of the L1 norm of the residual (..., 3)."""
    return residual.abs().sum(-1).mean()


def negative_log_likelihood(residual: Tensor, log_std: Tensor) -> Tensor:
    """Mean over samples of 0.5 log det S + 0.5 r' S^-1 r, with S = diag(exp(2 u))."""
    return (log_std + 0.5 * torch.square(residual * torch.exp(-log_std))).sum(-1).mean()


def loss_of(outputs: Outputs, velocity: Tensor, contact: Tensor, contact_weight: float) -> Tensor:
    """The loss of a piece of sequences: L1 where the network gave no log-std, else the likelihood; contacts if any.

    Ground truth may be of the last steps alone: those before do not count.
    """
    last = slice(-velocity.shape[1], None)
    residual, log_std = velocity - outputs.velocity[:, last], outputs.log_std
    loss = mean_absolute(residual) if log_std is None else negative_log_likelihood(residual, log_std[:, last])
    if outputs.contact is not None and contact_weight > 0.0:
        loss = loss + contact_weight * binary_cross_entropy_with_logits(outputs.contact[:, last], contact)
    return loss


class Carried(NamedTuple):
    """Errors of the filter in each step."""

    error: Tensor
    """(T, B, 3)."""
    variance: Tensor
    """(T, B, 3)."""


def variances(legs: LegOutputs) -> Tensor:
    """Variances of the measurement of each leg in the filter (B, T, L, 3)."""
    return leg_variances(legs.log_std, legs.foot_accel, 1.0, DELAY_STD)


def leg_likelihood(legs: LegOutputs, velocity: Tensor, used: Tensor) -> Tensor:
    """Mean negative log-likelihood of the true velocity (B, T, 3) by each leg in use (B, L), a sample at a time."""
    variance = variances(legs) / LASTING**2
    loss = 0.5 * (torch.square(legs.velocity - velocity[:, :, None]) / variance + torch.log(variance)).mean((1, 3))
    return (loss * used).sum() / used.sum()


def carry(
    legs: LegOutputs, velocity: Tensor, rate: Tensor, used: Tensor, dt: float, every: int, rng: np.random.Generator
) -> Carried:
    """Run the filter.

    Args:
        legs: outputs of the network in every `every`-th step (B, T, L, 3).
        velocity: ground truth in those steps (B, T, 3).
        rate: angular rate of the base (B, T, 3).
        used: legs that the filter gets (B, L).
        dt: seconds between two steps of the network.
        every: how many of them are one step of the filter.
        rng: draws the start and the errors of the IMU.
    """
    batch, steps = velocity.shape[:2]
    span = dt * every
    # A filter that takes every step would see `every` times as many measurements.
    lasting = variances(legs)
    information = every / lasting * used[:, None, :, None]
    residuals = legs.velocity - velocity[:, :, None]
    variances_now = LEG_INSTANT**2 * lasting.detach()
    device = velocity.device
    error = tensor_on(device, _draw(rng, (batch, 3), START))
    bias = tensor_on(device, _draw(rng, (batch, 3), BIAS * span))
    drifts = np.exp(rng.uniform(math.log(DRIFT[0]), math.log(DRIFT[1]), (batch, 1)))
    drift = tensor_on(device, drifts.astype(np.float32))
    noise = tensor_on(device, _draw(rng, (steps, batch, 3), math.sqrt(span))) * drift
    variance = torch.full((batch, 3), START**2, device=device)
    grow = (drift**2 + 0.1 * BIAS**2) * span
    turn = rate * span
    errors, spreads = [], []
    for k in range(steps):
        error = error + bias + noise[k] - torch.linalg.cross(turn[:, k], error)
        variance = variance + grow
        weight = information[:, k] / _inflation(residuals[:, k], error, variance, variances_now[:, k])
        certain = 1.0 / variance + weight.sum(1)
        error = (error / variance + (weight * residuals[:, k]).sum(1)) / certain
        variance = 1.0 / certain
        errors.append(error)
        spreads.append(variance)
    return Carried(torch.stack(errors), torch.stack(spreads))


def _inflation(residual: Tensor, error: Tensor, variance: Tensor, own: Tensor) -> Tensor:
    """By how much the gate inflates the variance of each leg (B, L, 1): 1 for a leg whose innovation is consistent."""
    with torch.no_grad():
        return gate_inflation(residual - error[:, None], variance[:, None] + own, GUARD)


def carried_likelihood(carried: Carried) -> Tensor:
    """Mean negative log-likelihood of the filter's error, after it has settled."""
    skip = int(SETTLE * len(carried.error))
    error, variance = carried.error[skip:], carried.variance[skip:]
    return 0.5 * (torch.square(error) / variance + torch.log(variance)).mean()


def _draw(rng: np.random.Generator, shape: tuple[int, ...], std: float) -> npt.NDArray[np.float32]:
    return (std * rng.standard_normal(shape)).astype(np.float32)
