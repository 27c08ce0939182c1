"""`gait smooth`: the smoothed trajectory of a log, forward and backward with the estimator's own models."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, outputs_of, share_bar
from gait.methods import DEFAULT
from gait.read_options import ReadOptions, given_words
from gait.rows import Row, rows_to_json

if TYPE_CHECKING:
    from gait.log import Log
    from gait.smoothing import Smoothed

OUTPUTS = ("tum", "csv", "mcap")
"""Files that are written, by what `--write` calls them."""
SHOWN = {
    "velocity_rmse": "velocity, rms error",
    "re_pos_5s": "drift in 5 s",
    "drift": "drift a metre",
    "coverage_vel_2sigma": "within 2 std",
    "velocity_std": "velocity, own std",
    "position_std_mean": "position, own std",
}
"""Rows of the table, and their labels."""


@dataclass(frozen=True)
class SmoothOptions(Common, ReadOptions):
    """Smooth a log: each state by all samples before and after it; see docs/smoothing.md.

    Writes the trajectory as CSV, TUM and MCAP, for labels and maps. Errors are shown where the log has ground truth.
    """

    log: Positional[Path]
    """The log, in any format that gait reads."""
    method: str = DEFAULT
    """gait-legs, gait, gait-flat, nmn, iekf or iekf-sr; or a model file."""
    start: Literal["auto", "truth", "gravity"] = "auto"
    """Start from the true state, or at rest with roll and pitch from the accelerometer; auto takes ground truth if
    there is any."""
    ground: bool = True
    """Take out the vertical drift that the ground under the feet shows; --no-ground where slopes of less than two
    degrees matter."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """Folder for the results, which must not hold anything; runs/smooth/STAMP by default."""
    write: str = ",".join(OUTPUTS)
    """What to write, with commas: tum, csv, mcap; csv takes most room and time, 1.4 kB a sample."""


def run(options: SmoothOptions) -> Outcome:
    """Read, smooth, write, and compare with the filter."""
    from gait.report.table import Cell, Table, TableLine

    outputs = outputs_of(options.write, OUTPUTS)
    with share_bar(options.interactive) as progress:
        from gait.estimator import Estimator
        from gait.io.atomic import whole_folder
        from gait.io.checked import correcting_words, read_checked, warnings_of, wrong_rows
        from gait.io.ros.mcap_writer import write_mcap
        from gait.smoothing import smooth_with

        progress("reading the log", 0.0)
        reading, findings = read_checked(options.log, options)
        log = reading.log
        estimator = Estimator.load(options.robot or log.load_robot(), options.method, feet=True)
        progress("smoothing", 0.2)
        begin = time.perf_counter()
        done = smooth_with(estimator, log, options.start, options.ground)
        spent = time.perf_counter() - begin
        found = _rows(done, log)
        rows = [Row(f"{who}_{row.name}", row.value, row.unit) for who, some in found.items() for row in some]
        if done.latency is not None:
            rows += [Row("joint_delay", done.latency.value, "s"), Row("joint_delay_std", done.latency.std, "s")]
        rows += [Row("time", spent, "s"), *wrong_rows(findings)]
        progress("writing", 0.6)
        with whole_folder(options.out, "smooth") as folder:
            if "tum" in outputs:
                done.smoothed.to_tum(folder.work / "trajectory.tum")
            if "csv" in outputs:
                done.smoothed.to_csv(folder.work / "trajectory.csv")
            if "mcap" in outputs:
                write_mcap(folder.work / "trajectory.mcap", done.smoothed, estimator.robot, log.gyro)
            settings = {
                "log": str(options.log),
                "method": options.method,
                "start": options.start,
                "ground": options.ground,
            }
            (folder.work / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            (folder.work / "results.json").write_text(rows_to_json(rows) + "\n", encoding="utf-8")
    by_name = {who: {row.name: row for row in some} for who, some in found.items()}
    first = by_name["filter"]
    lines = tuple(
        TableLine(
            (name,), {who: Cell(float(by_name[who][name].value)) for who in found},
            "share" if first[name].unit == "-" else first[name].unit, (label,),
        )
        for name, label in SHOWN.items()
        if name in first
    )  # fmt: skip
    title = f"{options.log.name} by {estimator.method}: {log.duration:.1f} s in {spent:.2f} s"
    table = Table("smooth", title, "", ("",), tuple(found), lines, best="")
    written = next((str(folder.final / f"trajectory.{one}") for one in ("csv", "tum") if one in outputs), "")
    following = ["gait", "info", written] if written else ["gait", "view", str(options.log), *given_words(options)]
    if fix := correcting_words(findings, options):
        following = ["gait", "smooth", str(options.log), *fix]
    elif log.has_truth and written:
        following = ["gait", "eval", str(options.log), written, *given_words(options)]
    notes = (*_latency_notes(done), *warnings_of(findings, options), *reading.notes)
    return Outcome(rows, tables=[table], notes=notes, wrote=folder.final, next=shlex.join(following))


def _latency_notes(done: Smoothed) -> list[str]:
    """What the log says of the latency of the joints."""
    found = done.latency
    if found is None:
        return []
    value, std, assumed = (1e3 * seconds for seconds in (found.value, found.std, found.assumed))
    used = "smoothed with it" if found.significant else "no significant difference, smoothed with the latter"
    return [f"Joint latency {value:.1f} ± {std:.1f} ms against the IMU, {assumed:.1f} assumed: {used}."]


def _rows(done: Smoothed, log: Log) -> dict[str, list[Row]]:
    """Errors where there is ground truth, and what filter and smoother claim."""
    import numpy as np

    from gait.metrics import summary

    found = {}
    for who, trajectory in (("filter", done.filtered), ("smoother", done.smoothed)):
        assert trajectory.vel_cov is not None and trajectory.pose_cov is not None
        rows = []
        if log.has_truth:
            window = 5.0 if log.duration >= 5.0 else None
            rows = [row for row in summary(trajectory, log, seconds=window) if row.name not in ("duration", "samples")]
        rows.append(Row("velocity_std", float(np.sqrt(np.einsum("nii->n", trajectory.vel_cov).mean())), "m/s"))
        variance = np.einsum("nii->n", trajectory.pose_cov[:, :3, :3])
        rows.append(Row("position_std_mean", float(np.sqrt(variance.mean())), "m"))
        found[who] = rows
    return found
