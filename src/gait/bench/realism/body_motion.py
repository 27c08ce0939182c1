"""The motion of the body: ground truth without its outliers, with the IMU for what is too quick for motion capture.

Positions of motion capture jump now and then, and their derivative is noise above 5 Hz. What the IMU integrates drifts,
but slowly. So ground truth less the integrated IMU is smoothed over `FUSED` seconds, without outliers, and added back:

    p = p_imu + smooth(p_truth - p_imu)

Attitude alike. Errors of the IMU itself are measured against ground truth alone, smoothed over `ALONE` seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gait import quaternions
from gait.arrays import Array, BoolArray
from gait.bench.realism.even_signals import derivative, smoothed, widened, without_outliers
from gait.lie import rotation_from_quat
from gait.log import Log
from gait.robot import Robot

FUSED = 0.15
ALONE = 0.1
JUMP, TURN = 0.002, 0.01
"""Deviations of ground truth, m and rad, that are never outliers."""
PULL = 1.0
"""Time constant with which the integrated attitude follows ground truth, s: it only must not drift away."""
EDGE = 0.2
"""Seconds at both ends that are left out: no smoothing reaches beyond."""
GRAVITY_W = np.array([0.0, 0.0, 9.81])


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """On the clock of an evenly sampled log."""

    rate: float
    pos_w: Array
    quat_wb_wxyz: Array
    imu_vel_w: Array
    """Velocity of the place of the IMU by ground truth alone (N, 3)."""
    omega_b: Array
    """Angular rate by ground truth alone (N, 3)."""
    outlier: BoolArray
    """Rows at which ground truth jumps (N,)."""
    bridged: bool
    """Whether the accelerometer bridges outliers of the ground truth."""

    @cached_property
    def vel_w(self) -> Array:
        """Velocity of the body (N, 3)."""
        return derivative(self.pos_w, self.rate)

    @cached_property
    def vel_b(self) -> Array:
        """Velocity of the body in its own frame (N, 3)."""
        return quaternions.rotate_inverse(self.quat_wb_wxyz, self.vel_w)

    @cached_property
    def accel_b(self) -> Array:
        """Derivative of `vel_b`, smoothed over 30 ms (N, 3)."""
        return derivative(smoothed(self.vel_b, self.rate, 0.03), self.rate)

    @cached_property
    def force_b(self) -> Array:
        """Specific force at the IMU by ground truth alone (N, 3)."""
        return quaternions.rotate_inverse(self.quat_wb_wxyz, derivative(self.imu_vel_w, self.rate) + GRAVITY_W)

    @cached_property
    def valid(self) -> BoolArray:
        """Rows at which ground truth alone may be compared with (N,)."""
        return self._inside & ~widened(self.outlier, round(ALONE / 2.0 * self.rate))

    @cached_property
    def known(self) -> BoolArray:
        """Rows at which the motion is known (N,)."""
        return self._inside if self.bridged else self.valid

    @cached_property
    def _inside(self) -> BoolArray:
        inside, edge = np.ones(len(self.pos_w), dtype=bool), round(EDGE * self.rate)
        inside[:edge] = inside[len(inside) - edge :] = False
        return inside


def imu_in_body(log: Log, robot: Robot) -> tuple[Array, Array]:
    """Angular rate and specific force in the axes of the body (N, 3)."""
    R_bi = rotation_from_quat(robot.imu_quat_wxyz)
    return log.gyro @ R_bi.T, log.accel @ R_bi.T


def body_motion(log: Log, robot: Robot, accelerometer: bool = True) -> BodyMotion:
    """The motion of the body of an evenly sampled log with ground truth.

    Args:
        log: with `pos_w` and `quat_wb_wxyz`.
        robot: whose log it is.
        accelerometer: whether `accel` was measured; otherwise positions are smoothed alone.
    """
    rate, dt, rows = log.rate, 1.0 / log.rate, np.arange(len(log))
    gyro_b, accel_b = imu_in_body(log, robot)
    truth = log.need("quat_wb_wxyz")
    near = _integrated(gyro_b, truth, dt)
    error_w = rotation_vectors(quaternions.multiply(truth, quaternions.inverse(near)))
    turn_w, turned = without_outliers(error_w, rate, FUSED, TURN)
    quat = quaternions.multiply(_quaternions_of(turn_w), near)
    lever_w = quaternions.rotate(quat, robot.imu_position)
    integrated = np.zeros_like(lever_w)
    if accelerometer:
        force_w = quaternions.rotate(quat, accel_b) - GRAVITY_W
        integrated = np.cumsum(np.cumsum(force_w, axis=0), axis=0) * dt * dt
    rest = log.need("pos_w") + lever_w - integrated
    smooth, jumped = without_outliers(rest, rate, FUSED if accelerometer else ALONE, JUMP)
    kept = np.stack([np.interp(rows, rows[~jumped], one[~jumped]) for one in rest.T], axis=1)
    imu_vel_w = derivative(smoothed(integrated + kept, rate, ALONE), rate)
    omega_b = smoothed(_rates(np.where(turned[:, None], quat, truth), dt), rate, ALONE)
    return BodyMotion(rate, integrated + smooth - lever_w, quat, imu_vel_w, omega_b, jumped | turned, accelerometer)


def rotation_vectors(quat_wxyz: Array) -> Array:
    """Rotation vectors (N, 3) of at most half a turn, of unit quaternions (N, 4)."""
    quat = np.where(quat_wxyz[:, :1] < 0.0, -quat_wxyz, quat_wxyz)
    sine = np.linalg.norm(quat[:, 1:], axis=1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, quat[:, :1])
    return np.asarray(quat[:, 1:] * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0))


def _quaternions_of(vectors: Array) -> Array:
    angle = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.hstack([np.cos(angle / 2.0), 0.5 * np.sinc(angle / (2.0 * np.pi)) * vectors])


def _rates(quat_wxyz: Array, dt: float) -> Array:
    """Angular rates (N, 3) in the body frame between the neighbours of each sample."""
    step = rotation_vectors(quaternions.multiply(quaternions.inverse(quat_wxyz[:-2]), quat_wxyz[2:])) / (2.0 * dt)
    return np.vstack([step[:1], step, step[-1:]])


def _integrated(gyro_b: Array, truth: Array, dt: float) -> Array:
    """Attitudes (N, 4) by the gyro, which ground truth keeps from drifting away."""
    steps, out = _quaternions_of(gyro_b * dt).tolist(), [truth[0].tolist()]
    share = dt / PULL
    # Floats, sample by sample: arrays of four numbers cost ten times as much.
    for (w, x, y, z), true in zip(steps[1:], truth[1:].tolist(), strict=True):
        a, b, c, d = out[-1]
        quat = (a * w - b * x - c * y - d * z, a * x + b * w + c * z - d * y, a * y - b * z + c * w + d * x,
                a * z + b * y - c * x + d * w)  # fmt: skip
        sign = share if sum(p * q for p, q in zip(quat, true, strict=True)) >= 0.0 else -share
        quat = tuple((1.0 - share) * p + sign * q for p, q in zip(quat, true, strict=True))
        length = math.sqrt(sum(p * p for p in quat))
        out.append([p / length for p in quat])
    return np.array(out)
