"""Read a log, check whether it can be true, and correct what is certain if the user asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gait.errors import GaitError
from gait.io import read
from gait.io.format import Notes, Reading
from gait.log import Log
from gait.log.checks import check_log
from gait.log.finding import CheckFinding
from gait.read_options import ReadOptions
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
    return replace(reading, notes=(*reading.notes, *fixed)), findings


def _findings(reading: Reading, options: ReadOptions) -> tuple[CheckFinding, ...]:
    if not isinstance(reading.record, Log):
        return ()
    robot = None
    if options.robot is not None:
        with contextlib.suppress(GaitError):
            robot = Robot.load(options.robot)
    return tuple(check_log(reading.record, robot))


def _with(options: ReadOptions, findings: Sequence[CheckFinding]) -> ReadOptions:
    """The options with those that correct the findings."""
    for one in findings:
        option, _, value = one.fix.partition(" ")
        if option == "--scale":
            options = replace(options, scale=",".join(filter(None, (options.scale, value))))
        elif option == "--align-clock":
            options = replace(options, align_clock=True)
    return options


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
