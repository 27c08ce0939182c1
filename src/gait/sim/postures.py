"""Legs that glide from one posture drawn at random to the next, instead of walking.

Stationary rollouts (`RandomTargets`) lie, stand up, shift their weight, wriggle and lie down again, so that an
estimator learns that the base is at rest under any joint target.

Rising rollouts (`Rising`) lie on the belly, get up, stand or trot for a moment, and lie down again. While the belly
carries the robot its legs move as they like: feet slide, hang free or bear a part. The data then contain legs whose
motion does not measure the velocity of the base. Of the gaits there is the trot only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.kernels import forward, inverse
from gait.sim.mpc.controller import Controller
from gait.sim.proportions import Proportions
from gait.sim.settings import Command, fit_commands

_LYING = (0.0, 1.35, -2.70)


class LegMotion:
    """A way to move the legs other than walking, here to hold a posture; the interface of the walking controller."""

    q_des: Array | None = None
    """The posture (L, 3); None gives way wherever the legs are moved."""
    gait_id = -1
    """Commanded gait, for the record; -1 where there is none."""

    def __init__(self, robot: Robot, kp: float, kd: float, period: float, rng: np.random.Generator) -> None:
        self.robot, self._kp, self._kd, self.period, self.rng = robot, kp, kd, period, rng
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
        return q.reshape(-1, 3) if self.q_des is None else self.q_des

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
        target += self._noise * self.rng.normal(size=target.shape)
        return target.reshape(-1, 3)

    def _choose(self) -> None:
        rng = self.rng
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
        rng, robot = self.rng, self.robot
        level = self._size * rng.uniform(*height)
        shift = self._size * (min(lean, 1.0) * rng.uniform(-1, 1, 2))
        x, y, z = 0.15 * (lean * rng.uniform(-1, 1, 3))
        R = np.array([[1, -z, y], [z, 1, -x], [-y, x, 1]])
        hips = robot.offsets[:, 0] + robot.offsets[:, 1]
        feet = [R @ np.array([hip[0] + 0.04 * shift[0], hip[1] + 0.03 * shift[1], -level]) for hip in hips]
        return np.clip(inverse(robot, np.array(feet)).ravel(), robot.q_lower, robot.q_upper)


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
                # No robot walks on its side or its back.
                self._choose()
        # No farther from the joints than the drives can pull.
        most = self.robot.torque_limit / self._kp
        self._last = np.clip(target.ravel(), q - most, q + most)
        return self._last.reshape(-1, 3).copy()

    def _choose(self) -> None:
        # What the walker asked for holds the robot up, so a glide begins there.
        if self._walker is not None:
            self._to, self._weight_to, self._walker = self._last.copy(), 0.0, None
        self._from, self._weight_from, self._passed = self._to, self._weight_to, 0.0
        self.wanted, self.gait_id = np.zeros(3), -1
        self._noise = float(self.rng.choice([0.0, 0.0, 0.002, 0.01]))
        next(self._sequence)

    def _go(self, pose: Array, weight: float, glide: tuple[float, float], hold: tuple[float, float]) -> Iterator[None]:
        """Glide to a posture that carries a share of the weight, and hold it."""
        self._to, self._weight_to = np.clip(pose, self.robot.q_lower, self.robot.q_upper), weight
        self._glide, self._hold = self.rng.uniform(*glide), self.rng.uniform(*hold)
        yield

    def _actions(self) -> Iterator[None]:
        rng = self.rng
        while True:
            yield from self._go(self._lying(), 0.0, (0.1, 0.6), (0.0, 0.8))
            while rng.random() < 0.75:
                yield from self._go(self._fidget(), 0.0, (0.08, 0.7), (0.0, 0.5))
            yield from self._rise()
            for _ in range(rng.integers(1, 4)):
                if rng.random() < 0.4:
                    yield from self._trot()
                else:
                    yield from self._go(self._stance((0.18, 0.32), 1.0), rng.uniform(0.7, 1.0), (0.2, 1.2), (0.0, 1.0))
            if rng.random() < 0.7:
                yield from self._go(self._stance((0.12, 0.16), 0.3), rng.uniform(0.5, 1.0), (0.2, 1.0), (0.0, 0.4))
            if rng.random() < 0.15:
                # It gives way and falls on its belly.
                yield from self._go(self._lying(), 0.0, (0.02, 0.08), (0.2, 0.6))

    def _rise(self) -> Iterator[None]:
        """Put the feet below the hips and push, at times in vain at first, or with one end ahead of the other."""
        rng = self.rng
        while True:
            yield from self._go(self._stance((0.11, 0.14), 0.3), rng.uniform(0.0, 0.5), (0.15, 0.8), (0.0, 0.3))
            if rng.random() < 0.3:
                yield from self._go(self._stance((0.16, 0.24), 2.5), rng.uniform(0.6, 1.0), (0.15, 0.8), (0.0, 0.3))
            yield from self._go(self._stance((0.22, 0.32), 0.2), rng.uniform(0.8, 1.0), (0.2, 1.2), (0.1, 0.6))
            if rng.random() < 0.85:
                return
            yield from self._go(self._lying(), 0.0, (0.1, 0.6), (0.0, 0.4))

    def _trot(self) -> Iterator[None]:
        """Trot slowly for a moment."""
        rng = self.rng
        vx, vy, yaw_rate = rng.uniform((-0.3, -0.2, -0.5), (0.4, 0.2, 0.5))
        self._walker = Controller(self.robot, "stand", self._kp, self._kd, self.period)
        slow = Command(gait="trot", vx=vx, vy=vy, yaw_rate=yaw_rate)
        self._walker.command(*fit_commands([slow], self.robot))
        self.wanted, self.gait_id = self._walker.wanted, self._walker.gait_id
        self._glide, self._hold, self._noise = rng.uniform(0.8, 2.0), rng.uniform(0.0, 1.5), 0.0
        yield

    def _lying(self) -> Array:
        """A folded posture whose feet reach hardly lower than the belly."""
        rng, robot = self.rng, self.robot
        lowest = -0.5 * float(robot.shapes.base[2]) - self._size * rng.uniform(0.0, 0.03)
        side = np.sign(robot.offsets[:, 0, 1])
        best, highest = robot.q_stand, -np.inf
        for _ in range(30):
            # Folded legs spread, or at times the knees go up.
            wide = rng.random() < 0.75
            spread, thigh = rng.uniform((0.2, 1.2), (0.85, 1.7)) if wide else rng.uniform((0, 1.8), (0.4, 2.8))
            bend = rng.uniform(0.0, 0.3)
            q = np.empty((robot.num_legs, 3))
            q[:, 0] = robot.signs[:, 0] * side * spread
            knee = robot.knee_signs
            q[:, 1] = -robot.signs[:, 1] * knee * thigh
            q[:, 2] = np.where(knee < 0.0, robot.q_lower[2::3], robot.q_upper[2::3]) - knee * bend
            pose = np.clip(q.ravel(), robot.q_lower, robot.q_upper)
            height = float((forward(robot, pose)[0][:, 2] - robot.foot_radius).min())
            if height > highest:
                best, highest = pose, height
            if height > lowest:
                break
        return best + 0.03 * rng.normal(size=best.shape)

    def _fidget(self) -> Array:
        """Other places for one leg, a pair or all of them, while the belly carries the robot."""
        rng, legs = self.rng, self.robot.num_legs
        moving = rng.random(legs) < rng.choice([0.3, 0.6, 1.0])
        draw = rng.uniform(-1, 1, (legs, 3)) * (0.4, 0.8, 0.7)
        return np.where(moving[:, None], self._lying().reshape(legs, 3) + draw, self._to.reshape(legs, 3)).ravel()
