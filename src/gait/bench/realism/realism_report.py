"""`gait bench realism`: logs in, tables, figures and a report out.

results.json    every number, by name
table.md        the table; also table.csv
figures/        PNG and SVG
report.html     all of it in one page
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from gait.bench.realism.measured_log import MeasuredLog, measure
from gait.bench.realism.quantities import QUANTITIES
from gait.bench.realism.realism_charts import realism_charts
from gait.bench.realism.realism_table import RealismStudy
from gait.bench.realism.reference_walks import Progress, reference_walks
from gait.errors import GaitError, located
from gait.io.atomic import atomic_path, commit
from gait.io.checked import read_checked_logs
from gait.read_options import ReadOptions
from gait.report import table as render
from gait.robot import Robot
from gait.rows import Row, rows_to_json
from gait.sim.store import robot_of_episode


def measured_files(
    paths: Sequence[Path], options: ReadOptions, progress: Progress = lambda what, share: None
) -> tuple[dict[str, list[MeasuredLog]], list[str]]:
    """Measure logs; the names of their files are those of their columns.

    Args:
        paths: of the files.
        options: how to read them; the robot is that of each log by default.
        progress: called with the progress in words.

    Returns:
        The measurements by name, and the notes of reading and checking the logs.
    """
    stems = [path.stem for path in paths]
    twice = [stem for stem in stems if stems.count(stem) > 1]
    if twice:
        raise GaitError(f"two logs are named {twice[0]}: give each a name of its own")
    found, notes = {}, list[str]()
    for i, path in enumerate(paths):
        progress(f"measuring {path.name}", i / len(paths))
        read = read_checked_logs({path.stem: path}, options)
        log = read.logs[path.stem]
        notes += [f"{path.stem}: {note}" if len(paths) > 1 else note for note in read.notes]
        whose = Robot.load(options.robot) if options.robot else robot_of_episode(path, log)
        with located(str(path)):
            found[path.stem] = [measure(log, whose)]
    return found, notes


def realism_study(
    logs: Mapping[str, Sequence[MeasuredLog]],
    gait: str = "trot",
    terrain: str = "rubber",
    episodes: int = 8,
    seed: int = 71001,
    progress: Progress = lambda what, share: None,
) -> RealismStudy:
    """Measured logs beside simulated walks.

    Args:
        logs: by column.
        gait: of the simulated robot.
        terrain: what it walks on.
        episodes: of training data; half as many of the twin.
        seed: of the simulation.
        progress: called with the progress in words.
    """
    walks = reference_walks(gait, terrain, episodes, seed, progress)
    clash = [name for name in logs if name in walks]
    if clash:
        raise GaitError(f"a log is named {clash[0]}, as a simulated column is: rename the file")
    return RealismStudy({**logs, **walks})


def write_realism(study: RealismStudy, out: Path, settings: Mapping[str, str]) -> Path:
    """Write table, figures and report to a folder, which must exist; returns the report."""
    from gait.report.describe import installation
    from gait.report.draw import draw
    from gait.report.html import write_report

    table, charts, settings = study.table(), realism_charts(study), {**settings, "commit": commit()}
    texts = {
        "results.json": rows_to_json(study.rows()) + "\n",
        "config.json": json.dumps(dict(settings), indent=2) + "\n",
        "table.md": f"{render.markdown(table)}\n\n{table.note}\n",
        "table.csv": render.csv(table),
    }
    for name, text in texts.items():
        with atomic_path(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    for chart in charts:
        draw(chart, out / "figures")
    facts = [*(Row(name, value, "-") for name, value in settings.items()), *installation()]
    path = out / "report.html"
    write_report(
        path, table.title, "\n".join([table.note, *study.notes(most=len(QUANTITIES) * 3)]), [table], charts, facts
    )
    return path
