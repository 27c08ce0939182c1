"""Samples as an estimator receives them, with whatever is wrong with them, and the ground truth beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gait.arrays import AnyArray, Array, BoolArray
from gait.errors import GaitError
from gait.estimator import Estimator
from gait.log import Log

SENSORS = ("gyro", "accel", "q", "dq", "q_des", "tau")
"""What is delivered. Contact flags and foot forces of a simulated log are ground truth and are kept back."""
OPTIONAL = SENSORS[4:]
TRUTH = ("pos_w", "quat_wb_wxyz", "vel_w")
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Feed:
    """Samples in the order in which they arrive. Unlike a Log it may hold NaN, and stamps that do not increase.

    Its arrays belong to it: an injector writes into them, or returns a Feed of other rows.
    """

    time: Array
    """When each sample arrives (N,), s, on a clock that is right."""
    stamps: Array
    """What its stamp says (N,), s."""
    values: dict[str, AnyArray]
    """By name of the sensor (N, ...)."""
    truth: dict[str, Array]
    """By name (N, ...), at `time`."""
    log: Log
    """Where the samples come from."""
    start: str = "truth"
    """`truth` or `gravity`, as `Estimator.run` has it."""
    absent: dict[str, BoolArray] = field(default_factory=dict)
    """Where an optional sensor is None rather than an array (N,), by name."""

    @staticmethod
    def of(log: Log, start: str = "truth") -> Feed:
        """The samples of a log with ground truth, nothing wrong with them."""
        if not log.has_truth:
            raise GaitError("faults are measured against ground truth: give a log with pos_w, quat_wb_wxyz and vel_w")
        arrays = log.arrays()
        values = {name: np.array(arrays[name]) for name in SENSORS if name in arrays}
        truth = {name: np.array(arrays[name]) for name in TRUTH}
        return Feed(np.array(log.t), np.array(log.t), values, truth, log, start)

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, t0: float, t1: float) -> slice:
        """The rows with t0 <= time < t1. Half a millisecond early: a stamp is rounded."""
        first, last = np.searchsorted(self.time, np.array([t0, t1]) - 5e-4)
        return slice(int(first), int(last))

    def put(self, name: str, rows: slice, value: npt.ArrayLike, columns: Any = ALL) -> Feed:
        """Overwrite part of a sensor that is there."""
        if name in self.values:
            self.values[name][rows, columns] = value
        return self

    def hide(self, name: str, rows: slice) -> Feed:
        """Give None in place of a sensor."""
        mask = self.absent.setdefault(name, np.zeros(len(self), dtype=bool))
        mask[rows] = True
        return self

    def take(self, index: AnyArray) -> Feed:
        """Other rows: chosen by number or by a mask, sensors, stamps and ground truth alike."""
        return replace(
            self,
            time=self.time[index],
            stamps=self.stamps[index],
            values={name: array[index] for name, array in self.values.items()},
            truth={name: array[index] for name, array in self.truth.items()},
            absent={name: array[index] for name, array in self.absent.items()},
        )

    def samples(self) -> Iterator[tuple[Any, ...]]:
        """Arguments of `Estimator.update`, one tuple a sample."""
        columns: list[Any] = [self.stamps.tolist()]
        for name in SENSORS:
            column: list[Any] = list(self.values[name]) if name in self.values else [None] * len(self)
            if name in self.absent:
                column = [None if gone else row for row, gone in zip(column, self.absent[name], strict=True)]
            columns.append(column)
        return zip(*columns, strict=True)

    def lacks(self) -> list[str]:
        """Sensors that no sample has."""
        return [
            name for name in SENSORS if name not in self.values or (name in self.absent and self.absent[name].all())
        ]

    def first_changed(self, other: Feed, first: int) -> int:
        """The first row from `first` on that differs from a feed of the same rows; `first` if rows are others."""
        if len(self) != len(other):
            return first
        changed = self.stamps != other.stamps
        for name, array in self.values.items():
            if name in other.values:
                changed |= ((array != other.values[name]) & ~(np.isnan(array) & np.isnan(other.values[name]))).any(1)
        for mask in self.absent.values():
            changed |= mask
        at = np.flatnonzero(changed[first:])
        return first + int(at[0]) if at.size else first

    def begin(self, estimator: Estimator) -> None:
        """Reset an estimator to where the samples begin."""
        if self.start != "truth":
            estimator.reset()
            return
        # The rate of the log, not of the feed, whose first sample may be the one that is broken.
        first = {name: array[0] for name, array in self.truth.items()}
        row = int(np.argmin(np.abs(self.log.t - self.time[0])))
        estimator.reset(**first, gyro=self.log.gyro[row])
