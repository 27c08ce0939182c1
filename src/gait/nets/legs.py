"""`gait-legs`: each leg measures the body's velocity, and the network gives the variance of each leg at that moment.

A leg is judged by a few frames of its own features (`gait.nets.features`), then by a look at the other legs: a foot
that slides disagrees with its neighbours and with the IMU. What comes out is a velocity and a log-std for each leg; the
filter weighs them. All legs share the weights and no leg knows which one it is.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn, unflatten

from gait.arrays import Array
from gait.nets.architecture import OUTPUTS, LegsArchitecture
from gait.nets.base import Outputs, RecurrentState, VelocityNet
from gait.nets.features import FOOT_ACCEL, PER_LEG, REACH, SHARED, VELOCITY

ALL = slice(None)


class LegOutputs(NamedTuple):
    """Output of the network for each leg in each step."""

    velocity: Tensor
    """Body velocity by each leg (B, T, L, 3), m/s."""
    log_std: Tensor
    """Logarithm of its standard deviation (B, T, L, 3)."""
    foot_accel: Tensor
    """How fast the joints change a foot's velocity (B, T, L, 3), m/s^2, as read."""
    attention: Tensor | None
    """Attention of each leg to each other (B, T, heads, L, L); None without attention."""


class LegsNet(VelocityNet):
    """A shared network on every leg, with one attention layer across legs."""

    architecture: LegsArchitecture

    def __init__(self, architecture: LegsArchitecture, mean: Array, std: Array) -> None:
        super().__init__(architecture, mean, std, past=architecture.lags[-1])
        a = architecture
        self.frames = nn.Linear(a.frames * a.token, a.hidden)
        self.hidden = nn.Linear(a.hidden, a.hidden)
        if a.attention_width:
            self.query = nn.Linear(a.hidden, a.attention_width)
            self.key = nn.Linear(a.hidden, a.attention_width)
            self.value = nn.Linear(a.hidden, a.attention_width)
        self.mix = nn.Linear(a.hidden + a.attention_width, a.mlp)
        self.output = nn.Linear(a.mlp, OUTPUTS + a.correction)

    def legs(
        self, inputs: Tensor, state: RecurrentState | None = None, steps: slice = ALL, used: Tensor | None = None
    ) -> LegOutputs:
        """Velocity and log-std of each leg after features (B, T, F), in some of the steps.

        Legs that are not `used` (B, L), at least one of a robot, are not looked at.
        """
        a = self.architecture
        state = self.start(len(inputs)) if state is None else state
        row = _row(inputs, state)
        rows = torch.arange(inputs.shape[1], device=row.device)[steps] + a.lags[-1]
        window = row[:, rows[:, None] - torch.tensor(a.lags, device=row.device)]  # (B, T, frames, F)
        own = unflatten(window[..., SHARED:], -1, (a.legs, PER_LEG))  # (B, T, frames, L, 12)
        shared = window[..., None, :SHARED].expand(*own.shape[:-1], SHARED)
        tokens = torch.cat([shared, own[..., list(a.leg_columns)]], -1)
        x = self.normalise(tokens).transpose(2, 3).flatten(3)  # (B, T, L, frames * token), newest frame first
        x = torch.relu(self.hidden(torch.relu(self.frames(x))))
        attention = None
        if a.attention_width:
            query, key, value = (
                unflatten(layer(x), -1, (a.heads, a.head_width)).transpose(2, 3)
                for layer in (self.query, self.key, self.value)
            )  # (B, T, heads, L, head_width)
            scores = query @ key.transpose(-1, -2) / a.head_width**0.5
            if used is not None:
                scores = scores.masked_fill(~used[:, None, None, None], -torch.inf)
            attention = torch.softmax(scores, -1)
            x = torch.cat([x, (attention @ value).transpose(2, 3).flatten(3)], -1)
        y = self.output(torch.relu(self.mix(x)))
        measured = own[:, :, 0, :, VELOCITY : VELOCITY + 3]
        velocity = measured + REACH * nn.functional.pad(y[..., OUTPUTS:], (2, 0)) if a.correction else measured
        foot_accel = own[:, :, 0, :, FOOT_ACCEL : FOOT_ACCEL + 3]
        return LegOutputs(velocity, self.bounded(y[..., :OUTPUTS]), foot_accel, attention)

    def _run(self, inputs: Tensor, state: RecurrentState, keep: Tensor | None, uncertain: bool) -> Outputs:
        """All legs together: their velocities weighted by their information. `keep` has no meaning here."""
        velocity, log_std, _, _ = self.legs(inputs, state)
        information = torch.exp(-2.0 * log_std)
        total = information.sum(2)
        after = RecurrentState(state.hidden, _row(inputs, state)[:, inputs.shape[1] :], torch.ones_like(state.known))
        return Outputs((information * velocity).sum(2) / total, -0.5 * torch.log(total), after)


def _row(inputs: Tensor, state: RecurrentState) -> Tensor:
    """The samples with those before; at the start of a log the first one stands for what was not seen."""
    return torch.cat([torch.where(state.known[..., None], state.history, inputs[:, :1]), inputs], 1)
