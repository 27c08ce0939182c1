"""The compiled step and its numpy twin say what the torch network says, whatever is hidden."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from net_samples import random_inputs, random_model

from gait._compile import compiled
from gait.nets import Model, load_model
from gait.nets.architecture import AttentionArchitecture
from gait.nets.build import network_of
from gait.nets.fold import fold
from gait.nets.gait import GaitNet
from gait.nets.model import WEIGHTS
from gait.nets.pooling import attend
from gait.runtime.network import attention, network_reset, network_step, new_memory, pack
from gait.runtime.network_numpy import NumpyNetwork

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
# gait-legs has a step of its own: test_legs_runtime.py.
SHIPPED = sorted(path for path in WEIGHTS.glob("*.safetensors") if not path.stem.startswith("gait-legs"))


@compiled("void(int64[::1], float32[::1], float32[::1], float32[:, ::1], boolean[:, ::1], float32[:, ::1])")
def go_through(sizes, weights, memory, features, seen, out):  # type: ignore[no-untyped-def]
    for i in range(len(features)):
        network_step(sizes, weights, memory, features[i], seen[i], out[i])


def tokens_of(model: Model) -> int:
    a = model.architecture
    return len(a.tokens) if isinstance(a, AttentionArchitecture) else 0


def compiled_outputs(model: Model, inputs: np.ndarray, seen: np.ndarray) -> np.ndarray:
    packed, out = pack(model), np.zeros((len(inputs), 6), dtype=np.float32)
    go_through(packed.sizes, packed.weights, new_memory(packed), inputs, seen, out)
    return out


def numpy_outputs(model: Model, inputs: np.ndarray, seen: np.ndarray) -> np.ndarray:
    network = NumpyNetwork(model)
    return np.stack([np.concatenate(network.step(x, s)) for x, s in zip(inputs, seen, strict=True)])


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
        assert np.abs(compiled_outputs(model, inputs, seen) - truth).max() < 1e-5, name
        assert np.abs(numpy_outputs(model, inputs, seen) - truth).max() < 1e-5, name


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_steps_of_shipped_models_equal_the_torch_network(path: Any) -> None:
    model = load_model(path)
    rng = np.random.default_rng(0)
    inputs = (model.mean + model.std * rng.normal(size=(400, model.mean.size)).cumsum(0) / 20.0).astype(np.float32)
    for name, seen in masks(model, len(inputs)).items():
        truth = torch_outputs(model, inputs, seen)
        assert np.abs(compiled_outputs(model, inputs, seen) - truth).max() < 1e-5, name
        assert np.abs(numpy_outputs(model, inputs, seen) - truth).max() < 1e-5, name


def test_masks_change_what_is_said() -> None:
    model = random_model()
    inputs = samples_of(model)
    everything, flicker, leg_gone = (compiled_outputs(model, inputs, seen) for seen in masks(model, 60).values())
    assert np.abs(flicker - everything).max() > 1e-2 and np.abs(leg_gone - everything).max() > 1e-2


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_with_everything_hidden_only_gyro_and_accel_enter(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    inputs, seen = samples_of(model, 20), np.zeros((20, tokens_of(model)), dtype=bool)
    ours = compiled_outputs(model, inputs, seen)
    assert np.abs(numpy_outputs(model, inputs, seen) - ours).max() < 1e-5
    f, size = fold(model), model.architecture.hidden
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
    packed, twin, out = pack(model), NumpyNetwork(model), np.zeros(6, dtype=np.float32)
    for seen in masks(model, 12).values():
        memory = new_memory(packed)
        twin.reset()
        with torch.no_grad():
            scores, slots = net._scores(*net._with_history(torch.from_numpy(inputs)[None], net.start(1)))
            truth = attend(scores, slots, keep_of(seen, a.history))[0].mean(1).numpy()  # (T, Nt, C)
        for i, x in enumerate(inputs):
            network_step(packed.sizes, packed.weights, memory, x, seen[i], out)
            twin.step(x, seen[i])
            ours = attention(packed, memory)
            assert ours.shape == (a.history, len(a.tokens)) and abs(ours.sum() - 1.0) < 1e-5
            assert np.abs(ours - truth[i]).max() < 1e-5
            assert np.abs(twin.attention() - ours).max() < 1e-5
            assert (ours[: max(a.history - i - 1, 0)] == 0.0).all() and (ours[-1][~seen[i]] == 0.0).all()


def test_attention_is_zero_if_nothing_is_seen_and_empty_without_tokens() -> None:
    for kind, shape in (("gait", (7, 6)), ("nmn", (0, 0))):
        model = random_model(kind)
        packed, twin, out = pack(model), NumpyNetwork(model), np.zeros(6, dtype=np.float32)
        memory, seen, x = new_memory(packed), np.zeros(tokens_of(model), dtype=bool), samples_of(model, 1)[0]
        network_step(packed.sizes, packed.weights, memory, x, seen, out)
        twin.step(x, seen)
        for shares in (attention(packed, memory), twin.attention()):
            assert shares.shape == shape and (shares == 0.0).all()


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_a_reset_is_a_new_start(kind: str) -> None:
    model = random_model(kind)
    inputs = samples_of(model, 20)
    seen, twin, packed = masks(model, 20)["random"], NumpyNetwork(model), pack(model)
    memory, first, again = new_memory(packed), np.zeros((20, 6), np.float32), np.zeros((20, 6), np.float32)
    go_through(packed.sizes, packed.weights, memory, inputs, seen, first)
    network_reset(packed.sizes, memory)
    go_through(packed.sizes, packed.weights, memory, inputs, seen, again)
    assert (first == again).all()
    before = [twin.step(x, s) for x, s in zip(inputs, seen, strict=True)]
    twin.reset()
    after = [twin.step(x, s) for x, s in zip(inputs, seen, strict=True)]
    assert np.array_equal(before, after)


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
@pytest.mark.parametrize("size", [1e6, 1e-30])
def test_extreme_inputs_give_finite_outputs(kind: str, size: float) -> None:
    model = random_model(kind)
    inputs = samples_of(model) * np.float32(size)
    for seen in masks(model, len(inputs)).values():
        outputs = compiled_outputs(model, inputs, seen), numpy_outputs(model, inputs, seen)
        assert all(np.isfinite(out).all() for out in outputs)
        assert np.abs(outputs[0] - outputs[1]).max() < 1e-4


@pytest.mark.parametrize("kind", ["gait", "gait-flat"])
def test_what_is_hidden_may_be_nan(kind: str) -> None:
    model = random_model(kind)
    assert isinstance(model.architecture, AttentionArchitecture)
    inputs = samples_of(model)
    seen = masks(model, len(inputs))["leg gone"]
    broken = inputs.copy()
    broken[:, list(model.architecture.tokens[-1].columns)] = math.nan
    for outputs in (compiled_outputs, numpy_outputs):
        assert np.array_equal(outputs(model, broken, seen), outputs(model, inputs, seen))


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_steps_allocate_nothing(kind: str) -> None:
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    model = random_model(kind)
    inputs = samples_of(model, 1000)
    seen, packed, out = masks(model, 1000)["random"], pack(model), np.zeros((1000, 6), dtype=np.float32)
    memory, counts = new_memory(packed), []
    for steps in (1, 1000):  # a call from Python has its own cost, whatever it does
        before = rtsys.get_allocation_stats().alloc
        go_through(packed.sizes, packed.weights, memory, inputs[:steps], seen[:steps], out[:steps])
        counts.append(rtsys.get_allocation_stats().alloc - before)
    assert counts[0] == counts[1]
    assert np.abs(out).max() > 0.0


def test_where_the_buffers_lie_does_not_matter() -> None:
    """Nothing may rely on an alignment that a copy loses."""
    model = random_model()
    inputs = samples_of(model)
    seen, packed = masks(model, len(inputs))["all"], pack(model)
    room = np.zeros(packed.weights.size + 1, dtype=np.float32)
    room[1:] = packed.weights
    memory, out = np.zeros(new_memory(packed).size + 1, dtype=np.float32)[1:], np.zeros((len(inputs), 6), np.float32)
    go_through(packed.sizes, room[1:], memory, inputs, seen, out)
    assert np.array_equal(out, compiled_outputs(model, inputs, seen))


def test_the_twin_and_the_step_run_without_numba(tmp_path: Any) -> None:
    model = random_model(legs=2)
    model.save(tmp_path / "model.safetensors")
    inputs = samples_of(model, 5)
    np.save(tmp_path / "inputs.npy", inputs)
    code = """
import sys
sys.modules["numba"] = None
import numpy as np
from gait.nets.model import load_model
from gait.runtime.network import network_step, new_memory, pack
from gait.runtime.network_numpy import NumpyNetwork
model = load_model(sys.argv[1] + "/model.safetensors")
network, packed, out = NumpyNetwork(model), pack(model), np.zeros(6, dtype=np.float32)
memory, seen, rows = new_memory(packed), np.ones(4, dtype=bool), []
for x in np.load(sys.argv[1] + "/inputs.npy"):
    network_step(packed.sizes, packed.weights, memory, x, seen, out)
    rows.append([np.concatenate(network.step(x, seen)), out.copy()])
np.save(sys.argv[1] + "/out.npy", rows)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    said = np.load(tmp_path / "out.npy")
    truth = compiled_outputs(model, inputs, np.ones((5, 4), dtype=bool))
    assert np.abs(said - truth[:, None]).max() < 1e-5
