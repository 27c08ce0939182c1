"""Charts as PNG and SVG, by matplotlib. The same chart gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gait.errors import GaitError, need_extra
from gait.io.atomic import atomic_path
from gait.report.chart import COLOURS, Chart, Panel, Series, Shade, colours_of

DPI = 150
FEW = 40
"""A line of so many points at most shows each of them."""
MANY = 2500
"""A line of more points is dense: it is drawn thinner, without dashes."""
STYLE: dict[str, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 10.0,
    "figure.titlesize": 12.0,
    "legend.fontsize": 9.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    # Names inside an SVG are random otherwise.
    "svg.hashsalt": "gait",
}
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (4, 1.2, 1, 1.2)), (0, (1.2, 1.2)), (0, (5, 1.2, 1, 1.2, 1, 1.2)), (0, (8, 3))
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Beside its colour a line has its own dashes or markers, for those who see no colours and for print."""
SHADES = ("#000000", "#D55E00", "#0072B2")


def draw(chart: Chart, folder: str | Path) -> list[Path]:
    """Write `NAME.png` and `NAME.svg` into a folder, which is made if it is missing.

    Returns:
        Their paths.

    Raises:
        GaitError: if matplotlib is missing or the folder cannot be written to.
    """
    try:
        import matplotlib.style
    except ImportError:
        raise need_extra("matplotlib", "viz") from None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GaitError(f"cannot make the folder {folder}: {(error.strerror or str(error)).lower()}") from None
    paths = []
    # Whatever style the user likes: the figures stay the same. No pyplot, which would choose a backend for everybody.
    with matplotlib.style.context(["default", STYLE]):
        figure = _figure(chart)
        about = {"Title": chart.title, "Description": chart.caption}
        for suffix, stamp in (("png", "Software"), ("svg", "Date")):
            paths.append(Path(folder) / f"{chart.name}.{suffix}")
            with atomic_path(paths[-1]) as temporary:
                figure.savefig(temporary, format=suffix, dpi=DPI, metadata={**about, stamp: None})
            # To find room for everything takes most of the time, and what was found stays good.
            figure.set_layout_engine("none")
    return paths


