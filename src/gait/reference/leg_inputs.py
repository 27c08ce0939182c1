"""What `gait-legs` reads of a sample: for each leg the foot's position, the velocity that it measures, and its force.

A leg whose foot stands still measures the velocity of base_link by itself, v = -(J dq + w x p), plus what a round foot
rolls. Numbers are made to mean the same on every robot: positions in lengths of the leg, forces in weights of the
robot. Joints are read later than the IMU, so the w that belongs to them is that of the latency before.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.lie import rotation_from_quat
from gait.reference.chain import chains_of, foot_jacobian, foot_position, foot_velocity, joint_torques, per_leg
from gait.reference.contacts import ground_force, rolling_velocity
from gait.robot import Robot

SHARED, PER_LEG = 6, 12
"""Numbers that all legs share (angular rate, specific force), and those of each leg, three by three."""
POSITION, VELOCITY, FORCE, FOOT_ACCELERATION = (slice(i, i + 3) for i in range(0, 12, 3))
"""Among those of a leg. No network reads the foot acceleration J ddq: it tells how much an unknown latency matters."""
SMOOTHING = 0.004
"""Time constant of joint accelerations and torques, s."""
HISTORY = 8
"""Angular rates that are kept: the latency is at most one sample less."""
GRAVITY = 9.81
UP_B = np.array([0.0, 0.0, 1.0])


class LegGeometry:
    """Where the IMU is, where legs begin, and how long they are, which is what positions are scaled by."""

    def __init__(self, robot: Robot) -> None:
        self.R_bi, self.p_bi = rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
        self.hips_b = robot.offsets[:, 0] + robot.offsets[:, 1]  # (L, 3)
        self.length = float(np.linalg.norm(robot.offsets[:, 2:], axis=2).sum(1).max())

    def feet_b(self, features: Array) -> Array:
        """Foot positions (L, 3), m, of features (6 + 12 L,)."""
        feet: Array = self.hips_b + self.length * features[SHARED:].reshape(-1, PER_LEG)[:, POSITION]
        return feet


class LegFeatures:
    """Features from sample to sample."""

    def __init__(self, robot: Robot, latency: float) -> None:
        """Set up for a robot whose joints are read `latency` seconds after the IMU."""
        self.robot, self.latency = robot, latency
        self.chains, self.geometry = chains_of(robot), LegGeometry(robot)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self._rates: Array | None = None
        self._dq, self._ddq, self._tau = np.zeros((3, self.robot.num_joints))

    def step(
        self, gyro: Array, accel: Array, q: Array, dq: Array, tau: Array, dt: float, known: BoolArray | None = None
    ) -> Array:
        """The features (6 + 12 L,) of one more sample.

        Args:
            gyro: angular rate in IMU axes (3,).
            accel: specific force in IMU axes (3,).
            q: joint angles (3 L,).
            dq: joint velocities (3 L,).
            tau: joint torques (3 L,).
            dt: seconds since the sample before.
            known: legs whose sample before is true (L,); the others begin here. All by default.
        """
        gyro_b, accel_b = self.geometry.R_bi @ gyro, self.geometry.R_bi @ accel
        begins = np.full(len(self.chains), self._rates is None) if known is None else ~known
        self._smooth(dq, tau, dt, begins)
        w_b = self._delayed(gyro_b, dt)
        joints = zip(*(per_leg(self.chains, x) for x in (q, dq, self._ddq, self._tau)), strict=True)
        legs = [self._leg(leg, w_b, accel_b, *own) for leg, own in enumerate(joints)]
        return np.concatenate([gyro_b, accel_b, *legs])

    def _leg(self, leg: int, w_b: Array, accel_b: Array, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Position, velocity, force and foot acceleration (12,) of one leg."""
        chain, geometry = self.chains[leg], self.geometry
        J, tau_free = foot_jacobian(chain, q), joint_torques(chain, q, dq, ddq, -accel_b)
        position = (foot_position(chain, q) - geometry.hips_b[leg]) / geometry.length
        rolling = rolling_velocity(chain, q, dq, w_b, UP_B, self.robot.foot_radius)
        velocity = rolling - foot_velocity(chain, q, dq, w_b)
        force = ground_force(J, tau, tau_free) / (self.robot.mass * GRAVITY)
        return np.concatenate([position, velocity, force, J @ ddq])

    def _smooth(self, dq: Array, tau: Array, dt: float, begins: BoolArray) -> None:
        """Joint accelerations by differences, and torques, through the same low-pass so that both lag alike."""
        fresh = np.repeat(begins, [len(chain.axes) for chain in self.chains])
        last_dq, ddq, last_tau = np.where(fresh, [dq, 0.0 * dq, tau], [self._dq, self._ddq, self._tau])
        self._ddq = ddq + (dq - last_dq - dt * ddq) / (SMOOTHING + dt)
        self._tau = last_tau + dt * (tau - last_tau) / (SMOOTHING + dt)
        self._dq = dq

    def _delayed(self, gyro_b: Array, dt: float) -> Array:
        """The angular rate of the moment when the joints were read, interpolated; this one is kept."""
        if self._rates is None:
            self._rates = np.tile(gyro_b, (HISTORY, 1))
        self._rates = np.vstack([gyro_b, self._rates[:-1]])  # newest first
        back = min(self.latency / dt, HISTORY - 1.001) if dt > 0.0 else 0.0
        return np.array([np.interp(back, np.arange(HISTORY), rates) for rates in self._rates.T])
