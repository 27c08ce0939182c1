"""Writes docs/rivals.md: our methods and estimators of others on the benchmark twin and on recordings of real robots.

    python benchmarks/rivals.py [--write]         # everything, about ten minutes on two quiet cores with cached walks
    python benchmarks/rivals.py --only settings --write

The walks of the twin are those of `gait bench tables --twin 2`, simulated where the folder lacks them. Recordings of
real robots are those of real_logs.py; without them their table is left out. All that depends on figures is between the
marks of the page, sentences on who wins included: run it again after any change of weights or settings.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import real_logs
from sections import DOCS, markdown, paragraph, write_section

from gait.bench.contest import (
    ENTRANTS,
    FIGURES,
    LABELS,
    OFFLINE,
    QUICK_SECONDS,
    SECONDS,
    SMOOTHED,
    Contest,
    run_contest,
    run_entrant,
)
from gait.bench.courses import FOLDERS, courses_of, make_test_set
from gait.bench.rival_runs import RIVALS, front_of, settings_file, tuned
from gait.errors import GaitError

PARTS = ("walks", "real", "settings")
DIGITS = {"velocity": 4, "drift": 4, "nees": 1, "step": 1}
SMOOTHERS = ("gtsam-lag", "gtsam-lag-bias")
WHY = {
    "gtsam-ekf": "its footholds are points in the state with the small random walk that the search found, so what its"
    " feet hold it does not forget; our filters inflate contacts that seem to slip, and adapt their noise",
    "gtsam-iekf": "as gtsam-ekf, with a robust loss on contacts",
    "gtsam-lag": "a stance is one landmark that does not move, so that within its lag errors of single samples average"
    " out; where feet hold, that is true",
    "gtsam-lag-bias": "as gtsam-lag, with biases that may walk faster than ours",
    "ukf": "it takes velocities of the feet, each with the same large variance, and drops single feet that disagree",
    "iekf-learned": "contacts by a network do not depend on torques, whose thresholds our detection has to set for all"
    " robots and grounds alike",
}
"""What a rival does differently, where it wins a row."""


def cell(value: float, digits: int, best: bool = False) -> str:
    """A number as text; bold if it is the best."""
    text = f"{value:.{digits}f}" if math.isfinite(value) else "-"
    return f"**{text}**" if best else text


def table_of(lines: dict[str, list[float]], heads: Sequence[str], digits: Sequence[int], ranked: Sequence[bool]) -> str:
    """A line for each entrant, the best of a column bold; those that need later samples are not ranked."""
    best = [
        min((one[i] for name, one in lines.items() if name not in OFFLINE and math.isfinite(one[i])), default=math.nan)
        for i in range(len(heads) - 1)
    ]
    rows = []
    for name, values in lines.items():
        mine = [ranked[i] and value == best[i] and name not in OFFLINE for i, value in enumerate(values)]
        rows.append([f"`{name}`", *(cell(value, digits[i], mine[i]) for i, value in enumerate(values))])
    return markdown(heads, rows)


def summary(contest: Contest) -> str:
    """Means over all walks."""
    lines = {name: [contest.mean(name, figure) for figure in FIGURES] for name in contest.names}
    heads = ["estimator", *(f"{LABELS[one]}{', ' + unit if unit != '-' else ''}" for one, unit in FIGURES.items())]
    return table_of(lines, heads, [DIGITS[one] for one in FIGURES], [one != "nees" for one in FIGURES])


def by_course(contest: Contest, figure: str) -> str:
    """One figure, course by course."""
    lines = {name: [contest.mean(name, figure, course) for course in contest.courses] for name in contest.names}
    count, unit = len(contest.courses), FIGURES[figure]
    head = f"{LABELS[figure]}{', ' + unit if unit != '-' else ''}"
    return table_of(lines, [head, *contest.courses], [DIGITS[figure]] * count, [figure != "nees"] * count)


def verdict(contest: Contest) -> str:
    """Which rows rivals win, and what they do differently."""
    said = []
    for figure in ("velocity", "drift"):
        lost, all_courses = contest.lost(figure), len(contest.wins(figure))
        ours = all_courses - len(lost)
        said.append(
            f"{LABELS[figure].capitalize()}: one of ours has the smallest error on {ours} of {all_courses} courses."
        )
        for course, mine, rival in lost:
            a, b = (contest.mean(name, figure, course) for name in (rival, mine))
            said.append(f"On {course} `{rival}` wins, {a:.4f} {FIGURES[figure]} against {b:.4f} of `{mine}`.")
        winners = dict.fromkeys(rival for _, _, rival in lost)
        said += [f"What `{rival}` does differently: {WHY[rival]}." for rival in winners]
    return paragraph(" ".join(said))


def smoothers(contest: Contest) -> str:
    """Our smoother against gtsam's, and against our filter, course by course."""
    rows, lower, quicker = [], 0, 0
    for course in contest.courses:
        line = [course]
        for figure in ("velocity", "drift"):
            ours, filtered = (contest.mean(name, figure, course) for name in (SMOOTHED, "gait-legs"))
            line += [f"{ours:.4f}", f"{ours / filtered:.2f}"]
            others = [contest.mean(name, figure, course) for name in SMOOTHERS]
            line += [cell(value, 4) for value in others]
            lower += all(ours < value for value in others if math.isfinite(value))
        rows.append(line)
    steps = {name: contest.mean(name, "step") for name in (SMOOTHED, *SMOOTHERS)}
    quicker = all(steps[SMOOTHED] < steps[name] for name in SMOOTHERS if math.isfinite(steps[name]))
    heads = ["course", "velocity, m/s", "of the filter's", *SMOOTHERS, "5 s drift, m", "of the filter's", *SMOOTHERS]
    times = ", ".join(f"`{name}` {value:.0f} us" for name, value in steps.items() if math.isfinite(value))
    note = f"""Below both of gtsam's smoothers in {lower} of {2 * len(contest.courses)} cells; a sample takes {times}:
        ours is {"the quickest" if quicker else "not the quickest"}."""
    return f"{markdown(heads, rows)}\n\n{paragraph(note)}"


