"""A biped under stiff position control that follows a plan of footsteps, its base held by a gantry.

The plan is that of ZMP walkers: a linear inverted pendulum moves the centre of mass over the zero-moment point, inverse
kinematics turns base and feet into joint targets. The joints then push real soles against the ground through their
drives. What is not simulated is balance: a soft virtual spring and damper pulls the base to the plan, with horizontal
force and moments but no vertical force, so that the feet carry the weight. Kinematics, contacts and what the sensors
feel of them are those of a walking robot; how a real one would catch itself is not to be learned here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.physics import mujoco
from gait.sim.settings import Command, EpisodeConfig
from gait.sim.zmp.biped_variety import GRAVITY
from gait.sim.zmp.footsteps import Footsteps, Size, plan_footsteps, smoothed
from gait.sim.zmp.leg_inverse import leg_angles
from gait.sim.zmp.pendulum import mass_over

HEIGHTS = 0.8, 0.97
"""Of the base above the ground, in leg lengths below the hips."""
_MISS = 0.003
"""Farthest that a foot may be from where it is planned, m."""
_BENT = 0.4
"""Where angles are searched from, on the way from the stance to the middle of the joints' ranges."""
_GANTRY = 1.0
"""Natural frequency of the gantry's horizontal spring, Hz."""
_UPRIGHT = 2.0
"""Stiffness of its moments over weight times height."""


class BasePlan:
    """Pose of the base at each control step, and the force that carries the robot.

    Attributes:
        place: (N, 3).
        rpy: roll, pitch and yaw (N, 3).
        acceleration: of the centre of mass (N, 3).
    """

    def __init__(self, rng: np.random.Generator, steps: Footsteps, com_b: Array, height: float, dt: float) -> None:
        count = len(steps.zmp)
        t, width = np.arange(count) * dt, round(0.2 / dt)
        com, pull = mass_over(steps.zmp, float(np.sqrt(GRAVITY / (height + com_b[2]))), dt)
        yaw = smoothed(steps.yaw.mean(axis=1), width)
        across = com - steps.place[..., :2].mean(axis=1)
        c, s = np.cos(yaw), np.sin(yaw)
        aside = -s * across[:, 0] + c * across[:, 1]
        aside = smoothed(aside, width) / (0.5 * np.linalg.norm(steps.place[0, 0] - steps.place[0, 1]))
        swing = np.zeros((count, 4))
        for column, most in enumerate((0.02, 0.03, 0.04, 0.006)):
            for frequency in np.exp(rng.uniform(np.log(0.3), np.log(2.5), 2)):
                swing[:, column] += most * rng.random() * np.sin(2.0 * np.pi * (frequency * t + rng.random()))
        swing *= rng.random() * np.minimum(t / 0.5, 1.0)[:, None]
        roll = 0.06 * rng.normal() * aside + swing[:, 0]
        self.rpy = np.stack([roll, 0.06 * rng.normal() + swing[:, 1], yaw + swing[:, 2]], axis=1)
        z = height - smoothed(steps.squat, width) + swing[:, 3]
        z += rng.uniform(-0.02, 0.02) * (aside**2 - 1.0)
        # The mass of the base plan is where the pendulum is.
        place = com - np.stack([c * com_b[0] - s * com_b[1], s * com_b[0] + c * com_b[1]], axis=1)
        self.place = np.concatenate([place, z[:, None]], axis=1)
        rise = np.gradient(np.gradient(z, dt), dt)
        self.acceleration = np.concatenate([pull, rise[:, None]], axis=1)

    @property
    def R_wb(self) -> Array:
        """Orientations (N, 3, 3)."""
        return rotations(*self.rpy.T)


def rotations(roll: Array, pitch: Array, yaw: Array) -> Array:
    """Rz(yaw) Ry(pitch) Rx(roll) (..., 3, 3)."""
    (cr, cp, cy), (sr, sp, sy) = (np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw]))
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


