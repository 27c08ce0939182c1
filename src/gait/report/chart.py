"""A chart as data: what is drawn, not how. `draw` makes PNG and SVG of it, `report` an interactive plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gait.arrays import Array, BoolArray

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
"""For what is no method of the paper, in turn."""


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
    """Half width of a band around the line, or of error bars (N,)."""


@dataclass(frozen=True, eq=False)
class Shade:
    """Stretches of the x axis that are shaded over the whole height, such as contacts or flight."""

    label: str
    x: Array
    """(N,), ascending."""
    on: BoolArray
    """(N,)."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    series: tuple[Series, ...]
    x_label: str
    """With its unit."""
    y_label: str
    shades: tuple[Shade, ...] = ()
    marks: tuple[tuple[float, str], ...] = ()
    """Vertical lines: where, and what happens there."""
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

    def __post_init__(self) -> None:
        assert self.panels and self.columns >= 1


def colours_of(chart: Chart) -> dict[str, str]:
    """The colour of every label in a chart."""
    found: dict[str, str] = {}
    free = list(OTHER_COLOURS)
    for one in (one for panel in chart.panels for one in panel.series):
        if one.label not in found:
            found[one.label] = one.colour or COLOURS.get(one.label) or (free.pop(0) if free else "#666666")
    return found
