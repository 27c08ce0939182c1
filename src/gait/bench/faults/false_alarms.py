"""False alarms: what health says in an hour of walking in which nothing is wrong, over all gaits and terrains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gait.arrays import BoolArray
from gait.bench.courses import Course, Progress, Walk, make_test_set
from gait.bench.faults.fault_scores import BRIEF, SETTLED, longer_than, runs_of
from gait.bench.faults.feed import Feed
from gait.bench.faults.track import Track, follow
from gait.errors import GaitError, need_extra
from gait.estimator import Estimator
from gait.health import FIRST_LEG, MOST_LEGS, Health
from gait.log import Log
from gait.methods import known_method
from gait.rows import Row

METHODS = ("gait-legs", "iekf")
"""What is measured by default."""
GAITS = ("walk", "trot", "bound", "pace", "pronk")
RUNS, SECONDS = 5, 20.0
"""Walks of each gait on each terrain, and their length: more than an hour together. On ice longer ones end in falls."""
SLIPS = 0.1
"""m/s at which a foot on the ground slips."""
AROUND = 0.1
"""Seconds around a true event within which a flag of it is true."""


def clean_courses() -> tuple[Course, ...]:
    """One walk for each gait and terrain, with the benchmark's twin; seeds are none of the frozen test set."""
    try:
        from gait.sim.world import TERRAINS
    except ModuleNotFoundError as error:
        raise need_extra(error.name or "mujoco", "sim") from None
    pairs = [(gait, terrain) for terrain in TERRAINS for gait in GAITS]
    return tuple(
        Course(f"clean-{gait}-{terrain}", gait, terrain, 66001 + i, RUNS, SECONDS)
        for i, (gait, terrain) in enumerate(pairs)
    )


@dataclass(frozen=True)
class Alarms:
    """False alarms of one method on one walk, by flag."""

    walk: str
    method: str
    seconds: float
    count: dict[str, int]
    """Times that a flag came up without cause."""
    lasted: dict[str, float]
    """Seconds for which it stood."""


@dataclass(frozen=True)
class CleanHour:
    """All walks."""

    alarms: tuple[Alarms, ...]
    unwalkable: tuple[str, ...]
    """Combinations of gait and terrain in which the robot fell each time."""

    def of(self, method: str) -> list[Alarms]:
        """Those of a method."""
        return [one for one in self.alarms if one.method == method]

    @property
    def methods(self) -> list[str]:
        """In the order in which they ran."""
        return list(dict.fromkeys(one.method for one in self.alarms))

    def total(self, method: str) -> dict[str, tuple[int, float, int]]:
        """By flag: alarms, seconds, and walks with any."""
        some = self.of(method)
        flags = dict.fromkeys(name for one in some for name, count in one.count.items() if count)
        return {
            flag: (
                sum(one.count[flag] for one in some),
                sum(one.lasted[flag] for one in some),
                sum(one.count[flag] > 0 for one in some),
            )
            for flag in flags
        }

    def rows(self) -> list[Row]:
        """As results: `clean.gait-legs.alarms`, and by flag."""
        rows = []
        for method in self.methods:
            found, seconds = self.total(method), sum(one.seconds for one in self.of(method))
            rows.append(Row(f"clean.{method}.walked", seconds, "s"))
            rows.append(Row(f"clean.{method}.alarms", sum(count for count, _, _ in found.values()), "-"))
            for flag, (count, lasted, walks) in found.items():
                name = f"clean.{method}.{flag.lower()}"
                rows += [Row(f"{name}.alarms", count, "-"), Row(f"{name}.lasted", lasted, "s")]
                rows.append(Row(f"{name}.walks", walks, "-"))
        return rows

    def lines(self) -> list[str]:
        """For a terminal."""
        lines = []
        for method in self.methods:
            found, seconds = self.total(method), sum(one.seconds for one in self.of(method))
            total = sum(count for count, _, _ in found.values())
            lines += [f"{method}: {total} false alarms in {seconds / 60.0:.0f} minutes of clean walking", ""]
            if found:
                lines += [f"{'flag':<18}{'alarms':>8}{'lasted, s':>11}{'walks':>7}  most in", "─" * 79]
            for flag, (count, lasted, walks) in found.items():
                most = max(self.of(method), key=lambda one: one.count[flag])
                lines.append(f"{flag.lower():<18}{count:>8}{lasted:>11.2f}{walks:>7}  {most.walk} ({most.count[flag]})")
            lines.append("")
        if self.unwalkable:
            lines.append(f"the robot cannot walk {', '.join(self.unwalkable)}")
        return lines


