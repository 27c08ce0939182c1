"""Data sets larger than memory: their episode files are the shards, and a pool of them is in memory at a time.

Training goes through all episodes in an order that is shuffled for every pass. The pool holds the next ones in that
order, and batches are drawn from it until it has given as many samples as it has; then the next pool takes its place,
which has been read meanwhile. Like everything that is drawn, a pool depends on the seed and on its number alone, so a
training resumes to the same bits. A pool that has room for everything gives the batches of `DataSet`.
"""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from gait.errors import GaitError
from gait.nets.architecture import Architecture
from gait.train.config import TrainConfig
from gait.train.data import (
    FAULTS,
    ORDER,
    Episode,
    SequenceSource,
    common_subject,
    drawn,
    generator,
    noisy_episodes,
    read_collections,
    read_episodes,
    robot_name,
    split,
)  # fmt: skip


class Shard(NamedTuple):
    """An episode that is not in memory."""

    number: int
    """Among all episodes of all folders."""
    path: str


class EpisodePool(SequenceSource):
    """Sequences from the episodes of one or more collections, `memory` megabytes of them at a time."""

    def __init__(self, config: TrainConfig, architecture: Architecture) -> None:
        """Read the validation episodes and the first pool."""
        self.config, self._architecture = config, architecture
        paths, self.data = read_collections(config)
        self._folders: list[list[Shard]] = []
        """Training episodes by folder."""
        held, per_folder, before = list[Shard](), math.ceil(config.validation_episodes / len(paths)), 0
        for number, folder in enumerate(paths):
            train, rest = split(config, [Shard(before + i, path) for i, path in enumerate(folder)], number)
            self._folders.append(train)
            held += rest[:per_folder]
            before += len(folder)
        validation, subjects = read_episodes([one.path for one in held], architecture, self._faults(held))
        robots = {path: robot_name(one) for one, folder in zip(self.data, paths, strict=True) for path in folder}
        self.subject = common_subject(subjects, architecture, [robots[one.path] for one in held])
        self.validation = noisy_episodes(config, validation)
        largest = max(sum(array.nbytes for array in episode) for episode in validation)
        # Two pools: one to draw from, one that is being read.
        room = int(config.memory * 1e6 / (2 * largest * len(paths)))
        if room < 1:
            raise GaitError(
                f"memory = {config.memory} MB has no room for two pools of {len(paths)} episodes of"
                f" {largest / 1e6:.1f} MB: raise it"
            )
        self.sizes = [min(room, len(folder)) for folder in self._folders]
        """Episodes of each folder in a pool."""
        samples = sum(self.sizes) * sum(len(one.features) for one in validation) / len(validation)
        self.lasting = max(round(samples / (config.sequences * config.steps)), 1)
        """Iterations that a pool is used for."""
        self._reader = ThreadPoolExecutor(1)
        self._pools: dict[int, Future[list[list[Episode]]]] = {}
        self.training = [episode for folder in self._pool(0) for episode in folder]

    def close(self) -> None:
        """End the thread that reads."""
        self._reader.shutdown(wait=True, cancel_futures=True)

    def shards(self, pool: int) -> list[list[Shard]]:
        """The episodes of a pool by folder, in the order of the collection."""
        found = []
        for number, (folder, size) in enumerate(zip(self._folders, self.sizes, strict=True)):
            chosen = []
            for place in range(pool * size, (pool + 1) * size):
                turn, at = divmod(place, len(folder))
                chosen.append(folder[self._order(number, turn)[at]])
            # At the end of a pass an episode may come twice.
            found.append(sorted(set(chosen)))
        return found

    def _order(self, folder: int, turn: int) -> list[int]:
        """In which order a pass goes through a folder."""
        draw = generator(self.config, ORDER, turn * len(self._folders) + folder)
        order: list[int] = draw.permutation(len(self._folders[folder])).tolist()
        return order

    def _clean(self, iteration: int) -> Episode:
        return drawn(self.config, self._pool(iteration // self.lasting), iteration)

    def _pool(self, number: int) -> list[list[Episode]]:
        everything = self.sizes == [len(folder) for folder in self._folders]
        number = 0 if everything else number
        for gone in [one for one in self._pools if one < number]:
            del self._pools[gone]
        if number > 0:
            # They were for the normaliser.
            self.training = ()
        for one in (number,) if everything else (number, number + 1):
            if one not in self._pools:
                self._pools[one] = self._reader.submit(self._read, one)
        return self._pools[number].result()

    def _read(self, number: int) -> list[list[Episode]]:
        pool = []
        for folder, shards in zip(self.config.data, self.shards(number), strict=True):
            read, _ = read_episodes([one.path for one in shards], self._architecture, self._faults(shards))
            pool.append([episode for episode in read if len(episode.features) >= self.config.steps])
            if not pool[-1]:
                raise GaitError(f"{folder} has too few episodes of {self.config.steps} steps: collect longer ones")
        return pool

    def _faults(self, shards: list[Shard]) -> list[np.random.Generator | None]:
        return [generator(self.config, FAULTS, one.number) if self.config.faults else None for one in shards]
