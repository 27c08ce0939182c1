"""Forward-backward smoothing of a log: each state by what came before and after it, with the estimator's own models.

A smoother has the IMU on both sides of a sample and leans more on it: legs of `gait-legs` claim more in its pass. How
late the joints are read is the same in the whole log, so it is found first (`gait.joint_latency`), and where it is
another than the usual one, the smoother passes over the log once more.

The filter runs forward in parts, of which the core keeps one at a time; then the backward pass (core/smooth.c) goes
from the last part to the first. Beside the states, memory grows by a copy of the estimator every few seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.binding import aligned_bytes, core, pointer
from gait.engine import Context, options_of
from gait.errors import GaitError
from gait.estimator import Estimator, StateArrays
from gait.joint_latency import JointLatency, Passes, joint_latency
from gait.log.log import Log
from gait.log.trajectory import Trajectory
from gait.methods import DEFAULT
from gait.nets.model import Model
from gait.robot import Robot
from gait.sample_rows import rows_of
from gait.smoothed_feet import with_smoothed_feet

PART = 2000
"""Samples that are smoothed at a time."""
SEARCHED = 60.0
"""Seconds of a log, at most, in which the latency of the joints is looked for."""
LEG_INFLATION = 2.0
"""Factor on the standard deviation that a leg claims, in place of the filter's 1.2. Chosen on walks of twin 2 with
seeds of their own: 3 gains more where feet slip and costs where they hold."""


class Smoothed(NamedTuple):
    """A log by the filter and by the smoother."""

    filtered: Trajectory
    smoothed: Trajectory
    states: StateArrays
    """Smoothed states with what the method computed on the way, which is the filter's."""
    latency: JointLatency | None = None
    """Of the joints, as the log has it; None where it was not looked for or does not show."""


def smooth(
    log: Log,
    method: str | Path | Model = DEFAULT,
    robot: str | Path | Robot | None = None,
    start: str = "auto",
) -> Trajectory:
    """The smoothed trajectory of a log, for labels and maps, with the feet on the ground (docs/feet.md).

    Args:
        log: the samples.
        method: as in `Estimator.load`.
        robot: as in `Estimator.load`; that of the log by default.
        start: as in `Estimator.run`.
    """
    return smooth_with(Estimator.load(robot or log.load_robot(), method, feet=True), log, start).smoothed


def smooth_with(estimator: Estimator, log: Log, start: str = "auto") -> Smoothed:
    """Filter and smooth a log with an estimator of any method on the core.

    Of a method that reads legs by a network, and unless the estimator was loaded with options of its own, the smoothed
    trajectory has the smoother's options and the latency that the log shows; the filtered one stays as `Estimator.run`
    has it.
    """
    if not estimator.reads_legs:
        return smooth_once(estimator, log, start)

    def smoother(delay: float) -> Estimator:
        return estimator.with_options(joint_delay=delay, leg_inflation=LEG_INFLATION)

    usual, part = options_of(estimator.robot), log.slice(t1=float(log.t[0]) + SEARCHED)
    first, filtered = smooth_once(smoother(usual.joint_delay), log, start), estimator.run(log, start=start)

    def passes(delay: float) -> Passes:
        same = delay == usual.joint_delay and len(part) == len(log)
        done = first if same else smooth_once(smoother(delay), part, start)
        return Passes(done.filtered, done.smoothed)

    latency = joint_latency(passes, usual.joint_delay, usual.joint_delay_std)
    if latency is None or not latency.significant:
        return first._replace(filtered=filtered, latency=latency)
    return smooth_once(smoother(latency.value), log, start)._replace(filtered=filtered, latency=latency)


def smooth_once(estimator: Estimator, log: Log, start: str = "auto") -> Smoothed:
    """Filter and smooth a log as the estimator is."""
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
    filtered = StateArrays(forward, layout).trajectory(log.t, estimator.method)
    smoothed = arrays.trajectory(log.t, source)
    if layout.shape.feet:
        smoothed = with_smoothed_feet(smoothed, filtered, log, estimator.robot, estimator.joint_delay)
    return Smoothed(filtered, smoothed, arrays)


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
