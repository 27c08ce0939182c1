"""When a network with a rate of its own steps, on samples that come in a fixed step: `follow` of core/network_step.c.

Where samples come at the network's rate (a fifth of a period of jitter is allowed), each is one step of the network.
Where they come at another, its samples are interpolated at its own instants, and the filter stops there. With a fixed
step that is a pattern which repeats, so it is worked out once, in rows of a table; a robot is at one of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray
from gait.errors import GaitError

JITTER = 0.2
"""Share of the network's period within which a sample is its sample."""
LONGEST = 64
"""Rows of a pattern; a step so short that there are more is refused."""
WAIT, FIRST = 0, 1
"""Rows of a robot that takes no part in a step, and of its first sample, which the network sees and the filter not."""


class Substep(NamedTuple):
    """One step of the network between two samples."""

    dt: float
    """Seconds by which the filter is propagated before."""
    part: float
    """Its instant between the last sample (0) and this one (1)."""
    network_dt: float
    """Seconds since the network's last step."""


class Schedule(NamedTuple):
    """What happens in the K substeps of a sample, for each row; those that do not happen have a dt of 0."""

    dt: Array
    """(rows, K)."""
    part: Array
    """(rows, K)."""
    network_dt: Array
    """(rows, K)."""
    steps: BoolArray
    """Whether the network steps (rows, K)."""
    rest: Array
    """Seconds by which the filter is propagated at the end (rows,)."""
    following: AnyArray
    """The row of the next sample (rows,)."""


def follow(step_dt: float, period: float, until: float) -> tuple[list[Substep], float, float]:
    """Steps of the network from one sample to the next.

    Args:
        step_dt: seconds between the two.
        period: of the network, s.
        until: from the first sample to the network's next step, s.

    Returns:
        The steps, what remains to the second sample, s, and `until` for that one.
    """
    tolerance, covered, stepped, substeps = JITTER * period, 0.0, until - period, list[Substep]()
    while until <= step_dt + tolerance:
        # What is nearly the network's instant is its instant.
        moment = step_dt if abs(step_dt - until) <= tolerance else until
        substeps.append(Substep(max(moment - covered, 0.0), moment / step_dt, moment - stepped))
        covered, stepped, until = max(moment, covered), moment, moment + period
    return substeps, max(step_dt - covered, 0.0), until - step_dt


def schedule(step_dt: float, period: float) -> Schedule:
    """The pattern of a step. It repeats soon, because what is nearly the network's instant is its instant."""
    rows: list[tuple[list[Substep], float]] = [([], 0.0), ([Substep(0.0, 1.0, period)], 0.0)]
    row_of, following = dict[int, int](), [WAIT]
    until, key = period, round(1e6)
    while key not in row_of:
        row_of[key] = len(rows)
        following.append(len(rows))
        substeps, rest, until = follow(step_dt, period, until)
        key = round(until / period * 1e6)
        rows.append((substeps, rest))
        if len(rows) > LONGEST:
            raise GaitError(
                f"a step of {1e3 * step_dt:g} ms is too short for a network with a period of {1e3 * period:g} ms: give"
                " every second sample, or fewer"
            )
    following.append(row_of[key])
    most = max(len(substeps) for substeps, _ in rows)
    idle = Substep(0.0, 1.0, period)
    table = np.array([[*substeps, *[idle] * (most - len(substeps))] for substeps, _ in rows])  # (rows, K, 3)
    steps = np.array([[k < len(substeps) for k in range(most)] for substeps, _ in rows])
    dt, part, network_dt = np.moveaxis(table, 2, 0)
    return Schedule(dt, part, network_dt, steps, np.array([rest for _, rest in rows]), np.array(following))
