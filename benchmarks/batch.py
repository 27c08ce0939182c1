"""What a robot costs in a batch, against one alone in the core, on one thread: `python benchmarks/batch.py`.

Processor time of the thread, so that other processes on the machine cost cache, but not turns.
python benchmarks/batch.py --many           # 4096 robots: a loop of estimators, gait.Batch, gait.nets.TorchBatch
python benchmarks/batch.py --many --write   # into docs/rl.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sections import DOCS, markdown, paragraph, write_section

from gait import Batch, Estimator, Log, Robot
from gait.binding import pointer
from gait.report.describe import installation
from gait.sample_rows import rows_of
from gait.samples import SAMPLE

ROBOTS, ROUNDS, ALONE = 1024, 400, 4096
MANY, LOOP, MANY_ROUNDS = 4096, 256, 13
MANY_METHODS = ("gait-legs", "gait")
FIELDS = ("gyro", "accel", "q", "dq", "q_des", "tau")
RIVALS = {
    "loop": "a loop of `Estimator.update`",
    "core": "`gait.Batch`",
    "double": "`TorchBatch`",
    "single": "`TorchBatch`, filter in float32",
}
Samples = dict[str, np.ndarray]


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


def rival(name: str, method: str) -> Callable[[int, Samples], None]:
    """A function that takes one sample of each of many robots, at step k, on one thread."""
    if name == "loop":
        alone = [Estimator.load("go1", method) for _ in range(LOOP)]

        def loop(k: int, given: Samples) -> None:
            for i, estimator in enumerate(alone):
                estimator.update(0.002 * k, *(given[field][i] for field in FIELDS))

        return loop
    if name == "core":
        batch = Batch("go1", MANY, method, threads=1)
        return lambda k, given: void(batch.update(0.002 * k, **given))
    import torch

    from gait.nets import TorchBatch

    torch.set_num_threads(1)
    estimators = TorchBatch("go1", MANY, method=method, precision=torch.float64 if name == "double" else torch.float32)

    def step(k: int, given: Samples) -> None:
        estimators.update(**{field: torch.from_numpy(value) for field, value in given.items()})

    return step


def void(_: object) -> None:
    """Nothing: for a function whose result does not matter."""


def samples(k: int, log: Log) -> Samples:
    """Every robot is at another place of the walk, in the precision of simulators."""
    return {field: getattr(log, field)[np.arange(MANY) + k].astype(np.float32) for field in FIELDS}


def throughput(method: str, log: Log) -> dict[str, float]:
    """Robot-steps of each rival in a second of CPU time, which others on the machine do not shorten; in turns."""
    rivals = {name: rival(name, method) for name in RIVALS}
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    for k in range(MANY_ROUNDS):
        given = samples(k, log)
        for name, step in rivals.items():
            begin = time.process_time()
            step(k, given)
            seconds[name].append(time.process_time() - begin)
    # The first steps have empty caches.
    return {name: robots(name) / float(np.median(taken[3:])) for name, taken in seconds.items()}


def robots(name: str) -> int:
    """How many a rival steps."""
    return LOOP if name == "loop" else MANY


def memory(name: str, method: str) -> float:
    """Megabytes by which a process grows that makes the robots and steps them, imports and samples aside."""
    code = f"import batch; print(batch.grown({name!r}, {method!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def grown(name: str, method: str) -> float:
    """The same in this process."""
    if name in ("double", "single"):
        import torch

        from gait.nets import TorchBatch

        TorchBatch("go1", 2, method=method).update(**{f: torch.zeros(2, 3 if f in FIELDS[:2] else 12) for f in FIELDS})
    stand = Robot.load("go1").q_stand
    rows = dict(zip(FIELDS, (np.zeros(3), [0.0, 0.0, 9.81], stand, 0 * stand, stand, 0 * stand), strict=True))
    given = {field: np.tile(np.asarray(row, dtype=np.float32), (MANY, 1)) for field, row in rows.items()}
    before = peak()
    step = rival(name, method)
    for k in range(5):
        step(k, given)
    return peak() - before


def peak() -> float:
    """Megabytes that this process has had at most; what rusage tells counts the parent as well."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024.0


def many(write: bool) -> None:
    """Print, or write, the table of many robots."""
    log = Log.load(SAMPLE).reorder(Robot.load("go1"))
    rates = {method: throughput(method, log) for method in MANY_METHODS}
    lines = []
    for name, text in RIVALS.items():
        speeds = [f"{rates[method][name] / 1e3:,.0f}" for method in MANY_METHODS]
        sizes = [f"{memory(name, method) * MANY / robots(name):.0f}" for method in MANY_METHODS]
        lines.append([text, *speeds, *sizes])
    heads = [f"`{method}`{unit}" for unit in ("", ", MB") for method in MANY_METHODS]
    table = markdown(["1000 robot-steps a second", *heads], lines)
    about = {row.name: row.value for row in installation()}
    text = f"""{MANY} robots ({LOOP} in the loop), one thread, medians by CPU time, rivals in turns. Memory is by how
        much a process grows at its peak, for {MANY}. Measured on {about["cpu"]}, at a load average of
        {os.getloadavg()[0]:.1f} on {about["cores"]} cores."""
    section = f"{table}\n\n{paragraph(text)}"
    print(section)
    if write:
        write_section("batch", section, DOCS / "rl.md")


def main() -> None:
    """Print a line for each method, or the table of many robots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", action="store_true", help="4096 robots, in torch as well")
    parser.add_argument("--write", action="store_true", help="put the table of many robots into docs/rl.md")
    args = parser.parse_args()
    if args.many or args.write:
        many(args.write)
        return
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
