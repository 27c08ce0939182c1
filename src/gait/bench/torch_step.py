"""The networks in torch for one sample at a time, written for speed in torch.

Keys and values of a sample are computed once, when it arrives, and GRU cells are called directly. Tests hold it to
`GaitNet.plain`. It is a rival of our compiled step and nothing else uses it.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from gait.nets.build import network_of
from gait.nets.gait import GaitNet
from gait.nets.model import Model
from gait.nets.nmn import NmnNet


class AttentionStep(nn.Module):
    """`gait` and `gait-flat`; the state is hidden states, keys and values (Nt, C, 2 H d), what unfilled slots lose."""

    def __init__(self, net: GaitNet) -> None:
        super().__init__()
        a, self.net = net.architecture, net
        self.heads, self.width, self.latents = a.heads, a.head_width, a.latents
        # Tokens of one embedding go through it together.
        self.groups: list[tuple[Any, Tensor]] = []
        for name in a.embeddings:
            columns = [token.columns for token in a.tokens if token.embedding == name]
            self.groups.append((net.embed[name], torch.tensor(columns)))
        with torch.no_grad():
            self.kv = torch.cat([net.key.weight, net.value.weight])  # (2 H d, D)
            self.slots = (net.slot_position @ self.kv.T)[:, None]  # (Nt, 1, 2 H d)
            asked = net.query(net.latents).view(a.latents, a.heads, a.head_width) / math.sqrt(a.head_width)
            self.asked = asked.transpose(0, 1).contiguous()  # (H, M, d)
            self.now = net.slot_position[-1].clone()
        keys = torch.zeros(a.history, len(a.tokens), len(self.kv))
        self.start = (torch.zeros(2, 1, a.hidden), keys, torch.full((a.history, len(a.tokens)), -1e9))
        self.nothing = torch.zeros(1, len(a.tokens))

    def forward(self, x: Tensor, hidden: Tensor, history: Tensor, unfilled: Tensor) -> tuple[Tensor, ...]:
        """One sample."""
        net: Any = self.net
        x = net.normalise(x)
        tokens = torch.cat([layer(x[columns]) for layer, columns in self.groups]) + net.token_position  # (C, D)
        history = torch.cat([history[1:], (tokens @ self.kv.T)[None]])
        k, v = (history + self.slots).view(-1, 2, self.heads, self.width).permute(1, 2, 0, 3)  # (H, Nt C, d)
        unfilled = torch.cat([unfilled[1:], self.nothing])
        answers = torch.softmax(self.asked @ k.transpose(1, 2) + unfilled.view(-1), -1) @ v  # (H, M, d)
        encoded = net.out(answers.transpose(0, 1).reshape(self.latents, -1))
        seen = torch.cat([encoded.view(-1), (tokens[:2] + self.now).view(-1)])[None]
        velocity = _cell(seen, hidden[0], net.velocity.gru)
        log_std = _cell(seen, hidden[1], net.log_std.gru)
        outputs = net.velocity.mlp(velocity)[0], net.bounded(net.log_std.mlp(log_std))[0]
        return *outputs, torch.stack([velocity, log_std]), history, unfilled


class NmnStep(nn.Module):
    """`nmn` without its contact head, which is not needed here."""

    def __init__(self, net: NmnNet) -> None:
        super().__init__()
        self.net = net
        self.start = (torch.zeros(1, net.architecture.hidden),)

    def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
        """One sample."""
        net: Any = self.net
        hidden = _cell(net.normalise(x)[None], hidden, net.gru)
        return net.velocity(hidden)[0], net.bounded(net.log_std(hidden))[0], hidden


def _cell(x: Tensor, h: Tensor, gru: Any) -> Tensor:
    return torch.gru_cell(x, h, gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0)


def torch_step(model: Model) -> AttentionStep | NmnStep:
    """The network of a model: from features (F,) and the state (`start` at first) to velocity, log-std, state."""
    net = network_of(model)
    step = NmnStep(net) if isinstance(net, NmnNet) else AttentionStep(cast("GaitNet", net))
    return step.eval()
