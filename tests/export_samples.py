"""What the tests of `gait export` share: networks, the sample log and what Python says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from net_samples import random_model

import gait
from gait.arrays import Array, BoolArray
from gait.log.log import Log
from gait.nets import Model, load_model
from gait.nets.build import network_of
from gait.nets.model import model_names
from gait.reference.network import NumpyNetwork

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"


def samples_of(log: Log, *more: str) -> list[tuple[Array, ...]]:
    """What `gait_update` takes of each sample: gyro, accel, q, dq, q_des, and more."""
    names = ("gyro", "accel", "q", "dq", "q_des", *more)
    return [tuple(np.array(getattr(log, name)[k]) for name in names) for k in range(len(log))]


def truth(log: Log) -> tuple[Array, ...]:
    """The state of the body at the start, as `gait_reset` takes it."""
    return tuple(np.array(log.need(name)[0]) for name in ("quat_wb_wxyz", "vel_w", "pos_w", "gyro"))


def trained_model() -> Model:
    """The first `gait` that comes with the package, or one with random weights."""
    shipped = (load_model(name) for name in model_names())
    return next((model for model in shipped if model.architecture.kind == "gait"), random_model("gait"))


def torch_run(model: Model, inputs: torch.Tensor, keep: torch.Tensor | None = None) -> Array:
    with torch.no_grad():
        outputs = network_of(model).run(inputs, None, keep)
    assert outputs.log_std is not None
    return torch.cat([outputs.velocity, outputs.log_std], -1)[0].double().numpy()


def folded_run(model: Model, features: Array) -> Array:
    network = NumpyNetwork(model)
    return np.array([np.concatenate(network.step(x)) for x in features])


def fields_of(model: Model, features: Array) -> Iterator[tuple[Array, ...]]:
    """What a robot's sensors would have to say for these features: gyro, accel, q, dq, q_des."""
    joints = 3 * model.architecture.legs
    for x in np.asarray(features, dtype=np.float64):
        q, dq, e = (x[6 + i * joints : 6 + (i + 1) * joints].copy() for i in range(3))
        yield x[:3].copy(), x[3:6].copy(), q, dq, (q + e if model.architecture.targets else q)


def windows(seen: BoolArray, history: int) -> torch.Tensor:
    """What each step may look at (1, T, Nt, C), if a sample that was hidden when it came stays hidden."""
    keep = np.ones((len(seen), history, seen.shape[1]), dtype=np.bool_)
    for slot in range(history):
        age = history - 1 - slot
        keep[age:, slot] = seen[: len(seen) - age]
    return torch.from_numpy(keep)[None]
