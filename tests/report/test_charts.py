"""Charts: what is in them, that long lines keep their peaks, and that drawing them gives the same files each time."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import needs
import numpy as np
import pytest

from gait import Estimator, GaitError, Log, open_log
from gait.bench.courses import TERRAINS, Walk
from gait.bench.paper_charts import paper_charts, pooled
from gait.bench.scores import SLIP_EDGES, STD_EDGES, Ground, VelocitySums, WalkScore, velocity_sums
from gait.bench.study import Study
from gait.bench.walks import study_charts
from gait.errors import install_hint
from gait.report.chart import COLOURS, MOST_POINTS, Chart, Panel, Series, Shade, colours_of, line, path, thin, window
from gait.report.draw import DPI, draw
from gait.report.walk_charts import Trace, running_rms, walk_charts
from gait.rows import Row
from gait.samples import SAMPLE

RATE, SECONDS = 100, 8.0
TROT = "trot on all terrains"
LEGS = ("FR", "FL", "RR", "RL")
PAPER = ["trot-to-bound", "attention-legs", "attention-pronk", "from-above", "slip-error", "calibration", "latency"]


def make_log(*, bare: bool = False, yaw: float = 0.0, seconds: float = SECONDS) -> Log:
    """A body on a straight way, turned by `yaw`; `bare` knows nothing of its feet."""
    t = 7.0 + np.arange(round(seconds * RATE)) / RATE
    count, since = len(t), t - t[0]
    heading = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    phase = (2.5 * since[:, None] + np.array([0.0, 0.5, 0.5, 0.0])) % 1.0  # (N, L)
    contact = (phase < 0.4) & (since[:, None] % 2.0 > 0.2)
    speed = np.where(contact, np.abs(np.sin(since))[:, None], 2.0)
    feet = {"contact": contact, "foot_vel_w": speed[:, :, None] * np.array([1.0, 0.0, 0.0])}
    return Log(
        t=t,
        gyro=np.zeros((count, 3)),
        accel=np.tile([0.0, 0.0, 9.81], (count, 1)),
        q=np.zeros((count, 12)),
        dq=np.zeros((count, 12)),
        pos_w=3.0 + 0.5 * since[:, None] * heading,
        quat_wb_wxyz=np.tile([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)], (count, 1)),
        vel_w=np.tile(0.5 * heading, (count, 1)),
        **({} if bare else feet),
    )


def make_trace(log: Log, method: str, rank: int) -> Trace:
    """Off by 0.1, 0.2, ... m/s forward; a network says twice that, so that it can be told from its filter."""
    learned = method != "iekf"
    off = 0.1 * (rank + 1) * np.array([1.0, 0.0, 0.0])
    since = log.t - log.t[0]
    attention = np.stack([np.full(len(log), 0.01 * i) + 0.001 * since for i in range(6)], axis=1)
    std = np.full((len(log), 3), 0.05)
    return Trace(
        t=since,
        vel_b=log.vel_b + off,
        pos_w=log.need("pos_w") + since[:, None] * off,
        std=std,
        predicted=(log.vel_b + 2.0 * off, std * (1.0 + rank)) if learned else None,
        attention=attention if method == "gait" else None,
        leg_std=attention[:, 2:] + 0.1 if method == "gait-legs" else None,
    )


def make_study(
    courses: tuple[str, ...] = ("rubber", "slippery", "bound", "pronk", "trot-to-bound"),
    methods: tuple[str, ...] = ("gait", "nmn", "iekf"),
    log: Log | None = None,
) -> Study:
    log = log or make_log()
    ground = Ground.of(log, np.ones((len(log), 4), dtype=bool))
    walks = tuple(Walk(course, 0, log, 0) for course in courses)
    traces = {(walk.name, name): make_trace(log, name, i) for walk in walks for i, name in enumerate(methods)}

    def judged(velocity: np.ndarray, std: np.ndarray) -> VelocitySums:
        return velocity_sums(log.t, velocity - log.vel_b, std, ground)

    scores = [
        WalkScore(
            course=walk.course,
            run=0,
            method=name,
            seed=0,
            fused=judged(trace.vel_b, trace.std),
            network=None if trace.predicted is None else judged(*trace.predicted),
            errors={},
            nees=3.0,
            step_us=10.0 * (i + 1) + len(walk.course),
        )
        for i, name in enumerate(methods)
        for walk in walks
        for trace in [traces[walk.name, name]]
    ]
    return Study(walks, {walk.name: ground for walk in walks}, tuple(scores), traces=traces)


@pytest.fixture(scope="module")
def study() -> Study:
    return make_study()


def by_name(charts: list[Chart]) -> dict[str, Chart]:
    assert len({chart.name for chart in charts}) == len(charts)
    return {chart.name: chart for chart in charts}


def series(panel: Panel) -> dict[str, Series]:
    assert len({one.label for one in panel.series}) == len(panel.series)
    return {one.label: one for one in panel.series}


def check_shapes(charts: list[Chart]) -> None:
    for chart in charts:
        assert chart.caption.endswith(".") and chart.title
        for panel in chart.panels:
            assert panel.series and panel.y_label
            for one in panel.series:
                assert len(one.x) == len(one.y) > 0, (chart.name, one.label)
                assert one.spread is None or len(one.spread) == len(one.y)
            for dark in panel.shades:
                assert len(dark.x) == len(dark.on) and (np.diff(dark.x) > 0).all()


# --- the figures of the paper --------------------------------------------------------------------------------------


def test_a_full_study_gives_every_figure_of_the_paper(study: Study) -> None:
    charts = paper_charts(study)
    assert [chart.name for chart in charts] == PAPER
    check_shapes(charts)


def test_figures_whose_data_is_missing_are_left_out() -> None:
    assert [one.name for one in paper_charts(make_study(("rubber",)))] == [
        "from-above", "slip-error", "calibration", "latency",
    ]  # fmt: skip
    assert [one.name for one in paper_charts(make_study(("pronk",), ("iekf",)))] == ["calibration", "latency"]
    bare = paper_charts(make_study(log=make_log(bare=True)))
    assert [one.name for one in bare] == [name for name in PAPER if name != "slip-error"]
    check_shapes(bare)
    assert all(not panel.shades for chart in bare for panel in chart.panels)
    assert len(by_name(bare)["attention-pronk"].panels) == 2  # no speeds of feet
    assert paper_charts(Study((), {}, ())) == []


def test_the_change_of_gait_shows_networks_and_the_filter_of_others(study: Study) -> None:
    speed, error = by_name(paper_charts(study))["trot-to-bound"].panels
    lines = series(speed)
    assert list(lines) == ["truth", "gait", "nmn", "iekf"]
    means = {name: float(one.y.mean()) for name, one in lines.items()}
    assert means == pytest.approx({"truth": 0.5, "gait": 0.7, "nmn": 0.9, "iekf": 0.8})
    assert series(error)["nmn"].y == pytest.approx(0.4)
    (begins, _), (ends, _) = speed.marks
    assert begins == pytest.approx(SECONDS / 2, abs=0.01) and ends - begins == pytest.approx(1.2)
    x = np.asarray(lines["gait"].x, dtype=float)
    assert x[0] < begins - 1.0 and x[-1] > ends + 1.0 and x[-1] - x[0] == pytest.approx(4.0, abs=0.02)
    assert np.diff(x) == pytest.approx(1.0 / RATE)  # every sample


def test_the_attention_on_a_leg_stands_before_the_contacts_of_that_leg(study: Study) -> None:
    """Also where the log names its legs in another order than the robot."""
    swapped = make_log().reorder("go1").replace(leg_names=("RL", "FR", "FL", "RR"))
    for one in (study, make_study(log=swapped)):
        log = one.walks[0].log
        assert log.contact is not None
        panels = by_name(paper_charts(one))["attention-legs"].panels
        assert [panel.y_label.split()[0] for panel in panels] == list(LEGS)
        for i, (leg, panel) in enumerate(zip(LEGS, panels, strict=True)):
            (attention,), (dark,) = panel.series, panel.shades
            assert attention.y == pytest.approx(0.01 * (2 + i) + 0.001 * np.asarray(attention.x))
            truth = log.contact[:, log.leg_names.index(leg)]
            for t, is_on in zip(np.asarray(attention.x, dtype=float)[:-1], held(dark, attention.x)[:-1], strict=True):
                assert is_on == truth[round(t * RATE)]


def held(dark: Shade, x: object) -> np.ndarray:
    """Whether each place lies in a shaded stretch."""
    at = np.asarray(x, dtype=float)
    return np.any([(at >= a - 1e-9) & (at < b - 1e-9) for a, b in dark.intervals()], axis=0)


def test_flight_is_where_no_foot_stands(study: Study) -> None:
    attention, std, feet = by_name(paper_charts(study))["attention-pronk"].panels
    assert list(series(attention)) == ["accelerometer", "gyroscope"]
    assert series(attention)["accelerometer"].y.mean() > series(attention)["gyroscope"].y.mean()
    assert list(series(std)) == ["forward", "left", "up"] and len(feet.series) == 4
    log = study.walks[0].log
    assert log.contact is not None
    for panel in (attention, std, feet):
        (dark,) = panel.shades
        x = np.asarray(panel.series[0].x, dtype=float)
        rows = np.rint(x * RATE).astype(int)
        np.testing.assert_array_equal(held(dark, x)[:-1], ~log.contact.any(1)[rows][:-1])
    assert held(feet.shades[0], feet.series[0].x).any() and not held(feet.shades[0], feet.series[0].x).all()


def test_the_ways_from_above_have_equal_axes_and_one_panel_a_terrain(study: Study) -> None:
    chart = by_name(paper_charts(study))["from-above"]
    assert [panel.title for panel in chart.panels] == [name for name in TERRAINS if name in study.courses]
    assert all(panel.equal for panel in chart.panels) and chart.columns == 2
    lines = series(chart.panels[0])
    assert lines["truth"].x[-1] == pytest.approx(3.0 + 0.5 * (SECONDS - 1 / RATE))
    assert lines["nmn"].x[-1] == pytest.approx(3.0 + 0.7 * (SECONDS - 1 / RATE))  # the filter's
    assert (lines["start"].x[0], lines["start"].y[0]) == (3.0, 3.0)


def test_slip_and_calibration_are_pooled_over_walks(study: Study) -> None:
    charts = by_name(paper_charts(study))
    error, share = charts["slip-error"].panels
    assert len(error.series[0].x) == len(SLIP_EDGES)
    seen = np.isfinite(series(error)["nmn"].y)
    assert seen.any() and series(error)["nmn"].y[seen] == pytest.approx(0.4)
    assert share.series[0].y.sum() == pytest.approx(100.0)
    panels = {panel.title: panel for panel in charts["calibration"].panels}
    assert list(panels) == [f"{who}, {on}" for who in ("network", "filter") for on in (TROT, "unseen gaits")]
    found = series(panels["network, unseen gaits"])
    assert set(found) == {"gait", "nmn", "honest"}
    # An error of 0.4 m/s along one axis of three.
    assert found["nmn"].y == pytest.approx(0.4 / np.sqrt(3.0))
    where = np.searchsorted(STD_EDGES, 0.1)
    assert STD_EDGES[where - 1] < found["nmn"].x[0] < STD_EDGES[where]
    np.testing.assert_array_equal(found["honest"].x, found["honest"].y)
    assert "iekf" in series(panels[f"filter, {TROT}"])


def test_latency_is_the_median_and_rivals_come_with_their_rows(study: Study) -> None:
    (panel,) = by_name(paper_charts(study))["latency"].panels
    (bars,) = panel.series
    assert bars.x == ("gait", "nmn", "iekf")
    assert bars.y == pytest.approx([16.0, 26.0, 36.0])  # the median course has a name of six letters
    rows = [
        Row("gait.numba.step_us", 20.0, "us"), Row("gait.torch_eager.step_us", 2000.0, "us"),
        Row("gait.numba.kernel_us", 15.0, "us"), Row("gait.numba.paced_p50_us", 30.0, "us"),
        Row("gait.torch_eager.ratio", 100.0, "x"), Row("left_out", "nothing", "-"),
    ]  # fmt: skip
    _, rivals = by_name(paper_charts(study, rows))["latency"].panels
    assert rivals.series[0].x == ("gait, numba, inside the loop", "gait, numba", "gait, PyTorch") and rivals.log_y


# --- anybody's walks -----------------------------------------------------------------------------------------------


def test_any_walk_has_its_figures() -> None:
    charts = study_charts(make_study(("my walk",), ("gait", "iekf", "mine")))
    assert [one.name for one in charts] == ["velocity", "strides", "error", "from-above", "attention"]
    check_shapes(charts)
    velocity = by_name(charts)["velocity"]
    assert [panel.y_label for panel in velocity.panels] == ["forward (m/s)", "left (m/s)", "up (m/s)"]
    assert series(velocity.panels[0])["gait"].y == pytest.approx(0.6)  # the filter's, not the network's
    strides = series(by_name(charts)["strides"].panels[0])
    assert strides["gait"].spread == pytest.approx(0.1) and strides["mine"].spread is None
    length, rms, far = by_name(charts)["error"].panels
    assert series(length)["iekf"].y == pytest.approx(0.2) and series(rms)["iekf"].y == pytest.approx(0.2)
    assert far.series[0].y[0] == pytest.approx(0.0) and far.series[0].y[-1] == pytest.approx(0.8, abs=0.01)


def test_a_walk_without_contacts_feet_or_attention_has_the_other_figures() -> None:
    log = make_log(bare=True, seconds=1.0)
    charts = study_charts(make_study(("short",), ("nmn", "iekf"), log))
    assert [one.name for one in charts] == ["velocity", "error", "from-above"]
    check_shapes(charts)
    looked = by_name(study_charts(make_study(("short",), ("gait",), log)))["attention"]
    assert len(looked.panels) == 4 and not any(panel.shades for panel in looked.panels)


def test_several_logs_have_charts_with_their_names_in_the_titles() -> None:
    charts = study_charts(make_study(("my walk", "b", "c", "d", "e"), ("iekf",)))
    assert len(by_name(charts)) == 4 * 4, "of the first four logs"
    assert charts[0].title == "my walk: body velocity" and charts[4].title == "b: body velocity"


def test_without_ground_truth_there_are_bands_and_no_errors() -> None:
    log = make_log()
    blind = log.replace(pos_w=None, quat_wb_wxyz=None, vel_w=None, foot_vel_w=None)
    charts = walk_charts(blind, {"gait": make_trace(log, "gait", 0)})
    assert [one.name for one in charts] == ["velocity", "strides", "from-above", "std", "attention"]
    check_shapes(charts)
    velocity, std = by_name(charts)["velocity"].panels[0], by_name(charts)["std"].panels[0]
    assert list(series(velocity)) == ["gait"] and series(velocity)["gait"].spread == pytest.approx(0.1)
    assert list(series(std)) == ["forward", "left", "up"] and series(std)["up"].y == pytest.approx(0.05)


def test_the_standard_deviation_of_each_leg_has_its_contacts() -> None:
    study = make_study(("a",), ("iekf", "gait-legs"))
    legs = by_name(study_charts(study))["legs"]
    check_shapes([legs])
    log = study.walks[0].log.reorder(study.walks[0].log.robot)
    for i, (leg, panel) in enumerate(zip(log.leg_names, legs.panels, strict=True)):
        assert panel.y_label == f"{leg} (m/s)" and panel.log_y and len(panel.shades) == 1
        assert panel.series[0].y == pytest.approx(0.12 + 0.01 * i + 0.001 * np.asarray(panel.series[0].x))


def test_each_foot_has_contact_force_and_slip() -> None:
    """Of a run over the sample log: the feet carry its weight, and slip is that of feet that stand."""
    log = open_log(SAMPLE).slice(0.0, 8.0)
    estimator = Estimator.load("go1", feet=True, attention=True)
    trajectory, details = estimator.run_with_details(log)
    trace = Trace.of(log, trajectory, None, details)
    charts = by_name(walk_charts(log, {"gait-legs": trace}))
    check_shapes([charts[name] for name in ("contacts", "forces", "slip")])
    forces = sum(np.asarray(panel.series[0].y) for panel in charts["forces"].panels)
    assert charts["forces"].panels[0].y_label == "FR (N)" and charts["slip"].panels[3].y_label == "RL (m/s)"
    assert np.mean(forces) == pytest.approx(9.81 * estimator.robot.mass, rel=0.15)
    for chance, slip in zip(charts["contacts"].panels, charts["slip"].panels, strict=True):
        stands = np.asarray(chance.series[0].y) > 0.5
        assert (np.isfinite(slip.series[0].y) == stands).all() and 0.3 < stands.mean() < 0.8
        assert np.nanmedian(slip.series[0].y) < 0.15, "swing is faster than 1 m/s"
    blind = replace(trace, contact=np.full_like(details.slip, np.nan), foot_force=np.full_like(details.slip, np.nan))
    assert {"contacts", "forces"} & set(by_name(walk_charts(log, {"gait-legs": blind}))) == set(), "without torques"


def test_a_way_from_elsewhere_is_laid_on_the_true_one() -> None:
    """An estimate that started from gravity knows neither place nor heading."""
    log = make_log(yaw=0.7)
    study = make_study(("a",), ("iekf",), log)
    elsewhere = make_log().need("pos_w") - 3.0
    traces = {key: replace(trace, pos_w=elsewhere) for key, trace in study.traces.items()}
    charts = by_name(study_charts(replace(study, traces=traces)))
    lines = series(charts["from-above"].panels[0])
    assert lines["iekf"].x == pytest.approx(lines["truth"].x) and lines["iekf"].y == pytest.approx(lines["truth"].y)
    assert "aligned with the true path" in charts["from-above"].caption
    assert charts["error"].panels[2].series[0].y == pytest.approx(0.0, abs=1e-9)


# --- pieces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [10, MOST_POINTS, MOST_POINTS + 1, 123_457])
def test_thinning_keeps_peaks_and_ends(count: int) -> None:
    rng = np.random.default_rng(count)
    x, y = np.arange(float(count)), rng.normal(size=count)
    up, down = rng.choice(np.arange(1, count - 1), 2, replace=False)
    y[up], y[down] = 50.0, -60.0
    one = line("a", x, y, spread=2.0 * y)
    assert len(one.y) <= MOST_POINTS and (len(one.y) == count) == (count <= MOST_POINTS)
    assert (one.y.max(), one.y.min()) == (50.0, -60.0) and one.spread is not None and one.spread.max() == 100.0
    assert one.x[int(np.argmax(one.y))] == up and one.x[int(np.argmin(one.y))] == down
    assert (one.x[0], one.x[-1]) == (0.0, count - 1.0) and (np.diff(np.asarray(one.x, dtype=float)) > 0).all()


def test_thinning_follows_each_bend_of_a_way_and_breaks_where_it_is_unknown() -> None:
    angle = np.linspace(0.0, 40.0, 50_000)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points[30_000] = [9.0, 0.0]
    points[40_000] = [0.0, -9.0]
    one = path("a", points)
    assert len(one.y) <= MOST_POINTS and np.max(one.x) == 9.0 and one.y.min() == -9.0
    broken = np.sin(angle)
    broken[20_000:21_000] = np.nan
    kept = thin(broken)
    assert np.isnan(broken[kept]).any() and np.isfinite(broken[kept]).sum() > 3000


def test_shades_keep_every_stretch_however_short() -> None:
    rng = np.random.default_rng(3)
    on = rng.random(5000) < 0.02
    on[100], on[99], on[101] = True, False, False
    x = np.arange(5000.0)
    found = Shade("a", x, on).intervals()
    assert (100.0, 101.0) in found
    np.testing.assert_array_equal(held(Shade("a", x, on), x)[:-1], on[:-1])
    assert Shade("a", x, np.ones(5000, dtype=bool)).intervals() == [(0.0, 4999.0)]
    assert Shade("a", x, np.zeros(5000, dtype=bool)).intervals() == []


def test_small_helpers() -> None:
    t = np.arange(0.0, 10.0, 0.5)
    assert t[window(t, 4.0, 2.0)].tolist() == [4.0, 4.5, 5.0, 5.5, 6.0]
    assert t[window(t, 9.0, 2.0)].tolist() == [7.5, 8.0, 8.5, 9.0, 9.5]
    assert len(t[window(t, -3.0, 50.0)]) == len(t)
    rms, count = pooled([np.array([[8.0, 2.0], [0.0, 0.0]]), np.array([[8.0, 2.0], [0.0, 0.0]])])
    assert rms[0] == 2.0 and np.isnan(rms[1]) and count.tolist() == [4.0, 0.0]
    values = np.where(t < 5.0, 1.0, 3.0)
    smooth = running_rms(t, values, 2.0)
    assert smooth[0] == 1.0 and smooth[-1] == 3.0
    assert smooth[10] == pytest.approx(np.sqrt((2 * 1.0 + 3 * 9.0) / 5))  # of 4.0 to 6.0 s


# --- drawing -------------------------------------------------------------------------------------------------------


def test_charts_of_every_kind_are_drawn_in_two_formats_and_open(study: Study, tmp_path: Path) -> None:
    image = needs.package("PIL.Image")
    charts = by_name(paper_charts(study))
    for chart in (*(charts[name] for name in ("attention-legs", "from-above", "latency")), study_charts(study)[0]):
        png, svg = draw(chart, tmp_path / "new" / "folder")
        assert (png.name, svg.name) == (f"{chart.name}.png", f"{chart.name}.svg")
        with image.open(png) as opened:
            opened.load()
            assert 7.0 * DPI <= opened.width <= 9.0 * DPI and 2.0 * DPI <= opened.height <= 10.0 * DPI
            assert opened.info["dpi"][0] == pytest.approx(DPI, abs=0.1)
            colours = {colour for _, colour in opened.convert("RGB").getcolors(1 << 24)}
        # Lines are there, in their colours.
        assert any(tuple(bytes.fromhex(one[1:])) in colours for one in colours_of(chart).values()), chart.name
        text = svg.read_text(encoding="utf-8")
        assert text.startswith("<?xml") and chart.title.split(":")[-1] in text and "<dc:date>" not in text
    assert sorted(path.suffix for path in (tmp_path / "new/folder").iterdir()).count(".tmp") == 0


def test_drawing_twice_gives_the_same_bytes_whatever_the_users_style(study: Study, tmp_path: Path) -> None:
    matplotlib = needs.package("matplotlib")
    chart = by_name(paper_charts(study))["attention-pronk"]
    first = [file.read_bytes() for file in draw(chart, tmp_path / "a")]
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 20.0, "savefig.bbox": "tight"}):
        again = [file.read_bytes() for file in draw(chart, tmp_path / "b")]
        assert matplotlib.rcParams["font.size"] == 20.0
    assert first == again


def test_another_process_draws_the_same_bytes(tmp_path: Path) -> None:
    """Hashes of strings, on which names in an SVG might depend, differ between processes."""
    needs.package("matplotlib")
    code = (
        "import numpy as np\n"
        "from gait.report.chart import Chart, Panel, Series, Shade\n"
        "from gait.report.draw import draw\n"
        "x = np.arange(50.0)\n"
        "lines = (Series('gait', x, x % 7, spread=x / 50), Series('b', x[:5], x[:5], kind='points'))\n"
        "panel = Panel(lines, 'x', 'y', (Shade('s', x, x > 30),), ((9.0, 'm'),))\n"
        "draw(Chart('c', 't', 'd', (panel,)), {folder!r})\n"
    )
    exec(code.format(folder=str(tmp_path / "here")), {})
    command = [sys.executable, "-c", code.format(folder=str(tmp_path / "there"))]
    subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "4321"}, check=True)
    for name in ("c.png", "c.svg"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_lines_are_told_apart_without_colours_and_axes_show_all(study: Study) -> None:
    needs.package("matplotlib")
    from gait.report.draw import _figure, _looks

    chart = by_name(paper_charts(make_study(methods=tuple(COLOURS)[1:])))["trot-to-bound"]
    looks = [look for name, look in _looks(chart).items() if name != "truth"]
    assert len({str(look["linestyle"]) for look in looks}) == len({look["marker"] for look in looks}) == 6
    # Panels on one scale reach as far as the largest of them.
    small = Panel((Series("a", np.arange(50.0), np.linspace(0.0, 0.5, 50)),), "x", "y")
    large = Panel((Series("a", np.arange(50.0), np.linspace(0.0, 2.0, 50)),), "x", "y")
    for axes in _figure(Chart("c", "t", "d", (small, large), share_y=True)).axes:
        assert axes.get_ylim()[0] == 0.0 and axes.get_ylim()[1] >= 2.0


def test_no_legend_lies_on_the_data_and_no_labels_overlap(study: Study) -> None:
    """Boxes of legends and axes as they are on paper."""
    needs.package("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from gait.report.draw import _figure

    charts = by_name(paper_charts(study, [Row(f"gait.r{i}.step_us", 10.0**i, "us") for i in range(5)]))
    for chart in (charts[name] for name in ("trot-to-bound", "attention-pronk", "calibration", "latency")):
        figure = _figure(chart)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
        for legend in legends:
            box = legend.get_window_extent()
            assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes), chart.name
            assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1
        for axes in figure.axes:
            for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
                boxes = [one.get_window_extent() for one in labels if one.get_visible() and one.get_text()]
                assert not any(a.overlaps(b) for a, b in pairwise(boxes)), (chart.name, labels)


def test_a_missing_matplotlib_and_a_bad_folder_are_named(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart = paper_charts(study)[0]
    (tmp_path / "file").write_text("")
    if "matplotlib" in sys.modules:
        with pytest.raises(GaitError, match="cannot make the folder"):
            draw(chart, tmp_path / "file" / "below")
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(GaitError, match=re.escape(f"matplotlib is not installed: run `{install_hint('viz')}`")):
        draw(chart, tmp_path)
