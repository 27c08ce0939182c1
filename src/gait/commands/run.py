"""`gait run`: a log through an estimator, and all that comes out of it."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome
from gait.commands.bars import share_bar
from gait.errors import GaitError
from gait.io.read_options import ReadOptions
from gait.methods import DEFAULT

if TYPE_CHECKING:
    from gait.estimator import Details, Estimator
    from gait.health import Health
    from gait.log.log import Log
    from gait.log.trajectory import Trajectory
    from gait.report.rerun_view import View
    from gait.report.rows import Row
    from gait.report.table import Table

WINDOW = 5.0
"""Seconds of the relative error."""
SHOWN = {
    "velocity_rmse": "velocity, rms error",
    "velocity_rmse_slip": "the same while slipping",
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
"""What people see of the rows, and in which words."""
AT_REST = (
    "The log has no truth: taken to begin at rest, with roll and pitch from the accelerometer, at the origin, facing"
    " along x. If the robot moves at the first sample, cut to where it stands: gait convert LOG NEW.npz --start 1.5"
)


@dataclass(frozen=True)
class Options(Common, ReadOptions):
    """Estimate a log: a table, the trajectory as TUM, CSV and MCAP, and a report with plots; see docs/run.md.

    The format of the log is guessed; accuracy is told where the log has the truth.
    """

    log: Positional[Path]
    """The log, in any format that gait reads."""
    method: str = DEFAULT
    """gait-legs, gait, gait-flat, nmn, iekf or iekf-sr; or a model file."""
    start: Literal["auto", "truth", "gravity"] = "auto"
    """Begin at the true state, or at rest with roll and pitch from the accelerometer; auto takes the truth if there is
    one."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """Folder for the results, which must not hold anything; runs/run/STAMP by default."""
    view: Optional[tuple[Path, ...]] = None  # noqa: UP045
    """Show the robot in Rerun; with the name of an .rrd file, write that instead."""


def run(options: Options) -> Outcome:
    """Read, estimate, write, and say how good it is."""
    if options.view is not None and len(options.view) > 1:
        raise GaitError("--view takes one file: give the log before it, as in gait run LOG --view run.rrd")
    show = sys.stderr.isatty() and not options.json
    with share_bar(show, "starting; the first run compiles, which takes about a minute") as progress:
        return _run(options, progress)


def _run(options: Options, progress: Callable[[str, float], None]) -> Outcome:
    from gait.io import read
    from gait.io.run_folder import whole_folder

    progress("reading the log", 0.0)
    reading = read(options.log, ReadOptions(**{one.name: getattr(options, one.name) for one in fields(ReadOptions)}))
    progress("estimating", 0.1)
    done, view = _estimate(options, reading.log)
    log = done.log
    rows = _rows(done)
    notes = [*reading.notes, *_notes(done)]
    with whole_folder(options.out, "run") as folder:
        _write(options, folder.work, done, rows, progress)
        if view is not None:
            view.show_run(
                log, done.trajectory, done.details, lambda share: progress("drawing for Rerun", 0.8 + 0.2 * share)
            )
            view.close()
    path = shlex.quote(str(options.log))
    following = f"gait eval {path} --methods all" if log.has_truth else f"gait info {path}"
    if options.view:
        following = f"rerun {shlex.quote(str(options.view[0]))}"
    title = f"{options.log.name} by {done.method}: {log.duration:.1f} s of {done.estimator.robot.name}"
    tables = [_table(rows, title, done.method)]
    notes = [line for note in notes for line in textwrap.wrap(note, 100)]
    return Outcome(rows, tables=tables, notes=notes, wrote=folder.final, next=following)


@dataclass(frozen=True, eq=False)
class _Run:
    """A log and what came of it."""

    log: Log
    estimator: Estimator
    start: str
    trajectory: Trajectory
    details: Details
    spent: float
    """Seconds that the estimate took."""

    @property
    def method(self) -> str:
        return self.trajectory.source

    @property
    def at_rest(self) -> bool:
        """Whether the start is an assumption."""
        return self.start == "gravity" and not self.log.has_truth


def _estimate(options: Options, log: Log) -> tuple[_Run, View | None]:
    """Estimate, and open the view first: whoever lacks it shall not wait for the rest."""
    import time

    from gait.estimator import Estimator

    start = options.start if options.start != "auto" else ("truth" if log.has_truth else "gravity")
    robot = options.robot or log.robot
    estimator = Estimator.load(robot, options.method)
    view = None
    if options.view is not None:
        from gait.report.rerun_view import View

        view = View(estimator.robot, options.view[0] if options.view else None)
    begin = time.perf_counter()
    trajectory = estimator.run(log, start)
    spent = time.perf_counter() - begin
    # Once more, and not timed: to tell where it looks costs time, and changes no number.
    looking = Estimator.load(estimator.robot, options.method, attention=True)
    return _Run(log, estimator, start, trajectory, looking.run_with_details(log, start)[1], spent), view


def _notes(done: _Run) -> list[str]:
    """What was assumed, and what was wrong with the log."""
    notes = [AT_REST] if done.at_rest else []
    if gaps := done.log.gaps():
        longest = max(length for _, length in gaps)
        notes.append(
            f"The log has {len(gaps)} gap{'s' if len(gaps) > 1 else ''}, the longest of {longest:.3g} s: there the"
            " velocity is held, and drift includes it."
        )
    if done.trajectory.health is not None:
        from gait.health import Health

        ill = [f"{_word(flag)} {share:.2g} %" for flag, share in _shares(done.trajectory) if flag != Health.STARTING]
        if ill:
            notes.append(f"Health, in per cent of the samples: {', '.join(ill)}; docs/log.md has the words.")
    return notes


def _shares(trajectory: Trajectory) -> list[tuple[Health, float]]:
    """The flags that were ever up, and in how many per cent of the samples."""
    import numpy as np

    from gait.health import Health

    assert trajectory.health is not None
    found = [(flag, 100.0 * float(np.mean(trajectory.health & flag.value != 0))) for flag in Health]
    return [(flag, share) for flag, share in found if share]


def _word(flag: Health) -> str:
    return str(flag.name).lower().replace("_", " ")


def _rows(done: _Run) -> list[Row]:
    """What the run was, how good it is where that is known, and how well the sensors did."""
    import numpy as np

    from gait.metrics import path_length, summary
    from gait.report.rows import Row

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
        rows += [Row(f"health_{flag.name}".lower(), share / 100.0, "-") for flag, share in _shares(trajectory)]
    return rows


def _table(rows: list[Row], title: str, method: str) -> Table:
    """What fits a glance; results.json and --json have all of it."""
    from gait.report.table import Cell, Line, Table

    values = {row.name: row for row in rows}
    lines = [
        Line((name,), (label,), "share" if values[name].unit == "-" else values[name].unit, {method: Cell(value)})
        for name, label in SHOWN.items()
        if name in values and isinstance(value := values[name].value, float)
    ]
    return Table("run", title, "", ("",), (method,), tuple(lines), best="")


def _write(options: Options, folder: Path, done: _Run, rows: list[Row], progress: Callable[[str, float], None]) -> None:
    """All files of the run."""
    import json

    from gait.io.ros.mcap_writer import write_mcap
    from gait.report.describe import installation
    from gait.report.rows import Row, rows_to_json
    from gait.report.run_report import write_run_report

    trajectory = done.trajectory
    progress("writing trajectory.csv", 0.3)
    trajectory.to_tum(folder / "trajectory.tum")
    trajectory.to_csv(folder / "trajectory.csv")
    write_mcap(
        folder / "trajectory.mcap",
        trajectory,
        done.estimator.robot,
        done.log.gyro,
        progress=lambda share: progress("writing trajectory.mcap", 0.5 + 0.2 * share),
    )
    progress("writing the report", 0.7)
    settings = {
        "command": shlex.join(["gait", "run", str(options.log), "--method", options.method, "--start", done.start]),
        "log": str(options.log),
        "method": options.method,
        "start": done.start,
        "robot": done.estimator.robot.name,
    }
    facts = [*(Row(name, value, "-") for name, value in settings.items()), *rows, *installation()]
    words = AT_REST if done.at_rest else f"{done.log.duration:.1f} s, started from {done.start}."
    title = f"{options.log.name} by {done.method}"
    write_run_report(folder / "report.html", title, words, done.log, trajectory, done.details, done.spent, facts)
    (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / "results.json").write_text(rows_to_json(rows) + "\n", encoding="utf-8")
