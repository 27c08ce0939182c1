"""A linear layer on columns (T, features, B), the layout of `gait.nets.recurrent`.

torch.matmul would copy the columns to rows and back; here every step is a product of its own, on the memory as it lies.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

SMALL = 8192
"""Up to this many weights it is quicker to keep the gradient of every step and add them at the end."""


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
