"""`gait sweep`: trainings as trials of Ray Tune, each in a folder of its own; one table and one report at the end.

A trial is an ordinary training (`gait train --resume FOLDER` goes on with it by hand). The same command goes on with a
sweep: finished trials are kept, others continue from their checkpoints, and so they do when a node is lost.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gait.cluster.sweep_plan import StopEarly, Sweep, Trial, at_home
from gait.cluster.tasks import RETRIES, beside, connected
from gait.errors import GaitError
from gait.io.atomic import atomic_path
from gait.metrics import mean_std
from gait.nets.model import Model, load_model, read_arrays
from gait.report.chart import Chart, Panel, line
from gait.report.table import Cell, Table, TableLine
from gait.rows import Row
from gait.train.config import write_config
from gait.train.loop import CHECKPOINT, CONFIG, MODEL, TrainingProgress, train

STOPPED = "stopped.json"
"""In the folder of a trial that was stopped early: where it was."""
FAILURE = "failure"
"""In the last report of a trial whose input is at fault: what is wrong."""
FIGURES = {
    "velocity_rmse": ("velocity", "m/s"),
    "within_1_sigma": ("within 1 std", "-"),
    "nll": ("likelihood", "-"),
    "iterations": ("iterations", "-"),
}
"""Columns of the table."""
METRIC = "velocity_rmse"
NOTE = (
    "Validation of each training: rms error of the network's velocity, share of errors inside one predicted standard"
    " deviation (0.68 if they are right), negative log-likelihood of a sample. Mean (standard deviation) over seeds."
)


def run_trial(words: dict[str, Any]) -> dict[str, Any] | None:
    """Train in a trial of Ray Tune; report every validation, by which trials are compared. Tells what is at fault."""
    from ray import tune

    trial, out = words["trial"], Path(words["out"]) / words["trial"].name
    out.mkdir(parents=True, exist_ok=True)
    told = 0

    def tell(now: TrainingProgress) -> None:
        nonlocal told
        # Not the last one: a trial that is stopped there would leave no model.
        if now.rmse == now.rmse and told < now.iteration // trial.config.validate_every and now.iteration < now.total:
            told = now.iteration // trial.config.validate_every
            tune.report({METRIC: now.rmse, "iteration": now.iteration})

    try:
        train(trial.config, out, (out / CHECKPOINT).exists(), 1, words["seconds"], tell)
    except GaitError as error:
        # Input at fault stays so: Ray Tune is to repeat what was lost, not this.
        return {METRIC: math.inf, "iteration": 0, FAILURE: str(error)}
    return None


def run_sweep(
    sweep: Sweep,
    out: Path,
    address: str = "",
    processors: int = 1,
    checkpoint_seconds: float = 120.0,
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> None:
    """Do the trainings that a folder lacks.

    Args:
        sweep: what to train.
        out: a folder that all nodes see; each training has its own in it.
        address: of the cluster; see `connected`.
        processors: of the cluster that is started where none runs.
        checkpoint_seconds: time between two checkpoints of a training.
        progress: called with how many of how many are done, and a note.
    """
    trials = [at_home(trial, Path.cwd()) for trial in sweep.trials]
    for trial in trials:
        _begin(trial, out / trial.name)
    left = [trial for trial in trials if not _ended(out / trial.name)]
    if not left:
        return

    def look() -> None:
        progress(sum(_ended(out / trial.name) for trial in trials), len(trials), "")

    with connected(address, processors), tempfile.TemporaryDirectory(prefix="gait-") as here:
        beside(partial(_tune, left, sweep.stop_early, out.absolute(), checkpoint_seconds, here), look, seconds=1.0)


def _begin(trial: Trial, folder: Path) -> None:
    """Write the configuration of a trial, or refuse a folder that has another one."""
    from gait.train.config import config_of, read_config

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONFIG
    if path.exists() and config_of(read_config(path), str(path)) != trial.config:
        raise GaitError(f"{folder} holds a training with other settings: choose another --out, or repeat those")
    if not path.exists():
        write_config(trial.config, path)


def _ended(folder: Path) -> bool:
    return (folder / MODEL).exists() or (folder / STOPPED).exists()


def _tune(trials: Sequence[Trial], stop: StopEarly | None, out: Path, seconds: float, here: str) -> None:
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler, FIFOScheduler

    longest = max(trial.config.iterations for trial in trials)
    scheduler: Any = FIFOScheduler()
    if stop is not None:
        scheduler = ASHAScheduler(
            time_attr="iteration", metric=METRIC, mode="min", max_t=longest, grace_period=stop.after,
            reduction_factor=1.0 / stop.keep,
        )  # fmt: skip
    # A trial that may be stopped at any validation has a checkpoint of each.
    pause = seconds if stop is None else 0.0
    space = {"trial": tune.grid_search(list(trials)), "out": str(out), "seconds": pause}
    results = tune.Tuner(
        tune.with_resources(run_trial, {"cpu": 1}),
        param_space=space,
        tune_config=tune.TuneConfig(scheduler=scheduler),
        run_config=tune.RunConfig(
            storage_path=here, failure_config=tune.FailureConfig(max_failures=RETRIES), verbose=0
        ),
    ).fit()
    failed: dict[str, str] = {}
    for i, trial in enumerate(trials):
        folder, result = out / trial.name, results[i]
        if result.error is not None:
            failed[trial.name] = " ".join(str(result.error).split())[-400:]
        elif FAILURE in result.metrics:
            failed[trial.name] = result.metrics[FAILURE]
        elif not (folder / MODEL).exists():
            with atomic_path(folder / STOPPED) as temporary:
                temporary.write_text(json.dumps({"iteration": result.metrics["iteration"]}) + "\n")
    if failed:
        name, why = next(iter(failed.items()))
        count = f"{len(failed)} of {len(trials)} trainings failed"
        raise GaitError(f"{count}; {name}: {why}; the others are done, and the same command repeats these alone")


def trial_figures(folder: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The figures of a trial at its last validation, and its history."""
    header = json.loads(read_arrays(folder / CHECKPOINT)[0]["header"])
    history: list[dict[str, Any]] = header["history"]
    results: Mapping[str, Any] = next((row for row in reversed(history) if "validation_nll" in row), {})
    with suppress(GaitError):
        model: Model = load_model(folder / MODEL)
        results = model.results
    found = {name: float(results[f"validation_{name}"]) for name in list(FIGURES)[:3] if results}
    return found | {"iterations": float(len(history))}, history


