"""Command schedules, and pushes on the base."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gait.errors import GaitError


@dataclass(frozen=True)
class Command:
    """One entry of a command schedule: in force from `start` until the next entry begins."""

    start: float = 0.0
    """Seconds from the start of the recording."""
    vx: float = 0.0
    """Forward velocity in m/s, in the heading frame."""
    vy: float = 0.0
    """Velocity to the left in m/s, in the heading frame."""
    yaw_rate: float = 0.0
    """Turning rate in rad/s, positive to the left."""
    height: float = 0.0
    """Height of the base above its usual walking height, in metres."""
    step_height: float = 0.0
    """How high the feet are lifted in metres; 0 takes the gait's own."""
    step_frequency: float = 0.0
    """Cycles per second; 0 takes the gait's own."""
    gait: str = ""
    """Gait to change to; empty keeps the present one."""


@dataclass(frozen=True)
class Push:
    """A force on the base for a short time."""

    start: float
    """Seconds from the start of the recording."""
    duration: float
    """Seconds."""
    force_w: tuple[float, float, float]
    """Newtons, in the world frame."""


@dataclass(frozen=True)
class CommandRanges:
    """What random command schedules are drawn from, uniformly."""

    vx: tuple[float, float] = (-0.6, 1.0)
    vy: tuple[float, float] = (-0.4, 0.4)
    yaw_rate: tuple[float, float] = (-0.8, 0.8)
    height: tuple[float, float] = (-0.03, 0.02)
    step_height: tuple[float, float] = (0.05, 0.10)
    frequency_scale: tuple[float, float] = (0.9, 1.15)
    """Step frequency relative to the gait's own."""
    hold: tuple[float, float] = (1.5, 4.0)
    """Seconds until the next command."""
    still_share: float = 0.1
    """Share of commands that ask for no velocity at all: stepping on the spot."""


def check_schedule(commands: Sequence[Command]) -> None:
    """Raise a GaitError unless the schedule starts at or before 0 s and its start times increase."""
    starts = [command.start for command in commands]
    if not starts or starts[0] > 0.0:
        raise GaitError("the command schedule must begin with an entry whose start is 0")
    if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
        raise GaitError("the command schedule must be sorted by strictly increasing start times")


def random_schedule(
    rng: np.random.Generator, seconds: float, own_frequency: float, ranges: CommandRanges | None = None
) -> tuple[Command, ...]:
    """Random commands for `seconds`.

    Args:
        rng: source of randomness.
        seconds: length of the schedule.
        own_frequency: the gait's own cycles per second, which `frequency_scale` multiplies.
        ranges: what to draw from.
    """
    ranges = ranges or CommandRanges()
    commands, start = [], 0.0
    while start < seconds:
        moving = float(rng.random() >= ranges.still_share)
        velocity = {name: moving * rng.uniform(*getattr(ranges, name)) for name in ("vx", "vy", "yaw_rate")}
        heights = {name: rng.uniform(*getattr(ranges, name)) for name in ("height", "step_height")}
        frequency = own_frequency * rng.uniform(*ranges.frequency_scale)
        commands.append(Command(start=start, **velocity, **heights, step_frequency=frequency))
        start += rng.uniform(*ranges.hold)
    return tuple(commands)


def change_gait(commands: Sequence[Command], at: float, gait: str, quicker: float) -> tuple[Command, ...]:
    """The same schedule with another gait from a moment on.

    Args:
        commands: the schedule.
        at: seconds from the start of the recording.
        gait: name of the new gait.
        quicker: step frequency of the new gait relative to the old one.
    """
    before = [command for command in commands if command.start < at]
    later = [replace(before[-1], start=at, gait=gait), *(command for command in commands if command.start > at)]
    return (*before, *(replace(command, step_frequency=quicker * command.step_frequency) for command in later))


def random_pushes(
    rng: np.random.Generator, seconds: float, every: float, impulse: tuple[float, float]
) -> tuple[Push, ...]:
    """Horizontal pushes of random direction, on average one in `every` seconds.

    Args:
        rng: source of randomness.
        seconds: length of the episode.
        every: mean time between pushes in seconds; 0 means none.
        impulse: range of the impulse in N s; 13 N s change a Go1's velocity by about 1 m/s.
    """
    pushes: list[Push] = []
    start = rng.exponential(every) if every > 0.0 else seconds
    while start < seconds:
        angle, size, duration = rng.uniform(-np.pi, np.pi), rng.uniform(*impulse), rng.uniform(0.05, 0.2)
        force = size / duration
        pushes.append(Push(start, duration, (force * float(np.cos(angle)), force * float(np.sin(angle)), 0.0)))
        start += duration + rng.exponential(every)
    return tuple(pushes)
