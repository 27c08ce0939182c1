"""Footsteps, swings and the zero-moment point of a biped, drawn at random: walking, stepping in place, standing.

A plan is made of bouts. A walking bout takes steps of one speed and one rhythm, with a phase of double support before
each, and ends with the feet side by side; in a standing bout the weight shifts, and some squat. Everything is planned
before the episode begins, since nothing that happens in it changes the plan.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gait.arrays import Array, BoolArray

LENGTH = 0.65
"""Leg length that the figures here are made for, m; others go with the length, times and speeds with its root."""


class Size(NamedTuple):
    """What a plan needs to know of a biped."""

    leg: float
    """Length of a leg, m."""
    width: float
    """Distance of the hips, m."""
    sole: tuple[float, float]
    """Half length and half width of a sole, m."""
    sides: tuple[float, float]
    """+1 of the left leg and -1 of the right one, in the order of the robot."""


@dataclass(frozen=True)
class Footsteps:
    """A plan, one row each `dt`. Positions are in the world, on the ground z = 0."""

    zmp: Array
    """(N, 2)."""
    place: Array
    """Centres of the soles (N, 2, 3)."""
    yaw: Array
    """Headings of the soles (N, 2)."""
    pitch: Array
    """Of the soles, positive with the toes down (N, 2)."""
    swings: BoolArray
    """Whether a foot is in the air (N, 2)."""
    squat: Array
    """How far the base goes down, m (N,)."""
    command: Array
    """Forward, sideways and yaw velocity (N, 3)."""


class _Bout(NamedTuple):
    """One way of walking. Speeds in m/s and rad/s, times in s, lengths in m."""

    velocity: tuple[float, float, float]
    step: float
    double: float
    """Share of the step in double support."""
    lift: float
    shape: float
    """Exponent of the swing's height: 1 lands abruptly, 2 at rest."""
    carried: float
    """Share of the swing's mean velocity at lift-off and landing."""
    roll_on: float
    """How far the ZMP moves ahead under the foot in single support, in half soles."""
    inward: float
    """How far inside of the middle of the sole it is, in half widths."""
    pitch: tuple[float, float]
    """Angles of the sole at toe-off and heel-strike, rad; zero for flat feet."""


class _Swing(NamedTuple):
    foot: int
    first: int
    """Rows where the double support before it, the swing, and the one after it begin."""
    lift: int
    land: int
    pitch: tuple[float, float]


def ease(count: int) -> Array:
    """From 0 to 1 at rest at both ends, the end included (count,)."""
    s = np.arange(1, count + 1) / max(count, 1)
    return np.asarray(s**3 * (10.0 - 15.0 * s + 6.0 * s**2))


def plan_footsteps(rng: np.random.Generator, size: Size, seconds: float, dt: float, sink: float = 0.0) -> Footsteps:
    """Draw a plan that begins with half a second of standing.

    Args:
        rng: source of randomness.
        size: of the robot.
        seconds: length of the plan at least; what is longer is cut.
        dt: time between rows.
        sink: how far the ground gives way, m: feet are lifted that much higher.
    """
    return _Planner(rng, size, dt, sink).plan(seconds)


