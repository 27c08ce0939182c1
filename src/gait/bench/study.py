"""Every method on every walk: the numbers behind tables, figures and report."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np

from gait.arrays import Array, BoolArray
from gait.bench.courses import Progress, Walk
from gait.bench.scores import Ground, Score, score
from gait.errors import GaitError
from gait.estimator import METHODS, Details, Estimator
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.nets.model import model_names
from gait.parameters import BASELINES

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
    """Whether it stands for its method where one must: in figures. The median of its seeds."""


Seeds = Literal["all", "tabled", "usual"]
"""Which weights stand for a learned method: every seed that was trained for the tables, the one of them that stands for
the others, or those that `Estimator.load` takes."""


def entrants(methods: Sequence[str], seeds: Seeds = "all") -> list[Entrant]:
    """Whoever takes part for these methods, which are names of `METHODS`."""
    found = []
    for method in methods:
        if method not in METHODS:
            raise GaitError(f"unknown method '{method}': choose of {', '.join(METHODS)}")
        shown = METHODS[method].tabled
        if method in BASELINES:
            found.append(Entrant(method, method))
        elif seeds == "usual":
            # By name it has weights for logs without targets as well.
            found.append(Entrant(method, method, _seed(METHODS[method].weights)))
        elif seeds == "tabled":
            found.append(Entrant(method, shown, _seed(shown)))
        else:
            names = [name for name in model_names() if re.fullmatch(rf"{re.escape(method)}-\d+", name)]
            found += [Entrant(method, name, _seed(name), name == shown) for name in names]
    return found


def _seed(weights: str) -> int:
    return int(weights.rsplit("-", 1)[1])


def entrants_trained_on(gaits: str, methods: Sequence[str]) -> list[Entrant]:
    """Whoever was trained on other gaits, such as `pace-pronk`."""
    pattern = re.compile(rf"({'|'.join(map(re.escape, methods))})-{gaits}-(\d+)")
    found = [(name, pattern.fullmatch(name)) for name in model_names()]
    return [Entrant(match[1], name, int(match[2]), match[2] == "0") for name, match in found if match]


@dataclass(frozen=True, eq=False)
class Trace:
    """What a method said over time, for figures."""

    t: Array
    """Seconds from the start of the walk (N,)."""
    vel_b: Array
    """Of the filter (N, 3), m/s."""
    pos_w: Array
    """(N, 3), m."""
    std: Array
    """Standard deviation of `vel_b` (N, 3), m/s."""
    predicted: Array | None
    """Velocity of the network (N, 3), m/s."""
    predicted_std: Array | None
    """(N, 3), m/s."""
    attention: Array | None = None
    """Share of each token, summed over the history (N, tokens): gyro, accelerometer, legs."""
    leg_std: Array | None = None
    """Standard deviation that `gait-legs` claims of the velocity by each leg, rms over axes (N, L), m/s."""

    @staticmethod
    def of(log: Log, trajectory: Trajectory, says: Details | None, looks: Details | None) -> Trace:
        """What figures need of a run.

        Args:
            log: what was estimated.
            trajectory: the estimate.
            says: with what the network says by itself, if that is to be shown.
            looks: with where it looks, if it can say so.
        """
        assert trajectory.vel_cov is not None
        predicted, sigma = (None, None) if says is None else says.predicted
        attention, legs = (None, None) if looks is None else (looks.attention, looks.legs)
        by_token = attention is not None and legs is None and attention.shape[2] == len(log.leg_names) + 2
        return Trace(
            t=log.t - log.t[0],
            vel_b=trajectory.vel_b,
            pos_w=trajectory.pos_w,
            std=np.sqrt(np.maximum(np.einsum("nii->ni", trajectory.vel_cov), 0.0)),
            predicted=predicted,
            predicted_std=sigma,
            attention=attention.sum(1) if attention is not None and by_token else None,
            leg_std=None if legs is None else np.sqrt(np.square(legs[1]).mean(2)),
        )


@dataclass(frozen=True, eq=False)
class Study:
    """Results of a benchmark."""

    walks: tuple[Walk, ...]
    grounds: dict[str, Ground]
    """By name of the walk."""
    scores: tuple[Score, ...]
    """Of methods trained as usual."""
    others: dict[str, tuple[Score, ...]] = field(default_factory=dict)
    """Of methods trained on other gaits, by the name of the training set."""
    traces: dict[tuple[str, str], Trace] = field(default_factory=dict)
    """By name of the walk and method: of the first run of each course, and of shown entrants only."""

    @property
    def methods(self) -> list[str]:
        """Methods in the order of their appearance."""
        return list(dict.fromkeys(one.method for one in self.scores))

    @property
    def courses(self) -> list[str]:
        """Courses in the order of their appearance."""
        return list(dict.fromkeys(walk.course for walk in self.walks))

    def of(self, method: str, course: str, scores: Sequence[Score] | None = None) -> list[Score]:
        """The scores of a method on a course: runs times seeds."""
        among = self.scores if scores is None else scores
        return [one for one in among if one.method == method and one.course == course]

    def seeds(self, method: str) -> int:
        """How many sets of weights stand behind a method."""
        return len({one.seed for one in self.scores if one.method == method})

    def step_us(self, method: str) -> float:
        """Microseconds a sample took a method in `run`, median over walks and seeds."""
        return float(np.median([one.step_us for one in self.scores if one.method == method]))


def run_study(
    walks: Sequence[Walk],
    methods: Sequence[str] = tuple(METHODS),
    *,
    seeds: Seeds = "all",
    start: str = "truth",
    workers: int = 2,
    progress: Progress = lambda what, share: None,
) -> Study:
    """Run every method on every walk.

    The numbers do not depend on `workers`.

    Args:
        walks: with truth.
        methods: names of `METHODS`.
        seeds: which weights of the learned methods; with all of them come those of Table III.
        start: `truth` or `gravity`, as `Estimator.run` has it.
        workers: threads, which run side by side.
        progress: told how far it is.
    """
    judge = _loader("iekf")
    grounds = {walk.name: _ground(walk, judge, start) for walk in walks}
    usual = entrants(methods, seeds)
    groups = {gaits: entrants_trained_on(gaits, methods) for gaits in TRAINED_ON_OTHERS} if seeds == "all" else {}
    jobs = [(entrant, list(walks), True) for entrant in usual]
    for gaits, group in groups.items():
        jobs += [(one, [walk for walk in walks if walk.course in TRAINED_ON_OTHERS[gaits]], False) for one in group]
    total, done = sum(len(some) for _, some, _ in jobs), 0
    results: dict[Entrant, list[Score]] = {}
    traces: dict[tuple[str, str], Trace] = {}
    lock, stopped = threading.Lock(), threading.Event()

    def work(entrant: Entrant, some: Sequence[Walk], keep: bool) -> None:
        nonlocal done
        results[entrant], load = [], _loader(entrant.weights)
        for walk in some:
            if stopped.is_set():
                return
            one, trace = run_entrant(entrant, load(walk.log.robot), walk, grounds[walk.name], start)
            results[entrant].append(one)
            if trace is not None and keep:
                traces[walk.name, entrant.method] = trace
            with lock:
                done += 1
                progress(f"running {entrant.method}", done / total)

    with ThreadPoolExecutor(workers) as pool:
        try:
            for future in as_completed([pool.submit(work, *job) for job in jobs]):
                future.result()
        except BaseException:
            # Ctrl-C must not wait for all that was to come.
            stopped.set()
            raise

    def collected(members: Sequence[Entrant]) -> tuple[Score, ...]:
        return tuple(one for entrant in members for one in results[entrant])

    return Study(
        walks=tuple(walks),
        grounds=grounds,
        scores=collected(usual),
        others={gaits: collected(group) for gaits, group in groups.items() if group},
        traces={
            (walk.name, method): traces[walk.name, method] for walk in walks if walk.run == 0 for method in methods
        },
    )


Loader = Callable[[str], Estimator]
"""Gives the estimator for a robot, loaded once and used for all of its walks."""


def _loader(weights: str) -> Loader:
    return cache(lambda robot: Estimator.load(robot, weights))


def run_entrant(
    entrant: Entrant, estimator: Estimator, walk: Walk, ground: Ground, start: str = "truth"
) -> tuple[Score, Trace | None]:
    """One method on one walk, and what figures need of it where it is one to show."""
    log, shown = walk.log, entrant.shown and walk.run == 0
    judges = entrant.method not in BASELINES and not estimator.by_leg
    begin = time.perf_counter()
    trajectory, details = estimator.run_with_details(log, start)
    spent = time.perf_counter() - begin
    result = score(log, ground, trajectory, details if judges else None, spent)
    one = Score(walk.course, walk.run, entrant.method, entrant.seed, *result)
    if not shown:
        return one, None
    looks = _looks(entrant, walk, start) if entrant.method == "gait" or estimator.by_leg else None
    return one, Trace.of(log, trajectory, details if judges else None, looks)


def _looks(entrant: Entrant, walk: Walk, start: str) -> Details:
    # Once more, and not timed: looking costs time.
    estimator = Estimator.load(walk.log.robot, entrant.weights, attention=True)
    return estimator.run_with_details(walk.log, start)[1]


def _ground(walk: Walk, load: Loader, start: str) -> Ground:
    """The contact estimator is that of `iekf`, the same for all methods; where it lacks its inputs, nothing slips."""
    contact: BoolArray | None = None
    with contextlib.suppress(GaitError):
        contact = load(walk.log.robot).run_with_details(walk.log, start)[1].contact
    if contact is None:
        contact = np.zeros((len(walk.log), len(walk.log.leg_names)), dtype=bool)
    return Ground.of(walk.log, contact)