def real_table(names: Iterable[str]) -> str:
    """Recordings of real robots, by the protocol of real_logs.py."""
    try:
        recordings = [real_logs.a1_walk(), *real_logs.go2_walks()]
    except GaitError as error:
        return f"Recordings of real robots were left out: {error}."
    found: dict[str, dict[str, list[real_logs.Score]]] = {}
    notes = list[str]()
    for recording in recordings:
        front = front_of(recording.log, recording.robot, recording.start)
        group = "A1" if recording.name == "a1" else "Go2"
        for name in names:
            try:
                run = run_entrant(name, front, recording.start)
            except GaitError as error:
                notes.append(f"Left out {name} on the {group}: {error}.")
                continue
            found.setdefault(name, {}).setdefault(group, []).append(real_logs.score(recording, run.trajectory))
    lines = {}
    for name, groups in found.items():
        values = []
        for group in ("A1", "Go2"):
            for figure in ("velocity", "drift", "nees"):
                some = [getattr(one, figure) for one in groups.get(group, [])]
                known = [value for value in some if math.isfinite(value)]
                values.append(math.fsum(known) / len(known) if known else math.nan)
        lines[name] = values
    heads = [
        "estimator",
        *(f"{group}: {what}" for group in ("A1", "Go2") for what in ("velocity, m/s", "5 s drift, m", "NEES")),
    ]
    table = table_of(lines, heads, [3, 3, 1] * 2, [True, True, False] * 2)
    walks = sum(recording.name != "a1" for recording in recordings)
    note = (
        f"""One walk of an A1, {walks} of a Go2, at 200 Hz; means over walks; the Go2's accelerometer is a stand-in."""
    )
    best = {
        i: min((v[i], n) for n, v in lines.items() if n not in OFFLINE and math.isfinite(v[i])) for i in (0, 1, 3, 4)
    }
    wins = [f"{heads[i + 1]}: `{name}`, {value:.3f}" for i, (value, name) in best.items()]
    whys = dict.fromkeys(name for _, name in best.values() if name in RIVALS)
    said = [f"Smallest: {'; '.join(wins)}.", *(f"What `{name}` does differently: {WHY[name]}." for name in whys)]
    return "\n\n".join([table, paragraph(f"{note} {' '.join(said)} {' '.join(dict.fromkeys(notes))}")])


def settings_table() -> str:
    """The settings, and whether they were tuned."""
    searched = settings_file()
    rows = [
        [
            f"`{name}`",
            "searched" if name in searched else "not searched yet",
            ", ".join(f"{key} {value:g}" for key, value in asdict(one).items()),
        ]
        for name, one in tuned().items()
    ]
    return markdown(["rival", "", "settings"], rows)


def main() -> None:
    """Run, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the sections of docs/rivals.md")
    parser.add_argument(
        "--quick", action="store_true", help=f"the first walk of each course, {QUICK_SECONDS:g} s of it"
    )
    parser.add_argument("--only", choices=PARTS, help="one part of the page; all by default")
    args = parser.parse_args()
    for part in PARTS:
        if args.only not in (None, part):
            continue
        sections = {
            "walks": lambda: walk_sections(args.quick), "real": lambda: {"rivals-real": real_table(ENTRANTS)},
            "settings": lambda: {"rival-settings": settings_table()},
        }[part]()  # fmt: skip
        for name, text in sections.items():
            print(f"\n{text}", flush=True)
            if args.write:
                write_section(name, text, DOCS / "rivals.md")


def walk_sections(quick: bool) -> dict[str, str]:
    """The tables of twin 2."""
    walks, _ = make_test_set(courses_of(2), FOLDERS[2])
    walks = [walk for walk in walks if not (quick and walk.run)]
    seconds, began = QUICK_SECONDS if quick else SECONDS, time.monotonic()

    def say(what: str, share: float) -> None:
        print(f"{100 * share:3.0f} % {what}", flush=True)

    contest = run_contest(walks, seconds=seconds, progress=say)
    spent = (time.monotonic() - began) / 60.0
    count = len({one.walk for one in contest.figures})
    note = f"""The first {seconds:g} s of {count} walks of twin 2, another robot in each; {spent:.0f} minutes with two
        processes. Bold: the smallest, without `{SMOOTHED}`, which also knows the samples that follow."""
    parts = [paragraph(note), summary(contest)]
    parts += [by_course(contest, figure) for figure in ("velocity", "drift", "nees")]
    missing = contest.missing()
    parts += [verdict(contest), *([paragraph(" ".join(missing))] if missing else [])]
    return {"rivals": "\n\n".join(parts), "rival-smoothers": smoothers(contest)}


if __name__ == "__main__":
    main()
