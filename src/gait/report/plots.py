"""A chart as an interactive plotly figure, for the HTML report."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gait.arrays import Array
from gait.report.chart import Chart, Panel, Series, colours_of, runs, shade_colours

if TYPE_CHECKING:
    import plotly.graph_objects as go

FEW = 30
"""A line with at most so many points shows them."""
ROW, ALONE, SQUARE = 200, 300, 400
"""Height of a row of panels, of a single row, and of a row with equal axes, px."""
TIGHT, APART = 20, 80
"""Space between rows that share an x axis, and between those with axes and titles of their own, px."""
WIDE, NARROW = 700, 280
"""Width available to the legend on a desktop and on a phone, px."""


def plot(chart: Chart) -> dict[str, Any]:
    """The traces of a chart, and its layout on a wide screen and, in one column, on a narrow one.

    Colours of text, grid and background are left to the page, which may be light or dark; black stands for the
    colour of text.
    """
    import plotly.graph_objects as go

    return {
        "name": chart.name,
        "data": go.Figure(_traces(chart)).to_dict()["data"],
        "wide": _layout(chart, min(chart.columns, len(chart.panels)), WIDE).to_plotly_json(),
        "narrow": _layout(chart, 1, NARROW).to_plotly_json(),
    }


def _traces(chart: Chart) -> list[go.Scatter | go.Bar]:
    colours, traces, seen = colours_of(chart), [], set[str]()
    for i, panel in enumerate(chart.panels):
        for one in panel.series:
            common: dict[str, Any] = {"name": html.escape(one.label), "legendgroup": one.label, "xaxis": f"x{i + 1}"}
            common |= {"yaxis": f"y{i + 1}", "showlegend": one.label not in seen}
            seen.add(one.label)
            if one.spread is not None:
                traces.append(_band(one, colours[one.label], {**common, "showlegend": False}))
            traces.append(_series(one, panel, colours[one.label], common))
    return traces


def _series(one: Series, panel: Panel, colour: str, common: dict[str, Any]) -> go.Scatter | go.Bar:
    import plotly.graph_objects as go

    value = f"%{{y:.4g}}{_unit(panel.y_label)}"
    common = {**common, "x": _values(one.x), "y": _values(one.y), "marker": {"color": colour}}
    if one.kind == "bar":
        return go.Bar(**common, hovertemplate=f"%{{x}}: {value}<extra></extra>")
    few = len(one.y) <= FEW and not one.dashed
    return go.Scatter(
        **common,
        marker_size=8 if one.kind == "points" else 6,
        mode="markers" if one.kind == "points" else "lines+markers" if few else "lines",
        line={"color": colour, "width": 1.5, "dash": "dash" if one.dashed else "solid"},
        hovertemplate=f"%{{x:.4g}}, {value}" if panel.equal else value,
    )


def _band(one: Series, colour: str, common: dict[str, Any]) -> go.Scatter:
    """A closed outline around each run of the line without a hole."""
    import plotly.graph_objects as go

    assert one.spread is not None
    x, low, high, hole = np.asarray(one.x, dtype=float), one.y - one.spread, one.y + one.spread, [np.nan]
    parts = [slice(a, b) for a, b in runs(np.isfinite(low) & np.isfinite(high))]
    xs = [piece for part in parts for piece in (x[part], x[part][::-1], hole)]
    ys = [piece for part in parts for piece in (high[part], low[part][::-1], hole)]
    style = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": _translucent(colour)}
    return go.Scatter(**common, **style, x=_values(np.concatenate(xs)), y=_values(np.concatenate(ys)), hoverinfo="skip")


def _layout(chart: Chart, columns: int, room: int) -> go.Layout:
    import plotly.graph_objects as go

    rows = -(-len(chart.panels) // columns)
    # One x axis below the lowest panel serves a column whose panels have the same.
    shared = chart.share_x and columns == min(chart.columns, len(chart.panels))
    shared = shared and len({(panel.x_label, panel.title) for panel in chart.panels}) == 1
    equal = any(panel.equal for panel in chart.panels)
    height, gap = SQUARE if equal else ALONE if rows == 1 else ROW, TIGHT if shared else APART
    names = [*colours_of(chart), *shade_colours(chart)]
    legend = 24 * -(-sum(7 * len(name) + 50 for name in names) // room) + 8 if len(names) > 1 else 0
    narrow, above = room == NARROW, 26 if any(panel.title or panel.marks for panel in chart.panels) else 6
    margin = {"l": 68, "r": 12, "t": above + (30 if narrow else max(legend, 30)), "b": 54 + legend * narrow}
    layout = go.Layout(
        height=rows * height + (rows - 1) * gap + margin["t"] + margin["b"],
        margin=margin,
        grid={"rows": rows, "columns": columns, "pattern": "independent", "xgap": 0.15, "ygap": gap / (height + gap)},
        hovermode="closest" if equal else "x unified",
        showlegend=len(names) > 1,
        # Above the panels; on a phone below them.
        legend={"orientation": "h", "yref": "container", "x": 0, "groupclick": "togglegroup"}
        | ({"y": 0, "yanchor": "bottom"} if narrow else {"y": 1, "yanchor": "top"}),
        shapes=[shape for i, panel in enumerate(chart.panels) for shape in _shapes(chart, i, panel)],
        annotations=[words for i, panel in enumerate(chart.panels) for words in _words(i, panel, columns)],
    )
    for i, panel in enumerate(chart.panels):
        bottom = i + columns >= len(chart.panels)
        for letter, settings in _axes(chart, i, panel, bottom or not shared, narrow).items():
            layout[f"{letter}axis{i + 1}"] = settings
    return layout


def _axes(chart: Chart, i: int, panel: Panel, labelled: bool, narrow: bool) -> dict[str, dict[str, Any]]:
    x: dict[str, Any] = {"showticklabels": labelled}
    y: dict[str, Any] = {"title": {"text": html.escape(panel.y_label), "standoff": 6}, "nticks": 6}
    if labelled:
        x["title"] = {"text": html.escape(panel.x_label), "standoff": 6}
    if any(one.kind == "bar" for one in panel.series):
        x |= {"tickangle": -35 if narrow else None, "automargin": True}
    else:
        x |= {"nticks": 6 if narrow else 10, "hoverformat": ".4~g"}
        x["unifiedhovertitle"] = {"text": f"%{{x}}{_unit(panel.x_label)}"}
        if chart.share_x and i >= chart.columns:
            x["matches"] = _axis("x", i % chart.columns)
    if chart.share_y and i:
        y["matches"] = "y"
    for settings, log, steps in ((x, panel.log_x, "D2"), (y, panel.log_y, 1)):
        if log:
            # Powers of ten; along x, where there is room, the 2 and 5 between them.
            settings |= {"type": "log", "dtick": steps, "exponentformat": "power"}
    if panel.equal:
        y |= {"scaleanchor": _axis("x", i), "scaleratio": 1}
    return {"x": x, "y": y}


def _shapes(chart: Chart, i: int, panel: Panel) -> list[dict[str, Any]]:
    """Shaded intervals and marks of a panel, over its whole height."""
    place = {"xref": _axis("x", i), "yref": f"{_axis('y', i)} domain", "y0": 0, "y1": 1}
    shapes: list[dict[str, Any]] = []
    colours, before = shade_colours(chart), {one.label for other in chart.panels[:i] for one in other.shades}
    for shade in panel.shades:
        style = {"type": "rect", "fillcolor": colours[shade.label], "opacity": 0.18, "line": {"width": 0}}
        style |= {"layer": "below", "name": html.escape(shade.label), "legendgroup": f"shade {shade.label}"}
        for k, (start, end) in enumerate(shade.intervals()):
            first = k == 0 and shade.label not in before
            shapes.append({**place, **style, "x0": start, "x1": end, "showlegend": first})
    line = {"width": 1, "dash": "dot", "color": "#888888"}
    return shapes + [{**place, "type": "line", "x0": at, "x1": at, "line": line} for at, _ in panel.marks]


def _words(i: int, panel: Panel, columns: int) -> list[dict[str, Any]]:
    """The title of a panel, and above the topmost panels what their marks mean."""
    x, y = _axis("x", i), f"{_axis('y', i)} domain"
    place = {"yref": y, "y": 1, "yanchor": "bottom", "xanchor": "left", "showarrow": False}
    words = [{**place, "text": html.escape(what), "xref": x, "x": at} for at, what in panel.marks if i < columns]
    title = {**place, "text": f"<b>{html.escape(panel.title)}</b>", "xref": f"{x} domain", "x": 0}
    return [*words, title] if panel.title else words


def _axis(letter: str, i: int) -> str:
    return letter if i == 0 else f"{letter}{i + 1}"


def _values(values: Array | tuple[str, ...]) -> Array | tuple[str, ...]:
    """Single precision: seven digits, at half the size."""
    return values if isinstance(values, tuple) else np.asarray(values, dtype=np.float32)


def _unit(label: str) -> str:
    """The unit at the end of the label of an axis, with a space before it: of `time (s)`, ` s`."""
    found = re.search(r"\(([^()]+)\)", label)
    return "" if found is None or found[1] == "share" else f" {html.escape(found[1])}"


def _translucent(colour: str) -> str:
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},0.2)"
