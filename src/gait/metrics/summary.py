"""All metrics of one run as rows, and their mean and spread across runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.log import MAX_GAP, Log, Trajectory
from gait.metrics import trajectory_error as errors
from gait.metrics.align import CLOCK_TOLERANCE, Method, associate
from gait.metrics.consistency import coverage, nees
from gait.rows import Row


@dataclass(frozen=True)
class MeanStd:
    """Mean and sample standard deviation across runs."""

    mean: float
    std: float
    """Divided by runs - 1; nan for a single run, whose spread is unknown."""
    count: int


def mean_std(values: Sequence[float] | Array) -> MeanStd:
    """Mean (std) of one metric across runs."""
    runs = np.asarray(values, dtype=np.float64)
    if runs.ndim != 1 or len(runs) == 0:
        raise GaitError("no runs to average: give one number for each run")
    return MeanStd(float(runs.mean()), float(runs.std(ddof=1)) if len(runs) > 1 else float("nan"), len(runs))


def across_runs(runs: Sequence[Sequence[Row]]) -> dict[str, MeanStd]:
    """Mean (std) of every number that all runs have, by name and in the order of the first run."""
    tables = [{row.name: row.value for row in run if not isinstance(row.value, str)} for run in runs]
    if not tables:
        raise GaitError("no runs to average: give the rows of at least one run")
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return {name: mean_std([float(table[name]) for table in tables]) for name in shared}


def summary(
    estimate: Trajectory,
    truth: Log | Trajectory,
    *,
    contact: AnyArray | None = None,
    alignment: Method = "yaw",
    seconds: float | None = 5.0,
    max_gap: float = MAX_GAP,
) -> list[Row]:
    """Every metric of one run as rows.

    Args:
        estimate: the trajectory to evaluate.
        truth: a log with ground truth, or another trajectory.
        contact: of the contact estimator on the log's clock (N, legs), for the errors while slipping.
        alignment: of the absolute error.
        seconds: window of the relative error; none leaves it out, as for runs shorter than a window.
        max_gap: longest distance between two samples of the ground truth to interpolate across, s.
    """
    pair = associate(estimate, truth, max_gap=max_gap)
    rows = [Row("duration", float(pair.t[-1] - pair.t[0]), "s"), Row("samples", len(pair.t), "-")]
    if pair.truth.vel_w is not None:
        velocity = errors.velocity_rmse(estimate, truth, max_gap=max_gap)
        rows += velocity.rows()
        if estimate.vel_cov is not None:
            claimed = estimate.vel_cov[pair.rows]
            rows.append(Row("nees_vel", nees(velocity.errors_b, claimed).mean, "-"))
            for k in (1.0, 2.0):
                rows += coverage(velocity.errors_b, claimed, k).rows("coverage_vel")
    if contact is not None:
        if not isinstance(truth, Log):
            raise GaitError("slips are found from the true speed of the feet: give the log as the truth")
        # A flag holds until the next sample, should the estimate run on another clock.
        held = np.searchsorted(truth.t, estimate.t + CLOCK_TOLERANCE, side="right") - 1
        slipping = errors.slip_mask(truth, contact)[np.clip(held, 0, None)]
        rows.append(Row("slip_fraction", float(np.mean(slipping[pair.rows])), "-"))
        if slipping[pair.rows].any():
            rows += errors.velocity_rmse(estimate, truth, slipping, max_gap=max_gap).rows("velocity_rmse_slip")
    rows += errors.ate(estimate, truth, alignment, max_gap=max_gap).rows()
    if seconds is not None:
        rows += errors.relative_error(estimate, truth, seconds, max_gap=max_gap).rows()
    if errors.path_length(pair.truth.pos_w)[-1] >= errors.MIN_DISTANCE:
        rows += errors.drift(estimate, truth, max_gap=max_gap).rows()
    return rows
