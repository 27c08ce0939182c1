"""Checkpoints: weights, the optimiser's memory and the history in one safetensors file, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from gait.errors import GaitError
from gait.io.atomic import atomic_path
from gait.nets.base import VelocityNet
from gait.nets.model import read_arrays
from gait.train.config import TrainConfig, config_of

VERSION = 1
_MOMENTS = ("exp_avg", "exp_avg_sq")


def save_checkpoint(
    path: Path,
    config: TrainConfig,
    net: VelocityNet,
    optimiser: torch.optim.Adam,
    history: list[dict[str, Any]],
    commit: str,
) -> None:
    """Write all that the next iteration depends on, and the commit of the code that began the training.

    `history` has a row for each finished iteration.
    """
    tensors = {f"net.{name}": tensor for name, tensor in net.state_dict().items()}
    updates: dict[str, float] = {}
    for name, parameter in net.named_parameters():
        # The log-std head has no memory before the second stage.
        if state := optimiser.state.get(parameter):
            tensors |= {f"{moment}.{name}": state[moment] for moment in _MOMENTS}
            updates[name] = float(state["step"])
    header = {"config": config.as_dict(), "updates": updates, "history": history, "commit": commit}
    metadata = {"gait": "checkpoint", "version": str(VERSION), "header": json.dumps(header)}
    with atomic_path(path) as temporary:
        temporary.write_bytes(save(tensors, metadata))


def load_checkpoint(
    path: Path, config: TrainConfig, net: VelocityNet, optimiser: torch.optim.Adam
) -> tuple[list[dict[str, Any]], str]:
    """Put the network and the optimiser back where they were; returns the history and the commit."""
    metadata, arrays = read_arrays(path)
    if metadata.get("gait") != "checkpoint" or metadata.get("version") != str(VERSION):
        raise GaitError(f"{path} is not a checkpoint of this gait: start the training again without --resume")
    try:
        header = json.loads(metadata["header"])
        # Settings that came later than the checkpoint have their default.
        if config_of(header["config"], str(path)) != config:
            raise GaitError(f"{path} belongs to a training with other settings: resume with those it was started with")
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        net.load_state_dict({name[4:]: tensor for name, tensor in tensors.items() if name.startswith("net.")})
        for name, parameter in net.named_parameters():
            if name in header["updates"]:
                optimiser.state[parameter] = {
                    "step": torch.tensor(header["updates"][name]),
                    **{moment: tensors[f"{moment}.{name}"] for moment in _MOMENTS},
                }
        return list(header["history"]), str(header["commit"])
    except (ValueError, KeyError, TypeError, RuntimeError):
        raise GaitError(f"{path} is damaged: start the training again without --resume") from None
