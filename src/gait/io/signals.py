"""Signals as recorded, each on its own time stamps, and their repair: sorted, without repeats or clock resets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gait.arrays import AnyArray, Array
from gait.io.reading import Notes
from gait.log.fields import LOG_FIELDS
from gait.log.record import interpolate, places

RESET = 1.0
"""A clock that goes back by more than this (s) was reset; by less, messages came out of order."""
LEAP = 3600.0
"""A clock that goes on by more than this (s) was reset as well."""


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
        if len(self.t) < 2:
            return float("nan")
        step = float(np.median(np.diff(np.sort(self.t))))
        return 1.0 / step if step > 0.0 else float("nan")

    def pick(self, rows: AnyArray) -> Signal:
        """The rows of an index or mask."""
        return Signal(self.name, self.t[rows], {name: array[rows] for name, array in self.arrays.items()})

    def same_stamps(self, t: Array) -> bool:
        """Whether its stamps are these."""
        return len(self.t) == len(t) and bool((self.t == t).all())

    def at(self, t: Array, hold: tuple[str, ...] = ()) -> dict[str, AnyArray]:
        """The arrays at other stamps: straight between samples, along the arc for rotations.

        Args:
            t: stamps within the span of the signal.
            hold: arrays that keep their value until the next sample, as commands and flags do.
        """
        if self.same_stamps(t):
            return dict(self.arrays)
        before, part = places(self.t, t)
        axes = {field.name: field.axes for field in LOG_FIELDS}
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
    finite = np.isfinite(signal.t)
    for name, array in list(signal.arrays.items()):
        good = np.isfinite(array).reshape(len(array), -1).all(axis=1)
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
    if (steps == 0.0).any():
        notes.say(f"{signal.name}: {int((steps == 0.0).sum())} samples with a repeated stamp dropped")
        signal = signal.pick(np.concatenate([[True], steps > 0.0]))
    return signal


def _longest_run(signal: Signal, notes: Notes) -> Signal:
    """The longest part between two settings of the clock."""
    steps = np.diff(signal.t)
    breaks = np.flatnonzero((steps < -RESET) | (steps > LEAP)) + 1
    if not len(breaks):
        return signal
    edges = [0, *breaks.tolist(), len(signal.t)]
    lengths = np.diff(edges)
    longest = int(np.argmax(lengths))
    first, last = edges[longest], edges[longest + 1]
    jump = steps[breaks[0] - 1]
    notes.say(
        f"{signal.name}: the clock was reset {len(breaks)} time{'s' * (len(breaks) > 1)} (first by {jump:+.3f} s);"
        f" the longest part was kept, {last - first} of {len(signal.t)} samples"
    )
    return signal.pick(np.arange(first, last))
