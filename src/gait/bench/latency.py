"""How long a step takes, ours and that of rivals, in one run: one sample in, state out.

- `gait.core.step_us`: `Estimator.update` from Python, with everything a user pays. `gait.core.kernel_us` is a sample
  inside the C loop of `run`; the exported C is the same code.
- `torch_eager`, `torch_jit`, `onnxruntime`: the network there, on one thread, and then our filter.
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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from gait.bench import rivals
from gait.bench.rivals import MissingRivalError, Step
from gait.bench.timing import Burst, burst_medians, paced
from gait.engine import Context, engines_of
from gait.errors import GaitError
from gait.estimator import Estimator, rows_of
from gait.log.log import Log
from gait.log.sample import Sample
from gait.methods import METHODS, is_python, known_method
from gait.nets.model import Model, load_model, model_names
from gait.parameters import BASELINES
from gait.robot import Robot
from gait.rows import Row
from gait.samples import SAMPLE

OURS = "core"
"""What our own steps are called in names of rows."""
BURST = 0.002
"""Seconds of a burst: shorter than a time slice, so that on a busy machine most of them are left alone."""
STARTS = 3
"""Fresh processes of which the median counts."""
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
        self._rows = [
            row._replace(tau=row.tau if torques else None, foot_force=None, contact=None) for row in log.rows()
        ]

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
    for name in map(known_method, METHODS if methods is None else methods):
        if not METHODS[name].weights or METHODS[name].weights in model_names():
            chosen.append(name)
        else:
            left_out.append(f"{name} (its weights do not come with gait yet)")
    return chosen, left_out


def latency_report(
    methods: Sequence[str] | None = None,
    seconds: float = 1.0,
    progress: Progress | None = None,
) -> list[Row]:
    """Measure the methods and the rivals that are installed.

    Args:
        methods: names from `METHODS`; all that can run by default.
        seconds: for each rival, in bursts, and again in the paced run.
        progress: is told what is under way.
    """
    if seconds <= 0.0:
        raise GaitError(f"{seconds:g} s for each rival leave no time to measure: give more than 0")
    say = progress or (lambda _: None)
    chosen, left_out = available(methods)
    log = Log.load(SAMPLE)
    say("preparing the rivals")
    bursts: dict[str, Burst] = {}
    steps: dict[str, Step] = {}
    for method in chosen:
        more, paced_steps, missing = _rivals(method, log, method == chosen[0])
        bursts |= more
        steps |= paced_steps
        left_out += missing
    rounds = max(int(seconds / BURST), 3)
    times = burst_medians(bursts, rounds, BURST, lambda part: say(f"{len(bursts)} rivals in turns, {100 * part:.0f} %"))
    say("a sample every 2 ms")
    lateness = paced({name: (step, Stream(log)) for name, step in steps.items()}, seconds)
    rows = _rows(times, lateness)
    if "gait" in chosen:
        rows.append(Row("gait.run.samples_per_second", _samples_per_second("gait", log), "1/s"))
        say("fresh processes")
        rows += _starts()
    rows.append(Row("load_average", os.getloadavg()[0], "-"))
    if left_out:
        rows.append(Row("left_out", "; ".join(left_out), "-"))
    return rows


def _rivals(method: str, log: Log, full: bool) -> tuple[dict[str, Burst], dict[str, Step], list[str]]:
    """Bursts by name, the steps for the paced run, and what was left out; only the first method has all rivals."""
    steps: dict[str, Step] = {}
    missing: list[str] = []
    estimator = Estimator.load("go1", method)
    estimator.start_as(log, "truth")
    torques = method in BASELINES or estimator.by_leg
    bursts = {f"{method}.{OURS}": Stream(log, torques).burst(estimator.update)}
    if not is_python(method):
        bursts[f"{method}.kernel"] = _kernel(method, log)

    def attempt(name: str, make: Callable[[], Burst]) -> None:
        try:
            bursts[f"{method}.{name}"] = make()
        except MissingRivalError as error:
            missing.append(f"{method}.{name} ({error})")

    if method == "iekf":
        attempt("gtsam", lambda: Stream(log).burst(rivals.gtsam_step(log.rate)))
    if not METHODS[method].weights or estimator.by_leg:
        return bursts, steps, missing
    model = load_model(METHODS[method].weights)
    for name, network in NETWORKS.items():
        if full or name in RATIOS:
            attempt(name, lambda network=network: Stream(log).burst(rivals.with_filter(network(model), log.rate)))  # type: ignore[misc]
    if full:
        again = Estimator.load("go1", method)
        again.start_as(log, "truth")
        steps[f"{method}.{OURS}"] = again.update
        for name in ("torch_eager", "onnxruntime"):
            if f"{method}.{name}" in bursts:
                steps[f"{method}.{name}"] = rivals.with_filter(NETWORKS[name](model), log.rate)
    return bursts, steps, missing


def _kernel(method: str, log: Log) -> Burst:
    """Samples inside one call of the C loop."""
    robot, counter = Robot.load("go1"), itertools.count()
    context = Context(engines_of(method, robot, {})[0])
    rows = rows_of(log, robot)
    context.run(rows[:1])

    def burst(count: int) -> float:
        index = [next(counter) for _ in range(count)]
        samples = rows[[k % len(rows) for k in index]]
        samples[:, 0] = (np.array(index) + 1.0) / log.rate
        start = time.perf_counter()
        context.run(samples)
        return time.perf_counter() - start

    return burst


def _rows(times: Mapping[str, float], lateness: Mapping[str, Sequence[float]]) -> list[Row]:
    """Times a step, paced times, and ratios of rivals to ours."""
    rows = []
    for name, value in times.items():
        known = f"{name.removesuffix('.kernel')}.{OURS}.kernel_us" if name.endswith(".kernel") else f"{name}.step_us"
        rows.append(Row(known, value, "us"))
    for name, values in lateness.items():
        middle, late = np.percentile(values, [50, 99])
        rows += [Row(f"{name}.paced_p50_us", float(middle), "us"), Row(f"{name}.paced_p99_us", float(late), "us")]
    for name, value in times.items():
        method, rival = name.split(".")
        if rival in RATIOS and f"{method}.{OURS}" in times:
            rows.append(Row(f"{name}.ratio", value / times[f"{method}.{OURS}"], "x"))
    return rows


def _samples_per_second(method: str, log: Log) -> float:
    """Of `Estimator.run` on the whole log, with all that it does around the C loop."""
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


def _starts() -> list[Row]:
    """Memory and time of a fresh process until it has its first state."""
    seconds, grown = [], []
    for _ in range(STARTS):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", _START], capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - start)
        grown.append(float(done.stdout))
    rows = [Row("gait.start_s", statistics.median(seconds), "s")]
    if min(grown) > 0.0:
        rows.append(Row("gait.memory_mb", statistics.median(grown) / 1e6, "MB"))
    return rows
