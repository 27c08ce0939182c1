"""What a robot's sensors do in one millisecond, compiled: the step behind `gait.sim.sensors`.

Everything off gives exact data: the IMU averages are those which carry the filter's integrator

    R+ = R exp(w dt),  v+ = v + (R Gamma1(w dt) a + g) dt,  p+ = p + v dt + (R Gamma2(w dt) a + g / 2) dt^2

from one true state of the IMU to the next; the sample at t covers the 2 ms before t. Readings are those of the chip: at
its place and in its axes, which the robot's description gives.

A row of ground truth (10 + 3 J,) is orientation wxyz, velocity in the world frame, angular velocity in the base frame,
joint angles, joint velocities and joint torques side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.log.imu_noise import ImuNoise, ImuResponse, respond
from gait.robot import BareRobot, Robot
from gait.sim import kernels
from gait.sim.kernels import compiled, product, rotate

GRAVITY = 9.81
PHYSICS_DT = 0.001
"""Time between two rows of ground truth, s."""
STRIDE = 2
"""Rows of ground truth to one sample: 500 Hz."""
SAMPLE_DT = STRIDE * PHYSICS_DT
IMU_DRAWS = 12
"""Standard normal numbers that the IMU uses in one sample; those of the joints' velocities follow."""
TORQUE_SHARE = 1.0 - math.exp(-PHYSICS_DT / 0.003)
"""Share of the newest torque in the one that bends a gear, whose motor needs 3 ms to move."""
TAKE_UP = 0.5
"""Torque that takes up the play of a gear, N m."""
CREEP = 0.1
"""Joint velocity at which the friction in a torque reading is nearly whole, rad/s."""
_respond = kernels.compiled_copy(respond)


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
    flexure: float = 0.0
    """Compliance of gear and links, rad per N m of joint torque: the encoder is on the motor's side."""
    backlash: float = 0.0
    """Play between motor and link, rad from end to end; the torque decides at which end the motor is."""
    velocity_noise: float = 0.0
    """White noise of the velocity reading, standard deviation in a sample, rad/s."""
    torque_offset: tuple[float, ...] = ()
    """Error of each joint's torque zero, N m, leg by leg; empty means none."""
    torque_friction: float = 0.0
    """Dry friction in the torque reading beyond the torque that acts, N m; negative where a drive compensates for more
    than there is."""


@dataclass(frozen=True)
class SensorConfig:
    """All sensors of the robot. The defaults give exact data."""

    imu: ImuNoise = field(default_factory=ImuNoise)
    joints: JointConfig = field(default_factory=JointConfig)
    foot_force: bool = True
    """Whether the feet carry a force sensor."""
    imu_window: int = STRIDE
    """Milliseconds that one reading of the IMU averages: 1 is a chip that is read without averaging, so that impacts
    alias, 2 covers the whole sample."""
    stamp_jitter: float = 0.0
    """Largest error of a time stamp, s, either way, evenly; below a quarter of a sample. Readings and ground truth stay
    at their even instants."""


class Sensors(NamedTuple):
    """Parameters of the compiled step and, from `R` on, its state, which is changed in place. Joints are (J,)."""

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
    gain: Array
    """Reading over measured quantity, of gyro and accelerometer (2, 3)."""
    flexure: float
    backlash: float
    torque_offset: Array
    torque_friction: float
    velocity_noise: float
    window: int
    """Rows that a reading of the IMU averages."""
    R: Array
    """Orientation of the IMU where the window of its next reading begins (3, 3)."""
    v: Array
    """Its velocity there (3,)."""
    bias: Array
    """Gyro and accelerometer bias (2, 3)."""
    reading: Array
    """Angle readings one row ago (J,)."""
    rate: Array
    """Filtered velocity (J,)."""
    load: Array
    """Smoothed torque (J,)."""
    bend: Array
    """Motor minus link, rad (J,)."""
    response: ImuResponse
    imu_line: Array
    """Readings on their way (delay + 1, 6), that of a sample at its number modulo the length."""
    joint_line: Array
    """The same for angle, velocity and torque (delay + 1, 3 J)."""

    @staticmethod
    def of(robot: Robot | BareRobot, config: SensorConfig, rng: np.random.Generator) -> Sensors:
        """The sensors of a robot before the first row."""
        imu, joints, count = config.imu, config.joints, robot.num_joints
        for given in (joints.offset, joints.torque_offset):
            if given and len(given) != count:
                raise GaitError(f"sensor offsets are {len(given)} numbers but {robot.name} has {count} joints")
        if config.imu_window not in range(1, STRIDE + 1):
            raise GaitError(f"imu_window must be 1 to {STRIDE} ms, got {config.imu_window}")
        if not 0.0 <= config.stamp_jitter < 0.25 * SAMPLE_DT:
            raise GaitError(f"stamp_jitter must lie between 0 and {0.25 * SAMPLE_DT:g} s, got {config.stamp_jitter:g}")
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
            gain=imu.gain,
            flexure=float(joints.flexure),
            backlash=float(joints.backlash),
            torque_offset=np.array(joints.torque_offset or [0.0] * count),
            torque_friction=float(joints.torque_friction),
            velocity_noise=float(joints.velocity_noise),
            window=int(config.imu_window),
            R=np.eye(3),
            v=np.zeros(3),
            bias=bias + np.array([imu.gyro_offset, imu.accel_offset]),
            reading=np.zeros(count),
            rate=np.zeros(count),
            load=np.zeros(count),
            bend=np.zeros(count),
            response=ImuResponse.of(imu, SAMPLE_DT),
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
    """The average rate and specific force over the window, with the sensor's errors, in its own axes (6,)."""
    R, v = _imu_pose(s, row)
    angle, dt = kernels.so3_log(product(s.R.T, R)), s.window * PHYSICS_DT
    force_w = (v - s.v) / dt
    force_w[2] += GRAVITY
    out[:3] = angle / dt
    out[3:] = rotate(kernels.so3_left_jacobian_inverse(angle), rotate(s.R.T, force_w))
    s.v[:], s.R[:] = v, R
    _respond(s.response, out)
    for i in range(6):
        kind, axis = i // 3, i % 3
        value = s.gain[kind, axis] * out[i] + s.bias[kind, axis] + s.noise[kind] * draws[i]
        out[i] = min(max(value, -s.limit[kind]), s.limit[kind])
        s.bias[kind, axis] += s.walk[kind] * draws[6 + i]


