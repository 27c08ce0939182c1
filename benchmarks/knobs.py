"""A search over a few positive numbers: random draws, the best of them judged again, then one knob at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Point = dict[str, float]
"""A candidate: the value of each knob."""
Measure = Callable[[Point], float]
"""The error of a candidate."""


@dataclass(frozen=True)
class Knob:
    """A number that is searched, evenly in its logarithm."""

    name: str
    low: float
    high: float


@dataclass(frozen=True)
class Budget:
    """How long to look."""

    draws: int = 120
    """Random points, judged quickly."""
    kept: int = 16
    """The best of them, judged fully."""
    refined: int = 2
    """The best of those, from which each knob is turned up and down."""
    factors: tuple[float, ...] = (1.6, 1.25, 1.1)
    """By how much, coarse to fine."""
    sweeps: int = 2
    """Times over all knobs with one factor, at most."""


def rounded(value: float) -> float:
    """Two digits: what a file says is then exactly what was measured."""
    return float(f"{value:.2g}")


def search(
    knobs: Sequence[Knob],
    starts: Iterable[Point],
    quick: Measure,
    full: Measure,
    seed: int,
    budget: Budget | None = None,
    around: Point | None = None,
) -> list[tuple[float, Point]]:
    """Every point that was judged fully, with its error, best first.

    Args:
        knobs: what is searched, and in which range.
        starts: points that pass the first round whatever their error.
        quick: a cheap error.
        full: the error that counts.
        seed: of the draws; the same seed gives the same result.
        budget: how long to look.
        around: good values of some knobs, which every second draw keeps.
    """
    budget, rng = budget or Budget(), np.random.default_rng(seed)
    draws = [_draw(knobs, rng, around if i % 2 else None) for i in range(budget.draws)]
    ranks = sorted((quick(point), i) for i, point in enumerate(draws))
    seen: dict[tuple[float, ...], tuple[float, Point]] = {}

    def measure(point: Point) -> float:
        key = tuple(point[knob.name] for knob in knobs)
        if key not in seen:
            seen[key] = (full(point), point)
        return seen[key][0]

    def best() -> list[tuple[float, Point]]:
        return sorted(seen.values(), key=lambda found: found[0])

    for point in [*starts, *(draws[i] for _, i in ranks[: budget.kept])]:
        measure(point)
    for error, point in best()[: budget.refined]:
        _refine(point, error, knobs, measure, budget)
    return best()


def _draw(knobs: Sequence[Knob], rng: np.random.Generator, around: Point | None) -> Point:
    drawn = {k.name: rounded(math.exp(rng.uniform(math.log(k.low), math.log(k.high)))) for k in knobs}
    return drawn if around is None else {**drawn, **around}


def _refine(point: Point, error: float, knobs: Sequence[Knob], measure: Measure, budget: Budget) -> None:
    for factor in budget.factors:
        for _ in range(budget.sweeps):
            before = error
            for knob in knobs:
                for turn in (factor, 1.0 / factor):
                    value = rounded(min(max(point[knob.name] * turn, knob.low), knob.high))
                    other = {**point, knob.name: value}
                    if (now := measure(other)) < error:
                        point, error = other, now
                        break
            if error == before:
                break
