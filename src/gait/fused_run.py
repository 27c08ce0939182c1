"""A log with measurements of other sensors: every one is given to the estimator when it arrived."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gait.documents import load_yaml
from gait.errors import GaitError, located, os_errors
from gait.estimator import Estimator, StateArrays
from gait.external import Correction, ExternalSensor
from gait.io.ros.fused import Fused, due
from gait.log.fields import refuse_unknown
from gait.log.log import Log
from gait.log.trajectory import Trajectory

_SENSOR = ("p_bs", "quat_bs_wxyz", "std", "gate", "align", "reset_after")


class FusedRun(NamedTuple):
    """What came of a log and its measurements."""

    trajectory: Trajectory
    states: StateArrays
    results: list[tuple[str, Correction]]
    """Of each measurement, with the name of its sensor."""


def run_fused(estimator: Estimator, log: Log, measurements: Iterable[Fused], start: str = "auto") -> FusedRun:
    """Estimate a log, each measurement given when it arrived: the states are those of a robot that runs.

    Args:
        estimator: with a sensor of the name of each measurement.
        log: the samples.
        measurements: in the order of their arrival, on the clock of the log.
        start: as in `Estimator.run`.
    """
    log = log.reorder(estimator.robot)
    estimator.start_as(log, start)
    waiting, rows, results = list(measurements), [], []
    for row in log.rows():
        rows.append(estimator.update(row))
        results += [
            (one.name, estimator.correct(one.kind, one.t, one.value, one.noise, one.name))
            for one in due(waiting, row.t)
        ]
    states = estimator.stack(rows)
    return FusedRun(states.trajectory(log.t, estimator.method), states, results)


def sensors_of(names: Sequence[str], path: Path | None = None) -> dict[str, ExternalSensor]:
    """Sensors by topic, as a YAML file describes them; others are at base_link, in a world of their own."""
    sensors = {name: ExternalSensor(align=True) for name in names}
    if path is None:
        return sensors
    with os_errors(f"cannot read {path}"):
        tree = load_yaml(path.read_text(encoding="utf-8"))
    if not isinstance(tree, dict):
        raise GaitError(f"{path} must map topics to p_bs, quat_bs_wxyz, std, gate, align: see docs/fusion.md")
    for name, fields in tree.items():
        with located(path):
            if name not in sensors or not isinstance(fields, dict):
                raise GaitError(f"'{name}' is not fused: give --fuse {name}, or remove it")
            refuse_unknown(fields, _SENSOR, f"sensor {name}")
            try:
                sensors[name] = ExternalSensor(**{"align": True, **fields})
            except (TypeError, ValueError):
                raise GaitError(f"sensor {name} has a field that is not made of numbers") from None
    return sensors


def summary_lines(results: Iterable[tuple[str, Correction]]) -> list[str]:
    """A sentence for each sensor: how many measurements were taken, and why others were not."""
    by_name: dict[str, list[Correction]] = {}
    for name, result in results:
        by_name.setdefault(name, []).append(result)
    lines = []
    for name, found in by_name.items():
        why: dict[str, int] = {}
        for one in found:
            if not one:
                word = one.message.partition(":")[0]
                why[word] = why.get(word, 0) + 1
        ratios = [one.test_ratio for one in found if one and math.isfinite(one.test_ratio)]
        middle = f", median test ratio {np.median(ratios):.2f}" if ratios else ""
        left = "".join(f"; {count} {word}" for word, count in why.items())
        resets = sum("reset" in one.message for one in found)
        told = f"; pose reset {resets} times" if resets else ""
        lines.append(f"{name}: {sum(map(bool, found))} of {len(found)} measurements fused{middle}{left}{told}.")
    return lines
