"""Ordinary faults of a robot's sensors, drawn for each episode: a network trained without any would be overconfident.

Joint zeros have offsets, joint readings a delay and smoothed velocities, torques a gain error and friction, the IMU
noise and biases, and links other lengths than described. None of the figures is the
benchmark twin's: they are drawn from wide ranges around zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.log.log import Log
from gait.robot import Robot


@dataclass(frozen=True)
class FaultRanges:
    """How large faults may be; standard deviations unless said otherwise."""

    joint_zero: float = 0.01
    """Radians."""
    link: float = 0.008
    """Length of a link relative to the described one."""
    torque_gain: float = 0.06
    torque_friction: float = 0.3
    """Dry friction that the torque reading contains, N m, at most, either way."""
    joint_delay: int = 3
    """Delay of joint readings in samples, at most."""
    velocity_cutoff: tuple[float, float] = (50.0, 200.0)
    """Hz; half of the robots smooth their joint velocities, with a cut-off drawn from this range."""
    velocity_noise: float = 0.02
    """Of a joint velocity, rad/s, at most."""
    gyro_noise: float = 0.01
    """Of a sample, rad/s, at most."""
    accel_noise: float = 0.1
    """Of a sample, m/s^2, at most."""
    gyro_bias: float = 0.003
    accel_bias: float = 0.1
    imu_turn: float = 0.0
    """How far the IMU is turned against its description, rad, about each axis. Networks are trained without:
    the filter has to bear it."""
    stamp_delay: int = 0
    """Delay of all sensors against their stamps in samples, at most."""


class Faulty(NamedTuple):
    """A recording as a robot with faults would have made it."""

    log: Log
    robot: Robot
    """With links as a faulty description has them."""
    late: float
    """Delay of the joint readings in seconds."""


def with_faults(log: Log, robot: Robot, rng: np.random.Generator, ranges: FaultRanges | None = None) -> Faulty:
    """The Log with faults on its sensors; its ground truth is unchanged."""
    r = ranges or FaultRanges()
    joints, dt = log.q.shape[1], 1.0 / log.rate
    zero = rng.normal(0.0, r.joint_zero, joints)
    dq = log.dq + rng.normal(0.0, r.velocity_noise * rng.random(), log.dq.shape)
    tau = np.zeros_like(dq) if log.tau is None else log.tau
    tau = tau * rng.normal(1.0, r.torque_gain, joints) + rng.uniform(-1, 1) * r.torque_friction * np.tanh(dq / 0.1)
    delay = int(rng.integers(r.joint_delay + 1))
    rows = np.maximum(np.arange(len(log)) - delay, 0)
    late, smooth, cutoff = delay * dt, rng.random() < 0.5, rng.uniform(*r.velocity_cutoff)
    dq = dq[rows]
    if smooth:
        dq = _smoothed(dq, 1.0 - np.exp(-2.0 * np.pi * cutoff * dt))
        late += 1.0 / (2.0 * np.pi * cutoff)
    gyro = log.gyro + rng.normal(0.0, r.gyro_noise * rng.random(), log.gyro.shape) + rng.normal(0.0, r.gyro_bias, 3)
    accel = log.accel + rng.normal(0.0, r.accel_noise * rng.random(), log.gyro.shape) + rng.normal(0.0, r.accel_bias, 3)
    if r.imu_turn > 0.0:
        turn = lie.so3_exp(rng.normal(0.0, r.imu_turn, 3))
        gyro, accel = gyro @ turn, accel @ turn
    offsets = robot.offsets.copy()
    offsets[:, 1:] *= rng.normal(1.0, r.link, (len(offsets), 3, 1))
    log = log.replace(q=log.q[rows] + zero, dq=dq, tau=None if log.tau is None else tau[rows], gyro=gyro, accel=accel)
    if r.stamp_delay > 0:
        rows = np.maximum(np.arange(len(log)) - int(rng.integers(r.stamp_delay + 1)), 0)
        sensors = {name: getattr(log, name) for name in ("gyro", "accel", "q", "dq", "q_des", "tau")}
        log = log.replace(**{name: values[rows] for name, values in sensors.items() if values is not None})
    return Faulty(log, replace(robot, offsets=offsets), late)


def _smoothed(values: Array, share: float) -> Array:
    """A first-order low-pass over the rows."""
    out = np.empty_like(values)
    last = values[0]
    for k, row in enumerate(values):
        last = last + share * (row - last)
        out[k] = last
    return out


def delayed(values: Array, seconds: float, dt: float) -> Array:
    """Rows (N, C) as they were some time before, linearly between samples."""
    now = np.arange(len(values)) * dt
    return np.stack([np.interp(now - seconds, now, column) for column in values.T], axis=1)