class ZmpWalker:
    """Plans an episode at its start and then follows the plan.

    Attributes:
        wanted: forward, sideways and yaw velocity of the present bout.
        gait_id: -1, for episodes record no gait.
        start: generalised position where the plan begins.
        base: plan of the base, one row a control step.
        steps: plan of the feet.
    """

    gait_id = -1

    def __init__(self, robot: Robot, config: EpisodeConfig, rng: np.random.Generator) -> None:
        self._robot, self.wanted, self._row = robot, np.zeros(3), 0
        dt = 1.0 / config.control_rate
        steps_rng, base_rng, drive_rng = rng.spawn(3)
        hips, corners = robot.hips_b, robot.legs[0].foot.corners
        half = 0.5 * np.ptp(corners, axis=0)
        left, right = (1.0, -1.0) if hips[0, 1] > hips[1, 1] else (-1.0, 1.0)
        size = Size(robot.leg_length, abs(hips[0, 1] - hips[1, 1]), (half[0], half[1]), (left, right))
        self.steps = plan_footsteps(steps_rng, size, config.settle + config.seconds + 0.1, dt, config.sink)
        seed = int(base_rng.integers(2**32))
        share = base_rng.uniform(*HEIGHTS)
        com_b = mass_centre(robot, robot.q_stand)
        self._near = robot.q_stand
        while True:
            height = share * robot.leg_length - float(hips[:, 2].mean())
            self.base = BasePlan(np.random.default_rng(seed), self.steps, com_b, height, dt)
            planned, miss = self._angles(every=10)
            if self._near is robot.q_stand and ((planned < robot.q_lower) | (planned > robot.q_upper)).any():
                # A stance with straight legs leaves open which way the knees bend: the way in which they have room.
                self._near = robot.q_stand + _BENT * (0.5 * (robot.q_lower + robot.q_upper) - robot.q_stand)
                continue
            if miss.max() < _MISS or share < 0.65:
                break
            share -= 0.02
        q, _ = self._angles()
        self._q_des = q + self._lead(q, dt, drive_rng.uniform(0.5, 1.0))
        self.start = np.concatenate([self.base.place[0], _quat(self.base.R_wb[0]), q[0]])

    def command(self, command: Command) -> None:
        """Steers nothing: the plan is made at the start."""

    def step(self, q: Array, dq: Array, quat: Array, omega_b: Array, vel_w: Array) -> Array:
        """Joint targets (J,) for the coming control period."""
        k = min(self._row, len(self._q_des) - 1)
        self.wanted[:] = self.steps.command[k]
        self._row += 1
        return np.asarray(self._q_des[k])

    def _angles(self, every: int = 1) -> tuple[Array, Array]:
        """Planned joint angles (N, J) and how far the feet miss their places, m (N,), at every so-manieth step."""
        R_wb, place = self.base.R_wb[::every], self.base.place[::every]
        R_bw, steps = np.swapaxes(R_wb, 1, 2), self.steps
        angles, misses = [], []
        for i, (chain, own) in enumerate(zip(self._robot.chains, self._robot.by_leg(self._near), strict=True)):
            at = np.einsum("nij,nj->ni", R_bw, steps.place[::every, i] - place)
            pitch, yaw = steps.pitch[::every, i], steps.yaw[::every, i]
            q, miss = leg_angles(chain, at, R_bw @ rotations(np.zeros(len(at)), pitch, yaw), own)
            angles.append(q)
            misses.append(miss)
        return np.concatenate(angles, axis=1), np.max(misses, axis=0)

    def _lead(self, q: Array, dt: float, share: float) -> Array:
        """How far ahead of the plan the targets are, so that drives carry the load and are not late (N, J)."""
        robot, steps, base = self._robot, self.steps, self.base
        force_w = robot.mass * (base.acceleration + np.array([0.0, 0.0, GRAVITY]))
        between = steps.place[:, 0, :2] - steps.place[:, 1, :2]
        along = ((steps.zmp - steps.place[:, 1, :2]) * between).sum(axis=1)
        first = np.clip(along / (between**2).sum(axis=1), 0.0, 1.0)
        first = np.where(steps.swings[:, 0], 0.0, np.where(steps.swings[:, 1], 1.0, first))
        R_wb, half = base.R_wb, 0.5 * np.ptp(robot.legs[0].foot.corners, axis=0)
        torque = []
        for i, (chain, own) in enumerate(zip(robot.chains, robot.by_leg(q), strict=True)):
            load = force_w * (first if i == 0 else 1.0 - first)[:, None]
            arm = np.zeros_like(load)
            arm[:, :2] = np.clip(steps.zmp - steps.place[:, i, :2], -0.7 * half[1], 0.7 * half[1])
            force_b = np.einsum("nji,nj->ni", R_wb, load)
            moment_b = np.einsum("nji,nj->ni", R_wb, np.cross(arm, load))
            linear, angular = chain.jacobians(own)
            torque.append(-np.einsum("nij,ni->nj", linear, force_b) - np.einsum("nij,ni->nj", angular, moment_b))
        held = share * smoothed(np.concatenate(torque, axis=1), max(round(0.03 / dt), 1))
        return np.asarray((held + robot.kd * np.gradient(q, dt, axis=0)) / robot.kp)


class Gantry:
    """Pulls the base to the plan: a step of physics to stand in for MuJoCo's."""

    def __init__(self, robot: Robot, base: BasePlan, control_rate: int, physics: Callable[..., object]) -> None:
        self._base, self._physics, self._hold, self._row = base, physics, 1000 // control_rate, 0
        self._R_wb, dt = base.R_wb, 1.0 / control_rate
        self._velocity = np.gradient(base.place, dt, axis=0)
        self._link = robot.base_link
        height, mass = float(base.place[0, 2]), robot.mass
        pull = 2.0 * np.pi * _GANTRY
        self._k, self._d = mass * pull**2, 2.0 * mass * pull
        self._turn = _UPRIGHT * mass * GRAVITY * height
        self._brake = 2.0 * float(np.sqrt(self._turn * 0.3 * mass * height**2))

    def step(self, model: Any, data: Any) -> None:
        """One step of physics under the gantry's force and moment, whose spring is that of the present plan."""
        k = min(self._row // self._hold, len(self._velocity) - 1)
        self._row += 1
        wrench = data.body(self._link).xfrc_applied
        away, late = self._base.place[k] - data.qpos[:3], self._velocity[k] - data.qvel[:3]
        wrench[:2] = self._k * away[:2] + self._d * late[:2]
        R = np.empty(9)
        mujoco.mju_quat2Mat(R, data.qpos[3:7])
        R_wb = R.reshape(3, 3)
        off = self._R_wb[k] @ R_wb.T
        error = 0.5 * np.array([off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]])
        wrench[3:] = self._turn * error - self._brake * (R_wb @ data.qvel[3:6])
        self._physics(model, data)


def mass_centre(robot: Robot, q: Array) -> Array:
    """Centre of mass in base_link (3,)."""
    total, moment = robot.base.mass, robot.base.mass * robot.base.com
    for chain, own in zip(robot.chains, robot.by_leg(q), strict=True):
        turned, points, _ = chain.link_poses(own)
        moment = moment + (chain.mass[:, None] * (points[:-1] + np.einsum("sij,sj->si", turned, chain.com))).sum(axis=0)
        total += float(chain.mass.sum())
    return np.asarray(moment / total)


def _quat(R: Array) -> Array:
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R).ravel())
    return quat
