"""Statistics of a live estimate: rate, latency, lost samples, and a status line for the terminal."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections import deque

import numpy as np

from gait.estimator import State
from gait.live.pairing import NS, Arrival
from gait.log import MAX_GAP
from gait.rows import Row

RECENT = 2000
"""Samples that the latency on the line is of."""
SILENT = 0.5
"""Without a sample for so long (s), the line says so."""
_STEPS = 64
"""Steps of the clock from which its period is estimated."""
_FINEST, _FINENESS = 1e-6, 1.01
_BINS = 2048


class Latencies:
    """Percentiles of any number of latencies, to 1 %, in little memory."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, dtype=np.int64)
        self.greatest = 0.0

    def add(self, seconds: float) -> None:
        """One of them; clocks out of step may make it negative, which counts as none."""
        place = math.log(max(seconds, _FINEST) / _FINEST) / math.log(_FINENESS)
        self._counts[min(int(place), _BINS - 1)] += 1
        self.greatest = max(self.greatest, seconds)

    def percentile(self, share: float) -> float:
        """The latency that this share of all do not exceed, s; nan of none."""
        total = np.cumsum(self._counts)
        if not total[-1]:
            return float("nan")
        return float(_FINEST * _FINENESS ** (np.searchsorted(total, share * total[-1]) + 0.5))


class Monitor:
    """Statistics of the samples, and the line that shows them."""

    def __init__(self) -> None:
        self.samples = self.lost = self.gaps = self.ill = self._counted = 0
        self.latency = Latencies()
        self.notes: list[str] = []
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._steps: deque[int] = deque(maxlen=_STEPS)
        self._last: tuple[int, int] | None = None
        self._period = self._rate = 0.0
        self.first = self._latest = self._shown = time.monotonic()
        self._state: State | None = None

    def add(self, arrival: Arrival, state: State, done_ns: int) -> None:
        """A sample whose odometry has been sent by now."""
        seconds = (done_ns - arrival.sent_ns) / NS
        self.latency.add(seconds)
        self._recent.append(seconds)
        self._latest = time.monotonic()
        if not self.samples:
            self.first = self._shown = self._latest
        self.samples += 1
        self._state = state
        self.ill += not state.health.ok
        count = arrival.ns if arrival.count_ns is None else arrival.count_ns
        if self._last is not None:
            self._step(arrival.ns - self._last[0], count - self._last[1])
        self._last = arrival.ns, count

    def _step(self, gap: int, step: int) -> None:
        """Count missing samples by their stamps: a step of two periods is a sample lost, a long one or one backwards is
        a gap."""
        if not 0 < gap < MAX_GAP * NS:
            self.gaps += 1
            return
        if not 0 < step < MAX_GAP * NS:
            # A counter that stands still, or was reset, carries no information.
            return
        self._steps.append(step)
        if len(self._steps) == _STEPS and (not self._period or self.samples % _STEPS == 0):
            first, self._period = not self._period, float(np.median(self._steps))
            if first:
                self.lost += sum(max(round(one / self._period) - 1, 0) for one in list(self._steps)[:-1])
        if self._period:
            self.lost += max(round(step / self._period) - 1, 0)

    def line(self, status: str = "") -> str:
        """All of it in a line."""
        now = time.monotonic()
        if now > self._shown:
            self._rate = (self.samples - self._counted) / (now - self._shown)
        self._shown, self._counted = now, self.samples
        if self._state is None:
            return f"waiting: {status}" if status else "waiting for samples"
        state = self._state
        velocity = " ".join(f"{one:+.2f}" for one in state.vel_b)
        std = " ".join(f"{one:.2f}" for one in state.vel_b_std)
        p99 = np.percentile(self._recent, 99.0) * 1e3
        silent = now - self._latest
        health = f"no samples for {silent:.1f} s" if silent > SILENT else str(state.health)
        rate, lost = f"{self._rate:4.0f} Hz", f"lost {self.lost}"
        words = (rate, f"p99 {p99:.2f} ms", f"{velocity} m/s, std {std}", lost, health, status)
        return " | ".join(filter(None, words))

    def rows(self) -> list[Row]:
        """The whole of it, at the end."""
        seconds = self._latest - self.first
        return [
            Row("samples", self.samples, "-"),
            Row("duration", seconds, "s"),
            Row("rate", (self.samples - 1) / seconds if self.samples > 1 and seconds > 0.0 else float("nan"), "Hz"),
            Row("lost", self.lost, "-"),
            Row("gaps", self.gaps, "-"),
            Row("latency_p50", self.latency.percentile(0.5) * 1e3, "ms"),
            Row("latency_p99", self.latency.percentile(0.99) * 1e3, "ms"),
            Row("latency_max", self.latency.greatest * 1e3 if self.samples else float("nan"), "ms"),
            Row("health_ok", 1.0 - self.ill / self.samples if self.samples else float("nan"), "-"),
        ]


class StatusLine:
    """Writes a line over itself on a terminal, a few times a second; elsewhere line after line, if at all."""

    def __init__(self, show: bool, every: float = 0.0) -> None:
        """On a terminal if `show`; with `every`, a line of its own each so many seconds."""
        self._show, self._period = show and not every, every or 0.2
        self._every, self._next, self._width = every > 0.0, time.monotonic(), 0

    def due(self) -> bool:
        """Whether it is time."""
        return (self._show or self._every) and time.monotonic() >= self._next

    def write(self, text: str) -> None:
        """Show a line."""
        self._next = time.monotonic() + self._period
        if self._every:
            print(text, file=sys.stderr, flush=True)
            return
        text = text[: shutil.get_terminal_size().columns - 1]
        print(f"\r{text.ljust(self._width)}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._show or self._every:
            print(f"\r{text.ljust(self._width)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the line as it is and go to the next."""
        if self._show and self._width:
            sys.stderr.write("\n")
            self._width = 0
