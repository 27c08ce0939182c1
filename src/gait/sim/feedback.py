"""Estimators in the loop: the walking controller's velocity and orientation from simulated sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.robot import Robot
from gait.sim.episode import Feedback
from gait.sim.sensors import SensorConfig, SensorStream
from gait.sim.stepping import DQ, OMEGA, POS, Q_DES, QUAT, TAU, VEL, Q

if TYPE_CHECKING:
    from gait.estimator import Estimator

TRUTH = "truth"
"""Name of the feedback from ground truth."""


class SensedFeedback:
    """Runs the sensors and an estimator beside the physics, a `gait.sim.episode.Feedback`.

    Ground truth initialises the estimator, while the robot stands still; from then on it has the sensors only.
    """

    def __init__(self, estimator: Estimator, sensors: SensorConfig, rng: np.random.Generator) -> None:
        self._estimator, self._stream = estimator, SensorStream(estimator.robot, sensors, rng)
        self._estimate: tuple[Array, Array] | None = None

    def __call__(self, rows: Array) -> tuple[Array, Array]:
        """Estimated velocity and orientation at the last of `rows`."""
        if self._estimate is None:
            first = rows[0].copy()
            self._estimate = first[VEL], first[QUAT]
            self._in_force = first[Q], np.zeros_like(first[TAU])
            self._estimator.reset(quat_wb_wxyz=first[QUAT], vel_w=first[VEL], pos_w=first[POS])
        for row in rows:
            # Targets and torques of a row begin at its instant; what the drives report then is the row before's. They
            # stay views: those of the newest row are filled in after this call.
            sample = self._stream.step(row[QUAT], row[VEL], row[OMEGA], row[Q], row[DQ], *self._in_force)
            self._in_force = row[Q_DES], row[TAU]
            if sample is not None:
                state = self._estimator.update(*sample)
                self._estimate = state.vel_w, state.quat_wb_wxyz
        return self._estimate


def check_feedback(name: str) -> None:
    """Raise a GaitError unless this names a feedback: `truth`, a method, or a model."""
    if name == TRUTH:
        return
    # Imported here: without an estimator in the loop its modules are not loaded.
    from gait.estimator import METHODS
    from gait.nets.model import load_model

    if name not in METHODS:
        try:
            load_model(name)
        except GaitError as error:
            choices = ", ".join((TRUTH, *METHODS))
            raise GaitError(f"unknown feedback '{name}': choose one of {choices} or a model file ({error})") from None


def feedback_of(name: str, robot: Robot, sensors: SensorConfig, rng: np.random.Generator) -> Feedback | None:
    """The feedback for one episode by the name of a method, or the name or path of a model; None for `truth`."""
    if name == TRUTH:
        return None
    from gait.estimator import Estimator

    return SensedFeedback(Estimator.load(robot, name), sensors, rng)
