"""`gait export`: the ONNX graph says what the network says, and the verb writes both forms."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from export_samples import SAMPLE, fields_of, folded_run, torch_run, trained_model, windows
from net_samples import ATTENTIVE, VARIANTS, random_inputs, random_model

import gait
from gait import GaitError
from gait.arrays import Array, BoolArray
from gait.cli import main
from gait.errors import install_hint
from gait.export import c_files, onnx_model, save_onnx
from gait.log.log import Log
from gait.nets import Model, load_model
from gait.nets.architecture import AttentionArchitecture
from gait.reference.network import NumpyNetwork

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS = 2000


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE)


@pytest.fixture(scope="module")
def trained() -> Model:
    return trained_model()


@pytest.fixture(scope="module")
def predicted(trained: Model, log: Log) -> Array:
    """Velocity and log-std (N, 6) that the fold gives on the log."""
    return folded_run(trained, trained.features(log))


# ONNX


class Session:
    """An ONNX model in ONNX Runtime, run step by step from a state of zeros."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        data = proto.SerializeToString()
        self.session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.outputs = [value.name for value in self.session.get_outputs()]

    def run(self, model: Model, features: Array, seen: BoolArray | None = None) -> Array:
        kinds = {"tensor(bool)": np.bool_, "tensor(float)": np.float32}
        state = {
            name.removeprefix("next_"): np.zeros(self.inputs[name.removeprefix("next_")].shape)
            for name in self.outputs
            if name.startswith("next_")
        }
        rows = []
        for k, fields in enumerate(fields_of(model, features)):
            values: dict[str, Any] = dict(zip(("gyro", "accel", "q", "dq", "q_des"), fields, strict=True)) | state
            if "seen" in self.inputs:
                values["seen"] = np.ones(self.inputs["seen"].shape) if seen is None else seen[k]
            feed = {name: np.asarray(values[name], kinds[value.type]) for name, value in self.inputs.items()}
            answers = dict(zip(self.outputs, self.session.run(self.outputs, feed), strict=True))
            state = {name: answers[f"next_{name}"] for name in state}
            rows.append(np.concatenate([answers["velocity"], answers["log_std"]]))
        return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_onnx_is_the_network_for_thousands_of_steps(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    inputs = random_inputs(model.architecture, 1, STEPS)
    expected = torch_run(model, inputs)
    assert expected.std(0).min() > 0.02, "a network that says the same whatever it sees would pass"
    found = Session(onnx_model(model)).run(model, inputs[0].numpy())
    assert np.abs(found - expected).max() < 1e-5


def test_onnx_is_the_fold_on_a_whole_log(trained: Model, log: Log, predicted: Array) -> None:
    found = Session(onnx_model(trained)).run(trained, trained.features(log))
    assert np.abs(found - predicted).max() < 1e-5


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_what_onnx_hides_stays_hidden(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    a = model.architecture
    assert isinstance(a, AttentionArchitecture)
    inputs = random_inputs(a, 1, STEPS)
    seen = np.random.default_rng(3).random((STEPS, len(a.tokens))) > 0.4
    seen[:, 2] |= ~seen.any(1)  # never all at once: that is the next test
    session = Session(onnx_model(model))
    found = session.run(model, inputs[0].numpy(), seen)
    assert np.abs(found - torch_run(model, inputs, windows(seen, a.history))).max() < 1e-5
    assert np.abs(found - torch_run(model, inputs)).max() > 1e-2


@pytest.mark.parametrize("variant", ATTENTIVE, ids=str)
def test_with_everything_hidden_onnx_hears_the_imu_alone(variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    a = model.architecture
    assert isinstance(a, AttentionArchitecture)
    inputs = random_inputs(a, 1, 50)[0].double().numpy()
    found = Session(onnx_model(model)).run(model, inputs, np.zeros((50, len(a.tokens)), dtype=np.bool_))
    # With nothing pooled no weights count but those of gyro and accelerometer, whatever the scores.
    network = NumpyNetwork(model)
    gates = network._parts.gate_weight.copy()
    gates[:, :, :-6] = 0.0
    network._parts = network._parts._replace(gate_weight=gates)
    expected = np.array([np.concatenate(network.step(x)) for x in inputs])
    assert np.abs(found - expected).max() < 1e-5


def test_onnx_carries_the_metadata_of_the_model(tmp_path: Path) -> None:
    model = random_model("gait", legs=2)
    save_onnx(model, tmp_path / "x.onnx")
    onnx.checker.check_model(str(tmp_path / "x.onnx"), full_check=True)
    props = {prop.key: prop.value for prop in onnx.load(tmp_path / "x.onnx").metadata_props}
    assert (props["robot"], props["commit"], props["gait_version"]) == ("go1", "abc", gait.__version__)
    assert float(props["rate"]) == 500.0 and json.loads(props["training"]) == {"iterations": 1}
    assert tuple(json.loads(props["joint_names"])) == model.joint_names
    assert tuple(json.loads(props["leg_names"])) == model.leg_names
    assert json.loads(props["architecture"]) == model.header["architecture"]


def test_the_same_model_gives_the_same_files() -> None:
    model = random_model("gait")
    first, second = (onnx_model(model).SerializeToString(deterministic=True) for _ in range(2))
    assert first == second and c_files(model, "x") == c_files(model, "x")


# The verb


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    random_model("gait").save(tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def test_the_verb_writes_both_forms(
    model_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(model_file.parent)
    assert main(["export", str(model_file), "--format", "onnx", "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["size"] == Path("net.onnx").stat().st_size and rows["graph_inputs"] == 9
    assert main(["export", str(model_file), "--format", "c"]) == 0
    text = capsys.readouterr().out
    assert "next: gcc" in text and Path("net_go1.c").is_file()
    assert '#include "net_go1.h"' in Path("net_go1.c").read_text()
    assert "FR_hip_joint, FR_thigh_joint, FR_calf_joint" in Path("net_go1.h").read_text()
    assert main(["export", str(model_file), "--format", "c", "--out", "other.c"]) == 0
    for words in (["--format", "c"], ["--format", "onnx"]):
        assert main(["export", str(model_file), *words]) == 1
        assert "is there already: give another name, or --force" in capsys.readouterr().err
        assert main(["export", str(model_file), *words, "--force"]) == 0
    capsys.readouterr()
    assert sorted(path.name for path in Path().iterdir()) == [
        "net.onnx", "net.safetensors", "net_go1.c", "net_go1.h", "other.c", "other.h",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "onnx", "--out", "x.c"], "does not end in .onnx"),
        (["--format", "c", "--out", "x.onnx"], "ask for --format onnx"),
        (["--format", "c", "--out", "a b"], "cannot name a C file"),
        (["--format", "c", "--robot", "centaur"], "unknown robot"),
        (["--format", "onnx", "--robot", "go1"], "--robot is for --format c"),
        (["--format", "onnx", "--out", "nowhere/x.onnx"], "there is no folder"),
    ],
)
def test_the_verb_says_in_one_sentence_what_is_wrong(
    model_file: Path,
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(model_file.parent)
    assert main(["export", str(model_file), *arguments]) == 1
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1
    assert [path.name for path in Path().iterdir()] == ["net.safetensors"]


def test_without_onnx_the_verb_names_the_extra(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(GaitError, match=re.escape(install_hint("export"))):
        onnx_model(load_model(model_file))
