"""`gait train`: train a network on simulated walks."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import tyro

from gait.commands import Common, Outcome, count_bar, out_folder, quote
from gait.errors import GaitError, need_extra
from gait.rows import Row
from gait.train.config import TrainConfig, config_of, read_config

if TYPE_CHECKING:
    from gait.train.loop import TrainingProgress


@dataclass(frozen=True)
class _TrainRun(Common):
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
    # A field is a line, with its docstring below it.
    words = dict(re.findall(r'^    (\w+): [^\n]+\n    """(.+?)"""', inspect.getsource(TrainConfig), re.M | re.S))
    hints, options = get_type_hints(TrainConfig), []
    for entry in fields(TrainConfig):
        many = isinstance(entry.default, tuple)
        default = " ".join(entry.default) if isinstance(entry.default, tuple) else entry.default
        kind = hints[entry.name].__args__[0] if many else hints[entry.name]
        metavar = "{True,False}" if kind is bool else kind.__name__.upper()
        arg = tyro.conf.arg(
            help=f"{words[entry.name]} Default: {default}.".replace("\n", " "),
            help_behavior_hint="",
            metavar=f"{metavar} [{metavar} ...]" if many else metavar,
        )
        options.append((entry.name, Annotated[hints[entry.name] | None, arg], field(default=None)))
    return options


TrainOptions = make_dataclass("TrainOptions", _optional_fields(), bases=(_TrainRun,), frozen=True)
TrainOptions.__doc__ = _TrainRun.__doc__


def run(options: Any) -> Outcome:
    """Train, or go on with a training."""
    try:
        from gait.report.describe import result_rows
        from gait.train.loop import MODEL, train
    except ModuleNotFoundError as error:
        raise need_extra(error.name or "torch", "train") from None
    config, out = _resolve(options)

    def tell(now: TrainingProgress) -> None:
        note = f"loss {now.loss:.3f}, {now.samples_per_second / 1e3:.0f} k samples/s"
        if now.rmse == now.rmse:
            note += f", validation {now.rmse:.4f} m/s, {100 * now.within:.0f} % within 1 sigma"
        update(now.iteration, now.total, note)

    try:
        with count_bar(options.interactive, "iterations") as update:
            model = train(config, out, options.resume is not None, options.workers, options.checkpoint_seconds, tell)
    except KeyboardInterrupt:
        print(f"gait: stopped: `gait train --resume {quote(out)}` goes on", file=sys.stderr)
        raise
    rows = [Row("iterations", config.iterations, "-"), *result_rows(model)]
    path = out / MODEL
    return Outcome(rows, title=f"{config.network}, seed {config.seed}", wrote=path, next=f"gait info {quote(path)}")


def _resolve(options: Any) -> tuple[TrainConfig, Path]:
    """The configuration and the folder of the run."""
    given = {name: value for name in TrainConfig.__dataclass_fields__ if (value := getattr(options, name)) is not None}
    if options.resume is not None:
        if given or options.config is not None or options.out is not None:
            raise GaitError("--resume goes on with the settings of the run: leave out all others")
        return config_of(read_config(options.resume / "config.yaml"), str(options.resume)), options.resume
    values = {} if options.config is None else read_config(options.config)
    config = config_of({**values, **given}, "the command line")
    if options.out is not None and (options.out / "checkpoint.safetensors").exists():
        raise GaitError(f"{options.out} holds a training: go on with --resume {options.out}, or choose another folder")
    return config, out_folder(options.out, "train")
