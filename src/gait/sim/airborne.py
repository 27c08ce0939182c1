"""Airborne rollouts: the robot is carried.

The robot is lifted, carried, swung, put down, dropped, tossed and pushed, while its legs trot, step, swim, reach, hold
or hang. The data then contain what no trot shows: legs that move without load, at any velocity.

The hand is a spring and damper between the base and a target that moves smoothly. It acts through MuJoCo's external
force on the base, so accelerometer, contacts and joints answer to it as to any other force. `Hand` is the sequence of
actions, drawn at random; `gait.sim.handled` moves the legs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.handled import BRACE, LAND, HandledLegs
from gait.sim.kernels import compiled, norm, product, rotate, rotation_from_quat, so3_log
from gait.sim.mpc.controller import rigid_body
from gait.sim.mpc.planner import GRAVITY
from gait.sim.physics import mujoco
from gait.sim.proportions import Proportions
from gait.sim.world import TIMESTEP, stand_state

MAX_FORCE, MAX_TORQUE = 450.0, 40.0
"""Newtons and newton metres: what two strong arms can do to a robot of 12 to 14 kg for a moment. For a robot of another
size they are scaled."""
HOME = 2.5
"""Metres from the start beyond which the robot is carried back, since some terrains end."""


@compiled
def _from_euler(angles: Array) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll) of roll, pitch and yaw."""
    cr, cp, cy = math.cos(angles[0]), math.cos(angles[1]), math.cos(angles[2])
    sr, sp, sy = math.sin(angles[0]), math.sin(angles[1]), math.sin(angles[2])
    R = np.empty((3, 3))
    R[0, 0], R[0, 1], R[0, 2] = cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr
    R[1, 0], R[1, 1], R[1, 2] = sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr
    R[2, 0], R[2, 1], R[2, 2] = -sp, cp * sr, cp * cr
    return R


class Grasp(NamedTuple):
    """How the hand holds the base. Stiffness and damping are over mass, or inertia."""

    stiffness: float
    damping: float
    turn_stiffness: float
    turn_damping: float
    mass: float
    grip_rate: float
    """How fast the grip changes a second."""
    eagerness: float
    """How fast the target takes on the goal a second."""
    leash: float = 0.2
    """How far the target may be from the base, m."""
    grip: float = 1.0
    """Wanted share of the force, 0 to 1."""


class HandTarget(NamedTuple):
    """Where the hand is; every array is updated in place."""

    pos: Array
    vel: Array
    rpy: Array
    """Roll, pitch and yaw (3,)."""
    grip: Array
    """Share of the force now (1,)."""
    time: Array
    """Seconds since it took hold (1,)."""


@compiled
def pull(
    qpos: Array, qvel: Array, goal: Array, sway: Array, grasp: Grasp, inertia: Array, target: HandTarget, wrench: Array
) -> None:
    """Move the hand's target on by one physics step, and pull the base towards it.

    Args:
        qpos: position of the robot; the base comes first.
        qvel: its velocity, that of the base linear in the world and angular in the base frame.
        goal: velocity of the target (3,), its roll and pitch, its yaw rate.
        sway: amplitude, frequency in Hz and phase (3, 6) of what is added: to the velocity, and to roll, pitch, yaw.
        grasp: how it holds.
        inertia: of the robot about the axes of the base (3,).
        target: updated.
        wrench: output, force and torque in the world frame (6,).
    """
    step = grasp.grip_rate * TIMESTEP
    target.grip[0] += min(max(grasp.grip - target.grip[0], -step), step)
    target.time[0] += TIMESTEP
    wave = sway[0] * np.sin(2.0 * math.pi * sway[1] * target.time[0] + sway[2])
    near, base = min(grasp.eagerness * TIMESTEP, 1.0), qpos[:3]
    target.vel[:] += near * (goal[:3] - target.vel)
    target.pos[:] += (target.vel + wave[:3]) * TIMESTEP
    # The target waits for a robot that is stuck or lags behind.
    shrink = min(grasp.leash / max(norm(target.pos - base), 1e-9), 1.0)
    target.pos[:] = base + shrink * (target.pos - base)
    motion = target.vel + wave[:3] - qvel[:3]
    force = grasp.mass * (grasp.stiffness * (target.pos - base) + grasp.damping * motion)
    force[2] += grasp.mass * GRAVITY
    target.rpy[:2] += near * (goal[3:5] - target.rpy[:2])
    target.rpy[2] += goal[5] * TIMESTEP
    R = rotation_from_quat(qpos[3:7])
    # From the base's orientation to the target's, in the base frame.
    error = so3_log(product(R.T, _from_euler(target.rpy + wave[3:])))
    ease = min(0.8 / max(norm(error), 1e-9), 1.0)
    turning = R[2] * goal[5] - qvel[3:6]
    torque_b = inertia * (grasp.turn_stiffness * ease * error + grasp.turn_damping * turning)
    wrench[:3] = target.grip[0] * min(MAX_FORCE / max(norm(force), 1e-9), 1.0) * force
    wrench[3:] = target.grip[0] * min(MAX_TORQUE / max(norm(torque_b), 1e-9), 1.0) * rotate(R, torque_b)


