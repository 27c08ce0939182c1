"""`gait run`: estimate a log, and write the trajectory and a report."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, outputs_of, quote, share_bar
from gait.errors import GaitError
from gait.methods import DEFAULT
from gait.read_options import NONE, ReadOptions, asked, given_words
from gait.rows import Row, rows_to_json

if TYPE_CHECKING:
    from gait.estimator import Estimator, StateArrays
    from gait.external import ExternalSensor
    from gait.io.ros.fused import Fused
    from gait.log import Log, Trajectory
    from gait.report.rerun_view import View
    from gait.report.table import Table

Progress = Callable[[str, float], None]
OUTPUTS = ("tum", "csv", "mcap", "report")
"""Files of a run, by what `--write` calls them."""
REPORT = OUTPUTS[-1]
WINDOW = 5.0
"""Seconds of the relative error."""
SHOWN = {
    "velocity_rmse": "velocity, rms error",
    "velocity_rmse_slip": "the same while a foot slips",
    "slip_fraction": "a foot slips",
    "re_pos_5s": "drift in 5 s",
    "re_rot_5s": "rotation in 5 s",
    "drift": "drift a metre",
    "coverage_vel_2sigma": "within 2 std",
    "distance": "distance",
    "speed_mean": "mean speed",
    "velocity_std": "velocity, own std",
    "position_std_end": "position at the end, own std",
    "step": "a step",
    "health_ok": "health ok",
}
"""Rows of the table, and their labels."""
AT_REST = (
    "The log has no ground truth: taken to begin at rest, with roll and pitch from the accelerometer, at the origin,"
    " facing along x."
)


@dataclass(frozen=True)
class RunOptions(Common, ReadOptions):
    """Estimate a log: a table, the trajectory as TUM, CSV and MCAP, and a report with plots; see docs/run.md.

    The format of the log is guessed; accuracy is reported where the log has ground truth.
    """

    log: Positional[Path]
    """The log, in any format that gait reads."""
    method: str = DEFAULT
    """gait-legs, gait, gait-flat, nmn, iekf or iekf-sr; or a model file."""
    start: Literal["auto", "truth", "gravity"] = "auto"
    """Start from the true state, or at rest with roll and pitch from the accelerometer; auto takes ground truth if
    there is any."""
    fuse: tuple[str, ...] = ()
    """Topics of the bag whose poses or fixes correct the estimate: nav_msgs/Odometry, geometry_msgs/PoseStamped or
    PoseWithCovarianceStamped, sensor_msgs/NavSatFix; see docs/fusion.md."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    sensors: Optional[Path] = None  # noqa: UP045
    """With --fuse: YAML file that says where sensors are mounted."""
    out: Optional[Path] = None  # noqa: UP045
    """Folder for the results, which must not hold anything; runs/run/STAMP by default."""
    write: str = ",".join(OUTPUTS)
    """What to write, with commas: tum, csv, mcap, report; csv takes most room and time, 2 kB a sample."""
    view: Optional[tuple[Path, ...]] = None  # noqa: UP045
    """Show the robot in Rerun; with the name of an .rrd file, write that instead."""


def run(options: RunOptions) -> Outcome:
    """Read, estimate, write, and report the accuracy."""
    if options.view is not None and len(options.view) > 1:
        raise GaitError("--view takes one file: give the log before it, as in gait run LOG --view run.rrd")
    outputs = outputs_of(options.write, OUTPUTS)
    with share_bar(options.interactive) as progress:
        from gait.io.atomic import whole_folder
        from gait.io.checked import correcting_words, read_checked, warnings_of, wrong_rows

        progress("reading the log", 0.0)
        reading, findings = read_checked(options.log, options)
        if any(one.used == "truth" and one.name.strip("/") in fused_names(options.fuse) for one in reading.streams):
            # What is fused cannot be what is compared with.
            reading, findings = read_checked(options.log, replace(options, truth=NONE))
        progress("estimating", 0.1)
        done, view = _estimate(options, reading.log)
        log, rows = done.log, [*_rows(done), *wrong_rows(findings)]
        with whole_folder(options.out, "run") as folder:
            _write(options, outputs, folder.work, done, rows, warnings_of(findings, options), progress)
            if view is not None:
                view.show_run(log, done.trajectory, done.details, _fifth(progress, "drawing for Rerun", 0.8))
                view.close()
    verb, more = ("eval", ["--methods", "all"]) if log.has_truth else ("view", [])
    following = shlex.join(["gait", verb, str(options.log), *more, *given_words(options)])
    if fix := correcting_words(findings, options):
        # First of all the figures have to be right.
        following = shlex.join(["gait", "run", str(options.log), *_own_words(options), *fix])
    elif options.view:
        following = f"rerun {quote(options.view[0])}"
    method = done.trajectory.source
    title = f"{options.log.name} by {method}: {log.duration:.1f} s of {done.estimator.robot.name}"
    notes = (*warnings_of(findings, options), *reading.notes, *_notes(done))
    return Outcome(rows, tables=[_table(rows, title, method)], notes=notes, wrote=folder.final, next=following)


