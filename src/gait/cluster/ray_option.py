"""The option --ray of verbs that a cluster can share, and the rows of their results about its nodes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Annotated, Optional

from tyro.constructors import PrimitiveConstructorSpec

from gait.errors import GaitError
from gait.rows import Row

_SPEC = PrimitiveConstructorSpec(
    nargs=(0, 1),
    metavar="[ADDRESS]",
    instance_from_str=lambda words: words[0] if words else "",
    is_instance=lambda value: value is None or isinstance(value, str),
    str_from_instance=lambda value: [] if value is None else [value],
)
# Not `str | None`: for that tyro imports a type checker, which doubles the time of a help.
RayAddress = Annotated[Optional[str], _SPEC]  # noqa: UP045
"""None without --ray; empty where no address follows it."""


CONNECTING = "waiting for the cluster"
"""Beside a progress bar until the first result is there."""


def processors(workers: int | None = None) -> int:
    """Of a cluster that is started here: as many as --workers says, or else all there are."""
    if workers is not None and workers < 1:
        raise GaitError(f"workers must be 1 or more, got {workers}")
    return workers or os.cpu_count() or 1


def ray_words(address: str | None, workers: int | None) -> list[str]:
    """The options that name the same cluster, for a command to paste."""
    named = [] if address is None else ["--ray", *([shlex.quote(address)] if address else [])]
    return named + ([] if workers is None else ["--workers", str(workers)])


def node_rows(nodes: Mapping[str, float], what: str, unit: str) -> list[Row]:
    """A row for each node of a cluster."""
    return [Row(f"node.{name}.{what}", value, unit) for name, value in sorted(nodes.items())]


def node_note(nodes: Mapping[str, float]) -> str:
    """The slowest and the fastest node, in words that leave room for a progress bar; the results have all of them."""
    return f"{len(nodes)} nodes with {min(nodes.values()):.1f} to {max(nodes.values()):.1f}"
