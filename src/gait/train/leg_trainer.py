"""The training of `gait-legs`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, unflatten

from gait.nets.features import PER_LEG, POSITION, SHARED, VELOCITY, flipped
from gait.nets.legs import LegsNet
from gait.train.data import FILTER, generator
from gait.train.devices import tensor_on
from gait.train.loop import Trainer
from gait.train.losses import carried_likelihood, carry, leg_likelihood
from gait.train.validate import NetworkScore, score_of

SPARSE, DENSE = 5, 2
"""Every so many samples count: single legs have correlated neighbours, a filter needs all."""
LEG_SHARE = 0.1
"""How much the likelihood of single legs still counts in the second stage."""


class LegsTrainer(Trainer):
    """Trains on the likelihood of single legs first, then through a filter; `l1_iterations` is where it changes."""

    net: LegsNet

    def _learn(self, number: int) -> dict[str, float]:
        """From a batch of sequences, with one update."""
        config = self.config
        rng = generator(config, FILTER, number)
        filtered = number >= config.l1_iterations
        every = DENSE if filtered else SPARSE
        batch = self.source.batch(number)
        features, velocity = mirrored(self._tensor(batch.features), self._tensor(batch.velocity), rng)
        features = legs_apart(features, velocity, config.legs_apart, rng)
        features = stances_moved(features, config.stance_shift, rng)
        features, velocity = velocities_moved(features, velocity, config.velocity_shift, rng)
        steps = slice(int(rng.integers(every)), None, every)
        used = legs_in_use(batch.present[:, 0], config.hidden_legs, rng).to(self.device)
        legs = self.net.legs(features, None, steps, used)
        truth = velocity[:, steps]
        loss = leg_likelihood(legs, truth, used)
        row: dict[str, float] = {}
        if filtered:
            carried = carry(legs, truth, features[:, steps, :3], used, self._dt, every, rng)
            loss = carried_likelihood(carried) + LEG_SHARE * loss
            row["nees"] = float((carried.error.detach() ** 2 / carried.variance.detach()).mean())
        norm = self._update(loss, number)
        return row | {"loss": float(loss.detach()), "gradient": norm}

    def score(self) -> NetworkScore:
        """The error of the small filter over the validation episodes, which are as long as the shortest of them."""
        episodes, rng = self.source.validation, generator(self.config, FILTER, 0)
        steps = min(len(episode.features) for episode in episodes)
        features = self._tensor(np.stack([episode.features[:steps] for episode in episodes]))
        velocity = self._tensor(np.stack([episode.velocity[:steps] for episode in episodes]))
        used = self._tensor(np.stack([episode.present[0] for episode in episodes]))
        with torch.no_grad():
            legs = self.net.legs(features, None, slice(None, None, DENSE), used)
            carried = carry(legs, velocity[:, ::DENSE], features[:, ::DENSE, :3], used, self._dt, DENSE, rng)
        both = torch.stack([carried.error, 0.5 * torch.log(carried.variance)])  # (2, T, B, 3)
        error, log_std = both.transpose(1, 2).reshape(2, -1, 3).cpu().numpy().astype(np.float64)
        return score_of([(error, log_std)], [np.zeros_like(error)])

    @property
    def _dt(self) -> float:
        return 1.0 / self.source.subject.rate


def legs_in_use(present: npt.NDArray[np.bool_], share: float, rng: np.random.Generator) -> Tensor:
    """Which legs of each sequence may be used (B, L), of those that its robot has: in half of them each leg is hidden
    with chance `share`.

    A leg learns to be weighted without its partner of the trot, and beside other legs.
    """
    if share == 0.0:
        return torch.from_numpy(present.copy())
    hidden = (rng.random(present.shape) < share) & (rng.random((len(present), 1)) < 0.5)
    hidden[(hidden | ~present).all(1)] = False
    return torch.from_numpy(present & ~hidden)


def legs_apart(features: Tensor, velocity: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """In a share of the sequences (B, T, F) each leg is taken from a moment of its own, as if the gait were another.

    What a leg measures is moved along with the true velocity (B, T, 3), so that its error stays what it was.
    """
    if share == 0.0:
        return features
    batch, steps = velocity.shape[:2]
    own = unflatten(features[..., SHARED:], -1, (-1, PER_LEG))  # (B, T, L, 12)
    later = rng.integers(steps, size=(batch, own.shape[2])) * (rng.random((batch, 1)) < share)
    rows = tensor_on(features.device, (np.arange(steps)[None, :, None] + later[:, None]) % steps)  # (B, T, L)
    moved = torch.take_along_dim(own, rows[..., None], 1)
    then = torch.take_along_dim(velocity[:, :, None].expand(-1, -1, own.shape[2], -1), rows[..., None], 1)
    moved[..., VELOCITY : VELOCITY + 3] += velocity[:, :, None] - then
    return torch.cat([features[..., :SHARED], moved.flatten(2)], -1)


def stances_moved(features: Tensor, std: float, rng: np.random.Generator) -> Tensor:
    """Sequences (B, T, F) whose feet stand elsewhere below their hips: all legs alike, and each a little of its own.

    What a leg measures stays as it is.
    """
    if std == 0.0:
        return features
    batch, legs = len(features), (features.shape[-1] - SHARED) // PER_LEG
    shift = rng.normal(0.0, std, (batch, 1, 3)) + rng.normal(0.0, 0.3 * std, (batch, legs, 3))
    moved = unflatten(features.clone()[..., SHARED:], -1, (legs, PER_LEG))  # (B, T, L, 12)
    moved[..., POSITION : POSITION + 3] += tensor_on(features.device, shift.astype(np.float32))[:, None]
    return torch.cat([features[..., :SHARED], moved.flatten(2)], -1)


def velocities_moved(features: Tensor, velocity: Tensor, std: float, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Sequences (B, T, F) of a robot on a conveyor: all legs measure one more constant velocity along the ground, and
    ground truth (B, T, 3) has it too.

    Without it the network learns which speeds are usual. Of the samples of a noisy leg those nearer to them then have
    the smaller variance, and the fused velocity shrinks towards them.
    """
    if std == 0.0:
        return features, velocity
    shift = rng.normal(0.0, std, (len(features), 1, 3)) * (1.0, 1.0, 0.0)
    shift_b = tensor_on(features.device, shift.astype(np.float32))
    moved = unflatten(features.clone()[..., SHARED:], -1, (-1, PER_LEG))  # (B, T, L, 12)
    moved[..., VELOCITY : VELOCITY + 3] += shift_b[:, None]
    return torch.cat([features[..., :SHARED], moved.flatten(2)], -1), velocity + shift_b


def mirrored(features: Tensor, velocity: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Half of the sequences as in a mirror: a robot is the same to its left and to its right."""
    device = features.device
    signs = np.where(rng.random(len(features)) < 0.5, -1.0, 1.0).astype(np.float32)
    sign = tensor_on(device, signs)[:, None, None]
    flip = torch.tensor(flipped((features.shape[-1] - SHARED) // 3), device=device)
    along_y = torch.tensor([False, True, False], device=device)
    return torch.where(flip, sign * features, features), torch.where(along_y, sign * velocity, velocity)