class Hand:
    """What happens to the robot in an airborne episode: a sequence that is drawn along the way."""

    def __init__(self, robot: Robot, model: Any, data: Any, period: float, legs: HandledLegs, rng: Any) -> None:
        """Begin beside the robot.

        Args:
            robot: whose base is held.
            model: the MuJoCo model.
            data: its state.
            period: seconds of a control step.
            legs: learn from here whether they are in the air.
            rng: draws the sequence.
        """
        self._model, self._data, self._period, self._legs, self.rng = model, data, period, legs, rng
        self._base = model.body(robot.base_link).id
        self._size = Proportions.of(robot)
        self._mass = float(model.body_subtreemass[self._base])
        self._standing = float(stand_state(robot)[2])
        # The hand pulls as at a Go1, and what comes out is made as large as the robot.
        self._inertia = np.diag(rigid_body(robot, robot.q_stand).inertia) / self._size.inertia
        self._larger = np.repeat([self._size.mass, self._size.inertia], 3)
        self._goal, self._sway, self._holds = np.zeros(6), np.zeros((3, 6)), False
        self._wrench: Array = data.xfrc_applied[self._base]

    def step(self, model: Any, data: Any) -> None:
        """Stands in for MuJoCo's own step: pull, then step."""
        if self._holds:
            pull(data.qpos, data.qvel, self._goal, self._sway, self._grasp, self._inertia, self._target, self._wrench)
            self._wrench *= self._larger
        mujoco.mj_step(model, data)

    def _take(self, ramp: float) -> None:
        """Take hold of the robot where it is and as it moves."""
        rng, qpos, qvel = self.rng, self._data.qpos, self._data.qvel
        place, turn = rng.uniform(8.0, 22.0), rng.uniform(7.0, 14.0)
        damping, mass = 2.0 * rng.uniform(0.6, 1.1, 2) * (place, turn), self._mass / self._size.mass
        self._grasp = Grasp(place**2, damping[0], turn**2, damping[1], mass, 1.0 / ramp, rng.uniform(4.0, 12.0))
        w, x, y, z = qpos[3:7]
        yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        self._target = HandTarget(qpos[:3].copy(), qvel[:3].copy(), np.array([0.0, 0.0, yaw]), np.zeros(1), np.zeros(1))
        self._sway[0], self._goal[:] = 0.0, 0.0
        self._holds = True

    def actions(self) -> Iterator[None]:
        """The sequence, to be continued once a control step."""
        rng = self.rng
        yield from self._leave(rng.uniform(0.2, 1.5))
        while True:
            how, upright = rng.choice(["toss", "carry"], p=[0.2, 0.8]), self._upright() > 0.7
            if how == "carry" or not upright:
                yield from self._carry()
                # Who has just picked it up from its side rather puts it on its feet.
                how = rng.choice(["put", "drop", "toss"], p=[0.35, 0.4, 0.25] if upright else [0.7, 0.3, 0.0])
                if how == "toss" and self._above() > self._standing + 0.4:
                    how = "drop"
            if how == "put":
                yield from self._put()
            elif how == "drop":
                yield from self._drop()
                yield from self._fly()
            else:
                for _ in range(rng.integers(1, 4)):
                    yield from self._toss()
                    yield from self._fly()
                    if self._upright() < 0.7:
                        break
            # At times it is caught in mid-air, or taken up again at once.
            if rng.random() < 0.9:
                yield from self._leave(rng.uniform(0.8, 4.4))

    def _carry(self) -> Iterator[None]:
        """Lift the robot and take it somewhere."""
        self._take(self.rng.uniform(0.05, 0.3))
        if self.rng.random() < 0.7:
            self._legs.airborne = True
            self._legs.choose()
        for _ in range(self.rng.integers(1, 3)):
            self._swing()
            height, fast = self.rng.uniform(0.1, 0.8), self.rng.uniform(0.3, 2.0)
            self._aim(self.rng.choice([1.0, 1.7], p=[0.6, 0.4]), self.rng.uniform(0.0, 0.5), 1.5)
            for _ in self._steps(self.rng.uniform(0.3, 1.1)):
                self._rise(height, fast)
                yield
                self._legs.airborne = self._legs.airborne or self._above() > self._standing + 0.08

    def _drop(self) -> Iterator[None]:
        """Let go at a height of 5 to 40 cm."""
        height, fast = self.rng.uniform(0.05, 0.4), self.rng.uniform(0.5, 1.5)
        self._sway[0] *= self.rng.random()
        self._aim(1.2, self.rng.uniform(0.0, 0.3), 1.0)
        yield from self._until(1.0, lambda: abs(self._above() - self._standing - height) < 0.05, (height, fast))

    def _put(self) -> Iterator[None]:
        """Lower the robot until its feet or its body bear it, and let go slowly."""
        self._aim(0.0, 0.05, 0.3)
        self._sway[0] = 0.0
        self._goal[2] = -self.rng.uniform(0.25, 0.8)
        yield from self._until(5.0, lambda: self._bears(0.4 * self._mass * GRAVITY))
        self._land()
        self._grasp = self._grasp._replace(grip=0.0, grip_rate=1.0 / self.rng.uniform(0.1, 0.4))
        while self._target.grip[0] > 0.0:
            yield
        self._let_go()

    def _toss(self) -> Iterator[None]:
        """Pull the robot up, or along, until it is as fast as wanted."""
        if not self._holds:
            self._take(0.02)
        self._aim(self.rng.choice([0.6, 1.8], p=[0.6, 0.4]), 0.2, 1.5)
        self._sway[0] = 0.0
        # A leash of no length: the hand holds a velocity, not a place.
        self._grasp = self._grasp._replace(damping=15.0, leash=0.0, eagerness=100.0)
        # The higher it is, the less it may rise: it has to come down on its feet.
        self._goal[2] = self.rng.uniform(*((0.3, 2.6) if self._above() < self._standing + 0.15 else (-0.5, 1.3)))
        yield from self._until(0.4, lambda: np.abs(self._goal[:3] - self._data.qvel[:3]).max() < 0.15)

    def _fly(self) -> Iterator[None]:
        """Let go at once, and wait for the ground or for a moment."""
        self._let_go()
        self._legs.airborne = True
        if self.rng.random() < 0.4:
            self._legs.choose(BRACE)
        if (yield from self._until(self.rng.uniform(0.15, 2.0), lambda: self._bears(0.0))):
            self._land()

    def _leave(self, seconds: float) -> Iterator[None]:
        """Leave the robot alone, but for a push at times; one that lies on its side or back is soon taken up again."""
        rng = self.rng
        self._let_go()
        pushed, duration = rng.uniform(0.0, 2.0 * seconds), rng.uniform(0.05, 0.3)
        angle, impulse = rng.uniform(-math.pi, math.pi), rng.uniform(1.0, 8.0)
        force, lying = self._size.mass * impulse / duration, 0.0
        push = force * np.array([math.cos(angle), math.sin(angle), rng.uniform(-0.3, 0.5)])
        for now in self._steps(seconds):
            self._wrench[:3] = push if pushed <= now < pushed + duration else 0.0
            yield
            lying += self._period * (self._upright() < 0.5)
            if lying > 0.3:
                break
        self._wrench[:3] = 0.0

    def _steps(self, seconds: float) -> Iterator[float]:
        """Time passed, once a control step."""
        for i in range(max(round(seconds / self._period), 1)):
            yield i * self._period

    def _until(self, time: float, done: Callable[[], bool], rise: Sequence[float] = ()) -> Generator[None, None, bool]:
        """Wait until something is done, which is returned, or for some time; aim for a height meanwhile."""
        for _ in self._steps(time):
            if rise:
                self._rise(*rise)
            yield
            if done():
                return True
        return False

    def _let_go(self) -> None:
        self._holds = False
        self._wrench[:] = 0.0

    def _land(self) -> None:
        self._legs.airborne = False
        if self.rng.random() < 0.6:
            self._legs.choose(LAND)

    def _aim(self, speed: float, tilt: float, yaw_rate: float) -> None:
        """Draw where to go: a horizontal velocity, roll and pitch, and a yaw rate, each up to a bound."""
        rng = self.rng
        x, y = self._data.qpos[:2]
        angle, speed = rng.uniform(-math.pi, math.pi), speed * math.sqrt(rng.random())
        if math.hypot(x, y) > HOME:
            angle = math.atan2(-y, -x)
        self._goal[:3] = speed * math.cos(angle), speed * math.sin(angle), 0.0
        self._goal[3:] = rng.uniform(-1, 1, 3) * (tilt, tilt, yaw_rate)

    def _swing(self) -> None:
        """Draw how the hand trembles and swings: half of the time not at all."""
        size = self.rng.choice([0.0, 1.0]) * self.rng.random()
        self._sway[0] = size * self.rng.uniform(0.0, 1.0, 6) * (0.7, 0.7, 0.7, 0.2, 0.2, 0.3)
        self._sway[1] = self.rng.uniform(0.3, 2.5, 6)
        self._sway[2] = self.rng.uniform(-math.pi, math.pi, 6)

    def _rise(self, height: float, fast: float) -> None:
        """Aim for a height over that of a standing robot."""
        away = self._standing + height - self._above()
        self._goal[2] = min(max(4.0 * away, -fast), fast)

    def _upright(self) -> float:
        """Cosine of the tilt."""
        return float(self._data.xmat[self._base, 8])

    def _bears(self, least: float) -> bool:
        """Whether there are more newtons than that on all feet, or the body touches anything."""
        forces = self._data.sensordata[1:13].reshape(4, 3)
        return bool(np.sqrt((forces**2).sum(axis=1)).sum() > least or self._data.sensordata[0] > 0.0)

    def _above(self) -> float:
        """Height of the base over what lies below it, m."""
        model, start, down = self._model, self._data.qpos[:3].copy(), np.array([0.0, 0.0, -1.0])
        gone, exclude, geom = 0.0, self._base, np.zeros(1, dtype=np.int32)
        # Its own legs may be in the way: look on below them.
        for _ in range(8):
            seen = mujoco.mj_ray(model, self._data, start, down, None, True, exclude, geom)
            if seen < 0.0:
                return float(self._data.qpos[2])
            gone += seen
            exclude = int(model.geom_bodyid[geom[0]])
            if model.body_rootid[exclude] != self._base:
                break
            start[2] -= seen
        return float(gone)
