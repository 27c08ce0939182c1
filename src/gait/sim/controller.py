"""The walking controller: from what the robot feels to the joint targets it follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gait._compile import compiled
from gait.arrays import AnyArray, Array
from gait.robots import Robot
from gait.sim import legs as leg_math
from gait.sim.commands import Command
from gait.sim.gaits import Gait, GaitClock, find_gait, gait_id
from gait.sim.mpc import HORIZON, ForcePlanner, MpcWeights

_A1, _A2, _A3, _I1 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "int64[::1]"


@dataclass(frozen=True)
class ControllerConfig:
    """Settings of the walking controller, the same for every gait and terrain."""

    height: float = 0.275
    """Height of the base above the centres of standing feet, in metres."""
    friction: float = 0.5
    """Friction the force planner counts on; it does not know the true one."""
    max_force: float = 180.0
    """Largest vertical force of a foot in newtons."""
    plan_rate: float = 60.0
    """Force plans a second, at most one per control step."""
    foot_gain: float = 0.05
    """Seconds by which a velocity error moves a foothold."""
    acceleration: float = 1.5
    """How fast the velocity command is followed, m/s^2."""
    yaw_acceleration: float = 3.0
    """How fast the turning command is followed, rad/s^2."""
    leash: float = 0.08
    """How far the wanted position may run ahead of the body, in metres."""
    swing_kp: float = 60.0
    """Position gain that swinging legs should feel, whatever the drive's own, in N m/rad."""
    swing_kd: float = 1.2
    """Velocity gain that swinging legs should feel, in N m s/rad."""
    weights: MpcWeights = field(default_factory=MpcWeights)
    """What the force planner minimises."""


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


