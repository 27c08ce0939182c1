"""What a smoother leaves of the velocity's error, and whether a second pass helps: figures of docs/smoothing.md.

    python benchmarks/smoothing.py WALK...

Walks are files with ground truth; their first 20 s are taken. The second pass begins with the biases that the first
one found over the whole log.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import gait
from gait import Estimator, Log, Trajectory
from gait.arrays import Array
from gait.smoothing import smooth_with

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
    """Velocity, m/s, and position, m, of filter, smoother and second pass."""
    estimator = Estimator.load(log.load_robot())
    log = log.reorder(estimator.robot)
    first = smooth_with(estimator, log)
    gyro_bias, accel_bias = first.smoothed.gyro_bias, first.smoothed.accel_bias
    assert gyro_bias is not None and accel_bias is not None
    again = log.replace(gyro=log.gyro - np.median(gyro_bias, axis=0), accel=log.accel - np.median(accel_bias, axis=0))
    found: dict[str, Trajectory] = {
        "filter": first.filtered, "smoother": first.smoothed, "second pass": smooth_with(estimator, again).smoothed,
    }  # fmt: skip
    out = {f"velocity, {name}": rms(one.vel_b - log.vel_b) for name, one in found.items()}
    out |= {f"position, {name}": rms(one.pos_w - log.need("pos_w")) for name, one in found.items()}
    return out | {"velocity, smoother, unexplained": unexplained(first.smoothed.vel_b - log.vel_b, log)}


def main() -> None:
    """Measure and print."""
    for path in map(Path, sys.argv[1:]):
        found = measure(gait.open_log(path).slice(0.0, SECONDS))
        print(path.parent.name, {name: round(value, 4) for name, value in found.items()}, flush=True)


if __name__ == "__main__":
    main()