@compiled
def _drive(s: Sensors, number: int, j: int, q: float, dq: float, tau: float) -> None:
    """Angle reading and velocity of joint j."""
    angle = q + s.offset[j]
    if s.flexure > 0.0 or s.backlash > 0.0:
        s.load[j] += (TORQUE_SHARE if number > 0 else 1.0) * (tau - s.load[j])
        bend = s.flexure * s.load[j] + 0.5 * s.backlash * min(max(s.load[j] / TAKE_UP, -1.0), 1.0)
        angle += bend
        dq += (bend - s.bend[j]) / PHYSICS_DT if number > 0 else 0.0
        s.bend[j] = bend
    reading = _round_to(angle, s.resolution[0, j])
    if s.smoothing > 0.0 and number > 0:
        s.rate[j] += s.smoothing * ((reading - s.reading[j]) / PHYSICS_DT - s.rate[j])
    else:
        s.rate[j] = dq
    s.reading[j] = reading


@compiled
def _torque(s: Sensors, j: int, dq: float, tau: float) -> float:
    """Torque reading of joint j."""
    torque = tau * s.torque_gain[j]
    # Nothing is added where there is no error: zeros keep their sign.
    if s.torque_offset[j] != 0.0:
        torque += s.torque_offset[j]
    if s.torque_friction != 0.0:
        torque += s.torque_friction * math.tanh(dq / CREEP)
    return _round_to(torque, s.resolution[2, j])


@compiled
def advance(s: Sensors, number: int, row: Array, draws: Array, imu: Array, joints: Array) -> None:
    """Take row `number`, from 0; one that completes a sample writes `imu` (6,) and `joints` (3 J,).

    Readings older than the first sample do not exist: until the delay is over, the first one is repeated.
    """
    count = s.offset.size
    q, dq, tau = row[10 : 10 + count], row[10 + count : 10 + 2 * count], row[10 + 2 * count :]
    for j in range(count):
        _drive(s, number, j, q[j], dq[j], tau[j])
    if number == 0 or ((number + s.window) % STRIDE == 0 and s.window < STRIDE):
        s.R[:], s.v[:] = _imu_pose(s, row)
    if number == 0 or number % STRIDE > 0:
        return
    sample = number // STRIDE - 1
    _inertial(s, row, draws, s.imu_line[sample % s.imu_line.shape[0]])
    line = s.joint_line[sample % s.joint_line.shape[0]]
    for j in range(count):
        line[j] = s.reading[j]
        rate = s.rate[j]
        if s.velocity_noise > 0.0:
            rate += s.velocity_noise * draws[IMU_DRAWS + j]
        line[count + j] = _round_to(rate, s.resolution[1, j])
        line[2 * count + j] = _torque(s, j, dq[j], tau[j])
    # The oldest of a full line is the one that is due next.
    imu[:] = s.imu_line[max(sample + 1 - s.imu_line.shape[0], 0) % s.imu_line.shape[0]]
    joints[:] = s.joint_line[max(sample + 1 - s.joint_line.shape[0], 0) % s.joint_line.shape[0]]


@compiled
def advance_all(s: Sensors, rows: Array, draws: Array, imu: Array, joints: Array) -> None:
    """All rows of an episode."""
    for number in range(rows.shape[0]):
        k = max(number - 1, 0) // STRIDE
        advance(s, number, rows[number], draws[k], imu[k], joints[k])
