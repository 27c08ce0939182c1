"""Everything that `gait bench faults` measures, as rows and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gait.bench.courses import Progress
from gait.bench.faults.false_alarms import METHODS as CLEAN_METHODS
from gait.bench.faults.false_alarms import CleanHour, clean_hour
from gait.bench.faults.fault_logs import is_file, logs_of
from gait.bench.faults.fault_table import faults_text
from gait.bench.faults.long_run import LongRun, run_long
from gait.bench.faults.run_faults import FaultRow, run_faults
from gait.methods import BUILT_IN, known_method
from gait.read_options import ReadOptions
from gait.rows import Row

CLEAN, LONG = "clean", "long"
"""Words of `--only` beside the ids of faults: studies that take long."""


@dataclass(frozen=True)
class FaultReport:
    """What was measured."""

    methods: tuple[str, ...]
    faults: tuple[FaultRow, ...] = ()
    clean: CleanHour | None = None
    long: tuple[LongRun, ...] = ()

    def rows(self) -> list[Row]:
        """Every number."""
        rows = [row for one in self.faults for row in one.rows()]
        rows += self.clean.rows() if self.clean is not None else []
        return rows + [row for one in self.long for row in one.rows()]

    def text(self) -> str:
        """For a terminal, 80 columns wide."""
        parts = [faults_text(self.faults, self.methods)] if self.faults else []
        parts += ["\n".join(self.clean.lines())] if self.clean is not None else []
        return "\n\n".join([*parts, *(one.line() for one in self.long)])


def fault_report(
    log: Sequence[str] = ("sample",),
    methods: Sequence[str] = (),
    only: Sequence[str] = (),
    folder: Path = Path("runs/bench/faults"),
    workers: int = 1,
    hours: float = 24.0,
    progress: Progress = lambda what, share: None,
    options: ReadOptions | None = None,
) -> FaultReport:
    """Measure.

    Args:
        log: what to inject faults into, as `logs_of` takes it.
        methods: names of `METHODS`; all that come with gait by default, for `clean` and `long` those of the claims.
        only: ids of faults, with wildcards, and `clean` or `long`; all faults by default.
        folder: where simulated walks are kept.
        workers: processes that simulate.
        hours: of `long`.
        progress: told how far it is.
        options: how to read logs that are files.
    """
    ids = [one for one in only if one not in (CLEAN, LONG)]
    known = tuple(known_method(method) for method in methods or BUILT_IN)
    faults: list[FaultRow] = []
    logs = logs_of(log, folder, workers, progress, options) if ids or not only or LONG in only else {}
    if ids or not only:
        # Someone who gives files asks for these alone.
        courses = None if all(map(is_file, log)) else folder
        faults = run_faults(logs, methods or BUILT_IN, ids, courses, progress)
    study = methods or CLEAN_METHODS
    clean = clean_hour(folder, study, workers, progress) if CLEAN in only else None
    long = run_long(next(iter(logs.values())), study, hours, progress) if LONG in only else ()
    shown = known if faults else tuple(known_method(method) for method in study)
    return FaultReport(shown, tuple(faults), clean, tuple(long))
