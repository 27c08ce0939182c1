"""The report: one file, offline, escaped, sortable, interactive, and readable on a phone; tried in a real browser."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import needs
import numpy as np
import pytest
from browser import Browser

from gait.errors import GaitError
from gait.report.chart import Chart, Panel, Series, Shade
from gait.report.html import report, write_report
from gait.report.plots import plot
from gait.report.table import Cell, Table, TableLine
from gait.rows import Row

EVIL = '<script>alert("x")</script> & <b>'
T = np.linspace(0.0, 10.0, 200)
METHODS = ("gait", "nmn", "iekf")


def make_table() -> Table:
    def line(name: str, *means: float) -> TableLine:
        cells = {m: Cell(mean, 0.01, 0.5) for m, mean in zip(METHODS, means, strict=False)}
        return TableLine((name, "full"), cells, "m/s")

    lines = (line("rubber", 0.3, 0.1, 0.2), line("debris", 0.15, 0.9, 0.25), line("slippery", 0.05, 0.2))
    return Table("table1", f"Table I {EVIL}", f"Note {EVIL}", ("terrain", "split"), METHODS, lines)


def make_charts() -> list[Chart]:
    def lines(shift: float) -> tuple[Series, ...]:
        truth = Series("truth", T, np.sin(T))
        some = [
            Series(m, T, np.sin(T) + shift * i, spread=np.full(200, 0.1) if i == 0 else None)
            for i, m in enumerate(METHODS)
        ]
        return (truth, *some)

    flight = Shade("flight", T, np.sin(3 * T) > 0.5)
    over_time = Chart(
        "velocity",
        f"Velocity {EVIL}",
        f"Caption {EVIL}",
        tuple(
            Panel(lines(0.1 * k), "time (s)", f"{axis} (m/s)", (flight,), ((5.0, f"change {EVIL}"),))
            for k, axis in enumerate(("forward", "left", "up"))
        ),
    )
    ways = tuple(Series(m, np.cos(T) * (1 + 0.1 * i), np.sin(T)) for i, m in enumerate(("truth", *METHODS)))
    above = Chart("above", "From above", "", (Panel(ways, "x (m)", "y (m)", equal=True, title="rubber"),) * 2, 2, False)
    bars = Series("time", METHODS, np.array([20.0, 80.0, 40.0]), "bar")
    x = np.geomspace(1e-3, 1.0, 9)
    log = Panel(
        (Series("gait", x, 2 * x), Series("honest", x, x, dashed=True)),
        "std (m/s)",
        "rms (m/s)",
        log_x=True,
        log_y=True,
    )
    return [
        over_time,
        above,
        Chart("bars", "Bars", "", (Panel((bars,), "", "a step (us)"),)),
        Chart("log", "Log", "", (log,)),
    ]


def make_report(**more: object) -> str:
    facts = [Row("command", EVIL, "-"), Row("max_gap", 0.1, "s")]
    parts: dict[str, object] = {"tables": [make_table()], "charts": make_charts(), "facts": facts}
    return report(f"Title {EVIL}", f"Summary {EVIL}", **{**parts, **more})  # type: ignore[arg-type]


class Reader(HTMLParser):
    """Tags, resources and the text that is neither script nor style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.resources: list[str] = []
        self.ids: list[str] = []
        self.words = ""
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in = tag
        self.resources += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        if self._in not in ("script", "style"):
            self.words += data


# The file


def test_the_file_asks_for_nothing_but_itself() -> None:
    text = make_report()
    found = Reader(text)
    assert found.resources and all(one.startswith("#") or one == "data:," for one in found.resources)
    own = text.replace(re.search(r"<script>/\*\*.*?</script>", text, re.S)[0], "")  # type: ignore[index]
    assert "http://" not in own and "https://" not in own and "@import" not in own and "url(" not in own
    assert "default-src 'none'" in text, "and the browser is told not to let it"


def test_all_words_are_escaped_and_all_sections_are_there() -> None:
    text = make_report()
    found = Reader(text)
    assert found.tags.count("script") == 3 and 'alert("x")</script>' not in text
    for words in ("Title", "Summary", "Table I", "Note", "Velocity", "Caption"):
        assert f"{words} {EVIL}" in found.words, words
    assert {"table-table1", "figure-velocity", "figure-above", "figure-bars", "figure-log", "made"} <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)
    assert {one[1:] for one in found.resources if one.startswith("#")} <= set(found.ids), "contents lead somewhere"


