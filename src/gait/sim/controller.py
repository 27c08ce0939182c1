"""The walking controller: from what the robot feels to the joint targets it follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.robot import Robot
from gait.sim import body
from gait.sim.commands import Command
from gait.sim.footwork import feet_in_world
from gait.sim.gaits import GaitClock, gait_id, gait_of
from gait.sim.mpc import HORIZON, ForcePlanner, MpcWeights
from gait.sim.observe import observe
from gait.sim.proportions import Proportions
from gait.sim.targets import joint_targets

_STILL: Array = np.zeros(3)


@dataclass(frozen=True)
class ControllerConfig:
    """Settings of the walking controller of a Go1, the same for every gait and terrain; `fitted` makes a robot's."""

    height: float = 0.275
    """Height of the base above the centres of standing feet, in metres."""
    friction: float = 0.5
    """Friction the force planner counts on while no foot slips; it does not know the true one."""
    least_friction: float = 0.14
    """Friction it still counts on when feet slip."""
    slip_speed: float = 0.2
    """Speed of a standing foot, in m/s, from which on it counts as slipping."""
    caution_time: float = 0.1
    """Seconds of slipping in which trust in the ground falls to a third."""
    trust_rate: float = 0.6
    """How fast trust returns when feet hold, friction per second."""
    max_force: float = 180.0
    """Largest vertical force of a foot in newtons."""
    plan_rate: float = 60.0
    """Force plans a second, at most one per control step."""
    foot_gain: float = 0.03
    """Seconds by which a velocity error moves a foothold."""
    acceleration: float = 2.0
    """How fast the velocity command is followed, m/s^2."""
    yaw_acceleration: float = 3.0
    """How fast the turning command is followed, rad/s^2."""
    leash: float = 0.05
    """How far the wanted position may run ahead of the body, in metres."""
    swing_kp: float = 60.0
    """Position gain that swinging legs should feel, whatever the drive's own, in N m/rad."""
    swing_kd: float = 1.2
    """Velocity gain that swinging legs should feel, in N m s/rad."""
    grip: float = 0.35
    """How firmly a standing foot holds on to its place against slipping, in N m s/rad: that place drifts after the foot
    within `grip / kp` seconds, so stiff and weak drives brake a slip alike."""
    weights: MpcWeights = field(default_factory=MpcWeights)
    """What the force planner minimises."""

    def fitted(self, to: Proportions) -> ControllerConfig:
        """The settings that make a robot of other proportions walk alike."""
        return replace(
            self,
            height=self.height * to.length,
            slip_speed=self.slip_speed * to.time,
            max_force=self.max_force * to.mass,
            foot_gain=self.foot_gain * to.time,
            yaw_acceleration=self.yaw_acceleration / to.length,
            leash=self.leash * to.length,
            swing_kp=self.swing_kp * to.stiffness,
            swing_kd=self.swing_kd * to.damping,
            grip=self.grip * to.damping,
            weights=self.weights.fitted(to),
        )


