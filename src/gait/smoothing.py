"""Forward-backward smoothing of a log: each state by what came before and after it, with the estimator's own models.

A smoother has the IMU on both sides of a sample and leans more on it: legs of `gait-legs` claim more in its pass. What
is the same in the whole log is found first, and the smoother passes over the log again with it: how late the joints are
read (`gait.joint_latency`) and how far legs give way under load (`gait.leg_compliance`). What is left of the vertical
drift shows in the ground under the feet (`gait.ground_drift`).

The filter runs forward in parts, of which the core keeps one at a time; then the backward pass (core/smooth.c) goes
from the last part to the first. Beside the states, memory grows by a copy of the estimator every few seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gait import quaternions
from gait.arrays import AnyArray, Array
from gait.binding import aligned_bytes, core, pointer
from gait.engine import Context, options_of
from gait.errors import GaitError
from gait.estimator import Estimator, StateArrays
from gait.ground_drift import without_drift
from gait.joint_latency import JointLatency, Passes, joint_latency
from gait.leg_compliance import MeasuredLegs, force_rates, leg_compliance
from gait.log.log import Log
from gait.log.record import interpolate, places
from gait.log.trajectory import Trajectory
from gait.methods import DEFAULT
from gait.nets.model import Model
from gait.parameters import Options
from gait.robot import Robot
from gait.sample_rows import rows_of
from gait.smoothed_feet import contact_probability, evidence, with_smoothed_feet

PART = 2000
"""Samples that are smoothed at a time."""
SEARCHED = 60.0
"""Seconds of a log, at most, in which the latency of the joints is looked for."""
LEG_INFLATION = 2.5
"""Factor on the standard deviation that a leg claims, in place of the filter's 1.2. Chosen on walks of twin 2 with
seeds of their own: 3 gains more where feet slip and costs where they hold."""

IMU_DELAY, IMU_DELAY_STD = 0.0015, 0.002
"""Seconds by which an IMU itself is read late, low-pass included, and how far that may be off. No comparison of IMU
and legs shows it: chosen on walks of twin 2 with seeds of their own, where 1 to 2 ms are best, and 2 on twin 1's."""


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
    *,
    ground: bool = True,
) -> Trajectory:
    """The smoothed trajectory of a log, for labels and maps, with the feet on the ground (docs/feet.md).

    Args:
        log: the samples.
        method: as in `Estimator.load`.
        robot: as in `Estimator.load`; that of the log by default.
        start: as in `Estimator.run`.
        ground: take out the vertical drift that the ground under the feet shows, most of which is level.
    """
    return smooth_with(Estimator.load(robot or log.load_robot(), method, feet=True), log, start, ground).smoothed


def smooth_with(estimator: Estimator, log: Log, start: str = "auto", ground: bool = True) -> Smoothed:
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

    latency, chosen, done = joint_latency(passes, usual.joint_delay, usual.joint_delay_std), usual.joint_delay, first
    if latency is not None and latency.significant:
        chosen = latency.value
        done = smooth_once(smoother(chosen), log, start)
    if shows_forces(log, estimator.robot):
        last = smoother(chosen)
        done = smooth_once(last, log, start, leg_shifts(last, log, done.smoothed, start))
        done = on_the_ground(done, last, log) if ground else done
    smoothed = as_read(done.smoothed)
    if smoothed.contact is not None:
        smoothed = with_smoothed_feet(smoothed, done.filtered, log.reorder(estimator.robot), estimator.robot, chosen)
    return done._replace(filtered=filtered, smoothed=smoothed, latency=latency)


def shows_forces(log: Log, robot: Robot) -> bool:
    """Whether a log has forces of point feet; those of soles are no single point's, and core/flexure.c knows them."""
    return (log.tau is not None or log.q_des is not None) and not any(len(leg.foot.corners) for leg in robot.legs)


def leg_shifts(estimator: Estimator, log: Log, smoothed: Trajectory, start: str) -> Array | None:
    """What joins the velocities that legs measure (N, L, 3), m/s: they give way under load; None of too short a log.

    Args:
        estimator: as it smoothed.
        log: the samples.
        smoothed: the log, by this estimator.
        start: as in `Estimator.run`.
    """
    log = log.reorder(estimator.robot)
    part = log.slice(t1=float(log.t[0]) + SEARCHED)
    states = estimator.with_legs().run_with_details(part, start)[1]
    if states.legs is None:
        return None
    rates = force_rates(log, estimator.robot, estimator.joint_delay)
    some, period = slice(0, len(part)), 1.0 / log.rate
    measured = MeasuredLegs(*states.legs)
    found = leg_compliance(measured, rates[some], smoothed.vel_b[some], period, estimator.joint_delay)
    return -found * rates


