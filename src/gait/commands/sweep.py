"""`gait sweep`: trainings of methods x seeds x data sets on a cluster."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from tyro.conf import Positional

from gait.cluster.ray_option import CONNECTING, RayAddress, processors, ray_words
from gait.commands import Common, Outcome, count_bar, out_folder, quote
from gait.errors import need_extra


@dataclass(frozen=True)
class SweepOptions(Common):
    """Train methods x seeds x data sets on a Ray cluster, and collect one table and one report; see docs/cluster.md.

    The same command goes on with a sweep that was stopped, where --out names its folder.
    """

    file: Positional[Path]
    """A YAML file with config, methods, seeds, data and stop_early; examples/sweep.yaml is one."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """Folder of the sweep, with one for each training; runs/sweep/STAMP by default."""
    ray: RayAddress = ""
    """Address of the cluster; without it the one of this machine, which is started if there is none."""
    workers: Optional[int] = None  # noqa: UP045
    """Trainings at a time, on a cluster that is started here; by default one a core."""
    checkpoint_seconds: float = 120.0
    """Time between two checkpoints of a training."""


def run(options: SweepOptions) -> Outcome:
    """Train what is missing, and collect."""
    from gait.cluster.sweep_plan import read_sweep
    from gait.cluster.tasks import load_ray

    load_ray()
    try:
        from gait.cluster.trials import run_sweep, write_sweep_report
    except ModuleNotFoundError as error:
        raise need_extra(error.name or "torch", "cluster") from None
    sweep = read_sweep(options.file)
    out = out_folder(options.out, "sweep")
    try:
        with count_bar(options.interactive, "trainings") as update:
            count = processors(options.workers)
            update(0, len(sweep.trials), CONNECTING)
            run_sweep(sweep, out, options.ray or "", count, options.checkpoint_seconds, update)
    except KeyboardInterrupt:
        again = [quote(options.file), "--out", quote(out), *ray_words(options.ray or None, options.workers)]
        print(f"gait: stopped: `gait sweep {' '.join(again)}` goes on", file=sys.stderr)
        raise
    title = f"Sweep of {len(sweep.trials)} trainings"
    table, rows = write_sweep_report(sweep, out, title)
    values = {row.name: row.value for row in rows}
    best = min(sweep.trials, key=lambda trial: values[f"{trial.name}.velocity_rmse"])
    next_step = f"gait info {quote(out / best.name / 'model.safetensors')}"
    return Outcome(rows, title, wrote=out / "report.html", tables=[table], next=next_step)
