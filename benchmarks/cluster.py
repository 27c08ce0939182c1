"""What Ray costs: episodes by the local pool and by Ray, interleaved, with 1 and 2 workers.

Prints; `--write` replaces the section in docs/cluster.md. The same episodes are simulated both ways, and each tells the
processor time that its process spent since the episode before it, with the other threads of a Ray worker. An episode is
compared with itself, so that neither the mix of episodes nor the moment at which a run begins and ends matters, and
other programs on the machine matter little.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from sections import DOCS, markdown, paragraph, write_section

from gait.cluster.collection import Ledger, record_remotely
from gait.cluster.luggage import pack
from gait.cluster.tasks import LOCAL, NodeResult, connected, spread
from gait.sim.collect import collect, collection_settings, record_episode, warm_up
from gait.sim.episode import Simulation
from gait.sim.episode_sampling import draw_episode
from gait.sim.plan import CollectConfig
from gait.sim.store import Store
from gait.sim.workers import worker_pool


@dataclass(frozen=True)
class Told:
    """What an episode tells about the process that simulated it."""

    number: int
    pid: int
    spent: float
    """Processor seconds of the process, all its threads, from its start until after this episode."""
    row: dict[str, Any]
    simulated: float


@dataclass
class Run:
    """A collection."""

    begin: float = field(default_factory=time.perf_counter)
    first: float = 0.0
    """Seconds until the first episode was there."""
    costs: dict[int, float] = field(default_factory=dict)
    """By episode: processor seconds of its process for a simulated second; not of the first of a process."""
    speed: float = 0.0
    """Simulated seconds a second, once every worker has begun."""
    others: float = 0.0
    """Cores that all other processes of the collection use meanwhile."""

    @property
    def cost(self) -> float:
        return statistics.fmean(self.costs.values())


def local_episode(config: CollectConfig, number: int, path: Path) -> Told:
    row, simulated = record_episode(config, number, path)
    return Told(number, os.getpid(), time.process_time(), row, simulated)


def remote_episode(luggage: Any, place: str, number: int) -> Told:
    row, simulated = record_remotely(luggage, place, number)
    return Told(number, os.getpid(), time.process_time(), row, simulated)


def by_pool(config: CollectConfig, folder: Path, workers: int) -> Iterator[Told]:
    """As `gait.sim.collect.collect`."""
    store = Store(folder, collection_settings(config))
    jobs = [(config, number, store.path(number)) for number in range(config.episodes)]
    if workers == 1:
        for job in jobs:
            told = local_episode(*job)
            store.add(told.row)
            yield told
        return
    with worker_pool(workers) as pool:
        for future in as_completed([pool.submit(local_episode, *job) for job in jobs]):
            store.add(future.result().row)
            yield future.result()


def by_ray(config: CollectConfig, folder: Path, workers: int, take: Callable[[Told], None]) -> None:
    """As `gait.cluster.collection.collect_on_cluster`."""
    folder.mkdir()
    ledger = Ledger(str(folder), collection_settings(config))
    with connected(LOCAL, workers) as ray:
        ledger.begin(set())
        shared = ray.put(pack(config))

        def enter(_: int, result: NodeResult) -> bool:
            ledger.add(result.value.row)
            take(result.value)
            return True

        jobs = ((number, (shared, str(folder), number)) for number in range(config.episodes))
        spread(ray, remote_episode, jobs, enter)
        ledger.finish()


def other_seconds(working: set[int]) -> float:
    """Processor seconds of this process and all that it started, but for those that simulate."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += 0.0 if process.pid in working else times.user + times.system
    return total


@contextmanager
def measured(workers: int, episodes: int) -> Iterator[tuple[Run, Callable[[Told], None]]]:
    """A run that is filled by what its episodes tell."""
    run, last = Run(), dict[int, float]()
    seen: list[tuple[float, float, float]] = []
    count, simulated = 0, 0.0

    def take(told: Told) -> None:
        nonlocal count, simulated
        run.first = run.first or time.perf_counter() - run.begin
        if told.pid in last:
            run.costs[told.number] = (told.spent - last[told.pid]) / told.simulated
        last[told.pid], simulated, count = told.spent, simulated + told.simulated, count + 1
        # Only then: a look at all processes takes milliseconds, in a pool of one those of the worker.
        if (len(last) == workers and not seen) or count == episodes:
            seen.append((time.perf_counter(), simulated, other_seconds(set(last))))

    yield run, take
    seconds, run.speed, others = (b - a for a, b in zip(seen[0], seen[-1], strict=True))
    run.speed, run.others = run.speed / seconds, others / seconds


def run_once(config: CollectConfig, name: str, workers: int) -> Run:
    """One collection."""
    with tempfile.TemporaryDirectory() as home, measured(workers, config.episodes) as (run, take):
        if name == "ray":
            by_ray(config, Path(home) / "data", workers, take)
        else:
            for told in by_pool(config, Path(home) / "data", workers):
                take(told)
    return run


