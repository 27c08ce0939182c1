"""How large a robot is beside the Go1, for which the walking controller and its commands were made.

Bodies of one shape and other sizes walk alike when everything goes with length, mass and gravity: speeds with the root
of the length, forces with the mass, gains of a joint with mass times length. A Go1 has factors of exactly one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gait.robot import Robot

if TYPE_CHECKING:
    from gait.sim.commands import Command
    from gait.sim.settings import EpisodeConfig

_LEG, _MASS = 0.426, 13.100448
"""Thigh and calf, m, and the whole mass, kg, of a Go1."""


@dataclass(frozen=True)
class Proportions:
    """A robot beside the Go1."""

    length: float = 1.0
    """Of thigh and calf together."""
    mass: float = 1.0
    """Of everything."""

    @staticmethod
    def of(robot: Robot) -> Proportions:
        """The proportions of a robot."""
        legs = np.linalg.norm(robot.offsets[:, 2:], axis=2).sum(axis=1)
        # Rounded, so that sums in another order do not make a Go1 of another size.
        return Proportions(round(float(legs.mean()) / _LEG, 5), round(robot.mass / _MASS, 5))

    @property
    def time(self) -> float:
        """Of a step, and a speed too: both go with the root of the length."""
        return math.sqrt(self.length)

    @property
    def stiffness(self) -> float:
        """Of a joint: newton metres a radian."""
        return self.mass * self.length

    @property
    def damping(self) -> float:
        """Of a joint: newton metres times seconds a radian."""
        return self.stiffness * self.time

    @property
    def inertia(self) -> float:
        """Of a body, about any axis."""
        return self.mass * self.length**2

    def commands(self, commands: Sequence[Command]) -> tuple[Command, ...]:
        """Commands for a Go1 as this robot can follow them."""
        return tuple(
            replace(
                command,
                vx=command.vx * self.time,
                vy=command.vy * self.time,
                yaw_rate=command.yaw_rate / self.time,
                height=command.height * self.length,
                step_height=command.step_height * self.length,
                step_frequency=command.step_frequency / self.time,
            )
            for command in commands
        )

    def episode(self, config: EpisodeConfig) -> EpisodeConfig:
        """An episode of a Go1 with gains, loads and pushes that fit this robot; commands stay as they are."""
        x, y, z = config.payload_position
        shift_x, shift_y, shift_z = config.com_shift
        impulse = self.mass * self.time
        return replace(
            config,
            payload_mass=config.payload_mass * self.mass,
            payload_position=(x * self.length, y * self.length, z * self.length),
            com_shift=(shift_x * self.length, shift_y * self.length, shift_z * self.length),
            kp=config.kp * self.stiffness,
            kd=config.kd * self.damping,
            pushes=tuple(
                replace(push, force_w=(push.force_w[0] * impulse, push.force_w[1] * impulse, push.force_w[2] * impulse))
                for push in config.pushes
            ),
        )
