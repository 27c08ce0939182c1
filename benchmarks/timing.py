"""Time rivals fairly on a noisy machine: short bursts, interleaved, and the median of many rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def medians(rivals: Mapping[str, Callable[[], object]], rounds: int = 41, burst: float = 0.01) -> dict[str, float]:
    """Median time of one call of each rival, in microseconds.

    Every round gives each rival one burst of about `burst` seconds, in turn, so that a slow moment of the machine hits
    all of them alike.
    """
    calls = {}
    for name, rival in rivals.items():
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < burst or count < 3:
            rival()
            count += 1
        calls[name] = count
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        for name, rival in rivals.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                rival()
            samples[name].append((time.perf_counter() - start) / calls[name] * 1e6)
    return {name: statistics.median(values) for name, values in samples.items()}
