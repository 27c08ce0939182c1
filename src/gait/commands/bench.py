"""`gait bench`: measure what the documentation claims."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from gait.commands import Common, Outcome, out_folder, share_bar


@dataclass(frozen=True)
class BenchOptions(Common):
    """Measure a part of the package.

    `tables`: the paper's tables and figures on the benchmark twin, with every method and seed that there are weights
    of; see docs/results.md. The walks are simulated once (`pip install 'gait-estimator[sim,viz]'`).

    `sim`: does the simulated robot really walk? Falls, footfall patterns, speed and real-time factor of every gait over
    many seeds.

    `latency`: how long a step of the estimator takes, against torch, ONNX Runtime, the exported C and gtsam's filter,
    as far as they are installed.

    `faults`: what every method makes of broken sensors, lost samples, wrong units and the like, injected one at a time;
    see docs/faults.md.
    """

    what: Positional[Literal["tables", "sim", "latency", "faults"]]
    """What to measure."""
    quick: bool = False
    """For tables and sim: fewer and shorter walks, in under a minute."""
    methods: tuple[str, ...] = ()
    """For tables, latency and faults: methods to measure; all whose weights are there by default."""
    out: Path | None = None
    """For tables: folder for tables, figures and report; runs/bench/STAMP by default."""
    test_set: Path = Path("runs/bench/testset")
    """For tables: folder that keeps the simulated walks."""
    workers: int = 2
    """For tables: how many cores to use."""
    seconds_per_rival: float = 1.0
    """For latency: how long each rival is timed."""
    log: tuple[str, ...] = ("sample",)
    """For faults: `sample`, the gait of a simulated walk (trot, bound, pace, pronk), `walks` for all four, or files."""
    only: tuple[str, ...] = ()
    """For faults: ids, with wildcards, such as 'gap-*' 'imu-*'; all by default. `clean` counts false alarms in an hour
    of walking, `long` streams a day of samples; both only if asked for."""
    hours: float = 24.0
    """For faults, with `--only long`: how many hours of samples."""


def run(options: BenchOptions) -> Outcome:
    """Run the study and say how it goes on the way."""
    if options.what == "tables":
        return _tables(options)
    if options.what == "latency":
        return _latency(options)
    if options.what == "faults":
        return _faults(options)
    from gait.sim.walkbench import walking_report

    say = partial(print, file=sys.stderr) if options.interactive else None
    rows = walking_report(quick=options.quick, progress=say)
    return Outcome(rows, title="walking", next="gait sim --gait trot --render trot.gif")


def _tables(options: BenchOptions) -> Outcome:
    with share_bar(options.interactive) as progress:
        from gait.bench.latency import latency_report
        from gait.bench.run_tables import run_bench, verdict, write_bench
        from gait.io.atomic import commit
        from gait.methods import METHODS

        methods = options.methods or tuple(METHODS)
        bench = run_bench(options.quick, methods, options.test_set, options.workers, progress)
        out = out_folder(options.out, "bench")
        progress("timing", 1.0)
        latency = [] if options.quick else latency_report(methods, seconds=0.3)
        progress("drawing", 1.0)
        command = f"gait bench tables{' --quick' if options.quick else ''}"
        settings = {"command": command, "commit": commit(), "methods": " ".join(methods)}
        write_bench(bench, out, settings, latency)
    shown = [table for table in bench.tables if table.name in ("walks", "table1", "table2", "table3", "table4")]
    path = out / "report.html"
    return Outcome(bench.rows(), wrote=path, next="gait bench latency", tables=shown, notes=verdict(bench))


def _latency(options: BenchOptions) -> Outcome:
    def say(line: str) -> None:
        # One line, written over and over.
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    if options.interactive:
        say("loading; without compiled code in the cache this takes a minute or more")
    from gait.bench.latency import latency_report

    rows = latency_report(options.methods or None, options.seconds_per_rival, say if options.interactive else None)
    if options.interactive:
        say("")
    return Outcome(rows, title="one sample in, state out: median time", next="gait bench tables --quick")


def _faults(options: BenchOptions) -> Outcome:
    with share_bar(options.interactive) as progress:
        from gait.bench.faults.fault_report import fault_report

        folder = options.test_set.parent / "faults"
        report = fault_report(
            options.log, options.methods, options.only, folder, options.workers, options.hours, progress
        )
    more = "gait bench faults --methods gait-legs" if len(report.methods) > 1 else "gait bench faults --log walks"
    return Outcome(report.rows(), text=report.text(), next=more)
