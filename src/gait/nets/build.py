"""Networks from their architecture, and back to a model file."""

from __future__ import annotations

import numpy as np
import torch

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.nets.architecture import Architecture, AttentionArchitecture, LegsArchitecture, NmnArchitecture
from gait.nets.base import VelocityNet
from gait.nets.flat import FlatNet
from gait.nets.gait import GaitNet
from gait.nets.legs import LegsNet
from gait.nets.model import Model
from gait.nets.nmn import NmnNet


def build(architecture: Architecture, mean: Array, std: Array) -> VelocityNet:
    """A network with fresh weights, drawn from torch's generator.

    Args:
        architecture: its kind and size.
        mean: of the features (F,).
        std: of the features (F,).
    """
    if isinstance(architecture, NmnArchitecture):
        return NmnNet(architecture, mean, std)
    if isinstance(architecture, LegsArchitecture):
        return LegsNet(architecture, mean, std)
    assert isinstance(architecture, AttentionArchitecture)
    return (FlatNet if architecture.kind == "gait-flat" else GaitNet)(architecture, mean, std)


def weights_of(net: VelocityNet) -> dict[str, AnyArray]:
    """The learned numbers and the normaliser of a network, by name."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in net.state_dict().items()}


def network_of(model: Model) -> VelocityNet:
    """The network that a model file holds."""
    net = build(model.architecture, model.mean, model.std)
    weights = {name: torch.from_numpy(np.array(array, dtype=np.float32)) for name, array in model.weights.items()}
    try:
        net.load_state_dict(weights)
    except RuntimeError:
        raise GaitError(f"the weights do not fit a network of kind {model.architecture.kind}: train it again") from None
    return net.eval()
