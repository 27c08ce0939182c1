"""`gait robot`: import a URDF or MJCF, and show what a robot description says."""

from __future__ import annotations

import re
import shlex
import textwrap
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, quote, refuse_overwriting
from gait.errors import GaitError
from gait.rows import Row

if TYPE_CHECKING:
    from gait.robot import Robot


@dataclass(frozen=True)
class RobotOptions(Common):
    """Import a robot from its URDF or MJCF, or show what a robot description says.

    `import FILE`: write the YAML file that the estimator needs, which the base install reads. Legs, feet and the IMU
    are found; if something is ambiguous, an error names the options to type.

    `show NAME_OR_FILE`: text and a picture of a robot in its stance, and what is implausible about it.
    """

    what: Positional[Literal["import", "show"]]
    """What to do."""
    robot: Positional[str]
    """A URDF or MJCF file; for show also a YAML file, or the name of a robot that comes with gait."""
    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    out: Optional[Path] = None  # noqa: UP045
    """The file to write: YAML for import, named after the robot by default; PNG for show."""
    force: bool = False
    """Write over a file that is there."""
    name: str = ""
    """For import: name of the robot; that of the model by default."""
    feet: str = ""
    """Links or sites of the feet, separated by commas; found by default."""
    base: str = ""
    """Link to estimate; the one that carries the IMU by default."""
    imu: str = ""
    """Link or site of the IMU; found by default."""
    rpy: str = ""
    """Roll, pitch and yaw, degrees, of the axes to estimate in those of the base: 0,0,180 where its x axis points
    backwards."""
    sole: str = ""
    """Of flat feet whose shape is a mesh: how far soles reach to the back, front, right and left of the feet, m, in
    base axes at zero, such as -0.05,0.1,-0.04,0.04."""


def run(options: RobotOptions) -> Outcome:
    """Import or show."""
    from gait.robot import Robot
    from gait.robot.leg_detection import read_model, robot_of, with_soles
    from gait.robot.robot import MODELS

    path, notes = Path(options.robot), list[str]()
    if path.suffix.lower() in MODELS:
        tree = read_model(path)
        robot = robot_of(tree, feet=options.feet, base=options.base, imu=options.imu, rpy=options.rpy)
        robot = with_soles(robot, options.sole) if options.sole else robot
        notes = list(dict.fromkeys(tree.notes))
    elif options.what == "import":
        raise GaitError(f"{path} is no URDF or MJCF: import takes .urdf, .xml or .mjcf files")
    else:
        robot = Robot.load(options.robot)
    return _import(options, robot, notes) if options.what == "import" else _show(options, robot, notes)


def _import(options: RobotOptions, robot: Robot, notes: list[str]) -> Outcome:
    from dataclasses import replace

    from gait.io.atomic import atomic_path
    from gait.robot.chain_yaml import robot_text

    robot = replace(robot, name=options.name) if options.name else robot
    out = options.out or Path(f"{robot.name}.yaml")
    if out.suffix not in (".yaml", ".yml"):
        raise GaitError(f"{out} does not end in .yaml: rename it")
    refuse_overwriting([out], options.force)
    with atomic_path(out) as temporary:
        temporary.write_text(robot_text(robot), encoding="utf-8")
    rows, text = _described(robot)
    mistakes = _mistakes(robot)
    turned = next((found[1] for line in mistakes if (found := re.search(r"--rpy (\S+)$", line))), "")
    if turned and options.rpy:
        # Angles are those from the link, so that a second turn comes on top of the first.
        from gait.robot.model_tree import turn_after

        both = turn_after(options.rpy, turned)
        mistakes = [line.replace(f"--rpy {turned}", f"--rpy {both}") for line in mistakes]
        turned = both
    notes += [f"LOOK {line}" for line in mistakes]
    following = f"gait robot show {quote(out)} --out {quote(out.with_suffix('.png'))}"
    if turned:
        # First of all the axes have to be right.
        given = {"--feet": options.feet, "--base": options.base, "--imu": options.imu, "--sole": options.sole}
        words = [word for name, value in {**given, "--name": options.name}.items() if value for word in (name, value)]
        words = ["gait", "robot", "import", options.robot, *words, "--rpy", turned, "--out", str(out), "--force"]
        following = shlex.join(words)
    text = f"{_summary(robot)}\n{text}"
    return Outcome(rows, f"{robot.name}, from {options.robot}", out, following, text=text, notes=notes)


