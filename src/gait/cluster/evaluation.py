"""`gait eval LOG... --methods ... --ray`: every log a task; a manifest keeps what is done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gait._version import __version__
from gait.bench.walks import described, found_figures, log_table, mean_figures, walk_study
from gait.cluster.luggage import Parcel, add_robot
from gait.cluster.ray_option import CONNECTING
from gait.cluster.tasks import NodeResult, connected, spread
from gait.documents import load_json
from gait.errors import GaitError, os_errors
from gait.io.atomic import atomic_path
from gait.io.checked import read_checked, warnings_of, wrong_rows
from gait.io.storage import Storage, is_remote, location
from gait.log.finding import CheckFinding
from gait.methods import METHODS
from gait.read_options import ReadOptions, asked
from gait.report.method_table import NOTE, WIDE, method_table
from gait.rows import Row
from gait.sim.store import sha256

MOST_LISTED = 200
"""Logs that have lines of their own in the report; the manifest has all."""
MOST_SAID = 5
"""Logs whose notes or failure are printed."""

ASKED = 32
"""Logs that are looked at together, before any is evaluated."""


@dataclass(frozen=True)
class EvalPlan:
    """What is run on every log."""

    methods: tuple[str, ...]
    """Names of `METHODS`, or Python files."""
    start: str
    max_gap: float
    read: ReadOptions = field(default_factory=ReadOptions)
    """How to read each."""

    def as_dict(self, parcel: Parcel) -> dict[str, Any]:
        """The first line of a manifest, with digests of the files that travel: one may change under its name."""
        read = {name: str(value) if isinstance(value, Path) else value for name, value in asked(self.read).items()}
        return {
            "version": __version__, "methods": list(self.methods), "start": self.start, "max_gap": self.max_gap,
            "read": read, "files": {name: sha256(data) for name, data in parcel.files.items()},
        }  # fmt: skip


def packed(plan: EvalPlan) -> tuple[EvalPlan, Parcel]:
    """The plan with names in a parcel in place of the paths of its files."""
    parcel, read = Parcel(), plan.read
    methods = [
        parcel.add(f"methods/{i}", [Path(method)]) if method.endswith(".py") else method
        for i, method in enumerate(plan.methods)
    ]
    if read.robot is not None:
        read = replace(read, robot=add_robot(parcel, read.robot))
    if read.columns is not None:
        read = replace(read, columns=Path(parcel.add("columns", [read.columns])))
    return replace(plan, methods=tuple(methods), read=read), parcel


def unpacked(plan: EvalPlan, parcel: Parcel) -> EvalPlan:
    """The plan with paths of this machine."""
    if not parcel.files:
        return plan
    here = parcel.open()

    def place(name: str) -> str:
        return str(here / name) if name in parcel.files else name

    read = plan.read
    read = read if read.robot is None else replace(read, robot=place(read.robot))
    read = read if read.columns is None else replace(read, columns=Path(place(str(read.columns))))
    return replace(plan, methods=tuple(map(place, plan.methods)), read=read)


@dataclass
class Evaluated:
    """Results of an evaluation, logs in the order they were given."""

    found: dict[str, dict[str, dict[str, float]]]
    """Figures by log that could be read, then by method that could run on all of these."""
    failed: dict[str, str]
    """By log: what is wrong with it."""
    left_out: dict[str, str]
    """By method: why."""
    facts: dict[str, str]
    """By log: what it is."""
    findings: dict[str, list[CheckFinding]]
    """By log: what its checks found wrong."""
    notes: dict[str, list[str]]
    """By log: what was guessed when it was read."""
    resumed: int = 0
    """Logs that were evaluated before."""
    nodes: Counter[str] = field(default_factory=Counter)
    """Logs evaluated in this call by node."""


def evaluate_log(plan: EvalPlan, parcel: Parcel, name: str, path: str) -> dict[str, Any]:
    """All methods on one log, as a line of the manifest. Any error is a GaitError: other logs are none the worse."""
    plan = unpacked(plan, parcel)
    try:
        reading, findings = read_checked(path, plan.read)
        log = reading.log
        study = walk_study({name: log}, plan.methods, start=plan.start, max_gap=plan.max_gap, traces=False)
    except GaitError:
        raise
    except Exception as error:
        raise GaitError(f"{type(error).__name__}: {error}") from None
    return {
        "figures": found_figures(study)[name], "left_out": dict(study.left_out), "fact": described(log),
        "checks": [asdict(one) for one in findings if not one.ok], "notes": list(reading.notes),
    }  # fmt: skip


class Manifest:
    """A file with a line for each log that was evaluated; the first line has the settings."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        """Open it, or begin one; one of another evaluation is refused."""
        self.path, self.lines = path, dict[str, dict[str, Any]]()
        first, *rest = self._read() or [settings]
        if first != settings:
            raise GaitError(f"{path} is of an evaluation with other settings: repeat those, or choose another --out")
        self.lines = {str(line["log"]): line for line in rest}
        # Whole again after a line that was cut off.
        with atomic_path(path) as temporary:
            temporary.write_text("".join(json.dumps(one) + "\n" for one in (first, *self.lines.values())))

    def _read(self) -> list[dict[str, Any]]:
        found = []
        if self.path.exists():
            with os_errors(f"cannot read {self.path}"):
                for line in self.path.read_text(encoding="utf-8").splitlines():
                    with suppress(ValueError):
                        found.append(load_json(line))
        return found

    def add(self, line: dict[str, Any]) -> None:
        """Enter a log."""
        self.lines[line["log"]] = line
        with os_errors(f"cannot write {self.path}"), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def fingerprint(path: str) -> str:
    """Identifies the file that was evaluated: size and time, or the tag of the store."""
    if is_remote(path):
        return Storage(path.rpartition("/")[0]).tag(path.rpartition("/")[2])
    with suppress(OSError):
        about = Path(path).stat()
        return f"{about.st_size}-{about.st_mtime_ns}"
    return ""


def evaluate_on_cluster(
    logs: Mapping[str, str | Path],
    plan: EvalPlan,
    manifest: Path,
    address: str = "",
    processors: int = 1,
    progress: Callable[[int, int, str], None] = lambda done, total, note: None,
) -> Evaluated:
    """Run methods on any number of logs, on a Ray cluster.

    A log that cannot be read or evaluated is entered as such, and the others continue. Logs that the manifest has are
    not run again, unless they failed or their file is another one.

    Args:
        logs: paths or URLs that all nodes see, by name.
        plan: what to run.
        manifest: the file with what is done; made if it is missing.
        address: of the cluster; see `connected`.
        processors: of the cluster that is started where none runs.
        progress: called with how many of how many are done, and a note.
    """
    on_nodes, parcel = packed(plan)
    book, nodes = Manifest(manifest, plan.as_dict(parcel)), Counter[str]()
    paths = {name: location(path) for name, path in logs.items()}
    paths = {name: path if is_remote(path) else str(Path(path).absolute()) for name, path in paths.items()}
    with ThreadPoolExecutor(ASKED) as pool:  # a store takes its time for each answer
        prints = dict(zip(paths, pool.map(fingerprint, paths.values()), strict=True))
    done = {
        name for name, path in paths.items()
        if "error" not in (line := book.lines.get(path, {"error": ""})) and line["file"] == prints[name]
    }  # fmt: skip
    missing, failures = [name for name in paths if name not in done], 0

    def take(name: str, result: NodeResult) -> bool:
        nonlocal failures
        failures += bool(result.failure)
        nodes[result.node] += 1
        value = {"error": result.failure} if result.failure else result.value
        book.add({"log": paths[name], "file": prints[name], **value})
        progress(len(done) + sum(nodes.values()), len(paths), f"{failures} failed")
        return True

    progress(len(done), len(paths), CONNECTING)
    with connected(address, processors) as ray:
        # In the object store once: every node fetches it once, not every task.
        shared = ray.put(parcel)
        try:
            spread(ray, evaluate_log, ((name, (on_nodes, shared, name, paths[name])) for name in missing), take)
        except GaitError as error:
            finished = len(done) + sum(nodes.values())
            kept = f"{finished} of {len(paths)} logs are in {manifest}, from where the same evaluation goes on"
            raise GaitError(f"{error}; {kept}") from None
    return _gathered({name: book.lines[path] for name, path in paths.items()}, len(done), nodes)


def _gathered(lines: Mapping[str, Mapping[str, Any]], resumed: int, nodes: Counter[str]) -> Evaluated:
    """Results in order; a method that some log lacks is left out, as for a single log."""
    good = {name: line for name, line in lines.items() if "error" not in line}
    failed = {name: str(line["error"]) for name, line in lines.items() if "error" in line}
    if not good:
        name, why = next(iter(failed.items()))
        raise GaitError(f"none of {len(failed)} logs can be evaluated; {name}: {why}")
    left_out: dict[str, str] = {}
    for name, line in good.items():
        for method, why in line["left_out"].items():
            left_out.setdefault(method, f"{name}: {why}")
    counts = Counter(method for line in good.values() for method in line["left_out"])
    left_out = {method: f"on {counts[method]} of {len(good)} logs; {why}" for method, why in left_out.items()}
    found = {
        name: {method: figures for method, figures in line["figures"].items() if method not in left_out}
        for name, line in good.items()
    }
    if not next(iter(found.values())):
        raise GaitError(f"no method can read all of these logs: {next(iter(left_out.values()))}")
    facts, notes = ({name: line[key] for name, line in good.items()} for key in ("fact", "notes"))
    findings = {name: [CheckFinding(**one) for one in line["checks"]] for name, line in good.items()}
    return Evaluated(found, failed, left_out, facts, findings, notes, resumed, nodes)


def log_notes(result: Evaluated, options: ReadOptions) -> list[str]:
    """Findings of the checks in the first logs that have any, and the notes of reading these."""
    several, notes = len(result.found) > 1, list[str]()
    telling = [name for name in result.found if result.findings[name] or result.notes[name]]
    for name in telling[:MOST_SAID]:
        notes += warnings_of(result.findings[name], options, name if several else "")
        notes += [f"{name}: {note}" if several else note for note in result.notes[name]]
    more = len(telling) - MOST_SAID
    return notes + ([f"and {more} more logs have notes, which the manifest lists"] if more > 0 else [])


def check_rows(result: Evaluated) -> list[Row]:
    """What is wrong with logs, as results."""
    several = len(result.found) > 1
    return [row for name, some in result.findings.items() for row in wrong_rows(some, name if several else "")]


def result_notes(result: Evaluated) -> list[str]:
    """What is missing: methods, and the first logs that failed."""
    notes = [f"left out {method}: {why}" for method, why in result.left_out.items()]
    notes += [f"failed {name}: {why}" for name, why in list(result.failed.items())[:MOST_SAID]]
    more = len(result.failed) - MOST_SAID
    return notes + ([f"and {more} more logs failed"] if more > 0 else [])


def write_eval_report(result: Evaluated, path: Path, title: str, settings: Mapping[str, str]) -> None:
    """The tables of a local evaluation, without plots: those of a log are in `gait eval LOG`."""
    from gait.report.describe import installation
    from gait.report.html import write_report

    count, means = len(result.found), mean_figures(result.found)
    listed = {name: result.found[name] for name in list(result.found)[:MOST_LISTED]}
    tables = [method_table(means, WIDE, note=f"{NOTE} Mean (standard deviation) over {count} logs.")]
    tables += [log_table(listed)] if 1 < count <= MOST_LISTED else []
    subject = " on ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in ((len(means), "method"), (count, "log")))
    said = [f"{subject}, {len(result.failed)} failed.", *result_notes(result)]
    facts = [
        *(Row(name, value, "-") for name, value in settings.items()),
        *(
            Row(f"weights.{name}", weights, "-")
            for name in means
            if name in METHODS and (weights := METHODS[name].weights)
        ),
        *(Row(f"log.{name}", result.facts[name], "-") for name in listed),
        *(Row(f"failed.{name}", why, "-") for name, why in list(result.failed.items())[:MOST_LISTED]),
        *installation(),
    ]
    write_report(path, title, " ".join(said), tables, [], facts)