def shares(seconds: float = 20.0) -> dict[str, float]:
    """Processor time of a trot by what spends it, as shares; and the bytes of a second in a file."""
    episode, seed, _ = draw_episode(CollectConfig(episodes=1, seconds=seconds, sensors="exact"), 0)
    simulation, spent = Simulation(episode, seed), Counter[str]()

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any) -> Any:
            begin = time.thread_time()
            result = work(*words)
            spent[name] += time.thread_time() - begin
            return result

        return call

    simulation.physics = timed("physics", simulation.physics)
    simulation.controller.step = timed("controller", simulation.controller.step)  # type: ignore[method-assign]
    begin = time.thread_time()
    while not simulation.done:
        simulation.step()
    total = time.thread_time() - begin
    found = {name: one / total for name, one in spent.items()}
    return found | {"steps_per_second": seconds * 1000 / spent["physics"]}


def size_of_a_second() -> tuple[float, int]:
    """Bytes of a recorded second, and of an episode's line in the index."""
    with tempfile.TemporaryDirectory() as folder:
        collect(CollectConfig(episodes=1, seconds=10.0, sensors="exact"), folder)
        size = (Path(folder) / "episode_00000.npz").stat().st_size
        return size / 10.0, (Path(folder) / "index.jsonl").stat().st_size


@dataclass(frozen=True)
class Overhead:
    """What Ray takes beyond the pool, as shares of the work."""

    worker: float
    """Median over episodes of a worker's processor time for an episode against the pool's, the least of all repetitions
    either way: what else the machine does can only add to it."""
    low: float
    high: float
    """The least and the largest of the medians of single repetitions."""
    servers: float
    """Cores of Ray's other processes for each that simulates, beyond those of the pool."""

    @property
    def total(self) -> float:
        return self.worker + self.servers


def overhead(pool: list[Run], ray: list[Run], workers: int) -> Overhead:
    """Compare runs in pairs, and episodes in pairs."""
    each = [
        [b.costs[number] / a.costs[number] - 1.0 for number in a.costs if number in b.costs]
        for a, b in zip(pool, ray, strict=True)
    ]
    middles = [statistics.median(one) for one in each]
    servers = statistics.median((b.others - a.others) / workers for a, b in zip(pool, ray, strict=True))
    least = [{k: min(run.costs.get(k, math.inf) for run in runs) for k in runs[0].costs} for runs in (pool, ray)]
    worker = statistics.median(least[1][k] / cost - 1.0 for k, cost in least[0].items() if k in least[1])
    return Overhead(worker, min(middles), max(middles), servers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=14)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warm_up()
    print({name: round(one, 3) for name, one in shares().items()}, size_of_a_second(), flush=True)
    config = CollectConfig(episodes=options.episodes, seconds=10.0, terrain="rubber", sensors="exact")
    found: dict[tuple[str, int], list[Run]] = {}
    load = []
    for repeat in range(options.repeats):
        for workers in (2, 1):
            # Each goes first as often as the other.
            for name in ("pool", "ray")[:: 1 if repeat % 2 == 0 else -1]:
                load.append(os.getloadavg()[0])
                run = run_once(config, name, workers)
                found.setdefault((name, workers), []).append(run)
                figures = f"{1e3 * run.cost:.1f} ms a simulated s, others {run.others:.3f}, first {run.first:.0f} s"
                print(f"{name} {workers}: {run.speed:.2f} x real time, {figures}, load {load[-1]:.1f}", flush=True)
    text = section(found, options, load)
    print(text)
    if options.write:
        write_section("scaling", text, DOCS / "cluster.md")


def section(found: dict[tuple[str, int], list[Run]], options: argparse.Namespace, load: list[float]) -> str:
    rows, said = [], []
    for workers in (1, 2):
        for name, label in (("pool", "local pool"), ("ray", "Ray")):
            runs = found[name, workers]
            cost = 1e3 * statistics.median(run.cost for run in runs)
            speeds, firsts = [run.speed for run in runs], [run.first for run in runs]
            others = statistics.median(run.others for run in runs)
            speed = f"{statistics.median(speeds):.1f} ({min(speeds):.1f} to {max(speeds):.1f})"
            first = f"{statistics.median(firsts):.0f}"
            rows.append([label, str(workers), speed, f"{cost:.1f}", f"{others:.3f}", first])
        over = overhead(found["pool", workers], found["ray", workers], workers)
        who = f"With {workers} worker{'s' * (workers > 1)}"
        worker, low, high, servers, total = (
            f"{100 * share:+.1f} %" for share in (over.worker, over.low, over.high, over.servers, over.total)
        )
        said.append(
            f"{who} Ray takes {total}: {worker} in the workers (single repetitions from {low} to {high}) and {servers}"
            " for its servers."
        )
    heads = ["", "workers", "x real time", "worker, ms a simulated s", "other processes, cores", "first episode, s"]
    loads = f"{statistics.median(load):.0f} ({min(load):.0f} to {max(load):.0f})"
    words = paragraph(
        f"""{options.repeats} interleaved collections of {options.episodes} episodes of 10 s each way, medians and
        ranges, on {os.cpu_count()} cores of a shared machine (load {loads}), so wall times range
        widely. Processor time tells more: what a worker spends on a simulated
        second, the same episode compared with itself, and what all other processes (the command; Ray's servers and
        agents) use meanwhile. {" ".join(said)}"""
    )
    return f"{words}\n\n{markdown(heads, rows)}"


if __name__ == "__main__":
    main()
