"""What a robot costs in a batch, against one alone in the core, on one thread: `python benchmarks/batch.py`.

Processor time of the thread, so that other processes on the machine cost cache, but not turns.
"""

from __future__ import annotations

import time

import numpy as np

from gait import Batch, Estimator, Log
from gait.binding import pointer
from gait.estimator import rows_of
from gait.samples import SAMPLE

ROBOTS, ROUNDS, ALONE = 1024, 400, 4096


def measure(method: str, log: Log) -> tuple[float, list[float], list[float]]:
    """Seconds to load, and microseconds a step alone and in the batch."""
    begin = time.perf_counter()
    batch = Batch("go1", ROBOTS, method, threads=1)
    load = time.perf_counter() - begin
    estimator = Estimator.load("go1", method)
    log = log.reorder(estimator.robot)
    rows = rows_of(log, estimator.robot)
    estimator.run(log.slice(0.0, 0.1))
    context, chunk = estimator._context, np.ascontiguousarray(rows[:ALONE])
    out = np.empty((ALONE, context.engine.state_doubles))
    alone, together = [], []
    for k in range(ROUNDS):
        # Every robot is at another place of the walk.
        batch._rows[:] = rows[4 * np.arange(ROBOTS) + k]
        batch._rows[:, 0] = k / log.rate
        begin = time.thread_time()
        batch._step(0, ROBOTS, None)
        together.append((time.thread_time() - begin) / ROBOTS * 1e6)
        if k % 5 == 0:
            estimator.start_as(log)
            begin = time.thread_time()
            context._core.gait_run(context.at, pointer(chunk), ALONE, pointer(out))
            alone.append((time.thread_time() - begin) / ALONE * 1e6)
    return load, alone, together[100:]


def main() -> None:
    """Print a line for each method."""
    log = Log.load(SAMPLE)
    for method in ("gait", "gait-legs", "iekf"):
        load, alone, together = measure(method, log)
        median, best = np.median(together) / np.median(alone), min(together) / min(alone)
        print(
            f"{method}: {ROBOTS} robots load in {load:.2f} s; a step {np.median(alone):.2f} us alone,"
            f" {np.median(together):.2f} us in the batch: {median:.2f} x (fastest rounds {best:.2f} x)"
        )


if __name__ == "__main__":
    main()
