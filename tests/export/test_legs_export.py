"""`gait export` of `gait-legs`: the ONNX graph says what the network says, with legs hidden and not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from net_samples import legs_model

from gait.cli import main
from gait.export import onnx_model
from gait.nets import Model
from gait.nets.build import network_of
from gait.nets.legs import LegsNet
from gait.reference.network import NumpyLegs

pytestmark = pytest.mark.usefixtures("one_thread")
VARIANTS: list[dict[str, Any]] = [
    {},
    {"correction": True},
    {"legs": 2, "correction": True, "heads": 3, "head_width": 5},
    {"targets": False, "position": False, "frames": 3, "stride": 3},
    {"head_width": 0, "frames": 1, "correction": False},
]
STEPS = 300


def onnx_run(model: Model, features: np.ndarray, seen: np.ndarray) -> dict[str, np.ndarray]:
    """Every output of ONNX Runtime, step by step from a state of zeros."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data = onnx_model(model).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    kinds = {"tensor(bool)": np.bool_, "tensor(float)": np.float32}
    inputs = {value.name: value for value in session.get_inputs()}
    outputs = [value.name for value in session.get_outputs()]
    feed: dict[str, Any] = {name: np.zeros(value.shape, kinds[value.type]) for name, value in inputs.items()}
    rows: dict[str, list[np.ndarray]] = {name: [] for name in outputs}
    for x, mask in zip(features, seen, strict=True):
        feed["features"], feed["seen"] = x.astype(np.float32), mask
        for name, value in zip(outputs, session.run(outputs, feed), strict=True):
            rows[name].append(value)
            if name.startswith("next_"):
                feed[name.removeprefix("next_")] = value
    return {name: np.array(values) for name, values in rows.items()}


def samples(model: Model) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.normal(size=(STEPS, model.architecture.num_features)).cumsum(0) / 10.0


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_onnx_is_the_network(variant: dict[str, Any]) -> None:
    model = legs_model(**variant)
    features, net = samples(model), network_of(model)
    assert isinstance(net, LegsNet)
    with torch.no_grad():
        inputs = torch.from_numpy(features.astype(np.float32))[None]
        velocity, log_std, _, _ = net.legs(inputs)
        together = net.run(inputs)
    assert together.log_std is not None and log_std.std() > 0.02
    found = onnx_run(model, features, np.ones((STEPS, model.architecture.legs), dtype=np.bool_))
    assert np.abs(found["leg_velocity"] - velocity[0].numpy()).max() < 1e-5
    assert np.abs(found["leg_log_std"] - log_std[0].numpy()).max() < 1e-5
    assert np.abs(found["velocity"] - together.velocity[0].numpy()).max() < 1e-5
    assert np.abs(found["log_std"] - together.log_std[0].numpy()).max() < 1e-5


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_onnx_hides_is_hidden_as_in_the_estimator(variant: dict[str, Any]) -> None:
    model = legs_model(**variant)
    features, legs = samples(model), model.architecture.legs
    # Legs that go for a while and come back.
    seen = np.repeat(np.random.default_rng(3).random((STEPS // 10, legs)) > 0.4, 10, axis=0)
    seen[0], seen[100:110] = True, False
    found, twin = onnx_run(model, features, seen), NumpyLegs(model)
    before = np.concatenate([np.zeros((1, legs), dtype=np.bool_), seen[:-1]])
    said = np.array([np.hstack(twin.step(x, now, then)) for x, now, then in zip(features, seen, before, strict=True)])
    assert np.abs(found["leg_velocity"] - said[..., :3]).max() < 1e-5
    assert np.abs(found["leg_log_std"] - said[..., 3:]).max() < 1e-5
    worth = np.exp(-2.0 * said[..., 3:].astype(np.float64)) * seen[..., None]
    some = seen.any(1)
    mean = (worth * said[..., :3])[some].sum(1) / worth[some].sum(1)
    assert np.abs(found["velocity"][some] - mean).max() < 1e-5
    assert (~some).any() and (found["velocity"][~some] == 0.0).all() and (found["log_std"][~some] > 30.0).all()


def test_the_verb_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = legs_model()
    model.save(tmp_path / "legs.safetensors")
    out = tmp_path / "legs.onnx"
    assert main(["export", str(tmp_path / "legs.safetensors"), "--format", "onnx", "--out", str(out)]) == 0
    assert out.stat().st_size > 50_000 and "gait-legs" in capsys.readouterr().out
