"""`gait demo`: what every method makes of the sample log that comes with the package."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from gait.commands import Common, Outcome, report_file
from gait.commands.bars import share_bar
from gait.samples import SAMPLE

ROWS = ("velocity_rmse", "re_pos_5s", "re_rot_5s", "step")
"""Of each method, for machines."""


@dataclass(frozen=True)
class DemoOptions(Common):
    """Estimate 20 s of a simulated Go1 with each method, compare with the truth and write a report with plots.

    The log is of the benchmark twin: a robot whose links, encoders, motors and IMU are all a little off, trotting on
    rubber. Nothing but its IMU and joint sensors is used; the truth is only for the start and for the score.
    """

    out: Path | None = None
    """Folder of the report, or its name if it ends in .html; runs/demo/STAMP by default."""


def run(options: DemoOptions) -> Outcome:
    """Run every method on the sample."""
    show = sys.stderr.isatty() and not options.json
    with share_bar(show, "starting; the first run compiles, which takes about a minute") as progress:
        from gait.bench.walks import BRIEF, walk_rows, walk_study, walk_table, write_walk_report
        from gait.log.log import Log

        found = walk_study({SAMPLE.stem: Log.load(SAMPLE)}, progress=progress)
        progress("writing the report", 1.0)
        path = report_file(options.out, "demo")
        write_walk_report(found, path, "GAIT on the sample walk", {"command": "gait demo", "start": "truth"})
    table = walk_table(found.study, BRIEF, "20 s of a simulated Go1 in trot")
    return Outcome(
        [row for row in walk_rows(found.study) if row.name.split(".", 1)[1] in ROWS],
        tables=[table],
        notes=[
            "velocity: rms error in the body frame; 5 s drift: rms position error after 5 s;",
            "a step: time one sample takes, of the 2000 us that there are at 500 Hz",
            "Nothing slips here, which suits iekf; `gait bench tables` has slippery ground and gaits never trained.",
        ],
        wrote=path,
        next=f"gait eval {shlex.quote(str(SAMPLE))} --methods all",
    )
