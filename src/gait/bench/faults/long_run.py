"""A day of samples: memory, orthonormality, stamps since 1970, and `update` against `run` bit for bit."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gait.arrays import Array
from gait.bench.courses import Progress
from gait.bench.faults.feed import SENSORS
from gait.bench.faults.track import CORE, FINITE
from gait.estimator import Estimator
from gait.log import Log
from gait.methods import known_method
from gait.rows import Row
from gait.sample_rows import rows_of
from gait.state import State, StateArrays

EPOCH = 1.8e9
"""First stamp, s: as large as a clock that counts from 1970."""
AFTER_JUMP = 2.0
"""Seconds of each repetition that do not count: where the log begins again, the robot has jumped."""

MOST_GROWTH = 8.0
"""MB by which the process may grow: what an allocator keeps back, not what leaks with each sample."""


@dataclass(frozen=True)
class LongRun:
    """What a method made of it."""

    method: str
    hours: float
    samples: int
    memory_growth: float
    """Of the process from the first repetition to the last, MB."""
    orthonormality: float
    """Largest deviation of the length of the quaternion from 1."""
    stamp_error: float
    """Largest difference between a stamp and the time of the state, s."""
    differing: int
    """States of `update` that differ from those of `run` in any bit."""
    not_finite: int
    indefinite: int
    """Repetitions after which the covariance is not positive definite."""
    first_rmse: float
    """Velocity error of the second repetition, m/s: it too begins with a jump."""
    last_rmse: float
    seconds: float
    """How long it took."""

    @property
    def passed(self) -> bool:
        """Flat memory, the same bits, and an error as at the beginning."""
        exact = not (self.differing or self.not_finite or self.indefinite)
        flat = self.memory_growth < MOST_GROWTH and self.orthonormality < 1e-9 and self.stamp_error == 0.0
        return exact and flat and self.last_rmse <= 1.2 * self.first_rmse + 0.001

    def rows(self) -> list[Row]:
        """As results: `long.gait-legs.memory_growth`."""
        units = {"hours": "h", "memory_growth": "MB", "stamp_error": "s", "first_rmse": "m/s", "last_rmse": "m/s"}
        names = (
            "hours", "samples", "memory_growth", "orthonormality", "stamp_error", "differing", "not_finite",
            "indefinite", "first_rmse", "last_rmse",
        )  # fmt: skip
        rows = [Row(f"long.{self.method}.{name}", getattr(self, name), units.get(name, "-")) for name in names]
        return [*rows, Row(f"long.{self.method}.passed", int(self.passed), "-")]

    def line(self) -> str:
        """For a terminal."""
        return (
            f"{self.method}: {'ok' if self.passed else 'FAILED'}: {self.hours:g} h, {self.samples} samples,"
            f" memory {self.memory_growth:+.1f} MB,\n  {self.differing} states of update differ from run,"
            f" {self.not_finite} with NaN, {self.indefinite} covariances indefinite,\n"
            f"  quaternion within {self.orthonormality:.1e} of length 1, stamps within {self.stamp_error:g} s,\n"
            f"  velocity error {self.first_rmse:.4f} m/s at first, {self.last_rmse:.4f} at last"
        )


def run_long(
    log: Log, methods: Sequence[str], hours: float = 24.0, progress: Progress = lambda what, share: None
) -> list[LongRun]:
    """Repeat a log for hours with each method, through `update` and through the core's `run` in step."""
    return [_long(log, known_method(method), method, hours, progress) for method in methods]


def _long(log: Log, name: str, method: str, hours: float, progress: Progress) -> LongRun:
    log = log.replace(contact=None, foot_force=None)
    streamed, whole = (Estimator.load(log.load_robot(), method) for _ in range(2))
    period = float(log.t[-1] - log.t[0] + np.median(np.diff(log.t)))
    repetitions = max(2, round(hours * 3600.0 / period))
    rows, columns = rows_of(log, whole.robot), [_column(log, sensor) for sensor in SENSORS]
    for one in (streamed, whole):
        one.start_as(log, "truth")
    whole._choose([sensor for sensor in ("q_des", "tau") if getattr(log, sensor) is not None])
    differing = not_finite = indefinite = 0
    worst_norm = worst_stamp = memory = 0.0
    errors: list[float] = []
    begin = time.perf_counter()
    for i in range(repetitions):
        progress(f"{name}: {i * period / 3600.0:.1f} h", i / repetitions)
        rows[:, 0] = EPOCH + i * period + (log.t - log.t[0])
        states = [streamed.update(*sample) for sample in zip(rows[:, 0].tolist(), *columns, strict=True)]
        found = _states(states)
        other = whole._context.run(rows)
        differing += int((found._row.view(np.uint64) != other.view(np.uint64)).any(1).sum())
        finite = [np.isfinite(getattr(found, part)).reshape(len(rows), -1).all(1) for part in FINITE]
        not_finite += int((~np.all(finite, axis=0)).sum())
        indefinite += int(np.linalg.eigvalsh(states[-1].cov[:CORE, :CORE])[0] <= 0.0)
        worst_norm = max(worst_norm, float(np.abs(np.linalg.norm(found.quat_wb_wxyz, axis=1) - 1.0).max()))
        worst_stamp = max(worst_stamp, float(np.abs(found.t - rows[:, 0]).max()))
        errors.append(_rmse(found, log))
        if i == 1:
            memory = resident()
    growth = resident() - memory
    return LongRun(
        name, repetitions * period / 3600.0, repetitions * len(log), growth, worst_norm, worst_stamp, differing,
        not_finite, indefinite, errors[1], errors[-1], time.perf_counter() - begin,
    )  # fmt: skip


def _column(log: Log, sensor: str) -> list[Array | None]:
    values = getattr(log, sensor)
    return [None] * len(log) if values is None else list(values)


def _states(states: Sequence[State]) -> StateArrays:
    """States without their covariances, as rows."""
    layout = states[0]._layout
    width = len(states[0]._row) - layout.cov_size**2
    return StateArrays(np.stack([state._row[:width] for state in states]), layout)


def _rmse(states: StateArrays, log: Log) -> float:
    late = log.t - log.t[0] >= AFTER_JUMP
    return float(np.sqrt(np.square(states.vel_b - log.vel_b)[late].sum(1).mean()))


def resident() -> float:
    """Memory of this process, MB; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
