"""How large a robot is beside the Go1, for which the walking controller and its commands were made.

Bodies of one shape and other sizes walk alike when everything goes with length, mass and gravity: speeds with the root
of the length, forces with the mass, gains of a joint with mass times length. A Go1 has factors of exactly one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from gait.robot import Robot

T = TypeVar("T")
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

    @staticmethod
    def of_mass(mass: float) -> Proportions:
        """The proportions of a robot of which only the mass, kg, is known."""
        return Proportions(1.0, round(mass / _MASS, 5))

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

    @property
    def impulse(self) -> float:
        """Mass times speed."""
        return self.mass * self.time

    def fit(self, settings: T, **rules: str) -> T:
        """Settings of a Go1 as they mean the same for this robot.

        Args:
            settings: a dataclass or a named tuple.
            rules: for a field, the property that its value is multiplied by, such as "length", or divided by: "/time".
        """

        def fitted(value: Any, rule: str) -> Any:
            if isinstance(value, tuple):
                return tuple(fitted(entry, rule) for entry in value)
            factor = getattr(self, rule.removeprefix("/"))
            return value / factor if rule.startswith("/") else value * factor

        changed = {name: fitted(getattr(settings, name), rule) for name, rule in rules.items()}
        made: Any = settings
        return cast("T", made._replace(**changed) if hasattr(made, "_replace") else replace(made, **changed))
