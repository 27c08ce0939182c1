"""Sensors: from ground truth at 1 kHz to the readings of an IMU and twelve drives at 500 Hz.

One compiled step, `advance`, serves whole episodes (`sense`) and closed loops (`SensorStream`), so both see
the same numbers. Everything off gives exact data: the IMU averages are those which carry the filter's integrator

    R+ = R exp(w dt),  v+ = v + (R Gamma1(w dt) a + g) dt,  p+ = p + v dt + (R Gamma2(w dt) a + g / 2) dt^2

from one true state of the IMU to the next; the sample at t covers the 2 ms before t. Readings are those of the chip: at
its place and in its axes, which the robot's description gives.

A row of ground truth (10 + 3 J,) is orientation wxyz, velocity in the world frame, angular velocity in the base frame,
joint angles, joint velocities and joint torques side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.log.imu_noise import ImuNoise
from gait.log.log import Log
from gait.log.sample import Sample
from gait.robot import BareRobot, Robot
from gait.sim import kernels
from gait.sim.episode import Fed, RawEpisode
from gait.sim.kernels import compiled, product, rotate
from gait.sim.stepping import OMEGA, POS, QUAT, VEL, Columns

if TYPE_CHECKING:
    from gait.estimator import Estimator

GRAVITY = 9.81
PHYSICS_DT = 0.001
"""Time between two rows of ground truth, s."""
STRIDE = 2
"""Rows of ground truth to one sample: 500 Hz."""
SAMPLE_DT = STRIDE * PHYSICS_DT
IMU_DRAWS = 12
"""Standard normal numbers that one sample uses."""


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


class Sensors(NamedTuple):
    """What the compiled step knows and, from `R` on, remembers: those arrays are changed in place. Joints are (J,)."""

    lever: Array
    """Position of the IMU in the base (3,)."""
    R_bs: Array
    """True axes of the IMU in the base (3, 3)."""
    noise: Array
    """Standard deviation of gyro and accelerometer noise in one sample (2,)."""
    walk: Array
    """Standard deviation of a bias step (2,)."""
    limit: Array
    """Saturation (2,)."""
    offset: Array
    resolution: Array
    """Steps of angle, velocity and torque (3, J)."""
    torque_gain: Array
    smoothing: float
    """Share of the newest difference in the velocity; 0 takes the true velocity."""
    R: Array
    """Orientation of the IMU at the last sample (3, 3)."""
    v: Array
    """Velocity of the IMU at the last sample (3,)."""
    bias: Array
    """Gyro and accelerometer bias (2, 3)."""
    reading: Array
    """Angle readings one row ago (J,)."""
    rate: Array
    """Filtered velocity (J,)."""
    imu_line: Array
    """Readings on their way (delay + 1, 6), that of a sample at its number modulo the length."""
    joint_line: Array
    """The same for angle, velocity and torque (delay + 1, 3 J)."""

    @staticmethod
    def of(robot: Robot | BareRobot, config: SensorConfig, rng: np.random.Generator) -> Sensors:
        """The sensors of a robot before the first row."""
        imu, joints, count = config.imu, config.joints, robot.num_joints
        if joints.offset and len(joints.offset) != count:
            raise GaitError(f"sensor offsets are {len(joints.offset)} numbers but {robot.name} has {count} joints")
        if joints.delay < 0:
            raise GaitError("a sensor delay must be zero or more samples")
        # Everything constant is drawn before the first sample, so that streaming and whole episodes draw alike.
        bias = rng.standard_normal((2, 3)) * np.array([[imu.gyro_bias], [imu.accel_bias]])
        rest = [np.full(count, step) for step in (joints.velocity_resolution, joints.torque_resolution)]
        return Sensors(
            lever=robot.imu_position.copy(),
            R_bs=kernels.rotation_from_quat(robot.imu_quat_wxyz) @ kernels.so3_exp(np.array(imu.mounting)),
            noise=np.array([imu.gyro_noise, imu.accel_noise]) / math.sqrt(SAMPLE_DT),
            walk=np.array([imu.gyro_walk, imu.accel_walk]) * math.sqrt(SAMPLE_DT),
            limit=np.array([imu.gyro_range, imu.accel_range]),
            offset=np.array(joints.offset or [0.0] * count),
            resolution=np.array([np.resize(joints.resolution, count), *rest]),
            torque_gain=1.0 + joints.torque_gain * rng.standard_normal(count),
            smoothing=1.0 - math.exp(-2.0 * math.pi * joints.velocity_cutoff * PHYSICS_DT),
            R=np.eye(3),
            v=np.zeros(3),
            bias=bias + np.array([imu.gyro_offset, imu.accel_offset]),
            reading=np.zeros(count),
            rate=np.zeros(count),
            imu_line=np.zeros((imu.delay + 1, 6)),
            joint_line=np.zeros((joints.delay + 1, 3 * count)),
        )


@compiled
def _round_to(value: float, step: float) -> float:
    return value if step <= 0.0 else math.floor(value / step + 0.5) * step


@compiled
def _imu_pose(s: Sensors, row: Array) -> tuple[Array, Array]:
    """Orientation (3, 3) and world velocity (3,) of the IMU."""
    R_wb = kernels.rotation_from_quat(row[:4])
    return product(R_wb, s.R_bs), kernels.transform(R_wb, row[4:7], kernels.cross(row[7:10], s.lever))


@compiled
def _inertial(s: Sensors, row: Array, draws: Array, out: Array) -> None:
    """The average rate and specific force since the last sample, with the sensor's errors, in its own axes (6,)."""
    R, v = _imu_pose(s, row)
    angle = kernels.so3_log(product(s.R.T, R))
    force_w = (v - s.v) / SAMPLE_DT
    force_w[2] += GRAVITY
    out[:3] = angle / SAMPLE_DT
    out[3:] = rotate(kernels.so3_left_jacobian_inverse(angle), rotate(s.R.T, force_w))
    s.v[:], s.R[:] = v, R
    for i in range(6):
        kind, axis = i // 3, i % 3
        value = out[i] + s.bias[kind, axis] + s.noise[kind] * draws[i]
        out[i] = min(max(value, -s.limit[kind]), s.limit[kind])
        s.bias[kind, axis] += s.walk[kind] * draws[6 + i]


