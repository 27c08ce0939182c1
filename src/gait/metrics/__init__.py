"""Errors of an estimate against ground truth; docs/metrics.md has every formula and choice."""

from gait.metrics.align import Alignment, Pair, States, align, associate
from gait.metrics.consistency import Coverage, Nees, chi_square_quantile, coverage, nees, nees_band
from gait.metrics.summary import MeanStd, across_runs, mean_std, summary
from gait.metrics.trajectory_error import (
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

__all__ = [
    "AbsoluteError", "Alignment", "Coverage", "Drift", "MeanStd", "Nees", "Pair", "RelativeError", "States", "Stats",
    "VelocityError", "across_runs", "align", "associate", "ate", "chi_square_quantile", "coverage", "drift", "mean_std",
    "nees", "nees_band", "path_length", "relative_error", "slip_mask", "summary", "velocity_rmse",
]  # fmt: skip
