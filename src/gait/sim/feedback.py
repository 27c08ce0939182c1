"""Estimators in the loop: what the walking controller believes when it is not told the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.filters import BASELINES, ContactAided
from gait.robots import Robot
from gait.sim.episode import EpisodeConfig, Feedback
from gait.sim.sensing import SAMPLE_DT
from gait.sim.sensors import SensorConfig, SensorSample, SensorStream
from gait.sim.stepping import DQ, OMEGA, POS, Q_DES, QUAT, TAU, VEL, Q


class LoopEstimator(Protocol):
    """What an estimator must do to steer a robot."""

    def start(self, quat_wb_wxyz: Array, vel_w: Array, pos_w: Array) -> None:
        """Begin at this state of the base."""

    def update(self, sample: SensorSample) -> tuple[Array, Array]:
        """Take a 500 Hz sample; velocity (3,) of the base in the world frame, and its orientation wxyz (4,)."""


class ContactAidedLoop:
    """The contact-aided filter with contacts from joint torques."""

    def __init__(self, robot: Robot, params: ContactAided) -> None:
        # Only here: who walks on the truth need not wait for the filter to be compiled.
        from gait.filters import ContactAidedFilter

        self._filter = ContactAidedFilter(robot, params)

    def start(self, quat_wb_wxyz: Array, vel_w: Array, pos_w: Array) -> None:
        """Begin at this state of the base."""
        self._filter.reset(quat_wb_wxyz, vel_w, pos_w)

    def update(self, sample: SensorSample) -> tuple[Array, Array]:
        """Take a 500 Hz sample."""
        self._filter.step(SAMPLE_DT, sample.gyro, sample.accel, sample.q, sample.dq, sample.tau)
        return self._filter.vel_w, self._filter.quat_wb_wxyz


ESTIMATORS: dict[str, Callable[[Robot], LoopEstimator]] = {
    name: partial(ContactAidedLoop, params=params) for name, params in BASELINES.items()
}
"""Estimators by name; one more is one more line."""

FEEDBACKS = ("truth", *ESTIMATORS)
"""What the controller can be fed with."""


class SensedFeedback:
    """Runs the sensors and an estimator beside the physics; implements `gait.sim.episode.Feedback`.

    The estimator is told the truth once, at the start, when the robot stands still; from then on it has the sensors
    only.
    """

    def __init__(self, estimator: LoopEstimator, robot: Robot, sensors: SensorConfig, rng: np.random.Generator) -> None:
        self._estimator = estimator
        self._stream = SensorStream(robot, sensors, rng)
        self._vel_w, self._quat = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        self._q_des, self._tau = np.zeros(robot.num_joints), np.zeros(robot.num_joints)

    def start(self, config: EpisodeConfig, row: Array) -> None:
        """Begin an episode whose first record row is `row`."""
        self._vel_w, self._quat = row[VEL].copy(), row[QUAT].copy()
        self._q_des, self._tau = row[Q].copy(), np.zeros_like(self._tau)
        self._estimator.start(self._quat, self._vel_w, row[POS].copy())

    def __call__(self, rows: Array) -> tuple[Array, Array]:
        """Velocity and orientation that the estimator believes at the last of `rows`."""
        for row in rows:
            # Targets and torques of a row begin at its instant; what the drives report then is the row before's. They
            # stay views: those of the newest row are filled in after this call.
            sample = self._stream.step(row[QUAT], row[VEL], row[OMEGA], row[Q], row[DQ], self._q_des, self._tau)
            self._q_des, self._tau = row[Q_DES], row[TAU]
            if sample is not None:
                self._vel_w, self._quat = self._estimator.update(sample)
        return self._vel_w, self._quat


def feedback_of(name: str, robot: Robot, sensors: SensorConfig, rng: np.random.Generator) -> Feedback | None:
    """The feedback of that name for one episode; None, which is the truth, for `truth`."""
    if name == "truth":
        return None
    if name not in ESTIMATORS:
        raise GaitError(f"unknown feedback '{name}': choose one of {', '.join(FEEDBACKS)}")
    return SensedFeedback(ESTIMATORS[name](robot), robot, sensors, rng)