def _show(options: RobotOptions, robot: Robot, notes: list[str]) -> Outcome:
    rows, text = _described(robot)
    notes += [f"LOOK {line}" for line in _mistakes(robot)]
    if options.out is not None:
        from gait.report.robot_figure import draw_robot

        if options.out.suffix != ".png":
            raise GaitError(f"{options.out} does not end in .png: rename it")
        refuse_overwriting([options.out], options.force)
        draw_robot(robot, options.out)
    following = f"gait run LOG --robot {quote(options.robot)}"
    return Outcome(rows, f"{robot.name}: {_summary(robot)}", options.out, following, text=text, notes=notes)


def _mistakes(robot: Robot) -> list[str]:
    from gait.robot.stance_checks import mistakes

    return mistakes(robot)


def _summary(robot: Robot) -> str:
    imu = ", ".join(f"{x:.3f}" for x in robot.imu_position)
    return f"{robot.mass:.1f} kg, base {robot.base_link}, IMU at ({imu}) m"


def _described(robot: Robot) -> tuple[list[Row], str]:
    """The robot as rows, and its legs as text."""
    import numpy as np

    rows = [Row("robot", robot.name, "-"), Row("base_link", robot.base_link, "-"), Row("mass", robot.mass, "kg")]
    rows += [Row("joints", robot.num_joints, "-")]
    rows += [Row(f"imu_{axis}", float(x), "m") for axis, x in zip("xyz", robot.imu_position, strict=True)]
    shared, shared_mass = _shared(robot)
    lines = []
    for leg, foot in zip(robot.chains, robot.feet(robot.q_stand), strict=True):
        sole = leg.foot.corners
        sides = np.sort(np.linalg.norm(sole[1:] - sole[:1], axis=1))  # of a rectangle, the longest is its diagonal
        kind = (
            f"flat {100 * sides[-2:][0]:.0f} x {100 * sides[0] if len(sides) > 1 else 0.0:.0f} cm"
            if len(sole)
            else f"sphere {1000 * leg.foot.radius:.0f} mm"
            if leg.foot.radius
            else "point"
        )
        place = ", ".join(f"{x:.2f}" for x in foot)
        mass = float(leg.mass[len(shared) :].sum())
        lines.append([leg.name, str(leg.num_joints), f"{leg.length:.3f}", f"{mass:.2f}", kind, place])
        rows += [Row(f"{leg.name}_joints", " ".join(leg.joint_names), "-"), Row(f"{leg.name}_length", leg.length, "m")]
        rows += [Row(f"{leg.name}_foot", kind, "-"), Row(f"{leg.name}_mass", mass, "kg")]
    heads = ["leg", "joints", "length, m", "mass, kg", "foot", "foot in stance, m"]
    widths = [max(len(line[k]) for line in [heads, *lines]) for k in range(len(heads))]
    text = [
        "  ".join(f"{word:{width}}" for word, width in zip(line, widths, strict=True)).rstrip()
        for line in [heads, *lines]
    ]
    chains = {leg.name: leg.joint_names[len(shared) :] for leg in robot.legs}
    if shared:
        rows += [Row("shared_joints", " ".join(shared), "-"), Row("shared_mass", shared_mass, "kg")]
        chains = {f"every leg ({shared_mass:.2f} kg)": shared, **{f"{leg}, then": one for leg, one in chains.items()}}
    for name, joints in {"": (), **chains}.items():
        text += textwrap.wrap(f"{name}: {' '.join(joints)}", 79, subsequent_indent="  ") if joints else [""]
    return rows, "\n".join(text)


def _shared(robot: Robot) -> tuple[tuple[str, ...], float]:
    """Joints with which all legs begin, such as those of a waist below the IMU, and the mass of their links, kg."""
    names = [leg.joint_names for leg in robot.legs]
    count = sum(1 for _ in takewhile(lambda same: len(set(same)) == 1, zip(*names, strict=False)))
    if robot.num_legs < 2 or not count:
        return (), 0.0
    # Their mass stands with one of the legs.
    return names[0][:count], sum(float(leg.mass[:count].sum()) for leg in robot.legs)
