"""One network on several processes: each runs it on its part of a batch, and all compute the loss of the whole.

What a process draws at random it draws for the whole batch, and the loss sees the outputs of all parts. So a trainer
does not know that it is one of several, and a loss need not be a mean over sequences: gradients are those of one
process with the same batch, but for the order of sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed, nn

from gait.nets.base import VelocityNet
from gait.nets.legs import LegsNet

ALONE = ("state", "attention")
"""Outputs that stay with the process: a state that it carries on, and what no loss looks at."""


class _Whole(torch.autograd.Function):
    """The outputs of all parts, (B / processes, ...) to (B, ...); the gradient of a process is that of its own part."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        parts = [torch.empty_like(part) for _ in range(distributed.get_world_size())]
        distributed.all_gather(parts, part.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        # DistributedDataParallel takes the mean over processes, and this is their sum.
        count = distributed.get_world_size()
        return count * gradients[0].chunk(count)[distributed.get_rank()]


class _Call(nn.Module):
    """A method of a network as a module, which is what DistributedDataParallel takes."""

    def __init__(self, net: VelocityNet, method: Callable[..., Any]) -> None:
        super().__init__()
        self.net, self._method = net, method

    def forward(self, *words: Any) -> Any:
        return self._method(*words)


def share(net: VelocityNet) -> None:
    """Have a network do its part of every batch that it learns from; without gradients it runs as before."""
    name = "legs" if isinstance(net, LegsNet) else "run"
    alone: Callable[..., Any] = getattr(net, name)
    # In its first stage a training leaves the head of the standard deviation out.
    parallel = nn.parallel.DistributedDataParallel(
        _Call(net, alone), broadcast_buffers=False, find_unused_parameters=True
    )
    rank, count = distributed.get_rank(), distributed.get_world_size()

    def part(value: Any, batch: int) -> Any:
        # A state is a tuple and a range of steps a slice: they go as they are.
        return value.chunk(count)[rank] if isinstance(value, Tensor) and len(value) == batch else value

    def run(inputs: Tensor, *words: Any) -> Any:
        if not torch.is_grad_enabled():
            return alone(inputs, *words)
        outputs = parallel(*(part(value, len(inputs)) for value in (inputs, *words)))
        gathered = {
            name: _Whole.apply(value)  # type: ignore[no-untyped-call]
            for name, value in outputs._asdict().items()
            if isinstance(value, Tensor) and name not in ALONE
        }
        return outputs._replace(**gathered)

    # On this network alone, and no part of it: its weights keep their names.
    net.__dict__[name] = run
