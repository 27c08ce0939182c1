"""A page to look at a log on: the robot's skeleton in 3D beside plots, in one HTML file that needs no network."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from gait.arrays import AnyArray, Array, BoolArray
from gait.health import FIRST_LEG, Health
from gait.log import Log, Trajectory
from gait.log.diagnoses import lasting
from gait.metrics.trajectory_error import SLIP_SPEED
from gait.report.chart import COLOURS, OTHER_COLOURS, runs
from gait.report.walk_charts import vel_b_std
from gait.robot import Robot

if TYPE_CHECKING:
    from gait.estimator import StateArrays

FRAMES = 18_000
"""Most frames of a page: 30 a second of 10 minutes, 15 MB with every method."""
RATE = 60.0
"""Frames a second of a short log."""
BRIDGE = 0.1
"""Events of one kind that are no further apart than this (s) are one."""
LEAST = 0.03
"""Shorter ones (s) are touchdowns rather than slips, and spikes that the filter rejects."""
EVENTS = 300
"""Most events that are listed."""
CONTACT, SLIPS, STALE = 1, 2, 4
"""Bits of a leg in a frame."""
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Event:
    """Something that happened to the robot or to the estimate."""

    start: float
    """Seconds from the start of the log."""
    end: float
    kind: str
    """slip, fault or gap."""
    words: str


Track = dict[str, Any]
"""What the page shows of a method, thinned: the estimates of ten minutes by every method would fill a memory."""


def view_page(title: str, log: Log, robot: Robot, first: Trajectory, tracks: Sequence[Track]) -> str:
    """The text of the page.

    Args:
        title: above everything.
        log: the input; its ground truth is a track of its own.
        robot: what to draw.
        first: the estimate of the first track, which is drawn.
        tracks: of the methods, as `track_of` makes them.
    """
    log = log.reorder(robot)
    rows = frames(log.t)
    # Whole millimetres: four bytes less a number, and no screen shows less.
    legs = [np.rint(1e3 * np.asarray(leg)) for leg in robot.skeleton(log.q[rows])]
    most = max(leg.shape[-2] for leg in legs)
    # Shorter legs end where they end.
    skeleton = np.stack(
        [leg[:, np.minimum(np.arange(most), leg.shape[-2] - 1)] for leg in legs], axis=1
    )  # (n, L, P, 3)
    truth = [_truth(log, rows)] if log.has_truth else []
    tree = {
        "title": title,
        "frames": len(rows),
        "t": _packed(log.t[rows] - log.t[0], "f4"),
        "legs": robot.leg_names,
        "points": skeleton.shape[2],
        "skeleton": _packed(np.clip(skeleton, -32767, 32767), "i2"),
        "radius": robot.foot_radius,
        "base": robot.shapes.base.tolist(),
        "flags": _packed(_leg_flags(log, first, robot, rows), "u1"),
        "tracks": [*truth, *tracks],
        "events": [vars(event) for event in events(log, first, robot)],
        "uneventful": uneventful(log),
    }
    return Template(_asset("html")).substitute(
        title=html.escape(title),
        style=_asset("css").strip(),
        script=_asset("js").strip(),
        data=json.dumps(tree, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    )


def frames(t: Array) -> AnyArray:
    """Rows that are shown."""
    duration = float(t[-1] - t[0])
    count = int(min(len(t), FRAMES, max(2.0, RATE * duration)))
    return np.unique(np.linspace(0, len(t) - 1, count).round().astype(np.int64))


def events(log: Log, trajectory: Trajectory, robot: Robot) -> list[Event]:
    """Slips, faults and gaps in the order of time."""
    t = log.t - log.t[0]
    found = [
        Event(float(t[row]), float(t[row] + length), "gap", f"gap of {length:.2f} s") for row, length in log.gaps()
    ]
    slips = _slips(log)
    for i, leg in enumerate(robot.leg_names if slips is not None else ()):
        assert slips is not None
        found += _events(t, slips[:, i], "slip", f"{leg} slips (ground truth)")
    if trajectory.health is not None:
        health = trajectory.health.astype(np.int64)
        if slips is None:
            found += _events(t, health & Health.SLIP != 0, "slip", f"a foot slips, by {trajectory.source}")
        for word, on in lasting(health, robot.leg_names).items():
            found += _events(t, on, "fault", word)
    found.sort(key=lambda event: event.start)
    if len(found) > EVENTS:
        # The longest matter most.
        found = sorted(sorted(found, key=lambda event: event.start - event.end)[:EVENTS], key=lambda event: event.start)
    return found


def slip_share(log: Log) -> float | None:
    """Share of the samples in which some foot truly slips, as `gait run` counts them; None where the log is silent."""
    slips = _slips(log)
    return None if slips is None else float(slips.any(axis=1).mean())


def uneventful(log: Log) -> str:
    """What to say of a log without slips or faults that last."""
    if not (share := slip_share(log)):
        return "no slips, no faults"
    return f"no faults; a foot slips in {share:.1%} of the samples, never for {1e3 * LEAST:.0f} ms, as at touchdown"


def _events(t: Array, on: BoolArray, kind: str, words: str) -> list[Event]:
    merged: list[Event] = []
    for a, b in runs(on):
        start, end = float(t[a]), float(t[min(b, len(t) - 1)])
        if merged and start - merged[-1].end <= BRIDGE:
            start = merged.pop().start
        merged.append(Event(start, end, kind, words))
    return [one for one in merged if one.end - one.start >= LEAST]


def _slips(log: Log) -> BoolArray | None:
    """Which foot truly slips (N, L), where the log tells."""
    if log.contact is None or log.foot_vel_w is None:
        return None
    return np.asarray(log.contact & (np.linalg.norm(log.foot_vel_w, axis=2) > SLIP_SPEED))


def _leg_flags(log: Log, trajectory: Trajectory, robot: Robot, rows: AnyArray) -> AnyArray:
    """Bits of each leg (n, L): in contact, slipping, not used; of all rows that a frame stands for."""
    flags = np.zeros((len(log), robot.num_legs), dtype=np.uint8)
    if log.contact is not None:
        flags |= np.where(log.contact, CONTACT, 0).astype(np.uint8)
    slips = _slips(log)
    if slips is not None:
        flags |= np.where(slips, SLIPS, 0).astype(np.uint8)
    if trajectory.health is not None:
        health = trajectory.health.astype(np.int64)[:, None]
        stale = (health & Health.STALE_LEG != 0) & (health >> (FIRST_LEG + np.arange(robot.num_legs)) & 1 != 0)
        flags |= np.where(stale, STALE, 0).astype(np.uint8)
    marks = np.bitwise_or.reduceat(flags & ~np.uint8(CONTACT), rows, axis=0)
    return np.asarray(marks | (flags[rows] & CONTACT))


def _truth(log: Log, rows: AnyArray) -> Track:
    pose = {"pos": log.need("pos_w")[rows], "quat": log.need("quat_wb_wxyz")[rows], "vel": log.vel_b[rows]}
    return {"name": "truth", "colour": COLOURS["truth"], **{key: _packed(one, "f4") for key, one in pose.items()}}


def track_of(name: str, trajectory: Trajectory, details: StateArrays, rows: AnyArray) -> Track:
    """What the page shows of a method.

    Args:
        name: of the method.
        trajectory: its estimate on the log's clock.
        details: what it computed on the way.
        rows: those that are shown, of `frames`.
    """
    spare = OTHER_COLOURS[sum(map(ord, name)) % len(OTHER_COLOURS)]
    values = {
        "pos": trajectory.pos_w[rows],
        "quat": trajectory.quat_wb_wxyz[rows],
        "vel": trajectory.vel_b[rows],
        "std": vel_b_std(trajectory)[rows],
        # The largest that a frame stands for: an outlier of one sample must be seen.
        "ratio": np.maximum.reduceat(np.nan_to_num(details.test_ratio), rows),
    }
    return {
        "name": name,
        "colour": COLOURS.get(name, spare),
        **{key: _packed(one, "f4") for key, one in values.items()},
    }


def _packed(values: AnyArray, kind: str) -> str:
    """Little-endian numbers in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def _asset(ending: str) -> str:
    return (_HERE / f"view_page.{ending}").read_text(encoding="utf-8")
