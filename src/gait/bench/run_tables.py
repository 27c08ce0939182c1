"""`gait bench tables`: the whole benchmark, from the test set to the report, in one folder.

results.json    every number, by name; two runs write the same file
tables.md       Tables I to IV and more, beside the paper's figures; also tables.csv and tables.tex
figures/        PNG and SVG
report.html     all of it in one page
timing.json     microseconds a step: those differ from run to run
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gait.bench.courses import FOLDERS, UNSEEN, Course, Progress, courses_of, make_test_set
from gait.bench.paper_tables import OURS, Difference, bench_tables, difference_table, differences
from gait.bench.study import Seeds, Study, run_study
from gait.errors import GaitError
from gait.io.atomic import atomic_path
from gait.methods import BUILT_IN
from gait.report import table as render
from gait.report.table import Table
from gait.rows import Row, rows_to_json


@dataclass(frozen=True, eq=False)
class Bench:
    """A finished benchmark."""

    study: Study
    tables: tuple[Table, ...]
    differences: tuple[Difference, ...]
    fingerprint: str
    """SHA-256 over the recordings of the test set."""
    courses: tuple[Course, ...] = ()
    """Of the test set."""

    def rows(self) -> list[Row]:
        """Every number that does not depend on the machine's speed."""
        rows = [row for table in self.tables for row in table.rows()]
        for one in self.differences:
            values = {"": one.difference, ".low": one.low, ".high": one.high}
            rows += [Row(f"difference.{one.course}.{one.rival}{end}", value, "m/s") for end, value in values.items()]
        return [*rows, Row("test_set_sha256", self.fingerprint, "-")]

    def timing(self) -> list[Row]:
        """Microseconds a sample took inside `run`, median over walks."""
        return [Row(f"{method}.run_us", self.study.step_us(method), "us") for method in self.study.methods]


def run_bench(
    quick: bool = False,
    methods: Sequence[str] = BUILT_IN,
    folder: Path | None = None,
    workers: int = 2,
    progress: Progress = lambda what, share: None,
    twin: int = 2,
    policy: str = "",
) -> Bench:
    """Make the test set if needed, run every method on it, and fill the tables.

    Args:
        quick: a small set and one seed each, to see that everything works.
        methods: names of `METHODS`.
        folder: where the recordings of the test set are kept; None takes that of the version in `FOLDERS`.
        workers: processes for simulation, threads for estimation.
        progress: called with the progress in words.
        twin: version of the test set.
        policy: ONNX file of the Go1 policy, for the course of version 2 that it walks.
    """
    if OURS not in methods:
        raise GaitError(f"all methods are compared with {OURS}: add it to the methods")
    courses = courses_of(twin, policy, quick)
    walks, fingerprint = make_test_set(courses, folder or FOLDERS[twin], workers, progress)
    seeds: Seeds = "tabled" if quick else "all"
    study = run_study(walks, methods, seeds=seeds, workers=workers, progress=progress)
    return Bench(study, bench_tables(study), tuple(differences(study, OURS)), fingerprint, courses)


def verdict(bench: Bench) -> list[str]:
    """The results in a few sentences."""
    lines = []
    learned = [method for method in ("gait", "gait-flat", "nmn") if method in bench.study.methods]
    for line in (line for table in bench.tables if table.name == "table2" for line in table.lines):
        if line.keys[0] in UNSEEN and len(learned) == 3:
            errors = {method: line.cells[method].mean for method in learned}
            order = sorted(learned, key=errors.__getitem__)
            agrees = "as in the paper" if order == learned else "not the paper's order"
            lines.append(f"{line.keys[0]}, never trained: {' < '.join(order)} ({agrees})")
    for rival in bench.study.methods:
        theirs = [one for one in bench.differences if one.rival == rival]
        if theirs:
            clear = {how: [one.course for one in theirs if one.clear == how] for how in ("better", "worse", "")}
            said = [f"{how} on {', '.join(clear[how])}" for how in ("better", "worse") if clear[how]]
            said += ["no clear difference elsewhere"] if clear[""] else []
            lines.append(f"{OURS} against {rival}: {'; '.join(said)}")
    return lines


def write_bench(bench: Bench, out: Path, settings: Mapping[str, str], latency: Sequence[Row] = ()) -> Path:
    """Write tables, figures and report to a folder; returns the report.

    Args:
        bench: the results.
        out: the folder, which must exist.
        settings: of the command, by name.
        latency: rows of `gait bench latency`, to be shown be
    """
    from gait.bench.paper_charts import paper_charts
    from gait.report.describe import installation
    from gait.report.draw import draw
    from gait.report.html import write_report

    tables = [*bench.tables, difference_table(bench.differences)]
    charts = paper_charts(bench.study, latency)
    config = {**settings, "courses": [asdict(course) for course in bench.courses]}
    pages = [f"## {render.title(one)}\n\n{render.markdown(one)}\n\n{one.note}" for one in tables]
    texts = {
        "results.json": rows_to_json(bench.rows()) + "\n",
        "timing.json": rows_to_json([*bench.timing(), *latency]) + "\n",
        "config.json": json.dumps(config, indent=2) + "\n",
        "tables.md": "\n\n".join(pages),
        "tables.csv": "\n".join(render.csv(one) for one in tables),
        "tables.tex": "\n\n".join(f"% {render.title(one)}\n{render.latex(one)}" for one in tables) + "\n",
    }
    for name, text in texts.items():
        with atomic_path(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    for chart in charts:
        draw(chart, out / "figures")
    facts = [
        *(Row(name, value, "-") for name, value in settings.items()),
        Row("test_set_sha256", bench.fingerprint, "-"),
        *(Row(f"seeds.{method}", bench.study.seeds(method), "-") for method in bench.study.methods),
        *installation(),
    ]
    first = (
        "Estimators of body velocity on walks of a simulated Go1 whose links, encoders, motors and IMU differ from the"
        " description that they use."
    )
    summary = "\n".join([first, *verdict(bench)])
    path = out / "report.html"
    write_report(path, "GAIT benchmark", summary, tables, charts, facts)
    return path
