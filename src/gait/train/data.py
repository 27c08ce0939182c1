"""Where sequences come from: a data set on disk, or rollouts simulated for each iteration.

What iteration i gets depends on the seed and on i alone, never on the iterations before. A resumed training therefore
needs no memory of its random numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gait.errors import GaitError
from gait.nets.architecture import Architecture
from gait.train.config import TrainConfig
from gait.train.episodes import Episode, Float32, Subject, read_collection, read_episodes

SPLIT, BATCH, NOISE, MASK, VALIDATION, FAULTS, FILTER = range(7)
"""What a generator is for."""


def generator(config: TrainConfig, purpose: int, number: int = 0) -> np.random.Generator:
    """Random numbers for one purpose in one iteration."""
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(purpose, number)))


class SequenceSource:
    """Gives the sequences of each iteration, and what else a training takes from its data."""

    config: TrainConfig
    subject: Subject
    """Whose recordings they are."""
    validation: Sequence[Episode]
    """Whole episodes that no batch touches, with a noisy IMU."""
    training: Sequence[Episode]
    """Episodes to take the normaliser from."""
    data: Sequence[dict[str, Any]]
    """What the sequences are, for the model file."""

    def batch(self, iteration: int) -> Episode:
        """The sequences of an iteration, stacked (B, T, ...), with fresh noise on the IMU."""
        batch = self._clean(iteration)
        rng = generator(self.config, NOISE, iteration)
        return batch._replace(features=noisy(self.config, batch.features, rng))

    def close(self) -> None:
        """Let go of processes."""

    def _clean(self, iteration: int) -> Episode:
        """The sequences of an iteration without noise."""
        raise NotImplementedError


def stacked(episodes: Sequence[Episode]) -> Episode:
    """Sequences of one length side by side (B, T, ...)."""
    return Episode(*(np.stack(arrays) for arrays in zip(*episodes, strict=True)))


def noisy(config: TrainConfig, features: Float32, rng: np.random.Generator) -> Float32:
    """Sequences (B, T, F) with noise and a constant error on the IMU; the joints stay as they are."""
    white = np.repeat([config.gyro_noise, config.accel_noise], 3)
    bias = np.repeat([config.gyro_bias, config.accel_bias], 3)
    errors = rng.standard_normal((*features.shape[:-1], 6), dtype=np.float32) * white
    errors += rng.standard_normal((len(features), 1, 6)) * bias
    result = features.copy()
    result[..., :6] += errors.astype(np.float32)
    return result


def noisy_episodes(config: TrainConfig, episodes: Sequence[Episode]) -> list[Episode]:
    """Validation episodes, each with its own noise that is the same in every validation."""
    return [
        episode._replace(features=noisy(config, episode.features[None], generator(config, VALIDATION, i))[0])
        for i, episode in enumerate(episodes)
    ]


class DataSet(SequenceSource):
    """Sequences cut at random from the episodes of one or more collections, split by episode."""

    def __init__(self, config: TrainConfig, architecture: Architecture) -> None:
        """Read the collections that the configuration names."""
        self.config = config
        paths, self.data = zip(*(read_collection(folder) for folder in config.data), strict=True)
        noise = max(config.gyro_noise, config.accel_noise) > 0.0
        for folder, settings in zip(config.data, self.data, strict=True):
            if settings.get("sensors") != "exact" and noise:
                raise GaitError(
                    f"the IMU in {folder} is noisy already, and always in the same way: collect with `--sensors exact`,"
                    " or set gyro_noise and accel_noise to 0"
                )
        paths = tuple(folder[: config.episodes or None] for folder in paths)
        everything = [path for folder in paths for path in folder]
        draws = [generator(config, FAULTS, i) if config.faults else None for i in range(len(everything))]
        read, self.subject = read_episodes(everything, architecture, draws)
        episodes = iter(read)
        self.folders: list[list[Episode]] = []
        """Training episodes by folder."""
        held, per_folder = list[Episode](), math.ceil(config.validation_episodes / len(paths))
        for number, folder in enumerate(paths):
            train, rest = split(config, list(itertools.islice(episodes, len(folder))), number)
            self.folders.append([episode for episode in train if len(episode.features) >= config.steps])
            held += rest[:per_folder]
            if not self.folders[-1]:
                raise GaitError(
                    f"{config.data[number]} has no training episode of {config.steps} steps: collect longer ones"
                )
        self.validation = noisy_episodes(config, held)
        self.training = [episode for folder in self.folders for episode in folder]

    def _clean(self, iteration: int) -> Episode:
        """Random pieces of random episodes, the folders in turn."""
        rng = generator(self.config, BATCH, iteration)
        steps, pieces = self.config.steps, []
        for i in range(self.config.sequences):
            folder = self.folders[i % len(self.folders)]
            episode = folder[rng.integers(len(folder))]
            first = rng.integers(len(episode.features) - steps + 1)
            pieces.append(Episode(*(array[first : first + steps] for array in episode)))
        return stacked(pieces)


def split(config: TrainConfig, episodes: Sequence[Episode], number: int) -> tuple[list[Episode], list[Episode]]:
    """Episodes for training and for validation, at least one of each."""
    if len(episodes) < 2:
        raise GaitError("a data set needs two episodes or more, one of them for validation: collect more")
    count = min(max(round(config.validation_share * len(episodes)), 1), len(episodes) - 1)
    order = generator(config, SPLIT, number).permutation(len(episodes))
    held = set(order[:count].tolist())
    return [e for i, e in enumerate(episodes) if i not in held], [episodes[i] for i in sorted(held)]