def _own_words(options: RunOptions) -> list[str]:
    """Words for the options of this verb alone, but for the folder: that of a run is not used again."""
    words = ["--method", options.method] if options.method != DEFAULT else []
    words += ["--start", options.start] if options.start != "auto" else []
    words += ["--fuse", *options.fuse] if options.fuse else []
    words += ["--sensors", str(options.sensors)] if options.sensors else []
    return [*words, *(["--write", options.write] if options.write != ",".join(OUTPUTS) else [])]


def fused_names(words: tuple[str, ...]) -> list[str]:
    """The topics of --fuse, without their types and slashes."""
    return [word.partition(":")[0].strip("/") for word in words]


def _fifth(progress: Progress, what: str, start: float) -> Callable[[float], None]:
    """Progress of a fifth of the work."""
    return lambda share: progress(what, start + 0.2 * share)


@dataclass(frozen=True, eq=False)
class _Run:
    """A log and its estimate."""

    log: Log
    estimator: Estimator
    start: str
    trajectory: Trajectory
    details: StateArrays | None
    """For the report and the view alone: of ten minutes they take half a gigabyte."""
    spent: float
    """Seconds that the estimate took."""
    fused: tuple[str, ...] = ()
    """What became of measurements of other sensors, a sentence for each."""

    @property
    def at_rest(self) -> bool:
        """Whether the start is an assumption."""
        return self.start == "gravity" and not self.log.has_truth

    @property
    def health(self) -> dict[str, float]:
        """Share of the samples with each health flag that was ever raised, by name."""
        import numpy as np

        from gait.health import Health

        health = self.trajectory.health
        shares = {} if health is None else {flag.name: float(np.mean(health & flag.value != 0)) for flag in Health}
        return {str(name).lower(): share for name, share in shares.items() if share}


def _estimate(options: RunOptions, log: Log) -> tuple[_Run, View | None]:
    """Estimate, and open the view first: if it is missing, that is known before anything takes time."""
    from gait.estimator import Estimator

    start = options.start if options.start != "auto" else ("truth" if log.has_truth else "gravity")
    waiting, sensors = _measurements(options, log)
    robot = options.robot or log.load_robot()
    estimator = Estimator.load(robot, options.method, attention=bool(waiting), feet=bool(waiting), sensors=sensors)
    view = None
    if options.view is not None:
        from gait.report.rerun_view import View

        view = View(estimator.robot, options.view[0] if options.view else None)
    begin = time.perf_counter()
    if waiting:
        from gait.fused_run import run_fused, summary_lines

        done = run_fused(estimator, log, waiting, start)
        spent, told = time.perf_counter() - begin, tuple(summary_lines(done.results))
        return _Run(log, estimator, start, done.trajectory, done.states, spent, told), view
    trajectory = estimator.run(log, start)
    spent = time.perf_counter() - begin
    details = None
    if view is not None or {REPORT, "mcap", "csv"} & set(outputs_of(options.write, OUTPUTS)):
        # Once more, and not timed: to record attention and feet costs time, and changes no number.
        del trajectory  # else both are in memory at once
        attentive = Estimator.load(estimator.robot, options.method, attention=True, feet=True)
        trajectory, details = attentive.run_with_details(log, start)
    return _Run(log, estimator, start, trajectory, details, spent), view


def _measurements(options: RunOptions, log: Log) -> tuple[list[Fused], dict[str, ExternalSensor]]:
    """What other sensors measured, as they arrived, and how they are mounted."""
    if not options.fuse:
        if options.sensors is not None:
            raise GaitError("--sensors describes what --fuse names: give --fuse TOPIC too")
        return [], {}
    from gait.fused_run import sensors_of
    from gait.io.ros.fused import read_fused

    found = read_fused(options.log, options.fuse, log.t)
    return found, sensors_of(sorted({one.name for one in found}), options.sensors)