def _figure(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    rows = -(-len(chart.panels) // chart.columns)
    width, height = _size(chart, rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(chart.title)
    looks = _looks(chart)
    # One legend for all panels if one of them shows whatever the others do, else one beside each.
    labels = [_labels(panel) for panel in chart.panels]
    fullest = max(range(len(labels)), key=lambda i: len(labels[i]))
    together = all(some <= labels[fullest] for some in labels)
    grid: list[Any] = []
    for i, panel in enumerate(chart.panels):
        above = grid[i - chart.columns] if i >= chart.columns else None
        shared = above if chart.share_x and not _words(panel) else None
        axes = figure.add_subplot(
            rows, chart.columns, i + 1, sharex=shared, sharey=grid[0] if chart.share_y and grid else None
        )
        grid.append(axes)
        _draw_panel(axes, panel, looks, first=above is None)
        if chart.share_x and i + chart.columns < len(chart.panels) and not _words(panel):
            axes.tick_params(labelbottom=False)
            axes.set_xlabel("")
    explained: set[str] = set()
    for axes, some in zip(grid, labels, strict=True) if not together else ():
        found = zip(*axes.get_legend_handles_labels(), strict=True)
        fresh = {name: one for one, name in found if name in some - explained}
        if fresh:
            axes.legend(fresh.values(), fresh.keys(), loc="center left", bbox_to_anchor=(1.01, 0.5))
        explained |= set(fresh)
    if together and labels[fullest]:
        handles, names = grid[fullest].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 7))
    # Only now is it known how far the axes reach; to set one end earlier would freeze the other.
    near = [_near_zero(panel) for panel in chart.panels]
    for axes, panel, zero in zip(grid, chart.panels, near, strict=True):
        if all(near) if chart.share_y else zero:
            axes.set_ylim(0.0, axes.get_ylim()[1])
        for which, wanted in (("x", panel.log_x), ("y", panel.log_y)):
            if wanted:
                _plain_numbers(axes, which if not _words(panel) else "x")
    figure.align_ylabels()
    return figure


def _labels(panel: Panel) -> set[str]:
    """What a legend must explain: a line by itself is known by its axis."""
    shades = {one.label for one in panel.shades}
    return shades | {one.label for one in panel.series} if shades or len(panel.series) > 1 else set()


def _size(chart: Chart, rows: int) -> tuple[float, float]:
    """Inches."""
    if any(panel.equal for panel in chart.panels):
        return (8.0, 1.0 + 3.6 * rows) if chart.columns > 1 else (7.5, 1.0 + 5.5 * rows)
    if all(_words(panel) for panel in chart.panels):
        return 8.0, 0.6 + sum(0.9 + 0.3 * len(panel.series[0].x) for panel in chart.panels)
    if chart.columns > 1:
        return 9.0, 1.0 + 3.2 * rows
    return 8.0, 1.0 + (3.8 if rows == 1 else 2.4 if rows < 4 else 1.6) * rows


def _words(panel: Panel) -> bool:
    return any(isinstance(one.x, tuple) for one in panel.series)


def _looks(chart: Chart) -> dict[str, dict[str, Any]]:
    """Colour, dashes, weight and marker of every label in a chart."""
    found: dict[str, dict[str, Any]] = {}
    methods = [name for name in COLOURS if name != "truth"]
    colours = colours_of(chart)
    for panel in chart.panels:
        here = [one.label for one in panel.series if one.kind == "line" and not one.dashed]
        # Behind the methods, so that nothing looks like one of them.
        others = [name for name in methods if name in here] + [name for name in here if name not in COLOURS]
        for label in (one.label for one in panel.series):
            # A method looks the same in all charts; the rest is told apart within its panel.
            rank = methods.index(label) if label in methods else others.index(label) if label in others else 0
            look = {"linestyle": DASHES[rank % len(DASHES)], "marker": MARKERS[rank % len(MARKERS)]}
            # The first is what a chart is about: on top of the others.
            look |= {"color": colours[label], "linewidth": 1.3, "zorder": 4.0 - 0.1 * rank}
            # Broad and beneath: what is good lies on the truth and both can be seen.
            found.setdefault(label, look | ({"linewidth": 2.2, "zorder": 2.0} if label == "truth" else {}))
    return found


def _draw_panel(axes: Any, panel: Panel, looks: dict[str, dict[str, Any]], first: bool) -> None:
    if _words(panel):
        _draw_bars(axes, panel, looks)
        return
    for i, one in enumerate(panel.shades):
        _draw_shade(axes, one, i)
    for series in panel.series:
        _draw_series(axes, series, looks[series.label], panel.equal)
    for where, what in panel.marks:
        axes.axvline(where, color="#444444", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1.5)
        if first:
            axes.annotate(
                what, (where, 1.0), (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="center", va="bottom", fontsize=9.0, color="#444444",
            )  # fmt: skip
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.set_title(panel.title, loc="left")
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")
    elif not panel.log_x and any(len(one.y) > FEW for one in panel.series):
        axes.margins(x=0.0)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")


def _draw_series(axes: Any, one: Series, look: dict[str, Any], way: bool) -> None:
    look = dict(look)
    marker = look.pop("marker")
    if one.dashed:
        look["linestyle"] = (0, (6, 4))
    if one.kind == "points":
        axes.plot(
            one.x, one.y, "P", color=look["color"], markersize=8.0, markeredgecolor="w", zorder=6.0, label=one.label
        )
        return
    marked: dict[str, Any] = {}
    count = len(one.y)
    if not one.dashed and (count <= FEW or way):
        # Of a way on the ground, where it ends.
        marked = {"marker": marker, "markersize": 5.0, "markevery": [count - 1] if way else None}
    elif count > MANY:
        # The gaps of dashes would swallow peaks: a few markers tell the lines apart instead, not all in one place.
        step = count // 6
        look |= {"linestyle": "-", "linewidth": 0.6 * look["linewidth"]}
        marked = {"marker": marker, "markersize": 5.0, "markevery": (MARKERS.index(marker) * step // 6, step)}
        marked |= {"markeredgecolor": "w", "markeredgewidth": 0.5} if one.label != "truth" else {"marker": ""}
    axes.plot(one.x, one.y, **look, **marked, label=one.label)
    if one.spread is not None:
        low, high = one.y - one.spread, one.y + one.spread
        axes.fill_between(one.x, low, high, color=look["color"], alpha=0.18, linewidth=0.0, zorder=1.2)


def _draw_shade(axes: Any, one: Shade, rank: int) -> None:
    from matplotlib.collections import PolyCollection

    boxes = [((a, 0.0), (b, 0.0), (b, 1.0), (a, 1.0)) for a, b in stretches(one)]
    # Along the axis in its units, over the whole height whatever that is.
    patch = PolyCollection(
        boxes, transform=axes.get_xaxis_transform(), facecolor=SHADES[rank % len(SHADES)], alpha=0.13,
        linewidth=0.0, zorder=0.5, label=one.label,
    )  # fmt: skip
    axes.add_collection(patch, autolim=False)


def stretches(one: Shade) -> list[tuple[float, float]]:
    """Where a shade begins and ends: what is on holds until the next sample."""
    on = np.concatenate([[False], one.on, [False]]).astype(np.int8)
    begins, ends = np.flatnonzero(np.diff(on) == 1), np.flatnonzero(np.diff(on) == -1)
    ends = np.minimum(ends, len(one.x) - 1)
    return list(zip(one.x[begins].tolist(), one.x[ends].tolist(), strict=True))


def _draw_bars(axes: Any, panel: Panel, looks: dict[str, dict[str, Any]]) -> None:
    """Lying bars with their figures beside them: names need no turning of the head."""
    names = list(dict.fromkeys(word for one in panel.series for word in one.x))
    thick = 0.7 / len(panel.series)
    for i, one in enumerate(panel.series):
        places = np.array([names.index(str(word)) for word in one.x]) + (i - (len(panel.series) - 1) / 2.0) * thick
        bars = axes.barh(places, one.y, thick, color=looks[one.label]["color"], xerr=one.spread, label=one.label)
        axes.bar_label(
            bars, [f"{value:.0f}" if value >= 100.0 else f"{value:.3g}" for value in one.y], padding=4, fontsize=9.0
        )
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(panel.y_label)
    axes.set_ylabel(panel.x_label)
    axes.set_title(panel.title, loc="left")
    if panel.log_y:
        axes.set_xscale("log")
    axes.margins(x=0.12)


def _plain_numbers(axes: Any, which: str) -> None:
    """On a logarithmic axis: 0.02, not 2 times ten to the minus two; and not more of them than there is room for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = getattr(axes, f"{which}axis")
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 300.0 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _near_zero(panel: Panel) -> bool:
    """Whether nothing is negative and zero is not far off: then the axis begins there."""
    if panel.log_y or panel.equal or _words(panel):
        return False
    values = np.concatenate([one.y[np.isfinite(one.y)] for one in panel.series])
    return len(values) > 0 and bool(values.min() >= 0.0 and values.min() <= 0.5 * values.max())
