"""Is one method better than another on the same walks, or was it chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.bench.study import Study
from gait.report.table import Cell, Table, TableLine

OURS = "gait"
"""The method that all others are compared with."""

DRAWS = 10_000
"""Of the bootstrap."""
FEWEST = 6
"""Of fewer pieces a bootstrap makes an interval that is far too narrow: nothing is clear then."""


@dataclass(frozen=True)
class Difference:
    """How much better one method is than another on the same walks."""

    course: str
    rival: str
    difference: float
    """Error of the rival minus ours, m/s: positive if ours is better."""
    low: float
    high: float
    """Ends of the 95 % interval."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0.0 or self.high < 0.0


def differences(study: Study, ours: str = OURS) -> list[Difference]:
    """Paired differences of the velocity error of Tables I to III against each rival, with bootstrap intervals.

    The walks of a course are cut into pieces of 5 s; the same pieces are drawn, with repetition, for both methods, so
    what makes a piece hard cancels. Errors of several seeds are averaged first: the interval is that of the walks.
    """
    found = []
    for course in study.courses:
        pieces = {method: _pieces(study, method, course) for method in study.methods if study.of(method, course)}
        mine = pieces.pop(ours, None)
        if mine is None:
            continue
        picks = np.random.default_rng(20260401).integers(len(mine), size=(DRAWS, len(mine)))
        for rival, other in pieces.items():
            gaps = np.sqrt(other[picks].mean(1)) - np.sqrt(mine[picks].mean(1))
            low, high = np.quantile(gaps, [0.025, 0.975]) if len(mine) >= FEWEST else (-np.inf, np.inf)
            point = float(np.sqrt(other.mean()) - np.sqrt(mine.mean()))
            found.append(Difference(course, rival, point, float(low), float(high)))
    return found


def _pieces(study: Study, method: str, course: str) -> Array:
    """Mean square error of each piece of a course, averaged over seeds."""
    by_seed: dict[int, list[Array]] = {}
    for one in study.of(method, course):
        by_seed.setdefault(one.seed, []).append(one.velocity.segments)
    return np.asarray(np.mean([np.concatenate(some) for some in by_seed.values()], axis=0))


def difference_table(found: Sequence[Difference]) -> Table:
    """The paired differences as a table."""
    units = {"difference": "m/s", "low": "m/s", "high": "m/s"}
    lines = tuple(
        TableLine((one.course, one.rival), {name: Cell(getattr(one, name)) for name in units}) for one in found
    )
    note = (
        f"Velocity error of the rival minus that of {OURS}: positive if {OURS} is better. Low and high are the ends of"
        " the 95 % bootstrap interval over pieces of 5 s, the same pieces for both."
    )
    title = f"{OURS} against each rival"
    return Table("differences", title, note, ("course", "rival"), tuple(units), lines, "", units)