def sweep_table(sweep: Sweep, out: Path) -> tuple[Table, list[Row], list[Chart]]:
    """The results of all trials: a line for each method and data set, rows, and curves."""
    lines, rows, curves = [], list[Row](), dict[str, list[Any]]()
    groups = dict.fromkeys((trial.method, trial.data) for trial in sweep.trials)
    found = {trial.name: trial_figures(out / trial.name) for trial in sweep.trials}
    for method, data in groups:
        members = [trial for trial in sweep.trials if (trial.method, trial.data) == (method, data)]
        means = {name: mean_std([found[one.name][0][name] for one in members]) for name in FIGURES}
        lines.append(TableLine((method, data), {name: Cell(one.mean, one.std) for name, one in means.items()}))
        rows += [Row(f"{method}.{data}.{name}", one.mean, FIGURES[name][1]) for name, one in means.items()]
        for one in members:
            rows += [Row(f"{one.name}.{name}", value, FIGURES[name][1]) for name, value in found[one.name][0].items()]
            checked = [row for row in found[one.name][1] if "validation_velocity_rmse" in row]
            x, y = (np.array([row[key] for row in checked]) for key in ("iteration", "validation_velocity_rmse"))
            curves.setdefault(data, []).append(line(f"{method}, seed {one.seed}", x.astype(float), y))
    labels = {name: label for name, (label, _) in FIGURES.items()}
    units = {name: unit for name, (_, unit) in FIGURES.items()}
    unranked = ("within_1_sigma", "iterations")
    table = Table(
        "sweep", "Sweep", NOTE, ("method", "data"), tuple(FIGURES), tuple(lines), "column", units, labels, unranked
    )
    caption = "Rms error of the velocity in validation by iteration, a line for each training."
    charts = [
        Chart(f"validation-{data}", f"Validation on {data}", caption,
              (Panel(tuple(some), "iteration", "validation error (m/s)", log_y=True),))
        for data, some in curves.items()
    ]  # fmt: skip
    return table, rows, charts


def write_sweep_report(sweep: Sweep, out: Path, title: str) -> tuple[Table, list[Row]]:
    """Write `report.html` to the folder of a sweep; returns its table and all figures."""
    from gait.report.describe import installation
    from gait.report.html import write_report

    table, rows, charts = sweep_table(sweep, out)
    stopped = [trial.name for trial in sweep.trials if (out / trial.name / STOPPED).exists()]
    said = f"{len(sweep.trials)} trainings, {len(stopped)} of them stopped early."
    facts = [Row(f"trial.{trial.name}", str(trial.config.as_dict()), "-") for trial in sweep.trials]
    write_report(out / "report.html", title, said, [table], charts, [*facts, *installation()])
    return table, [Row("trials", len(sweep.trials), "-"), Row("stopped", len(stopped), "-"), *rows]
