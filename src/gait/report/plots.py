"""A chart as an interactive plot: what plotly.js draws, as plain data.

plotly's own figure classes take most of a second to import; the same dictionaries are written here by hand.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray
from gait.report.chart import Chart, Panel, Series, Shade, colours_of

Json: TypeAlias = dict[str, Any]

DIGITS = 5
"""Significant digits of a number in a plot."""
SHADES = ("#888888", "#D55E00", "#0072B2", "#009E73")
"""Colours of shaded stretches, in turn."""
ROW, ALONE, SQUARE = 200, 300, 400
"""Height of a row of panels, of the only one, and of one with equal axes, px."""
WIDE, NARROW = 700, 280
"""Room for names side by side, px: what is left of a desktop's page beside the buttons, and of a phone's."""
GAP, TICKS, TITLE = 14, 48, 26
"""Room between rows, for an x axis with its title, and for the title of a panel, px."""


def plot(chart: Chart) -> Json:
    """The traces of a chart, and its layout on a wide screen and on a narrow one.

    Colours of text, grid and background are left to the page, which knows whether it is light or dark; the colour
    of the truth, black, stands for that of text.
    """
    return {"name": chart.name, "data": _traces(chart), "wide": _layout(chart, False), "narrow": _layout(chart, True)}


def _traces(chart: Chart) -> list[Json]:
    colours, tints = colours_of(chart), _tints(chart)
    seen: set[str] = set()
    traces = []
    for i, panel in enumerate(chart.panels):
        for shade in panel.shades:
            traces.append(_shade(shade, i, len(chart.panels), tints[shade.label], shade.label not in seen))
            seen.add(shade.label)
        for one in panel.series:
            if one.spread is not None and one.kind == "line":
                traces.append(_band(one, i, colours[one.label], panel.log_y))
            traces.append(_series(one, i, panel, colours[one.label], one.label not in seen))
            seen.add(one.label)
    return traces


def _tints(chart: Chart) -> dict[str, str]:
    labels = dict.fromkeys(shade.label for panel in chart.panels for shade in panel.shades)
    return {label: SHADES[i % len(SHADES)] for i, label in enumerate(labels)}


def _axes(i: int) -> Json:
    return {"xaxis": _axis("x", i), "yaxis": _axis("y", i)}


def _axis(letter: str, i: int) -> str:
    return letter if i == 0 else f"{letter}{i + 1}"


def _series(one: Series, i: int, panel: Panel, colour: str, first: bool) -> Json:
    words = isinstance(one.x, tuple)
    unit = _unit(panel.y_label)
    value = f"%{{y:.4g}}{unit}"
    if panel.equal:
        value = f"%{{x:.4g}}, {value}"
    trace: Json = {
        **_axes(i),
        "name": _plain(one.label),
        "legendgroup": one.label,
        "showlegend": first,
        "x": list(one.x) if words else numbers(np.asarray(one.x)),
        "y": numbers(one.y),
        "hovertemplate": value if one.kind != "bar" else f"%{{x}}: {value}<extra></extra>",
    }
    if one.spread is not None and one.kind != "line":
        trace["error_y"] = {"array": numbers(one.spread), "thickness": 1.5, "width": 3}
    if one.kind == "bar":
        return {**trace, "type": "bar", "marker": {"color": colour}}
    style: Json = {"color": colour, "width": 1.5, **({"dash": "dash"} if one.dashed else {})}
    if one.kind == "points":
        return {**trace, "type": "scatter", "mode": "markers", "marker": {"color": colour, "size": 8}}
    # A line of few points shows where they are.
    few = len(one.y) <= 30 and not one.dashed
    return {
        **trace,
        "type": "scatter",
        "mode": "lines+markers" if few else "lines",
        "line": style,
        **({"marker": {"color": colour, "size": 6}} if few else {}),
    }


def _band(one: Series, i: int, colour: str, log_y: bool) -> Json:
    """A closed outline around each stretch of the line that has no hole."""
    assert one.spread is not None
    x, low, high = np.asarray(one.x, dtype=float), one.y - one.spread, one.y + one.spread
    if log_y:
        low = np.maximum(low, one.y / 10.0)
    xs: list[Array] = []
    ys: list[Array] = []
    hole = np.array([np.nan])
    for start, end in _runs(np.isfinite(low) & np.isfinite(high) & np.isfinite(x)):
        part = slice(start, end)
        xs += [x[part], x[part][::-1], hole]
        ys += [high[part], low[part][::-1], hole]
    return {
        **_axes(i),
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": _see_through(colour, 0.2),
        "name": _plain(one.label),
        "legendgroup": one.label,
        "showlegend": False,
        "hoverinfo": "skip",
        "x": numbers(np.concatenate(xs) if xs else np.zeros(0)),
        "y": numbers(np.concatenate(ys) if ys else np.zeros(0)),
    }


def _shade(shade: Shade, i: int, panels: int, colour: str, first: bool) -> Json:
    """Boxes from bottom to top of an axis of their own, which nobody sees: zooming leaves them whole."""
    xs: list[float] = []
    for start, end in _runs(shade.on):
        # A stretch lasts until the first sample that is no longer in it.
        left, right = float(shade.x[start]), float(shade.x[min(end, len(shade.x) - 1)])
        xs += [left, left, right, right, float("nan")]
    return {
        "xaxis": _axis("x", i),
        "yaxis": _axis("y", panels + i),
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0, "color": colour},
        "fill": "toself",
        "fillcolor": _see_through(colour, 0.18),
        "name": _plain(shade.label),
        "legendgroup": f"shade {shade.label}",
        "showlegend": first,
        "hoverinfo": "skip",
        "x": numbers(np.array(xs)),
        "y": [0, 1, 1, 0, None] * (len(xs) // 5),
    }


def _runs(on: BoolArray) -> list[tuple[int, int]]:
    """First row and the row after the last of each stretch that is true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], np.asarray(on, dtype=bool), [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _layout(chart: Chart, narrow: bool) -> Json:
    columns = 1 if narrow else min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    bare = [_stands_on_its_like(chart, i, columns) for i in range(len(chart.panels))]
    heights, below, above = [], [], []
    for row in range(rows):
        these = range(row * columns, min((row + 1) * columns, len(chart.panels)))
        square = any(chart.panels[i].equal for i in these)
        heights.append(SQUARE - 60 * narrow if square else ALONE if rows == 1 else ROW - 20 * narrow)
        below.append(GAP if all(bare[i] for i in these) else TICKS)
        marked = any(chart.panels[i].title for i in these) or any(chart.panels[i].marks for i in these)
        above.append(TITLE if marked else 6)
    # Names stand in lines above the panels, on a phone below them.
    names = _legend(chart)
    room = NARROW if narrow else WIDE
    legend = 24 * -(-sum(7 * len(name) + 50 for name in names) // room) + 8 if len(names) > 1 else 0
    margin = {
        "l": 58,
        "r": 12,
        "t": (30 if narrow else max(legend, 30)) + above[0],
        "b": 6 + below[-1] + (legend if narrow else 0),
    }
    inner = sum(heights) + sum(below[:-1]) + sum(above[1:])
    layout: Json = {
        "height": inner + margin["t"] + margin["b"],
        "margin": margin,
        "hovermode": "closest" if any(panel.equal for panel in chart.panels) else "x unified",
        "showlegend": len(names) > 1,
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 0 if narrow else 1,
            "yanchor": "bottom" if narrow else "top",
            "x": 0,
            "xanchor": "left",
            "groupclick": "togglegroup",
        },
        "shapes": [],
        "annotations": [],
        "barmode": "group",
    }
    top = inner
    for row in range(rows):
        bottom = top - heights[row]
        for i in range(row * columns, min((row + 1) * columns, len(chart.panels))):
            across = _across(i % columns, columns)
            _panel(layout, chart, i, across, [max(bottom / inner, 0.0), min(top / inner, 1.0)], bare[i], narrow)
        top = bottom - below[row] - (above[row + 1] if row + 1 < rows else 0)
    return layout


def _legend(chart: Chart) -> list[str]:
    """Every name in the legend."""
    lines = dict.fromkeys(one.label for panel in chart.panels for one in panel.series)
    return [*lines, *_tints(chart)]


def _across(column: int, columns: int) -> list[float]:
    room = 0.08 if columns > 1 else 0.0
    width = (1.0 - room * (columns - 1)) / columns
    left = column * (width + room)
    return [round(left, 5), round(min(left + width, 1.0), 5)]


def _stands_on_its_like(chart: Chart, i: int, columns: int) -> bool:
    """Whether the panel below has the same x axis, so that one set of numbers will do."""
    below = i + columns
    if not chart.share_x or columns != min(chart.columns, len(chart.panels)) or below >= len(chart.panels):
        return False
    return chart.panels[i].x_label == chart.panels[below].x_label and not chart.panels[below].title


def _panel(layout: Json, chart: Chart, i: int, across: list[float], up: list[float], bare: bool, narrow: bool) -> None:
    """Put the axes of a panel, its title and its marks into a layout."""
    panel = chart.panels[i]
    words = any(isinstance(one.x, tuple) for one in panel.series)
    x, y = _axis("x", i), _axis("y", i)
    x_axis: Json = {"domain": across, "anchor": y, "showticklabels": not bare, "automargin": False}
    y_axis: Json = {"domain": up, "anchor": x, "title": {"text": _plain(panel.y_label), "standoff": 6}, "nticks": 6}
    if not bare:
        x_axis["title"] = {"text": _plain(panel.x_label), "standoff": 6}
    if words:
        x_axis["tickangle"] = -35 if narrow else "auto"
        x_axis["automargin"] = True
    else:
        x_axis["nticks"] = 6 if narrow else 10
        x_axis["hoverformat"] = ".4~g"
        x_axis["unifiedhovertitle"] = {"text": f"%{{x}}{_unit(panel.x_label)}"}
        leader = i % chart.columns
        if chart.share_x and i != leader:
            x_axis["matches"] = _axis("x", leader)
    for axis, log in ((x_axis, panel.log_x), (y_axis, panel.log_y)):
        if log:
            # Powers of ten, and the 2 and 5 between them.
            axis |= {"type": "log", "dtick": "D2", "exponentformat": "power"}
    if panel.equal:
        y_axis |= {"scaleanchor": x, "scaleratio": 1}
    layout[f"xaxis{x[1:]}"], layout[f"yaxis{y[1:]}"] = x_axis, y_axis
    if panel.shades:
        hidden = _axis("y", len(chart.panels) + i)
        layout[f"yaxis{hidden[1:]}"] = {"overlaying": y, "range": [0, 1], "fixedrange": True, "visible": False}
    if panel.title:
        layout["annotations"].append(_words(f"<b>{_plain(panel.title)}</b>", x, y, {"x": 0, "xanchor": "left"}))
    for at, what in panel.marks:
        place = float(np.log10(at)) if panel.log_x else at
        layout["shapes"].append(
            {
                "type": "line",
                "xref": x,
                "yref": f"{y} domain",
                "x0": at,
                "x1": at,
                "y0": 0,
                "y1": 1,
                "line": {"width": 1, "dash": "dot", "color": "#888888"},
            }
        )
        # One set of words above the topmost panel of a column is enough.
        if i < chart.columns:
            layout["annotations"].append(_words(_plain(what), x, y, {"x": place, "xanchor": "left"}, x_ref=x))


def _words(text: str, x: str, y: str, where: Json, x_ref: str = "") -> Json:
    ref = {"xref": x_ref or f"{x} domain", "yref": f"{y} domain"}
    return {"text": text, "showarrow": False, **ref, "y": 1, "yanchor": "bottom", **where}


def _plain(text: str) -> str:
    """plotly reads some HTML in its texts; ours have none."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unit(label: str) -> str:
    """The unit at the end of the label of an axis, with a space before it: of `time (s)`, ` s`."""
    found = re.search(r"\(([^()]+)\)", label)
    if found is None or found[1] == "share":
        return ""
    return f" {_plain(found[1])}"


def _see_through(colour: str, share: float) -> str:
    if not re.fullmatch("#[0-9A-Fa-f]{6}", colour):
        colour = SHADES[0]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:g})"


def numbers(values: Array | AnyArray) -> list[float | int | None]:
    """For JSON, with `DIGITS` significant digits; what is not finite becomes nothing."""
    array = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(array)
    scale = np.where(finite & (array != 0.0), np.abs(array), 1.0)
    places = DIGITS - 1 - np.floor(np.log10(scale)).astype(int)
    found: list[float | int | None] = []
    for value, good, digits in zip(array.tolist(), finite.tolist(), places.tolist(), strict=True):
        number = round(value, digits) if good else None
        found.append(int(number) if number is not None and number == int(number) else number)
    return found
