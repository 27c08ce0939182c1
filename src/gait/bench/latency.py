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
import random
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from gait.bench import rivals
from gait.bench.rivals import MissingRivalError, Step
from gait.engine import Context, engines_of
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.log import Log, Sample
from gait.methods import METHODS, is_python, known_method
from gait.nets.architecture import LegsArchitecture
from gait.nets.model import Model, load_model, model_names
from gait.robot import Robot
from gait.rows import Row
from gait.sample_rows import rows_of
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
PACED = (OURS, "torch_eager", "onnxruntime")
PERIOD, AWAKE = 0.002, 0.0002
"""Of samples in a paced run, and how long before one is due the process wakes up, s."""
SEGMENT = 0.25
"""Seconds for which one rival has the paced run to itself."""
Progress = Callable[[str], object]
T = TypeVar("T")
Burst = Callable[[int], float]
"""Makes so many calls in a row and returns the seconds that they took."""


def stream(log: Log, torques: bool = False) -> Iterator[Sample]:
    """Samples of a log in a loop, with stamps that continue."""
    period = 1.0 / log.rate
    rows = [row._replace(tau=row.tau if torques else None, foot_force=None, contact=None) for row in log.rows()]
    for k in itertools.count():
        yield rows[k % len(rows)]._replace(t=k * period)


def burst_of(step: Step, samples: Iterator[Sample]) -> Burst:
    """So many steps on the next samples, which are at hand before the clock starts."""

    def burst(count: int) -> float:
        taken = list(itertools.islice(samples, count))
        start = time.perf_counter()
        for sample in taken:
            step(sample)
        return time.perf_counter() - start

    return burst


def available(methods: Sequence[str] | None = None) -> tuple[list[str], list[str]]:
    """Of the methods (all by default), those that can run, and a word on each that cannot.

    Raises:
        GaitError: if there is no such method.
    """
    wanted = [known_method(name) for name in (METHODS if methods is None else methods)]
    chosen = [name for name in wanted if METHODS[name].weights in ("", *model_names())]
    return chosen, [f"{name} (its weights do not come with gait yet)" for name in wanted if name not in chosen]


def latency_report(
    methods: Sequence[str] | None = None, seconds: float = 1.0, progress: Progress | None = None
) -> list[Row]:
    """Measure the methods and the rivals that are installed.

    Args:
        methods: names from `METHODS`; all that can run by default.
        seconds: for each rival, in bursts, and again in the paced run.
        progress: called with what is under way.
    """
    if seconds <= 0.0:
        raise GaitError(f"{seconds:g} s for each rival leave no time to measure: give more than 0")
    say = progress or (lambda _: None)
    chosen, left_out = available(methods)
    log = Log.load(SAMPLE)
    say("preparing the rivals")
    bursts: dict[str, Burst] = {}
    paced_steps: dict[str, tuple[Step, Iterator[Sample]]] = {}
    for method in chosen:
        first, makers = method == chosen[0], _rivals(method, log, method == chosen[0])
        alone = "torch_eager" in makers  # a network without torques
        for name, make in makers.items():
            try:
                bursts[f"{method}.{name}.step_us"] = burst_of(make(), stream(log, torques=not alone))
                if first and alone and name in PACED:
                    paced_steps[f"{method}.{name}"] = make(), stream(log)
            except MissingRivalError as error:
                left_out.append(f"{method}.{name} ({error})")
            if name == OURS and not is_python(method):
                bursts[f"{method}.{OURS}.kernel_us"] = _kernel(method, log)
    rounds = max(int(seconds / BURST), 3)
    times = burst_medians(bursts, rounds, BURST, lambda part: say(f"{len(bursts)} rivals in turns, {100 * part:.0f} %"))
    say("a sample every 2 ms")
    rows = _rows(times, paced(paced_steps, seconds))
    if "gait" in chosen:
        rows.append(Row("gait.run.samples_per_second", _samples_per_second("gait", log), "1/s"))
        say("fresh processes")
        rows += _starts()
    rows.append(Row("load_average", os.getloadavg()[0], "-"))
    if left_out:
        rows.append(Row("left_out", "; ".join(left_out), "-"))
    return rows


def _rivals(method: str, log: Log, full: bool) -> dict[str, Callable[[], Step]]:
    """What makes our step and those of rivals, by name; only the first method has all rivals."""

    def ours() -> Step:
        estimator = Estimator.load("go1", method)
        estimator.start_as(log, "truth")
        return estimator.update

    makers: dict[str, Callable[[], Step]] = {OURS: ours}
    if method == "iekf":
        makers["gtsam"] = lambda: rivals.gtsam_step(log.rate)
    if METHODS[method].weights:
        model = load_model(METHODS[method].weights)
        for name, network in NETWORKS.items():
            if (full or name in RATIOS) and not isinstance(model.architecture, LegsArchitecture):
                makers[name] = lambda network=network: rivals.with_filter(network(model), log.rate)  # type: ignore[misc]
    return makers


def _kernel(method: str, log: Log) -> Burst:
    """Samples inside one call of the C loop."""
    robot, counter = Robot.load("go1"), itertools.count()
    context = Context(engines_of(method, robot, {})[0])
    rows = rows_of(log, robot)
    context.run(rows[:1])

    def burst(count: int) -> float:
        index = np.array(list(itertools.islice(counter, count)))
        samples = rows[index % len(rows)]
        samples[:, 0] = (index + 1.0) / log.rate
        start = time.perf_counter()
        context.run(samples)
        return time.perf_counter() - start

    return burst


def _rows(times: Mapping[str, float], lateness: Mapping[str, Sequence[float]]) -> list[Row]:
    """Times a step, paced times, and ratios of rivals to ours."""
    rows = [Row(name, value, "us") for name, value in times.items()]
    for name, values in lateness.items():
        middle, late = np.percentile(values, [50, 99])
        rows += [Row(f"{name}.paced_p50_us", float(middle), "us"), Row(f"{name}.paced_p99_us", float(late), "us")]
    for name, value in times.items():
        method, rival, _ = name.split(".")
        if rival in RATIOS:
            rows.append(Row(f"{method}.{rival}.ratio", value / times[f"{method}.{OURS}.step_us"], "x"))
    return rows


def _samples_per_second(method: str, log: Log) -> float:
    """Of `Estimator.run` on the whole log, with all that it does around the C loop."""
    estimator = Estimator.load("go1", method)
    return len(log) / statistics.median(timeit.repeat(lambda: estimator.run(log), number=1))


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
    alike, in an order that changes, so that none always follows the one that leaves the caches cold.

    Args:
        bursts: the rivals by name.
        rounds: how many bursts each gets.
        seconds: how long a burst is; one call at the least, since a longer burst is more often interrupted.
        progress: called from time to time with the share that is done.
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
    """How many calls fill a burst: the best of three tries, since one may have been interrupted."""
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
    there. A sample that is due while the process is held up is taken after that, and the next one is due a period
    later.

    Args:
        rivals: what takes a sample, and where samples come from.
        seconds: for each.
        clock: the time, s.
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