def test_a_table_marks_best_and_second_and_shows_the_paper() -> None:
    row = make_report().split("<tbody>")[1].split("</tr>")[0]
    assert re.findall(r"<(b|u)>([0-9.]+)<", row) == [("b", "0.100"), ("u", "0.200")]
    assert (
        row.count("(0.010)") == 3
        and "+200\N{NO-BREAK SPACE}%" in row
        and row.count('<span class="paper">paper 0.500') == 3
    )


def test_plotly_comes_along_only_where_there_are_charts() -> None:
    assert len(make_report(charts=[])) < 50_000 < 4_000_000 < len(make_report())


def test_equal_input_gives_an_equal_file(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report(tmp_path / name, "t", "s", [make_table()], make_charts(), [Row("seed", 1, "-")])
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    with pytest.raises(GaitError, match="there is no folder"):
        write_report(tmp_path / "none/a.html", "t", "s", [], [], [])
    assert len(list(tmp_path.iterdir())) == 2


# Plots as data


def test_plots_are_strict_json_and_numbers_are_in_single_precision() -> None:
    text = json.dumps([plot(chart) for chart in make_charts()], allow_nan=False)
    assert {array["dtype"] for array in arrays(json.loads(text))} == {"f4"}
    y = np.array([1.23456789, -0.000123456789, np.nan, 1234567.0])
    chart = Chart("c", "c", "", (Panel((Series("a", np.arange(4.0), y),), "x", "y"),))
    np.testing.assert_array_equal(decoded(plot(chart)["data"][0]["y"]), y.astype(np.float32))


def arrays(tree: object) -> Iterator[dict[str, str]]:
    """Every typed array in a plot."""
    if isinstance(tree, dict) and "bdata" in tree:
        yield tree
    elif isinstance(tree, dict | list):
        for one in tree.values() if isinstance(tree, dict) else tree:
            yield from arrays(one)


def decoded(array: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])


def test_one_name_in_the_legend_stands_for_all_panels() -> None:
    made = plot(make_charts()[0])
    for name in ("truth", *METHODS, "flight"):
        mine = [one for one in (*made["data"], *made["wide"]["shapes"]) if one.get("name") == name]
        assert len(mine) >= 3 and len({trace["legendgroup"] for trace in mine}) == 1
        assert sum(trace["showlegend"] for trace in mine) == 1


def test_panels_zoom_together_only_if_they_share_their_axis() -> None:
    chart = make_charts()[0]
    axes = [plot(chart)["wide"][name].get("matches") for name in ("xaxis", "xaxis2", "xaxis3")]
    assert axes == [None, "x", "x"]
    apart = plot(replace(chart, share_x=False))["wide"]
    assert "matches" not in apart["xaxis2"]
    assert plot(make_charts()[1])["wide"]["yaxis2"]["scaleanchor"] == "x2"


def test_shades_last_until_the_first_sample_outside() -> None:
    shade = Shade("on", np.arange(6.0), np.array([False, True, True, False, False, True]))
    chart = Chart("c", "c", "", (Panel((Series("a", np.arange(6.0), np.ones(6)),), "x", "y", (shade,)),))
    assert [(box["x0"], box["x1"]) for box in plot(chart)["narrow"]["shapes"]] == [(1, 3), (5, 5)]


def test_a_band_has_a_hole_where_the_line_has() -> None:
    y = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    chart = Chart("c", "c", "", (Panel((Series("a", np.arange(5.0), y, spread=np.ones(5)),), "x", "y"),))
    band, nan = plot(chart)["data"][0], np.nan
    np.testing.assert_array_equal(decoded(band["x"]), [0, 1, 1, 0, nan, 3, 4, 4, 3, nan])
    np.testing.assert_array_equal(decoded(band["y"]), [2, 3, 1, 0, nan, 5, 6, 4, 3, nan])


# In a browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(make_report(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def show(browser: Browser, page: Path, width: int = 1200, dark: bool = False) -> None:
    browser.resize(width, 900)
    browser.colours(dark)
    browser.open(page)
    browser.scroll_through()
    browser.until("[...document.querySelectorAll('.plot')].every((box) => box.querySelector('.main-svg .ytick'))")


