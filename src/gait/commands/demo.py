"""`gait demo`: every method on the sample log that comes with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gait.commands import Common, Outcome, quote, report_file, share_bar
from gait.samples import SAMPLE

ROWS = ("velocity_rmse", "re_pos_5s", "re_rot_5s", "step")
"""Of each method, for machines."""


@dataclass(frozen=True)
class DemoOptions(Common):
    """Estimate 20 s of a simulated Go1 with each method, compare with ground truth and write a report with plots.

    The log is of the benchmark twin: a robot whose links, encoders, motors and IMU all have errors, trotting on rubber.
    The estimate uses its IMU and joint sensors alone; ground truth serves for the start and for the score.
    """

    out: Path | None = None
    """Folder of the report, or its name if it ends in .html; runs/demo/STAMP by default."""


def run(options: DemoOptions) -> Outcome:
    """Run every method on the sample."""
    with share_bar(options.interactive) as progress:
        from gait.bench.walks import method_figures, walk_rows, walk_study, write_walk_report
        from gait.log import Log
        from gait.report.method_table import BRIEF, method_table

        study = walk_study({SAMPLE.stem: Log.load(SAMPLE)}, progress=progress)
        progress("writing the report", 1.0)
        path = report_file(options.out, "demo")
        write_walk_report(study, path, "GAIT on the sample walk", {"command": "gait demo", "start": "truth"})
    return Outcome(
        [row for row in walk_rows(study) if row.name.split(".", 1)[1] in ROWS],
        tables=[method_table(method_figures(study), BRIEF, "20 s of a simulated Go1 in trot")],
        notes=[
            "velocity: rms error in the body frame; 5 s drift: rms position error after 5 s; a step: time one sample"
            " takes, of the 2000 us available at 500 Hz",
            "Hardly a foot slips here, which suits iekf; `gait bench tables` has slippery ground and unseen gaits.",
        ],
        wrote=path,
        next=f"gait view {quote(SAMPLE)}",
    )
