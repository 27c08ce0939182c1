"""What a fault is: a small function on a feed, and what is expected of an estimator that meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gait.arrays import AnyArray
from gait.bench.faults.feed import ALL, Feed

Inject = Callable[[Feed, slice, np.random.Generator], Feed]
"""Takes a feed of its own, the rows of the fault and a seeded generator; returns the feed with the fault in it."""
Lasts = Literal["while", "on", "whole"]
BEFORE, AFTER, LEAST = 9.0, 9.0, 5.0
"""Seconds before a fault and after it that a run has, and those it has at least."""


@dataclass(frozen=True)
class Span:
    """When a fault acts, s; and when the run ends."""

    begin: float
    end: float
    stop: float


@dataclass(frozen=True)
class Fault:
    """One row of the list."""

    id: str
    words: str
    inject: Inject
    seconds: float = 2.0
    """How long it acts, if it acts for a while."""
    lasts: Lasts = "while"
    """For a while, from then on, or in the whole log."""
    flag: str = ""
    """What health is expected to say; empty where an estimate that stays right needs no flag."""
    quiet: bool = False
    """Whether nothing is wrong, so that any flag is a false alarm."""
    hidden: str = ""
    """Why it cannot be told from the data; empty where it can."""
    course: str = ""
    """Name of the course it needs in place of the log, such as `stand`; its log says when the fault acts."""

    def span(self, begin: float, end: float) -> Span | None:
        """When it acts in a log from `begin` to `end`; None if the log is too short."""
        if self.lasts == "whole":
            return Span(begin, end + 1.0, min(end, begin + BEFORE + AFTER + 2.0) + 1.0)
        start = min(begin + BEFORE, end - self.seconds - LEAST)
        if start < begin + 2.0:
            return None
        last = start + self.seconds
        stop = last + AFTER
        return Span(start, stop + 1.0 if self.lasts == "on" else last, stop)

    @property
    def recovers(self) -> bool:
        """Whether the estimate has to be right again."""
        return self.lasts != "whole"


def matching(faults: tuple[Fault, ...], only: tuple[str, ...]) -> list[Fault]:
    """Those whose id fits one of the patterns; all without patterns."""
    return [fault for fault in faults if not only or any(fnmatchcase(fault.id, pattern) for pattern in only)]


def nothing(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """No fault at all."""
    return feed


def put(names: str, value: npt.ArrayLike, columns: Any = ALL) -> Inject:
    """Overwrite sensors, named with spaces between."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        for name in names.split():
            feed.put(name, rows, value, columns)
        return feed

    return inject


def change(names: str, function: Callable[[AnyArray], AnyArray], columns: Any = ALL) -> Inject:
    """Replace sensors by a function of their values (N, columns)."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        for name in names.split():
            if name in feed.values:
                feed.put(name, rows, function(feed.values[name][rows, columns]), columns)
        return feed

    return inject


def noise(names: str, std: float, columns: Any = ALL) -> Inject:
    """Add white noise."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        for name in names.split():
            if name in feed.values:
                part = feed.values[name][rows, columns]
                feed.put(name, rows, part + rng.normal(0.0, std, part.shape), columns)
        return feed

    return inject


def stuck(names: str, columns: Any = ALL) -> Inject:
    """Repeat the last value before the fault."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        for name in names.split():
            if name in feed.values:
                feed.put(name, rows, feed.values[name][max(rows.start - 1, 0), columns], columns)
        return feed

    return inject


def hide(names: str) -> Inject:
    """Give None in place of sensors."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        for name in names.split():
            feed.hide(name, rows)
        return feed

    return inject


def both(*injects: Inject) -> Inject:
    """One after the other."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        for one in injects:
            feed = one(feed, rows, rng)
        return feed

    return inject