@needs.chromium
def test_it_opens_without_errors_or_requests_and_draws_every_plot(browser: Browser, page: Path) -> None:
    browser.requests.clear()
    show(browser, page)
    assert browser.eval("document.querySelectorAll('.plot .main-svg').length") >= 4
    assert browser.eval("document.querySelectorAll('.scatterlayer .js-line, .barlayer .point').length") >= 15
    assert browser.eval("document.title") == f"Title {EVIL}"
    buttons = set(browser.eval("[...document.querySelectorAll('.modebar-btn')].map((one) => one.dataset.title)"))
    assert buttons <= {"Download plot", "Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes"}, (
        "none may send the data away"
    )
    assert browser.problems == []
    assert [one for one in browser.requests if not one.startswith(("file:", "data:", "blob:"))] == []
    assert browser.eval("document.documentElement.scrollWidth - innerWidth") <= 0


@needs.chromium
def test_a_click_on_a_head_sorts(browser: Browser, page: Path) -> None:
    show(browser, page)

    def click(column: int) -> list[str]:
        browser.eval(f"document.querySelectorAll('thead button')[{column}].click()")
        return browser.eval(
            "[...document.querySelectorAll('table.sortable tbody tr')].map((r) => r.cells[0].innerText)"
        )

    original = ["rubber", "debris", "slippery"]
    assert click(0) == sorted(original)
    assert click(2) == ["slippery", "debris", "rubber"] and click(2) == ["rubber", "debris", "slippery"]
    assert click(2) == original
    assert click(4) == ["rubber", "debris", "slippery"], "what has no number comes last"
    assert click(4) == ["debris", "rubber", "slippery"], "whichever way"
    assert browser.eval("document.querySelectorAll('thead th')[4].getAttribute('aria-sort')") == "descending"


@needs.chromium
def test_a_click_in_the_legend_hides_a_method_in_all_panels_and_zoom_is_shared(browser: Browser, page: Path) -> None:
    show(browser, page)
    box = "document.getElementById('plot-velocity')"
    browser.eval(f"{box}.scrollIntoView({{behavior: 'instant'}})")
    spot = browser.eval(
        f"(() => {{ const e = [...{box}.querySelectorAll('.legend .traces')].find((t) => t.textContent === 'nmn');"
        " const r = e.querySelector('.legendtoggle').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
    )
    browser.click(*spot)
    hidden = f"{box}._fullData.filter((t) => t.visible === 'legendonly').map((t) => t.legendgroup)"
    browser.until(f"{hidden}.length > 0")
    assert browser.eval(hidden) == ["nmn"] * 3
    browser.eval(f"Plotly.relayout({box}, {{'xaxis.range': [2, 3]}}).then(() => 0)")
    assert browser.eval(f"{box}._fullLayout.xaxis3.range") == [2, 3]
    assert browser.problems == []


@needs.chromium
@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(browser: Browser, page: Path, dark: bool) -> None:
    show(browser, page, 390, dark)
    assert browser.eval("innerWidth") == 390
    assert browser.eval("document.documentElement.scrollWidth") <= 390
    box = "document.getElementById('plot-velocity')"
    assert browser.eval(f"{box}.getBoundingClientRect().right") <= 390
    lowest = f"Math.max(...[...{box}.querySelectorAll('.x3tick')].map((t) => t.getBoundingClientRect().bottom))"
    legend = f"{box}.querySelector('.legend').getBoundingClientRect()"
    assert browser.eval(f"{legend}.top >= {lowest}"), "names stand below the panels, on nothing else"
    assert browser.eval(f"{legend}.bottom <= {box}.getBoundingClientRect().bottom + 1")
    ink = browser.eval("getComputedStyle(document.body).color")
    assert sum(map(int, re.findall(r"\d+", ink))) > 600 if dark else sum(map(int, re.findall(r"\d+", ink))) < 150
    assert browser.eval(f"getComputedStyle({box}.querySelector('.ytick text')).fill") == ink
    truth = browser.eval(f"{box}._fullData.find((t) => t.name === 'truth').line.color")
    assert truth == browser.eval("getComputedStyle(document.documentElement).getPropertyValue('--ink')")
    assert browser.problems == []


@needs.chromium
def test_the_reader_may_turn_the_lights_off_and_the_window_round(browser: Browser, page: Path) -> None:
    show(browser, page)
    box = "document.getElementById('plot-above')"
    light = browser.eval(f"getComputedStyle({box}.querySelector('.ytick text')).fill")
    browser.colours(True)
    browser.until(f"getComputedStyle({box}.querySelector('.ytick text')).fill !== '{light}'")
    wide = browser.eval(f"{box}._fullLayout.yaxis.domain")
    browser.resize(390, 900)
    browser.until(f"{box}._fullLayout.yaxis.domain[0] !== {wide[0]}")
    assert browser.eval("document.documentElement.scrollWidth") <= 390
    assert browser.problems == []
