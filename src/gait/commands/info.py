"""`gait info`: what is in a file, or in this installation."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome
from gait.commands.bars import status
from gait.io.read_options import ReadOptions, given_words


@dataclass(frozen=True)
class InfoOptions(Common, ReadOptions):
    """Show what is in a log, trajectory or model; without a path, what a bug report needs.

    Of a log: what was guessed in reading it, what the estimator uses, and whether gravity, gyro, joints and truth look
    as they should. For a bug report: versions, extras, the machine, and whether the estimator runs here and is right on
    2 s of the sample.
    """

    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    path: Positional[Optional[Path]] = None  # noqa: UP045
    """A log (npz, ROS bag, MCAP, CSV, HDF5), a trajectory (npz, csv, tum), or a model (its name, or safetensors)."""


def run(options: InfoOptions) -> Outcome:
    """Describe the file or the installation."""
    from gait.report import describe

    if options.path is None:
        rows = describe.installation()
        words = "trying the estimator; the first time this compiles for about a minute"
        with status(sys.stderr.isatty() and not options.json, words):
            rows += describe.self_check()
        return Outcome(rows, title="This installation", next="gait demo")
    from gait.io import read
    from gait.log.log import Log
    from gait.nets.model import SUFFIX, is_safetensors, load_model, model_names

    if str(options.path) in model_names() or options.path.suffix == SUFFIX or is_safetensors(options.path):
        return Outcome(describe.model(load_model(options.path)), title=f"Model {options.path}")
    found = read(options.path, options)
    record = found.record
    path = shlex.quote(str(options.path))
    following = "csv" if isinstance(record, Log) else "tum"
    target = shlex.quote(str(options.path.with_suffix(f".{following}")))
    if options.path.suffix == f".{following}":
        target = shlex.quote(str(options.path.with_suffix(".npz")))
    rows, lines = describe.reading(found)
    words = shlex.join(given_words(options))
    return Outcome(
        rows,
        title=f"{record.KIND} {options.path}",
        notes=lines,
        next=f"gait convert {path} {target}{' ' * bool(words)}{words}",
    )
