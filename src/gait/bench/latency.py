"""How long a step takes, ours and that of rivals, in one run: one sample in, state out.

- `gait.numba.step_us`: `Estimator.update` from Python, with everything a user pays; `gait.numpy.step_us` is the same
  without numba, in a process of its own. `gait.numba.kernel_us` is a sample inside the compiled loop of `run`.
- `torch_eager`, `torch_jit`, `onnxruntime`: the network there, on one thread, and then our compiled filter.
- `c`: the exported C (`gcc -O3 -march=native`), network and filter, in a loop in C.
- `iekf.gtsam.step_us`: prediction and correction by two feet in gtsam's LeggedInvariantEKF, against all of our `iekf`.

Samples are those of the log that comes with the package, over and over. Rivals take turns in short bursts and the
median burst counts. `paced` is another matter: a sample every 2 ms, where caches have gone cold in between; the process
sleeps until 0.2 ms before a sample is due and spins from there. A ratio is the rival's time over ours.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from gait._compile import RUNTIME
from gait.bench import rivals
from gait.bench.rivals import MissingRivalError, Step
from gait.bench.timing import Burst, burst_medians, paced
from gait.errors import GaitError
from gait.estimator import METHODS, Estimator
from gait.log.log import Log
from gait.log.sample import Sample
from gait.nets.model import Model, load_model, model_names
from gait.parameters import BASELINES
from gait.rows import Row
from gait.samples import SAMPLE

BURST = 0.002
"""Seconds of a burst: shorter than a time slice, so that on a busy machine most of them are left alone."""
STARTS = 3
"""Fresh processes of which the median is the warm start."""
NETWORKS: dict[str, Callable[[Model], rivals.Network]] = {
    "torch_eager": lambda model: rivals.torch_network(model, compiled=False),
    "torch_jit": lambda model: rivals.torch_network(model, compiled=True),
    "onnxruntime": rivals.onnx_network,
}
"""Runtimes of the network that are measured with our filter."""
RATIOS = ("torch_eager", "onnxruntime", "gtsam")
Progress = Callable[[str], object]


class Stream(Iterator[Sample]):
    """Samples of a log over and over, with a clock that goes on."""

    def __init__(self, log: Log, torques: bool = False) -> None:
        self.period, self._count = 1.0 / log.rate, itertools.count()
        # Copies: those of a log are read-only, which compiled code takes for another type.
        self._rows = [
            Sample(
                row.t, row.gyro.copy(), row.accel.copy(), row.q.copy(), row.dq.copy(),
                None if row.q_des is None else row.q_des.copy(),
                row.tau.copy() if torques and row.tau is not None else None,
            )
            for row in log.rows()
        ]  # fmt: skip

    def __next__(self) -> Sample:
        k = next(self._count)
        return self._rows[k % len(self._rows)]._replace(t=k * self.period)

    def take(self, count: int) -> list[Sample]:
        """The next few."""
        return [next(self) for _ in range(count)]

    def burst(self, step: Step) -> Burst:
        """So many steps on the next samples, which are at hand before the clock starts."""

        def burst(count: int) -> float:
            samples = self.take(count)
            start = time.perf_counter()
            for sample in samples:
                step(sample)
            return time.perf_counter() - start

        return burst


def available(methods: Sequence[str] | None = None) -> tuple[list[str], list[str]]:
    """Of the methods (all by default), those that can run, and a word on each that cannot.

    Raises:
        GaitError: if there is no such method.
    """
    chosen, left_out = [], []
    for name in METHODS if methods is None else methods:
        if name not in METHODS:
            raise GaitError(f"unknown method '{name}': choose from {', '.join(METHODS)}")
        if name in BASELINES or METHODS[name].weights in model_names():
            chosen.append(name)
        else:
            left_out.append(f"{name} (its weights do not come with gait yet)")
    return chosen, left_out


def latency_report(
    methods: Sequence[str] | None = None,
    seconds: float = 1.0,
    cold: bool = False,
    progress: Progress | None = None,
) -> list[Row]:
    """Measure the methods and the rivals that are installed.

    Args:
        methods: names from `METHODS`; all that can run by default.
        seconds: for each rival, in bursts, and again in the paced run.
        cold: whether to time a start without compiled code, too, which takes a minute or more.
        progress: is told what is under way.
    """
    if seconds <= 0.0:
        raise GaitError(f"{seconds:g} s for each rival leave no time to measure: give more than 0")
    say = progress or (lambda _: None)
    chosen, left_out = available(methods)
    log = Log.load(SAMPLE)
    with ExitStack() as stack:
        say("preparing the rivals")
        bursts: dict[str, Burst] = {}
        steps: dict[str, Step] = {}
        for method in chosen:
            more, paced_steps, missing = _rivals(method, log, stack, method == chosen[0])
            bursts |= more
            steps |= paced_steps
            left_out += missing
        rounds = max(int(seconds / BURST), 3)
        times = burst_medians(
            bursts, rounds, BURST, lambda part: say(f"{len(bursts)} rivals in turns, {100 * part:.0f} %")
        )
        say("a sample every 2 ms")
        lateness = paced({name: (step, Stream(log)) for name, step in steps.items()}, seconds)
    rows = _rows(times, lateness)
    if "gait" in chosen:
        rows.append(Row("gait.run.samples_per_second", _samples_per_second("gait", log), "1/s"))
        say("fresh processes")
        rows += _starts(cold, say)
    rows.append(Row("load_average", os.getloadavg()[0], "-"))
    if left_out:
        rows.append(Row("left_out", "; ".join(left_out), "-"))
    return rows


def _rivals(method: str, log: Log, stack: ExitStack, full: bool) -> tuple[dict[str, Burst], dict[str, Step], list[str]]:
    """Bursts by name, the steps for the paced run, and what was left out; only the first method has all rivals."""
    bursts: dict[str, Burst] = {}
    steps: dict[str, Step] = {}
    missing: list[str] = []
    baseline = method in BASELINES
    estimator = Estimator.load("go1", method)
    estimator.start_as(log, "truth")
    bursts[f"{method}.{RUNTIME}"] = Stream(log, baseline or estimator.by_leg).burst(estimator.update)
    if RUNTIME == "numpy":
        return bursts, steps, [f"rivals of {method} (numba is not in use)"]

    def attempt(name: str, make: Callable[[], Burst]) -> None:
        try:
            bursts[f"{method}.{name}"] = make()
        except MissingRivalError as error:
            missing.append(f"{method}.{name} ({error})")

    if baseline:
        if method == "iekf":
            attempt("gtsam", lambda: Stream(log).burst(rivals.gtsam_step(log.rate)))
        return bursts, steps, missing
    model = load_model(METHODS[method].weights)

    def in_c() -> Burst:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        return rivals.CEstimator(model, estimator.robot, folder).burst(Stream(log, estimator.by_leg).take)

    if estimator.by_leg:
        bursts[f"{method}.kernel"] = _kernel(method, log)
        attempt("c", in_c)
        return bursts, steps, missing
    for name, network in NETWORKS.items():
        if full or name in RATIOS:
            attempt(name, lambda network=network: Stream(log).burst(rivals.with_filter(network(model), log.rate)))  # type: ignore[misc]
    if full:
        bursts[f"{method}.kernel"] = _kernel(method, log)
        attempt("numpy", lambda: stack.enter_context(_elsewhere(method)))
        attempt("c", in_c)
        again = Estimator.load("go1", method)
        again.start_as(log, "truth")
        steps[f"{method}.{RUNTIME}"] = again.update
        for name in ("torch_eager", "onnxruntime"):
            if f"{method}.{name}" in bursts:
                steps[f"{method}.{name}"] = rivals.with_filter(NETWORKS[name](model), log.rate)
    return bursts, steps, missing


def _kernel(method: str, log: Log) -> Burst:
    """Samples inside one call of the compiled loop."""
    estimator, stream = Estimator.load("go1", method), Stream(log)
    estimator.start_as(log, "truth")
    estimator.update(next(stream))
    engine, layout = estimator._engine, estimator._layout

    def burst(count: int) -> float:
        samples = stream.take(count)
        rows, out = np.full((count, layout.width), np.nan), np.empty((count, engine.width))
        rows[:, 0], rows[:, layout.leg_ok :] = [sample.t for sample in samples], 1.0
        for name, part in layout.parts().items():
            if getattr(samples[0], name) is not None:
                rows[:, part] = [getattr(sample, name) for sample in samples]
        start = time.perf_counter()
        engine.run(rows, out)
        return time.perf_counter() - start

    return burst


@contextmanager
def _elsewhere(method: str) -> Iterator[Burst]:
    """The estimator without numba: what runs it is chosen when gait is imported, hence a process of its own."""
    code = f"from gait.bench.latency import serve; serve({method!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "GAIT_RUNTIME": "numpy"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    ask, answers = process.stdin, process.stdout
    assert ask is not None and answers is not None

    def burst(count: int) -> float:
        print(count, file=ask, flush=True)
        return float(answers.readline())

    try:
        yield burst
    finally:
        ask.close()
        process.wait()
        answers.close()


def serve(method: str) -> None:
    """Answer each count that comes in with the seconds that so many updates took."""
    log = Log.load(SAMPLE)
    estimator = Estimator.load("go1", method)
    estimator.start_as(log, "truth")
    burst = Stream(log).burst(estimator.update)
    for line in sys.stdin:
        print(burst(int(line)), flush=True)


def _rows(times: Mapping[str, float], lateness: Mapping[str, Sequence[float]]) -> list[Row]:
    """Times a step, paced times, and ratios of rivals to ours."""
    rows = []
    for name, value in times.items():
        known = f"{name.removesuffix('.kernel')}.{RUNTIME}.kernel_us" if name.endswith(".kernel") else f"{name}.step_us"
        rows.append(Row(known, value, "us"))
    for name, values in lateness.items():
        middle, late = np.percentile(values, [50, 99])
        rows += [Row(f"{name}.paced_p50_us", float(middle), "us"), Row(f"{name}.paced_p99_us", float(late), "us")]
    for name, value in times.items():
        method, rival = name.split(".")
        if rival in RATIOS and f"{method}.{RUNTIME}" in times:
            rows.append(Row(f"{name}.ratio", value / times[f"{method}.{RUNTIME}"], "x"))
    return rows


def _samples_per_second(method: str, log: Log) -> float:
    """Of `Estimator.run` on the whole log, with all that it does around the compiled loop."""
    estimator, spent = Estimator.load("go1", method), []
    for _ in range(5):
        start = time.perf_counter()
        estimator.run(log)
        spent.append(time.perf_counter() - start)
    return len(log) / statistics.median(spent)


_START = """
from pathlib import Path
def resident():
    file = Path("/proc/self/statm")
    return int(file.read_text().split()[1]) if file.exists() else 0
before = resident()
import gait
q = [0.0, 0.9, -1.8] * 4
gait.Estimator.load("go1").update(0.0, [0.0] * 3, [0.0, 0.0, 9.81], q, [0.0] * 12, q)
import os
print((resident() - before) * os.sysconf("SC_PAGE_SIZE"))
"""


def _start(**environment: str) -> tuple[float, float]:
    """Seconds of a fresh process until it has taken its first sample and ended, and the bytes it grew by."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _START], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, float(done.stdout)


def _starts(cold: bool, say: Progress) -> list[Row]:
    """Memory, and the time until a fresh process has its first state; compiled code is in the cache, or not."""
    # This process has compiled all of it: the cache is full.
    seconds, grown = zip(*(_start() for _ in range(STARTS)), strict=True)
    rows = [Row("gait.warm_start_s", statistics.median(seconds), "s")]
    if min(grown) > 0.0:
        rows.append(Row("gait.memory_mb", statistics.median(grown) / 1e6, "MB"))
    if cold:
        say("a start without compiled code, which takes a minute or more")
        with tempfile.TemporaryDirectory() as folder:
            rows.append(Row("gait.cold_start_s", _start(NUMBA_CACHE_DIR=folder)[0], "s"))
    return rows
