"""Checkpoints: weights, the optimiser's memory and the history in one safetensors file, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gait.documents import load_json
from gait.errors import GaitError
from gait.nets.model import VERSION, read_arrays, write_arrays
from gait.train.config import config_of

if TYPE_CHECKING:
    from gait.train.loop import Trainer

_MOMENTS = ("exp_avg", "exp_avg_sq")


def save_checkpoint(path: Path, trainer: Trainer) -> None:
    """Write all that the next iteration depends on, and the commit of the code that began the training."""
    tensors = {f"net.{name}": tensor for name, tensor in trainer.net.state_dict().items()}
    updates: dict[str, float] = {}
    for name, parameter in trainer.net.named_parameters():
        # The log-std head has no memory before the second stage.
        if state := trainer.optimiser.state.get(parameter):
            tensors |= {f"{moment}.{name}": state[moment] for moment in _MOMENTS}
            updates[name] = float(state["step"])
    header: dict[str, Any] = {"history": trainer.history, "commit": trainer.commit}
    header |= {"config": trainer.config.as_dict(), "updates": updates}
    write_arrays(path, "checkpoint", {name: tensor.cpu().numpy() for name, tensor in tensors.items()}, header)


def load_checkpoint(path: Path, trainer: Trainer) -> None:
    """Put a trainer back where it was."""
    metadata, arrays = read_arrays(path)
    if metadata.get("gait") != "checkpoint" or metadata.get("version") != str(VERSION):
        raise GaitError(f"{path} is not a checkpoint of this gait: start the training again without --resume")
    try:
        header = load_json(metadata["header"])
        # Settings that came later than the checkpoint have their default.
        if config_of(header["config"], str(path)) != trainer.config:
            raise GaitError(f"{path} belongs to a training with other settings: resume with those it was started with")
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        trainer.net.load_state_dict({name[4:]: tensor for name, tensor in tensors.items() if name.startswith("net.")})
        for name, parameter in trainer.net.named_parameters():
            if name in header["updates"]:
                trainer.optimiser.state[parameter] = {
                    # Adam counts on the processor, wherever its weights are.
                    "step": torch.tensor(header["updates"][name]),
                    **{moment: tensors[f"{moment}.{name}"].to(parameter.device) for moment in _MOMENTS},
                }
        trainer.history, trainer.commit = list(header["history"]), str(header["commit"])
    except (ValueError, KeyError, TypeError, RuntimeError):
        raise GaitError(f"{path} is damaged: start the training again without --resume") from None