class _Planner:
    def __init__(self, rng: np.random.Generator, size: Size, dt: float, sink: float) -> None:
        self.rng, self.size, self.dt, self.sink = rng, size, dt, sink
        self.scale = size.leg / LENGTH
        self.tempo = float(np.sqrt(self.scale))
        most = 1.15 * 2.0 * size.sole[1] + 0.01
        self.width = max(size.width * rng.uniform(0.85, 1.25), most + 0.02 * self.scale)
        self.slack = self.width - most
        self.toes_out = rng.uniform(-0.05, 0.2)
        self.rolls = rng.random() < 0.35
        self.slow = rng.random() < 0.5
        self.uneven = 0.003 * rng.random()
        self.body = np.zeros(3)
        self.feet = np.array([[0.0, side * self.width / 2, 0.0, side * self.toes_out] for side in size.sides])
        self.zmp = self.feet[:, :2].mean(axis=0)
        self.parts: list[dict[str, Array]] = []
        self.rows = 0
        self.made: list[_Swing] = []

    def plan(self, seconds: float) -> Footsteps:
        self._hold(0.5)
        while self.rows * self.dt < seconds:
            if self.rng.random() < 0.7:
                self._walk(self._draw_bout())
            else:
                self._stand()
        self._hold(1.0)
        whole = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        place, pitch = whole["feet"][..., :3], self._pitches(len(whole["zmp"]))
        # The sole turns about its toes before it lifts off, and about its heel after it lands.
        half, (c, s) = self.size.sole[0], (np.cos(whole["feet"][..., 3]), np.sin(whole["feet"][..., 3]))
        along = np.sign(pitch) * half * (1.0 - np.cos(pitch))
        place = place + np.stack([along * c, along * s, half * np.abs(np.sin(pitch))], axis=-1)
        count = round(seconds / self.dt) + 1
        return Footsteps(
            zmp=smoothed(whole["zmp"], round(0.06 / self.dt))[:count],
            place=place[:count],
            yaw=whole["feet"][:count, :, 3],
            pitch=pitch[:count],
            swings=whole["swings"][:count],
            squat=whole["squat"][:count],
            command=whole["command"][:count],
        )

    def _draw_bout(self) -> _Bout:
        rng, scale, tempo = self.rng, self.scale, self.tempo
        step = tempo * float(np.exp(rng.uniform(*np.log((0.4, 1.5)))))
        forward = rng.uniform(-0.3, 0.6) * (0.4 if self.slow else 1.0)
        sideways = rng.uniform(-0.15, 0.15) * (rng.random() < 0.4)
        turning = rng.uniform(-0.5, 0.5) * (rng.random() < 0.5)
        if rng.random() < 0.2:
            forward = sideways = turning = 0.0
        # No longer steps than legs can take, nor feet on each other.
        forward = float(np.clip(forward * tempo, -0.25 * self.size.leg / step, 0.4 * self.size.leg / step))
        sideways = float(np.clip(sideways * tempo, -0.8 * self.slack / step, 0.8 * self.slack / step))
        turning = float(np.clip(turning / tempo, -0.25 / step, 0.25 / step))
        rolls = self.rolls and forward * step > 0.05 * scale
        return _Bout(
            velocity=(forward, sideways, turning),
            step=step,
            double=rng.uniform(0.1, 0.5),
            lift=scale * float(np.exp(rng.uniform(*np.log((0.01, 0.08))))) + 0.7 * self.sink,
            shape=rng.uniform(1.0, 2.0),
            carried=rng.uniform(0.0, 0.4),
            roll_on=rng.uniform(0.0, 0.5) * np.sign(forward),
            inward=rng.uniform(-0.1, 0.5),
            pitch=(rng.uniform(0.05, 0.45), rng.uniform(0.0, 0.3)) if rolls else (0.0, 0.0),
        )

    def _walk(self, bout: _Bout) -> None:
        rng, T = self.rng, bout.step
        steps = max(2, round(self.tempo * rng.uniform(1.5, 5.0) / T))
        foot = int(rng.integers(2)) if not bout.velocity[1] else int(self.size.sides[1] * bout.velocity[1] > 0.0)
        for i in range(steps + 1):
            closing = i == steps
            velocity = np.zeros(3) if closing else np.array(bout.velocity)
            (x, y, turn), c, s = velocity, np.cos(self.body[2]), np.sin(self.body[2])
            self.body += T * np.array([c * x - s * y, s * x + c * y, turn])
            self._step(bout, foot, velocity, jitter=0.0 if closing else 1.0)
            foot = 1 - foot
        self._shift(0.5 * self.feet[:, :2].sum(axis=0), rng.uniform(0.3, 0.8) * self.tempo)

    def _step(self, bout: _Bout, foot: int, velocity: Array, jitter: float) -> None:
        rng, stance = self.rng, 1 - foot
        heading = self.body[2]
        side = self.size.sides[foot]
        ahead = 0.5 * velocity[0] * bout.step + jitter * 0.008 * self.scale * rng.normal()
        beside = side * self.width / 2 + side * jitter * 0.2 * self.slack * abs(rng.normal())
        c, s = np.cos(heading), np.sin(heading)
        target = np.array([
            self.body[0] + c * ahead - s * beside, self.body[1] + s * ahead + c * beside,
            self.uneven * rng.normal(), heading + side * self.toes_out + jitter * 0.02 * rng.normal(),
        ])  # fmt: skip
        first = self.rows
        self._shift(self._point(stance, bout, -1.0), bout.double * bout.step, velocity)
        lift, count = self.rows, max(round((1.0 - bout.double) * bout.step / self.dt), 2)
        part, t = self._part(count, velocity), np.arange(1, count + 1) / count
        share = (1.0 - bout.carried) * ease(count) + bout.carried * t
        part["feet"][:, foot] += share[:, None] * (target - self.feet[foot])
        part["feet"][:, foot, 2] += bout.lift * np.sin(np.pi * t) ** bout.shape
        part["swings"][:-1, foot] = True
        begin, end = self._point(stance, bout, -1.0), self._point(stance, bout, 1.0)
        part["zmp"] = begin + t[:, None] * (end - begin)
        self._add(part)
        self.made.append(_Swing(foot, first, lift, self.rows, bout.pitch))

    def _point(self, foot: int, bout: _Bout, share: float) -> Array:
        """Where the ZMP is under a foot."""
        half, wide = self.size.sole
        x, y = share * bout.roll_on * half, -self.size.sides[foot] * bout.inward * wide
        c, s = np.cos(self.feet[foot, 3]), np.sin(self.feet[foot, 3])
        return np.asarray(self.feet[foot, :2] + [c * x - s * y, s * x + c * y])

    def _stand(self) -> None:
        """Shift the weight to and fro, and at times squat."""
        rng = self.rng
        seconds = rng.uniform(1.5, 5.0)
        count = round(seconds / self.dt)
        part, t = self._part(count), np.arange(1, count + 1) * self.dt
        fade = np.minimum(1.0, np.minimum(t, seconds - t) / (0.25 * seconds))
        fade = np.sin(0.5 * np.pi * fade) ** 2
        middle = 0.5 * self.feet[:, :2].sum(axis=0)
        across = 0.5 * (self.feet[0, :2] - self.feet[1, :2])
        c, s = np.cos(self.body[2]), np.sin(self.body[2])
        frequency = np.exp(rng.uniform(np.log(0.15), 0.0, 2)) / self.tempo
        phase, most = rng.uniform(0.0, 2.0 * np.pi, 2), rng.uniform(0.0, 0.8, 2)
        sway = most * np.sin(2.0 * np.pi * frequency * t[:, None] + phase)
        along = 0.6 * self.size.sole[0] * np.array([c, s])
        part["zmp"] = middle + fade[:, None] * (sway[:, :1] * across + sway[:, 1:] * along)
        if rng.random() < 0.4:
            depth, times = self.size.leg * rng.uniform(0.03, 0.22), rng.integers(1, 3)
            part["squat"] = 0.5 * depth * (1.0 - np.cos(2.0 * np.pi * times * t / seconds))
        self._add(part)

    def _hold(self, seconds: float) -> None:
        self._add(self._part(round(seconds / self.dt)))

    def _shift(self, to: Array, seconds: float, velocity: Array | None = None) -> None:
        """Both feet stand while the ZMP moves."""
        count = max(round(seconds / self.dt), 2)
        part = self._part(count, velocity)
        part["zmp"] = self.zmp + ease(count)[:, None] * (to - self.zmp)
        self._add(part)

    def _part(self, count: int, velocity: Array | None = None) -> dict[str, Array]:
        """Rows in which nothing moves."""
        return {
            "zmp": np.tile(self.zmp, (count, 1)),
            "feet": np.tile(self.feet, (count, 1, 1)),
            "swings": np.zeros((count, 2), dtype=np.bool_),
            "squat": np.zeros(count),
            "command": np.tile(np.zeros(3) if velocity is None else velocity, (count, 1)),
        }

    def _add(self, part: dict[str, Array]) -> None:
        self.parts.append(part)
        self.rows += len(part["zmp"])
        self.zmp, self.feet = part["zmp"][-1].copy(), part["feet"][-1].copy()

    def _pitches(self, count: int) -> Array:
        """Pitch of the soles (N, 2): toes down at the end of a stance, toes up at the end of a swing."""
        pitch = np.zeros((count, 2))
        for swing in self.made:
            toe, heel = swing.pitch
            if not toe:
                continue
            flight, double = swing.land - swing.lift, swing.lift - swing.first
            knots = [
                (swing.lift - round(0.5 * double), 0.0), (swing.lift + round(0.1 * flight), toe),
                (swing.land - round(0.2 * flight), -heel), (swing.land, -heel), (swing.land + round(0.4 * double), 0.0),
            ]  # fmt: skip
            for (k, old), (end, new) in itertools.pairwise(knots):
                pitch[k:end, swing.foot] = (old + (new - old) * ease(end - k))[: max(count - k, 0)]
        return pitch


def smoothed(values: Array, width: int) -> Array:
    """Mean over `width` rows around each, those beyond the ends as at the ends."""
    if width < 2:
        return values
    padded = np.concatenate([np.repeat(values[:1], width, axis=0), values, np.repeat(values[-1:], width, axis=0)])
    total = np.cumsum(padded, axis=0)
    mean = (total[width:] - total[:-width]) / width
    first = width - width // 2
    return np.asarray(mean[first : first + len(values)])
