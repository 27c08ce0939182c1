"""Time rivals fairly on a noisy machine: short bursts, interleaved, and the median of many rounds."""

from __future__ import annotations

import random
import statistics
import time
import timeit
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")
Burst = Callable[[int], float]
"""Makes so many calls in a row and returns the seconds that they took."""


PERIOD, AWAKE = 0.002, 0.0002
"""Of samples in a paced run, and how long before one is due the process wakes up, s."""
SEGMENT = 0.25
"""Seconds for which one rival has the paced run to itself."""


def medians(rivals: Mapping[str, Callable[[], object]], rounds: int = 41, burst: float = 0.01) -> dict[str, float]:
    """Median time of one call of each rival, in microseconds; see `burst_medians`."""
    return burst_medians({name: timeit.Timer(rival).timeit for name, rival in rivals.items()}, rounds, burst)


def burst_medians(
    bursts: Mapping[str, Burst],
    rounds: int = 41,
    seconds: float = 0.01,
    progress: Callable[[float], object] | None = None,
) -> dict[str, float]:
    """Median time of one call of each rival, in microseconds.

    Every round gives each rival one burst of about `seconds`, so that a slow moment of the machine hits all of them
    alike, in an order that changes, so that nobody always follows the one that leaves the caches cold.

    Args:
        bursts: the rivals by name.
        rounds: how many bursts each gets.
        seconds: how long a burst is; one call at the least, since a longer burst is more often interrupted.
        progress: is told from time to time what part is done.
    """
    calls = {name: _calls(burst, seconds) for name, burst in bursts.items()}
    samples: dict[str, list[float]] = {name: [] for name in bursts}
    order, shuffler = list(bursts), random.Random(0)
    for done in range(rounds):
        if progress is not None and done % max(rounds // 100, 1) == 0:
            progress(done / rounds)
        shuffler.shuffle(order)
        for name in order:
            samples[name].append(bursts[name](calls[name]) / calls[name] * 1e6)
    return {name: statistics.median(values) for name, values in samples.items()}


def _calls(burst: Burst, seconds: float) -> int:
    """How many calls fill a burst: the best of three tries, since one that was interrupted says nothing."""
    count = 1
    while (spent := min(burst(count) for _ in range(3))) < 0.5 * seconds:
        count *= 2
    return max(1, round(count * seconds / spent)) if spent > seconds else count


def paced(
    rivals: Mapping[str, tuple[Callable[[T], object], Iterator[T]]],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], object] = time.sleep,
) -> dict[str, list[float]]:
    """Times of single steps at the rate of a robot, in microseconds, by rival.

    Rivals take turns of `SEGMENT` seconds. The process sleeps until `AWAKE` before a sample is due and spins from
    there. A sample that is due while the process is held up is taken late, and the next one is due a period after it.

    Args:
        rivals: what takes a sample, and where samples come from.
        seconds: for each.
        clock: tells the time, s.
        sleep: waits so many seconds.
    """
    times: dict[str, list[float]] = {name: [] for name in rivals}
    each = max(round(min(seconds, SEGMENT) / PERIOD), 1)
    for _ in range(max(round(seconds / (each * PERIOD)), 1)):
        for name, (step, stream) in rivals.items():
            samples = [next(stream) for _ in range(each)]
            due = clock() + PERIOD
            for sample in samples:
                if (rest := due - AWAKE - clock()) > 0.0:
                    sleep(rest)
                while (start := clock()) < due:
                    pass
                step(sample)
                times[name].append((clock() - start) * 1e6)
                due = max(due, start) + PERIOD
    return times
