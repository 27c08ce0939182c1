"""Near-stationary rollouts: the robot follows random joint targets instead of walking.

It lies, stands up, shifts its weight, wriggles and lies down again, so that an estimator learns what standing still
feels like under any joint target.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.commands import Command
from gait.sim.gaits import STATIONARY
from gait.sim.leg_kernels import forward, inverse
from gait.sim.proportions import Proportions

__all__ = ["STATIONARY", "RandomTargets"]

_LYING = (0.0, 1.35, -2.70)


class RandomTargets:
    """Glides from one random posture to the next; the same interface as the walking controller."""

    gait_id = -1

    def __init__(self, robot: Robot, kp: float, period: float, rng: np.random.Generator) -> None:
        self.robot, self.period = robot, period
        self.wanted = np.zeros(3)
        self._rng, self._kp = rng, kp
        self._from = self._to = robot.q_stand.copy()
        self._weight_from = self._weight_to = 0.0
        self._passed, self._glide, self._hold = 0.0, 0.5, 0.5
        self._noise, self._size = 0.0, Proportions.of(robot).length

    def command(self, command: Command) -> None:
        """Nothing to follow: stationary robots take no velocity commands."""

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        self._passed += self.period
        if self._passed > self._glide + self._hold:
            self._choose()
        s = min(self._passed / self._glide, 1.0)
        s = s * s * (3.0 - 2.0 * s)
        pose = self._from + s * (self._to - self._from)
        weight = self._weight_from + s * (self._weight_to - self._weight_from)
        target = pose + weight * self._static_torque(pose) / self._kp
        target += self._noise * self._rng.normal(size=target.shape)
        return np.ascontiguousarray(target.reshape(-1, 3))

    def _static_torque(self, pose: Array) -> Array:
        """Joint torques that carry the robot's weight, shared evenly by its feet."""
        _, jac = forward(self.robot, pose)
        return (jac[:, 2, :] * -(self.robot.mass * 9.81 / self.robot.num_legs)).ravel()

    def _choose(self) -> None:
        rng = self._rng
        self._from, self._weight_from = self._to, self._weight_to
        kind = rng.choice(["lie", "stand", "shift", "wriggle"], p=[0.2, 0.3, 0.35, 0.15])
        if kind == "lie":
            self._to, self._weight_to = np.tile(_LYING, self.robot.num_legs) + 0.05 * rng.normal(size=12), 0.0
        elif kind == "wriggle":
            self._to = np.clip(self._to + 0.15 * rng.normal(size=12), self.robot.q_lower, self.robot.q_upper)
        else:
            lean = 1.0 if kind == "shift" else 0.2
            self._to = self._posture(
                self._size * rng.uniform(0.18, 0.32), lean * rng.uniform(-1, 1, 2), lean * rng.uniform(-1, 1, 3)
            )
            self._weight_to = rng.uniform(0.6, 1.0)
        self._passed, self._glide, self._hold = 0.0, rng.uniform(0.6, 2.0), rng.uniform(0.1, 2.0)
        self._noise = rng.choice([0.0, 0.0, 0.002, 0.01])

    def _posture(self, height: float, shift: Array, tilt: Array) -> Array:
        """Joints that hold the base at a height, shifted by up to 4 cm on a Go1 and tilted by up to 0.15 rad."""
        robot = self.robot
        feet = robot.offsets[:, 0] + robot.offsets[:, 1]
        (x, y, z), shift = 0.15 * tilt, self._size * shift
        R = np.array([[1, -z, y], [z, 1, -x], [-y, x, 1]])
        places = [np.array([x + 0.04 * shift[0], y + 0.03 * shift[1], -height]) for x, y, _ in feet]
        q = inverse(robot, np.array([R @ place for place in places]))
        return np.clip(q.ravel(), robot.q_lower, robot.q_upper)
