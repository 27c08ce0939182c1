"""The operations that training spends its time on, with their gradients written out: GRUs, linear layers, attention.

GRUs over whole sequences, side by side: the same numbers as `torch.nn.GRU`, two to four times as fast on one core.

Three things cost time in `torch.nn.GRU` on a CPU: autograd notes every small operation of every step, the weight's
gradient is summed step by step, and tanh is three times as slow as the sigmoid. Here the steps of forward and backward
are written out, several GRUs run as one batch of matrices, and the weight's gradient is one product at the end.

Sequences are laid out as (T, G, features, B): with the batch last, each gate of a step is one block of memory. `affine`
is a linear layer in this layout: torch.matmul would copy columns to rows and back; here every step is a product of its
own, on the memory as it lies.

Attention over sliding windows without copying a window: the heart of the folded form in training.

A step and its neighbour share all but one slot of their windows. Scores and values of each sample are computed once and
the windows are overlapping views of them; only the softmax has a number for every slot, token and step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gait.nets.architecture import HIDDEN

SMALL = 8192
"""Up to this many weights it is quicker to keep the gradient of every step and add them at the end."""


def gru(gates: Tensor, hidden: Tensor, modules: Sequence[Any]) -> Tensor:
    """Run G GRUs side by side.

    Args:
        gates: what the inputs add to the gates, `weight_ih x + bias_ih`, (T, G, 3 H, B).
        hidden: state before the first step (G, H, B).
        modules: `torch.nn.GRU` of one layer that hold the weights; G of them.

    Returns:
        The states after each step (T, G, H, B).
    """
    weight = torch.stack([module.weight_hh_l0 for module in modules])  # (G, 3 H, H)
    bias = torch.stack([module.bias_hh_l0 for module in modules])  # (G, 3 H)
    states: Tensor = _Gru.apply(gates, hidden, weight, bias)  # type: ignore[no-untyped-call]
    return states


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        steps, count, size, batch = (*gates.shape[:2], hidden.shape[1], gates.shape[3])
        weight_rz, weight_n = weight[:, : 2 * size].contiguous(), weight[:, 2 * size :].contiguous()
        bias_n = bias[:, 2 * size :, None].expand(count, size, batch).contiguous()
        gates_rz = gates[:, :, : 2 * size] + bias[:, : 2 * size, None]
        reset_update = gates.new_empty(steps, count, 2 * size, batch)
        inner = gates.new_empty(steps, count, size, batch)
        new = gates.new_empty(steps, count, size, batch)
        states = gates.new_empty(steps + 1, count, size, batch)
        states[0] = hidden
        # Views of each step, made at once: slicing in the loop would take as long as the arithmetic.
        views = (gates_rz, gates[:, :, 2 * size :], reset_update, reset_update[:, :, :size], reset_update[:, :, size:])
        steps_of = zip(*(x.unbind(0) for x in (*views, inner, new, states[:-1], states[1:])), strict=True)
        for g_rz, g_n, rz, r, z, m, n, h, h_next in steps_of:
            torch.baddbmm(g_rz, weight_rz, h, out=rz).sigmoid_()
            torch.baddbmm(bias_n, weight_n, h, out=m)
            # tanh(x) = 2 sigmoid(2 x) - 1
            torch.addcmul(g_n, r, m, out=n).mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)
            torch.lerp(n, h, z, out=h_next)
        ctx.save_for_backward(reset_update, inner, new, states, weight)
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        reset_update, inner, new, states, weight = ctx.saved_tensors
        steps, count, size, batch = new.shape
        reset, update, before = reset_update[:, :, :size], reset_update[:, :, size:], states[:-1]
        # How a change of the state moves each gate, for all steps at once; the loop only multiplies.
        new_gain = (1.0 - update) * (1.0 - new * new)
        slopes = new.new_empty(steps, count, 3, size, batch)
        torch.mul(new_gain * inner, reset * (1.0 - reset), out=slopes[:, :, 0])
        torch.mul(before - new, update * (1.0 - update), out=slopes[:, :, 1])
        torch.mul(new_gain, reset, out=slopes[:, :, 2])
        transposed = weight.transpose(1, 2).contiguous()
        d_weight = torch.zeros_like(weight)
        total = outputs[0].clone()
        carried = torch.zeros_like(states[0])
        d_recurrent = slopes.view(steps, count, 3 * size, batch)
        views = (total, total[:, :, None], slopes, d_recurrent, update, before.transpose(2, 3))
        for state, state_by_gate, slope, d_gates, z, h in reversed(
            list(zip(*(x.unbind(0) for x in views), strict=True))
        ):
            state.add_(carried)
            slope.mul_(state_by_gate)
            torch.mul(state, z, out=carried)
            d_weight.baddbmm_(d_gates, h)
            torch.baddbmm(carried, transposed, d_gates, out=carried)
        d_bias = d_recurrent.sum(0).sum(2)
        # The gates' own gradient differs in the new state's part only, where the reset gate stands between.
        torch.mul(total, new_gain, out=slopes[:, :, 2])
        return d_recurrent, carried, d_weight, d_bias


def affine(weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """weight (outputs, inputs) times x (T, inputs, B) plus bias (outputs,): (T, outputs, B)."""
    y: Tensor = _Affine.apply(weight, bias, x)  # type: ignore[no-untyped-call]
    return y


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(weight, x)
        steps, _, batch = x.shape
        offset = bias[:, None].expand(-1, batch)
        return torch.baddbmm(offset, weight.expand(steps, -1, -1), x)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        weight, x = ctx.saved_tensors
        d_y = outputs[0].contiguous()
        if weight.numel() <= SMALL:
            d_weight = torch.bmm(d_y, x.transpose(1, 2)).sum(0)
        else:
            d_weight = torch.zeros_like(weight)
            for step, columns in zip(d_y.unbind(0), x.transpose(1, 2).unbind(0), strict=True):
                d_weight.addmm_(step, columns)
        d_bias = d_y.sum(0).sum(1)
        d_x = None
        if ctx.needs_input_grad[2]:
            d_x = torch.bmm(weight.T.contiguous().expand(len(x), -1, -1), d_y)
        return d_weight, d_bias, d_x


def attend(scores: Tensor, slots: Tensor, keep: Tensor | None) -> Tensor:
    """Attention weights of every window.

    Args:
        scores: of each sample's tokens (B, Q, Nt - 1 + T, C).
        slots: what a sample's place in the window adds to its scores, oldest first (Q, Nt).
        keep: what may be seen (B, T, Nt, C); None means all.

    Returns:
        Weights (B, T, Q, Nt, C) that sum to one over slots and tokens.
    """
    batch, queries, samples, tokens = scores.shape
    history = slots.shape[1]
    steps = samples - history + 1
    scores = scores.contiguous()
    shape = (batch, steps, queries, history, tokens)
    windows = scores.as_strided(
        shape, (queries * samples * tokens, tokens, samples * tokens, tokens, 1), scores.storage_offset()
    )
    weights = torch.add(windows, slots[:, :, None], out=scores.new_empty(shape))
    if keep is not None:
        weights += torch.logical_not(keep).to(weights.dtype).mul_(HIDDEN)[:, :, None]
    flat = weights.view(batch, steps, queries, history * tokens)
    return torch.softmax(flat, -1).view(shape)


def pool(scores: Tensor, slots: Tensor, keep: Tensor | None, values: Tensor) -> tuple[Tensor, Tensor]:
    """What the attention gathers.

    Args:
        scores: see `attend`.
        slots: see `attend`.
        keep: see `attend`.
        values: of each sample's tokens (B, Nt - 1 + T, C, R); data, so no gradient flows to them.

    Returns:
        The weighted sums of the values (B, T, Q, R), and the weight on each slot (B, T, Q, Nt).
    """
    pooled, masses = _Pool.apply(scores, slots, keep, values)  # type: ignore[no-untyped-call]
    return pooled, masses


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, slots: Tensor, keep: Tensor | None, values: Tensor) -> tuple[Tensor, Tensor]:
        weights = attend(scores, slots, keep)
        batch, steps, queries, history, tokens = weights.shape
        pooled = values.new_empty(batch, steps, queries, values.shape[3])
        for i in range(batch):
            torch.bmm(weights[i].view(steps, queries, -1), _windows(values[i], history), out=pooled[i])
        ctx.save_for_backward(weights, values)
        masses = torch.mm(weights.view(-1, history * tokens), _slots(weights))
        return pooled, masses.view(batch, steps, queries, history)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, None, None]:
        d_pooled, d_masses = outputs
        weights, values = ctx.saved_tensors
        batch, steps, queries, history, tokens = weights.shape
        d_weights = torch.empty_like(weights)
        d_pooled = d_pooled.contiguous()
        for i in range(batch):
            transposed = _windows(values[i], history).transpose(1, 2)
            torch.bmm(d_pooled[i], transposed, out=d_weights[i].view(steps, queries, -1))
        d_weights.view(-1, history * tokens).addmm_(d_masses.reshape(-1, history), _slots(weights).T)
        flat = (batch, steps, queries, history * tokens)
        d = torch._softmax_backward_data(d_weights.view(flat), weights.view(flat), -1, weights.dtype)
        d_slots = d.view(batch * steps, -1).sum(0).view(queries, history, tokens).sum(2)
        d = d.view(weights.shape)
        d_scores = weights.new_zeros(batch, steps + history - 1, queries, tokens)
        for j in range(history):
            d_scores[:, j : j + steps] += d[:, :, :, j]
        return d_scores.transpose(1, 2), d_slots, None, None


def _slots(weights: Tensor) -> Tensor:
    """Which slot each column of a window belongs to, as a matrix (Nt C, Nt): a product with it sums over tokens."""
    eye = torch.eye(weights.shape[3], dtype=weights.dtype, device=weights.device)
    return eye.repeat_interleave(weights.shape[4], 0)


def _windows(values: Tensor, history: int) -> Tensor:
    """The rows that each step looks at, (T, Nt C, R), as overlapping views of one sequence (Nt - 1 + T, C, R)."""
    samples, tokens, size = values.shape
    shape = (samples - history + 1, history * tokens, size)
    return values.as_strided(shape, (tokens * size, size, 1), values.storage_offset())
