"""`nmn`, after Youm et al. 2024: one GRU on the flat feature vector, with heads for velocity, log-std and contacts."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from gait.arrays import Array
from gait.nets.architecture import OUTPUTS, NmnArchitecture
from gait.nets.autograd import affine, gru
from gait.nets.base import Mlp, Outputs, RecurrentState, VelocityNet


class NmnNet(VelocityNet):
    """The recurrent baseline. It has no tokens, so masks do not concern it."""

    architecture: NmnArchitecture

    def __init__(self, architecture: NmnArchitecture, mean: Array, std: Array) -> None:
        super().__init__(architecture, mean, std, grus=1)
        a = architecture
        self.gru: Any = nn.GRU(a.num_features, a.hidden, batch_first=True)
        self.velocity = Mlp(a.hidden, a.mlp, OUTPUTS)
        self.log_std = Mlp(a.hidden, a.mlp, OUTPUTS)
        self.contact = Mlp(a.hidden, a.mlp, a.legs)

    def _run(self, inputs: Tensor, state: RecurrentState, keep: Tensor | None, uncertain: bool) -> Outputs:
        """Go through a sequence; `keep` has no meaning here."""
        columns = self.normalise(inputs).permute(1, 2, 0).contiguous()  # (T, F, B)
        gates = affine(self.gru.weight_ih_l0, self.gru.bias_ih_l0, columns)
        hidden = gru(gates[:, None], state.hidden, [self.gru])  # (T, 1, H, B)
        x = hidden[:, 0]
        return Outputs(
            velocity=self.velocity.by_column(x).permute(2, 0, 1),
            log_std=self.bounded(self.log_std.by_column(x)).permute(2, 0, 1) if uncertain else None,
            state=state._replace(hidden=hidden[-1]),
            contact=self.contact.by_column(x).permute(2, 0, 1),
        )

    def plain(self, inputs: Tensor, state: RecurrentState | None = None) -> Outputs:
        """The same with torch's own GRU."""
        state = self.start(len(inputs)) if state is None else state
        x, hidden = self.gru(self.normalise(inputs), state.hidden.transpose(1, 2).contiguous())
        return Outputs(
            velocity=self.velocity(x),
            log_std=self.bounded(self.log_std(x)),
            state=state._replace(hidden=hidden.transpose(1, 2)),
            contact=self.contact(x),
        )
