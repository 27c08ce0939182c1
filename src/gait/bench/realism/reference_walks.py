"""Simulated walks to hold a log against: what a training sees, and the benchmark twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gait.bench.realism.measured_log import MeasuredLog, measure
from gait.robot import Robot
from gait.sim.collect import simulate_episode
from gait.sim.plan import CollectConfig
from gait.train.faults import MILD, MILD_SHARE, FaultRanges, with_faults

SECONDS = 10.0
TRAINING, TWIN = "training", "twin"
"""Names of the columns."""

Progress = Callable[[str, float], None]


def reference_walks(
    gait: str, terrain: str, episodes: int, seed: int, progress: Progress = lambda what, share: None
) -> dict[str, list[MeasuredLog]]:
    """Episodes of training data, with faults drawn as a training draws them, and of the twin, measured.

    Args:
        gait: how the robot walks.
        terrain: on what.
        episodes: of training data, which differ more than those of the twin: of it half as many.
        seed: every random number comes from here.
        progress: called with the progress in words.
    """
    robot, count = Robot.load("go1"), episodes + max(episodes // 2, 1)
    twin = CollectConfig(gait=gait, terrain=terrain, seconds=SECONDS, seed=seed, sensors="twin")
    training = replace(twin, sensors="exact", varied=True)
    found: dict[str, list[MeasuredLog]] = {TRAINING: [], TWIN: []}
    for number in range(episodes):
        progress("simulating training data", number / count)
        log = simulate_episode(training, number).log
        rng = np.random.default_rng([seed, number])
        faulty = with_faults(log, robot, rng, MILD if rng.random() < MILD_SHARE else FaultRanges())
        found[TRAINING].append(measure(faulty.log, faulty.robot))
    for number in range(count - episodes):
        progress("simulating the twin", (episodes + number) / count)
        log = simulate_episode(twin, number).log
        found[TWIN].append(measure(log, robot))
    return found
