"""The search behind src/gait/bench/rival_settings.yaml: the noise of each rival, tuned on the walks of `iekf`.

    python benchmarks/tune_rivals.py [NAME ...]            # print what it finds
    python benchmarks/tune_rivals.py [NAME ...] --write    # and write the settings

Walks, error and search are those of tune_baselines.py, and each rival has the same budget of candidates, that of
`iekf`: 16 draws, three judged again, one refined, the five best validated. Contacts come from the detection of `iekf`,
which was tuned on these walks too. To bound the time of the slow ones, every fourth walk and its first 6 s are used, in
both halves. Every error goes to runs/tune-rivals/NAME.jsonl, so that the same command goes on with a search that was
stopped; `--fresh` begins again, as it must where walks, contacts or the rival changed. What was not tuned yet has the
settings of `gtsam-ekf`, or its defaults, and docs/rivals.md says so.
`iekf-learned` needs the weights of train_contacts.py first.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import tune_baselines as tuning
import yaml
from knobs import Knob, Measure, Point, search

from gait.bench.rival_runs import (
    RIVALS,
    SETTINGS,
    SETTINGS_FILE,
    Front,
    front_of,
    run_rival,
    settings_file,
    settings_of,
)
from gait.errors import GaitError
from gait.io.atomic import atomic_path
from gait.metrics import relative_error, velocity_rmse

JOURNALS = Path(__file__).parents[1] / "runs/tune-rivals"
_GTSAM = (Knob("kinematics", 1e-4, 0.05), Knob("integration", 1e-5, 0.01))
_FOOTHOLD, _HUBER = Knob("foothold", 1e-4, 0.3), Knob("huber", 0.3, 30.0)
KNOBS: dict[str, tuple[Knob, ...]] = {
    "gtsam-ekf": (*_GTSAM, _FOOTHOLD),
    "gtsam-iekf": (*_GTSAM, _FOOTHOLD, _HUBER),
    "gtsam-lag": (*_GTSAM, _HUBER),
    "gtsam-lag-bias": (*_GTSAM, _HUBER, Knob("bias", 1.0, 1000.0)),
    "ukf": (Knob("velocity", 0.01, 10.0), Knob("threshold", 2.0, 1000.0)),
    "iekf-learned": (Knob("contact", 1e-3, 3.0), Knob("kinematics", 5e-4, 0.05)),
}
STARTS: dict[str, Point] = {name: {"kinematics": 1e-3, "integration": 1e-4} for name in KNOBS if name[0] == "g"}
STARTS["gtsam-ekf"] |= {"foothold": 1e-3}
STARTS["gtsam-iekf"] |= {"foothold": 1e-3, "huber": 3.0}
STARTS["gtsam-lag"] |= {"huber": 3.0}
STARTS["gtsam-lag-bias"] |= {"huber": 3.0, "bias": 30.0}
STARTS["ukf"] = {"velocity": 0.3, "threshold": 20.0}
STARTS["iekf-learned"] = {"contact": 0.02, "kinematics": 0.005}


def error_of(name: str, point: Point, front: Front) -> float:
    """Geometric mean of velocity RMSE and position error over a window; infinite where the rival breaks down."""
    try:
        found = run_rival(name, front, "truth", settings_of(name, point)).trajectory
    except GaitError:
        return math.inf
    window = min(tuning.WINDOW, 0.5 * front.log.duration)
    pair = velocity_rmse(found, front.log).rmse, relative_error(found, front.log, window).position.rmse
    return tuning.geometric_mean(pair) if all(map(math.isfinite, pair)) else math.inf


class Journal:
    """Errors of a rival that are known already, by candidate and walk."""

    def __init__(self, name: str, fresh: bool) -> None:
        """Read what an earlier search has left, unless a fresh one is asked for."""
        JOURNALS.mkdir(parents=True, exist_ok=True)
        self._file, self._name = JOURNALS / f"{name}.jsonl", name
        if fresh:
            self._file.unlink(missing_ok=True)
        # The last line of a process that was killed may not be whole.
        whole = self._file.read_text("utf-8").rpartition("\n")[0] if self._file.exists() else ""
        self._known: dict[str, float] = dict(map(json.loads, whole.splitlines()))
        self._file.write_text("".join(json.dumps(pair) + "\n" for pair in self._known.items()), "utf-8")

    def error(self, point: Point, walk: str, front: Front) -> float:
        """Of a candidate on a walk; worked out if it is not known."""
        key = f"{walk} {json.dumps(point, sort_keys=True)}"
        if key not in self._known:
            self._known[key] = error_of(self._name, point, front)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self._known[key]]) + "\n")
        return self._known[key]


def measure_on(journal: Journal, half: str, fronts: Sequence[Front], every: int = 1) -> Measure:
    """The error of a point on these walks, or on some of them."""

    def measure(point: Point) -> float:
        chosen = list(enumerate(fronts))[::every]
        errors = [journal.error(point, f"{half} {i}", front) for i, front in chosen]
        return tuning.geometric_mean(errors) if all(map(math.isfinite, errors)) else math.inf

    return measure


def tune(name: str, searched: Sequence[Front], held: Sequence[Front], fresh: bool = False) -> Point:
    """The best settings: of the best in the search, the one with the lowest error in validation."""
    journal = Journal(name, fresh)
    quick, full = (measure_on(journal, "search", searched, every) for every in (2, 1))
    validate = measure_on(journal, "validation", held)
    found = search(KNOBS[name], [STARTS[name]], quick, full, tuning.SEED, tuning.BUDGET)
    judged = [(validate(point), i) for i, (_, point) in enumerate(found[: tuning.FINALISTS])]
    for validation, i in judged:
        print(f"{name}: search {found[i][0]:.5f}, validation {validation:.5f}: {found[i][1]}", flush=True)
    return found[min(judged)[1]][1]


def fronts_of(half: Sequence[tuning.Episode]) -> list[Front]:
    """Every fourth walk, its first seconds."""
    part = [replace(episode, log=episode.log.slice(None, tuning.QUICK_SECONDS)) for episode in half[::4]]
    return [front_of(episode.log, episode.robot, "truth") for episode in part]


def main() -> None:
    """Search, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RIVALS)}; all by default")
    parser.add_argument("--write", action="store_true", help="write the settings that the package reads")
    parser.add_argument("--fresh", action="store_true", help="begin again, without what an earlier search has left")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in RIVALS]:
        raise GaitError(f"there is no rival {unknown[0]}: choose some of {', '.join(RIVALS)}")
    searched, held = map(fronts_of, tuning.load_episodes())
    for name in args.names or RIVALS:
        began = time.process_time()
        best = tune(name, searched, held, args.fresh)
        print(f"{name}: {best}, {(time.process_time() - began) / 60.0:.1f} min of one core", flush=True)
        if args.write:
            write(name, best)


def write(name: str, best: Point) -> None:
    """Put the settings of one rival into the file."""
    known = {rival: asdict(settings) for rival, settings in settings_file().items()}
    tree = known | {name: asdict(settings_of(name, best))}
    head = "# The rivals of `gait bench rivals`. Written by `python benchmarks/tune_rivals.py --write`.\n"
    with atomic_path(SETTINGS_FILE) as temporary:
        temporary.write_text(
            head + yaml.safe_dump({key: tree[key] for key in SETTINGS if key in tree}, sort_keys=False), "utf-8"
        )


if __name__ == "__main__":
    main()
