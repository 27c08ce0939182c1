"""`gait`: attention over inertial and leg tokens, then a recurrent head each for velocity and log-std.

`gait-flat`, the paper's "w/o IL token", is the same code with other tokens (`AttentionArchitecture.tokens`): one for
each kind of measurement, legs mixed. So a difference in a result is the tokens'.

The network has two forms that give the same numbers. `plain` reads like the paper. `run` is the fold: queries are
constants and embeddings are linear, so nothing non-linear stands before the softmax, and

- a score is a dot product of a sample's raw numbers with a constant, computed once when the sample arrives;
- the attention pools raw numbers, and the shares of attention that each token and each slot got;
- value, output and embedding matrices act on those pooled numbers as one matrix.

Nothing is approximated. Slots of the history are ordered oldest first, here and everywhere.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn, unflatten

from gait.arrays import Array
from gait.nets.architecture import HIDDEN, OUTPUTS, AttentionArchitecture
from gait.nets.autograd import affine, attend, gru, pool
from gait.nets.base import Head, Outputs, RecurrentState, VelocityNet
from gait.nets.parts import fold


class GaitNet(VelocityNet):
    """The network of the paper, for any number of legs."""

    architecture: AttentionArchitecture
    _pick: Tensor

    def __init__(self, architecture: AttentionArchitecture, mean: Array, std: Array) -> None:
        super().__init__(architecture, mean, std, grus=2, past=architecture.history - 1)
        a = architecture
        self.embed = nn.ModuleDict({name: nn.Linear(count, a.width) for name, count in a.embeddings.items()})
        self.token_position = nn.Parameter(0.02 * torch.randn(len(a.tokens), a.width))
        self.slot_position = nn.Parameter(0.02 * torch.randn(a.history, a.width))
        # Of unit size, not small: two latents that start alike get the same gradient and stay alike for long.
        self.latents = nn.Parameter(torch.randn(a.latents, a.width))
        self.query = nn.Linear(a.width, a.attention_width, bias=False)
        self.key = nn.Linear(a.width, a.attention_width, bias=False)
        self.value = nn.Linear(a.width, a.attention_width, bias=False)
        self.out = nn.Linear(a.attention_width, a.width)
        inputs = (a.latents + 2) * a.width
        self.velocity = Head(inputs, a.hidden, a.mlp, OUTPUTS)
        self.log_std = Head(inputs, a.hidden, a.mlp, OUTPUTS)
        self.register_buffer("_pick", torch.tensor(a.pooled_columns), persistent=False)  # (C, R)

    def plain(self, inputs: Tensor, state: RecurrentState | None = None, keep: Tensor | None = None) -> Outputs:
        """The forward pass as the paper draws it; see `run` for the arguments."""
        a = self.architecture
        state = self.start(len(inputs)) if state is None else state
        samples, known = self._with_history(inputs, state)
        embedded = [self.embed[token.embedding](samples[:, :, list(token.columns)]) for token in a.tokens]
        tokens = torch.stack(embedded, 2)  # (B, Nt - 1 + T, C, D)
        windows = tokens.unfold(1, a.history, 1).movedim(-1, 2)  # (B, T, Nt, C, D)
        windows = windows + self.token_position + self.slot_position[:, None]
        visible = known.unfold(1, a.history, 1)[..., None].expand(windows.shape[:-1])
        visible = visible if keep is None else visible & keep

        flat = windows.flatten(2, 3)  # (B, T, Nt C, D)
        sizes = (a.heads, a.head_width)
        q = unflatten(self.query(self.latents), -1, sizes)  # (M, H, d)
        k, v = unflatten(self.key(flat), -1, sizes), unflatten(self.value(flat), -1, sizes)  # (B, T, Nt C, H, d)
        scores = torch.einsum("mhd,btnhd->btmhn", q, k) / math.sqrt(a.head_width)
        scores = scores.masked_fill(~visible.flatten(2, 3)[:, :, None, None], HIDDEN)
        answers = torch.einsum("btmhn,btnhd->btmhd", torch.softmax(scores, -1), v)
        encoded = self.out(answers.flatten(3, 4))  # (B, T, M, D)

        inertial = windows[:, :, -1, :2]  # (B, T, 2, D): gyro and accelerometer, now
        x = torch.cat([encoded.flatten(2), inertial.flatten(2)], -1)  # (B, T, (M + 2) D)
        hidden = state.hidden.transpose(1, 2).contiguous()
        y_velocity, h_velocity = self.velocity.gru(x, hidden[:1])
        y_log_std, h_log_std = self.log_std.gru(x, hidden[1:])
        return Outputs(
            velocity=self.velocity.mlp(y_velocity),
            log_std=self.bounded(self.log_std.mlp(y_log_std)),
            state=self._next(torch.cat([h_velocity, h_log_std]).transpose(1, 2), samples, known),
        )

    def _run(self, inputs: Tensor, state: RecurrentState, keep: Tensor | None, uncertain: bool) -> Outputs:
        """The folded forward pass: the same numbers as `plain` at an eighth of the cost."""
        samples, known = self._with_history(inputs, state)
        score, encode, weight, offset = self._fold()
        values = self._values(samples)
        pooled, masses = pool(*self._scores(values, known, score), keep, values)
        now = samples[:, -inputs.shape[1] :, :6]
        x = torch.cat([self._encoded(pooled, masses, encode), now], -1)
        heads = [self.velocity, self.log_std] if uncertain else [self.velocity]
        bias = torch.stack([head.gru.bias_ih_l0 for head in heads]) + offset[: len(heads)]
        x = x.permute(1, 2, 0).contiguous()  # (T, M D + 6, B)
        gates = affine(weight[: len(heads)].flatten(0, 1), bias.flatten(), x)
        gates = unflatten(gates, 1, (len(heads), -1))  # (T, G, 3 H, B)
        hidden = gru(gates, state.hidden[: len(heads)], [head.gru for head in heads])
        velocity = self.velocity.mlp.by_column(hidden[:, 0]).permute(2, 0, 1)
        log_std = self.bounded(self.log_std.mlp.by_column(hidden[:, 1])).permute(2, 0, 1) if uncertain else None
        last = hidden[-1] if uncertain else torch.cat([hidden[-1], state.hidden[1:]])
        return Outputs(velocity, log_std, self._next(last, samples, known))

    def attention(self, inputs: Tensor, keep: Tensor | None = None) -> Tensor:
        """Where each latent and head looks from the start of a log: weights (B, T, M, H, Nt, C), slots oldest first."""
        a = self.architecture
        samples, known = self._with_history(inputs, self.start(len(inputs)))
        scores, slots = self._scores(self._values(samples), known, self._fold()[0])
        return unflatten(attend(scores, slots, keep), 2, (a.latents, a.heads))

    def _with_history(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor]:
        """Normalised samples (B, Nt - 1 + T, F) with those before, and which of them exist (B, Nt - 1 + T)."""
        samples = torch.cat([state.history, self.normalise(inputs)], 1)
        return samples, torch.cat([state.known, state.known.new_ones(inputs.shape[:2])], 1)

    def _next(self, hidden: Tensor, samples: Tensor, known: Tensor) -> RecurrentState:
        first = samples.shape[1] - self._past
        return RecurrentState(hidden, samples[:, first:], known[:, first:])

    def _fold(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """See `fold`."""
        a, w = self.architecture, dict(self.named_parameters())
        rows = [w[f"embed.{name}.weight"].T for name in a.embeddings]
        biases = torch.stack([w[f"embed.{token.embedding}.bias"] for token in a.tokens])
        return fold(w, a, torch.cat([*rows, biases + self.token_position, self.slot_position]), torch)

    def _values(self, samples: Tensor) -> Tensor:
        """What is pooled: the raw numbers of each token at the place of its embedding, and a one for its share."""
        zero_one = samples.new_tensor([0.0, 1.0]).expand(*samples.shape[:2], 2)
        values = torch.cat([samples, zero_one], -1).index_select(2, self._pick.flatten())
        return unflatten(values, -1, tuple(self._pick.shape))

    def _scores(self, values: Tensor, known: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of each sample's tokens (B, M H, Nt - 1 + T, C), and what each slot adds to them (M H, Nt)."""
        of_token, of_slot = score[:, : values.shape[-1]], score[:, values.shape[-1] :]
        scores = (values @ of_token.T).permute(0, 3, 1, 2)
        if not bool(known.all()):
            scores = scores.masked_fill(~known[:, None, :, None], HIDDEN)
        return scores, of_slot

    def _encoded(self, pooled: Tensor, masses: Tensor, encode: Tensor) -> Tensor:
        """The encoder's output (B, T, M D) without its offset, of pooled numbers (B, T, M H, R) and shares of slots."""
        a = self.architecture
        matrix = encode.transpose(1, 2)  # (H, R + Nt, D)
        # Two products instead of joining the pooled numbers: (B, T, M, H R) and (B, T, M, H Nt).
        by_token, by_slot = matrix[:, : -a.history], matrix[:, -a.history :]
        encoded = unflatten(pooled, 2, (a.latents, a.heads)).flatten(3) @ by_token.flatten(0, 1)
        encoded = encoded + unflatten(masses, 2, (a.latents, a.heads)).flatten(3) @ by_slot.flatten(0, 1)
        return encoded.flatten(2)
