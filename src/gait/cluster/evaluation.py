"""`gait eval LOG... --methods ... --ray`: every log a task; a manifest keeps what is done."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gait._version import __version__
from gait.bench.walks import described, found_figures, log_table, mean_figures, walk_study
from gait.cluster.luggage import Parcel
from gait.cluster.tasks import NodeResult, connected, spread
from gait.documents import load_json
from gait.errors import GaitError, os_errors
from gait.io import open_log
from gait.io.atomic import atomic_path
from gait.io.storage import Storage, is_remote, location
from gait.methods import METHODS
from gait.report.method_table import NOTE, WIDE, method_table
from gait.rows import Row

MOST_LISTED = 200
"""Logs that have lines of their own in the report; the manifest has all."""


@dataclass(frozen=True)
class EvalPlan:
    """What is run on every log."""

    methods: tuple[str, ...]
    """Names of `METHODS`, or Python files."""
    start: str
    max_gap: float

    def as_dict(self) -> dict[str, Any]:
        """The first line of a manifest."""
        return {"version": __version__, "methods": list(self.methods), "start": self.start, "max_gap": self.max_gap}


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
    resumed: int = 0
    """Logs that were evaluated before."""
    nodes: Counter[str] = field(default_factory=Counter)
    """Logs evaluated in this call by node."""


def evaluate_log(plan: EvalPlan, parcel: Parcel, name: str, path: str) -> dict[str, Any]:
    """All methods on one log, as a line of the manifest. Any error is a GaitError: other logs are none the worse."""
    here = parcel.open() if parcel.files else Path()
    methods = [str(here / method) if method in parcel.files else method for method in plan.methods]
    try:
        log = open_log(path)
        study = walk_study({name: log}, methods, start=plan.start, max_gap=plan.max_gap, traces=False)
    except GaitError:
        raise
    except Exception as error:
        raise GaitError(f"{type(error).__name__}: {error}") from None
    return {"figures": found_figures(study)[name], "left_out": dict(study.left_out), "fact": described(log)}


class Manifest:
    """A file with a line for each log that was evaluated; the first line has the settings."""

    def __init__(self, path: Path, plan: EvalPlan) -> None:
        """Open it, or begin one; one of another evaluation is refused."""
        self.path, self.lines = path, dict[str, dict[str, Any]]()
        first, *rest = self._read() or [plan.as_dict()]
        if first != plan.as_dict():
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
    """Tells whether a file is the one that was evaluated: size and time, or the tag that a store gives it."""
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

    A log that cannot be read or judged is entered as such, and the others go on. Logs that the manifest has are not
    run again, unless they failed or their file is another one.

    Args:
        logs: paths or URLs that all nodes see, by name.
        plan: what to run.
        manifest: the file with what is done; made if it is missing.
        address: of the cluster; see `connected`.
        processors: of the cluster that is started where none runs.
        progress: called with how many of how many are done, and a note.
    """
    parcel, names = Parcel(), list[str]()
    for method in plan.methods:
        names.append(parcel.add("methods", [Path(method)]) if method.endswith(".py") else method)
    on_nodes = EvalPlan(tuple(names), plan.start, plan.max_gap)
    book, nodes = Manifest(manifest, plan), Counter[str]()
    paths = {name: location(path) for name, path in logs.items()}
    paths = {name: path if is_remote(path) else str(Path(path).absolute()) for name, path in paths.items()}
    prints = {name: fingerprint(path) for name, path in paths.items()}
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

    progress(len(done), len(paths), "")
    with connected(address, processors) as ray:
        jobs = ((name, (on_nodes, ray.put(parcel) if parcel.files else parcel, name, paths[name])) for name in missing)
        spread(ray, evaluate_log, jobs, take)
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
    return Evaluated(found, failed, left_out, {name: line["fact"] for name, line in good.items()}, resumed, nodes)


def result_notes(result: Evaluated) -> list[str]:
    """What is missing: methods, and the first logs that failed."""
    notes = [f"left out {method}: {why}" for method, why in result.left_out.items()]
    notes += [f"failed {name}: {why}" for name, why in list(result.failed.items())[:5]]
    return notes + ([f"and {len(result.failed) - 5} more logs failed"] if len(result.failed) > 5 else [])


def write_eval_report(result: Evaluated, path: Path, title: str, settings: Mapping[str, str]) -> None:
    """The tables of a local evaluation, without plots: those of a log are in `gait eval LOG`."""
    from gait.report.describe import installation
    from gait.report.html import write_report

    count, means = len(result.found), mean_figures(result.found)
    listed = {name: result.found[name] for name in list(result.found)[:MOST_LISTED]}
    tables = [method_table(means, WIDE, note=f"{NOTE} Mean (standard deviation) over {count} logs.")]
    tables += [log_table(listed)] if 1 < count <= MOST_LISTED else []
    said = [f"{len(means)} methods on {count} logs, {len(result.failed)} logs failed.", *result_notes(result)]
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
