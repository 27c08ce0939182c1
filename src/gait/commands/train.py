"""`gait train`: train a network on simulated walks."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import tyro

from gait.cluster.ray_option import CONNECTING, RayAddress, ray_words
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
    """Processes that simulate fresh rollouts; with --ray, those that share each batch."""
    ray: RayAddress = None
    """Train on a Ray cluster: the one at this address, or of this machine, which is started if there is none. --out and
    data may then be object storage, such as s3://bucket/folder; see docs/cluster.md."""
    checkpoint_seconds: float = 120.0
    """Time between two checkpoints."""
    device: Literal["auto", "cpu", "cuda"] = "cpu"
    """What computes: the processor, a GPU by CUDA (untested), or auto: a GPU where there is one. With --ray each worker
    takes one."""


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
    from gait.io.storage import joined, location

    if options.ray is not None:
        from gait.cluster.tasks import load_ray

        load_ray()
    config, out = _resolve(options)

    def tell(now: TrainingProgress) -> None:
        note = f"loss {now.loss:.3f}, {now.samples_per_second / 1e3:.0f} k samples/s"
        if now.rmse == now.rmse:
            note += f", validation {now.rmse:.4f} m/s, {100 * now.within:.0f} % within 1 sigma"
        update(now.iteration, now.total, note)

    try:
        with count_bar(options.interactive, "iterations") as update:
            resume, seconds = options.resume is not None, options.checkpoint_seconds
            if options.ray is None:
                model = train(config, out, resume, options.workers, seconds, tell, options.device)
            else:
                from gait.cluster.training import train_on_cluster

                place = location(out)
                update(0, config.iterations, CONNECTING)
                model = train_on_cluster(
                    config, place, options.ray, options.workers, resume, seconds, tell, options.device
                )
    except KeyboardInterrupt:
        again = [quote(location(out)), *ray_words(options.ray, None if options.ray is None else options.workers)]
        again += [] if options.device == "cpu" else ["--device", options.device]
        print(f"gait: stopped: `gait train --resume {' '.join(again)}` goes on", file=sys.stderr)
        raise
    rows = [Row("iterations", config.iterations, "-"), *result_rows(model)]
    path = joined(out, MODEL)
    return Outcome(rows, title=f"{config.network}, seed {config.seed}", wrote=path, next=f"gait info {quote(path)}")


def _resolve(options: Any) -> tuple[TrainConfig, Path]:
    """The configuration and the folder of the run."""
    from gait.io.storage import Storage, is_remote, joined, local_copy, location

    if options.ray is None and is_remote(place := options.out or options.resume or Path()):
        raise GaitError(f"{location(place)} is object storage, which takes a cluster: add --ray")
    given = {name: value for name in TrainConfig.__dataclass_fields__ if (value := getattr(options, name)) is not None}
    if options.resume is not None:
        if given or options.config is not None or options.out is not None:
            raise GaitError("--resume goes on with the settings of the run: leave out all others")
        with local_copy(joined(options.resume, "config.yaml")) as file:
            return config_of(read_config(file), str(options.resume)), options.resume
    values = {} if options.config is None else read_config(options.config)
    config = config_of({**values, **given}, "the command line")
    if options.out is not None and "checkpoint.safetensors" in Storage(options.out).names():
        place = location(options.out)
        raise GaitError(f"{place} holds a training: go on with --resume {place}, or choose another folder")
    return config, options.out if options.out and is_remote(options.out) else out_folder(options.out, "train")
