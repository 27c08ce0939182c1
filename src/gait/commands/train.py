"""`gait train`: learn a network from simulated walks."""

from __future__ import annotations

import ast
import inspect
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro

from gait.commands import Common, Outcome
from gait.errors import GaitError, need_extra
from gait.report.rows import Row
from gait.train.config import FIELDS, TrainConfig, config_of, read_config

if TYPE_CHECKING:
    from gait.train.loop import TrainingProgress

ROOT = Path("runs/train")


@dataclass(frozen=True)
class RunOptions(Common):
    """Train a network; see docs/training.md. Values come from the defaults, then --config, then the command line."""

    config: Path | None = None
    """A YAML file with values; configs/ has one for each model that comes with gait."""
    out: Path | None = None
    """Folder of the run; runs/train/STAMP by default, with a link runs/train/latest."""
    resume: Path | None = None
    """Folder of a run to finish; its settings are used."""
    workers: int = 1
    """Processes that simulate fresh rollouts."""
    checkpoint_seconds: float = 120.0
    """Time between two checkpoints."""


def _optional_fields() -> list[tuple[str, Any, Any]]:
    """The values of a TrainConfig as options that may be left out, so that a file can be told from the command line."""
    tree = ast.parse(inspect.getsource(TrainConfig)).body[0]
    assert isinstance(tree, ast.ClassDef)
    words = {
        line.target.id: str(text.value.value)
        for line, text in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
    hints, options = get_type_hints(TrainConfig), []
    for entry in fields(TrainConfig):
        many = isinstance(entry.default, tuple)
        default: Any = entry.default
        default = " ".join(default) if many else default
        kind = hints[entry.name].__args__[0] if many else hints[entry.name]
        metavar = "{True,False}" if kind is bool else kind.__name__.upper()
        arg = tyro.conf.arg(
            help=f"{words[entry.name]} Default: {default}.".replace("\n", " "),
            help_behavior_hint="",
            metavar=f"{metavar} [{metavar} ...]" if many else metavar,
        )
        options.append((entry.name, Annotated[hints[entry.name] | None, arg], field(default=None)))
    return options


Options = make_dataclass("Options", _optional_fields(), bases=(RunOptions,), frozen=True)
Options.__doc__ = RunOptions.__doc__


def run(options: Any) -> Outcome:
    """Train, or go on with a training."""
    try:
        from gait.train.loop import MODEL, train
    except ModuleNotFoundError as error:
        raise need_extra(error.name or "torch", "train") from None
    config, out = _resolve(options)
    show = sys.stderr.isatty() and not options.json
    try:
        with _bar(show) as update:
            model = train(config, out, options.resume is not None, options.workers, options.checkpoint_seconds, update)
    except KeyboardInterrupt:
        print(f"gait: stopped: `gait train --resume {shlex.quote(str(out))}` goes on", file=sys.stderr)
        raise
    rows = [Row("iterations", config.iterations, "-")]
    rows += [Row(name, value, _unit(name)) for name, value in model.results.items()]
    path = out / MODEL
    title = f"{config.network}, seed {config.seed}"
    return Outcome(rows, title=title, wrote=path, next=f"gait info {shlex.quote(str(path))}")


def _resolve(options: Any) -> tuple[TrainConfig, Path]:
    """The configuration and the folder of the run."""
    from gait.io.run_folder import new_folder

    given = {name: value for name in FIELDS if (value := getattr(options, name)) is not None}
    if options.resume is not None:
        if given or options.config is not None or options.out is not None:
            raise GaitError("--resume goes on with the settings of the run: leave out all others")
        return config_of(read_config(options.resume / "config.yaml"), str(options.resume)), options.resume
    values = {} if options.config is None else read_config(options.config)
    config = config_of({**values, **given}, "the command line")
    if options.out is None:
        return config, new_folder(ROOT)
    if (options.out / "checkpoint.safetensors").exists():
        raise GaitError(f"{options.out} holds a training: go on with --resume {options.out}, or choose another folder")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GaitError(f"cannot use {options.out}: {(error.strerror or str(error)).lower()}") from None
    return config, options.out


@contextmanager
def _bar(show: bool) -> Iterator[Callable[[TrainingProgress], None] | None]:
    """A progress bar on a terminal; nothing anywhere else."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("iterations"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("iterations", total=None, note="")

        def update(p: TrainingProgress) -> None:
            note = f"loss {p.loss:.3f}, {p.samples_per_second / 1e3:.0f} k samples/s"
            if p.rmse == p.rmse:
                note += f", validation {p.rmse:.4f} m/s, {100 * p.within:.0f} % within 1 sigma"
            bar.update(task, total=p.total, completed=p.iteration, note=note)

        yield update


def _unit(name: str) -> str:
    return "m/s" if "rmse" in name or "std" in name else "-"
