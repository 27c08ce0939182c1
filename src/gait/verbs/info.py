"""`gait info`: what is in a file, or in this installation."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from gait.verbs import Common, Outcome


@dataclass(frozen=True)
class Options(Common):
    """Show what is in a log, trajectory or model; without a path, what a bug report needs."""

    path: Positional[Path | None] = None
    """A log or trajectory (npz, csv, tum), or a model (safetensors)."""


def run(options: Options) -> Outcome:
    """Describe the file or the installation."""
    from gait import describe

    if options.path is None:
        rows = describe.installation() + describe.self_check()
        return Outcome(rows, title="This installation", next="gait info LOG")
    from gait.io import open_any
    from gait.log import Log
    from gait.nets.model import SUFFIX, is_safetensors, load_model

    if options.path.suffix == SUFFIX or is_safetensors(options.path):
        return Outcome(describe.model(load_model(options.path)), title=f"Model {options.path}")
    record = open_any(options.path)
    path = shlex.quote(str(options.path))
    following = "csv" if isinstance(record, Log) else "tum"
    target = shlex.quote(str(options.path.with_suffix(f".{following}")))
    if options.path.suffix == f".{following}":
        target = shlex.quote(str(options.path.with_suffix(".npz")))
    return Outcome(
        describe.contents(record), title=f"{record.KIND} {options.path}", next=f"gait convert {path} {target}"
    )
