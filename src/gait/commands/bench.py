"""`gait bench`: measure what the documentation claims."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, names_in, out_folder, quote, share_bar
from gait.errors import GaitError
from gait.read_options import ReadOptions, asked


@dataclass(frozen=True)
class BenchOptions(Common, ReadOptions):
    """Measure a part of the package.

    `tables`: the paper's tables and figures on the benchmark twin, with every method and seed that there are weights
    of; see docs/results.md. The walks are simulated once (needs the extras sim and viz).

    `sim`: does the simulated robot really walk? Falls, footfall patterns, speed and real-time factor of every gait over
    many seeds.

    `loop`: does the robot still walk when an estimator feeds its controller, ours or a policy? Falls, command tracking
    and velocity error on the benchmark twin, each source on the same episodes; see docs/deploy.md.

    `latency`: how long a step of the estimator takes, against torch, ONNX Runtime, the exported C and gtsam's filter,
    as far as they are installed.

    `faults`: what every method makes of broken sensors, lost samples, wrong units and the like, injected one at a time;
    see docs/faults.md.

    `realism LOG...`: what separates logs with ground truth from the simulator: sensors and legs of each log, in numbers
    and plots, beside training data and the benchmark twin; see docs/realism.md.

    `rivals [LOG...]`: every method of ours against gtsam's legged estimators, an unscented filter with outlier
    rejection and learned contacts, on logs with ground truth or on the benchmark twin; see docs/rivals.md.
    """

    what: Positional[Literal["tables", "sim", "loop", "latency", "faults", "realism", "rivals"]]
    """What to measure."""
    logs: Positional[tuple[Path, ...]] = ()
    """For realism and rivals: logs with ground truth, in any format that gait reads."""
    quick: bool = False
    """For tables, sim, realism and rivals: fewer and shorter walks, in under a minute."""
    methods: tuple[str, ...] = ()
    """For tables, latency, faults and rivals: methods to measure; all whose weights are there by default."""
    out: Path | None = None
    """For tables, realism and rivals: folder for tables, figures and report; runs/bench/STAMP by default."""
    twin: Literal[1, 2] = 2
    """For tables and rivals: version of the test set; see docs/simulator.md."""
    test_set: Path | None = None
    """For tables and rivals: folder that keeps the simulated walks; by default runs/bench/testset2, of version 1
    testset."""
    workers: int = 2
    """For tables, loop and rivals: how many cores to use."""
    seconds_per_rival: float = 1.0
    """For latency: how long each rival is timed."""
    log: tuple[str, ...] = ("sample",)
    """For faults: `sample`, the gait of a simulated walk (trot, bound, pace, pronk), `walks` for all four, or files."""
    only: tuple[str, ...] = ()
    """For faults: ids, with wildcards, such as 'gap-*' 'imu-*'; all by default. `clean` counts false alarms in an hour
    of walking, `long` streams a day of samples; both only if asked for."""
    hours: float = 24.0
    """For faults, with `--only long`: how many hours of samples."""
    feedback: str = "truth,gait-legs,iekf,gait"
    """For loop: sources of velocity, gravity direction and angular rate: truth, methods or model files."""
    policy: str = ""
    """For loop: an ONNX file; otherwise our own controller walks. For tables: that of the Go1, for one more course of
    version 2."""
    model: str = ""
    """For loop: the scene of the policy, or go1."""
    observation: str = ""
    """For loop: the YAML file that describes its observation, or go1."""
    gait: str = "trot"
    """For loop and realism: how our own controller walks."""
    terrain: str = "rubber"
    """For loop and realism: what is walked on in simulation."""
    # Not `float | None`: for that tyro imports a type checker, which doubles the time of a help.
    friction: Optional[float] = None  # noqa: UP045
    """For loop: sliding friction of the ground; the terrain's own by default."""
    commands: str = "random"
    """For loop: how the robot is steered: random, constant, turning or stop-and-go."""
    pushes: bool = True
    """For loop: push the base."""
    delay: int = 0
    """For loop: milliseconds by which all sources, truth included, reach the controller later."""
    runs: int = 20
    """For loop: walks with each source."""
    seconds: float = 30.0
    """For loop: length of a walk."""
    seed: int = 71001
    """For loop and realism: every random number comes from here."""


def run(options: BenchOptions) -> Outcome:
    """Run the study and say how it goes on the way."""
    options = replace(options, methods=names_in(options.methods))
    if options.logs and options.what not in ("realism", "rivals"):
        raise GaitError(f"{options.what} takes no logs: leave {options.logs[0]} out, or type gait bench realism LOG")
    if options.what not in ("faults", "realism", "rivals") and (
        given := next((one for one in asked(options) if one != "robot"), "")
    ):
        raise GaitError(f"--{given.replace('_', '-')} is for the logs of `gait bench faults`: leave it out")
    if options.what == "realism":
        return _realism(options)
    if options.what == "rivals":
        return _rivals(options)
    if options.what == "tables":
        return _tables(options)
    if options.what == "latency":
        return _latency(options)
    if options.what == "faults":
        return _faults(options)
    if options.what == "loop":
        return _loop(options)
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
        chosen = options.test_set, options.workers, progress, options.twin, options.policy
        bench = run_bench(options.quick, methods, *chosen)
        out = out_folder(options.out, "bench")
        progress("timing", 1.0)
        latency = [] if options.quick else latency_report(methods, seconds=0.3)
        progress("drawing", 1.0)
        command = f"gait bench tables --twin {options.twin}{' --quick' if options.quick else ''}"
        settings = {"command": command, "commit": commit(), "methods": " ".join(methods)}
        write_bench(bench, out, settings, latency)
    shown = [table for table in bench.tables if table.name in ("walks", "table1", "table2", "table3", "table4")]
    path, notes = out / "report.html", verdict(bench)
    if options.twin == 2 and not options.policy:
        notes.append("the course of the Go1's policy is left out: name its ONNX file with --policy")
    return Outcome(bench.rows(), wrote=path, next="gait bench latency", tables=shown, notes=notes)


