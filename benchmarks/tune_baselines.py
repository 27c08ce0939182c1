"""The search behind src/gait/baselines.yaml: the settings of `iekf` and `iekf-sr`, tuned on simulated walks.

    python benchmarks/tune_baselines.py              # print what it finds
    python benchmarks/tune_baselines.py --write      # and write the settings and the section of docs/filters.md
    python benchmarks/tune_baselines.py --measure    # only measure the settings that the package has

Walks are of random robots with contacts that give way (`gait sim --random-robots --varied`; on slippery ground, where
those fall, of the Go1), from a seed of their own: neither training nor held-out walks, nor the sample log, nor the
benchmark twin. Their sensors are exact, and a filter tuned on them would trust any robot's too much. So each log has
faults of its own (`gait.train.faults`): half of them those of a robot in good order, half of them all that real robots
were seen to have. Half of the walks are searched on, the other half chooses among the five best. The error is the
geometric mean of the velocity RMSE in the body frame and the position error over 5 s, and over walks the geometric mean
of that, so that neither the easy nor the hard ones decide alone. Noise of the IMU, prior and options are every method's
alike and are not searched.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import yaml
from knobs import Budget, Knob, Measure, Point, rounded, search
from sections import DOCS, markdown, paragraph, write_section

from gait.engine import Engine
from gait.estimator import Estimator
from gait.io import open_log
from gait.io.atomic import atomic_path
from gait.log.log import Log
from gait.metrics import relative_error, velocity_rmse
from gait.parameters import BASELINES, BASELINES_FILE, ContactAided, ContactDetection, SlipRejection
from gait.robot import Robot
from gait.rows import Row, rows_to_json
from gait.train.faults import MILD, FaultRanges, with_faults

RUNS = Path(__file__).parents[1] / "runs/tune-varied"
SEED = 31001
WALKS = {
    "flat": ("trot", "flat", 8), "walk": ("walk", "flat", 4), "bound": ("bound", "flat", 4),
    "pace": ("pace", "flat", 4), "pronk": ("pronk", "flat", 4), "rough": ("trot", "rough", 8),
    "slippery": ("trot", "slippery", 8), "ice": ("trot", "ice", 8),
}  # fmt: skip
"""Gait, terrain and number of episodes."""
SECONDS, QUICK_SECONDS = 10.0, 6.0
HALVES = ("search", "validation")
ERRORS = {"velocity": "m/s", "position": "m"}
WINDOW = 5.0
"""Seconds over which the position error is taken."""
FINALISTS = 5
BUDGET = Budget(draws=16, kept=3, refined=1, factors=(1.5,), sweeps=1)
"""Of each method."""

KNOBS = (
    Knob("touch_down", 0.02, 0.5),
    # As a share of touch_down, so that there is never a force that both starts and ends a contact.
    Knob("lift_off_share", 0.1, 1.0),
    Knob("smoothing", 0.001, 0.03),
    Knob("touch_down_dwell", 0.001, 0.05),
    # One millisecond is no dwell at 500 Hz.
    Knob("lift_off_dwell", 0.001, 0.02),
    Knob("contact", 1e-3, 3.0),
    Knob("kinematics", 5e-4, 0.05),
)
SLIP_KNOBS = (Knob("slip_speed", 0.01, 0.5), Knob("slip_inflation", 1.5, 100.0))
BEFORE = {"iekf": ContactAided(), "iekf-sr": ContactAided(slip=SlipRejection(enabled=True))}
"""The defaults, which were picked by hand."""
EARLIER = ContactAided(
    detection=ContactDetection(0.2, 0.098, 0.0028, 0.015, 0.0042), contact=0.012, kinematics=0.0005
)  # fmt: skip
"""What a longer search found on walks of one robot with few faults: another start."""


def point_of(params: ContactAided) -> Point:
    """Where the search begins."""
    d, s = params.detection, params.slip
    point = {
        "touch_down": d.touch_down,
        "lift_off_share": d.lift_off / d.touch_down,
        "smoothing": d.smoothing,
        "touch_down_dwell": max(d.touch_down_dwell, 0.001),
        "lift_off_dwell": max(d.lift_off_dwell, 0.001),
        "contact": params.contact,
        "kinematics": params.kinematics,
    }
    return {**point, "slip_speed": s.speed, "slip_inflation": s.inflation} if s.enabled else point


def params_of(point: Point) -> ContactAided:
    """The filter's settings; slip rejection is on where the point says how."""
    slip = SlipRejection()
    if "slip_speed" in point:
        slip = SlipRejection(True, point["slip_speed"], point["slip_inflation"])
    detection = ContactDetection(
        touch_down=point["touch_down"],
        lift_off=rounded(point["touch_down"] * point["lift_off_share"]),
        smoothing=point["smoothing"],
        touch_down_dwell=point["touch_down_dwell"],
        lift_off_dwell=point["lift_off_dwell"],
    )
    return ContactAided(detection=detection, slip=slip, contact=point["contact"], kinematics=point["kinematics"])


