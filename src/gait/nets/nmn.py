"""`nmn`, after Youm et al. 2024: one GRU on the flat feature vector, with heads for velocity, log-std and contacts."""

from __future__ import annotations

import torch
from torch import Tensor

from gait.arrays import Array
from gait.nets.architecture import NmnArchitecture
from gait.nets.base import Mlp, Outputs, State, VelocityNet
from gait.nets.columns import affine
from gait.nets.recurrent import Gru, gru
from gait.nets.shapes import OUTPUTS


class NmnNet(VelocityNet):
    """The recurrent baseline. It has no tokens, so masks do not concern it."""

    architecture: NmnArchitecture

    def __init__(self, architecture: NmnArchitecture, mean: Array, std: Array) -> None:
        super().__init__(architecture, mean, std)
        a = architecture
        self.gru = Gru(a.num_features, a.hidden)
        self.velocity = Mlp(a.hidden, a.mlp, OUTPUTS)
        self.log_std = Mlp(a.hidden, a.mlp, OUTPUTS)
        self.contact = Mlp(a.hidden, a.mlp, a.legs)

    def start(self, batch: int) -> State:
        """The state before the first step of a log."""
        nothing = torch.zeros(batch, 0, self.architecture.num_features)
        return State(torch.zeros(1, self.architecture.hidden, batch), nothing, torch.zeros(batch, 0, dtype=torch.bool))

    def run(
        self, inputs: Tensor, state: State | None = None, keep: Tensor | None = None, uncertain: bool = True
    ) -> Outputs:
        """Go through a sequence; `keep` has no meaning here."""
        state = self.start(len(inputs)) if state is None else state
        columns = self.normalise(inputs).permute(1, 2, 0).contiguous()  # (T, F, B)
        gates = affine(self.gru.weight_ih_l0, self.gru.bias_ih_l0, columns)
        hidden = gru(gates[:, None], state.hidden, [self.gru])  # (T, 1, H, B)
        x = hidden[:, 0]
        velocity, contact = self.velocity.by_column(x), self.contact.by_column(x)
        log_std = self.bounded(self.log_std.by_column(x)) if uncertain else None
        return Outputs(
            velocity=velocity.permute(2, 0, 1),
            log_std=None if log_std is None else log_std.permute(2, 0, 1),
            state=State(hidden[-1], state.history, state.known),
            contact=contact.permute(2, 0, 1),
        )

    def plain(self, inputs: Tensor, state: State | None = None) -> Outputs:
        """The same with torch's own GRU."""
        state = self.start(len(inputs)) if state is None else state
        x, hidden = self.gru(self.normalise(inputs), state.hidden.transpose(1, 2).contiguous())
        return Outputs(
            velocity=self.velocity(x),
            log_std=self.bounded(self.log_std(x)),
            state=State(hidden.transpose(1, 2), state.history, state.known),
            contact=self.contact(x),
        )
