"""Charts as PNG and SVG, by matplotlib: pages on the web show no plotly. The same chart gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gait.errors import need_extra, os_errors
from gait.io.atomic import atomic_path
from gait.report.chart import COLOURS, Chart, Panel, Series, colours_of, shade_colours

DPI = 150
FEW = 40
"""A line of at most so many points shows each of them."""
STYLE: dict[str, Any] = {
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 10.0),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 9.0),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.handlelength": 2.8,
    # Names inside an SVG are random otherwise.
    "svg.hashsalt": "gait",
}
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.5)), (0, (4, 1.2, 1, 1.2)), (0, (1.2, 1.2)), (0, (5, 1.2, 1, 1.2, 1, 1.2)), (0, (8, 3))
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P")
"""Dashes and markers tell lines apart without colours, as in print."""


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
    with os_errors(f"cannot make the folder {folder}"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    # Independent of the user's style. No pyplot, which would choose a backend for the whole process.
    with matplotlib.style.context(["default", STYLE]):
        figure = _figure(chart)
        about = {"Title": chart.title, "Description": chart.caption}
        for suffix, stamp in (("png", "Software"), ("svg", "Date")):
            paths.append(Path(folder) / f"{chart.name}.{suffix}")
            with atomic_path(paths[-1]) as temporary:
                figure.savefig(temporary, format=suffix, dpi=DPI, metadata={**about, stamp: None})
            # The layout takes most of the time, and stays valid.
            figure.set_layout_engine("none")
    return paths


def _figure(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure = Figure(figsize=_size(chart, rows), layout="constrained")
    heights = [len(panel.series[0].x) + 2 if _has_bars(panel) else 1 for panel in chart.panels[::columns]]
    grid = figure.subplots(
        rows, columns, squeeze=False, sharex="col" if chart.share_x else False, sharey=chart.share_y,
        height_ratios=heights,
    ).ravel()  # fmt: skip
    for spare in grid[len(chart.panels) :]:
        spare.set_visible(False)
    looks, shades = _looks(chart), shade_colours(chart)
    for i, (axes, panel) in enumerate(zip(grid, chart.panels, strict=False)):
        if _has_bars(panel):
            _draw_bars(axes, panel, looks)
        else:
            _draw_panel(axes, panel, looks, shades, first=i < columns)
        axes.set_title(panel.title, loc="left")
        if chart.share_x:
            axes.label_outer(remove_inner_ticks=False)
    figure.suptitle(chart.title, fontsize=12.0)
    _legends(figure, chart, grid)
    # Only now is it known how far the axes reach; to set one end earlier would freeze the other.
    near = [_near_zero(panel) for panel in chart.panels]
    for axes, panel, zero in zip(grid, chart.panels, near, strict=False):
        if all(near) if chart.share_y else zero:
            axes.set_ylim(0.0, axes.get_ylim()[1])
        if panel.log_x or (panel.log_y and _has_bars(panel)):
            _plain_numbers(axes.xaxis)
        if panel.log_y and not _has_bars(panel):
            _plain_numbers(axes.yaxis)
    figure.align_ylabels()
    return figure


def _size(chart: Chart, rows: int) -> tuple[float, float]:
    """Inches."""
    if any(panel.equal for panel in chart.panels):
        return (8.0, 1.0 + 3.6 * rows) if chart.columns > 1 else (7.5, 1.0 + 5.5 * rows)
    if all(_has_bars(panel) for panel in chart.panels):
        return 8.0, 0.6 + sum(0.9 + 0.3 * len(panel.series[0].x) for panel in chart.panels)
    if chart.columns > 1:
        return 9.0, 1.0 + 3.2 * rows
    return 8.0, 1.0 + (3.8 if rows == 1 else 2.4 if rows < 4 else 1.6) * rows


def _has_bars(panel: Panel) -> bool:
    return panel.series[0].kind == "bar"


def _looks(chart: Chart) -> dict[str, dict[str, Any]]:
    """Colour, dashes, width and marker of every label in a chart; a method looks the same in all charts."""
    methods = [name for name in COLOURS if name != "truth"]
    found: dict[str, dict[str, Any]] = {}
    for panel in chart.panels:
        for i, label in enumerate(one.label for one in panel.series):
            rank = methods.index(label) if label in methods else i % len(DASHES)
            look = {"linestyle": DASHES[rank], "marker": MARKERS[rank], "linewidth": 1.3, "zorder": 4.0 - 0.1 * rank}
            if label == "truth":
                # Broad and beneath: an estimate that is good lies on it, and both can be seen.
                look |= {"linestyle": "-", "marker": "", "linewidth": 2.2, "zorder": 2.0}
            found.setdefault(label, {**look, "color": colours_of(chart)[label]})
    return found


def _draw_panel(
    axes: Any, panel: Panel, looks: dict[str, dict[str, Any]], shades: dict[str, str], *, first: bool
) -> None:
    for shade in panel.shades:
        for k, (start, end) in enumerate(shade.intervals()):
            label = shade.label if k == 0 else None
            axes.axvspan(start, end, color=shades[shade.label], alpha=0.28, linewidth=0.0, zorder=0.5, label=label)
    for series in panel.series:
        _draw_series(axes, series, dict(looks[series.label]), panel.equal)
    for where, what in panel.marks:
        axes.axvline(where, color="#444444", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1.5)
        if first:
            axes.text(where, 1.02, what, transform=axes.get_xaxis_transform(), ha="center", fontsize=9.0)
    scales = {"xscale": "log" if panel.log_x else "linear", "yscale": "log" if panel.log_y else "linear"}
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, **scales)
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")
    elif not panel.log_x and any(len(one.y) > FEW for one in panel.series):
        axes.margins(x=0.0)


def _draw_series(axes: Any, one: Series, look: dict[str, Any], path: bool) -> None:
    count = len(one.y)
    every: Any = None
    if one.kind == "points":
        look |= {"linestyle": "", "marker": "P", "markeredgecolor": "w", "zorder": 6.0}
    elif one.dashed:
        look |= {"linestyle": (0, (6, 4)), "marker": ""}
    elif path:
        # Where it ends.
        every = [count - 1]
    elif count > FEW:
        look["marker"] = ""
    axes.plot(one.x, one.y, **look, markersize=8.0 if one.kind == "points" else 5.0, markevery=every, label=one.label)
    if one.spread is not None:
        low, high = one.y - one.spread, one.y + one.spread
        axes.fill_between(one.x, low, high, color=look["color"], alpha=0.18, linewidth=0.0, zorder=1.2)


def _draw_bars(axes: Any, panel: Panel, looks: dict[str, dict[str, Any]]) -> None:
    """Horizontal bars with their values beside them."""
    (one,) = panel.series
    bars = axes.barh(one.x, one.y, 0.7, color=looks[one.label]["color"])
    axes.bar_label(bars, [f"{value:.0f}" if value >= 100.0 else f"{value:.3g}" for value in one.y], padding=4)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel=panel.y_label, ylabel=panel.x_label, xscale="log" if panel.log_y else "linear")
    axes.margins(x=0.12)


def _legends(figure: Any, chart: Chart, grid: Any) -> None:
    """One below all panels where one panel has every label; otherwise one beside each panel with labels of its own."""
    needed = [_labels(panel) for panel in chart.panels]
    fullest = max(range(len(needed)), key=lambda i: len(needed[i]))
    together = all(labels <= needed[fullest] for labels in needed)
    explained: set[str] = set()
    for i in [fullest] if together else range(len(needed)):
        handles = {name: one for one, name in zip(*grid[i].get_legend_handles_labels(), strict=True)}
        fresh = {name: one for name, one in handles.items() if name in needed[i] - explained}
        explained |= set(fresh)
        if fresh and together:
            figure.legend(fresh.values(), fresh.keys(), loc="outside lower center", ncols=min(len(fresh), 7))
        elif fresh:
            grid[i].legend(fresh.values(), fresh.keys(), loc="center left", bbox_to_anchor=(1.01, 0.5))


def _labels(panel: Panel) -> set[str]:
    """What a legend must explain: a single line is known by its axis."""
    shades = {one.label for one in panel.shades}
    return shades | {one.label for one in panel.series} if shades or len(panel.series) > 1 else set()


def _plain_numbers(axis: Any) -> None:
    """On a logarithmic axis: 0.02 rather than powers of ten, and no more labels than fit."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 300.0 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _near_zero(panel: Panel) -> bool:
    """Whether no value is negative and zero is near: then the axis begins there."""
    if panel.log_y or panel.equal or _has_bars(panel):
        return False
    values = np.concatenate([one.y[np.isfinite(one.y)] for one in panel.series])
    return len(values) > 0 and 0.0 <= float(values.min()) <= 0.5 * float(values.max())