@dataclass(frozen=True)
class Episode:
    """A recording to tune on."""

    kind: str
    """Of `WALKS`."""
    log: Log
    robot: Robot


Halves = tuple[list[Episode], list[Episode]]
"""What is searched on, and what validates."""


def load_episodes(folder: Path = RUNS) -> Halves:
    """The walks with faults, recorded first where the folder lacks them."""
    from gait.sim.collect import collect
    from gait.sim.plan import CollectConfig
    from gait.sim.store import read_index, robot_of_episode

    halves: Halves = ([], [])
    for number, (kind, (gait, terrain, count)) in enumerate(WALKS.items()):
        config = CollectConfig(
            gait, terrain, episodes=count, seconds=SECONDS, seed=SEED, sensors="exact", varied=True,
            random_robots=terrain != "slippery",
        )  # fmt: skip
        collect(config, folder / kind)
        for i, row in enumerate(read_index(folder / kind)[:count]):
            path, rng = folder / kind / row["file"], np.random.default_rng([SEED, number, i])
            log = open_log(path)
            # Both halves have as many of either kind of faults.
            found = with_faults(log, robot_of_episode(path, log), rng, MILD if i // 2 % 2 == 0 else FaultRanges())
            halves[i % 2].append(Episode(kind, found.log, found.robot))
    return halves


def errors_of(params: ContactAided, episodes: Iterable[Episode]) -> list[tuple[float, float]]:
    """Velocity RMSE, m/s, and position error over 5 s, m, of each episode; infinite where the filter breaks down."""
    errors = []
    for episode in episodes:
        log = episode.log
        found = Estimator(episode.robot, Engine(episode.robot, contacts=params), "iekf").run(log, start="truth")
        window = min(WINDOW, 0.5 * log.duration)
        pair = velocity_rmse(found, log).rmse, relative_error(found, log, window).position.rmse
        errors.append(pair if all(map(math.isfinite, pair)) else (math.inf, math.inf))
    return errors


def geometric_mean(errors: Sequence[float]) -> float:
    """Their geometric mean."""
    return math.exp(math.fsum(map(math.log, errors)) / len(errors))


def measure_on(episodes: Sequence[Episode]) -> Measure:
    """The error of a point on these episodes."""
    return lambda point: geometric_mean([x for pair in errors_of(params_of(point), episodes) for x in pair])


def tune(name: str, halves: Halves, around: Point | None = None, budget: Budget = BUDGET) -> Point:
    """The best settings of a method: of the best in the search, the one with the lowest error in validation.

    Args:
        name: `iekf` or `iekf-sr`.
        halves: the episodes.
        around: settings of the method without slip rejection, for the one with it.
        budget: how long to look.
    """
    start = point_of(BEFORE[name])
    knobs = (*KNOBS, *SLIP_KNOBS) if "slip_speed" in start else KNOBS
    searched, held = halves
    # Every second episode, and the first half of each: a quarter of the time.
    part = [replace(episode, log=episode.log.slice(None, QUICK_SECONDS)) for episode in searched[::2]]
    starts = [start, *({**start, **known} for known in (point_of(EARLIER), around) if known is not None)]
    quick, full = measure_on(part), measure_on(searched)
    found = search(knobs, starts, quick, full, SEED, budget, around)
    validate = measure_on(held)
    judged = [(validate(point), i) for i, (_, point) in enumerate(found[:FINALISTS])]
    for validation, i in judged:
        print(f"{name}: search {found[i][0]:.5f}, validation {validation:.5f}: {found[i][1]}", flush=True)
    return found[min(judged)[1]][1]


def rows_of(tuned: Mapping[str, ContactAided], halves: Halves) -> list[Row]:
    """Geometric means of both errors by method, before and after, half and kind of walk."""
    rows = []
    for name, after in tuned.items():
        for when, params in (("before", BEFORE[name]), ("after", after)):
            for half, episodes in zip(HALVES, halves, strict=True):
                errors = errors_of(params, episodes)
                for kind in (*WALKS, "all"):
                    chosen = [x for x, e in zip(errors, episodes, strict=True) if kind in (e.kind, "all")]
                    for (what, unit), values in zip(ERRORS.items(), zip(*chosen, strict=True), strict=True):
                        rows.append(Row(f"{what}.{name}.{when}.{half}.{kind}", geometric_mean(values), unit))
    return rows


def errors_as_markdown(rows: Sequence[Row]) -> str:
    """A table for each error: one line for each method and half, before and after."""
    values = {row.name: row.value for row in rows}
    names = dict.fromkeys(row.name.split(".")[1] for row in rows)
    tables = []
    for what, unit in ERRORS.items():
        lines = []
        for name, half, when in itertools.product(names, HALVES, ("before", "after")):
            cells = [values[f"{what}.{name}.{when}.{half}.{kind}"] for kind in (*WALKS, "all")]
            lines.append([f"`{name}`, {half}", when, *(f"{cell:.4f}" for cell in cells)])
        tables.append(markdown([f"{what} error, {unit}", "settings", *WALKS, "all"], lines))
    return "\n\n".join(tables)


def settings_of(params: ContactAided) -> dict[str, object]:
    """What the search sets, as the YAML file says it."""
    slip = asdict(params.slip) if params.slip.enabled else {"enabled": False}
    rest = {"contact": params.contact, "kinematics": params.kinematics, "rolling": params.rolling}
    return {"detection": asdict(params.detection), "slip": slip, **rest}


def settings_as_markdown(tuned: Mapping[str, ContactAided]) -> str:
    """The settings before, and those of each method after."""

    def flat(params: ContactAided) -> dict[str, float]:
        found = {f"detection.{name}": value for name, value in asdict(params.detection).items()}
        found |= {f"slip.{name}": value for name, value in asdict(params.slip).items()}
        return {**found, "contact": params.contact, "kinematics": params.kinematics}

    columns = [flat(BEFORE["iekf"]), *map(flat, tuned.values())]
    lines = []
    for name in columns[0]:
        if name != "slip.enabled":
            off = [name.startswith("slip") and not column["slip.enabled"] for column in columns]
            # The start of slip rejection is known though the first column does not use it.
            off[0] = False
            cells = ["-" if no else f"{column[name]:g}" for no, column in zip(off, columns, strict=True)]
            lines.append([f"`{name}`", *cells])
    return markdown(["", "before", *(f"`{name}`" for name in tuned)], lines)


def write_settings(tuned: Mapping[str, ContactAided], path: Path = BASELINES_FILE) -> None:
    """The YAML file that the package reads."""
    count = sum(each for *_, each in WALKS.values())
    head = (
        "# The model-based methods. Written by `python benchmarks/tune_baselines.py --write`, which tuned them on\n"
        f"# {count} walks of {SECONDS:g} s of random robots with faults, seed {SEED}\n"
        "# (docs/filters.md). What is not here stands in parameters.py; IMU noise and prior are every method's.\n"
    )
    tree = {name: settings_of(params) for name, params in tuned.items()}
    with atomic_path(path) as temporary:
        temporary.write_text(head + yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write baselines.yaml and the section of docs/filters.md")
    parser.add_argument("--measure", action="store_true", help="do not search: measure the settings of the package")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    args = parser.parse_args()
    halves = load_episodes()
    began = time.process_time()
    tuned = dict(BASELINES)
    if not args.measure:
        plain = tune("iekf", halves)
        tuned = {"iekf": params_of(plain), "iekf-sr": params_of(tune("iekf-sr", halves, plain))}
        print(f"searched for {(time.process_time() - began) / 60.0:.1f} min of one core", flush=True)
        if args.write:
            write_settings(tuned)
    rows = rows_of(tuned, halves)
    tables = f"{settings_as_markdown(tuned)}\n\n{errors_as_markdown(rows)}"
    print(rows_to_json(rows) if args.json else tables)
    if args.write:
        counts = ", ".join(f"{count} {kind}" for kind, (*_, count) in WALKS.items())
        note = f"""Walks of {SECONDS:g} s: {counts}; every second one for validation. Errors are geometric means over
            walks of the velocity RMSE in the body frame and of the position error over 5 s, started from the truth."""
        write_section("tuning", f"{paragraph(note)}\n\n{tables}", DOCS / "filters.md")


if __name__ == "__main__":
    main()
