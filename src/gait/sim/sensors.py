"""Sensors: from ground truth at 1 kHz to the readings of an IMU and twelve drives at 500 Hz.

One compiled step, `sensing.advance`, serves whole episodes (`sense`) and closed loops (`SensorStream`), so both see
the same numbers. Everything off gives exact data: the IMU averages are those which carry the filter's integrator

    R+ = R exp(w dt),  v+ = v + (R Gamma1(w dt) a + g) dt,  p+ = p + v dt + (R Gamma2(w dt) a + g / 2) dt^2

from one true state of the IMU to the next; the sample at t covers the 2 ms before t. Readings are those of the chip: at
its place and in its axes, which the robot's description gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.log.imu_noise import ImuNoise
from gait.log.log import Log
from gait.log.sample import Sample
from gait.robot import Robot
from gait.sim.rotation_kernels import rotation_from_quat, so3_exp
from gait.sim.sensing import (  # fmt: skip
    IMU_DRAWS,
    PHYSICS_DT,
    SAMPLE_DT,
    STRIDE,
    SensorSettings,
    SensorState,
    advance,
    advance_all,
    start,
    truth_rows,
)

if TYPE_CHECKING:
    from gait.sim.episode import RawEpisode


@dataclass(frozen=True)
class JointConfig:
    """Errors of what the joint drives report. The defaults are perfect."""

    offset: tuple[float, ...] = ()
    """Error of each joint's zero, rad, leg by leg; empty means none. The drive's target is shifted with its reading,
    since its control loop works on the same zero."""
    resolution: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Step of the angle reading of hip, thigh and calf, rad; 0 is none."""
    velocity_cutoff: float = 0.0
    """Bandwidth of the drive's velocity, Hz: the 1 kHz difference of angle readings through a first-order low-pass.
    0 gives the true velocity."""
    velocity_resolution: float = 0.0
    """Step of the velocity reading, rad/s."""
    torque_gain: float = 0.0
    """Standard deviation of the relative torque error of a joint, drawn once an episode."""
    torque_resolution: float = 0.0
    """Step of the torque reading, N m."""
    delay: int = 0
    """Age of angle, velocity and torque readings, in samples of 2 ms."""


@dataclass(frozen=True)
class SensorConfig:
    """All sensors of the robot. The defaults give exact data."""

    imu: ImuNoise = field(default_factory=ImuNoise)
    joints: JointConfig = field(default_factory=JointConfig)
    foot_force: bool = True
    """Whether the feet carry a force sensor."""


class SensorStream:
    """The sensors of a robot that is being simulated, for an estimator in the loop.

    Fed with the rows of an episode one by one it returns the samples of `sense` with the same generator.
    """

    def __init__(self, robot: Robot, config: SensorConfig, rng: np.random.Generator) -> None:
        self._settings, self._state = _prepare(robot, config, rng)
        self._rng = rng
        self._row = -1
        self._imu = np.empty(6)
        self._joints = np.empty(3 * robot.num_joints)
        self._draws = np.zeros(IMU_DRAWS)

    def step(
        self, quat_wb_wxyz: Array, vel_w: Array, omega_b: Array, q: Array, dq: Array, q_des: Array, tau: Array
    ) -> Sample | None:
        """Take the exact state after one physics step, starting with the initial state.

        Returns:
            A sample after every second step, otherwise None. `q_des` is the target in force.
        """
        self._row += 1
        row = truth_rows(quat_wb_wxyz, vel_w, omega_b, q, dq, tau)
        if self._row == 0:
            start(self._settings, self._state, row)
            return None
        if self._row % STRIDE == 0:
            self._draws = self._rng.standard_normal(IMU_DRAWS)
        done = advance(self._settings, self._state, self._row, row, self._draws, self._imu, self._joints)
        if not done:
            return None
        angle, rate, torque = self._joints.reshape(3, -1).copy()
        gyro, accel = self._imu.reshape(2, 3).copy()
        return Sample(self._row * PHYSICS_DT, gyro, accel, angle, rate, q_des + self._settings.offset, torque)


