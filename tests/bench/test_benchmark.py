"""The benchmark: its test set, its scores, its tables in every form, and its significance."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import pytest
from rich.console import Console

from gait import GaitError, Log
from gait.bench import run_tables as bench
from gait.bench.courses import COURSES, POLICY_COURSE, Walk, courses_of, make_test_set
from gait.bench.paper_tables import PAPER, calibration_table, cost_table, differences, merit_table, paper_tables
from gait.bench.scores import SLIP_EDGES, Ground, Moments, VelocitySums, WalkScore, velocity_sums
from gait.bench.study import Study, entrants, run_study
from gait.cli import main
from gait.commands.demo import SAMPLE
from gait.metrics import relative_error, velocity_rmse
from gait.report import table as render
from gait.report.table import Cell, Table, TableLine

RNG = np.random.default_rng(5)


# --- the test set --------------------------------------------------------------------------------------------------


def test_the_test_set_is_what_was_frozen() -> None:
    """Seeds that trainings, held-out walks, tuning and the sample use must stay out of it, and it must not change."""
    seeds = [course.seed for version in COURSES for course in courses_of(version, policy="go1.onnx")]
    assert not set(seeds) & {0, 777, 20261115, 31001, 71001}
    assert len(set(seeds)) == len(seeds) == 9 + 10
    for version, (first, sensors) in {1: (61001, "twin"), 2: (81001, "twin2")}.items():
        assert [(c.name, c.gait, c.terrain, c.seed, c.runs, c.seconds, c.sensors) for c in courses_of(version)] == [
            ("rubber", "trot", "rubber", first, 3, 60.0, sensors),
            ("slippery", "trot", "slippery", first + 1, 3, 60.0, sensors),
            ("debris", "trot", "debris", first + 2, 3, 60.0, sensors),
            ("circular", "trot", "circular", first + 3, 3, 60.0, sensors),
            ("trot", "trot", "rubber", first + 1000, 3, 60.0, sensors),
            ("bound", "bound", "rubber", first + 1001, 3, 60.0, sensors),
            ("pace", "pace", "rubber", first + 1002, 3, 60.0, sensors),
            ("pronk", "pronk", "rubber", first + 1003, 3, 60.0, sensors),
            ("trot-to-bound", "trot-to-bound", "rubber", first + 2000, 3, 60.0, sensors),
        ]
    assert courses_of(2, "go1.onnx")[-1] == replace(POLICY_COURSE, policy="go1.onnx") and POLICY_COURSE.seed == 84001
    with pytest.raises(GaitError, match="no twin 3: choose one of 1, 2"):
        courses_of(3)


def test_a_test_set_is_made_once(tmp_path: Path) -> None:
    quick = [replace(course, seconds=0.4) for course in courses_of(2, quick=True)]
    courses = [quick[0], quick[-1]]
    told: list[float] = []
    walks, digest = make_test_set(courses, tmp_path, workers=1, progress=lambda what, share: told.append(share))
    assert told == sorted(told) and told[-1] == 1.0
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    _, again = make_test_set(courses, tmp_path, workers=1)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == files and len(files) == 2
    assert again == digest
    assert [walk.name for walk in walks] == ["rubber-0", "trot-to-bound-0"]
    assert "twin2 sensors" in walks[0].log.source and "trot-to-bound" in walks[1].log.source


# --- scores --------------------------------------------------------------------------------------------------------


def test_moments_of_parts_are_those_of_the_whole() -> None:
    values = RNG.normal(size=1000)
    whole, parts = Moments.of(values), Moments.of(values[:300]) + Moments.of(values[300:])
    assert parts.count == whole.count and parts.mean == pytest.approx(values.mean())
    assert parts.std == pytest.approx(values.std()) and parts.rms == pytest.approx(np.sqrt(np.mean(values**2)))
    assert np.isnan(Moments.of(np.zeros(0)).mean) and np.isnan(Moments.of(np.zeros(0)).rms)


def ground_of(count: int, slipping: slice = slice(0, 0), speed: float = 0.0) -> Ground:
    mask, speeds = np.zeros(count, dtype=bool), np.zeros(count)
    mask[slipping], speeds[slipping] = True, speed
    return Ground(mask, speeds, np.zeros(count, dtype=bool))


def test_a_velocity_is_judged_in_every_way() -> None:
    t = np.arange(7500) / 500.0
    error = RNG.normal(scale=0.1, size=(7500, 3))
    error[2500:5000] *= 3.0
    std = np.full((7500, 3), 0.1)
    found = velocity_sums(t, error, std, ground_of(7500, slice(2500, 5000), 0.6))
    length = np.linalg.norm(error, axis=1)
    assert found.full.rms == pytest.approx(np.sqrt(np.mean(length**2)))
    assert found.slip.rms == pytest.approx(np.sqrt(np.mean(length[2500:5000] ** 2))) and found.slip.count == 2500
    assert found.segments == pytest.approx([np.mean(length[i : i + 2500] ** 2) for i in (0, 2500, 5000)])
    bins = found.by_slip
    fast = int(np.searchsorted(SLIP_EDGES, 0.6, side="right")) - 1
    assert bins[:, 1].sum() == 7500 and bins[fast, 1] == 2500 and bins[0, 1] == 5000
    assert bins[fast, 0] == pytest.approx(np.sum(length[2500:5000] ** 2))
    assert found.by_std[:, 1].sum() == 3 * 7500 and np.count_nonzero(found.by_std[:, 1]) == 1
    assert found.within[0] == pytest.approx((2 * 0.683 + 0.261) / 3, abs=0.02)
    assert found.within[1] == pytest.approx((2 * 0.954 + 0.495) / 3, abs=0.02)


def test_the_last_piece_takes_the_rest() -> None:
    t = np.arange(3400) / 500.0  # 6.8 s: one piece of 5 s, and too little for another
    found = velocity_sums(t, np.ones((3400, 3)), np.ones((3400, 3)), ground_of(3400))
    assert found.segments == pytest.approx([3.0])


# --- a study -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walks() -> list[Walk]:
    log = Log.load(SAMPLE)
    return [Walk("rubber", 0, log.slice(0.0, 6.0), 0), Walk("bound", 0, log.slice(6.0, 12.0), 2)]


@pytest.fixture(scope="module")
def study(walks: list[Walk]) -> Study:
    return run_study(walks, seeds="tabled", workers=1)


def test_scores_are_those_of_the_metrics(study: Study, walks: list[Walk]) -> None:
    from gait import Estimator

    trajectory = Estimator.load("go1", "gait").run(walks[0].log)
    (one,) = study.of("gait", "rubber")
    assert one.fused.full.rms == pytest.approx(velocity_rmse(trajectory, walks[0].log).rmse)
    assert one.errors["re_pos"].mean == pytest.approx(relative_error(trajectory, walks[0].log, 5.0).position.mean)
    assert one.network is not None and one.network.full.rms != one.fused.full.rms
    (other,) = study.of("iekf", "rubber")
    assert other.network is None and other.velocity is other.fused


def test_two_runs_and_two_threads_give_the_same_numbers(study: Study, walks: list[Walk]) -> None:
    again = run_study(walks, seeds="tabled", workers=2)
    ours, theirs = (
        [row for table in (*paper_tables(one), calibration_table(one)) for row in table.rows()]
        for one in (study, again)
    )
    assert ours == theirs and len(ours) > 100
    assert differences(study) == differences(again)


def test_traces_are_kept_for_figures(study: Study, walks: list[Walk]) -> None:
    assert set(study.traces) == {(walk.name, method) for walk in walks for method in study.methods}
    trace = study.traces["rubber-0", "gait"]
    assert trace.attention is not None and trace.attention.sum(1) == pytest.approx(1.0, abs=1e-5)
    assert study.traces["rubber-0", "iekf"].predicted is None


def test_every_seed_takes_part_and_the_median_is_shown() -> None:
    group = entrants(("gait", "iekf"))
    assert [one.weights for one in group] == ["gait-0", "gait-1", "gait-2", "iekf"]
    assert [one.weights for one in group if one.shown] == ["gait-0", "iekf"]
    with pytest.raises(GaitError, match="unknown method 'magic'"):
        entrants(("magic",))


def test_merits_tell_what_the_walks_are_like(study: Study, walks: list[Walk]) -> None:
    rows = {row.name: row.value for row in merit_table(study).rows()}
    assert rows["walks.bound.falls"] == 2 and rows["walks.rubber.runs"] == 1
    speed = np.linalg.norm(walks[0].log.vel_w[:, :2], axis=1).mean()
    assert rows["walks.rubber.speed"] == pytest.approx(speed) and rows["walks.rubber.length"] == pytest.approx(
        6.0, abs=0.01
    )


def test_costs_are_those_of_the_paper(study: Study) -> None:
    rows = {row.name: row.value for row in cost_table(study).rows()}
    assert rows["cost.gait.multiply_adds"] == 123_072
    assert rows["cost.self_attention.to_gait"] == pytest.approx(rows["cost.self_attention.to_gait.paper"], abs=0.05)
    assert rows["cost.nmn.to_gait"] == pytest.approx(rows["cost.nmn.to_gait.paper"], abs=0.05)


# --- tables by hand ------------------------------------------------------------------------------------------------


def score_of(method: str, course: str, run: int, seed: int, rms: float, network: float | None = None) -> WalkScore:
    def velocity(value: float) -> VelocitySums:
        moments = Moments(100, 100 * value, 100 * value**2)
        pieces = np.full(4, value**2)
        return VelocitySums(moments, moments, pieces, np.zeros((1, 2)), np.zeros((1, 2)), (0.68, 0.95))

    errors = {name: Moments(10, 10 * rms, 10 * rms**2) for name in ("ate_vel", "ate_rot", "re_pos", "re_vel", "re_rot")}
    own = None if network is None else velocity(network)
    return WalkScore(course, run, method, seed, velocity(rms), own, errors, 3.0, 1.0)


@pytest.fixture
def made(walks: list[Walk]) -> Study:
    """Two runs of one course: `gait` with two seeds, `iekf` with none."""
    scores = [
        score_of("gait", "rubber", run, seed, 0.1 + 0.01 * seed, 0.2 + 0.1 * run) for run in (0, 1) for seed in (0, 1)
    ]
    scores += [score_of("iekf", "rubber", run, 0, 0.4) for run in (0, 1)]
    other = (score_of("gait", "trot", 0, 0, 1.0, 0.3), score_of("gait", "bound", 0, 0, 1.0, 0.5))
    grounds = {name: ground_of(2) for name in ("rubber-0", "rubber-1", "trot-0", "bound-0")}
    log = walks[0].log
    courses = (Walk("rubber", 0, log, 0), Walk("rubber", 1, log, 0), Walk("trot", 0, log, 0), Walk("bound", 0, log, 0))
    scores += [replace(one, method=method) for one in other for method in ("gait", "iekf")]
    return Study(courses, grounds, tuple(scores), {"pace-pronk": other})


def test_entries_are_means_over_runs_and_seeds(made: Study) -> None:
    tables = {table.name: table for table in paper_tables(made)}
    rows = {row.name: row.value for table in tables.values() for row in table.rows()}
    assert rows["table1.rubber.full.gait"] == pytest.approx(0.25)
    assert rows["table1.rubber.full.gait.std"] == pytest.approx(np.std([0.2, 0.2, 0.3, 0.3], ddof=1))
    assert rows["table1.rubber.full.iekf.over_best"] == pytest.approx(0.4 / 0.25 - 1.0)
    assert rows["table1.rubber.full.gait.paper"] == 0.098
    assert rows["table1_filter.rubber.full.gait"] == pytest.approx(0.105)
    # Trot and bound count the same.
    assert rows["table3.pace-pronk.gait"] == pytest.approx(0.4) and rows["table3.pace-pronk.gait.paper"] == 0.222
    assert rows["table4.re_pos.rubber.gait"] == pytest.approx(0.105)


def test_the_mean_over_terrains_weighs_them_equally(walks: list[Walk]) -> None:
    long = score_of("gait", "rubber", 0, 0, 0.1)
    long.errors["re_pos"] = Moments(1000, 100.0, 10.0)
    scores = (long, score_of("gait", "debris", 0, 0, 0.3))
    pair = (Walk("rubber", 0, walks[0].log, 0), Walk("debris", 0, walks[0].log, 0))
    table = next(one for one in paper_tables(Study(pair, {}, scores)) if one.name == "table4")
    rows = {row.name: row.value for row in table.rows()}
    assert rows["table4.re_pos.mean.gait"] == pytest.approx(0.2)
    assert rows["table4.re_pos.mean.gait.std"] == pytest.approx(0.1)


def test_the_papers_figures_are_complete() -> None:
    assert {name: len(table) for name, table in PAPER.items()} == {
        "table1": 32,
        "table2": 16,
        "table3": 6,
        "table4": 125,
    }
    for metric in ("ate_vel", "re_pos"):
        for method in ("iekf", "iekf-sr", "nmn", "gait-flat", "gait"):
            four = [PAPER["table4"][f"{metric}.{t}.{method}"] for t in ("rubber", "slippery", "debris", "circular")]
            # Its means weigh terrains by their length, which is nearly the same: a misread digit would show.
            assert np.mean(four) == pytest.approx(PAPER["table4"][f"{metric}.mean.{method}"], rel=0.03)


TABLE = Table(
    "t",
    "A title",
    "A note.",
    ("where",),
    ("a", "b", "c"),
    (
        TableLine(("x_1",), {"a": Cell(0.2, 0.01), "b": Cell(0.1, paper=0.3), "c": Cell(0.4)}, "m/s"),
        TableLine(("y",), {"a": Cell(0.5), "c": Cell(12.0)}, "m/s"),
    ),
)


def test_markdown_marks_the_best_and_the_second() -> None:
    lines = render.markdown(TABLE).replace("\N{NO-BREAK SPACE}", " ").splitlines()
    assert lines[0] == "| where | a | b | c |" and lines[1] == "| --- | ---: | ---: | ---: |"
    assert lines[2] == "| x_1 | <u>0.200</u> (0.010) +100 % | **0.100** *0.300* | 0.400 +300 % |"
    assert lines[3] == "| y | **0.500** |  | <u>12.000</u> 24 x |"


def test_latex_is_whole_and_escaped() -> None:
    text = render.latex(TABLE)
    assert r"x\_1 & \underline{0.200} (0.010) +100~\% & \textbf{0.100} & 0.400 +300~\% \\" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    assert all(line.count("&") - line.count(r"\&") == 3 for line in text.splitlines() if line.endswith(r"\\"))


def test_csv_keeps_every_digit() -> None:
    rows = list(csv.DictReader(io.StringIO(render.csv(TABLE))))
    assert len(rows) == 5 and rows[0]["mean"] == "0.2" and rows[1]["paper"] == "0.3" and rows[1]["std"] == ""
    assert float(rows[2]["over_best"]) == pytest.approx(3.0) and rows[0]["where"] == "x_1"


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_every_number(width: int) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(render.terminal(TABLE))
    text = console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ")  # type: ignore[attr-defined]
    assert all(word in text for word in ("A title, m/s", "0.200", "0.100", "+100 %", "0.300", "12.000", "24 x"))


def test_best_may_be_within_a_column() -> None:
    table = replace(TABLE, best="column", lines=tuple(replace(line, unit="") for line in TABLE.lines), units={"a": "m"})
    assert [table.rank(line, "a") for line in table.lines] == [0, 1]
    assert table.over_best(table.lines[1], "a") == pytest.approx(1.5)
    assert render.header(table, "a") == "a, m" and render.header(table, "c") == "c"
    assert replace(table, best="").rank(table.lines[0], "a") is None


# --- significance --------------------------------------------------------------------------------------------------


def paired(gap: float, noise: float, pieces: int = 36) -> list[WalkScore]:
    rng = np.random.default_rng(3)
    hard = rng.uniform(0.01, 1.0, pieces)
    scores = []
    for method, shift in (("gait", 0.0), ("nmn", gap)):
        base = score_of(method, "rubber", 0, 0, 0.1, 0.1)
        square = hard + shift + noise * rng.normal(size=pieces)
        assert base.network is not None
        scores.append(replace(base, network=replace(base.network, segments=square)))
    return scores


def test_a_difference_is_clear_only_where_it_is(walks: list[Walk]) -> None:
    walk = (Walk("rubber", 0, walks[0].log, 0),)
    (real,) = differences(Study(walk, {}, tuple(paired(0.05, 0.001))))
    assert real.rival == "nmn" and real.clear and 0.0 < real.low < real.difference < real.high
    (chance,) = differences(Study(walk, {}, tuple(paired(0.0, 0.05))))
    assert not chance.clear and chance.low < 0.0 < chance.high
    (few,) = differences(Study(walk, {}, tuple(paired(0.05, 0.001, pieces=5))))
    assert not few.clear and few.difference > 0.0
    # What makes a piece hard is the same for both, and cancels: unpaired, 36 such pieces could not tell.
    assert real.high - real.low < 0.02


# --- in one folder -------------------------------------------------------------------------------------------------


def test_everything_is_written(study: Study, tmp_path: Path) -> None:
    needs.package("matplotlib")
    found = bench.Bench(study, tuple(paper_tables(study)), tuple(differences(study)), "ab12", courses_of(2))
    report = bench.write_bench(found, tmp_path, {"command": "gait bench tables"})
    assert report.read_text(encoding="utf-8").count("ab12") >= 1
    rows = {row["name"]: row["value"] for row in json.loads((tmp_path / "results.json").read_text())["rows"]}
    assert rows["table1.rubber.full.gait"] == pytest.approx(study.of("gait", "rubber")[0].velocity.full.rms)
    assert rows["test_set_sha256"] == "ab12" and "difference.bound.nmn.low" in rows
    assert not any("run_us" in name for name in rows), "numbers that differ from run to run belong to timing.json"
    assert json.loads((tmp_path / "config.json").read_text())["courses"][0]["seed"] == 81001
    assert "## Table I: velocity error by terrain, m/s" in (tmp_path / "tables.md").read_text()
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".svg"}
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_verdict_is_made_of_the_numbers(made: Study) -> None:
    found = bench.Bench(made, tuple(paper_tables(made)), tuple(differences(made)), "")
    lines = bench.verdict(found)
    assert any(line.startswith("gait against iekf: better on rubber") for line in lines)


def test_the_command_makes_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs.package("matplotlib")
    quick = courses_of(2, quick=True)
    few = (replace(quick[0], seconds=1.0), replace(quick[-1], seconds=2.0))
    monkeypatch.setattr(bench, "courses_of", lambda *chosen: few)
    words = ["bench", "tables", "--quick", "--methods", "gait", "iekf", "--workers", "1", "--json"]
    folders = ["--test-set", str(tmp_path / "walks"), "--out", str(tmp_path / "out")]
    assert main([*words, *folders]) == 0
    names = {row["name"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert {"table1.rubber.full.gait", "walks.trot-to-bound.speed", "difference.rubber.iekf"} <= names
    written = {path.name for path in (tmp_path / "out").iterdir()}
    tables = {f"tables.{ending}" for ending in ("md", "csv", "tex")}
    # The lock is removed when the process ends.
    assert written == {*tables, "results.json", "timing.json", "config.json", "figures", "report.html", ".lock"}
    assert main(["bench", "tables", "--quick", "--methods", "iekf", *folders]) == 1
    assert "all methods are compared with gait: add it" in capsys.readouterr().err
