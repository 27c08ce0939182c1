"""`gait eval`: the errors of an estimate, or of every method."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Optional

from tyro.conf import Positional

from gait.cluster.ray_option import RayAddress, node_rows, processors
from gait.commands import Common, Outcome, count_bar, names_in, quote, report_file, share_bar
from gait.errors import GaitError
from gait.read_options import ReadOptions, given_words, plain_options
from gait.rows import Row


@dataclass(frozen=True)
class EvalOptions(Common, ReadOptions):
    """Compare a trajectory with the ground truth in a log, or run methods on logs with ground truth and compare those.

    `gait eval LOG TRAJECTORY` prints every metric of one estimate. `gait eval LOG... --methods all` runs the
    estimators, prints a table and writes a report with plots. docs/metrics.md defines each number.
    """

    log: Positional[Path]
    """A log with ground truth, or a trajectory to take as ground truth."""
    others: Positional[tuple[Path, ...]] = ()
    """The trajectory to judge (npz, csv, tum); with --methods, more logs."""
    methods: tuple[str, ...] = ()
    """Methods to run on the logs, such as gait iekf, or gait,iekf; or all."""
    start: Literal["truth", "gravity"] = "truth"
    """With --methods: start from the true state, or at rest with roll and pitch from the accelerometer."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """With --methods: folder of the report, or its name if it ends in .html; runs/eval/STAMP by default."""
    alignment: Literal["none", "first", "yaw", "se3"] = "yaw"
    """How the trajectory is aligned with ground truth before the absolute error is taken."""
    seconds: float = 5.0
    """Window of the relative error of the trajectory (s); left out where the run is shorter."""
    max_gap: float = 0.1
    """A longer pause in the ground truth (s) is an error."""
    ray: RayAddress = None
    """With --methods: a task for each log on a Ray cluster, the one at this address or of this machine; a log that
    fails does not stop the others, and the same command with the same --out goes on; see docs/cluster.md."""


def run(options: EvalOptions) -> Outcome:
    """Judge one trajectory, or methods."""
    options = replace(options, methods=names_in(options.methods))
    if options.methods:
        if options.alignment != "yaw" or options.seconds != 5.0:
            raise GaitError("--alignment and --seconds are for a trajectory: leave them out, or leave out --methods")
        return _methods(options) if options.ray is None else _methods_on_cluster(options, options.ray)
    if options.ray is not None:
        raise GaitError("--ray is for estimators that run on logs: add --methods all, or leave it out")
    if options.start != "truth" or options.out is not None:
        raise GaitError("--start and --out are for estimators that run here: add --methods all, or leave them out")
    if len(options.others) == 0:
        raise GaitError(
            "give the estimated trajectory after the log or ground truth (`gait eval LOG TRAJECTORY`), or --methods all"
            " to run the estimators on the log"
        )
    if len(options.others) > 1:
        raise GaitError(
            "give one log and one trajectory to judge, or --methods all to run the estimators on all of the logs"
        )
    return _trajectory(options, options.others[0])


def _trajectory(options: EvalOptions, path: Path) -> Outcome:
    from gait.io import read
    from gait.io.checked import correcting_words, read_checked, warnings_of, wrong_rows
    from gait.log import Log
    from gait.metrics import summary

    (reading, findings), judged = read_checked(options.log, options), read(path)
    if isinstance(judged.record, Log) and not isinstance(reading.record, Log):
        raise GaitError(
            f"{path} is a log and {options.log} a trajectory: type `gait eval {quote(path)} {quote(options.log)}`"
        )
    truth, estimate = reading.record, judged.trajectory
    contact = None
    if isinstance(truth, Log):
        truth.need("quat_wb_wxyz")
        truth.require_no_gaps(options.max_gap)
        contact = truth.contact if truth.foot_vel_w is not None else None
    seconds = options.seconds if min(truth.duration, estimate.duration) >= options.seconds else None
    align, gap = options.alignment, options.max_gap
    rows = summary(estimate, truth, contact=contact, alignment=align, seconds=seconds, max_gap=gap)
    rows += wrong_rows(findings)
    notes = (*warnings_of(findings, options), *reading.notes, *judged.notes)
    if fix := correcting_words(findings, options):
        following = ["gait", "eval", str(options.log), str(path), *fix]
    elif isinstance(truth, Log):
        following = ["gait", "eval", str(options.log), "--methods", "all", *given_words(options)]
    else:
        other = "yaw" if options.alignment == "first" else "first"
        following = ["gait", "eval", str(options.log), str(path), "--alignment", other]
    return Outcome(rows, title=f"{path} against {options.log}", notes=notes, next=shlex.join(following))


def _after_methods(options: EvalOptions, fix: Sequence[str]) -> str:
    """The same with what is wrong corrected, or a look at where the methods differ."""
    if fix:
        return shlex.join(
            ["gait", "eval", *map(str, (options.log, *options.others)), "--methods", *options.methods, *fix]
        )
    return shlex.join(["gait", "view", str(options.log), "--methods", *options.methods, *given_words(options)])


def _methods(options: EvalOptions) -> Outcome:
    with share_bar(options.interactive) as progress:
        from gait.bench.walks import left_out_notes, log_names, method_figures, walk_rows, walk_study, write_walk_report
        from gait.io.checked import read_checked_logs
        from gait.methods import METHODS
        from gait.report.method_table import NOTE, figure_table

        paths = (options.log, *options.others)
        methods = tuple(METHODS) if "all" in options.methods else options.methods
        read = read_checked_logs(dict(zip(log_names(paths), paths, strict=True)), options)
        study = walk_study(read.logs, methods, start=options.start, max_gap=options.max_gap, progress=progress)
        progress("writing the report", 1.0)
        path = report_file(options.out, "eval")
        settings = _settings(options, paths, study.methods)
        title = f"Methods on {paths[0].name if len(paths) == 1 else f'{len(paths)} logs'}"
        warnings = [note for note in read.notes if note.startswith("LOOK ")]
        write_walk_report(study, path, title, settings, warnings)
    title += ", mean (standard deviation)" if len(paths) > 1 else ""
    return Outcome(
        [*walk_rows(study), *read.wrong],
        tables=[figure_table(method_figures(study), title)],
        notes=(*read.notes, NOTE, *left_out_notes(study)),
        wrote=path,
        next=_after_methods(options, read.correction),
    )


def _settings(options: EvalOptions, paths: Sequence[Path], methods: Sequence[str]) -> dict[str, str]:
    """What made a report."""
    words = ["gait", "eval", *map(str, paths), "--methods", *options.methods, "--start", options.start]
    words += given_words(options)
    return {
        "command": shlex.join([*words, "--max-gap", f"{options.max_gap:g}"]),
        "methods": " ".join(methods),
        "start": options.start,
        "max_gap": f"{options.max_gap:g} s",
    }


def _methods_on_cluster(options: EvalOptions, address: str) -> Outcome:
    """As `_methods`, a task for each log."""
    from gait.bench.walks import figure_rows, log_names, mean_figures
    from gait.cluster import evaluation as cluster
    from gait.cluster.tasks import load_ray
    from gait.io.storage import location
    from gait.methods import METHODS
    from gait.report.method_table import NOTE, figure_table

    load_ray()
    paths = (options.log, *options.others)
    methods = tuple(METHODS) if "all" in options.methods else options.methods
    logs = dict(zip(log_names(paths), paths, strict=True))
    path = report_file(options.out, "eval")
    manifest = path.with_name(f"{path.stem}.manifest.jsonl")
    plan = cluster.EvalPlan(methods, options.start, options.max_gap, plain_options(options))
    try:
        with count_bar(options.interactive, "logs") as update:
            result = cluster.evaluate_on_cluster(logs, plan, manifest, address, processors(), update)
    except KeyboardInterrupt:
        print(
            f"gait: stopped: the same command with --out {quote(options.out or path.parent)} goes on", file=sys.stderr
        )
        raise
    means, good = mean_figures(result.found), [logs[name] for name in result.found]
    title = f"Methods on {good[0].name if len(good) == 1 else f'{len(good)} logs'}"
    cluster.write_eval_report(result, path, title, _settings(options, paths, tuple(means)))
    counts = {"logs": len(good), "failed": len(result.failed), "resumed": result.resumed}
    rows = [*(Row(name, value, "-") for name, value in counts.items()), *figure_rows(result.found)]
    title += ", mean (standard deviation)" if len(good) > 1 else ""
    return Outcome(
        [*rows, *cluster.check_rows(result), *node_rows(result.nodes, "logs", "-")],
        tables=[figure_table(means, title)],
        notes=(*cluster.log_notes(result, options), NOTE, *cluster.result_notes(result)),
        wrote=path,
        next=shlex.join(["gait", "view", location(good[0]), "--methods", "all", *given_words(options)]),
    )
