"""The walking controller: from the robot's state to joint targets."""

from __future__ import annotations

import math

import numpy as np

from gait.arrays import Array
from gait.robot import Link, Robot, combined
from gait.sim.gaits import GaitClock, gait_id, gait_of
from gait.sim.kernels import Legs
from gait.sim.mpc.footwork import find_feet, joint_targets, observe
from gait.sim.mpc.planner import HORIZON, Cost, ForcePlanner, look_ahead
from gait.sim.mpc.walk_state import Pattern, Preview, Swing, Tuning, WalkReading, WalkState
from gait.sim.proportions import Proportions
from gait.sim.settings import Command


def rigid_body(robot: Robot, q: Array) -> Link:
    """The whole robot, frozen at the joints `q` (J,), as one link in the base frame."""
    parts = [robot.base]
    for i in range(robot.num_legs):
        origin, R = np.zeros(3), np.eye(3)
        for k, link in enumerate(robot.links[i]):
            origin = origin + R @ robot.offsets[i, k]
            angle = robot.signs[i, k] * q[3 * i + k]
            c, s = math.cos(angle), math.sin(angle)
            R = R @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]] if k == 0 else [[c, 0, s], [0, 1, 0], [-s, 0, c]])
            parts.append(Link(link.mass, origin + R @ link.com, R @ link.inertia @ R.T))
    return combined(parts)


class Controller:
    """Walks a robot: gait clock, force planner, footholds and joint targets.

    Its inputs are joint positions and velocities, angular rate, orientation and velocity; it keeps its own odometry
    from them; height above the ground comes from the standing legs. It never sees true positions or contacts. `gait_id`
    is the gait that is walked or changed to, as episodes record it."""

    def __init__(self, robot: Robot, gait_name: str, kp: float, kd: float, period: float) -> None:
        size, legs, body = Proportions.of(robot), robot.num_legs, rigid_body(robot, robot.q_stand)
        lengths = {"height": "length", "leash": "length", "slip_speed": "time", "foot_gain": "time"}
        gains = {"swing_kp": "stiffness", "swing_kd": "damping", "grip": "damping"}
        c = size.fit(Tuning(), **lengths, **gains, max_force="mass", yaw_acceleration="/length")
        self.robot, self.period, gait = robot, period, gait_of(gait_name, robot)
        self.clock, self.gait_id = GaitClock(gait), gait_id(gait_name)
        self._com_b, self.planner = body.com, ForcePlanner(Cost.of(robot.mass, body.inertia, size), c.max_force)
        self._legs, self.state, self._view = Legs.of(robot), WalkState.of(legs), Preview.of(HORIZON, legs)
        # Robots lean on their feet: neutral places are below the hips, shifted under the centre of mass.
        self._under_hips: Array = (robot.offsets[:, 0] + robot.offsets[:, 1])[:, :2]
        self._shift = self._spread = 0.0
        self._swing = Swing()
        self._place_hips()
        # What the drive lacks in stiffness a fast enough control loop can add; a slow one would oscillate.
        trust = min(1.0, 0.004 / period)
        self.tuning = c._replace(
            dt=period,
            ground_rate=min(1.0, period / 0.15),
            kp=float(kp),
            kd=float(kd),
            extra_kp=max(c.swing_kp - kp, 0.0) * trust,
            extra_kd=max(c.swing_kd - kd, 0.0) * trust,
            release=1.0 - math.exp(-period * kp / c.grip),
        )
        self._plan_every = max(1, round(1.0 / (c.plan_rate * period)))
        self.height, self.step_height, self.frequency = c.height, gait.step_height, 0.0
        self.friction, self.wanted = c.friction, np.zeros(3)
        self.q_des, self._count = robot.q_stand.reshape(legs, 3).copy(), 0

    def command(self, command: Command) -> None:
        """Follow another command from now on."""
        if command.gait:
            self.clock.switch(gait_of(command.gait, self.robot))
            self.gait_id = gait_id(command.gait)
        self.wanted[:] = command.vx, command.vy, command.yaw_rate
        self.height = self.tuning.height + command.height
        self.step_height = command.step_height or self.clock.gait.step_height
        self.frequency = command.step_frequency
        self._shift, self._spread = command.shift, command.spread
        self._swing = Swing(command.carried, command.abrupt)
        self._place_hips()

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period.

        Args:
            q: joint positions (J,).
            dq: joint velocities (J,).
            quat: orientation wxyz.
            omega_b: angular rate in the base frame.
            vel_w: velocity of the base in the world frame.
        """
        clock, state = self.clock, self.state
        reading = WalkReading(q.reshape(-1, 3), dq.reshape(-1, 3), quat, omega_b, vel_w)
        if self._count == 0:
            self._begin(reading)
        else:
            state.pos[:] += vel_w * self.period
        if clock.advance(self.period, self.frequency):
            self._place_hips()
        # To stand is to stop: brake while the legs still step.
        wanted = self.wanted * float(clock.gait.duty < 1.0)
        pattern = Pattern(clock.phases, clock.duty, clock.period)
        slip, c = observe(self._legs, reading, self.tuning, pattern, wanted, state), self.tuning
        # Count on less friction at once when feet slip, and on more again little by little when they hold.
        if slip > c.slip_speed:
            self.friction = max(self.friction * math.exp(-self.period / c.caution_time), c.least_friction)
        else:
            self.friction = min(self.friction + c.trust_rate * self.period, c.friction)
        if self._count % self._plan_every == 0:
            look_ahead(reading, self._com_b, self.height, pattern, state, self._view)
            yaw, dt = math.atan2(state.R[1, 0], state.R[0, 0]), clock.period / HORIZON
            self.planner.plan(dt, self.friction, yaw, self._view, state.forces, state.acc)
        self._count += 1
        joint_targets(self._legs, reading, self.tuning, self._swing._replace(lift=self.step_height), state, self.q_des)
        return self.q_des

    def _begin(self, reading: WalkReading) -> None:
        """The feet stand on the ground where they are."""
        state = self.state
        find_feet(self._legs, reading.q, reading.quat, state)
        state.anchor[:] = state.grip[:] = state.feet_w
        state.ground[:] = state.feet_w.mean(axis=0)
        state.pose[2] = math.atan2(state.R[1, 0], state.R[0, 0])

    def _place_hips(self) -> None:
        outward = np.array([0.0, self._spread]) - self.clock.inset
        self.state.hips[:] = self._under_hips + np.sign(self._under_hips) * outward + [self._shift, 0.0]
