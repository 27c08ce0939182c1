"""Gaits as data: stance and swing of each leg."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.robot import Robot
from gait.sim.proportions import Proportions


@dataclass(frozen=True)
class Gait:
    """A periodic footfall pattern. `gait_of` puts its legs in a robot's own order.

    They are in the order front right, front left, rear right, rear left.
    """

    name: str
    offsets: tuple[float, ...]
    """Phase of each leg relative to the gait's clock, in cycles; a leg stands while its phase is below `duty`."""
    duty: float
    """Share of the cycle that a leg stands."""
    period: float
    """Duration of a cycle in seconds."""
    pairs: tuple[tuple[int, ...], ...] = ()
    """Groups of legs that touch the ground together."""
    step_height: float = 0.07
    """How high the feet are lifted by default, in metres."""
    inset: tuple[float, float] = (0.0, 0.0)
    """How much nearer to the middle of the body than the hips the feet land, along x and y, in metres.

    Legs that act as one at an end or a side tip the body over; landing nearer to the middle makes that lever short.
    """


GAITS: dict[str, Gait] = {
    gait.name: gait
    for gait in (
        Gait("stand", (0.0, 0.0, 0.0, 0.0), 1.0, 0.40),
        Gait("walk", (0.50, 0.0, 0.25, 0.75), 0.66, 0.50),
        Gait("trot", (0.0, 0.5, 0.5, 0.0), 0.52, 0.40, ((0, 3), (1, 2))),
        Gait("bound", (0.0, 0.0, 0.5, 0.5), 0.42, 0.32, ((0, 1), (2, 3)), 0.06, (0.06, 0.0)),
        Gait("pace", (0.0, 0.5, 0.0, 0.5), 0.50, 0.34, ((0, 2), (1, 3)), 0.06, (0.0, 0.07)),
        Gait("pronk", (0.0, 0.0, 0.0, 0.0), 0.50, 0.42, ((0, 1, 2, 3),), 0.06),
    )
}
GAIT_NAMES = tuple(GAITS)
STATIONARY = "stationary"
"""Name that stands in a gait's place for episodes of random joint targets; see `gait.sim.postures`."""
AIRBORNE = "airborne"
"""The same for episodes in which the robot is carried; see `gait.sim.airborne`."""
RISING = "rising"
"""The same for episodes that lie down and get up; see `gait.sim.postures`."""
ZMP = "zmp"
"""The same for bipeds that follow planned footsteps; see `gait.sim.zmp`."""
OTHERS = (STATIONARY, AIRBORNE, RISING, ZMP)
"""What an episode can be about other than walking as the schedule of commands has it, which these do not take."""


TRANSITIONS: dict[str, tuple[str, str]] = {"trot-to-bound": ("trot", "bound")}
"""Episodes that change from one gait to another half-way."""


def find_gait(name: str) -> Gait:
    """The gait of that name."""
    if name not in GAITS:
        raise GaitError(f"unknown gait '{name}': choose one of {', '.join(GAITS)}")
    return GAITS[name]


def leg_corners(robot: Robot) -> tuple[int, ...]:
    """The corner of each of a robot's legs, as an index into the legs of a `Gait`, by the place of its hip."""
    hips = robot.offsets[:, 0]
    corners = tuple(int(2 * (x < 0.0) + (y > 0.0)) for x, y in hips[:, :2])
    # A hip on the middle line of the body is at no corner.
    if sorted(corners) != [0, 1, 2, 3] or not hips[:, :2].all():
        legs = ", ".join(f"{leg} at [{hip[0]:g}, {hip[1]:g}]" for leg, hip in zip(robot.leg_names, hips, strict=True))
        raise GaitError(f"the walking controller needs four legs, one at each corner; {robot.name} has {legs}")
    return corners


def gait_of(name: str, robot: Robot) -> Gait:
    """The gait of that name for a robot: in the order of its own legs, as slow and as high as it is large."""
    gait, corners, size = find_gait(name), leg_corners(robot), Proportions.of(robot)
    offsets = tuple(gait.offsets[corner] for corner in corners)
    pairs = tuple(tuple(corners.index(corner) for corner in pair) for pair in gait.pairs)
    return size.fit(replace(gait, offsets=offsets, pairs=pairs), period="time", step_height="length", inset="length")


def gait_id(name: str) -> int:
    """Position of a gait in `GAIT_NAMES`, as recorded in episodes."""
    return GAIT_NAMES.index(find_gait(name).name)


class GaitClock:
    """The phase of every leg over time (`phases`, in [0, 1)), with smooth transitions from one gait to the next.

    On a change of gait the offsets, the duty factor and the period glide to their new values over `blend` seconds.
    Offsets take the shorter way round the cycle, so every leg's phase stays continuous and keeps moving forward, and
    the robot walks through the patterns in between.
    """

    blend = 1.2

    def __init__(self, gait: Gait) -> None:
        self.gait, self.duty, self.period = gait, gait.duty, gait.period
        self.clock = self._left = 0.0
        self.offsets: Array = np.array(gait.offsets)
        self.phases: Array = self.offsets % 1.0
        self.inset: Array = np.array(gait.inset)
        self._target: Array = self.offsets.copy()

    def switch(self, gait: Gait) -> None:
        """Begin the transition to another gait; a stand takes on any offsets at once."""
        if gait.name == self.gait.name:
            return
        wanted = np.array(gait.offsets)
        if self.duty >= 1.0:
            # Everything stands: the pattern can start afresh, with the first swing a moment away.
            self.offsets[:] = wanted
            self.clock = 0.0
        elif gait.duty >= 1.0:
            wanted = self.offsets.copy()
        self._target = self.offsets + (wanted - self.offsets + 0.5) % 1.0 - 0.5
        self.gait, self._left = gait, self.blend

    def advance(self, dt: float, frequency: float = 0.0) -> bool:
        """Move on by `dt` seconds; a positive `frequency` in Hz replaces the gait's own.

        Returns:
            Whether a transition is under way, so that offsets, duty factor, period and inset change.
        """
        period = 1.0 / frequency if frequency > 0.0 else self.gait.period
        gliding = self._left > 0.0
        if gliding:
            share = min(dt / self._left, 1.0)
            self.offsets += share * (self._target - self.offsets)
            # On the way to a stand the feet must still step for a while, to stop the body and to reach their places.
            if self.gait.duty < 1.0 or self._left < 0.5 * self.blend:
                self.duty += share * (self.gait.duty - self.duty)
            self.period += share * (period - self.period)
            self.inset += min(3.0 * share, 1.0) * (np.array(self.gait.inset) - self.inset)
            self._left = max(self._left - dt, 0.0)
        else:
            self.period = period
        self.clock = (self.clock + dt / self.period) % 1.0
        self.phases = (self.offsets + self.clock) % 1.0
        return gliding
