"""What separates real robots from the simulator: the A1 and the Go2 beside training data and twin.

    python benchmarks/realism.py            # print the table
    python benchmarks/realism.py --write    # and put it, with its figures, into docs/realism.md

The same study as `gait bench realism`, of the recordings in `shared/real`. The ten walks of the Go2 are one column. Its
accelerometer was not logged, so nothing is said about it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from real_logs import a1_walk, go2_walks
from sections import DOCS, paragraph, write_section

from gait.bench.realism.measured_log import measure
from gait.bench.realism.realism_charts import realism_charts
from gait.bench.realism.realism_report import realism_study
from gait.bench.realism.realism_table import RealismStudy
from gait.report import table as render
from gait.report.chart import Chart
from gait.report.draw import draw
from gait.rows import rows_to_json

SHOWN = (
    "residual-phase", "residual-mean", "residual-time", "foot-height", "accel-impact", "accel-walk", "accel-spectrum",
    "gyro-spectrum",
)  # fmt: skip
"""Figures of the page."""


def study(episodes: int) -> RealismStudy:
    """The recordings beside simulated walks."""
    a1 = a1_walk()
    logs = {
        "a1": [measure(a1.walking, a1.robot)],
        "go2": [measure(walk.walking, walk.robot, accelerometer=False) for walk in go2_walks()],
    }
    return realism_study(
        logs, episodes=episodes, progress=lambda what, share: print(what, f"{share:.0%}", file=sys.stderr)
    )


def section(found: RealismStudy, episodes: int) -> str:
    """Table, notes and figures in Markdown."""
    table = found.table()
    about = (
        f"Training data: {episodes} episodes of a Go1's trot on rubber, 10 s each, with the faults that a training"
        f" draws; twin: {max(episodes // 2, 1)} episodes. Go2: ten walks. {table.note}"
    )
    parts = [paragraph(about), render.markdown(table), *map(paragraph, found.notes(most=12))]
    for chart in _figures(found):
        parts += [f"![{chart.title}](images/{chart.name}.png)", paragraph(chart.caption)]
    return "\n\n".join(parts)


def _figures(found: RealismStudy) -> list[Chart]:
    return [chart for chart in realism_charts(found) if chart.name.removeprefix("realism-") in SHOWN]


def write(found: RealismStudy, episodes: int) -> None:
    """Replace the section of the page, and its figures."""
    with tempfile.TemporaryDirectory() as folder:
        for chart in _figures(found):
            draw(chart, folder)
            shutil.copyfile(Path(folder) / f"{chart.name}.png", DOCS / "images" / f"{chart.name}.png")
    write_section("realism", section(found, episodes), DOCS / "realism.md")


def main() -> None:
    """Print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=16, help="of training data; half as many of the twin")
    parser.add_argument("--write", action="store_true", help="put the results into docs/realism.md")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    options = parser.parse_args()
    found = study(options.episodes)
    print(rows_to_json(found.rows()) if options.json else section(found, options.episodes))
    if options.write:
        write(found, options.episodes)


if __name__ == "__main__":
    main()
