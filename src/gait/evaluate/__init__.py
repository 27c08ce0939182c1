"""Judging estimates: metrics here; every formula and choice is in docs/metrics.md."""

from gait.evaluate.align import Alignment, Pair, States, align, associate
from gait.evaluate.consistency import Coverage, Nees, chi_square_quantile, coverage, nees, nees_band
from gait.evaluate.metrics import (
    AbsoluteError,
    Drift,
    RelativeError,
    Stats,
    VelocityError,
    ate,
    drift,
    path_length,
    relative_error,
    slip_mask,
    velocity_rmse,
)
from gait.evaluate.summarise import MeanStd, across_runs, mean_std, summary

__all__ = [
    "AbsoluteError",
    "Alignment",
    "Coverage",
    "Drift",
    "MeanStd",
    "Nees",
    "Pair",
    "RelativeError",
    "States",
    "Stats",
    "VelocityError",
    "across_runs",
    "align",
    "associate",
    "ate",
    "chi_square_quantile",
    "coverage",
    "drift",
    "mean_std",
    "nees",
    "nees_band",
    "path_length",
    "relative_error",
    "slip_mask",
    "summary",
    "velocity_rmse",
]
