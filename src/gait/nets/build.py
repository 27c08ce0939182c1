"""Networks from their architecture, and back to a model file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.nets.architecture import Architecture
from gait.nets.base import VelocityNet
from gait.nets.gait import GaitNet
from gait.nets.legs import LegsNet
from gait.nets.model import Model
from gait.nets.nmn import NmnNet

_NETS: dict[str, Callable[[Any, Array, Array], VelocityNet]] = {
    "gait": GaitNet,
    "gait-flat": GaitNet,
    "nmn": NmnNet,
    "gait-legs": LegsNet,
}
"""The classes by kind; each takes an architecture of its own."""


def build(architecture: Architecture, mean: Array, std: Array) -> VelocityNet:
    """A network with fresh weights, drawn from torch's generator.

    Args:
        architecture: its kind and size.
        mean: of the features (F,).
        std: of the features (F,).
    """
    return _NETS[architecture.kind](architecture, mean, std)


def weights_of(net: VelocityNet) -> dict[str, AnyArray]:
    """The learned numbers and the normaliser of a network, by name."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in net.state_dict().items()}


def network_of(model: Model) -> VelocityNet:
    """The network that a model file holds."""
    net = build(model.architecture, model.weights["mean"], model.weights["std"])
    weights = {name: torch.from_numpy(np.array(array, dtype=np.float32)) for name, array in model.weights.items()}
    try:
        net.load_state_dict(weights)
    except RuntimeError:
        raise GaitError(f"the weights do not fit a network of kind {model.architecture.kind}: train it again") from None
    return net.eval()
