"""The test set: walks of the benchmark twin, fixed here by seed and settings before any method was tried on them.

No training and no tuning may use these seeds. `gait bench tables` makes the recordings once and keeps them in a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gait.io import open_log
from gait.log import Log

FOLDER = Path("runs/bench/testset")
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


COURSES: tuple[Course, ...] = (
    *(Course(terrain, "trot", terrain, 61001 + i) for i, terrain in enumerate(TERRAINS)),
    *(Course(gait, gait, "rubber", 62001 + i) for i, gait in enumerate(GAITS)),
    Course(TRANSITION, TRANSITION, "rubber", 63001),
)
"""The test set. Randomised like any collection (friction, gains, control rate, commands, pushes), with the twin's body
and sensors. A run in which the robot falls is replaced by the next draw, and counted."""

QUICK: tuple[Course, ...] = tuple(replace(course, runs=1, seconds=8.0) for course in COURSES)
"""The first seconds of something like it, to see that everything works: no figure of it means much."""


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
    courses: Sequence[Course] = COURSES,
    folder: str | Path = FOLDER,
    workers: int = 2,
    progress: Progress = lambda what, share: None,
) -> tuple[list[Walk], str]:
    """The walks of the test set, and the SHA-256 of their files; those that the folder lacks are simulated first.

    Args:
        courses: what it consists of.
        folder: where recordings are kept.
        workers: processes that simulate.
        progress: told how far it is.
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
        shared = {name: getattr(course, name) for name in ("gait", "terrain", "seconds", "seed")}
        config = CollectConfig(**shared, episodes=course.runs, sensors="twin")
        where = Path(folder) / f"{course.name}-{course.seconds:g}s"

        def tell(now: Collected, name: str = course.name, low: float = before[i], high: float = before[i + 1]) -> None:
            progress(f"simulating {name}", low + now.finished / now.total * (high - low))

        collect(config, where, workers, tell)
        for row in read_index(where)[: course.runs]:
            digest.update(row["sha256"].encode())
            walks.append(Walk(course.name, int(row["episode"]), open_log(where / row["file"]), int(row["falls"])))
    return walks, digest.hexdigest()