@compiled
def advance(s: Sensors, number: int, row: Array, draws: Array, imu: Array, joints: Array) -> None:
    """Take row `number`, from 0; one that completes a sample writes `imu` (6,) and `joints` (3 J,).

    Readings older than the first sample do not exist: until the delay is over, the first one is repeated.
    """
    count = s.offset.size
    q, dq, tau = row[10 : 10 + count], row[10 + count : 10 + 2 * count], row[10 + 2 * count :]
    for j in range(count):
        reading = _round_to(q[j] + s.offset[j], s.resolution[0, j])
        if s.smoothing > 0.0 and number > 0:
            s.rate[j] += s.smoothing * ((reading - s.reading[j]) / PHYSICS_DT - s.rate[j])
        else:
            s.rate[j] = dq[j]
        s.reading[j] = reading
    if number == 0:
        s.R[:], s.v[:] = _imu_pose(s, row)
    if number == 0 or number % STRIDE > 0:
        return
    sample = number // STRIDE - 1
    _inertial(s, row, draws, s.imu_line[sample % s.imu_line.shape[0]])
    line = s.joint_line[sample % s.joint_line.shape[0]]
    for j in range(count):
        line[j] = s.reading[j]
        line[count + j] = _round_to(s.rate[j], s.resolution[1, j])
        line[2 * count + j] = _round_to(tau[j] * s.torque_gain[j], s.resolution[2, j])
    # The oldest of a full line is the one that is due next.
    imu[:] = s.imu_line[max(sample + 1 - s.imu_line.shape[0], 0) % s.imu_line.shape[0]]
    joints[:] = s.joint_line[max(sample + 1 - s.joint_line.shape[0], 0) % s.joint_line.shape[0]]


@compiled
def advance_all(s: Sensors, rows: Array, draws: Array, imu: Array, joints: Array) -> None:
    """All rows of an episode."""
    for number in range(rows.shape[0]):
        k = max(number - 1, 0) // STRIDE
        advance(s, number, rows[number], draws[k], imu[k], joints[k])


