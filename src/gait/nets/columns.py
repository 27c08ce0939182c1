"""A linear layer on columns (T, features, B), the layout of `gait.nets.recurrent`.

torch.matmul would copy the columns to rows and back; here every step is a product of its own, on the memory as it lies.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
        d_weight, d_bias = torch.zeros_like(weight), weight.new_zeros(len(weight))
        ones = weight.new_ones(x.shape[2])
        for t in range(len(x)):
            d_weight.addmm_(d_y[t], x[t].T)
            d_bias.addmv_(d_y[t], ones)
        d_x = None
        if ctx.needs_input_grad[2]:
            d_x = torch.bmm(weight.T.contiguous().expand(len(x), -1, -1), d_y)
        return d_weight, d_bias, d_x
