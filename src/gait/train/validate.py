"""How good a network is: it runs over whole episodes, as in use, and is compared with ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.log.log import Log
from gait.nets.base import RecurrentState, VelocityNet
from gait.nets.build import network_of
from gait.nets.model import Model
from gait.train.data import Episode
from gait.train.devices import tensor_on

CHUNK = 500
"""Steps at a time; the state is carried on."""


@dataclass(frozen=True)
class NetworkScore:
    """Errors of the predicted velocity over all samples of some episodes."""

    rmse: Array
    """Root mean square along x, y and z (3,), m/s."""
    within: tuple[float, float]
    """Share of the components within one and within two predicted standard deviations; 0.683 and 0.954 are ideal."""
    nll: float
    """Mean negative log-likelihood of a sample, without the constant."""
    std: Array
    """Root mean square of the predicted standard deviation (3,), m/s."""
    samples: int

    @property
    def norm(self) -> float:
        """Root mean square of the error's length, m/s."""
        return float(np.sqrt(np.square(self.rmse).sum()))

    def as_dict(self, prefix: str) -> dict[str, float]:
        """The figures by name."""
        figures = {"velocity_rmse": self.norm}
        figures |= {f"velocity_rmse_{axis}": float(error) for axis, error in zip("xyz", self.rmse, strict=True)}
        figures |= {f"predicted_std_{axis}": float(std) for axis, std in zip("xyz", self.std, strict=True)}
        figures |= {f"within_{n}_sigma": share for n, share in enumerate(self.within, start=1)}
        figures["nll"] = self.nll
        return {f"{prefix}{name}": value for name, value in figures.items()}


def predict(net: VelocityNet, inputs: Sequence[AnyArray]) -> list[tuple[Array, Array]]:
    """Velocity (N, 3) and log-std (N, 3) for the features (N, F) of each episode, hidden states carried throughout.

    Episodes run side by side; one that ends early continues with its last sample, whose outputs are dropped.
    """
    longest = max(len(x) for x in inputs)
    batch = np.stack([np.concatenate([x, np.repeat(x[-1:], longest - len(x), 0)]) for x in inputs]).astype(np.float32)
    velocity, log_std = np.empty((2, *batch.shape[:2], 3))
    state: RecurrentState | None = None
    with torch.no_grad():
        for first in range(0, longest, CHUNK):
            piece = slice(first, first + CHUNK)
            outputs = net(tensor_on(net.mean.device, batch[:, piece]), state)
            velocity[:, piece], log_std[:, piece] = (output.cpu().numpy() for output in outputs[:2])
            state = outputs[2]
    return [(v[: len(x)], u[: len(x)]) for v, u, x in zip(velocity, log_std, inputs, strict=True)]


def score(net: VelocityNet, episodes: Sequence[Episode]) -> NetworkScore:
    """Errors over whole episodes."""
    return score_of(predict(net, [episode.features for episode in episodes]), [e.velocity for e in episodes])


def score_of(results: Sequence[tuple[Array, Array]], truths: Sequence[AnyArray]) -> NetworkScore:
    """Errors of velocities and log-stds (N, 3) against true velocities (N, 3), over all samples."""
    error = np.concatenate([truth - velocity for (velocity, _), truth in zip(results, truths, strict=True)])
    log_std = np.concatenate([log_std for _, log_std in results])
    if not np.isfinite(error).all():
        raise GaitError("the network gave nan or infinity: train with a lower learning_rate or a smaller clip")
    ratio = np.abs(error) / np.exp(log_std)
    return NetworkScore(
        rmse=np.sqrt(np.square(error).mean(0)),
        within=(float((ratio <= 1.0).mean()), float((ratio <= 2.0).mean())),
        nll=float((log_std + 0.5 * np.square(ratio)).sum(1).mean()),
        std=np.sqrt(np.exp(2.0 * log_std).mean(0)),
        samples=len(error),
    )


def evaluate_model(model: Model, logs: Sequence[Log]) -> NetworkScore:
    """Errors of a model over whole Logs with ground truth, each at the model's rate."""
    net = network_of(model)
    for log in logs:
        if abs(log.rate / model.rate - 1.0) > 0.01:
            raise GaitError(
                f"a log has {log.rate:g} Hz and the model {model.rate:g} Hz: use log.resample({model.rate:g})"
            )
    return score_of(predict(net, [model.features(log) for log in logs]), [log.vel_b for log in logs])