class SensorStream:
    """The sensors of a robot that is being simulated, for an estimator in the loop.

    Fed with the rows of an episode one by one it returns the samples of `sense` with the same generator.
    """

    def __init__(self, robot: Robot | BareRobot, config: SensorConfig, rng: np.random.Generator) -> None:
        self._sensors, self._rng, self._row = Sensors.of(robot, config, rng), rng, -1
        self._imu, self._joints, self._draws = np.empty(6), np.empty(3 * robot.num_joints), np.zeros(IMU_DRAWS)

    def step(
        self, quat_wb_wxyz: Array, vel_w: Array, omega_b: Array, q: Array, dq: Array, q_des: Array, tau: Array
    ) -> Sample | None:
        """Take the exact state after one physics step, starting with the initial state.

        Returns:
            A sample after every second step, otherwise None. `q_des` is the target in force.
        """
        self._row += 1
        due = self._row > 0 and self._row % STRIDE == 0
        if due:
            self._draws = self._rng.standard_normal(IMU_DRAWS)
        row = np.concatenate([quat_wb_wxyz, vel_w, omega_b, q, dq, tau])
        advance(self._sensors, self._row, row, self._draws, self._imu, self._joints)
        if not due:
            return None
        angle, rate, torque = self._joints.reshape(3, -1).copy()
        gyro, accel = self._imu.reshape(2, 3).copy()
        return Sample(self._row * PHYSICS_DT, gyro, accel, angle, rate, q_des + self._sensors.offset, torque)


class SensedFeedback:
    """Runs the sensors and an estimator beside the physics, a `gait.sim.episode.Feedback`.

    Ground truth initialises the estimator, while the robot stands still; from then on it has the sensors only.
    """

    def __init__(self, estimator: Estimator, sensors: SensorConfig, rng: np.random.Generator) -> None:
        self._estimator, self._stream = estimator, SensorStream(estimator.robot, sensors, rng)
        self._columns = Columns(estimator.robot.num_joints, estimator.robot.num_legs)
        self._R_bi = kernels.rotation_from_quat(estimator.robot.imu_quat_wxyz)
        self._estimate: Fed | None = None

    def __call__(self, rows: Array) -> Fed:
        """Estimated velocity, orientation and angular rate at the last of `rows`."""
        at = self._columns
        if self._estimate is None:
            first = rows[0].copy()
            self._estimate = Fed(first[VEL], first[QUAT], first[OMEGA])
            self._in_force = first[at.q], np.zeros_like(first[at.tau])
            self._estimator.reset(quat_wb_wxyz=first[QUAT], vel_w=first[VEL], pos_w=first[POS])
        for row in rows:
            # Targets and torques of a row begin at its instant; what the drives report then is the row before's. They
            # stay views: those of the newest row are filled in after this call.
            sample = self._stream.step(row[QUAT], row[VEL], row[OMEGA], row[at.q], row[at.dq], *self._in_force)
            self._in_force = row[at.q_des], row[at.tau]
            if sample is not None:
                state = self._estimator.update(*sample)
                omega_b = rotate(self._R_bi, sample.gyro - state.gyro_bias)
                self._estimate = Fed(state.vel_w, state.quat_wb_wxyz, omega_b)
        return self._estimate


def sense(
    raw: RawEpisode, robot: Robot | BareRobot, config: SensorConfig, rng: np.random.Generator, source: str = ""
) -> Log:
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
    sensors, count = Sensors.of(robot, config, rng), robot.num_joints
    draws = rng.standard_normal((samples, IMU_DRAWS))
    imu, joints = np.empty((samples, 6)), np.empty((samples, 3 * count))
    rows = np.hstack([raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.tau])
    advance_all(sensors, rows[: 1 + samples * STRIDE], draws, imu, joints)
    at = slice(STRIDE, 1 + samples * STRIDE, STRIDE)
    exact = ("t", "contact", "pos_w", "quat_wb_wxyz", "vel_w", "foot_vel_w")
    return Log(
        **{name: getattr(raw, name)[at] for name in exact},
        gyro=imu[:, :3],
        accel=imu[:, 3:],
        q=joints[:, :count],
        dq=joints[:, count : 2 * count],
        q_des=raw.q_des[at] + sensors.offset,
        tau=joints[:, 2 * count :],
        foot_force=np.maximum(raw.foot_force_w[at, :, 2], 0.0) if config.foot_force else None,
        robot=robot.name,
        leg_names=robot.leg_names,
        joint_names=robot.joint_names,
        source=source,
    )
