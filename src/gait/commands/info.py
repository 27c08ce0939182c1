"""`gait info`: inspect a log, trajectory or model, or this installation."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from tyro.conf import Positional

from gait.commands import Common, Outcome, starting
from gait.errors import GaitError
from gait.read_options import ReadOptions, given_words
from gait.rows import Row
from gait.samples import SAMPLE

if TYPE_CHECKING:
    from gait.log import Log

CHECK_SECONDS, CHECK_RMSE = 2.0, 0.1
"""Part of the sample that the self-check estimates, and the velocity error that it allows, m/s: four times its own."""


@dataclass(frozen=True)
class InfoOptions(Common, ReadOptions):
    """Inspect a log, trajectory or model; without a path, show what a bug report needs.

    Of a log: what was guessed in reading it, what the estimator uses, and sanity checks of gravity, gyro, joints and
    ground truth. For a bug report: versions, extras, the machine, and whether the estimator runs here and is right on
    2 s of the sample.
    """

    # Not `Path | None`: for that tyro imports a type checker, which doubles the time of a help.
    path: Positional[Optional[Path]] = None  # noqa: UP045
    """A log (npz, ROS bag, MCAP, CSV, HDF5), a trajectory (npz, csv, tum), or a model (its name, or safetensors)."""


def run(options: InfoOptions) -> Outcome:
    """Describe the file or the installation."""
    from gait.report import describe

    if options.path is None:
        rows = describe.installation()
        with starting(options.interactive):
            rows += self_check()
        return Outcome(rows, title="This installation", next="gait demo")
    from gait.io.checked import correcting_words, read_checked
    from gait.io.format import Notes
    from gait.log import Log
    from gait.nets.model import SUFFIX, is_safetensors, load_model, model_names

    if str(options.path) in model_names() or options.path.suffix == SUFFIX or is_safetensors(options.path):
        return Outcome(describe.model(load_model(options.path)), title=f"Model {options.path}")
    seen = Notes()
    try:
        found, findings = read_checked(options.path, options, seen)
    except GaitError as error:
        if not seen.streams:
            raise
        # What is in a file helps to say how to read it.
        return Outcome(describe.streams(seen.streams), title=f"Contents of {options.path}", error=str(error))
    record = found.record
    rows, notes = describe.reading(found, findings)
    wrong = [one for one in findings if not one.ok and one.grave]
    if isinstance(record, Log):
        # The estimator's checks of angles in degrees would name every sensor.
        notes += [f"LOOK {line}" for line in (input_checks(record) if not any(one.certain for one in wrong) else ())]
        words = correcting_words(findings, options) or given_words(options)
        following = ["gait", "run", str(options.path), *words]
    else:
        target = options.path.with_suffix(".npz" if options.path.suffix == ".tum" else ".tum")
        following = ["gait", "convert", str(options.path), str(target), *given_words(options)]
    return Outcome(rows, title=f"{record.KIND} {options.path}", notes=notes, next=shlex.join(following))


def input_checks(log: Log) -> list[str]:
    """What the estimator's own checks find in a log, by the first method that runs on it; nothing if none does."""
    from gait.estimator import Estimator
    from gait.log.diagnoses import diagnoses

    for method in ("gait-legs", "iekf"):
        try:
            estimator = Estimator.load(log.load_robot(), method)
            health = estimator.run(log).health
        except GaitError:
            continue
        return [] if health is None else diagnoses(log.t, health, estimator.robot.leg_names)
    return []


def self_check() -> list[Row]:
    """Whether the estimator runs here and is right: inverse kinematics, then a part of the sample log.

    A failure becomes a row, since a bug report needs the other rows all the same.
    """
    rows: list[Row] = []
    wrong: list[str] = []
    try:
        from gait.binding import core_path

        rows.append(Row("core", core_path().stem.removeprefix("_core_"), "-"))
        for check, limit in (_check_kinematics, 1e-9), (_check_estimator, CHECK_RMSE):
            row, *more = check()
            rows += [row, *more]
            # nan is not below any limit.
            if not float(row.value) < limit:
                wrong.append(f"{row.name} is {row.value:.3g} {row.unit}, more than {limit:g}")
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
    return [*rows, Row("self_check", f"failed: {'; '.join(wrong)}" if wrong else "ok", "-")]


def _check_kinematics() -> list[Row]:
    import numpy as np

    from gait.robot import Robot

    robot = Robot.load("go1")
    feet = robot.feet(robot.q_stand)
    q = np.concatenate([robot.inverse(leg, feet[i]) for i, leg in enumerate(robot.leg_names)])
    return [Row("self_check_kinematics", float(np.abs(robot.feet(q) - feet).max()), "m")]


def _check_estimator() -> list[Row]:
    from gait.estimator import Estimator
    from gait.log import Log
    from gait.metrics import velocity_rmse

    log = Log.load(SAMPLE)
    log = log.slice(t1=float(log.t[0]) + CHECK_SECONDS)
    estimator = Estimator.load(log.robot)
    # Processor time: a busy machine must not look like a slow one.
    start = time.process_time()
    trajectory = estimator.run(log)
    spent = time.process_time() - start
    rmse = velocity_rmse(trajectory, log).rmse
    return [Row("self_check_velocity_rmse", rmse, "m/s"), Row("self_check_step", spent / len(log) * 1e6, "us")]
