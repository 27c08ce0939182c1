"""One step of a network for n robots at once in torch, in single precision: `gait.reference.network` by its names.

The arrays are those of `gait.nets.parts`, which core, reference and ONNX start from as well.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn, unflatten

from gait.nets.architecture import HIDDEN, AttentionArchitecture, LegsArchitecture
from gait.nets.features import VELOCITY
from gait.nets.model import Model
from gait.nets.parts import leg_parts, parts_of
from gait.nets.torch_filter import constant


class TorchNetwork(nn.Module):
    """`gait`, `gait-flat` or `nmn` from sample to sample."""

    h: Tensor
    """Hidden states of the GRUs (n, G, H)."""

    def __init__(self, model: Model, n: int) -> None:
        super().__init__()
        a, parts = model.architecture, parts_of(model)
        self._log_std = a.log_std_min, a.log_std_max
        for name, array in parts._asdict().items():
            self.register_buffer(f"w_{name}", constant(array, torch.float32), persistent=False)
        self.encoder = TorchEncoder(a, n) if isinstance(a, AttentionArchitecture) else None
        grus, _, hidden = parts.recurrent_weight.shape
        self.register_buffer("h", torch.zeros(n, grus, hidden))

    w_gate_weight: Tensor
    w_gate_bias: Tensor
    w_recurrent_weight: Tensor
    w_recurrent_bias: Tensor
    w_hidden_weight: Tensor
    w_hidden_bias: Tensor
    w_output_weight: Tensor
    w_output_bias: Tensor
    w_score: Tensor
    w_encode: Tensor

    def step(self, x: Tensor, begins: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Body velocity (n, 3), m/s, and the log of its standard deviation (n, 3), of one more sample.

        Args:
            x: raw numbers (n, F) in the order of `gait.nets.features`.
            begins: robots that have no sample before (n,).
            active: robots that have this one (n,); the others remember what they did.
        """
        if self.encoder is not None:
            encoded = self.encoder.step(x, begins, active, self.w_score, self.w_encode)
            x = torch.cat([encoded, x[:, :6]], 1)
        h = torch.where(begins[:, None, None], 0.0, self.h)
        # G GRUs side by side: velocity and log-std have one each; nmn has one for both.
        gates_x = torch.einsum("gri,ni->ngr", self.w_gate_weight, x) + self.w_gate_bias
        gates_h = torch.einsum("grh,ngh->ngr", self.w_recurrent_weight, h)
        reset_x, update_x, new_x = gates_x.chunk(3, 2)
        reset_h, update_h, new_h = gates_h.chunk(3, 2)
        reset, update = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
        new = torch.tanh(new_x + reset * (new_h + self.w_recurrent_bias))
        h = (1.0 - update) * new + update * h
        self.h = torch.where(active[:, None, None], h, self.h)
        h = h.expand(-1, 2, -1)
        layer = torch.relu(torch.einsum("omh,noh->nom", self.w_hidden_weight, h) + self.w_hidden_bias)
        velocity, raw = (torch.einsum("oam,nom->noa", self.w_output_weight, layer) + self.w_output_bias).unbind(1)
        return velocity, bounded(raw, *self._log_std)


class TorchEncoder(nn.Module):
    """Cross-attention of constant queries over the tokens of the last Nt samples."""

    rows: Tensor
    """What the samples in the window add to the pool, oldest first (n, Nt C, P - Nt)."""
    seen: Tensor
    """Which of them there are (n, Nt C)."""
    columns: Tensor
    slots: Tensor

    def __init__(self, a: AttentionArchitecture, n: int) -> None:
        super().__init__()
        self.tokens, self._heads = len(a.tokens), (a.latents, a.heads)
        slots = torch.eye(a.history).repeat_interleave(self.tokens, 0)  # (Nt C, Nt)
        self.register_buffer("columns", torch.tensor(a.pooled_columns), persistent=False)  # (C, P - Nt)
        self.register_buffer("slots", slots, persistent=False)
        self.register_buffer("rows", torch.zeros(n, len(slots), self.columns.shape[1]))
        self.register_buffer("seen", torch.zeros(n, len(slots), dtype=torch.bool))

    def step(self, x: Tensor, begins: Tensor, active: Tensor, score: Tensor, encode: Tensor) -> Tensor:
        """The encoder's output (n, M D) without its offset, which is in the gates."""
        zero_one = x.new_zeros(len(x), 2)
        zero_one[:, 1] = 1.0
        new = torch.cat([x, zero_one], 1)[:, self.columns]  # (n, C, P - Nt)
        past = torch.where(begins[:, None], False, self.seen[:, self.tokens :])
        rows = torch.cat([self.rows[:, self.tokens :], new], 1)
        seen = torch.cat([past, past.new_ones(len(x), self.tokens)], 1)
        self.rows = torch.where(active[:, None, None], rows, self.rows)
        self.seen = torch.where(active[:, None], seen, self.seen)
        size = rows.shape[2]
        scores = score[:, :size] @ rows.mT + score[:, size:] @ self.slots.T  # (n, Q, Nt C)
        shares = torch.softmax(torch.where(seen[:, None], scores, HIDDEN), -1)
        pooled = unflatten(torch.cat([shares @ rows, shares @ self.slots], 2), 1, self._heads)  # (n, M, heads, P)
        return torch.einsum("hdp,nmhp->nmd", encode, pooled).flatten(1)


