"""Attention over sliding windows without copying a window: the heart of the folded form in training.

A step and its neighbour share all but one slot of their windows. Scores and values of each sample are computed once and
the windows are overlapping views of them; only the softmax has a number for every slot, token and step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

HIDDEN = -1e30
"""Score of what must not be seen. Finite, so that a window with nothing to see pools evenly instead of giving nan."""


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
    return torch.eye(weights.shape[3], dtype=weights.dtype).repeat_interleave(weights.shape[4], 0)


def _windows(values: Tensor, history: int) -> Tensor:
    """The rows that each step looks at, (T, Nt C, R), as overlapping views of one sequence (Nt - 1 + T, C, R)."""
    samples, tokens, size = values.shape
    shape = (samples - history + 1, history * tokens, size)
    return values.as_strided(shape, (tokens * size, size, 1), values.storage_offset())
