"""Every method on every walk: the results behind tables, charts and report."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gait.arrays import BoolArray
from gait.bench.courses import Progress, Walk
from gait.bench.scores import Ground, WalkScore, score
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.methods import BUILT_IN, METHODS, known_method
from gait.nets.model import model_names
from gait.report.walk_charts import Trace

TRAINED_ON_OTHERS = {"bound-pace-pronk": ("trot",), "pace-pronk": ("trot", "bound")}
"""The two further training sets of Table III, as the names of weights have them, and the courses they are tested on."""


@dataclass(frozen=True)
class Entrant:
    """A method with one set of weights."""

    method: str
    """Column of a table."""
    weights: str
    """Name of a model, or of a method with all its models."""
    seed: int = 0
    shown: bool = True
    """Whether figures show it for its method: the median of its seeds."""


Seeds = Literal["all", "tabled", "usual"]
"""Which weights stand for a learned method: every seed that was trained for the tables, the one of them that stands for
the others, or those that `Estimator.load` takes."""


def entrants(methods: Sequence[str], seeds: Seeds = "all") -> list[Entrant]:
    """Contestants for these methods: names of `METHODS`, or Python files that register one."""
    found = []
    for given in methods:
        method = known_method(given)
        shown = METHODS[method].tabled
        if not METHODS[method].weights:
            found.append(Entrant(method, given))
        elif seeds == "usual":
            # By name it has weights for logs without targets as well.
            found.append(Entrant(method, method, _seed(METHODS[method].weights)))
        else:
            names = [shown] if seeds == "tabled" else _weights(method)
            found += [Entrant(method, name, _seed(name), name == shown) for name in names]
    return found


def entrants_trained_on(gaits: str, methods: Sequence[str]) -> list[Entrant]:
    """Networks trained on other gaits, such as `pace-pronk`; figures show none of them."""
    return [Entrant(one, name, _seed(name), False) for one in methods for name in _weights(f"{one}-{gaits}")]


def _weights(stem: str) -> list[str]:
    """Names of models that differ in the seed alone."""
    return [name for name in model_names() if re.fullmatch(rf"{re.escape(stem)}-\d+", name)]


def _seed(weights: str) -> int:
    """Of `gait-flat-1`: 1; of no weights 0."""
    return int(weights.rsplit("-", 1)[-1] or 0)


@dataclass(frozen=True, eq=False)
class Study:
    """Results of a benchmark."""

    walks: tuple[Walk, ...]
    grounds: dict[str, Ground]
    """By name of the walk."""
    scores: tuple[WalkScore, ...]
    """Of methods trained as usual."""
    others: dict[str, tuple[WalkScore, ...]] = field(default_factory=dict)
    """Of methods trained on other gaits, by the name of the training set."""
    traces: dict[tuple[str, str], Trace] = field(default_factory=dict)
    """By name of the walk and method: of the first run of each course, and of shown entrants only."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """By method that could not run on the walks, why."""

    @property
    def methods(self) -> list[str]:
        """Methods in the order of their appearance."""
        return list(dict.fromkeys(one.method for one in self.scores))

    @property
    def courses(self) -> list[str]:
        """Courses in the order of their appearance."""
        return list(dict.fromkeys(walk.course for walk in self.walks))

    def of(self, method: str, *courses: str, scores: Sequence[WalkScore] | None = None) -> list[WalkScore]:
        """The scores of a method on some courses, or on all: runs times seeds."""
        among = self.scores if scores is None else scores
        wanted = courses or self.courses
        return [one for course in wanted for one in among if (one.method, one.course) == (method, course)]

    def seeds(self, method: str) -> int:
        """Number of sets of weights of a method."""
        return len({one.seed for one in self.of(method)})

    def step_us(self, method: str) -> float:
        """Microseconds a sample took a method in `run`, median over walks and seeds."""
        return float(np.median([one.step_us for one in self.of(method)]))

    def traces_of(self, walk: Walk) -> dict[str, Trace]:
        """By method."""
        return {name: self.traces[walk.name, name] for name in self.methods if (walk.name, name) in self.traces}

    def shown(self, course: str) -> Walk | None:
        """The walk of a course that charts show: the first with traces."""
        return next((walk for walk in self.walks if walk.course == course and self.traces_of(walk)), None)


def run_study(
    walks: Sequence[Walk],
    methods: Sequence[str] = BUILT_IN,
    *,
    seeds: Seeds = "all",
    start: str = "truth",
    workers: int = 2,
    progress: Progress = lambda what, share: None,
) -> Study:
    """Run every method on every walk.

    The results do not depend on `workers`.

    Args:
        walks: with ground truth.
        methods: names of `METHODS`.
        seeds: which weights of the learned methods; with all of them come those of Table III.
        start: as `Estimator.run` has it.
        workers: threads.
        progress: called with what is being done and the share that is done.
    """
    grounds = {walk.name: _ground(walk, start) for walk in walks}
    jobs = [("", entrant, walk) for entrant in entrants(methods, seeds) for walk in walks]
    for gaits, tests in TRAINED_ON_OTHERS.items() if seeds == "all" else ():
        tested = [walk for walk in walks if walk.course in tests]
        jobs += [(gaits, entrant, walk) for entrant in entrants_trained_on(gaits, methods) for walk in tested]
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(run_entrant, one, walk, grounds[walk.name], start): one for _, one, walk in jobs}
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                progress(f"running {futures[future].method}", done / len(jobs))
        except BaseException:
            # Ctrl-C must not wait for the jobs that have not started.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    scores: dict[str, list[WalkScore]] = {"": []}
    traces: dict[tuple[str, str], Trace] = {}
    for (gaits, entrant, walk), future in zip(jobs, futures, strict=True):
        one, trace = future.result()
        scores.setdefault(gaits, []).append(one)
        if trace is not None:
            traces[walk.name, entrant.method] = trace
    usual = tuple(scores.pop(""))
    return Study(tuple(walks), grounds, usual, {gaits: tuple(some) for gaits, some in scores.items()}, traces)


def run_entrant(entrant: Entrant, walk: Walk, ground: Ground, start: str) -> tuple[WalkScore, Trace | None]:
    """One method on one walk, and its trace where it is one to show."""
    log, estimator = walk.log, Estimator.load(walk.log.load_robot(), entrant.weights)
    begin = time.perf_counter()
    trajectory, details = estimator.run_with_details(log, start)
    spent = time.perf_counter() - begin
    network = details if METHODS[entrant.method].weights and not estimator.by_leg else None
    one = score(walk, entrant.method, entrant.seed, ground, trajectory, network, spent)
    if not entrant.shown or walk.run:
        return one, None
    attention = None
    if entrant.method == "gait" or estimator.by_leg:
        # Once more, and not timed: to record the attention costs time.
        attentive = Estimator.load(log.load_robot(), entrant.weights, attention=True)
        attention = attentive.run_with_details(log, start)[1]
    return one, Trace.of(log, trajectory, network, attention)


def _ground(walk: Walk, start: str) -> Ground:
    """By the contact estimator of `iekf`, the same for all methods; without its inputs nothing slips."""
    contact: BoolArray | None = None
    with contextlib.suppress(GaitError):
        estimator = Estimator.load(walk.log.load_robot(), "iekf")
        contact = np.asarray(estimator.run_with_details(walk.log, start)[1].contact, dtype=bool)
    if contact is None:
        contact = np.zeros((len(walk.log), len(walk.log.leg_names)), dtype=bool)
    return Ground.of(walk.log, contact)
