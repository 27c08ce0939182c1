"""Read a log, check whether it can be true, and correct what is certain if the user asks for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gait.errors import GaitError
from gait.io import read
from gait.io.format import Notes, Reading
from gait.log import Log
from gait.log.checks import check_log
from gait.log.finding import CheckFinding
from gait.read_options import ReadOptions, given_words
from gait.robot import Robot
from gait.rows import Row

_ROUNDS = 4
"""A correction may reveal what another error hid: legs are checked once the gyro is right."""


def read_checked(
    path: str | Path, options: ReadOptions, notes: Notes | None = None
) -> tuple[Reading, tuple[CheckFinding, ...]]:
    """Read whatever a file holds; of a Log also the sanity checks, after corrections if `options.fix` asks for them.

    Args:
        path: of the file.
        options: how to read it.
        notes: as `read` has it.
    """
    reading, fixed = read(path, options, notes), list[str]()
    findings = _findings(reading, options)
    for _ in range(_ROUNDS if options.fix else 0):
        sure = [one for one in findings if not one.ok and one.certain]
        corrected = _with(options, sure)
        if not sure or corrected == options:
            break
        options = corrected
        reading = read(path, options)
        fixed += [f"fixed: {one.corrected_words}" for one in sure]
        findings = _findings(reading, options)
    if options.fix and not fixed and isinstance(reading.record, Log):
        fixed.append("--fix: nothing that the checks are certain of had to be corrected")
    return replace(reading, notes=(*reading.notes, *fixed)), findings


def _findings(reading: Reading, options: ReadOptions) -> tuple[CheckFinding, ...]:
    if not isinstance(reading.record, Log):
        return ()
    robot = None
    if options.robot is not None:
        with contextlib.suppress(GaitError):
            robot = Robot.load(options.robot)
    return tuple(check_log(reading.record, robot, reading.robot))


def _with(options: ReadOptions, findings: Sequence[CheckFinding]) -> ReadOptions:
    """The options with those that correct the findings."""
    # A correction of legs may be two options: joints by their names first, then signs of those.
    words = [word for one in findings for word in re.findall(r"(--\S+)(?: ([^- ]\S*))?", one.fix)]
    for option, value in words:
        if option == "--scale":
            options = replace(options, scale=",".join(filter(None, (options.scale, value))))
        elif option == "--align-clock":
            options = replace(options, align_clock=True)
        elif option == "--joint-names" and options.joint_names is None:
            options = replace(options, joint_names=value, scale=_moved(options.scale, value))
        elif option == "--robot":
            options = replace(options, robot=value)
    return options


def _moved(scale: str | None, joint_names: str) -> str | None:
    """What is said of the units of joints, for the joints that they are taken for from now on."""
    names = dict(pair.split("=", 1) for pair in joint_names.split(","))
    items = [item.partition("=") for item in (scale or "").split(",")]
    parts = [(*name.partition("."), sign, unit) for name, sign, unit in items]
    return ",".join("".join((field, dot, names.get(part, part), *rest)) for field, dot, part, *rest in parts) or None


def correcting_words(findings: Sequence[CheckFinding], options: ReadOptions) -> list[str]:
    """Words of a command line that also correct what is wrong with a log; none if nothing is, or nobody knows how."""
    wrong = [one for one in findings if not one.ok and one.grave and one.fix]
    if wrong and all(one.certain for one in wrong):
        return [] if options.fix else [*given_words(options), "--fix"]
    corrected = _with(options, wrong)
    return given_words(corrected) if corrected != options else []


@dataclass(frozen=True)
class CheckedLogs:
    """Logs by name, and what there is to say about them."""

    logs: dict[str, Log]
    notes: list[str]
    wrong: list[Row]
    correction: list[str]
    """Words of a command line that correct the first one."""


def read_checked_logs(paths: Mapping[str, Path], options: ReadOptions) -> CheckedLogs:
    """Read and check logs; with several, each note begins with the name of its log.

    Args:
        paths: of the files, by the names of the logs.
        options: how to read them.
    """
    found = CheckedLogs({}, [], [], [])
    for name, path in paths.items():
        reading, findings = read_checked(path, options)
        found.logs[name] = reading.log
        where = name if len(paths) > 1 else ""
        said = [f"{where}: {note}" if where else note for note in reading.notes]
        found.notes.extend([*warnings_of(findings, options, where), *said])
        found.wrong.extend(wrong_rows(findings, where))
        if len(found.logs) == 1:
            found.correction.extend(correcting_words(findings, options))
    return found


def wrong_rows(findings: Sequence[CheckFinding], where: str = "") -> list[Row]:
    """What is wrong, as results; with the name of the log where there are several."""
    wrong = (one for one in findings if not one.ok and one.grave)
    return [Row(f"{where}{'.' if where else ''}check_{one.name}", one.words, "-") for one in wrong]


def warnings_of(findings: Sequence[CheckFinding], options: ReadOptions, where: str = "") -> list[str]:
    """What is wrong with a log, a line each, and whether `--fix` corrects it.

    Args:
        findings: of the checks.
        options: with which it was read.
        where: the name of the log, where there are several.
    """
    wrong = [one for one in findings if not one.ok and one.grave]
    lines = [f"LOOK {f'{where}: ' if where else ''}{one.name}: {one.words}" for one in wrong]
    if any(one.certain for one in wrong) and not options.fix:
        lines.append("The figures are wrong until this is corrected; --fix corrects what is certain.")
    return lines