def rigid_body(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Centre of mass (3,) in the base frame and inertia (3, 3) about it of the whole robot, frozen at `q`."""
    parts = [(robot.base.mass, robot.base.com, robot.base.inertia)]
    for i in range(robot.num_legs):
        origin, R = np.zeros(3), np.eye(3)
        for k in range(3):
            origin = origin + R @ robot.offsets[i, k]
            angle = robot.signs[i, k] * q[3 * i + k]
            cosine, sine = math.cos(angle), math.sin(angle)
            about_x, about_y = (
                [[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]],
                [[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]],
            )
            turn = about_x if k == 0 else about_y
            R = R @ np.array(turn)
            link = robot.links[i][k]
            parts.append((link.mass, origin + R @ link.com, R @ link.inertia @ R.T))
    mass = sum(part[0] for part in parts)
    com: Array = np.sum([m * c for m, c, _ in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for m, c, own in parts:
        arm = c - com
        inertia += own + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return com, inertia


class Controller:
    """Walks a robot: gait clock, force planner, footholds and joint targets.

    It knows joint positions and velocities, angular rate, orientation and velocity, and keeps its own odometry from
    them; height above the ground comes from the standing legs. It never sees true positions or contacts. `gait_id` is
    the gait that is walked or changed to, as episodes record it.
    """

    def __init__(
        self, robot: Robot, gait_name: str, kp: float, kd: float, period: float, config: ControllerConfig | None = None
    ) -> None:
        self.config = (config or ControllerConfig()).fitted(Proportions.of(robot))
        self.robot = robot
        gait = gait_of(gait_name, robot)
        self.clock = GaitClock(gait)
        self.gait_id = gait_id(gait_name)
        self.period = period
        com_b, inertia = rigid_body(robot, robot.q_stand)
        self._com_b = com_b
        self.planner = ForcePlanner(robot.mass, inertia, self.config.weights, self.config.max_force)
        # Robots lean on their feet: neutral places are below the hips, shifted under the centre of mass.
        feet = robot.offsets[:, 0] + robot.offsets[:, 1]
        self._under_hips: Array = np.ascontiguousarray(feet[:, :2])
        self._hips: Array = self._under_hips - np.sign(self._under_hips) * gait.inset
        self._inertial, self._knee_sign = robot.leg_inertial, robot.knee_sign
        # What the drive lacks in stiffness a fast enough control loop can add; a slow one would oscillate.
        trust = min(1.0, 0.004 / period)
        extra_kp = max(self.config.swing_kp - kp, 0.0) * trust
        extra_kd = max(self.config.swing_kd - kd, 0.0) * trust
        relax = 1.0 - math.exp(-period * kp / self.config.grip)
        self._gains = np.array([kp, kd, period, extra_kp, extra_kd, relax])
        self._plan_every = max(1, round(1.0 / (self.config.plan_rate * period)))
        self.height, self.step_height, self.frequency = self.config.height, gait.step_height, 0.0
        self.friction = self.config.friction
        self.wanted, self.following = np.zeros(3), np.zeros(3)
        legs = robot.num_legs
        self.stance = np.ones(legs, dtype=np.int64)
        self.forces = np.zeros((legs, 3))
        self.pos, self._ground, self._slope = np.zeros(3), np.zeros(3), np.zeros(2)
        self._pose, self._vel_cmd, self._com_w = np.zeros(3), np.zeros(3), np.zeros(3)
        c = self.config
        self._limits = np.array([c.acceleration, c.acceleration, c.yaw_acceleration, c.leash, 0.3])
        self._timing = np.array([gait.duty, gait.period, period, min(1.0, period / 0.15), c.foot_gain])
        self._lifted, self._progress, self._swing_time = np.zeros(legs), np.zeros(legs), np.full(legs, 0.2)
        self._start, self._anchor, self._target, self._grip = (np.zeros((legs, 3)) for _ in range(4))
        self._feet_b, self._feet_w, self._jac = np.zeros((legs, 3)), np.zeros((legs, 3)), np.zeros((legs, 3, 3))
        self._R, self._acc = np.eye(3), np.zeros(3)
        self._share, self._arms = np.zeros((HORIZON, legs)), np.zeros((HORIZON, legs, 3))
        self._reference, self._state, self._offset = np.zeros((HORIZON, 12)), np.zeros(12), np.zeros(6)
        self.q_des = robot.q_stand.reshape(legs, 3).copy()
        self._count = 0

    def command(self, command: Command) -> None:
        """Follow another command from now on."""
        if command.gait:
            self.clock.switch(gait_of(command.gait, self.robot))
            self.gait_id = gait_id(command.gait)
        self.wanted[:] = command.vx, command.vy, command.yaw_rate
        self.height = self.config.height + command.height
        self.step_height = command.step_height or self.clock.gait.step_height
        self.frequency = command.step_frequency

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period.

        Args:
            q: joint positions (J,).
            dq: joint velocities (J,).
            quat: orientation wxyz.
            omega_b: angular rate in the base frame.
            vel_w: velocity of the base in the world frame.
        """
        robot, clock = self.robot, self.clock
        q, dq = q.reshape(-1, 3), dq.reshape(-1, 3)
        if self._count == 0:
            self._begin(q, quat)
        else:
            self.pos += vel_w * self.period
        if clock.advance(self.period, self.frequency):
            np.subtract(self._under_hips, np.sign(self._under_hips) * clock.inset, out=self._hips)
        timing = self._timing
        timing[0], timing[1] = clock.duty, clock.period
        # To stand is to stop: brake while the legs still step.
        wanted = self.wanted if clock.gait.duty < 1.0 else _STILL
        phases = clock.phases
        slip = observe(
            robot.offsets, robot.signs, q, dq, quat, omega_b, vel_w, phases, timing, wanted, self._limits, self._hips,
            self.pos, self._R, self._feet_b, self._jac, self._feet_w, self.stance, self._lifted, self._progress,
            self._swing_time, self._start, self._anchor, self._target, self._ground, self._slope, self.following,
            self._pose, self._vel_cmd,
        )  # fmt: skip
        self._trust_ground(slip)
        if self._count % self._plan_every == 0:
            self._plan(phases, omega_b, vel_w)
        self._count += 1
        joint_targets(
            robot.offsets, robot.signs, self._knee_sign, self._inertial, robot.armature, q, dq, self._R,
            self.pos, vel_w, omega_b, self._acc, self.stance, self._progress, self._swing_time, self._start,
            self._target, self._grip, self.step_height, self.forces, self._gains, self.q_des,
        )  # fmt: skip
        return self.q_des

    def _begin(self, q: Array, quat: Array) -> None:
        """The feet stand on the ground where they are."""
        lie.rotation_from_quat_into(quat, self._R)
        feet_in_world(self.robot.offsets, self.robot.signs, q, self._R, self.pos, self._feet_b, self._jac, self._feet_w)
        self._anchor[:] = self._feet_w
        self._grip[:] = self._feet_w
        self._ground[:] = self._feet_w.mean(axis=0)
        self._pose[2] = math.atan2(self._R[1, 0], self._R[0, 0])

    def _trust_ground(self, slip: float) -> None:
        """Count on less friction at once when feet slip, and on more again little by little when they hold."""
        config = self.config
        if slip > config.slip_speed:
            self.friction = max(self.friction * math.exp(-self.period / config.caution_time), config.least_friction)
        else:
            self.friction = min(self.friction + config.trust_rate * self.period, config.friction)

    def _plan(self, phases: Array, omega_b: Array, vel_w: Array) -> None:
        yaw = math.atan2(self._R[1, 0], self._R[0, 0])
        body.body_state(
            self._R, self.pos, vel_w, omega_b, self._com_b, self._slope, self._pose, self.height, self._com_w,
            self._state, self._offset,
        )  # fmt: skip
        clock = self.clock
        dt = clock.period / HORIZON
        count = body.preview(
            phases, clock.duty, clock.period, dt, self.stance, self._feet_w, self._target, self._hips, self._com_w,
            self._vel_cmd, self._ground, self._slope, yaw, self.following[2], self._offset, self._share, self._arms,
            self._reference,
        )  # fmt: skip
        self.planner.plan(
            dt, self.friction, yaw, count, self._arms, self._share, self._state, self._reference, self.forces, self._acc
        )  # fmt: skip
