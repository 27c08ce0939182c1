"""Signals as recorded, each on its own time stamps; their repair; and one Log of them on the clock of the IMU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.io.format import Notes
from gait.io.motion import clock_offset, differentiate, rotation_rate, world_velocity
from gait.io.scaling import scaled
from gait.log import MAX_GAP, Log
from gait.log.fields import AXES
from gait.log.record import interpolate, places
from gait.read_options import ReadOptions
from gait.robot import Robot

RESET = 1.0
"""A clock that goes back by more than this (s) was reset; by less, messages came out of order."""
LEAP = 3600.0
"""A clock that goes on by more than this (s) was reset as well."""
ENOUGH = 0.5
"""Targets and truth that cover less of a log than this are left out rather than the rest of the log."""
LAST = 1e11
"""Seconds: three thousand years, beyond which a stamp is damage."""
GREATEST = 1e9
"""Beyond any sensor in its unit: such a value is damage, and its square might not be a number."""
COLLAPSED = 0.5
"""A signal that keeps less of its samples than this, since stamps repeat, has stamps that were rounded."""
_HAIR = 1e-6
"""Stamps this near (s) are one."""
QUICK = 0.02
"""Length of the parabola for joint velocities, s: joints move faster than bodies."""


@dataclass
class Signal:
    """Arrays over time stamps of their own."""

    name: str
    """Where it comes from, for messages."""
    t: Array
    """Stamps (n,), s."""
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    """By the name of a field of Log, first axis n."""

    @property
    def rate(self) -> float:
        """Samples per second, one over the median step; nan for fewer than two."""
        step = float(np.median(np.diff(np.sort(self.t)))) if len(self.t) > 1 else 0.0
        return 1.0 / step if step > 0.0 else float("nan")

    def pick(self, rows: AnyArray) -> Signal:
        """The rows of an index or mask."""
        return Signal(self.name, self.t[rows], {name: array[rows] for name, array in self.arrays.items()})

    def at(self, t: Array, hold: tuple[str, ...] = ()) -> dict[str, AnyArray]:
        """The arrays at other stamps: straight between samples, along the arc for rotations.

        Args:
            t: stamps within the span of the signal.
            hold: arrays that keep their value until the next sample, as commands and flags do.
        """
        if np.array_equal(self.t, t):
            return dict(self.arrays)
        before, part = places(self.t, t)
        axes = {one.name: one.axes for one in Log.FIELDS}
        return {
            name: interpolate(array, before, part, axes.get(name, ()), hold=name in hold)
            for name, array in self.arrays.items()
        }


def mend(signal: Signal, notes: Notes, optional: tuple[str, ...] = ()) -> Signal:
    """The signal with finite values on strictly increasing stamps; what was done to get there is noted.

    Args:
        signal: as recorded.
        notes: is told what was dropped.
        optional: arrays to leave out if they hold anything but numbers, rather than their rows.
    """
    finite = np.abs(signal.t) <= LAST
    for name, array in list(signal.arrays.items()):
        # Also false for nan.
        good = (np.abs(array) <= GREATEST).reshape(len(array), -1).all(axis=1)
        if name in optional and not good.all():
            del signal.arrays[name]
            notes.say(f"{signal.name}: {name} is not always a number, and was left out")
        else:
            finite &= good
    if not finite.all():
        notes.say(f"{signal.name}: {int((~finite).sum())} samples that are not numbers dropped")
        signal = signal.pick(finite)
    signal = _longest_run(signal, notes)
    steps = np.diff(signal.t)
    if (steps < 0.0).any():
        notes.say(f"{signal.name}: {int((steps < 0.0).sum())} samples were out of order, and were sorted")
        signal = signal.pick(np.argsort(signal.t, kind="stable"))
        steps = np.diff(signal.t)
    repeated = float(np.mean(steps == 0.0)) if len(steps) else 0.0
    if repeated > 1.0 - COLLAPSED:
        kinds = len(steps) + 1 - int((steps == 0.0).sum())
        raise GaitError(
            f"{signal.name}: {len(steps) + 1} samples have {kinds} different stamps, which were rounded when they were"
            " recorded: record stamps with all their digits, or of a bag use the other clock (--time message or --time"
            " header)"
        )
    if repeated:
        notes.say(f"{signal.name}: {int((steps == 0.0).sum())} samples with a repeated stamp dropped")
        signal = signal.pick(np.concatenate([[True], steps > 0.0]))
    return signal


def _longest_run(signal: Signal, notes: Notes) -> Signal:
    """The longest part between two settings of the clock."""
    steps = np.diff(signal.t)
    breaks = np.flatnonzero((steps < -RESET) | (steps > LEAP)) + 1
    if not len(breaks):
        return signal
    kept = max(np.split(np.arange(len(signal.t)), breaks), key=len)
    jump = steps[breaks[0] - 1]
    notes.say(
        f"{signal.name}: the clock was reset {len(breaks)} time{'s' * (len(breaks) > 1)} (first by {jump:+.3f} s);"
        f" the longest part was kept, {len(kept)} of {len(signal.t)} samples"
    )
    return signal.pick(kept)


def merge(
    signals: Mapping[str, Signal], robot: Robot, notes: Notes, source: str, options: ReadOptions, keep: str = ""
) -> Log:
    """Make a Log.

    Args:
        signals: `imu` (gyro, accel) and `joints` (q, perhaps dq and tau) are needed; `targets` (q_des), `truth` (pos_w,
            quat_wb_wxyz, perhaps vel_b or vel_w) and `feet` (contact, foot_force, foot_vel_w) may be there. Joints and
            legs are in the order of the robot.
        robot: whose joints they are.
        notes: is told what was done.
        source: for `Log.source`.
        options: with `scale` and `align_clock`.
        keep: a signal that the user asked for, which is therefore kept however little of the log it covers.
    """
    feet = tuple(one.name for one in Log.FIELDS if one.role == "feet")
    optional = {"joints": ("dq", "tau"), "truth": ("vel_w", "twist"), "feet": feet}
    ready = {role: mend(signal, notes, optional.get(role, ())) for role, signal in signals.items()}
    labels = {**AXES, "leg": robot.leg_names, "joint": robot.joint_names}
    for role, signal in ready.items():
        signal.arrays = scaled(signal.arrays, options.scale, labels)
        if len(signal.t) < 2:
            raise GaitError(f"{signal.name} has {len(signal.t)} usable samples: choose another topic for {role}")
    joints = ready["joints"]
    if "dq" not in joints.arrays:
        joints.arrays["dq"] = differentiate(joints.t, joints.arrays["q"], QUICK)
        notes.say(f"{joints.name}: no joint velocities, so they come from the angles")
    if "tau" in joints.arrays and not joints.arrays["tau"].any():
        del joints.arrays["tau"]
        notes.say(f"{joints.name}: all torques are zero, and were left out")
    if "truth" in ready:
        ready["truth"] = _prepare_truth(ready["truth"], ready["imu"], notes, options.align_clock)

    t = _rows(ready, notes, keep)
    arrays: dict[str, Any] = {"t": t}
    for role in ("imu", "joints", "targets", "truth", "feet"):
        if role in ready:
            signal, imu = ready[role], ready["imu"]
            if not np.isin(t, signal.t).all():
                how = "held" if role == "targets" else "interpolated"
                rates = f"{signal.rate:.4g} Hz {how} to the stamps of {imu.name} at {imu.rate:.4g} Hz"
                notes.say(f"{signal.name} at {rates}")
            arrays |= signal.at(t, hold=("q_des",))
    for array in arrays.values():
        # Nobody else has them, so that the Log need not copy them.
        array.flags.writeable = False
    return Log(**arrays, robot=robot, source=source)


def _prepare_truth(truth: Signal, imu: Signal, notes: Notes, align: bool) -> Signal:
    quat = truth.arrays["quat_wb_wxyz"]
    norm = np.linalg.norm(quat, axis=1)
    if (norm < 0.5).any():
        notes.say(f"{truth.name}: {int((norm < 0.5).sum())} poses without a rotation dropped")
        truth = truth.pick(norm >= 0.5)
        if len(truth.t) < 2:
            raise GaitError(f"{truth.name} has no rotations: choose another topic with --truth, or --truth none")
        quat, norm = truth.arrays["quat_wb_wxyz"], norm[norm >= 0.5]
    quat = truth.arrays["quat_wb_wxyz"] = quat / norm[:, None]
    twist = truth.arrays.pop("twist", None)
    if "vel_w" not in truth.arrays:
        truth.arrays["vel_w"], words = world_velocity(truth.t, truth.arrays["pos_w"], quat, twist)
        notes.say(f"{truth.name}: {words}" if words else "")
    if align:
        truth.t = aligned_stamps(truth, imu, notes)
    return truth


def with_truth(log: Log, truth: Signal, options: ReadOptions, notes: Notes) -> Log:
    """A log with the ground truth of another file, on its own stamps: pos_w, quat_wb_wxyz and perhaps vel_w.

    Args:
        log: without ground truth, or with another one, which goes.
        truth: what the other file has.
        options: with `scale` and `align_clock`.
        notes: is told what was done.
    """
    truth = mend(truth, notes, ("vel_w",))
    truth.arrays = scaled(truth.arrays, options.scale, {**AXES, "leg": log.leg_names, "joint": log.joint_names})
    imu = Signal("the log", log.t, {"gyro": log.gyro})
    truth = _prepare_truth(truth, imu, notes, options.align_clock)
    # Text has nanoseconds: a stamp is the same all the same.
    inside = (log.t >= truth.t[0] - _HAIR) & (log.t <= truth.t[-1] + _HAIR)
    if int(inside.sum()) < 2:
        raise GaitError(
            f"{truth.name} and the log do not overlap in time ({_span(truth)} and {_span(imu)}): align its clock with"
            " --align-clock, or record both on one clock"
        )
    if not inside.all():
        notes.say(f"{int((~inside).sum())} of {len(log)} rows are left out, for which there is no truth")
    t = log.t[inside]
    _say_gaps(truth, t, notes)
    kept = {name: array[inside] for name, array in log.arrays().items()}
    return log.replace(**{**kept, "foot_vel_w": None, **truth.at(t)})


def aligned_stamps(truth: Signal, imu: Signal, notes: Notes) -> Array:
    """Stamps of the ground truth on the clock of the IMU, from the angular rates."""
    offset = clock_offset(imu.t, imu.arrays["gyro"], truth.t, rotation_rate(truth.t, truth.arrays["quat_wb_wxyz"]))
    if not offset.sure:
        raise GaitError(
            f"cannot align the clock of {truth.name}: it does not turn as the gyro does (correlation"
            f" {offset.correlation:.2f}); leave out --align-clock, or give another --truth"
        )
    notes.say(
        f"{truth.name}: its clock was {'behind' if offset.seconds > 0 else 'ahead'} by"
        f" {abs(offset.seconds) * 1e3:.1f} ms, and was aligned (correlation {offset.correlation:.2f})"
    )
    return np.asarray(truth.t + offset.seconds)


def _rows(ready: dict[str, Signal], notes: Notes, keep: str) -> Array:
    """The stamps of the IMU at which everything is known."""
    imu, joints = ready["imu"], ready["joints"]
    inside = _covered(imu.t, joints)
    if not inside.any():
        raise GaitError(
            f"{imu.name} and {joints.name} do not overlap in time ({_span(imu)} and {_span(joints)}): choose the other"
            " clock with --time message or --time header"
        )
    before, part = places(joints.t, imu.t)
    paused = inside & (joints.t[before + 1] - joints.t[before] > MAX_GAP) & (part > 0.0) & (part < 1.0)
    if paused.any():
        count = int(paused.sum())
        notes.say(f"{joints.name}: pauses of more than {MAX_GAP:g} s, whose {count} rows are left out")
        inside &= ~paused
    total = int(inside.sum())
    for role in ("targets", "truth", "feet"):
        if role not in ready:
            continue
        also = inside & _covered(imu.t, ready[role], MAX_GAP if role == "targets" else 0.0)
        left = int(also.sum())
        if left < max(2, ENOUGH * total) and role != keep:
            asked = f"; --{role} {ready[role].name} keeps that part alone" if left >= 2 and role != "feet" else ""
            notes.say(f"{ready[role].name}: covers {left} of {total} rows, and was left out{asked}")
            del ready[role]
        elif left < 2:
            raise GaitError(
                f"{ready[role].name} and {imu.name} do not overlap in time ({_span(ready[role])} and {_span(imu)}):"
                f" choose the other clock with --time, align it with --align-clock, or give --{role} none"
            )
        else:
            if left < total:
                notes.say(f"{total - left} of {total} rows are left out, for which there is no {role}")
            inside = also
    if "truth" in ready:
        _say_gaps(ready["truth"], imu.t[inside], notes)
    if int(inside.sum()) < 2:
        raise GaitError(f"{imu.name} and the other topics have fewer than two rows in common: record them together")
    return np.asarray(imu.t[inside])


def _covered(t: Array, signal: Signal, slack: float = 0.0) -> AnyArray:
    """Whether each stamp lies within the span of a signal; a command holds for a while after it was sent."""
    return np.asarray((t >= signal.t[0]) & (t <= signal.t[-1] + slack))


def _say_gaps(truth: Signal, t: Array, notes: Notes) -> None:
    steps = np.diff(truth.t[(truth.t >= t[0]) & (truth.t <= t[-1])])
    gaps = steps[steps > MAX_GAP]
    if len(gaps):
        notes.say(
            f"{truth.name}: {len(gaps)} pauses of more than {MAX_GAP:g} s, the longest {gaps.max():.2f} s, bridged by"
            " straight lines: do not judge an estimate there"
        )


def _span(signal: Signal) -> str:
    return f"{signal.t[0]:.3f} to {signal.t[-1]:.3f} s"
