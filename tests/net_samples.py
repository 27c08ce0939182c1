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

VARIANTS: list[dict[str, Any]] = [
    {"kind": "gait"},
    {"kind": "gait", "legs": 2},
    {"kind": "gait", "targets": False},
    {"kind": "gait", "history": 3, "latents": 3, "heads": 1, "width": 8, "head_width": 5, "hidden": 7},
    {"kind": "gait", "history": 1},
    {"kind": "gait-flat"},
    {"kind": "gait-flat", "legs": 2, "targets": False},
    {"kind": "nmn"},
    {"kind": "nmn", "legs": 2, "targets": False},
]
"""Architectures whose output is one velocity of the body."""
ATTENTIVE = [variant for variant in VARIANTS if variant["kind"] != "nmn"]


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
    return model_of(random_net(kind, seed, **values))


def legs_model(seed: int = 0, **values: Any) -> Model:
    """A network of `gait-legs` far from its initialisation, on numbers of the size that features have."""
    architecture = LegsArchitecture(**values)
    torch.manual_seed(seed)
    net = build(architecture, np.full(architecture.token, 0.1), np.linspace(0.5, 2.0, architecture.token))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.3 if parameter.ndim == 1 else 0.1))
    return model_of(net)


def model_of(net: VelocityNet) -> Model:
    legs = ("FR", "FL", "RR", "RL", "leg5", "leg6")[: net.architecture.legs]
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