def _loop(options: BenchOptions) -> Outcome:
    from gait.sim.plan import CollectConfig

    same = ("policy", "model", "observation", "gait", "terrain", "friction", "commands", "pushes", "seconds", "seed")
    shared = {name: getattr(options, name) for name in same}
    with share_bar(options.interactive) as progress:
        plan = CollectConfig(**shared, sensors="twin", nominal=True, episodes=options.runs)
        from gait.bench.feedback import loop_study, loop_table, truth_of
        from gait.sim.episode import check_feedback

        names = [name.strip() for name in options.feedback.split(",") if name.strip()]
        for name in names:
            check_feedback(name)
        if not 0 <= options.delay <= 1000:
            raise GaitError(f"delay must lie between 0 and 1000 ms, got {options.delay}")
        sources = loop_study(plan, names, options.workers, progress, options.delay)
    walker = Path(options.policy).stem if options.policy else options.gait
    ground = options.terrain if options.friction is None else f"{options.terrain}, friction {options.friction:g}"
    table = loop_table(sources, f"{walker} on {ground}, {options.seconds:g} s, fed by an estimator")
    rows = [row for source in sources for row in source.rows(truth_of(sources))]
    return Outcome(rows, tables=[table], notes=[table.note], next="gait bench latency")


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

        folder = Path("runs/bench/faults")
        report = fault_report(
            options.log, options.methods, options.only, folder, options.workers, options.hours, progress, options
        )
    more = "gait bench faults --methods gait-legs" if len(report.methods) > 1 else "gait bench faults --log walks"
    return Outcome(report.rows(), text=report.text(), next=more)


def _realism(options: BenchOptions) -> Outcome:
    if not options.logs:
        raise GaitError("name a log with ground truth: gait bench realism LOG")
    from gait.sim.plan import CollectConfig

    with share_bar(options.interactive) as progress:
        # Before anything is measured: the simulator is there, and knows gait and terrain.
        CollectConfig(gait=options.gait, terrain=options.terrain, seed=options.seed)
        from gait.bench.realism.realism_report import measured_files, realism_study, write_realism

        logs, said = measured_files(options.logs, options, progress)
        study = realism_study(logs, options.gait, options.terrain, 2 if options.quick else 8, options.seed, progress)
        out = out_folder(options.out, "bench")
        progress("drawing", 1.0)
        command = shlex.join(["gait", "bench", "realism", *map(str, options.logs)])
        settings = {"command": command, "gait": options.gait, "terrain": options.terrain, "seed": str(options.seed)}
        path = write_realism(study, out, settings)
    more = f"gait eval {quote(options.logs[0])} --methods all"
    return Outcome(study.rows(), wrote=path, next=more, tables=[study.table()], notes=[*said, *study.notes()])


def _rivals(options: BenchOptions) -> Outcome:
    with share_bar(options.interactive) as progress:
        from gait.bench.contest import ENTRANTS, FIGURES, QUICK_SECONDS, SECONDS, run_contest
        from gait.bench.courses import FOLDERS, Walk, courses_of, make_test_set
        from gait.bench.walks import log_names
        from gait.io.atomic import atomic_path
        from gait.io.checked import read_checked_logs
        from gait.report.table import markdown

        seconds, said = QUICK_SECONDS if options.quick else SECONDS, list[str]()
        if options.logs:
            names = log_names(options.logs)
            read = read_checked_logs(dict(zip(names, options.logs, strict=True)), options)
            walks, said = [Walk(name, 0, log, 0) for name, log in read.logs.items()], read.notes
        else:
            folder = options.test_set or FOLDERS[options.twin]
            walks, _ = make_test_set(courses_of(options.twin, quick=options.quick), folder, options.workers, progress)
        contest = run_contest(
            walks, options.methods or ENTRANTS, seconds=seconds, workers=options.workers, progress=progress
        )
        if not contest.figures:
            raise GaitError(f"nothing could run: {next(iter(contest.left_out.values()))}")
        path = out_folder(options.out, "bench") / "rivals.md"
        tables = [contest.table(), *(contest.course_table(figure) for figure in FIGURES)]
        with atomic_path(path) as temporary:
            temporary.write_text("\n\n".join(map(markdown, tables)) + "\n", encoding="utf-8")
    more = f"gait eval {quote(options.logs[0])} --methods all" if options.logs else "gait bench latency"
    return Outcome(contest.rows(), wrote=path, next=more, tables=[contest.table()], notes=[*said, *contest.notes()])
