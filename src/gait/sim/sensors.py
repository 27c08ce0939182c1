"""Sensors: from ground truth at 1 kHz to the readings of an IMU and twelve drives at 500 Hz.

One compiled step, `gait.sim.sensor_step.advance`, serves whole episodes (`sense`) and closed loops (`SensorStream`), so
both see the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.log.log import Log, described
from gait.log.sample import Sample
from gait.robot import BareRobot, Robot
from gait.sim import kernels
from gait.sim.episode import Fed, RawEpisode
from gait.sim.kernels import rotate
from gait.sim.sensor_step import IMU_DRAWS, PHYSICS_DT, STRIDE, SensorConfig, Sensors, advance, advance_all
from gait.sim.stepping import OMEGA, POS, QUAT, VEL, Columns

if TYPE_CHECKING:
    from gait.estimator import Estimator


class SensorStream:
    """The sensors of a robot that is being simulated, for an estimator in the loop.

    Fed with the rows of an episode one by one it returns the samples of `sense` with the same generator.
    """

    def __init__(self, robot: Robot | BareRobot, config: SensorConfig, rng: np.random.Generator) -> None:
        self._sensors, self._rng, self._row = Sensors.of(robot, config, rng), rng, -1
        self._own, self._late = own_draws(config, rng, robot.num_joints), 0.0
        self._imu, self._joints, self._draws = np.empty(6), np.empty(3 * robot.num_joints), np.zeros(0)

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
            late, rates = self._own(1)
            self._late, self._draws = float(late[0]), np.append(self._rng.standard_normal(IMU_DRAWS), rates)
        row = np.concatenate([quat_wb_wxyz, vel_w, omega_b, q, dq, tau])
        advance(self._sensors, self._row, row, self._draws, self._imu, self._joints)
        if not due:
            return None
        angle, rate, torque = self._joints.reshape(3, -1).copy()
        gyro, accel = self._imu.reshape(2, 3).copy()
        return Sample(
            self._row * PHYSICS_DT + self._late, gyro, accel, angle, rate, q_des + self._sensors.offset, torque
        )


def own_draws(config: SensorConfig, rng: np.random.Generator, joints: int) -> Callable[[int], tuple[Array, Array]]:
    """Draws for the next N samples the errors of time stamps, s (N,), and the noise of joint velocities (N, J).

    Generators of their own leave all other draws as they are without them.
    """
    (stamps, rates), jitter = rng.spawn(2), config.stamp_jitter
    return lambda count: (stamps.uniform(-jitter, jitter, count), rates.standard_normal((count, joints)))


class SensedFeedback:
    """Runs the sensors and an estimator beside the physics, a `gait.sim.episode.Feedback`.

    Ground truth initialises the estimator, while the robot stands still; from then on it has the sensors only.
    """

    def __init__(
        self, estimator: Estimator, robot: Robot | BareRobot, sensors: SensorConfig, rng: np.random.Generator
    ) -> None:
        self._estimator, self._stream = estimator, SensorStream(robot, sensors, rng)
        self._columns = Columns(robot.num_joints, robot.num_legs)
        self._R_bi = kernels.rotation_from_quat(robot.imu_quat_wxyz)
        # Arms and a waist have no part in the estimate.
        self._own = [robot.joint_names.index(name) for name in estimator.robot.joint_names]
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
                joints = {name: getattr(sample, name)[self._own] for name in ("q", "dq", "q_des", "tau")}
                state = self._estimator.update(*sample._replace(**joints))
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
    samples, known = (len(raw.t) - 1) // STRIDE, robot if isinstance(robot, Robot) else robot.described
    if samples < 2:
        raise GaitError(f"an episode of {len(raw.t)} rows is too short for sensors: simulate at least 10 ms")
    sensors, count = Sensors.of(robot, config, rng), robot.num_joints
    late, rates = own_draws(config, rng, count)(samples)
    draws = np.hstack([rng.standard_normal((samples, IMU_DRAWS)), rates])
    imu, joints = np.empty((samples, 6)), np.empty((samples, 3 * count))
    rows = np.hstack([raw.quat_wb_wxyz, raw.vel_w, raw.omega_b, raw.q, raw.dq, raw.tau])
    advance_all(sensors, rows[: 1 + samples * STRIDE], draws, imu, joints)
    at = slice(STRIDE, 1 + samples * STRIDE, STRIDE)
    exact = ("contact", "pos_w", "quat_wb_wxyz", "vel_w", "foot_vel_w")
    return Log(
        t=raw.t[at] + late,
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
        description=described(known) if known is not None else "",
    )
