"""The networks' steps in numpy against PyTorch, whatever is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from net_samples import random_inputs, random_model

from gait.nets import Model
from gait.nets.architecture import AttentionArchitecture
from gait.nets.build import network_of
from gait.nets.features import PER_LEG, SHARED
from gait.nets.legs import LegsNet
from gait.reference.network import NumpyLegs, NumpyNetwork

pytestmark = pytest.mark.usefixtures("one_thread")
VARIANTS: list[dict[str, Any]] = [
    {"kind": "gait"},
    {"kind": "gait", "legs": 2, "targets": False},
    {"kind": "gait", "history": 3, "latents": 3, "heads": 2, "width": 8, "head_width": 5, "hidden": 7, "mlp": 70},
    {"kind": "gait-flat"},
    {"kind": "nmn", "hidden": 40},
]
LEGS: list[dict[str, Any]] = [
    {},
    {"legs": 2, "targets": False},
    {"legs": 6, "position": False, "correction": True},
    {"head_width": 0},
    {"frames": 3, "stride": 3, "hidden": 10, "mlp": 20, "heads": 3, "head_width": 5},
]


def windows_seen(seen: np.ndarray, history: int) -> torch.Tensor:
    """The mask of every window (1, T, Nt, C) when samples carry theirs along."""
    before = np.concatenate([np.ones((history - 1, seen.shape[1]), dtype=bool), seen])
    windows = np.lib.stride_tricks.sliding_window_view(before, history, axis=0).swapaxes(1, 2)
    return torch.from_numpy(windows.copy())[None]


@pytest.mark.parametrize("hide", [False, True], ids=["all seen", "some hidden"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_steps_equal_torch(variant: dict[str, Any], hide: bool) -> None:
    model = random_model(**variant)
    a = model.architecture
    inputs = random_inputs(a, 1, 40)
    tokens, keep = len(a.tokens) if isinstance(a, AttentionArchitecture) else 0, None
    seen = np.random.default_rng(0).random((40, tokens)) > (0.4 if hide else -1.0)
    seen[:, :1] |= ~seen.any(1, keepdims=True)
    if isinstance(a, AttentionArchitecture):
        keep = windows_seen(seen, a.history)
    with torch.no_grad():
        truth = network_of(model).run(inputs, keep=keep)
    assert truth.log_std is not None
    network = NumpyNetwork(model)
    x = inputs[0].numpy().copy()
    if isinstance(a, AttentionArchitecture):
        for token, shown in zip(a.tokens[2:], seen.T[2:], strict=True):
            x[np.ix_(~shown, list(token.columns))] = np.nan  # what is hidden may be anything
    steps = [network.step(row, shown if tokens else None) for row, shown in zip(x, seen, strict=True)]
    velocity, log_std = (np.array(part) for part in zip(*steps, strict=True))
    assert truth.velocity[0].std(0).min() > 0.02
    np.testing.assert_allclose(velocity, truth.velocity[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(log_std, truth.log_std[0].numpy(), atol=1e-5)
    if tokens:
        assert network.attention().sum() == pytest.approx(1.0) and not network.attention()[-1, ~seen[-1]].any()
    network.reset()
    np.testing.assert_array_equal(network.step(x[0], seen[0] if tokens else None)[0], velocity[0])


def torch_legs(model: Model, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    net = network_of(model)
    assert isinstance(net, LegsNet)
    with torch.no_grad():
        velocity, log_std, _, attention = net.legs(torch.from_numpy(features.astype(np.float32))[None])
    return velocity[0].numpy(), log_std[0].numpy(), None if attention is None else attention[0].mean(1).numpy()


@pytest.mark.parametrize("variant", LEGS, ids=str)
def test_steps_of_legs_equal_torch(variant: dict[str, Any]) -> None:
    model = random_model("gait-legs", **variant)
    legs = model.architecture.legs
    features = np.random.default_rng(1).normal(size=(40, SHARED + PER_LEG * legs)).cumsum(0) / 5.0
    truth, every, network = torch_legs(model, features), np.ones(legs, dtype=bool), NumpyLegs(model)
    for k, x in enumerate(features):
        velocity, log_std = network.step(x, every, every)
        np.testing.assert_allclose(velocity, truth[0][k], atol=1e-5)
        np.testing.assert_allclose(log_std, truth[1][k], atol=1e-5)
        if truth[2] is not None:
            np.testing.assert_allclose(network.attention, truth[2][k], atol=1e-5)
    assert truth[1].std((0, 1)).min() > 0.01


def test_a_hidden_leg_is_as_one_that_the_robot_does_not_have() -> None:
    model, fewer = random_model("gait-legs"), random_model("gait-legs", legs=3)
    features = np.random.default_rng(1).normal(size=(30, SHARED + PER_LEG * 4)).cumsum(0) / 5.0
    ok, network = np.array([True, False, True, True]), NumpyLegs(model)
    three = np.delete(features, np.arange(SHARED + PER_LEG, SHARED + 2 * PER_LEG), axis=1)
    truth = torch_legs(fewer, three)
    for k, x in enumerate(features):
        velocity, log_std = network.step(x, ok, ok)
        np.testing.assert_allclose(velocity[ok], truth[0][k], atol=1e-5)
        np.testing.assert_allclose(log_std[ok], truth[1][k], atol=1e-5)
        assert (log_std[1] == model.architecture.log_std_max).all()
        assert not network.attention[1].any() and not network.attention[:, 1].any()


def test_a_leg_that_comes_back_has_no_past() -> None:
    model = random_model("gait-legs")
    rng, ok = np.random.default_rng(2), np.ones(4, dtype=bool)
    features = rng.normal(size=(20, SHARED + PER_LEG * 4))
    network = NumpyLegs(model)
    for x in features[:-1]:
        network.step(x, ok, ok)
    back = network.step(features[-1], ok, np.array([True, True, True, False]))
    other = features.copy()
    other[:, SHARED + 3 * PER_LEG :] = features[-1, SHARED + 3 * PER_LEG :]  # always like its last sample
    truth = torch_legs(model, other)
    np.testing.assert_allclose(back[1], truth[1][-1], atol=1e-5)
