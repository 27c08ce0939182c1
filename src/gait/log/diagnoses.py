"""What the checks of the estimator found in a whole log, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray
from gait.health import Health, HealthReport

_PASSING = Health.STARTING | Health.NO_MEASUREMENT | Health.REJECTED | Health.SLIP | Health.TIME_GAP | Health.BAD_TIME
"""What walking brings along, or other notes tell of."""


def diagnoses(t: Array, health: AnyArray, legs: Sequence[str] = (), least: float = 0.02) -> list[str]:
    """What was found in a log: one line for each distinct diagnosis, in the order of their first appearance.

    Args:
        t: stamps (N,), s.
        health: bits (N,).
        legs: names of the legs.
        least: seconds for which it must have been shown in all.
    """
    period = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    shown = lasting(health, legs)
    found = sorted((int(rows.argmax()), word, float(rows.sum()) * period) for word, rows in shown.items())
    return [f"{word}: for {lasted:.2g} s, first at {t[k]:.2f} s" for k, word, lasted in found if lasted >= least]


def lasting(health: AnyArray, legs: Sequence[str] = ()) -> dict[str, BoolArray]:
    """By diagnosis, the rows (N,) that show it; without what walking brings along."""
    bits = np.asarray(health).astype(np.int64) & ~int(_PASSING)
    shown: dict[str, BoolArray] = {}
    for value in np.unique(bits[bits != 0]):
        for word in HealthReport(int(value), legs, 0.0).words:
            shown[word] = shown.get(word, np.zeros(len(bits), dtype=np.bool_)) | (bits == value)
    return shown