def _notes(done: _Run) -> list[str]:
    """What was assumed, and the faults of the log."""
    notes = [AT_REST] if done.at_rest else []
    notes += done.fused
    if gaps := done.log.gaps():
        longest = max(length for _, length in gaps)
        notes.append(
            f"The log has {len(gaps)} gap{'s' if len(gaps) > 1 else ''}, the longest of {longest:.3g} s: there the"
            " velocity is held, and drift includes it."
        )
    flags = {name.replace("_", " "): 100.0 * share for name, share in done.health.items() if name != "starting"}
    if flags:
        shares = ", ".join(f"{name} {percent(share)}" for name, share in flags.items())
        notes.append(f"Health, in per cent of the samples: {shares}; docs/log.md explains the flags.")
    if done.trajectory.health is not None:
        from gait.log.diagnoses import diagnoses

        notes += diagnoses(done.log.t, done.trajectory.health, done.estimator.robot.leg_names)
    return notes


def percent(share: float) -> str:
    """Two digits, whole numbers from ten on; never 100 % of less than all, and never 1e+02 %."""
    return f"{min(share, 99.0) if share < 100.0 else share:.0f} %" if share >= 10.0 else f"{share:.2g} %"


def _rows(done: _Run) -> list[Row]:
    """Size, accuracy where there is ground truth, and health."""
    import numpy as np

    from gait.metrics import path_length, summary

    log, trajectory = done.log, done.trajectory
    rows = [Row("duration", log.duration, "s"), Row("samples", len(log), "-"), Row("rate", log.rate, "Hz")]
    if log.has_truth:
        window = WINDOW if log.duration >= WINDOW else None
        contact = log.contact if log.foot_vel_w is not None else None
        found = summary(trajectory, log, contact=contact, seconds=window)
        rows += [row for row in found if row.name not in ("duration", "samples")]
    else:
        assert trajectory.vel_cov is not None and trajectory.pose_cov is not None
        rows += [
            Row("distance", float(path_length(trajectory.pos_w)[-1]), "m"),
            Row("speed_mean", float(np.linalg.norm(trajectory.vel_b, axis=1).mean()), "m/s"),
            Row("velocity_std", float(np.sqrt(np.einsum("nii->n", trajectory.vel_cov).mean())), "m/s"),
            Row("position_std_end", float(np.sqrt(np.trace(trajectory.pose_cov[-1, :3, :3]))), "m"),
        ]
    rows.append(Row("step", done.spent / len(log) * 1e6, "us"))
    if trajectory.health is not None:
        rows.append(Row("health_ok", float(np.mean(trajectory.health == 0)), "-"))
    return rows + [Row(f"health_{name}", share, "-") for name, share in done.health.items()]


def _table(rows: list[Row], title: str, method: str) -> Table:
    """The most important rows; results.json and --json have all of them."""
    from gait.report.table import Cell, Table, TableLine

    values = {row.name: row for row in rows}
    lines = [
        TableLine((name,), {method: Cell(value)}, "share" if values[name].unit == "-" else values[name].unit, (label,))
        for name, label in SHOWN.items()
        if name in values and isinstance(value := values[name].value, float)
    ]
    return Table("run", title, "", ("",), (method,), tuple(lines), best="")


def _write(
    options: RunOptions, outputs: Sequence[str], folder: Path, done: _Run, rows: list[Row], warnings: Sequence[str],
    progress: Progress,
) -> None:  # fmt: skip
    """Write the files of the run."""
    from gait.io.ros.mcap_writer import write_mcap
    from gait.report.describe import installation
    from gait.report.html import run_pages, write_report

    log, trajectory, robot = done.log, done.trajectory, done.estimator.robot
    progress("writing the trajectory", 0.3)
    if "tum" in outputs:
        trajectory.to_tum(folder / "trajectory.tum")
    if "csv" in outputs:
        trajectory.to_csv(folder / "trajectory.csv")
    if "mcap" in outputs:
        written = _fifth(progress, "writing trajectory.mcap", 0.5)
        write_mcap(folder / "trajectory.mcap", trajectory, robot, log.gyro, written, done.details)
    settings = {
        "command": shlex.join(
            ["gait", "run", str(options.log), "--method", options.method, "--start", done.start, *given_words(options)]
        ),
        "log": str(options.log),
        "method": options.method,
        "start": done.start,
        "robot": robot.name,
        **{name: str(value) for name, value in asked(options).items()},
    }
    if REPORT in outputs:
        progress("writing the report", 0.7)
        facts = [*(Row(name, value, "-") for name, value in settings.items()), *rows, *installation()]
        words = AT_REST if done.at_rest else f"{log.duration:.1f} s, started from {done.start}."
        title = f"{options.log.name} by {done.trajectory.source}"
        assert done.details is not None
        pages = run_pages(log, trajectory, done.details, rows)
        write_report(folder / "report.html", title, "\n".join([words, *warnings]), *pages, facts)
    (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / "results.json").write_text(rows_to_json(rows) + "\n", encoding="utf-8")
