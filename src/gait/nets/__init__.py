"""The networks: from IMU and joint samples to body velocity and its standard deviation.

`architecture`, `cost`, `model`, `parts` and `pack` need numpy and safetensors alone: they describe a network, count its
cost, keep it in a file and prepare it for running. `gait`, `nmn` and `legs` are the networks themselves, in torch,
for training. `torch_batch` is the whole estimator in torch, for n robots inside a simulator that trains policies.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gait.errors import need_extra
from gait.nets.architecture import Architecture, AttentionArchitecture, NmnArchitecture, architecture_of

if TYPE_CHECKING:
    from gait.nets.model import Model, load_model
    from gait.nets.torch_batch import TorchBatch

__all__ = [
    "Architecture",
    "AttentionArchitecture",
    "Model",
    "NmnArchitecture",
    "TorchBatch",
    "architecture_of",
    "load_model",
]


def __getattr__(name: str) -> Any:
    # On first use: a command line made from an architecture must not wait for numpy.
    if name in ("Model", "load_model"):
        return getattr(importlib.import_module("gait.nets.model"), name)
    if name == "TorchBatch":
        try:
            return importlib.import_module("gait.nets.torch_batch").TorchBatch
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise need_extra("torch", "train") from None
    raise AttributeError(f"module 'gait.nets' has no attribute '{name}'")
