"""Fresh rollouts: background processes simulate the sequences of the next iterations while this one is learned."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace

from gait._version import __version__
from gait.log.log import Log
from gait.nets.architecture import Architecture
from gait.sim.collect import simulate_episode, warm_up
from gait.sim.plan import CollectConfig
from gait.sim.sensor_step import SAMPLE_DT
from gait.sim.workers import prepare_worker
from gait.train.config import TrainConfig
from gait.train.data import Episode, SequenceSource, Subject, episode_of, noisy_episodes, stacked

AHEAD = 2
"""Iterations that are simulated in advance."""
VALIDATION_SECONDS = 10.0


class Rollouts(SequenceSource):
    """New rollouts for every iteration, the same for any number of processes."""

    def __init__(self, config: TrainConfig, architecture: Architecture, workers: int = 1) -> None:
        """Start the processes, and simulate what validation and the normaliser need."""
        self.config, self.architecture = config, architecture
        shared = ("seed", "terrain", "robot", "stationary_share", "airborne_share")
        settings = {name: getattr(config, name) for name in shared}
        plan = CollectConfig(seconds=max(config.steps * SAMPLE_DT, 0.1), sensors="exact", **settings)
        self._plans = [replace(plan, gait=gait) for gait in config.gaits]
        held = [replace(p, seconds=VALIDATION_SECONDS, seed=config.seed + 1_000_003) for p in self._plans]
        self.data = [{"version": __version__, "fresh": True, **p.as_dict()} for p in self._plans]
        warm_up()
        # Spawned, not forked: compiled code and threads do not survive a fork.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(max(workers, 1), mp_context=context, initializer=prepare_worker)
        self._pending: dict[int, list[Future[Log]]] = {}
        count = min(config.validation_episodes, 8)
        futures = [self._pool.submit(rollout, held[i % len(held)], i // len(held)) for i in range(count)]
        logs = [future.result() for future in futures]
        self.subject = Subject.of(logs[0])
        self.validation = noisy_episodes(config, [episode_of(log, architecture) for log in logs])
        self.training = [Episode(*arrays) for arrays in zip(*self._clean(0), strict=True)]

    def close(self) -> None:
        """Stop the processes."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _clean(self, iteration: int) -> Episode:
        for ahead in range(iteration, min(iteration + AHEAD + 1, self.config.iterations)):
            if ahead not in self._pending:
                self._pending[ahead] = self._start(ahead)
        logs = [future.result() for future in self._pending[iteration]]
        # The first batch is asked for twice: for the normaliser, and to learn from.
        for done in [number for number in self._pending if number < iteration]:
            del self._pending[done]
        episodes = [episode_of(log, self.architecture) for log in logs]
        return stacked([episode.rows(0, self.config.steps) for episode in episodes])

    def _start(self, iteration: int) -> list[Future[Log]]:
        first = iteration * self.config.sequences
        numbers = range(first, first + self.config.sequences)
        return [self._pool.submit(rollout, self._plans[n % len(self._plans)], n // len(self._plans)) for n in numbers]


def rollout(plan: CollectConfig, number: int) -> Log:
    """One simulated episode; falls are replaced, as in a collection."""
    return simulate_episode(plan, number).log
