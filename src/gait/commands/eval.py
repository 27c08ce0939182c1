"""`gait eval`: the errors of an estimate, or of every method."""

from __future__ import annotations

import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from gait.commands import Common, Outcome, quote, report_file, share_bar
from gait.errors import GaitError


@dataclass(frozen=True)
class EvalOptions(Common):
    """Compare a trajectory with the ground truth in a log, or run methods on logs with ground truth and compare those.

    `gait eval LOG TRAJECTORY` prints every metric of one estimate. `gait eval LOG... --methods all` runs the
    estimators, prints a table and writes a report with plots. docs/metrics.md defines each number.
    """

    truth: Positional[Path]
    """A log with ground truth, or a trajectory to take as ground truth."""
    others: Positional[tuple[Path, ...]] = ()
    """The trajectory to judge (npz, csv, tum); with --methods, more logs."""
    methods: tuple[str, ...] = ()
    """Methods to run on the logs, such as gait iekf; or all."""
    start: Literal["truth", "gravity"] = "truth"
    """With --methods: start from the true state, or at rest with roll and pitch from the accelerometer."""
    out: Path | None = None
    """With --methods: folder of the report, or its name if it ends in .html; runs/eval/STAMP by default."""
    alignment: Literal["none", "first", "yaw", "se3"] = "yaw"
    """How the trajectory is aligned with ground truth before the absolute error is taken."""
    seconds: float = 5.0
    """Window of the relative error of the trajectory (s); left out where the run is shorter."""
    max_gap: float = 0.1
    """A longer pause in the ground truth (s) is an error."""


def run(options: EvalOptions) -> Outcome:
    """Judge one trajectory, or methods."""
    if options.methods:
        return _methods(options)
    if options.start != "truth" or options.out is not None:
        raise GaitError("--start and --out are for estimators that run here: add --methods all, or leave them out")
    if len(options.others) == 0:
        raise GaitError("give the trajectory to judge, or --methods all to run the estimators on it")
    if len(options.others) > 1:
        raise GaitError(
            "give one log and one trajectory to judge, or --methods all to run the estimators on all of the logs"
        )
    return _trajectory(options, options.others[0])


def _trajectory(options: EvalOptions, path: Path) -> Outcome:
    from gait.io import open_any, open_trajectory
    from gait.log import Log
    from gait.metrics import summary

    truth, estimate = open_any(options.truth), open_trajectory(path)
    contact = None
    if isinstance(truth, Log):
        truth.need("quat_wb_wxyz")
        truth.require_no_gaps(options.max_gap)
        contact = truth.contact if truth.foot_vel_w is not None else None
    seconds = options.seconds if min(truth.duration, estimate.duration) >= options.seconds else None
    align, gap = options.alignment, options.max_gap
    rows = summary(estimate, truth, contact=contact, alignment=align, seconds=seconds, max_gap=gap)
    return Outcome(rows, title=f"{path} against {options.truth}", next=_next(options, path))


def _next(options: EvalOptions, path: Path) -> str:
    """Poses for other tools; where they came from such a file, another alignment."""
    if path.suffix.lower() not in (".tum", ".txt"):
        return f"gait convert {quote(path)} {quote(path.with_suffix('.tum'))}"
    other = "yaw" if options.alignment == "first" else "first"
    return f"gait eval {quote(options.truth)} {quote(path)} --alignment {other}"


def _methods(options: EvalOptions) -> Outcome:
    if options.alignment != "yaw" or options.seconds != 5.0:
        raise GaitError("--alignment and --seconds are for a trajectory: leave them out, or leave out --methods")
    with share_bar(options.interactive) as progress:
        from gait.bench.walks import left_out_notes, method_figures, walk_rows, walk_study, write_walk_report
        from gait.io import open_log
        from gait.methods import METHODS
        from gait.report.method_table import NOTE, figure_table

        paths = (options.truth, *options.others)
        methods = tuple(METHODS) if "all" in options.methods else options.methods
        # By the name of the file; by the whole path where two files have the same name.
        stems = [path.stem for path in paths]
        names = [path.stem if stems.count(path.stem) == 1 else str(path) for path in paths]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise GaitError(f"{twice[0]} is given twice: name each log once")
        logs = {name: open_log(path) for name, path in zip(names, paths, strict=True)}
        study = walk_study(logs, methods, start=options.start, max_gap=options.max_gap, progress=progress)
        progress("writing the report", 1.0)
        path = report_file(options.out, "eval")
        words = ["gait", "eval", *map(str, paths), "--methods", *options.methods, "--start", options.start]
        settings = {
            "command": shlex.join([*words, "--max-gap", f"{options.max_gap:g}"]),
            "methods": " ".join(study.methods),
            "start": options.start,
            "max_gap": f"{options.max_gap:g} s",
        }
        title = f"Methods on {paths[0].name if len(paths) == 1 else f'{len(paths)} logs'}"
        write_walk_report(study, path, title, settings)
    title += ", mean (standard deviation)" if len(paths) > 1 else ""
    return Outcome(
        walk_rows(study),
        tables=[figure_table(method_figures(study), title)],
        notes=[*textwrap.wrap(NOTE, 79), *left_out_notes(study)],
        wrote=path,
        next=f"gait info {quote(options.truth)}",
    )
