"""A chart as data: what is drawn, not how.

`plots` makes an interactive plot of it for the HTML report; `draw` makes PNG and SVG for documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from gait.arrays import Array, BoolArray, IntArray

COLOURS: dict[str, str] = {
    "truth": "#000000",
    "gait-legs": "#D55E00",
    "gait": "#0072B2",
    "gait-flat": "#56B4E9",
    "nmn": "#E69F00",
    "iekf": "#009E73",
    "iekf-sr": "#CC79A7",
}
"""By method: the palette of Okabe and Ito, which the colour-blind can tell apart."""
OTHER_COLOURS = ("#999999", "#F0E442")
"""For labels that name no method, in turn."""
SHADES = ("#888888", "#D55E00", "#0072B2")
"""Of shaded intervals, in turn."""
TIME = "time (s)"
AXES = ("forward", "left", "up")
"""Of the body."""

MOST_POINTS = 4000
"""Of a line: more than there are pixels across, so no more can be seen."""


@dataclass(frozen=True, eq=False)
class Series:
    """A line, points or bars with a name."""

    label: str
    x: Array | tuple[str, ...]
    """(N,); words for bars."""
    y: Array
    """(N,); nan breaks a line."""
    kind: Literal["line", "points", "bar"] = "line"
    colour: str = ""
    """A colour, or empty for that of the method that the label names, or the next free one."""
    dashed: bool = False
    spread: Array | None = None
    """Half width of a band around a line (N,)."""


@dataclass(frozen=True, eq=False)
class Shade:
    """Intervals of the x axis that are shaded over the whole height, such as contacts or flight."""

    label: str
    x: Array
    """(N,), ascending."""
    on: BoolArray
    """(N,)."""

    def intervals(self) -> list[tuple[float, float]]:
        """Begin and end of each: from the first sample that is on until the next one that is not."""
        return [(float(self.x[a]), float(self.x[min(b, len(self.x) - 1)])) for a, b in runs(self.on)]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    series: tuple[Series, ...]
    x_label: str
    """With its unit."""
    y_label: str
    shades: tuple[Shade, ...] = ()
    marks: tuple[tuple[float, str], ...] = ()
    """Vertical lines: position and label."""
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    equal: bool = False
    """One metre along x is as long as one along y."""


@dataclass(frozen=True)
class Chart:
    """A figure: panels one above the other, or side by side in columns."""

    name: str
    """Of its file, such as `trot-to-bound`."""
    title: str
    caption: str
    """What to see in it, in a sentence or two."""
    panels: tuple[Panel, ...]
    columns: int = 1
    share_x: bool = True
    """Panels of a column zoom together."""
    share_y: bool = False
    """All panels have the same scale along y."""


def runs(on: BoolArray) -> list[tuple[int, int]]:
    """First row, and the row after the last, of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], on, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def colours_of(chart: Chart) -> dict[str, str]:
    """The colour of every series of a chart, by label."""
    found: dict[str, str] = {}
    free = list(OTHER_COLOURS)
    for one in (one for panel in chart.panels for one in panel.series):
        if one.label not in found:
            found[one.label] = one.colour or COLOURS.get(one.label) or (free.pop(0) if free else "#666666")
    return found


def shade_colours(chart: Chart) -> dict[str, str]:
    """The colour of every shade of a chart, by label."""
    labels = dict.fromkeys(shade.label for panel in chart.panels for shade in panel.shades)
    return {label: SHADES[i % len(SHADES)] for i, label in enumerate(labels)}


def thin(*values: Array, most: int = MOST_POINTS) -> IntArray:
    """Rows to keep of long series (N,): in each stretch those with the least and the greatest value of each.

    So a spike of one sample survives. Short series are kept whole.
    """
    count = len(values[0])
    if count <= most:
        return np.arange(count)
    # Two rows are kept for the ends.
    edges = np.linspace(0, count, (most - 2) // (2 * len(values)) + 1).astype(int)
    keep = {0, count - 1}
    for one in values:
        # A stretch of nothing but nan keeps a nan, which breaks the line there.
        low, high = np.where(np.isnan(one), np.inf, one), np.where(np.isnan(one), -np.inf, one)
        for start, end in pairwise(edges.tolist()):
            keep |= {start + int(low[start:end].argmin()), start + int(high[start:end].argmax())}
    return np.array(sorted(keep))


def line(label: str, x: Array, y: Array, *, colour: str = "", spread: Array | None = None) -> Series:
    """A value over time."""
    rows = thin(y)
    return Series(label, x[rows], y[rows], colour=colour, spread=None if spread is None else spread[rows])


def path(label: str, points: Array) -> Series:
    """A path seen from above (N, 2)."""
    rows = thin(points[:, 0], points[:, 1])
    return Series(label, points[rows, 0], points[rows, 1])


def window(t: Array, start: float, seconds: float) -> slice:
    """The rows from `start` on, for so long; shifted to where there are rows if it reaches beyond an end."""
    start = max(min(start, float(t[-1]) - seconds), float(t[0]))
    return slice(int(np.searchsorted(t, start)), int(np.searchsorted(t, start + seconds, side="right")))