def count_alarms(track: Track, log: Log) -> tuple[dict[str, int], dict[str, float]]:
    """How often each flag came up without cause, and for how long, s.

    A foot that truly slips, or that truly no foot is on the ground, is a cause.
    """
    late = track.time >= track.time[0] + SETTLED
    step = float(np.median(np.diff(track.time)))
    flight, slip = _events(log, len(track), step)
    causes = {Health.NO_MEASUREMENT: flight, Health.SLIP: slip, Health.REJECTED: slip | flight}
    count, lasted = {}, {}
    # Bits that have no name yet count as well.
    for bit in (*range(FIRST_LEG), *range(FIRST_LEG + MOST_LEGS, 32)):
        flag = Health(1 << bit)
        if flag == Health.STARTING:
            continue
        up = (track.health & np.uint32(flag) != 0) & late
        if flag in causes:
            up &= ~causes[flag]
        if flag == Health.NO_MEASUREMENT:
            up = longer_than(up, round(BRIEF / step))
        name = flag.name or f"BIT{bit}"
        count[name], lasted[name] = len(runs_of(up)), float(up.sum() * step)
    return count, lasted


def _events(log: Log, count: int, step: float) -> tuple[BoolArray, BoolArray]:
    """Where truly no foot is on the ground, and where one slips, each with the time around."""
    if log.contact is None or log.foot_vel_w is None:
        raise GaitError("false alarms are counted against true contacts: give a log with contact and foot_vel_w")
    contact = log.contact[:count]
    slips = contact & (np.linalg.norm(log.foot_vel_w[:count], axis=2) > SLIPS)
    reach = round(AROUND / step)
    return _around(np.asarray(~contact.any(1)), reach), _around(np.asarray(slips.any(1)), reach)


def _around(mask: BoolArray, reach: int) -> BoolArray:
    near = np.convolve(mask.astype(np.int64), np.ones(2 * reach + 1, dtype=np.int64), mode="same") > 0
    return np.asarray(near)


def count_walk(walk: Walk, method: str) -> Alarms:
    """One method on one walk."""
    name = known_method(method)
    track = follow(Estimator.load(walk.log.load_robot(), method), Feed.of(walk.log))
    count, lasted = count_alarms(track, walk.log)
    return Alarms(walk.course.removeprefix("clean-"), name, walk.log.duration, count, lasted)


def clean_hour(
    folder: Path,
    methods: Sequence[str] = METHODS,
    workers: int = 1,
    progress: Progress = lambda what, share: None,
    courses: Sequence[Course] | None = None,
) -> CleanHour:
    """Walk, as far as the folder does not have the walks yet, and count false alarms.

    Args:
        folder: where walks are kept; what is there is not simulated again.
        methods: names of `METHODS`.
        workers: processes that simulate.
        progress: told how far it is.
        courses: what to walk; all gaits and terrains by default.
    """
    found, unwalkable = [], []
    some = clean_courses() if courses is None else tuple(courses)
    for i, course in enumerate(some):
        progress(f"{course.gait} on {course.terrain}", i / len(some))
        # A folder remembers that a robot cannot walk there: it takes long to find out.
        mark = folder / f"{course.name}.unwalkable"
        try:
            if mark.is_file():
                raise GaitError("the robot falls")
            walks, _ = make_test_set([course], folder, workers)
        except GaitError as error:
            if "fall" not in str(error) and "fell" not in str(error):
                raise
            folder.mkdir(parents=True, exist_ok=True)
            mark.touch()
            unwalkable.append(f"{course.gait} on {course.terrain}")
            continue
        found += [count_walk(walk, method) for walk in walks for method in methods]
    return CleanHour(tuple(found), tuple(unwalkable))
