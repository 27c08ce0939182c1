"""Measurements for `Estimator.correct` out of ROS messages: Odometry, poses with and without covariance, NavSatFix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gait.arrays import AnyArray, Array
from gait.errors import GaitError
from gait.io import clock
from gait.io.format import Notes
from gait.io.ros.bag import named_topic
from gait.io.ros.containers import scan
from gait.io.ros.decode import decode
from gait.io.ros.definitions import NAV_SAT, ODOMETRY, POSE, POSE_COV
from gait.io.ros.messages import roles_of

TYPES = {kind.rpartition("/")[2]: kind for kind in (ODOMETRY, POSE, POSE_COV, NAV_SAT)}
"""Types that can be fused, by the short name that stands behind a topic: /fix:NavSatFix."""
LATEST = 0.5
"""Seconds between stamp and recording beyond which the two are of different clocks."""
FIX_STD = (1.0, 1.0, 2.0)
"""Standard deviation of a fix that comes without, m."""
_A, _E2 = 6378137.0, 6.69437999014e-3


class Fused(NamedTuple):
    """One measurement, as `Estimator.correct` takes it."""

    t: float
    """Of the measurement, s."""
    arrival: float
    """When it was there, s, on the same clock."""
    name: str
    kind: str
    value: Array
    noise: Array | None


def topic_and_type(word: str) -> tuple[str, str]:
    """A topic and the type of its messages: `/lidar/odom`, or with a type `/fix:NavSatFix`."""
    topic, _, short = word.partition(":")
    if short and short not in TYPES:
        raise GaitError(f"{word}: messages of type {short} cannot be fused, choose one of {', '.join(TYPES)}")
    return topic, TYPES[short or "Odometry"]


@dataclass
class FixOrigin:
    """East, north, up of the first good fix."""

    ecef: Array | None = None
    R: Array | None = None

    def enu(self, fix: Array) -> Array:
        """Latitude and longitude, degrees, and altitude, m, as metres from the first one."""
        lat, lon = np.radians(fix[:2])
        n = _A / np.sqrt(1.0 - _E2 * np.sin(lat) ** 2)
        flat, h = np.array([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon)]), fix[2]
        ecef = np.array([*((n + h) * flat), (n * (1.0 - _E2) + h) * np.sin(lat)])
        if self.ecef is None or self.R is None:
            s, c = np.sin([lat, lon]), np.cos([lat, lon])
            east, up = np.array([-s[1], c[1], 0.0]), np.array([*flat, s[0]])
            self.ecef, self.R = ecef, np.array([east, np.cross(up, east), up])
        return np.asarray(self.R @ (ecef - self.ecef))


def measurement(fields: Mapping[str, AnyArray], origin: FixOrigin) -> tuple[str, Array, Array | None] | None:
    """Kind, value and covariance of one message's fields; None of a receiver without a fix.

    A covariance of zeros, or with a diagonal below zero, is one that nobody filled in.
    """
    given = fields.get("cov")
    if "fix" in fields:
        if int(np.ravel(fields["status"])[0]) < 0 or not np.isfinite(fields["fix"]).all():
            return None
        known = given is not None and int(np.ravel(fields["known"])[0]) > 0
        noise = np.asarray(given).reshape(3, 3) if known else np.diag(np.square(FIX_STD))
        return "position", origin.enu(np.asarray(fields["fix"], dtype=np.float64)), noise
    pose = np.concatenate([fields["pos_w"], fields["quat_wb_wxyz"]]).astype(np.float64)
    cov = None if given is None else np.asarray(given).reshape(6, 6)
    return "pose", pose, cov if cov is not None and (np.diag(cov) > 0.0).all() else None


def read_fused(path: Path, words: Sequence[str], t: Array) -> list[Fused]:
    """The measurements of some topics of a bag, in the order of their arrival.

    Args:
        path: the bag that the log was read from.
        words: topics, with or without a type.
        t: stamps of the log, s.
    """
    notes, found = Notes(), list[Fused]()
    if not path.is_dir() and path.suffix in (".npz", ".csv", ".tum", ".h5", ".hdf5"):
        raise GaitError(f"{path} has no topics to fuse: --fuse takes a topic of a bag or an MCAP file")
    topics = [topic for topic in scan(path, lambda kind: "fuse" in roles_of(kind), notes) if topic.stamps]
    for word in words:
        topic = named_topic(topic_and_type(word)[0], "fuse", topics, str(path))
        rows = decode(topic, "fuse", (), None, notes)
        recorded = clock.from_ns(rows.recorded)
        stamps = recorded if rows.header is None else clock.from_ns(rows.header)
        if not _overlap(stamps, t):
            stamps = recorded
        if not _overlap(stamps, t):
            raise GaitError(
                f"{topic.name} and the samples do not overlap in time ({stamps[0]:.3f} to {stamps[-1]:.3f} s and"
                f" {t[0]:.3f} to {t[-1]:.3f} s): record them with one clock"
            )
        late = (recorded >= stamps) & (recorded - stamps < LATEST)
        origin = FixOrigin()
        for k, stamp in enumerate(stamps):
            one = measurement({name: array[k] for name, array in rows.arrays.items()}, origin)
            if one is not None:
                found.append(Fused(float(stamp), float(recorded[k] if late[k] else stamp), topic.name, *one))
    return sorted(found, key=lambda one: one.arrival)


def _overlap(stamps: Array, t: Array) -> bool:
    return bool(((stamps >= t[0]) & (stamps <= t[-1])).any())


def due(waiting: list[Fused], until: float) -> Iterator[Fused]:
    """Take what has arrived by a time out of a list."""
    while waiting and waiting[0].arrival <= until:
        yield waiting.pop(0)
