"""What every method makes of every fault: docs/faults.md.

    python benchmarks/faults.py                          # faults, and false alarms in an hour of clean walking
    python benchmarks/faults.py --write
    python benchmarks/faults.py --sections long --write  # a day of samples, about half an hour; --hours for less

`gait bench faults` prints the same measurements. Walks are simulated once and kept under runs/bench/faults.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sections import DOCS, markdown, write_section

from gait.bench.faults.fault import Fault
from gait.bench.faults.fault_report import fault_report
from gait.bench.faults.fault_scores import FaultScore, min_share
from gait.bench.faults.fault_table import figure, letters, percent, tally
from gait.bench.faults.run_faults import COURSE, FAULTS, FaultRow
from gait.methods import BUILT_IN

PAGE = DOCS / "faults.md"
FOLDER = Path(__file__).parents[1] / "runs/bench/faults"
OURS = ("gait-legs", "iekf")
"""Methods that have to pass; the others run on the sample log alone."""
WALKS = ("trot", "bound", "pace", "pronk")
WHEN = {"while": "for {:g} s", "on": "lasting", "whole": "whole log"}


def expectation(fault: Fault) -> str:
    """What health should say."""
    if fault.hidden:
        return "cannot be told"
    return "nothing" if fault.quiet else f"`{fault.flag}`" if fault.flag else "nothing needed"


def when(fault: Fault) -> str:
    """How long a fault acts."""
    if fault.lasts == "while" and fault.course and fault.course != "stand":
        return "as it happens"
    return "at once" if fault.seconds == 0.0 else WHEN[fault.lasts].format(fault.seconds)


def fault_list() -> str:
    """The faults by id."""
    lines = [["id", "fault", "acts", "health should say"], ["---"] * 4]
    lines += [[f"`{one.id}`", one.words, when(one), expectation(one)] for one in FAULTS]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cells(score: FaultScore) -> list[str]:
    """Figures of one method under one fault."""
    numbers = (score.worst_during, score.worst_after, score.recovery, score.detection)
    shares = [min_share(score.within_during[name], score.within_after[name]) for name in score.within_during]
    verdict = "**ok**" if score.verdict == "ok" else f"({score.verdict})" if score.fault.hidden else score.verdict
    return [*map(figure, numbers), *map(percent, shares), verdict]


def method_section(rows: Sequence[FaultRow], method: str) -> str:
    """Figures on the sample log or the fault's own course, and verdicts on each walk."""
    walked = {(row.log, row.fault.id): row.scores[method] for row in rows if method in row.scores}
    lines = []
    for fault in FAULTS:
        log = COURSE if fault.course else "sample"
        own = [letters(walked[walk, fault.id]) if (walk, fault.id) in walked else "" for walk in WALKS]
        if (log, fault.id) in walked:
            lines.append([f"`{fault.id}`", *cells(walked[log, fault.id]), *own])
        elif any(own):
            lines.append([f"`{fault.id}`", *[""] * 7, "log too short", *own])
    heads = ["fault", "during", "after", "right", "flagged", "vel", "yaw", "pos", "sample log", *WALKS]
    logs = list(dict.fromkeys(row.log for row in rows))
    tallies = [f"- {log}: {tally([row for row in rows if row.log == log], method)}" for log in logs]
    return "\n".join([f"### {method}", "", *tallies, "", markdown(heads, lines)])


def others_section(rows: Sequence[FaultRow]) -> str:
    """Verdicts of all methods on the sample log, in letters."""
    lines = [[f"`{row.fault.id}`", *(letters(row.scores[one]) for one in BUILT_IN)] for row in rows if row.scores]
    return "\n".join(["### Every method, sample log", "", markdown(["fault", *BUILT_IN], lines)])


def hidden_section() -> str:
    """Faults that no estimator can tell from the data."""
    lines = [f"- `{fault.id}`, {fault.words}: {fault.hidden}." for fault in FAULTS if fault.hidden]
    return "\n".join(["### Not to be told from the data", "", *lines])


def faults_section() -> str:
    """All tables of faults."""
    ours = fault_report(("sample", "walks"), OURS, folder=FOLDER).faults
    every = fault_report(("sample",), folder=FOLDER).faults
    parts = [*(method_section(ours, method) for method in OURS), others_section(every), hidden_section()]
    return "\n\n".join(parts)


def alarms_section() -> str:
    """False alarms in an hour."""
    hour = fault_report(methods=OURS, only=("clean",), folder=FOLDER).clean
    assert hour is not None
    lines = []
    for method in OURS:
        minutes, found = sum(one.seconds for one in hour.of(method)) / 60.0, hour.total(method)
        for flag, (count, lasted, walks) in found.items() or {"none": (0, 0.0, 0)}.items():
            lines.append([method, f"{minutes:.0f}", flag.lower(), f"{count}", f"{lasted:.2f}", f"{walks}"])
    heads = ["method", "minutes", "flag", "false alarms", "lasted, s", "walks with any"]
    text = markdown(heads, lines)
    if hour.unwalkable:
        text += f"\n\nThe simulated robot cannot walk {', '.join(hour.unwalkable)}."
    return text


def long_section(hours: float) -> str:
    """A day of samples."""
    runs = fault_report(methods=OURS, only=("long",), folder=FOLDER, hours=hours).long
    heads = ["method", "hours", "samples", "memory, MB", "`update` unlike `run`", "NaN", "quaternion", "error, m/s"]
    lines = []
    for one in runs:
        numbers = [f"{one.hours:.1f}", f"{one.samples}", f"{one.memory_growth:+.1f}", f"{one.differing}"]
        errors = f"{one.first_rmse:.4f}, {one.last_rmse:.4f}"
        lines.append([one.method, *numbers, f"{one.not_finite}", f"{one.orthonormality:.0e}", errors])
    return markdown(heads, lines)


SECTIONS = {"list": fault_list, "faults": faults_section, "alarms": alarms_section}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=(*SECTIONS, "long"), default=tuple(SECTIONS))
    parser.add_argument("--hours", type=float, default=24.0, help="of the section long")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/faults.md")
    args = parser.parse_args()
    for name in args.sections:
        text = long_section(args.hours) if name == "long" else SECTIONS[name]()
        print(text)
        if args.write:
            write_section(f"faults-{name}", text, PAGE)


if __name__ == "__main__":
    main()
