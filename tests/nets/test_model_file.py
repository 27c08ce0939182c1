"""The model file: what is saved comes back, and bad files are refused in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from log_samples import make_log
from net_samples import random_inputs, random_model
from safetensors.numpy import save

from gait.cli import main
from gait.errors import GaitError, install_hint
from gait.nets import load_model
from gait.nets.build import network_of
from gait.nets.features import features
from gait.nets.model import is_safetensors, model_names


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_a_model_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
    model = random_model(kind, targets=False)
    model.save(tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    assert again.architecture == model.architecture
    for name in ("robot", "leg_names", "joint_names", "rate", "training", "commit", "data", "results"):
        assert getattr(again, name) == getattr(model, name)
    assert set(again.weights) == set(model.weights)
    for name, array in model.weights.items():
        assert (again.weights[name] == array).all() and again.weights[name].dtype == np.float32
    inputs = random_inputs(model.architecture, 1, 10)
    with torch.no_grad():
        assert (network_of(again)(inputs)[0] == network_of(model)(inputs)[0]).all()
    # Others may read it as well.
    assert (tmp_path / "m.safetensors").stat().st_mode & 0o044
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_half_precision_is_half_the_size_and_nearly_the_same(tmp_path: Path) -> None:
    model = random_model("nmn")
    model.save(tmp_path / "full.safetensors")
    model.save(tmp_path / "half.safetensors", half=True)
    assert (tmp_path / "half.safetensors").stat().st_size < 1e6 < (tmp_path / "full.safetensors").stat().st_size
    half = load_model(tmp_path / "half.safetensors")
    for name, array in model.weights.items():
        assert np.allclose(half.weights[name], array, rtol=6e-4, atol=1e-7)
    assert (half.weights["std"] == model.weights["std"]).all()


def test_bad_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    random_model().save(path)
    good = path.read_bytes()

    def refuse(content: bytes, words: str) -> None:
        path.write_bytes(content)
        with pytest.raises(GaitError, match=words) as caught:
            load_model(path)
        assert "\n" not in str(caught.value)

    refuse(good[: len(good) // 2], "damaged, cut short")
    refuse(good[:20], "damaged, cut short")
    refuse(b"", "damaged, cut short")
    refuse(b"PK\x03\x04" + good, "damaged, cut short")
    refuse(save({"a": np.zeros(3, np.float32)}), "not a model of gait")
    refuse(save({"a": np.zeros(3, np.float32)}, {"gait": "model", "version": "9"}), "upgrade gait")
    refuse(save({}, {"gait": "model", "version": "1", "header": "[]"}), "header that gait did not write")
    refuse(save({"a": np.zeros(3, np.int64)}, {"gait": "model"}), "numbers of another kind")
    with pytest.raises(GaitError, match="there is no file"):
        load_model(tmp_path / "nothing.safetensors")
    with pytest.raises(GaitError, match="is a folder"):
        load_model(tmp_path)


def test_weights_must_fit_the_architecture(tmp_path: Path) -> None:
    model = random_model()
    for change, words in (
        ({"latents": np.zeros((2, 31))}, "'latents' has shape"),
        ({"latents": np.full((2, 32), np.nan)}, "nan"),
        ({"std": np.zeros(42)}, "divides by zero"),
        ({"extra": np.zeros(1)}, "unknown array 'extra'"),
    ):
        with pytest.raises(GaitError, match=words):
            type(model)(**{**vars(model), "weights": {**model.weights, **change}})
    with pytest.raises(GaitError, match="4 legs of three joints"):
        type(model)(**{**vars(model), "leg_names": ("FR",)})


def test_features_follow_joint_names_not_columns() -> None:
    model, log = random_model(), make_log(count=20)
    expected = model.features(log)
    assert expected.shape == (20, 42)
    assert (expected[:, 6:18] == log.q).all() and (expected[:, :3] == log.gyro).all()
    assert (expected[:, 30:] == log.q_des - log.q).all()
    order = np.random.default_rng(0).permutation(12)
    shuffled = type(log)(
        t=log.t, gyro=log.gyro, accel=log.accel, q=log.q[:, order], dq=log.dq[:, order], q_des=log.q_des[:, order],
        robot="go1", joint_names=[log.joint_names[i] for i in order],
    )  # fmt: skip
    assert (model.features(shuffled) == expected).all()
    bare = type(log)(t=log.t, gyro=log.gyro, accel=log.accel, q=log.q, dq=log.dq)
    with pytest.raises(GaitError, match="no q_des"):
        model.features(bare)
    assert random_model(targets=False).features(bare).shape == (20, 30)
    with pytest.raises(GaitError, match="12 joints and the network 6"):
        features(bare, random_model(legs=2).architecture)


def test_models_that_come_with_gait_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gait.nets.model.WEIGHTS", tmp_path)
    random_model("nmn").save(tmp_path / "mine.safetensors")
    assert model_names() == ["mine"]
    assert load_model("mine").architecture.kind == "nmn"
    with pytest.raises(GaitError, match="there is no model yours: .*one of mine"):
        load_model("yours")


def test_info_describes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.safetensors"
    random_model().save(path)
    assert is_safetensors(path)
    assert main(["info", str(path), "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["network"] == "gait" and rows["robot"] == "go1" and rows["rate"] == 500.0
    assert rows["multiply_adds"] == 123_072 and rows["parameters"] == 92_486
    assert rows["inputs"] == "gyro accel q dq q_des"
    assert rows["joints"].split()[0] == "FR_hip_joint"
    path.write_bytes(path.read_bytes()[:500])
    assert main(["info", str(path)]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert main(["info", "gait-0", "--json"]) == 0
    assert {"name": "network", "value": "gait", "unit": "-"} in json.loads(capsys.readouterr().out)["rows"]


def test_torch_is_not_needed_to_read_a_model(tmp_path: Path) -> None:
    random_model().save(tmp_path / "m.safetensors")
    code = f"""
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
import numpy as np
from gait.nets import load_model
from gait.nets.cost import multiply_adds, parameters
from gait.reference.network import NumpyNetwork
model = load_model({str(tmp_path / "m.safetensors")!r})
assert multiply_adds(model.architecture) == 123072 and parameters(model.architecture) > 0
assert np.isfinite(NumpyNetwork(model).step(np.zeros(42))[0]).all()
from gait.cli import main
sys.exit(main(["train", "--data", "nowhere"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == f"gait: torch is not installed: run `{install_hint('train')}`"