@compiled(
    f"void({_A1}, float64, float64, float64, {_I1}, {_A2}, {_A2}, {_A2}, {_A1}, {_A1}, {_A1}, {_A1}, float64, float64,"
    f" {_A1}, {_A2}, {_A3}, {_A2})"
)
def preview(
    phases: Array,
    duty: float,
    period: float,
    dt: float,
    stance: AnyArray,
    feet_w: Array,
    target: Array,
    hips: Array,
    com_w: Array,
    vel_cmd: Array,
    ground: Array,
    slope: Array,
    yaw: float,
    yaw_rate: float,
    offset: Array,
    share: Array,
    arms: Array,
    reference: Array,
) -> None:
    """What the planner looks at: contact shares, lever arms and the reference over the horizon, in the heading frame.

    Args:
        phases: of each leg.
        duty: share of the cycle that a leg stands.
        period: seconds of a cycle.
        dt: seconds of a planning step.
        stance: whether each leg stands now.
        feet_w: where the feet are.
        target: where swinging feet will land.
        hips: neutral foot places in the heading frame (L, 2).
        com_w: centre of mass.
        vel_cmd: wanted velocity in the world frame.
        ground: a point of the ground plane.
        slope: of that plane.
        yaw: heading.
        yaw_rate: wanted turning rate.
        offset: wanted minus present position x, y; wanted height of the centre of mass; roll, pitch, yaw wanted now.
        share: output (N, L).
        arms: output (N, L, 3).
        reference: output (N, 12).
    """
    c0, s0 = math.cos(yaw), math.sin(yaw)
    for k in range(share.shape[0]):
        t0, t1 = k * dt, (k + 1) * dt
        mid = 0.5 * (t0 + t1)
        # The body as it should move from where it is: it carries the lever arms along.
        cx, cy = com_w[0] + vel_cmd[0] * mid, com_w[1] + vel_cmd[1] * mid
        cz = ground[2] + offset[2] + slope[0] * (cx - ground[0]) + slope[1] * (cy - ground[1])
        for leg in range(phases.shape[0]):
            a, b = phases[leg] + t0 / period, phases[leg] + t1 / period
            stood_a = math.floor(a) * duty + min(a - math.floor(a), duty)
            stood_b = math.floor(b) * duty + min(b - math.floor(b), duty)
            share[k, leg] = min((stood_b - stood_a) / (b - a), 1.0)
            if stance[leg] == 0 and b < 1.0:
                share[k, leg] = 0.0
            cycle = math.floor(0.5 * (a + b))
            if cycle == 0 and stance[leg] == 1:
                fx, fy, fz = feet_w[leg, 0], feet_w[leg, 1], feet_w[leg, 2]
            elif cycle <= 1 and stance[leg] == 0:
                fx, fy, fz = target[leg, 0], target[leg, 1], target[leg, 2]
            else:
                when = (cycle + 0.5 * duty - phases[leg]) * period
                c, s = math.cos(yaw + yaw_rate * when), math.sin(yaw + yaw_rate * when)
                fx = com_w[0] + vel_cmd[0] * when + c * hips[leg, 0] - s * hips[leg, 1]
                fy = com_w[1] + vel_cmd[1] * when + s * hips[leg, 0] + c * hips[leg, 1]
                fz = ground[2] + slope[0] * (fx - ground[0]) + slope[1] * (fy - ground[1])
            arms[k, leg, 0] = c0 * (fx - cx) + s0 * (fy - cy)
            arms[k, leg, 1] = -s0 * (fx - cx) + c0 * (fy - cy)
            arms[k, leg, 2] = fz - cz
        vx, vy = c0 * vel_cmd[0] + s0 * vel_cmd[1], -s0 * vel_cmd[0] + c0 * vel_cmd[1]
        ox, oy = c0 * offset[0] + s0 * offset[1], -s0 * offset[0] + c0 * offset[1]
        rise = slope[0] * vel_cmd[0] + slope[1] * vel_cmd[1]
        reference[k, 0], reference[k, 1], reference[k, 2] = offset[3], offset[4], offset[5] + yaw_rate * t1
        reference[k, 3], reference[k, 4] = ox + vx * t1, oy + vy * t1
        ex, ey = com_w[0] + vel_cmd[0] * t1, com_w[1] + vel_cmd[1] * t1
        reference[k, 5] = ground[2] + offset[2] + slope[0] * (ex - ground[0]) + slope[1] * (ey - ground[1])
        reference[k, 6], reference[k, 7], reference[k, 8] = 0.0, 0.0, yaw_rate
        reference[k, 9], reference[k, 10], reference[k, 11] = vx, vy, rise


