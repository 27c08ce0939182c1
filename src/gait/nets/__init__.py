"""The networks: from IMU and joint samples to body velocity and its standard deviation.

`architecture`, `cost`, `model`, `parts` and `pack` need numpy and safetensors alone: they describe a network, count its
cost, keep it in a file and prepare it for running. `gait`, `nmn` and `legs` are the networks themselves, in torch,
for training.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gait.nets.architecture import Architecture, AttentionArchitecture, NmnArchitecture, architecture_of

if TYPE_CHECKING:
    from gait.nets.model import Model, load_model

__all__ = ["Architecture", "AttentionArchitecture", "Model", "NmnArchitecture", "architecture_of", "load_model"]


def __getattr__(name: str) -> Any:
    # On first use: a command line made from an architecture must not wait for numpy.
    if name in ("Model", "load_model"):
        return getattr(importlib.import_module("gait.nets.model"), name)
    raise AttributeError(f"module 'gait.nets' has no attribute '{name}'")
