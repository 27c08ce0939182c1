"""Faults of time: samples lost, late, repeated or out of order, and clocks that jump."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gait.bench.faults.fault import Fault, Inject
from gait.bench.faults.feed import Feed


def thinned(share: float) -> Inject:
    """Samples lost at random."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        keep = np.ones(len(feed), dtype=bool)
        keep[rows] = rng.random(rows.stop - rows.start) >= share
        keep[0] = True
        return feed.take(keep)

    return inject


def cut(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """All samples lost."""
    keep = np.ones(len(feed), dtype=bool)
    keep[rows] = False
    return feed.take(keep)


def cut_often(seconds: float, every: float = 0.43) -> Inject:
    """All samples lost for a moment, again and again: moments of the stride differ in what a gap costs."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        since = feed.time - feed.time[rows.start]
        keep = np.ones(len(feed), dtype=bool)
        keep[rows] = ((since + 5e-4) % every >= seconds)[rows]
        return feed.take(keep)

    return inject


def doubled(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """Every sample twice."""
    times = np.ones(len(feed), dtype=int)
    times[rows] = 2
    return feed.take(np.repeat(np.arange(len(feed)), times))


def reordered(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """One sample in five changes places with the next one; the moments of arrival stay."""
    order, i = np.arange(len(feed)), rows.start
    while i + 1 < rows.stop:
        if rng.random() < 0.2:
            order[[i, i + 1]] = order[[i + 1, i]]
            i += 1
        i += 1
    mixed = feed.take(order)
    return replace(mixed, time=feed.time, truth=feed.truth)


def jittered(seconds: float) -> Inject:
    """Stamps off by up to so much, each by its own."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        count = rows.stop - rows.start
        feed.stamps[rows] += rng.uniform(-seconds, seconds, count) * (np.arange(count) + rows.start > 0)
        return feed

    return inject


def delayed(seconds: float) -> Inject:
    """Joint readings that are older than their stamp says."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        at = feed.time - seconds
        for name in ("q", "dq", "tau"):
            if name in feed.values:
                old = [np.interp(at, feed.time, column) for column in feed.values[name].T]
                feed.put(name, rows, np.stack(old, axis=1)[rows])
        return feed

    return inject


def clock_by(seconds: float) -> Inject:
    """The clock jumps, and stays."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        feed.stamps[rows.start :] += seconds
        return feed

    return inject


def clock_to_zero(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """The clock starts over."""
    feed.stamps[rows.start :] -= feed.stamps[rows.start]
    return feed


def one_stamp(value: float) -> Inject:
    """The stamp of a single sample."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        feed.stamps[rows.start] = value
        return feed

    return inject


def at_rate(rate: float) -> Inject:
    """The log at another rate, by interpolation."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        return Feed.of(feed.log.resample(rate), feed.start)

    return inject


_GAPS = {"20ms": 0.02, "50ms": 0.05, "90ms": 0.09, "100ms": 0.1, "150ms": 0.15, "2s": 2.0, "10s": 10.0, "30s": 30.0}


def _clock(name: str, words: str, inject: Inject) -> Fault:
    return Fault(f"clock-{name}", words, inject, seconds=0.0, flag="clock")


TIMING_FAULTS: tuple[Fault, ...] = (
    Fault("lost-1", "1 % of the samples lost", thinned(0.01), lasts="whole"),
    Fault("lost-10", "10 % of the samples lost", thinned(0.1), lasts="whole"),
    Fault("lost-50", "50 % of the samples lost", thinned(0.5), lasts="whole"),
    *(Fault(f"gap-{name}", f"{name[:-1].rstrip('m')} {'ms' if name[-2] == 'm' else 's'} without samples", cut, seconds,
            flag="gap")
      for name, seconds in _GAPS.items()),
    Fault("gaps-50ms", "50 ms without samples, five times in 2 s", cut_often(0.05), flag="gap"),
    Fault("gaps-90ms", "90 ms without samples, five times in 2 s", cut_often(0.09), flag="gap"),
    Fault("duplicated", "every sample twice, for 2 s", doubled),
    Fault("reordered", "one sample in five swapped with the next, for 2 s", reordered),
    Fault("jitter-0.3ms", "stamps off by up to 0.3 ms", jittered(3e-4), lasts="whole"),
    Fault("jitter-0.9ms", "stamps off by up to 0.9 ms", jittered(9e-4), lasts="whole"),
    Fault("latency-5ms", "joints 5 ms late", delayed(0.005), lasts="whole"),
    Fault("latency-10ms", "joints 10 ms late", delayed(0.01), lasts="whole"),
    Fault("latency-20ms", "joints 20 ms late", delayed(0.02), lasts="whole"),
    _clock("back-0.5s", "clock set back by 0.5 s", clock_by(-0.5)),
    _clock("back-1s", "clock set back by 1 s", clock_by(-1.0)),
    _clock("ahead-0.5s", "clock set ahead by 0.5 s", clock_by(0.5)),
    _clock("ahead-1s", "clock set ahead by 1 s", clock_by(1.0)),
    _clock("zero", "clock starts over at zero", clock_to_zero),
    _clock("1e300", "one stamp is 1e300", one_stamp(1e300)),
    _clock("nan", "one stamp is NaN", one_stamp(np.nan)),
    Fault("clock-1970", "stamps count from 1970", clock_by(1.8e9), lasts="whole"),
    Fault("rate-100", "100 Hz", at_rate(100.0), lasts="whole"),
    Fault("rate-200", "200 Hz", at_rate(200.0), lasts="whole"),
    Fault("rate-400", "400 Hz", at_rate(400.0), lasts="whole"),
    Fault("rate-1000", "1000 Hz, interpolated", at_rate(1000.0), lasts="whole"),
)  # fmt: skip
