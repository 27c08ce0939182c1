"""What goes into an estimator in a case: arrays, options and a start."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import gait

SENSORS = ("gyro", "accel", "q", "dq", "q_des", "tau", "foot_force", "contact")
ALL = slice(None)


class Inputs:
    """Arrays that go into an estimator, how it is loaded and from where it starts."""

    def __init__(self, log: gait.Log, start: str = "truth", **load: Any) -> None:
        self.values = {name: np.array(array) for name, array in log.arrays().items()}
        self.leg_ok: npt.NDArray[np.bool_] | None = None
        """Flags of `update` (N, L); None if they are not given."""
        self.start = start
        """`truth` or `gravity`."""
        self.load = {"robot": "go1", **load}
        """Arguments of `Estimator.load` beside the method."""
        self.events: list[int] = []
        """Rows where something begins or ends: outputs around them are stored."""

    def rows(self, t0: float, t1: float) -> slice:
        """The rows with t0 <= t < t1, marked as events. Times count from the first row."""
        t = self.values["t"] - self.values["t"][0]
        # Half a row early: a stamp is rounded.
        first, last = (int(np.searchsorted(t, limit - 1e-3)) for limit in (t0, t1))
        self.events += [first, last]
        return slice(first, last)

    def put(self, name: str, t0: float, t1: float, value: npt.ArrayLike, columns: slice = ALL) -> Inputs:
        """Overwrite part of a field."""
        self.values[name][self.rows(t0, t1), columns] = value
        return self

    def leave_out(self, *names: str) -> Inputs:
        """Remove fields."""
        for name in names:
            del self.values[name]
        return self

    def keep(self, rows: npt.NDArray[np.bool_]) -> Inputs:
        """Remove the other rows."""
        before = np.concatenate([[0], np.cumsum(rows)])
        self.events = [int(before[event]) for event in self.events]
        self.values = {name: array[rows] for name, array in self.values.items()}
        return self

    def cut(self, t0: float, t1: float) -> Inputs:
        """Remove the rows of a time span."""
        keep = np.ones(len(self), dtype=np.bool_)
        keep[self.rows(t0, t1)] = False
        return self.keep(keep)

    def __len__(self) -> int:
        return len(self.values["t"])

    def log(self) -> gait.Log | None:
        """As a Log; None where a Log refuses it and it has to go in sample by sample."""
        finite = all(np.isfinite(array).all() for array in self.values.values())
        if self.leg_ok is not None or not finite or (np.diff(self.values["t"]) <= 0.0).any():
            return None
        return gait.Log(**self.values)
