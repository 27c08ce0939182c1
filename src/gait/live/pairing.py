"""One sample out of messages that come apart: IMU, joints and commands, each with a stamp of its own.

The IMU is the clock: each of its messages becomes a sample. Joints are taken at its stamp, between the two messages
around it; so an IMU message waits until joints of its own time or later are there, but not for long. Joint targets hold
until the next command. What does not come is nan, and the estimator knows what to do about that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.log import Sample

NS = 1_000_000_000
SAME = 1_000
"""Stamps this close (ns) are one instant: seconds as a float are rounded to 0.2 us."""
RESTART = NS
"""A stamp this much in the past is a clock that was reset, not a message out of order."""
_KEPT = 100_000
"""Messages that wait for others of their time: more than a minute of them, should this process be held up so long."""


WAIT = 0.02
"""How long an IMU message waits for joints, s."""
STALE = NS // 20
"""Joints older than this (ns) are not used any more."""
HOLD = 0.2
"""A joint target older than this (s) is stale: its publisher has stopped."""


class Arrival(NamedTuple):
    """A sample that is complete."""

    sample: Sample
    ns: int
    """Its stamp."""
    sent_ns: int
    """When it was sent, or was due, on the clock of this machine or one that is in step with it."""
    count_ns: int | None = None
    """A regular count of the robot, where stamps are not: it shows what is missing."""


_Stamped = tuple[int, Array]
"""A stamp and what was measured or commanded then: angles, velocities and torques (3, J), or target angles (J,)."""


class _Pending(NamedTuple):
    ns: int
    gyro: Array
    accel: Array
    sent_ns: int
    arrived: float


class Pairing:
    """Puts samples together. Stamps are in nanoseconds on one clock; `now` is any clock that does not jump, in s."""

    def __init__(self, joints: int, *, commands: bool) -> None:
        """Begin with nothing.

        Args:
            joints: how many there are.
            commands: whether there is a source of joint targets.
        """
        self._commands = commands
        self._nan = np.full(joints, np.nan)
        self._pending: deque[_Pending] = deque()
        self._joints: deque[_Stamped] = deque(maxlen=_KEPT)
        self._targets: deque[_Stamped] = deque(maxlen=_KEPT)
        self._last_imu = -RESTART * 10
        self.disordered = 0
        """Messages that were older than one before them, and not used."""
        self.unpaired = 0
        """Samples without joints of their time."""

    @property
    def waiting(self) -> bool:
        """Whether an IMU message waits for joints."""
        return bool(self._pending)

    def add_imu(self, ns: int, gyro: Array, accel: Array, sent_ns: int, now: float) -> None:
        """An IMU message."""
        if self._last_imu - RESTART < ns <= self._last_imu:
            self.disordered += 1
            return
        self._last_imu = ns
        self._pending.append(_Pending(ns, gyro, accel, sent_ns, now))

    def add_joints(self, ns: int, q: Array, dq: Array | None, tau: Array | None) -> None:
        """A message of joint states, in the robot's order."""
        if self._in_order(self._joints, ns):
            parts = [q, self._nan if dq is None else dq, self._nan if tau is None else tau]
            self._joints.append((ns, np.stack(parts)))

    def add_targets(self, ns: int, q_des: Array) -> None:
        """A command, in the robot's order."""
        if self._in_order(self._targets, ns):
            self._targets.append((ns, q_des))

    def take(self, now: float) -> Iterable[Arrival]:
        """The samples that are complete, or have waited long enough."""
        while self._pending:
            first = self._pending[0]
            values = self._values_at(first.ns)
            if values is None:
                if now - first.arrived < WAIT:
                    return
                values = self._held(first.ns)
            self._pending.popleft()
            q, dq, tau = (self._nan, self._nan, None) if values is None else values
            self.unpaired += values is None
            if tau is not None and np.isnan(tau[0]):
                tau = None
            targets = self._targets_at(first.ns) if self._commands else None
            sample = Sample(first.ns / NS, first.gyro, first.accel, q, dq, targets, tau)
            yield Arrival(sample, first.ns, first.sent_ns)

    def _in_order(self, messages: deque[_Stamped], ns: int) -> bool:
        """Whether a stamp is later than the last; after a clock reset the messages before it are dropped."""
        if not messages or ns > messages[-1][0]:
            return True
        if ns > messages[-1][0] - RESTART:
            self.disordered += 1
            return False
        messages.clear()
        return True

    def _values_at(self, ns: int) -> Array | None:
        """Joints at a stamp: those of that instant, or between the two around it; None if the later is not there."""
        joints = self._joints
        if not joints or joints[-1][0] < ns - SAME or joints[0][0] > ns + STALE:
            return None
        _drop_past(joints, ns)
        start, before = joints[0]
        if start >= ns - SAME or len(joints) == 1:
            return before
        end, after = joints[1]
        if end - start > STALE:
            # Nothing is known between the ends of a gap; the nearer end may do.
            gap, near = min((end - ns, after), (ns - start, before), key=lambda one: one[0])
            return near if gap <= STALE else None
        return np.asarray(before + (ns - start) / (end - start) * (after - before))

    def _held(self, ns: int) -> Array | None:
        """The last joints, if they are not too old."""
        return self._joints[-1][1] if self._joints and 0 <= ns - self._joints[-1][0] <= STALE else None

    def _targets_at(self, ns: int) -> Array:
        targets = self._targets
        _drop_past(targets, ns)
        return targets[0][1] if targets and -SAME <= ns - targets[0][0] <= HOLD * NS else self._nan


def _drop_past(messages: deque[_Stamped], ns: int) -> None:
    """Samples are taken in order: what precedes the message that holds at a stamp is not needed again."""
    while len(messages) > 1 and messages[1][0] <= ns + SAME:
        messages.popleft()
