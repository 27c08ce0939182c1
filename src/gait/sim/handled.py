"""What the legs of a robot do while it is carried: one motion for a while, then another.

Among them is the trot and no other gait, so that a network which shall know trot alone may learn from these rollouts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gait.arrays import Array
from gait.sim.gaits import gait_of
from gait.sim.kernels import inverse
from gait.sim.mpc.controller import Controller
from gait.sim.postures import LegMotion, RandomTargets
from gait.sim.settings import fit_commands, random_schedule

IN_THE_AIR = {
    "trot": 0.25, "step": 0.2, "swim": 0.25, "reach": 0.15, "targets": 0.05, "hold": 0.05, "stiff": 0.03, "limp": 0.02
}  # fmt: skip
"""How likely each motion is while the robot is off the ground."""
ON_THE_GROUND = {"trot": 0.5, "stand": 0.25, "targets": 0.1, "hold": 0.1, "stiff": 0.05}
"""The same while it is left alone."""
BRACE = {"hold": 0.5, "trot": 0.3, "step": 0.2}
"""The same before it lands."""
LAND = {"hold": 0.4, "stand": 0.3, "trot": 0.3}
"""The same when there is ground again to bear it."""


class Reach(RandomTargets):
    """Glides from one wide posture to the next, faster than a robot that has to stand on its legs."""

    def _begin(self) -> None:
        super()._begin()
        self._passed = np.inf

    def _choose(self) -> None:
        rng, legs = self.rng, self.robot.num_legs
        self._from = self._to
        # All legs alike, or each on its own.
        draw = rng.uniform(-1, 1, (1 if rng.random() < 0.5 else legs, 3)) * (0.4, 0.7, 0.7)
        to = self.robot.q_stand + np.broadcast_to(draw, (legs, 3)).ravel()
        self._to = np.clip(to, self.robot.q_lower, self.robot.q_upper)
        self._passed, self._glide, self._hold = 0.0, rng.uniform(0.12, 0.8), rng.uniform(0.0, 0.4)


class Swim(LegMotion):
    """Every joint swings on a sine of its leg's own phase."""

    def _begin(self) -> None:
        robot, rng = self.robot, self.rng
        self._time = 0.0
        self._middle = robot.q_stand.reshape(-1, 3) + rng.uniform(-0.25, 0.25, 3)
        self._swing = rng.uniform(0.2, 1.0) * rng.uniform(0.3, 1.0, 3) * (0.2, 0.5, 0.6)
        self._rate = 2.0 * math.pi * rng.uniform(0.6, 3.0)
        legs = gait_of("trot", robot).offsets if rng.random() < 0.4 else rng.random(robot.num_legs)
        self._phase = 2.0 * math.pi * np.asarray(legs)[:, None] + rng.uniform(-math.pi, math.pi, 3)

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        self._time += self.period
        target = self._middle + self._swing * np.sin(self._rate * self._time + self._phase)
        return np.clip(target, self.robot.q_lower.reshape(-1, 3), self.robot.q_upper.reshape(-1, 3))


class Step(LegMotion):
    """Feet step below their hips in the order of the trot, by position alone: a policy without contact sensing."""

    def _begin(self) -> None:
        trot, size, rng = gait_of("trot", self.robot), self._size, self.rng
        self._clock, self._rate, self._offsets = 0.0, rng.uniform(0.8, 1.2) / trot.period, trot.offsets
        self._stride, self._lift = size * rng.uniform(-1, 1, 2) * (0.08, 0.05), size * rng.uniform(0.03, 0.1)
        self._height = size * rng.uniform(0.22, 0.31)

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        self._clock += self.period * self._rate
        feet = self.robot.offsets[:, 0] + self.robot.offsets[:, 1]
        for foot, offset in zip(feet, self._offsets, strict=True):
            angle = 2.0 * math.pi * (self._clock + offset)
            # The foot goes back on the ground and forward through the air.
            foot[:2] += math.cos(angle) * self._stride
            foot[2] = self._lift * max(-math.sin(angle), 0.0) - self._height
        return inverse(self.robot, feet)


MOTIONS: dict[str, type[LegMotion]] = {"targets": RandomTargets, "reach": Reach, "swim": Swim, "step": Step}
"""Those that are neither a gait nor a posture to hold, which is what `LegMotion` does by itself."""


class HandledLegs(LegMotion):
    """The legs in an airborne episode."""

    def _begin(self) -> None:
        robot, rng = self.robot, self.rng
        self.airborne = False
        """Whether the robot is off the ground, which decides what the legs may do next."""
        self._pull = robot.torque_limit.reshape(-1, 3) / self._kp
        slack = 0.5 * self._pull
        self._lower, self._upper = robot.q_lower.reshape(-1, 3) - slack, robot.q_upper.reshape(-1, 3) + slack
        self._from = self._last = robot.q_stand.reshape(-1, 3).copy()
        self._motion = self._make("stand")
        self._passed, self._blend, self._end = 0.0, 0.1, rng.uniform(0.3, 1.5)

    def choose(self, chances: Mapping[str, float] | None = None) -> None:
        """Go over to another motion for a while, by default one for the air or for the ground."""
        chances = chances or (IN_THE_AIR if self.airborne else ON_THE_GROUND)
        self._take_up(str(self.rng.choice(list(chances), p=list(chances.values()))))

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        self._passed += self.period
        lying = quat[1] ** 2 + quat[2] ** 2 > 0.25
        if self._passed > self._end:
            self.choose()
        if lying and self.gait_id >= 0:
            # No robot walks on its side or its back.
            self._take_up("limp" if self.rng.random() < 0.3 else "hold")
        target = self._motion.step(q, dq, quat, omega_b, vel_w)
        share = min((self._passed + self.period) / self._blend, 1.0)
        # No farther away than a leg can be and a drive can pull. The walking controller counts on the ground: legs that
        # find none would whirl faster than any motor turns.
        now, most = q.reshape(-1, 3), self._pull * (0.45 if self.airborne else 1.0)
        low, high = np.maximum(now - most, self._lower), np.minimum(now + most, self._upper)
        self._last = np.clip(self._from + share * (target - self._from), low, high)
        return self._last

    def _take_up(self, name: str) -> None:
        rng = self.rng
        self._motion, self._from = self._make(name), self._last
        self._passed, self._blend, self._end = 0.0, rng.uniform(0.03, 0.3), rng.uniform(0.4, 2.5)

    def _make(self, name: str) -> LegMotion | Controller:
        robot, rng, settings = self.robot, self.rng, (self._kp, self._kd, self.period)
        motion: LegMotion | Controller
        if name in ("trot", "stand"):
            motion = Controller(robot, name, *settings)
        else:
            motion = MOTIONS.get(name, LegMotion)(robot, *settings, rng)
        if name == "trot":
            schedule = random_schedule(rng, 0.1, "trot")
            motion.command(replace(fit_commands(schedule, robot)[0], gait="trot"))
        elif name == "hold":
            share = rng.uniform(0.6, 1.0) if not self.airborne or rng.random() < 0.5 else 0.0
            motion.q_des = self._carrying(robot.q_stand, share).reshape(-1, 3)
        elif name == "stiff":
            motion.q_des = self._last
        self.wanted, self.gait_id = motion.wanted, motion.gait_id
        return motion
