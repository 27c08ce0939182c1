"""What a smoother leaves of the velocity's error, and what a log's latency is good for: docs/smoothing.md.

    python benchmarks/smoothing.py WALK...

Walks are files with ground truth; their first 20 s are taken.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gait
from gait import Estimator, Log, Trajectory
from gait.arrays import Array
from gait.smoothing import smooth_once, smooth_with

SECONDS = 20.0


def rms(values: Array) -> float:
    """Of the length of vectors (N, 3)."""
    return float(np.sqrt(np.square(values).sum(1).mean()))


def unexplained(error: Array, log: Log) -> float:
    """What a linear function of acceleration, rate and velocity of the body leaves: errors of latency and lengths."""
    acceleration = np.gradient(log.vel_b, log.t, axis=0)
    A = np.c_[acceleration, log.gyro, log.vel_b, np.ones(len(log))]
    return rms(error - A @ np.linalg.lstsq(A, error, rcond=None)[0])


def measure(log: Log) -> dict[str, float]:
    """Velocity, m/s, and position, m, of filter and smoothers; and the latency that was found, ms."""
    estimator = Estimator.load(log.load_robot())
    log = log.reorder(estimator.robot)
    done = smooth_with(estimator, log)
    found: dict[str, Trajectory] = {
        "filter": done.filtered, "usual latency": smooth_once(estimator, log).smoothed, "smoother": done.smoothed,
    }  # fmt: skip
    out = {f"velocity, {name}": rms(one.vel_b - log.vel_b) for name, one in found.items()}
    out |= {f"position, {name}": rms(one.pos_w - log.need("pos_w")) for name, one in found.items()}
    if done.latency is not None:
        out |= {"latency": 1e3 * done.latency.value, "latency, std": 1e3 * done.latency.std}
    return out | {"velocity, smoother, unexplained": unexplained(done.smoothed.vel_b - log.vel_b, log)}


def main() -> None:
    """Measure and print."""
    for path in map(Path, sys.argv[1:]):
        found = measure(gait.open_log(path).slice(0.0, SECONDS))
        print(path.parent.name, {name: round(value, 4) for name, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