def sense(raw: RawEpisode, robot: Robot, config: SensorConfig, rng: np.random.Generator, source: str = "") -> Log:
    """What the sensors report during an episode, with the ground truth of the base on the same clock.

    Args:
        raw: ground truth, one row a millisecond.
        robot: the robot as described, which is the estimator's model.
        config: the errors of the sensors.
        rng: draws all noise; the same state gives the same bytes.
        source: one line on where the data come from.
    """
    samples = (len(raw.t) - 1) // STRIDE
    if samples < 2:
        raise GaitError(f"an episode of {len(raw.t)} rows is too short for sensors: simulate at least 10 ms")
    settings, state = _prepare(robot, config, rng)
    draws = rng.standard_normal((samples, IMU_DRAWS))
    count = robot.num_joints
    imu, joints = np.empty((samples, 6)), np.empty((samples, 3 * count))
    rows = truth_rows(raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.tau)
    advance_all(settings, state, rows[: 1 + samples * STRIDE], draws, imu, joints)
    at = slice(STRIDE, 1 + samples * STRIDE, STRIDE)
    exact = ("t", "contact", "pos_w", "quat_wb_wxyz", "vel_w", "foot_vel_w")
    return Log(
        **{name: getattr(raw, name)[at] for name in exact},
        gyro=imu[:, :3],
        accel=imu[:, 3:],
        q=joints[:, :count],
        dq=joints[:, count : 2 * count],
        q_des=raw.q_des[at] + settings.offset,
        tau=joints[:, 2 * count :],
        foot_force=np.maximum(raw.foot_force_w[at, :, 2], 0.0) if config.foot_force else None,
        robot=robot.name,
        leg_names=robot.leg_names,
        joint_names=robot.joint_names,
        source=source,
    )


def _prepare(robot: Robot, config: SensorConfig, rng: np.random.Generator) -> tuple[SensorSettings, SensorState]:
    imu, joints, count = config.imu, config.joints, robot.num_joints
    if joints.offset and len(joints.offset) != count:
        raise GaitError(f"sensor offsets are {len(joints.offset)} numbers but {robot.name} has {count} joints")
    if joints.delay < 0:
        raise GaitError("a sensor delay must be zero or more samples")
    R_bi = rotation_from_quat(robot.imu_quat_wxyz)
    # Everything constant is drawn before the first sample, so that streaming and whole episodes draw alike.
    bias = rng.standard_normal((2, 3)) * np.array([[imu.gyro_bias], [imu.accel_bias]])
    bias += np.array([imu.gyro_offset, imu.accel_offset])
    gain = 1.0 + joints.torque_gain * rng.standard_normal(count)
    smoothing = 1.0 - math.exp(-2.0 * math.pi * joints.velocity_cutoff * PHYSICS_DT)
    settings = SensorSettings(
        lever=robot.imu_position.copy(),
        R_bs=R_bi @ so3_exp(np.array(imu.mounting)),
        noise=np.array([imu.gyro_noise, imu.accel_noise]) / math.sqrt(SAMPLE_DT),
        walk=np.array([imu.gyro_walk, imu.accel_walk]) * math.sqrt(SAMPLE_DT),
        limit=np.array([imu.gyro_range, imu.accel_range]),
        offset=np.array(joints.offset) if joints.offset else np.zeros(count),
        resolution=np.tile(joints.resolution, robot.num_legs),
        torque_gain=gain,
        smoothing=smoothing,
        velocity_resolution=joints.velocity_resolution,
        torque_resolution=joints.torque_resolution,
        imu_delay=imu.delay,
        joint_delay=joints.delay,
    )
    state = SensorState(
        R=np.eye(3),
        v=np.zeros(3),
        bias=bias,
        reading=np.zeros(count),
        rate=np.zeros(count),
        imu_line=np.zeros((imu.delay + 1, 6)),
        joint_line=np.zeros((joints.delay + 1, 3 * count)),
    )
    return settings, state
