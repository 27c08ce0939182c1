"""Near-stationary rollouts: the robot follows random joint targets instead of walking.

It lies, stands up, shifts its weight, wriggles and lies down again, so that an estimator learns that the base
is at rest under any joint target.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.commands import Command
from gait.sim.leg_kernels import forward, inverse
from gait.sim.proportions import Proportions

_LYING = (0.0, 1.35, -2.70)


class LegMotion:
    """A way to move the legs other than walking; the same interface as the walking controller."""

    gait_id = -1
    """Commanded gait, for the record; -1 where there is none."""

    def __init__(self, robot: Robot, kp: float, kd: float, period: float, rng: np.random.Generator) -> None:
        self.robot, self.period = robot, period
        self._kp, self._kd, self._rng = kp, kd, rng
        self.wanted = np.zeros(3)
        """Commanded velocities, for the record."""
        self._size = Proportions.of(robot).length
        self._begin()

    def _begin(self) -> None:
        """What a motion sets up."""

    def command(self, command: Command) -> None:
        """Nothing to follow."""

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        raise NotImplementedError

    def _carrying(self, pose: Array, share: float) -> Array:
        """Targets for a posture (J,) whose feet carry a share of the robot's weight, all alike."""
        _, jac = forward(self.robot, pose)
        torque = (jac[:, 2, :] * -(self.robot.mass * 9.81 / self.robot.num_legs)).ravel()
        return pose + share * torque / self._kp


class RandomTargets(LegMotion):
    """Glides from one random posture to the next."""

    def _begin(self) -> None:
        self._from = self._to = self.robot.q_stand.copy()
        self._weight_from = self._weight_to = self._noise = 0.0
        self._passed, self._glide, self._hold = 0.0, 0.5, 0.5

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        self._passed += self.period
        if self._passed > self._glide + self._hold:
            self._choose()
        s = min(self._passed / self._glide, 1.0)
        s = s * s * (3.0 - 2.0 * s)
        weight = self._weight_from + s * (self._weight_to - self._weight_from)
        target = self._carrying(self._from + s * (self._to - self._from), weight)
        target += self._noise * self._rng.normal(size=target.shape)
        return target.reshape(-1, 3)

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
            self._to, self._weight_to = self._stance((0.18, 0.32), lean), rng.uniform(0.6, 1.0)
        self._passed, self._glide, self._hold = 0.0, rng.uniform(0.6, 2.0), rng.uniform(0.1, 2.0)
        self._noise = float(rng.choice([0.0, 0.0, 0.002, 0.01]))

    def _stance(self, height: tuple[float, float], lean: float) -> Array:
        """Joints with the feet below the hips and the base at a height, leaning a little or, above 1, much.

        On a Go1 a lean of 1 shifts the base by up to 4 cm and tilts it by up to 0.15 rad.
        """
        rng, robot = self._rng, self.robot
        level = self._size * rng.uniform(*height)
        shift = self._size * (min(lean, 1.0) * rng.uniform(-1, 1, 2))
        x, y, z = 0.15 * (lean * rng.uniform(-1, 1, 3))
        R = np.array([[1, -z, y], [z, 1, -x], [-y, x, 1]])
        hips = robot.offsets[:, 0] + robot.offsets[:, 1]
        feet = [R @ np.array([hip[0] + 0.04 * shift[0], hip[1] + 0.03 * shift[1], -level]) for hip in hips]
        return np.clip(inverse(robot, np.array(feet)).ravel(), robot.q_lower, robot.q_upper)
