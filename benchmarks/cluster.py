"""What Ray costs: collections by the local pool and by Ray, interleaved, with 1 and 2 workers.

Prints; `--write` replaces the section in docs/cluster.md. Wall time tells the speed, and processor time what was spent
for it: the latter hardly depends on what else a machine does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sections import DOCS, markdown, paragraph, write_section

from gait.cluster.collection import collect_on_cluster
from gait.cluster.tasks import LOCAL
from gait.sim.collect import CollectionProgress, OnProgress, collect, draw_episode, warm_up
from gait.sim.episode import Simulation
from gait.sim.plan import CollectConfig


def processor_seconds() -> tuple[float, float]:
    """Of the processes that simulate, and of all others that this one started: those of Ray, and itself."""
    working, others = 0.0, 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times, words = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "ray::on_node" in words or "ray::IDLE" in words or "multiprocessing.spawn" in words:
            working += times.user + times.system
        else:
            others += times.user + times.system
    # A pool of one is this process itself.
    return (working, others) if working else (others, 0.0)


def measured(run: Callable[[Path, OnProgress], object], workers: int) -> tuple[float, ...]:
    """Without the start: real-time factor; processor seconds of workers for a simulated second; cores that others use.

    And the seconds until the first episode is there.
    """
    seen: list[tuple[float, float, float, float]] = []

    def note(now: CollectionProgress) -> None:
        seen.append((time.perf_counter(), now.simulated, *processor_seconds()))

    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run(Path(folder) / "data", note)
    # The first report is before any episode, the last one repeats the end; a worker's first episode waits for imports.
    wall, simulated, working, others = np.subtract(seen[-2], seen[1 + workers])
    return simulated / wall, working / simulated, others / wall, seen[1][0] - begin


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=14)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warm_up()
    print({name: round(one, 3) for name, one in shares().items()}, size_of_a_second(), flush=True)
    config = CollectConfig(episodes=options.episodes, seconds=10.0, terrain="rubber", sensors="exact")
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    load = []
    for _ in range(options.repeats):
        for workers in (2, 1):
            for name in ("pool", "ray"):
                load.append(os.getloadavg()[0])
                found.setdefault((name, workers), []).append(measured(runner(config, name, workers), workers))
                figures = " ".join(f"{one:.3f}" for one in found[name, workers][-1])
                print(name, workers, figures, f"load {load[-1]:.1f}", flush=True)
    text = section(found, options.episodes, options.repeats, statistics.median(load))
    print(text)
    if options.write:
        write_section("scaling", text, DOCS / "cluster.md")


def runner(config: CollectConfig, name: str, workers: int) -> Callable[[Path, OnProgress], object]:
    """One way to make a collection."""
    if name == "pool":
        return lambda out, note: collect(config, out, workers, note)
    return lambda out, note: collect_on_cluster(config, str(out), LOCAL, workers, note)


def section(found: dict[tuple[str, int], list[tuple[float, ...]]], episodes: int, repeats: int, load: float) -> str:
    rows, middle = (
        [],
        {key: [statistics.median(column) for column in zip(*runs, strict=True)] for key, runs in found.items()},
    )
    for (name, workers), figures in sorted(middle.items(), key=lambda item: (item[0][1], item[0][0])):
        speed, cost, others, start = figures
        pool = middle["pool", workers]
        change = "" if name == "pool" else f" ({100 * (cost / pool[1] - 1):+.1f} %)"
        label = "local pool" if name == "pool" else "Ray"
        rows.append([label, str(workers), f"{speed:.1f}", f"{1e3 * cost:.1f}{change}", f"{others:.3f}", f"{start:.0f}"])
    heads = ["", "workers", "x real time", "worker, ms a simulated s", "other processes, cores", "first episode, s"]
    words = paragraph(
        f"""Medians of {repeats} interleaved collections of {episodes} episodes of 10 s each way, without the start, on
        two cores that others used as well: the load was {load:.0f}, so wall times are those of a busy machine.
        Processor time tells more: what a worker spends on a simulated second, and what all other processes (the
        command; Ray's servers and agents) use while it runs."""
    )
    return f"{words}\n\n{markdown(heads, rows)}"


if __name__ == "__main__":
    main()