class TorchLegs(nn.Module):
    """`gait-legs` from sample to sample: the same network for every leg, which may look at the others."""

    base: Tensor
    """What all legs share, of the last samples, newest first (n, depth, 6)."""
    own: Tensor
    """What a leg has of its own (n, L, depth, own)."""

    def __init__(self, model: Model, n: int) -> None:
        super().__init__()
        a = model.architecture
        assert isinstance(a, LegsArchitecture)
        self._attends, self._lags, self._log_std = a.attention_width > 0, a.lags, (a.log_std_min, a.log_std_max)
        for name, array in leg_parts(model)._asdict().items():
            self.register_buffer(f"w_{name}", constant(array, torch.float32), persistent=False)
        # Side by side, so a slice does; a list of numbers would be copied to the device in every step.
        self._columns = slice(a.leg_columns[0], a.leg_columns[-1] + 1)
        assert a.leg_columns == tuple(range(self._columns.start, self._columns.stop))
        depth = a.lags[-1] + 1
        self.register_buffer("base", torch.zeros(n, depth, 6))
        self.register_buffer("own", torch.zeros(n, a.legs, depth, len(a.leg_columns)))

    w_shared: Tensor
    w_own: Tensor
    w_hidden: Tensor
    w_look: Tensor
    w_mix: Tensor
    w_output: Tensor

    def step(self, shared: Tensor, legs: Tensor, begins: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Velocity of base_link (n, L, 3) as each leg measures it, and the log of its standard deviation (n, L, 3).

        Args:
            shared: angular rate and specific force in base axes (n, 6).
            legs: features of each leg (n, L, 12).
            begins: robots that have no sample before (n,); their past is taken to be like this sample.
            active: robots that have this one (n,); the others remember what they did.
        """
        base, own = self._window(shared, legs, begins, active)  # (n, frames 6), (n, L, frames own)
        x = torch.relu(affine_of(self.w_shared, base)[:, None] + own @ self.w_own.T)
        x = torch.relu(affine_of(self.w_hidden, x))  # (n, L, H)
        if self._attends:
            heads, width = self.w_look.shape[1:3]
            looks = unflatten(affine_of(self.w_look.flatten(0, 2), x), 2, (3, heads, width))
            query, key, value = looks.permute(2, 0, 3, 1, 4)  # (n, heads, L, width) each
            shares = torch.softmax(query @ key.mT, -1)
            x = torch.cat([x, (shares @ value).transpose(1, 2).flatten(2)], 2)
        y = affine_of(self.w_output, torch.relu(affine_of(self.w_mix, x)))  # (n, L, 3 or 4)
        velocity = legs[..., VELOCITY : VELOCITY + 3]
        if y.shape[2] > 3:
            velocity = velocity + nn.functional.pad(y[..., 3:], (2, 0))
        return velocity, bounded(y[..., :3], *self._log_std)

    def _window(self, shared: Tensor, legs: Tensor, begins: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """The frames that the network reads, newest first."""
        new_base, new_own = shared[:, None], legs[:, :, None, self._columns]
        past_base = torch.where(begins[:, None, None], new_base, self.base[:, :-1])
        past_own = torch.where(begins[:, None, None, None], new_own, self.own[:, :, :-1])
        base, own = torch.cat([new_base, past_base], 1), torch.cat([new_own, past_own], 2)
        self.base = torch.where(active[:, None, None], base, self.base)
        self.own = torch.where(active[:, None, None, None], own, self.own)
        stride = self._lags[1] if len(self._lags) > 1 else 1
        return base[:, ::stride].flatten(1), own[:, :, ::stride].flatten(2)


def affine_of(weights: Tensor, x: Tensor) -> Tensor:
    """W x + b, with b as the first column of the weights."""
    return x @ weights[:, 1:].T + weights[:, 0]


def bounded(x: Tensor, low: float, high: float) -> Tensor:
    """A log-std within its bounds."""
    return low + (high - low) * torch.sigmoid(x)
