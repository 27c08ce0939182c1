"""Scores of one method under one fault: how wrong, how soon flagged, how honest, how soon right again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray
from gait.bench.faults.fault import Fault, Span
from gait.bench.faults.track import Track
from gait.health import Health
from gait.rows import Row

WINDOW = 1.0
"""Seconds over which the clean run's rms error is taken, around each moment."""
TOLERANCE = 0.05
"""Velocity error beyond that of the clean run that still counts as right, m/s."""
LEEWAY = 0.05
"""Seconds by which flags of the clean run may shift without counting as another flag."""
SETTLED = 1.0
"""Seconds after the first sample from which flags count where nothing is wrong."""
BRIEF = 0.05
"""Seconds for which nothing but the IMU may measure, at a change of feet: contacts are taken up after a dwell."""
SHARE, FLAGGED, RECOVERED = 0.99, 0.2, 2.0
"""What a row has to show: share within 3 std, and seconds until a flag and until the estimate is right again."""
PARTS = {"velocity": "vel", "yaw": "yaw", "position": "pos"}
"""Errors that are held against their std, and their short names."""


@dataclass(frozen=True)
class FaultScore:
    """One method under one fault."""

    fault: Fault
    worst_during: float
    """Largest velocity error while the fault acts, m/s; nan if no sample arrives meanwhile."""
    worst_after: float
    rmse_during: float
    recovery: float
    """Seconds from the end of the fault (from its begin, if it stays) until the velocity error is small for good; nan
    where the fault never ends."""
    detection: float
    """Seconds from the first sample of the fault to the first flag that the clean run does not have; inf if none."""
    said: str
    """What health then said."""
    within_during: dict[str, float]
    """Share within 3 std, by `PARTS`."""
    within_after: dict[str, float]
    not_finite: int
    """States with a NaN."""
    indefinite: int
    """Covariances that are not positive definite."""
    exception: str
    """What was raised."""
    inherited: tuple[str, ...] = ()
    """Of `vel`, `yaw` and `pos`, those that the clean run does not meet at that time either."""
    refused: str = ""
    """Why the method does not run without this input; then nothing else counts."""

    @property
    def failures(self) -> list[str]:
        """Criteria that are not met, in short."""
        if self.refused:
            return []
        found = ["raises"] * bool(self.exception) + ["nan"] * bool(self.not_finite) + ["cov"] * bool(self.indefinite)
        for name, short in PARTS.items():
            # No samples, no share: nan is not below.
            if min_share(self.within_during[name], self.within_after[name]) < SHARE:
                found.append(short)
        if self.fault.flag and not self.detection <= FLAGGED:
            found.append("flag")
        if self.fault.quiet and np.isfinite(self.detection):
            found.append("alarm")
        if self.fault.recovers and not self.recovery <= RECOVERED:
            found.append("slow")
        return found

    @property
    def caused(self) -> list[str]:
        """Criteria that are not met because of the fault: the clean run meets them."""
        return [one for one in self.failures if one not in self.inherited]

    @property
    def verdict(self) -> str:
        """`ok`, what failed, or that the method needs the input."""
        return "refused" if self.refused else " ".join(self.failures) or "ok"

    def rows(self, prefix: str) -> list[Row]:
        """As results, each name behind the prefix."""
        numbers = {
            "velocity_worst_during": (self.worst_during, "m/s"),
            "velocity_worst_after": (self.worst_after, "m/s"),
            "velocity_rmse_during": (self.rmse_during, "m/s"),
            "recovery": (self.recovery, "s"),
            "detection": (self.detection, "s"),
            **{f"{name}_within_3std_during": (self.within_during[name], "-") for name in PARTS},
            **{f"{name}_within_3std_after": (self.within_after[name], "-") for name in PARTS},
            "nan_states": (self.not_finite, "-"),
            "indefinite_covariances": (self.indefinite, "-"),
            "exceptions": (int(bool(self.exception)), "-"),
            "passed": (int(not self.failures), "-"),
        }
        texts = {"health": self.said, "verdict": self.verdict, "hidden": self.fault.hidden}
        texts |= {"clean_run_fails": " ".join(self.inherited)}
        texts |= {"exception": self.exception, "refused": self.refused}
        rows = [Row(f"{prefix}.{name}", value, unit) for name, (value, unit) in numbers.items()]
        return [*rows, *(Row(f"{prefix}.{name}", text, "-") for name, text in texts.items() if text)]


def min_share(*shares: float) -> float:
    """The smallest of the shares that there are; 1 of none."""
    known = [share for share in shares if np.isfinite(share)]
    return min(known, default=1.0)


def refusal(fault: Fault, why: str) -> FaultScore:
    """The score of a method that needs what is missing."""
    nan, none = float("nan"), dict.fromkeys(PARTS, float("nan"))
    return FaultScore(fault, nan, nan, nan, nan, nan, "", none, none, 0, 0, "", refused=why)


def raised(fault: Fault, why: str) -> FaultScore:
    """The score of a method that raises at the first sample, though nothing is missing for good."""
    return replace(refusal(fault, ""), exception=why, recovery=float("inf"), detection=float("inf"))