def on_the_ground(done: Smoothed, estimator: Estimator, log: Log) -> Smoothed:
    """Without the vertical drift that the ground shows."""
    log, robot, delay = log.reorder(estimator.robot), estimator.robot, estimator.joint_delay
    values, feet_w = evidence(log, robot, done.smoothed, delay)
    stands = contact_probability(values, log.t, delay - Options().joint_delay)
    return done._replace(smoothed=without_drift(done.smoothed, feet_w, stands, 1.0 / log.rate))


def as_read(trajectory: Trajectory) -> Trajectory:
    """The trajectory with what the IMU shows at each stamp where it belongs, `IMU_DELAY` before."""
    if len(trajectory) < 2:
        return trajectory
    acceleration_w = np.gradient(trajectory.vel_w, trajectory.t, axis=0)
    off = IMU_DELAY_STD * quaternions.rotate_inverse(trajectory.quat_wb_wxyz, acceleration_w)
    vel_cov = trajectory.need("vel_cov") + off[:, :, None] * off[:, None]
    before, part = places(trajectory.t, trajectory.t + IMU_DELAY)
    names = ("vel_w", "vel_b", "pos_w")
    moved = {name: interpolate(getattr(trajectory, name), before, part, ()) for name in names}
    turned = interpolate(trajectory.quat_wb_wxyz, before, part, ("wxyz",))
    return trajectory.replace(quat_wb_wxyz=turned, vel_cov=vel_cov, **moved)


def smooth_once(estimator: Estimator, log: Log, start: str = "auto", shifts: Array | None = None) -> Smoothed:
    """Filter and smooth a log as the estimator is.

    Args:
        estimator: of any method of the core.
        log: the samples.
        start: as in `Estimator.run`.
        shifts: what joins the velocities that legs of `gait-legs` measure (N, L, 3), base axes, m/s.
    """
    own, layout = estimator.begin_log(log, start)
    if own is None:
        raise GaitError(f"method {estimator.method} is written in Python, and only methods of the core can be smoothed")
    context = Context(own.engine)
    context.snapshot = own.snapshot
    log = log.reorder(estimator.robot)
    parts = [slice(i, min(i + PART, len(log))) for i in range(0, len(log), PART)]
    forward, after = (np.empty((len(log), own.engine.state_doubles)) for _ in range(2))
    copies, passes = [], _Passes(context, log.t, shifts)
    for part in parts:
        copies.append(context.snapshot)
        passes.forward(rows_of(log, estimator.robot, part), part, forward[part])
    for copy, part in zip(reversed(copies), reversed(parts), strict=True):
        context.snapshot = copy
        passes.backward(rows_of(log, estimator.robot, part), part, after[part])
    forward.flags.writeable = after.flags.writeable = False
    arrays = StateArrays(after, layout)
    source = f"{estimator.method}, smoothed"
    filtered = StateArrays(forward, layout).trajectory(log.t, estimator.method)
    smoothed = arrays.trajectory(log.t, source)
    if layout.shape.feet:
        smoothed = with_smoothed_feet(smoothed, filtered, log, estimator.robot, estimator.joint_delay)
    return Smoothed(filtered, smoothed, arrays)


class _Passes:
    """The forward pass, and the backward one, part by part, the last one first."""

    def __init__(self, context: Context, t: Array, shifts: Array | None) -> None:
        self._context, self._begun = context, False
        self._shifts = None if shifts is None else np.ascontiguousarray(shifts, dtype=np.float64)
        self._carry = np.zeros(core().gait_carry_bytes(), dtype=np.uint8)
        # A step of the filter for each sample and for each step of the network.
        steps = np.minimum(np.diff(t, prepend=t[0]), 1.0) / context.engine.config.period
        most = max(float(steps[i : i + PART].sum()) for i in range(0, len(t), PART))
        self._records = 2 * PART + 16 + int(2.0 * most)
        config = context.engine.config_at
        self._room = aligned_bytes(core().gait_recorder_bytes(config, self._records))
        core().gait_recorder_init(pointer(self._room), config, self._records)

    def forward(self, rows: Array, part: slice, states: Array) -> AnyArray:
        """Put the filter's states of a part, from where the context is, into `states`; steps up to each sample."""
        nodes = np.zeros(len(rows), dtype=np.uint64)
        shifts = None if self._shifts is None else pointer(self._shifts[part])
        core().gait_run_recorded(
            self._context.at, pointer(self._room), pointer(rows), shifts, len(rows), pointer(states), pointer(nodes)
        )
        return nodes

    def backward(self, rows: Array, part: slice, states: Array) -> None:
        """Put the smoothed states of a part, from where the context is, into `states`."""
        nodes = self.forward(rows, part, states)
        core().gait_smooth_run(
            pointer(self._room), self._context.at, pointer(self._carry), int(self._begun), pointer(nodes), len(rows),
            pointer(states),
        )  # fmt: skip
        self._begun = True
