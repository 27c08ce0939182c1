"""Logs and trajectories made up for tests."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gait import Log, Sample, Trajectory


def unit_quaternions(rng: np.random.Generator, count: int) -> np.ndarray:
    quat = rng.normal(size=(count, 4))
    return quat / np.linalg.norm(quat, axis=1, keepdims=True)


def log_arrays(count: int = 50, rate: float = 500.0, seed: int = 0, joints: int = 12, legs: int = 4) -> dict[str, Any]:
    """Every field of a Log, filled with noise."""
    rng = np.random.default_rng(seed)
    return {
        "t": np.arange(count) / rate,
        "gyro": rng.normal(size=(count, 3)),
        "accel": rng.normal(loc=(0.0, 0.0, 9.81), size=(count, 3)),
        "q": rng.normal(size=(count, joints)),
        "dq": rng.normal(size=(count, joints)),
        "q_des": rng.normal(size=(count, joints)),
        "tau": rng.normal(size=(count, joints)),
        "contact": rng.random((count, legs)) < 0.5,
        "foot_force": rng.normal(size=(count, legs)),
        "pos_w": rng.normal(size=(count, 3)),
        "quat_wb_wxyz": unit_quaternions(rng, count),
        "vel_w": rng.normal(size=(count, 3)),
        "foot_vel_w": rng.normal(size=(count, legs, 3)),
    }


def rubbish_rows(log: Log) -> Iterator[Sample]:
    """The samples of a Log with values that no sensor should report, and stamps that no clock should."""
    rng = np.random.default_rng(0)
    rubbish = (np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1e-300, 42.0)
    t = 0.0
    for row in log.rows():
        fields = {name: np.array(getattr(row, name)) for name in ("gyro", "accel", "q", "dq", "q_des", "tau")}
        for values in fields.values():
            if rng.random() < 0.1:
                values[rng.integers(len(values))] = rng.choice(rubbish)
            elif rng.random() < 0.02:
                values[:] = rng.choice(rubbish)
        t += rng.choice([0.002, 0.002, 0.002, 0.0, -0.001, 0.0053, 0.3, -5.0, 1e6])
        yield row._replace(t=rng.choice([t, t, t, t, np.nan]), **fields)


def make_log(count: int = 50, rate: float = 500.0, seed: int = 0, **changes: Any) -> Log:
    return Log(**{**log_arrays(count, rate, seed), "source": "made up", **changes})


def make_trajectory(count: int = 50, rate: float = 500.0, seed: int = 0, **changes: Any) -> Trajectory:
    """Every field of a Trajectory."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, 6, 6))
    arrays = {
        "t": np.arange(count) / rate,
        "quat_wb_wxyz": unit_quaternions(rng, count),
        "vel_w": rng.normal(size=(count, 3)),
        "pos_w": rng.normal(size=(count, 3)),
        "gyro_bias": rng.normal(size=(count, 3)),
        "accel_bias": rng.normal(size=(count, 3)),
        "vel_cov": root[:, :3, :3] @ root[:, :3, :3].swapaxes(1, 2) + np.eye(3),
        "pose_cov": root @ root.swapaxes(1, 2) + np.eye(6),
        "health": rng.integers(0, 128, size=count),
    }
    return Trajectory(**{**arrays, "source": "made up", **changes})
