"""Where a training computes. No GPU is needed: torch's device `meta` stands for it, which has shapes and no numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from training_samples import TINY, write_collection

from gait.cli import main
from gait.errors import GaitError
from gait.nets.build import network_of, weights_of
from gait.train import loop
from gait.train.checkpoint import load_checkpoint, save_checkpoint
from gait.train.config import TrainConfig
from gait.train.devices import device_of

META = torch.device("meta")
COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class OneDevice(TorchDispatchMode):
    """Refuses an operation on tensors of two devices, as CUDA does; only numbers (0 dimensions) may be on the CPU.

    What the processor asks of the device, a number or an array, is 1.
    """

    def __init__(self) -> None:
        super().__init__()
        self.on_device = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        devices = {tensor.device.type for tensor in tensors if tensor.dim()}
        if len(devices) > 1 and func not in COPIES:
            raise AssertionError(f"{func} on {[(str(tensor.device), tuple(tensor.shape)) for tensor in tensors]}")
        self.on_device += "meta" in devices
        if func is torch.ops.aten._local_scalar_dense.default and tensors[0].device == META:
            return True if tensors[0].dtype == torch.bool else 1.0
        to = (kwargs or {}).get("device")
        if func is torch.ops.aten._to_copy.default and tensors[0].device == META and to == torch.device("cpu"):
            return torch.ones(tensors[0].shape, dtype=tensors[0].dtype)
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    folder = tmp_path_factory.mktemp("data")
    yield {"trot": write_collection(folder / "trot")}


SETTINGS: dict[str, dict[str, Any]] = {
    "gait": {"dead_leg": 0.5},
    "gait-flat": {"targets": False},
    "nmn": {"contact_weight": 0.1},
    "gait-legs": {"hidden_legs": 0.4, "legs_apart": 0.5, "stance_shift": 0.1, "velocity_shift": 0.2},
}


def config_for(network: str, collections: dict[str, Path], **changes: Any) -> TrainConfig:
    settings = {**TINY, "network": network, "data": (str(collections["trot"]),), **SETTINGS[network], **changes}
    return TrainConfig(**settings)


@pytest.mark.filterwarnings("ignore:for .*copying from a non-meta parameter:UserWarning")
@pytest.mark.parametrize("network", SETTINGS)
def test_every_tensor_is_on_the_device(network: str, collections: dict[str, Path], tmp_path: Path) -> None:
    """Both stages of the loss, validation, checkpoints and their reading; a tensor left on the CPU is an error."""
    config = config_for(network, collections)
    source = loop.open_source(config)
    with OneDevice() as mode:
        trainer = loop.trainer_of(config)(config, source, META)
        for _ in range(config.l1_iterations + 1):
            assert trainer.iterate()["loss"] == 1.0
        assert trainer.score().norm > 0.0 and mode.on_device > 1000
        state = [*trainer.net.state_dict().values(), *trainer.net.buffers(), *trainer.net.parameters()]
        moments = [moment for one in trainer.optimiser.state.values() for moment in (one["exp_avg"], one["exp_avg_sq"])]
        assert {tensor.device for tensor in itertools.chain(state, moments)} == {META} and moments
        save_checkpoint(tmp_path / "checkpoint.safetensors", trainer)
        again = loop.trainer_of(config)(config, source, META)
        load_checkpoint(tmp_path / "checkpoint.safetensors", again)
        assert len(again.history) == config.l1_iterations + 1 and again.iterate()["loss"] == 1.0
        assert set(trainer.model().weights) == set(weights_of(trainer.net))


def test_the_check_sees_a_tensor_that_was_left(collections: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_for("gait", collections)
    trainer_class = loop.trainer_of(config)
    monkeypatch.setattr(trainer_class, "_tensor", lambda self, array: torch.from_numpy(array))
    with OneDevice(), pytest.raises(AssertionError, match="'meta'"):
        trainer_class(config, loop.open_source(config), META).iterate()


def test_a_checkpoint_of_a_gpu_goes_on_on_a_cpu(collections: dict[str, Path], tmp_path: Path) -> None:
    """The file has no device in it, and the settings of the training neither."""
    config = config_for("nmn", collections)
    source = loop.open_source(config)
    with OneDevice():
        trainer = loop.trainer_of(config)(config, source, META)
        trainer.iterate()
        save_checkpoint(tmp_path / "checkpoint.safetensors", trainer)
    here = loop.trainer_of(config)(config, source)
    load_checkpoint(tmp_path / "checkpoint.safetensors", here)
    assert np.isfinite(here.iterate()["loss"]) and {p.device.type for p in here.net.parameters()} == {"cpu"}
    assert network_of(here.model()).mean.device.type == "cpu"


def test_a_device_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [str(device_of(choice)) for choice in ("auto", "cpu", "cuda")] == ["cuda", "cpu", "cuda"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [str(device_of(choice)) for choice in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(GaitError, match="unknown device 'tpu': choose one of auto, cpu, cuda"):
        device_of("tpu")


def test_no_cuda_is_said_in_a_sentence(collections: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    words = ["train", "--data", str(collections["trot"]), "--out", str(tmp_path / "run"), "--device", "cuda"]
    assert main(words) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "torch finds no CUDA device on this machine: train with --device cpu" in said


def test_a_cluster_gives_each_worker_a_gpu() -> None:
    needs.package("ray")
    from types import SimpleNamespace

    from gait.cluster.training import _gpu, _scaling

    ray = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": 2.0})
    assert [_gpu(ray, device, 2) for device in ("auto", "cpu", "cuda")] == [True, False, True]
    assert not _gpu(ray, "auto", 4), "rather than workers that wait for ever"
    with pytest.raises(GaitError, match="has 2 GPUs for 4 workers, and each takes one"):
        _gpu(ray, "cuda", 4)
    assert _scaling(2, True).use_gpu and _scaling(2, True).total_resources == {"CPU": 2.0, "GPU": 2.0}
    assert not _scaling(2, False).use_gpu and "GPU" not in _scaling(2, False).total_resources