def score_fault(fault: Fault, span: Span, track: Track, clean: Track, first: int | None = None) -> FaultScore:
    """Compare a run under a fault with the clean run.

    Args:
        fault: what was injected.
        span: when it acted.
        track: the run.
        clean: the run without the fault, at least as long; other rows are allowed, times count.
        first: row of the first sample that the fault changes, from which time to detection counts; the first row of
            the span by default.
    """
    during, after = rows_between(track, span.begin, span.end), rows_between(track, span.end, np.inf)
    error = track.speed_error
    first = during.start if first is None else first
    flags = track
    if fault.quiet:
        flags = replace(track, health=without_brief(track))
        if fault.lasts == "whole":
            # The first contacts have to be found: until then there is no measurement.
            first = rows_between(track, span.begin + SETTLED, np.inf).start
    since, said = detection_time(flags, clean, first)
    from_then = span.begin if fault.lasts == "on" else span.end
    recovery = recovery_time(track, clean, from_then) if fault.recovers else float("nan")
    return FaultScore(
        fault=fault,
        worst_during=_largest(error[during]),
        worst_after=_largest(error[after]),
        rmse_during=float(np.sqrt(np.mean(np.square(error[during])))) if error[during].size else float("nan"),
        recovery=np.inf if track.exception else recovery,
        detection=since,
        said=said,
        within_during={name: track.within(name, during) for name in PARTS},
        within_after={name: track.within(name, after) for name in PARTS},
        not_finite=int(track.not_finite.sum()),
        indefinite=int(track.indefinite.sum()),
        exception=track.exception,
        inherited=_unmet(clean, span),
    )


def _unmet(clean: Track, span: Span) -> tuple[str, ...]:
    """Shares that are too small without any fault, while it acts or after."""
    if clean.states is None:
        return ()
    spans = rows_between(clean, span.begin, span.end), rows_between(clean, span.end, span.stop)
    return tuple(
        short for name, short in PARTS.items() if min_share(*(clean.within(name, one) for one in spans)) < SHARE
    )


def rows_between(track: Track, t0: float, t1: float) -> slice:
    """The rows with t0 <= time < t1, half a millisecond early as in a Feed."""
    first, last = np.searchsorted(track.time, np.array([t0, t1]) - 5e-4)
    return slice(int(first), int(last))


def detection_time(track: Track, clean: Track, first: int) -> tuple[float, str]:
    """Seconds from row `first` to the first flag that the clean run does not have around then, and the words."""
    new = track.health[first:] & ~usual_flags(clean, track.time[first:]) & ~np.uint32(Health.STARTING)
    at = np.flatnonzero(new)
    if not at.size:
        return float("inf"), ""
    row = first + int(at[0])
    return float(track.time[row] - track.time[first]), track.said(row)


def without_brief(track: Track) -> AnyArray:
    """Health (N,) without `NO_MEASUREMENT` that lasts no longer than `BRIEF`."""
    bit, step = np.uint32(Health.NO_MEASUREMENT), float(np.median(np.diff(track.time)))
    up = np.asarray(track.health & bit != 0)
    return np.asarray(np.where(up & ~longer_than(up, round(BRIEF / step)), track.health & ~bit, track.health))


def longer_than(mask: BoolArray, rows: int) -> BoolArray:
    """The mask without runs of so many rows or fewer."""
    kept = mask.copy()
    for first, last in runs_of(mask):
        if last - first <= rows:
            kept[first:last] = False
    return kept


def runs_of(mask: BoolArray) -> list[tuple[int, int]]:
    """First row of each run of True, and the row behind it."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def usual_flags(clean: Track, time: Array) -> AnyArray:
    """All flags that the clean run has within `LEEWAY` of these moments."""
    step = float(np.median(np.diff(clean.time))) if len(clean) > 1 else LEEWAY
    reach = round(LEEWAY / step)
    health = clean.health.copy()
    for shift in range(1, reach + 1):
        health[shift:] |= clean.health[:-shift]
        health[:-shift] |= clean.health[shift:]
    at = np.clip(np.searchsorted(clean.time, time - 0.5 * step), 0, len(clean) - 1)
    return np.asarray(health[at])


def recovery_time(track: Track, clean: Track, since: float) -> float:
    """Seconds from `since` until the velocity error is that of the clean run and stays so; inf if never."""
    late = track.time >= since - 5e-4
    time, error = track.time[late], track.speed_error[late]
    if not time.size:
        return float("inf")
    wrong = np.flatnonzero(~(error <= allowed(clean, time)))
    if not wrong.size:
        return 0.0
    if wrong[-1] + 1 == len(time):
        return float("inf")
    return float(max(time[wrong[-1] + 1] - since, 0.0))


def allowed(clean: Track, time: Array) -> Array:
    """Velocity error that counts as right at these moments (N,), m/s.

    Three times the clean run's rms error of the second around, or its error and `TOLERANCE`, whichever is larger.
    """
    error = clean.speed_error
    squares = np.concatenate(([0.0], np.cumsum(np.square(error))))
    first, last = np.searchsorted(clean.time, clean.time[:, None] + np.array([-0.5, 0.5]) * WINDOW).T
    rms = np.sqrt((squares[last] - squares[first]) / np.maximum(last - first, 1))
    limit = np.maximum(3.0 * rms, error + TOLERANCE)
    return np.asarray(np.interp(time, clean.time, limit))


def calm(track: Track, until: float) -> Track:
    """A clean run where there is none: error and flags as before a moment of the run itself.

    Flags that come up within `LEEWAY` before it are of what happens then: a hand that lifts takes the weight off feet
    that still touch the ground.
    """
    before = rows_between(track, track.time[0] + SETTLED, until - LEEWAY)
    error, flags = track.speed_error[before], track.health[before]
    rms = float(np.sqrt(np.mean(np.square(error)))) if error.size else 0.0
    velocity = np.zeros_like(track.velocity)
    velocity[:, 0] = rms
    return replace(
        track, states=None, velocity=velocity, health=np.full_like(track.health, np.bitwise_or.reduce(flags))
    )


def _largest(values: AnyArray) -> float:
    return float(values.max()) if values.size else float("nan")
