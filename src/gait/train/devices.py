"""Where a training computes: on the processor, or on a GPU by CUDA.

Random numbers are drawn on the processor and moved, so that both see the same batches, masks and noise.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gait.arrays import AnyArray
from gait.errors import GaitError

CHOICES = ("auto", "cpu", "cuda")
CPU = torch.device("cpu")
NO_CUDA = "torch finds no CUDA device on this machine: train with --device cpu, or install a torch built for your GPU"


def device_of(choice: str) -> torch.device:
    """The device of a choice: `auto` is `cuda` where torch finds one.

    Raises:
        GaitError: for `cuda` where there is none, and for an unknown choice.
    """
    if choice not in CHOICES:
        raise GaitError(f"unknown device '{choice}': choose one of {', '.join(CHOICES)}")
    there = torch.cuda.is_available()
    if choice == "cuda" and not there:
        raise GaitError(NO_CUDA)
    return torch.device("cuda" if there and choice != "cpu" else "cpu")


def tensor_on(device: torch.device, array: AnyArray) -> Tensor:
    """An array as a tensor on a device; on the processor they share their memory."""
    return torch.from_numpy(np.asarray(array)).to(device)
