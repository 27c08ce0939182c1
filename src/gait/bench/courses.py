"""The test sets: walks of the benchmark twins, fixed here by seed and settings before any method was tried on them.

Version 1 is one well-kept robot (`twin.yaml`), version 2 another robot in every run, with the errors that were measured
on real ones (`twin2.yaml`). No training and no tuning may use these seeds. `gait bench tables` makes the recordings
once and keeps them in a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from gait.errors import GaitError
from gait.io import open_log
from gait.log import Log

FOLDERS = {1: Path("runs/bench/testset"), 2: Path("runs/bench/testset2")}
"""Where recordings are kept, by version of the test set."""
TERRAINS = ("rubber", "slippery", "debris", "circular")
"""Courses of Tables I and IV: trot on each."""
GAITS = ("trot", "bound", "pace", "pronk")
"""Courses of Tables II and III: each on rubber."""
UNSEEN = GAITS[1:]
"""What a training on trot does not show."""
TRANSITION = "trot-to-bound"


@dataclass(frozen=True)
class Course:
    """One line of the test set: a gait on a terrain, walked a few times."""

    name: str
    gait: str
    terrain: str
    seed: int
    runs: int = 3
    seconds: float = 60.0
    sensors: str = "twin"
    """Profile of the robot, `gait.sim.mismatch.PROFILES`."""
    policy: str = ""
    """ONNX file of the Go1 policy that walks in place of our controller, in its own scene with soft feet."""


def _courses(seed: int, sensors: str) -> tuple[Course, ...]:
    one = partial(Course, sensors=sensors)
    return (
        *(one(terrain, "trot", terrain, seed + i) for i, terrain in enumerate(TERRAINS)),
        *(one(gait, gait, "rubber", seed + 1000 + i) for i, gait in enumerate(GAITS)),
        one(TRANSITION, TRANSITION, "rubber", seed + 2000),
    )


COURSES = {1: _courses(61001, "twin"), 2: _courses(81001, "twin2")}
"""The test sets by version. Randomised like any collection (friction, gains, control rate, commands, pushes), with the
twin's body and sensors. A run in which the robot falls is replaced by the next draw, and counted."""
POLICY_COURSE = Course("policy", "trot", "flat", 84001, sensors="twin2")
"""Of version 2, where there is a policy: its file is no part of the package."""


def courses_of(twin: int, policy: str = "", quick: bool = False) -> tuple[Course, ...]:
    """The courses of a version of the test set.

    Args:
        twin: 1 or 2.
        policy: for version 2, the ONNX file of the Go1 policy; without it that course is left out.
        quick: the first seconds of something like it, to see that everything works: no figure of it means much.
    """
    if twin not in COURSES:
        raise GaitError(f"there is no twin {twin}: choose one of {', '.join(map(str, COURSES))}")
    courses = COURSES[twin]
    if policy and twin == 2:
        courses = (*courses, replace(POLICY_COURSE, policy=policy))
    return tuple(replace(course, runs=1, seconds=8.0) for course in courses) if quick else courses


@dataclass(frozen=True)
class Walk:
    """One recorded run of a course."""

    course: str
    run: int
    log: Log
    falls: int
    """Attempts that fell before this one."""

    @property
    def name(self) -> str:
        """Such as `rubber-0`."""
        return f"{self.course}-{self.run}"


Progress = Callable[[str, float], None]
"""Called with what is being done and the share that is done."""


def make_test_set(
    courses: Sequence[Course],
    folder: str | Path,
    workers: int = 2,
    progress: Progress = lambda what, share: None,
) -> tuple[list[Walk], str]:
    """The walks of the test set, and the SHA-256 of their files; those that the folder lacks are simulated first.

    Args:
        courses: what it consists of.
        folder: where recordings are kept.
        workers: processes that simulate.
        progress: called with the progress in words.
    """
    from gait.sim.collect import CollectionProgress as Collected
    from gait.sim.collect import collect
    from gait.sim.plan import CollectConfig
    from gait.sim.store import read_index

    walks, digest = [], hashlib.sha256()
    # Debris takes ten times as long as any other terrain.
    cost = np.array(
        [course.runs * course.seconds * (10.0 if course.terrain == "debris" else 1.0) for course in courses]
    )
    before = np.concatenate(([0.0], np.cumsum(cost))) / cost.sum()
    for i, course in enumerate(courses):
        shared = {name: getattr(course, name) for name in ("gait", "terrain", "seconds", "seed", "sensors", "policy")}
        config = CollectConfig(**shared, episodes=course.runs, model="go1" if course.policy else "")
        where = Path(folder) / f"{course.name}-{course.seconds:g}s"

        def tell(now: Collected, name: str = course.name, low: float = before[i], high: float = before[i + 1]) -> None:
            progress(f"simulating {name}", low + now.finished / now.total * (high - low))

        collect(config, where, workers, tell)
        for row in read_index(where)[: course.runs]:
            digest.update(row["sha256"].encode())
            walks.append(Walk(course.name, int(row["episode"]), open_log(where / row["file"]), int(row["falls"])))
    return walks, digest.hexdigest()
