"""Units, signs and scales that the user gives for fields of a log: `--scale gyro=deg/s,accel=g,q.FR_hip_joint=-1`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gait.arrays import AnyArray
from gait.errors import GaitError
from gait.io.guess import PER_JOINT, UNITS
from gait.log import Log
from gait.log.fields import Labels

JOINTS = "joints"
"""Stands for every field of the joints."""


def scaled(arrays: Mapping[str, AnyArray], text: str | None, labels: Labels) -> dict[str, AnyArray]:
    """Arrays of a log, in SI, by what the user says of their units.

    Args:
        arrays: by the name of a field, first axis time.
        text: as `ReadOptions.scale`.
        labels: names along the axes of the fields.
    """
    found = dict(arrays)
    for field, part, factor in _factors(text):
        fields = PER_JOINT if field == JOINTS else (field,)
        axes = next(one.axes for one in Log.FIELDS if one.name == fields[0])
        where: slice | int = slice(None)
        if part:
            names = labels[axes[0]] if axes else ()
            if part not in names:
                raise GaitError(f"--scale speaks of {field}.{part}, but {field} has {', '.join(names)}")
            where = names.index(part)
        for name in (name for name in fields if name in found):
            factors = np.ones(found[name].shape[1:])
            factors[where] = factor
            found[name] = found[name] * factors
    return found


def _factors(text: str | None) -> list[tuple[str, str, float]]:
    """Field, part and factor of each item."""
    known = [one.name for one in Log.FIELDS if one.dtype == "float64" and one.name not in ("t", "quat_wb_wxyz")]
    factors = []
    for item in filter(None, (item.strip() for item in (text or "").split(","))):
        name, _, unit = (word.strip() for word in item.partition("="))
        field, _, part = name.partition(".")
        if field not in (*known, JOINTS):
            raise GaitError(f"--scale speaks of '{field}': choose one of {', '.join((*known, JOINTS))}")
        try:
            factor = UNITS[unit.lower()] if unit.lower() in UNITS else float(unit)
        except ValueError:
            factor = math.nan
        if not math.isfinite(factor) or factor == 0.0:
            raise GaitError(f"--scale gives {name} '{unit}': give a factor such as -1, or a unit ({', '.join(UNITS)})")
        factors.append((field, part, factor))
    return factors
