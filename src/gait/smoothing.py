"""Forward-backward smoothing of a log: each state by what came before and after it, with the estimator's own models.

The filter runs forward in parts, of which the core keeps one at a time; then the backward pass (core/smooth.c) goes
from the last part to the first. Beside the states, memory grows by a copy of the estimator every few seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.binding import aligned_bytes, core, pointer
from gait.engine import Context
from gait.errors import GaitError
from gait.estimator import Estimator, StateArrays
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.methods import DEFAULT
from gait.nets.model import Model
from gait.robot import Robot
from gait.sample_rows import rows_of

PART = 2000
"""Samples that are smoothed at a time."""


class Smoothed(NamedTuple):
    """A log by the filter and by the smoother."""

    filtered: Trajectory
    smoothed: Trajectory
    states: StateArrays
    """Smoothed states with what the method computed on the way, which is the filter's."""


def smooth(
    log: Log,
    method: str | Path | Model = DEFAULT,
    robot: str | Path | Robot | None = None,
    start: str = "auto",
) -> Trajectory:
    """The smoothed trajectory of a log, for labels and maps.

    Args:
        log: the samples.
        method: as in `Estimator.load`.
        robot: as in `Estimator.load`; that of the log by default.
        start: as in `Estimator.run`.
    """
    return smooth_with(Estimator.load(robot or log.load_robot(), method), log, start).smoothed


def smooth_with(estimator: Estimator, log: Log, start: str = "auto") -> Smoothed:
    """Filter and smooth a log with an estimator of any method on the core."""
    own, layout = estimator.begin_log(log, start)
    if own is None:
        raise GaitError(f"method {estimator.method} is written in Python, and only methods of the core can be smoothed")
    context = Context(own.engine)
    context.snapshot = own.snapshot
    log = log.reorder(estimator.robot)
    parts = [slice(i, min(i + PART, len(log))) for i in range(0, len(log), PART)]
    forward, after = (np.empty((len(log), own.engine.state_doubles)) for _ in range(2))
    copies = []
    for part in parts:
        copies.append(context.snapshot)
        context.run(rows_of(log, estimator.robot, part), forward[part])
    backward = _Backward(context, log.t)
    for copy, part in zip(reversed(copies), reversed(parts), strict=True):
        context.snapshot = copy
        backward.smooth(rows_of(log, estimator.robot, part), after[part])
    forward.flags.writeable = after.flags.writeable = False
    arrays = StateArrays(after, layout)
    source = f"{estimator.method}, smoothed"
    return Smoothed(
        StateArrays(forward, layout).trajectory(log.t, estimator.method), arrays.trajectory(log.t, source), arrays
    )


class _Backward:
    """The backward pass, part by part, the last one first."""

    def __init__(self, context: Context, t: Array) -> None:
        self._context, self._begun = context, False
        self._carry = np.zeros(core().gait_carry_bytes(), dtype=np.uint8)
        # A step of the filter for each sample and for each step of the network.
        steps = np.minimum(np.diff(t, prepend=t[0]), 1.0) / context.engine.config.period
        most = max(float(steps[i : i + PART].sum()) for i in range(0, len(t), PART))
        self._records = 2 * PART + 16 + int(2.0 * most)
        config = context.engine.config_at
        self._room = aligned_bytes(core().gait_recorder_bytes(config, self._records))
        core().gait_recorder_init(pointer(self._room), config, self._records)

    def smooth(self, rows: Array, states: Array) -> None:
        """Put the smoothed states of a part, from where the context is, into `states`."""
        library = core()
        nodes = np.zeros(len(rows), dtype=np.uint64)
        recorder, carry = pointer(self._room), pointer(self._carry)
        library.gait_run_recorded(self._context.at, recorder, pointer(rows), len(rows), pointer(states), pointer(nodes))
        library.gait_smooth_run(
            recorder, self._context.at, carry, int(self._begun), pointer(nodes), len(rows), pointer(states)
        )
        self._begun = True
