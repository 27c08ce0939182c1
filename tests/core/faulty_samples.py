"""Samples with faults through `Estimator.update`, for tests of the core's checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np

from gait import Estimator, Log, Robot, State
from gait.log.sample import Sample
from gait.samples import SAMPLE

RATE, FAULT = 500, 200
"""Hz, and the sample from which on tests change something."""
Edit = Callable[[int, Sample], Sample | None]


@cache
def sample_log() -> Log:
    """Four seconds of a walk, from zero on."""
    log = Log.load(SAMPLE).slice(2.0, 6.0)
    return log.replace(t=log.t - log.t[0])


def run(method: str, edit: Edit, seconds: float = 1.0, begin: float = 0.0) -> list[State]:
    """States of a walk whose samples from FAULT on are edited, or lost where that gives None."""
    log = sample_log().slice(begin, begin + seconds)
    estimator = Estimator.load("go1", method)
    estimator.start_as(log, "truth")
    rows = (edit(k, row) if k >= FAULT else row for k, row in enumerate(log.rows()))
    return [estimator.update(row) for row in rows if row is not None]


def words(states: Iterable[State]) -> set[str]:
    """All that was said of their health."""
    return {word for state in states for word in state.health.words}


def error(states: list[State], begin: float = 0.0) -> np.ndarray:
    """Of the velocity (N,), m/s; no sample may have been lost."""
    log = sample_log().slice(begin, begin + len(states) / RATE + 0.1)
    return np.linalg.norm(np.array([s.vel_b for s in states]) - log.vel_b[: len(states)], axis=1)


def standing(count: int, rate: float = RATE, upright: bool = True) -> list[Sample]:
    """Samples of a robot at rest, with the noise of sensors."""
    robot, rng, g = Robot.load("go1"), np.random.default_rng(0), np.array([0.0, 0.0, 9.81 if upright else -9.81])
    return [
        Sample(
            t=k / rate,
            gyro=rng.normal(size=3) * 0.002,
            accel=g + rng.normal(size=3) * 0.02,
            q=robot.q_stand + rng.normal(size=12) * 1e-5,
            dq=rng.normal(size=12) * 1e-3,
            q_des=robot.q_stand + 0.05,
            tau=np.zeros(12) if not upright else None,
        )
        for k in range(count)
    ]
