"""What the attention of `gait` looks at, beside what the network says and what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gait.arrays import Array, BoolArray
from gait.errors import GaitError
from gait.log.log import Log
from gait.nets.build import network_of
from gait.nets.gait import GaitNet
from gait.nets.model import Model
from gait.train.validate import predict


@dataclass(frozen=True)
class Look:
    """What a network looked at and said in one episode, beside the truth."""

    t: Array
    """Seconds (N,)."""
    gyro: Array
    """Share of the token (N,)."""
    accel: Array
    legs: Array
    """Share of each leg (N, L)."""
    by_head: Array
    """The same of each latent and head alone (N, M H, L)."""
    newest: Array
    """Share of the newest slot of the history (N,)."""
    contact: BoolArray
    """(N, L), legs in the network's order."""
    velocity: Array
    """Predicted (N, 3), m/s."""
    std: Array
    """Predicted (N, 3), m/s."""
    truth: Array
    """(N, 3), m/s."""

    @property
    def flight(self) -> BoolArray:
        """Where no foot is on the ground (N,)."""
        return np.asarray(~self.contact.any(1))

    def cut(self, start: float, seconds: float) -> Look:
        """A piece of it."""
        rows = (self.t >= start) & (self.t <= start + seconds)
        return Look(**{name: getattr(self, name)[rows] for name in Look.__annotations__})


def looks_of(model: Model, logs: Sequence[Log]) -> list[Look]:
    """Run a model through episodes and keep what it looked at."""
    net = network_of(model)
    if not isinstance(net, GaitNet) or model.architecture.kind != "gait":
        raise GaitError(f"the study is of leg tokens, which {model.architecture.kind} does not have: give gait models")
    inputs = [model.features(log) for log in logs]
    looks = []
    for log, x, (velocity, log_std) in zip(logs, inputs, predict(net, inputs), strict=True):
        if log.contact is None:
            raise GaitError("a log has no contacts: the study needs the simulator's")
        with torch.no_grad():
            weights = net.attention(torch.from_numpy(x.astype(np.float32))[None])[0]  # (N, M, H, Nt, C)
        heads = weights.double().flatten(1, 2).sum(2).numpy()  # (N, M H, C)
        mean = weights.double().mean((1, 2)).numpy()  # (N, Nt, C)
        share = mean.sum(1)
        order = [log.leg_names.index(name) for name in model.leg_names]
        looks.append(
            Look(
                t=np.asarray(log.t, dtype=np.float64) - float(log.t[0]),
                gyro=share[:, 0],
                accel=share[:, 1],
                legs=share[:, 2:],
                by_head=heads[:, :, 2:],
                newest=mean[:, -1].sum(1),
                contact=log.contact[:, order],
                velocity=velocity,
                std=np.exp(log_std),
                truth=log.vel_b,
            )
        )
    return looks


def joined(looks: Sequence[Look]) -> Look:
    """All episodes as one."""
    return Look(**{name: np.concatenate([getattr(look, name) for look in looks]) for name in Look.__annotations__})
