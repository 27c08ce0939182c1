"""`gait eval`: how far an estimate is from the truth."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from gait.verbs import Common, Outcome


@dataclass(frozen=True)
class Options(Common):
    """Compare a trajectory with the truth in a log; docs/metrics.md defines each number."""

    truth: Positional[Path]
    """A log with truth, or a trajectory to take as the truth."""
    estimate: Positional[Path]
    """The trajectory to judge (npz, csv, tum)."""
    alignment: Literal["none", "first", "yaw", "se3"] = "yaw"
    """How the estimate is laid over the truth before the absolute error is taken."""
    seconds: float = 5.0
    """Window of the relative error (s); left out where the run is shorter."""
    max_gap: float = 0.1
    """A longer pause in the truth (s) is an error."""


def run(options: Options) -> Outcome:
    """Read both, compare."""
    from gait.evaluate import summary
    from gait.io import open_any, open_trajectory
    from gait.log import Log

    truth, estimate = open_any(options.truth), open_trajectory(options.estimate)
    contact = None
    if isinstance(truth, Log):
        truth.need("quat_wb_wxyz")
        truth.require_no_gaps(options.max_gap)
        contact = truth.contact if truth.foot_vel_w is not None else None
    window = options.seconds if min(truth.duration, estimate.duration) >= options.seconds else None
    rows = summary(estimate, truth, contact=contact, alignment=options.alignment, seconds=window)
    return Outcome(rows, title=f"{options.estimate} against {options.truth}", next=_next(options))


def _next(options: Options) -> str:
    """Poses for other tools; where they came from such a file, the drift without the help of an alignment."""
    truth, estimate = (shlex.quote(str(path)) for path in (options.truth, options.estimate))
    if options.estimate.suffix.lower() not in (".tum", ".txt"):
        return f"gait convert {estimate} {shlex.quote(str(options.estimate.with_suffix('.tum')))}"
    other = "yaw" if options.alignment == "first" else "first"
    return f"gait eval {truth} {estimate} --alignment {other}"
