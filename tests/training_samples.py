"""A small data set that a network can learn from in seconds."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gait import Log

ROWS, EPISODES = 300, 8
TINY: dict[str, Any] = {
    "iterations": 6, "l1_iterations": 3, "warmup": 2, "sequences": 4, "steps": 60, "truncate": 25, "validate_every": 3,
}  # fmt: skip


def smooth(rng: np.random.Generator, columns: int, rows: int) -> np.ndarray:
    t = np.arange(rows)[:, None] / 500.0
    waves = [
        rng.normal(size=columns) * np.sin(2 * np.pi * rng.uniform(0.5, 4.0, columns) * t + rng.uniform(0, 6, columns))
        for _ in range(3)
    ]
    return np.sum(waves, 0)


def made_up_log(seed: int, rows: int = ROWS) -> Log:
    """A robot whose velocity is the mean of what its legs do: simple, but only the legs tell it."""
    rng = np.random.default_rng(seed)
    dq = smooth(rng, 12, rows)
    return Log(
        t=np.arange(rows) / 500.0,
        gyro=0.1 * smooth(rng, 3, rows),
        accel=[0.0, 0.0, 9.81] + 0.5 * smooth(rng, 3, rows),
        q=smooth(rng, 12, rows),
        dq=dq,
        q_des=smooth(rng, 12, rows),
        contact=dq[:, ::3] > 0.0,
        pos_w=np.zeros((rows, 3)),
        quat_wb_wxyz=np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1)),
        vel_w=0.3 * dq.reshape(-1, 4, 3).mean(1),
    )


def write_collection(folder: Path, sensors: str = "exact", episodes: int = EPISODES, rows: int = ROWS) -> Path:
    folder.mkdir()
    lines = []
    for i in range(episodes):
        made_up_log(i, rows).save(folder / f"episode_{i:05d}.npz")
        lines.append(json.dumps({"episode": i, "file": f"episode_{i:05d}.npz"}))
    (folder / "index.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "collection.json").write_text(json.dumps({"gait": "trot", "sensors": sensors}))
    return folder
