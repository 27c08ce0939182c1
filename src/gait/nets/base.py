"""What all networks share: the interface, the normaliser and the heads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from gait.arrays import Array
from gait.nets.architecture import Architecture
from gait.nets.autograd import affine


class RecurrentState(NamedTuple):
    """What a network carries from one step to the next."""

    hidden: Tensor
    """Hidden states of its GRUs (G, H, B)."""
    history: Tensor
    """The last samples, normalised, oldest first (B, Nt - 1, F); Nt is 1 for nmn."""
    known: Tensor
    """Which of them there are (B, Nt - 1): at the start of a log there are none."""

    def detach(self) -> RecurrentState:
        """The same numbers without their gradient: where truncated back-propagation cuts."""
        return RecurrentState(self.hidden.detach(), self.history.detach(), self.known)


class Outputs(NamedTuple):
    """Output of a network for each step."""

    velocity: Tensor
    """Body velocity (B, T, 3), m/s."""
    log_std: Tensor | None
    """Logarithm of its standard deviation (B, T, 3); None if it was not asked for."""
    state: RecurrentState
    contact: Tensor | None = None
    """Logits of the contact of each foot (B, T, L), for networks that predict it."""


class VelocityNet(nn.Module, ABC):
    """A network from features (B, T, F), as a Log gives them, to body velocity and log-std."""

    mean: Tensor
    std: Tensor

    def __init__(self, architecture: Architecture, mean: Array, std: Array, grus: int = 0, past: int = 0) -> None:
        """Make the parts all networks have.

        Args:
            architecture: its size.
            mean: subtracted from the features (F,).
            std: then divides them (F,).
            grus: GRUs that it has.
            past: samples before the present one that it reads.
        """
        super().__init__()
        self.architecture, self._grus, self._past = architecture, grus, past
        self.register_buffer("mean", torch.from_numpy(np.asarray(mean, dtype=np.float32).copy()))
        self.register_buffer("std", torch.from_numpy(np.asarray(std, dtype=np.float32).copy()))

    def start(self, batch: int) -> RecurrentState:
        """The state before the first step of a log: nothing remembered, nothing seen."""
        device = self.mean.device
        return RecurrentState(
            hidden=torch.zeros(self._grus, self.architecture.hidden, batch, device=device),
            history=torch.zeros(batch, self._past, self.architecture.num_features, device=device),
            known=torch.zeros(batch, self._past, dtype=torch.bool, device=device),
        )

    def run(
        self, inputs: Tensor, state: RecurrentState | None = None, keep: Tensor | None = None, uncertain: bool = True
    ) -> Outputs:
        """Go through a sequence, in the form that is quick to train.

        Args:
            inputs: features (B, T, F).
            state: where the last call ended; None starts from zero.
            keep: tokens the encoder may look at in each step (B, T, Nt, C), slots oldest first; None means all.
            uncertain: whether log-std is wanted; leaving it out saves time.
        """
        return self._run(inputs, self.start(len(inputs)) if state is None else state, keep, uncertain)

    @abstractmethod
    def _run(self, inputs: Tensor, state: RecurrentState, keep: Tensor | None, uncertain: bool) -> Outputs:
        """`run` from a state."""

    def forward(self, inputs: Tensor, state: RecurrentState | None = None) -> tuple[Tensor, Tensor, RecurrentState]:
        """Velocity (B, T, 3), log-std (B, T, 3) and the state after features (B, T, F)."""
        outputs = self.run(inputs, state)
        assert outputs.log_std is not None
        return outputs.velocity, outputs.log_std, outputs.state

    def normalise(self, inputs: Tensor) -> Tensor:
        """Features with their mean taken off, in units of their standard deviation."""
        return (inputs - self.mean) / self.std

    def bounded(self, raw: Tensor) -> Tensor:
        """A log-std inside its bounds, smoothly, so that it can always find its way back."""
        low, high = self.architecture.log_std_min, self.architecture.log_std_max
        return low + (high - low) * torch.sigmoid(raw)


class Mlp(nn.Module):
    """One hidden layer."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, width)
        self.output = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        y: Tensor = self.output(torch.relu(self.hidden(x)))
        return y

    def by_column(self, x: Tensor) -> Tensor:
        """The same on columns: (T, inputs, B) to (T, outputs, B)."""
        hidden = torch.relu(affine(self.hidden.weight, self.hidden.bias, x))
        return affine(self.output.weight, self.output.bias, hidden)


class Head(nn.Module):
    """GRU and MLP: what the velocity and the log-std each have of their own."""

    def __init__(self, inputs: int, hidden: int, mlp: int, outputs: int) -> None:
        super().__init__()
        self.gru: Any = nn.GRU(inputs, hidden, batch_first=True)
        self.mlp = Mlp(hidden, mlp, outputs)