class Controller:
    """Walks a robot: gait clock, force planner, footholds and joint targets.

    It knows joint positions and velocities, angular rate, orientation and velocity, and keeps its own odometry from
    them; height above the ground comes from the standing legs. It never sees true positions or contacts.
    """

    def __init__(
        self, robot: Robot, gait: Gait, kp: float, kd: float, period: float, config: ControllerConfig | None = None
    ) -> None:
        self.config = config or ControllerConfig()
        self.robot = robot
        self.clock = GaitClock(gait)
        self.period = period
        com_b, inertia = rigid_body(robot, robot.q_stand)
        self._com_b = com_b
        self.planner = ForcePlanner(
            robot.mass, inertia, self.config.weights, self.config.friction, self.config.max_force
        )
        # Robots lean on their feet: neutral places are below the hips, shifted under the centre of mass.
        feet = robot.offsets[:, 0] + robot.offsets[:, 1]
        self._hips: Array = np.ascontiguousarray(feet[:, :2])
        self._inertial = robot.leg_inertial
        self._inertias = np.array([[link.inertia for link in leg] for leg in robot.links])
        # What the drive lacks in stiffness a fast enough control loop can add; a slow one would oscillate.
        trust = min(1.0, 0.004 / period)
        extra_kp = max(self.config.swing_kp - kp, 0.0) * trust
        extra_kd = max(self.config.swing_kd - kd, 0.0) * trust
        self._gains = np.array([kp, kd, period, extra_kp, extra_kd])
        self._plan_every = max(1, round(1.0 / (self.config.plan_rate * period)))
        self.height, self.step_height, self.frequency = self.config.height, gait.step_height, 0.0
        self.wanted, self.following = np.zeros(3), np.zeros(3)
        legs = robot.num_legs
        self.stance = np.ones(legs, dtype=np.int64)
        self.forces = np.zeros((legs, 3))
        self.pos, self._ground, self._slope = np.zeros(3), np.zeros(3), np.zeros(2)
        self._ref_xy, self._ref_yaw = np.zeros(2), 0.0
        self._lifted, self._progress, self._swing_time = np.zeros(legs), np.zeros(legs), np.full(legs, 0.2)
        self._start, self._anchor, self._target = (np.zeros((legs, 3)) for _ in range(3))
        self._feet_b, self._feet_w, self._jac = np.zeros((legs, 3)), np.zeros((legs, 3)), np.zeros((legs, 3, 3))
        self._R, self._acc = np.eye(3), np.zeros(3)
        self._share, self._arms = np.zeros((HORIZON, legs)), np.zeros((HORIZON, legs, 3))
        self._reference, self._state, self._offset = np.zeros((HORIZON, 12)), np.zeros(12), np.zeros(6)
        self._forces_h = np.zeros((legs, 3))
        self.q_des = robot.q_stand.reshape(legs, 3).copy()
        self._count = 0

    def command(self, command: Command) -> None:
        """Follow another command from now on."""
        if command.gait:
            self.clock.switch(find_gait(command.gait))
        self.wanted[:] = command.vx, command.vy, command.yaw_rate
        self.height = self.config.height + command.height
        self.step_height = command.step_height or self.clock.gait.step_height
        self.frequency = command.step_frequency

    @property
    def gait_id(self) -> int:
        """The gait that is walked or changed to, as episodes record it."""
        return gait_id(self.clock.gait.name)

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (L, 3) for the coming control period.

        Args:
            q: joint positions (J,).
            dq: joint velocities (J,).
            quat: orientation wxyz.
            omega_b: angular rate in the base frame.
            vel_w: velocity of the base in the world frame.
        """
        legs, robot = self.robot.num_legs, self.robot
        q, dq = q.reshape(legs, 3), dq.reshape(legs, 3)
        first = self._count == 0
        if not first:
            self.pos += vel_w * self.period
        leg_math.rotation(quat, self._R)
        leg_math.feet_in_world(robot.offsets, robot.signs, q, self._R, self.pos, self._feet_b, self._jac, self._feet_w)
        R = self._R
        yaw = math.atan2(R[1, 0], R[0, 0])
        if first:
            self._anchor[:] = self._feet_w
            self._ground[:] = self._feet_w.mean(axis=0)
            self._ref_yaw = yaw
        clock = self.clock
        clock.advance(self.period, self.frequency)
        phases = clock.phases
        leg_math.step_phases(
            phases, clock.duty, self.stance, self._lifted, clock.period, self._feet_w, self._start, self._anchor,
            self._target, self._progress, self._swing_time,
        )  # fmt: skip
        self._track_ground()
        vel_cmd = self._advance_reference(yaw)
        leg_math.footholds(
            self.stance, self._progress, self._swing_time, clock.duty * clock.period, self.pos, vel_w, vel_cmd, yaw,
            self.following[2], self._hips, self._ground, self._slope, self.config.foot_gain, self._target,
        )  # fmt: skip
        if self._count % self._plan_every == 0:
            self._plan(phases, yaw, omega_b, vel_w, vel_cmd)
        self._count += 1
        self._acc[:] = self.forces.sum(axis=0) / robot.mass
        self._acc[2] -= 9.81
        leg_math.joint_targets(
            robot.offsets, robot.signs, robot.knee_sign, self._inertial, self._inertias, robot.armature, q, dq, R,
            self.pos, vel_w, omega_b, self._acc, self.stance, self._progress, self._swing_time, self._start,
            self._target, self.step_height, self.forces, self._gains, self.q_des,
        )  # fmt: skip
        return self.q_des

    def _track_ground(self) -> None:
        """Correct the height by the standing feet, and lay the ground plane through the last places of all feet."""
        settled = (self.stance == 1) & (self._progress >= 0.3)
        if settled.any():
            error = float((self._anchor[settled, 2] - self._feet_w[settled, 2]).mean())
            self.pos[2] += 0.2 * error
            self._feet_w[:, 2] += 0.2 * error
        rate = min(1.0, self.period / 0.15)
        centre = self._anchor.mean(axis=0)
        spread = self._anchor - centre
        A = spread[:, :2].T @ spread[:, :2] + 1e-3 * np.eye(2)
        slope = np.linalg.solve(A, spread[:, :2].T @ spread[:, 2])
        self._slope += rate * (np.clip(slope, -0.4, 0.4) - self._slope)
        self._ground += rate * (centre - self._ground)

    def _advance_reference(self, yaw: float) -> Array:
        """Follow the command at a bounded acceleration; the wanted pose stays on a leash around the real one."""
        config, dt = self.config, self.period
        limit = np.array([config.acceleration, config.acceleration, config.yaw_acceleration]) * dt
        wanted = self.wanted if self.clock.duty < 1.0 else np.zeros(3)
        self.following += np.clip(wanted - self.following, -limit, limit)
        c, s = math.cos(yaw), math.sin(yaw)
        vx, vy, rate = self.following
        vel_cmd = np.array([c * vx - s * vy, s * vx + c * vy, 0.0])
        self._ref_xy += vel_cmd[:2] * dt
        gap = self._ref_xy - self.pos[:2]
        far = float(np.hypot(gap[0], gap[1]))
        if far > config.leash:
            self._ref_xy = self.pos[:2] + gap * (config.leash / far)
        self._ref_yaw += rate * dt
        turn = (self._ref_yaw - yaw + math.pi) % (2.0 * math.pi) - math.pi
        self._ref_yaw = yaw + min(max(turn, -0.3), 0.3)
        return vel_cmd

    def _plan(self, phases: Array, yaw: float, omega_b: Array, vel_w: Array, vel_cmd: Array) -> None:
        R, state = self._R, self._state
        c, s = math.cos(yaw), math.sin(yaw)
        com = R @ self._com_b
        omega_w = R @ omega_b
        vel = vel_w + np.cross(omega_w, com)
        com_w = self.pos + com
        state[0] = math.atan2(R[2, 1], R[2, 2])
        state[1] = -math.asin(min(max(R[2, 0], -1.0), 1.0))
        state[2] = 0.0
        state[3], state[4], state[5] = 0.0, 0.0, com_w[2]
        state[6], state[7], state[8] = c * omega_w[0] + s * omega_w[1], -s * omega_w[0] + c * omega_w[1], omega_w[2]
        state[9], state[10], state[11] = c * vel[0] + s * vel[1], -s * vel[0] + c * vel[1], vel[2]
        along = c * self._slope[0] + s * self._slope[1]
        across = -s * self._slope[0] + c * self._slope[1]
        self._offset[:2] = self._ref_xy - self.pos[:2]
        self._offset[2] = self.height + self._com_b[2]
        self._offset[3], self._offset[4] = math.atan(across), -math.atan(along)
        self._offset[5] = self._ref_yaw - yaw
        dt = self.clock.period / HORIZON
        preview(
            phases, self.clock.duty, self.clock.period, dt, self.stance, self._feet_w, self._target, self._hips, com_w,
            vel_cmd, self._ground, self._slope, yaw, self.following[2], self._offset, self._share, self._arms,
            self._reference,
        )  # fmt: skip
        if self.planner.plan(dt, self._arms, self._share, state, self._reference, self._forces_h):
            f = self._forces_h
            self.forces[:, 0] = c * f[:, 0] - s * f[:, 1]
            self.forces[:, 1] = s * f[:, 0] + c * f[:, 1]
            self.forces[:, 2] = f[:, 2]
