"""`gait calibrate`: the errors of a robot from its walks, and a description with them put right."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, out_folder, refuse_overwriting, share_bar
from gait.errors import GaitError
from gait.read_options import ReadOptions, given_words
from gait.rows import Row

if TYPE_CHECKING:
    from gait.calibrate import Calibrated, ErrorEstimate

UNITS = {"rad": (57.29577951308232, "deg"), "-": (100.0, "%"), "s": (1000.0, "ms"), "rad/s": (1000.0, "mrad/s")}
"""Units of the table: factor and name."""
DIGITS = {"deg": 2, "%": 2, "ms": 2, "mrad/s": 2, "m/s^2": 3}


@dataclass(frozen=True)
class CalibrateOptions(Common, ReadOptions):
    """Find joint zeros, link lengths, latency and IMU errors of a robot from its walks; see docs/calibrate.md.

    Each comes with its standard deviation and with whether the walks make it observable. What is observable of zeros,
    lengths, mounting and latency is written to a robot file. Walk for half a minute or longer, with turns to both
    sides and changes of speed, on ground that does not slip; ground truth helps and is not needed.
    """

    logs: Positional[tuple[Path, ...]]
    """Walks of one robot, in any format that gait reads."""
    no_truth: bool = False
    """Leave ground truth aside."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """The robot file to write; robot.yaml in runs/calibrate/STAMP by default."""
    force: bool = False
    """Write over a file that is there."""


def run(options: CalibrateOptions) -> Outcome:
    """Read, calibrate, write and print."""
    if not options.logs:
        raise GaitError("give the logs of one or more walks: gait calibrate LOG...")
    if options.out is not None and options.out.suffix not in (".yaml", ".yml"):
        raise GaitError(f"{options.out} does not end in .yaml: rename it")
    refuse_overwriting([options.out] if options.out is not None else [], options.force)
    with share_bar(options.interactive) as progress:
        from gait.calibrate import calibrate
        from gait.io.atomic import atomic_path
        from gait.io.checked import read_checked_logs
        from gait.robot import Robot

        progress("reading the logs", 0.0)
        read = read_checked_logs({str(path): path for path in options.logs}, options)
        logs = list(read.logs.values())
        names = {log.robot for log in logs}
        if len(names) > 1:
            raise GaitError(f"the logs are of several robots, {', '.join(sorted(names))}: give those of one")
        robot = Robot.load(options.robot) if options.robot else logs[0].load_robot()
        progress("calibrating", 0.1)
        found = calibrate(
            logs, robot, truth=False if options.no_truth else None,
            progress=lambda share: progress("calibrating", 0.1 + 0.9 * share),
        )  # fmt: skip
        out = options.out or out_folder(None, "calibrate") / "robot.yaml"
        with atomic_path(out) as temporary:
            temporary.write_text(_description(options, found), encoding="utf-8")
    words = given_words(replace(options, robot=str(out)))
    following = ["gait", "run", str(options.logs[0]), *words]
    if read.correction:
        following = ["gait", "calibrate", *map(str, options.logs), *read.correction]
    title = f"{robot.name}: {found.seconds:.0f} s of walking, {'with' if found.truth else 'without'} ground truth"
    return Outcome(
        [*_rows(found), *read.wrong],
        title=title,
        text=_text(found),
        notes=[*read.notes, *_notes(found)],
        wrote=out,
        next=shlex.join(following),
    )


def _rows(found: Calibrated) -> list[Row]:
    rows = [Row("duration", found.seconds, "s"), Row("truth", str(found.truth).lower(), "-")]
    rows.append(Row("foot_velocity_std", found.foot_std, "m/s"))
    for one in found.findings:
        name = "_".join([one.group, *one.label.split()])
        rows += [Row(name, one.value, one.unit), Row(f"{name}_std", one.std, one.unit)]
        rows.append(Row(f"{name}_observable", _verdict(one), "-"))
    return rows


def _verdict(one: ErrorEstimate) -> str:
    return "yes" if one.observable else f"not apart from {one.rival}" if one.rival else "no"


def _entry(one: ErrorEstimate) -> str:
    """A value with its standard deviation; in brackets where it is not observable."""
    factor, unit = UNITS.get(one.unit, (1.0, one.unit))
    digits = DIGITS[unit]
    text = f"{factor * one.value:+.{digits}f} ± {factor * one.std:.{digits}f}"
    return text if one.observable else f"({text})"


def _text(found: Calibrated) -> str:
    """The table: a line for each leg or sensor, a column for each joint or axis."""
    groups: dict[str, list[ErrorEstimate]] = {}
    for one in found.findings:
        groups.setdefault(one.group, []).append(one)

    def line(name: str, cells: Sequence[str]) -> str:
        return f"{name:27}" + "".join(f"{cell:>17}" for cell in cells)

    lines, heads = list[str](), [""]
    for findings in groups.values():
        first, labels = findings[0], [one.label.split() for one in findings]
        title = f"{first.what.removesuffix(first.label).strip()}, {UNITS.get(first.unit, (1.0, first.unit))[1]}"
        if len(labels[0]) > 1:
            lines.append(line(title, [label[-1] for label in labels[:3]]))
            for i in range(0, len(findings), 3):
                lines.append(line(f"  {labels[i][0]}", [_entry(one) for one in findings[i : i + 3]]))
            continue
        if labels[0] and labels[0] != heads:
            heads = labels[0]
            lines.append(line("", [one.label for one in findings]))
        lines.append(line(title, [_entry(one) for one in findings]))
    return "\n".join(lines)


def _notes(found: Calibrated) -> list[str]:
    findings = found.findings
    observable = sum(one.observable for one in findings)
    text = (
        f"Value ± standard deviation; {observable} of {len(findings)} are observable on these walks, the others, in"
        " brackets, keep their described values. Zeros: encoder angle minus joint angle. Scales: relative excess of a"
        " link's length over the description, or of a sensor's value over the true one. The file has zeros, links,"
        " mounting and latency; bias and scale of the IMU are for your information: the filter estimates biases online."
    )
    pairs = sorted({" and ".join(sorted((one.what, one.rival))) for one in findings if one.rival})
    rivals = [f"Not separable: {', '.join(pairs)}."] if pairs else []
    return [text, *rivals]


def _description(options: CalibrateOptions, found: Calibrated) -> str:
    """The robot file, with where it comes from."""
    from gait._version import __version__
    from gait.robot.chain_yaml import robot_text

    words = ["gait", "calibrate", *(path.name for path in options.logs), *(["--no-truth"] if options.no_truth else [])]
    lines = textwrap.wrap(
        f"Calibrated by `{shlex.join(words)}` (gait {__version__}) from {found.seconds:.0f} s of walking,"
        f" {'with' if found.truth else 'without'} ground truth. Observable, value ± standard deviation:", 116,
    )  # fmt: skip
    seen = [one for one in found.findings if one.observable]
    lines += [f"  {one.what}: {_entry(one)} {UNITS.get(one.unit, (1.0, one.unit))[1]}" for one in seen]
    return "".join(f"# {line}\n" for line in lines) + robot_text(found.calibrated_robot())
