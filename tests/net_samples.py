"""Networks with random weights, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gait.arrays import Array
from gait.nets import Model, architecture_of
from gait.nets.architecture import Architecture, LegsArchitecture
from gait.nets.base import VelocityNet
from gait.nets.build import build, weights_of


def random_normaliser(architecture: Architecture, seed: int = 0) -> tuple[Array, Array]:
    """A mean and a std of all features; legs share theirs."""
    rng = np.random.default_rng(seed)
    if isinstance(architecture, LegsArchitecture):
        return rng.normal(size=architecture.token), rng.uniform(0.5, 2.0, architecture.token)
    mean, std = rng.normal(size=architecture.num_features), rng.uniform(0.5, 2.0, architecture.num_features)
    for name in architecture.joint_features:
        for leg in range(architecture.legs):
            columns, first = list(architecture.columns(name, leg)), list(architecture.columns(name, 0))
            mean[columns], std[columns] = mean[first], std[first]
    return mean, std


def random_net(kind: str, seed: int = 0, **values: Any) -> VelocityNet:
    """A network far from its initialisation: positions, latents and biases all matter."""
    architecture = architecture_of({"kind": kind, **values})
    torch.manual_seed(seed)
    net = build(architecture, *random_normaliser(architecture, seed))
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.add_(torch.randn_like(parameter) * (0.5 if parameter.ndim == 1 or "position" in name else 0.1))
    return net


def random_model(kind: str = "gait", seed: int = 0, **values: Any) -> Model:
    net = random_net(kind, seed, **values)
    legs = tuple(["FR", "FL", "RR", "RL"][: net.architecture.legs])
    return Model(
        architecture=net.architecture,
        weights=weights_of(net),
        robot="go1",
        leg_names=legs,
        joint_names=tuple(f"{leg}_{joint}_joint" for leg in legs for joint in ("hip", "thigh", "calf")),
        rate=500.0,
        training={"iterations": 1},
        commit="abc",
    )


def random_inputs(architecture: Architecture, batch: int, steps: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(batch, steps, architecture.num_features, generator=torch.Generator().manual_seed(seed)) * 2.0
