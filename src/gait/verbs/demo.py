"""`gait demo`: what the filters make of the sample log that comes with the package."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from gait.results import Row
from gait.verbs import Common, Outcome

SAMPLE = Path(__file__).parents[1] / "samples/go1_trot.npz"


@dataclass(frozen=True)
class Options(Common):
    """Estimate 20 s of a simulated Go1 with each method and compare with the truth.

    The log is of the benchmark twin: a robot whose links, encoders, motors and IMU are all a little off, trotting on
    rubber. Nothing but its IMU and joint sensors is used; the truth is only for the start and for the score.
    """


def run(options: Options) -> Outcome:
    """Run every method on the sample."""
    if sys.stderr.isatty() and not options.json:
        print("starting; the first run compiles the estimator, which takes about a minute", file=sys.stderr)
    from gait.estimator import METHODS, Estimator
    from gait.evaluate import summary
    from gait.log import Log

    log = Log.load(SAMPLE)
    rows: list[Row] = []
    for name in METHODS:
        estimator = Estimator.load(log.robot, name)
        start = time.perf_counter()
        trajectory = estimator.run(log)
        spent = time.perf_counter() - start
        scores = {row.name: row for row in summary(trajectory, log)}
        rows += [
            Row(f"{name}.velocity_rmse", scores["velocity_rmse"].value, "m/s"),
            Row(f"{name}.re_pos_5s", scores["re_pos_5s"].value, "m"),
            Row(f"{name}.re_rot_5s", scores["re_rot_5s"].value, "rad"),
            Row(f"{name}.step", spent / len(log) * 1e6, "us"),
        ]
    return Outcome(
        rows,
        title="error of the body velocity, drift over 5 s, time a step",
        next=f"gait info {SAMPLE}",
    )
