"""Rising rollouts: the robot lies on its belly, gets up, stands or trots for a moment, and lies down again.

While the belly carries the robot its legs move as they like: feet slide, hang free or bear a part. The data
then contain legs whose motion does not measure the velocity of the base. Of the gaits there is the trot only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.commands import Command
from gait.sim.leg_kernels import forward
from gait.sim.mpc.controller import Controller
from gait.sim.proportions import Proportions
from gait.sim.stationary import RandomTargets


class Rising(RandomTargets):
    """Glides through postures drawn at random: lie, get up, stand or trot, lie down."""

    def _begin(self) -> None:
        super()._begin()
        self._walker: Controller | None = None
        self._last = self._from = self._to = self._lying()
        self._sequence = self._actions()
        self._choose()

    def start(self, body: Robot) -> Array:
        """Generalised position (19,) of a robot that lies on the plane z = 0, wherever its legs are."""
        feet = forward(body, self._from)[0][:, 2] - body.foot_radius
        # A little above the ground: knees may reach lower than feet and belly, and the rest is a small fall.
        height = max(-float(feet.min()), 0.5 * float(body.shapes.base[2])) + 0.01 * self._size
        return np.concatenate([[0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0], self._from])

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period."""
        target = super().step(q, dq, quat, omega_b, vel_w)
        if self._walker is not None:
            # The walking controller takes over little by little: it expects to stand.
            share = min(self._passed / 0.15, 1.0)
            walked = self._walker.step(q, dq, quat, omega_b, vel_w)
            target = target + share * (walked - target)
            if quat[1] ** 2 + quat[2] ** 2 > 0.25:
                # Nobody walks on the side or on the back.
                self._choose()
        self._last = self._within_reach(target, q)
        return self._last.reshape(-1, 3).copy()

    def _within_reach(self, target: Array, q: Array) -> Array:
        """Targets no farther from the joints than the drives can pull."""
        most = self.robot.torque_limit / self._kp
        return np.clip(target.ravel(), q - most, q + most)

    def _choose(self) -> None:
        # What the walker asked for holds the robot up, so a glide begins there.
        if self._walker is not None:
            self._to, self._weight_to, self._walker = self._last.copy(), 0.0, None
        self._from, self._weight_from, self._passed = self._to, self._weight_to, 0.0
        self.wanted, self.gait_id = np.zeros(3), -1
        self._noise = float(self._rng.choice([0.0, 0.0, 0.002, 0.01]))
        next(self._sequence)

    def _go(self, pose: Array, weight: float, glide: tuple[float, float], hold: tuple[float, float]) -> None:
        """Glide to a posture that carries a share of the weight, and hold it."""
        self._to, self._weight_to = np.clip(pose, self.robot.q_lower, self.robot.q_upper), weight
        self._glide, self._hold = self._rng.uniform(*glide), self._rng.uniform(*hold)

    def _actions(self) -> Iterator[None]:
        rng = self._rng
        while True:
            self._go(self._lying(), 0.0, (0.1, 0.6), (0.0, 0.8))
            yield
            while rng.random() < 0.75:
                self._go(self._fidget(), 0.0, (0.08, 0.7), (0.0, 0.5))
                yield
            yield from self._rise()
            for _ in range(rng.integers(1, 4)):
                if rng.random() < 0.4:
                    self._trot()
                else:
                    self._go(self._stance((0.18, 0.32), 1.0), rng.uniform(0.7, 1.0), (0.2, 1.2), (0.0, 1.0))
                yield
            if rng.random() < 0.7:
                self._go(self._stance((0.12, 0.16), 0.3), rng.uniform(0.5, 1.0), (0.2, 1.0), (0.0, 0.4))
                yield
            if rng.random() < 0.15:
                # It gives way and falls on its belly.
                self._go(self._lying(), 0.0, (0.02, 0.08), (0.2, 0.6))
                yield

    def _rise(self) -> Iterator[None]:
        """Put the feet below the hips and push, at times in vain at first, or with one end ahead of the other."""
        rng = self._rng
        while True:
            self._go(self._stance((0.11, 0.14), 0.3), rng.uniform(0.0, 0.5), (0.15, 0.8), (0.0, 0.3))
            yield
            if rng.random() < 0.3:
                self._go(self._stance((0.16, 0.24), 2.5), rng.uniform(0.6, 1.0), (0.15, 0.8), (0.0, 0.3))
                yield
            self._go(self._stance((0.22, 0.32), 0.2), rng.uniform(0.8, 1.0), (0.2, 1.2), (0.1, 0.6))
            yield
            if rng.random() < 0.85:
                return
            self._go(self._lying(), 0.0, (0.1, 0.6), (0.0, 0.4))
            yield

    def _trot(self) -> None:
        """Trot slowly for a moment."""
        rng = self._rng
        slow = Command(
            gait="trot", vx=rng.uniform(-0.3, 0.4), vy=rng.uniform(-0.2, 0.2), yaw_rate=rng.uniform(-0.5, 0.5)
        )
        (command,) = Proportions.of(self.robot).commands([slow])
        self._walker = Controller(self.robot, "stand", self._kp, self._kd, self.period)
        self._walker.command(command)
        self.wanted, self.gait_id = self._walker.wanted, self._walker.gait_id
        self._glide, self._hold, self._noise = rng.uniform(0.8, 2.0), rng.uniform(0.0, 1.5), 0.0

    def _lying(self) -> Array:
        """A folded posture whose feet reach hardly lower than the belly."""
        rng, robot = self._rng, self.robot
        lowest = -0.5 * float(robot.shapes.base[2]) - self._size * rng.uniform(0.0, 0.03)
        side = np.sign(robot.offsets[:, 0, 1])
        best, highest = robot.q_stand, -np.inf
        for _ in range(30):
            # Folded legs spread, or at times the knees go up.
            wide = rng.random() < 0.75
            spread, thigh = (
                (rng.uniform(0.2, 0.85), rng.uniform(1.2, 1.7)) if wide else rng.uniform((0, 1.8), (0.4, 2.8))
            )
            bend = rng.uniform(0.0, 0.3)
            q = np.empty((robot.num_legs, 3))
            q[:, 0] = robot.signs[:, 0] * side * spread
            q[:, 1] = -robot.signs[:, 1] * robot.knee_sign * thigh
            q[:, 2] = (robot.q_lower if robot.knee_sign < 0.0 else robot.q_upper)[2::3] - robot.knee_sign * bend
            pose = np.clip(q.ravel(), robot.q_lower, robot.q_upper)
            height = float((forward(robot, pose)[0][:, 2] - robot.foot_radius).min())
            if height > highest:
                best, highest = pose, height
            if height > lowest:
                break
        return best + 0.03 * rng.normal(size=best.shape)

    def _fidget(self) -> Array:
        """Other places for one leg, a pair or all of them, while the belly carries the robot."""
        rng, legs = self._rng, self.robot.num_legs
        moving = rng.random(legs) < rng.choice([0.3, 0.6, 1.0])
        draw = rng.uniform(-1, 1, (legs, 3)) * (0.4, 0.8, 0.7)
        pose: Array = np.where(moving[:, None], self._lying().reshape(legs, 3) + draw, self._to.reshape(legs, 3))
        return pose.ravel()
