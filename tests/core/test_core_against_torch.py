"""The networks of the core say what the torch networks say, whatever is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from core_calls import CoreNetwork
from net_samples import random_inputs, random_model

from gait.binding import aligned_bytes
from gait.nets import Model, load_model
from gait.nets.architecture import AttentionArchitecture
from gait.nets.build import network_of
from gait.nets.gait import GaitNet
from gait.nets.model import WEIGHTS
from gait.nets.parts import parts_of

pytestmark = pytest.mark.usefixtures("one_thread")
VARIANTS: list[dict[str, Any]] = [
    {"kind": "gait"},
    {"kind": "gait", "legs": 2},
    {"kind": "gait", "targets": False},
    {"kind": "gait", "history": 3, "latents": 3, "heads": 2, "width": 8, "head_width": 5, "hidden": 7, "mlp": 70},
    {"kind": "gait", "history": 1, "width": 40, "hidden": 65},
    {"kind": "gait-flat"},
    {"kind": "gait-flat", "legs": 2, "targets": False},
    {"kind": "nmn"},
    {"kind": "nmn", "legs": 2, "targets": False, "hidden": 40},
]
ATTENTIVE = [variant for variant in VARIANTS if variant["kind"] != "nmn"]
# gait-legs has a step of its own: test_legs_estimator.py.
SHIPPED = sorted(path for path in WEIGHTS.glob("*.safetensors") if not path.stem.startswith("gait-legs"))


def tokens_of(model: Model) -> int:
    a = model.architecture
    return len(a.tokens) if isinstance(a, AttentionArchitecture) else 0


def outputs_of(model: Model, inputs: np.ndarray, seen: np.ndarray) -> np.ndarray:
    network = CoreNetwork(model)
    return np.array([network.step(*row) for row in zip(inputs, seen, strict=True)])


def keep_of(seen: np.ndarray, history: int) -> torch.Tensor:
    """The mask of every window (1, T, Nt, C) when samples carry theirs along."""
    before = np.concatenate([np.ones((history - 1, seen.shape[1]), dtype=bool), seen])
    windows = np.lib.stride_tricks.sliding_window_view(before, history, axis=0).swapaxes(1, 2)
    return torch.from_numpy(windows.copy())[None]


def torch_outputs(model: Model, inputs: np.ndarray, seen: np.ndarray) -> np.ndarray:
    a = model.architecture
    keep = keep_of(seen, a.history) if isinstance(a, AttentionArchitecture) else None
    with torch.no_grad():
        outputs = network_of(model).run(torch.from_numpy(inputs)[None], keep=keep)
    assert outputs.log_std is not None
    return torch.cat([outputs.velocity, outputs.log_std], 2)[0].numpy()


def masks(model: Model, steps: int) -> dict[str, np.ndarray]:
    """Ways to hide tokens that always leave something to see."""
    count, rng = tokens_of(model), np.random.default_rng(4)
    leg_gone = np.ones((steps, count), dtype=bool)
    leg_gone[:, -1:] = False
    flicker = rng.random((steps, count)) > 0.4
    flicker[:, :1] |= ~flicker.any(1, keepdims=True)
    return {"all": np.ones((steps, count), dtype=bool), "random": flicker, "leg gone": leg_gone}


def samples_of(model: Model, steps: int = 60) -> np.ndarray:
    return np.ascontiguousarray(random_inputs(model.architecture, 1, steps)[0].numpy())


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_steps_equal_the_torch_network(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    inputs = samples_of(model)
    for name, seen in masks(model, len(inputs)).items():
        truth = torch_outputs(model, inputs, seen)
        # Otherwise a network that says the same whatever it sees would pass.
        assert truth.std(0).min() > 0.02
        assert np.abs(outputs_of(model, inputs, seen) - truth).max() < 1e-5, name


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_steps_of_shipped_models_equal_the_torch_network(path: Any) -> None:
    model = load_model(path)
    rng = np.random.default_rng(0)
    inputs = (
        model.weights["mean"]
        + model.weights["std"] * rng.normal(size=(400, model.weights["mean"].size)).cumsum(0) / 20.0
    ).astype(np.float32)
    for name, seen in masks(model, len(inputs)).items():
        truth = torch_outputs(model, inputs, seen)
        assert np.abs(outputs_of(model, inputs, seen) - truth).max() < 1e-5, name


def test_masks_change_what_is_said() -> None:
    model = random_model()
    inputs = samples_of(model)
    everything, flicker, leg_gone = (outputs_of(model, inputs, seen) for seen in masks(model, 60).values())
    assert np.abs(flicker - everything).max() > 1e-2 and np.abs(leg_gone - everything).max() > 1e-2


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_with_everything_hidden_only_gyro_and_accel_enter(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    inputs, seen = samples_of(model, 20), np.zeros((20, tokens_of(model)), dtype=bool)
    ours = outputs_of(model, inputs, seen)
    f, size = parts_of(model), model.architecture.hidden
    hidden = np.zeros((2, size))
    for x, said in zip(inputs.astype(np.float64), ours, strict=True):
        for i in range(2):
            gates = f.gate_weight[i][:, -6:] @ x[:6] + f.gate_bias[i]
            again = f.recurrent_weight[i] @ hidden[i]
            reset, update = np.split(1.0 / (1.0 + np.exp(-gates[: 2 * size] - again[: 2 * size])), 2)
            new = np.tanh(gates[2 * size :] + reset * (again[2 * size :] + f.recurrent_bias[i]))
            hidden[i] = (1.0 - update) * new + update * hidden[i]
        layer = np.maximum(f.hidden_weight[0] @ hidden[0] + f.hidden_bias[0], 0.0)
        assert np.abs(f.output_weight[0] @ layer + f.output_bias[0] - said[:3]).max() < 1e-5


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_attention_is_that_of_the_torch_network(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    net = network_of(model)
    assert isinstance(net, GaitNet)
    a = net.architecture
    inputs = samples_of(model, 12)
    network = CoreNetwork(model)
    for seen in masks(model, 12).values():
        network.reset()
        with torch.no_grad():
            weights = net.attention(torch.from_numpy(inputs)[None], keep_of(seen, a.history))
            truth = weights[0].flatten(1, 2).mean(1).numpy()  # (T, Nt, C)
        for i, x in enumerate(inputs):
            network.step(x, seen[i])
            ours = network.attention()
            assert ours.shape == (a.history, len(a.tokens)) and abs(ours.sum() - 1.0) < 1e-5
            assert np.abs(ours - truth[i]).max() < 1e-5
            assert (ours[: max(a.history - i - 1, 0)] == 0.0).all() and (ours[-1][~seen[i]] == 0.0).all()


def test_attention_is_zero_if_nothing_is_seen_and_empty_without_tokens() -> None:
    for kind, shape in (("gait", (7, 6)), ("nmn", (0, 0))):
        model = random_model(kind)
        network, seen = CoreNetwork(model), np.zeros(tokens_of(model), dtype=bool)
        network.step(samples_of(model, 1)[0], seen)
        assert network.attention().shape == shape and (network.attention() == 0.0).all()


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_where_the_memory_lies_does_not_matter(kind: str) -> None:
    """Nothing may rely on an alignment that a copy loses; a float is all that is asked for."""
    model = random_model(kind)
    inputs = samples_of(model)
    seen = masks(model, len(inputs))["random"]
    network = CoreNetwork(model)
    network.memory = aligned_bytes(network.memory.nbytes + 4)[4:].view(np.float32)
    network.reset()
    out = np.array([network.step(*row) for row in zip(inputs, seen, strict=True)])
    assert network.memory.ctypes.data % 64 == 4 and np.array_equal(out, outputs_of(model, inputs, seen))
