"""The logs that faults are injected into: the sample, one simulated walk a gait, or files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gait.bench.courses import GAITS, Course, Progress, make_test_set
from gait.io import open_log
from gait.log import Log
from gait.read_options import ReadOptions
from gait.samples import SAMPLE

WALKS: tuple[Course, ...] = tuple(
    Course(f"faults-{gait}", gait, "rubber", 64001 + i, runs=1, seconds=50.0) for i, gait in enumerate(GAITS)
)
"""One walk a gait with the benchmark's twin. Fault handling is developed on them: no seed is of the frozen test set."""


def is_file(name: str) -> bool:
    """Whether a name of `logs_of` is a file rather than a log of our own."""
    return name not in ("sample", "walks", *GAITS)


def logs_of(
    names: Sequence[str],
    folder: Path,
    workers: int = 1,
    progress: Progress = lambda what, share: None,
    options: ReadOptions | None = None,
) -> dict[str, Log]:
    """Logs by name: `sample`, a gait, `walks` for all gaits, or the path of a log with ground truth.

    Args:
        names: what to open.
        folder: where simulated walks are kept.
        workers: processes that simulate.
        progress: told how far it is.
        options: how to read files.
    """
    wanted = dict.fromkeys(one for name in names for one in (GAITS if name == "walks" else (name,)))
    courses = {course.gait: course for course in WALKS}
    found = {}
    for name in wanted:
        if name == "sample":
            found[name] = open_log(SAMPLE)
        elif is_file(name):
            found[Path(name).stem] = open_log(name, options)
        else:
            found[name] = make_test_set([courses[name]], folder, workers, progress)[0][0].log
    return found
