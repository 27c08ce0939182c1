"""How well humanoids are estimated: a simulated G1 under a public policy, and a real iCub.

    python benchmarks/humanoids.py --policy g1_policy.onnx             # prints; walks are collected once, in --walks
    python benchmarks/humanoids.py --policy g1_policy.onnx --write     # replaces the section in docs/robots.md

Run it again after the weights of `gait-legs` change. The iCub's recording lies in `shared/real` (`real_logs.py`):
nothing is trained or tuned on it. The same feet taken as points are the comparison for flat feet. Constants of
core/soles.c were chosen on walks of other seeds.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from real_logs import real_folder
from sections import DOCS, markdown, paragraph, write_section

from gait import Estimator, Log, Robot, Trajectory
from gait.bench.realism.body_motion import body_motion
from gait.bench.realism.leg_flexure import leg_flexure
from gait.bench.realism.stances import find_stances
from gait.errors import GaitError
from gait.io import open_log
from gait.metrics.consistency import nees
from gait.metrics.trajectory_error import relative_error, velocity_rmse
from gait.quaternions import multiply
from gait.robot import Foot
from gait.robot.leg_detection import with_soles
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.store import read_index

SENSORS = ("exact", "twin2")
WALKS: dict[str, dict[str, Any]] = {
    "random": {"seed": 71}, "turning": {"seed": 72, "commands": "turning"}, "slip": {"seed": 73, "friction": 0.3},
}  # fmt: skip
"""Random commands, bends, and random commands on ground of friction 0.3."""
METHODS = ("gait-legs", "iekf", "iekf-sr", "iekf, points")
START, WINDOW = 1.0, 2.0
"""Seconds that are not judged, and of a window."""
ICUB_SOLE = "-0.05,0.1,-0.04,0.04"
"""Heel 5 cm behind the ankle, toe 10 cm before it."""


class Figures(NamedTuple):
    """Of one walk or, root mean square, of several."""

    velocity: float
    """m/s."""
    nees: float
    drift: float
    """Over a window, m."""
    rotation: float
    """Over a window, degrees."""


def points(robot: Robot) -> Robot:
    """The robot with the centres of its soles as points."""
    return replace(robot, legs=tuple(replace(leg, foot=Foot()) for leg in robot.legs))


def estimated(log: Log, method: str, robot: Robot) -> Trajectory:
    """The estimate by a method; by one whose name ends in points, with such feet."""
    name, _, feet = method.partition(", ")
    used = points(robot) if feet else robot
    return Estimator.load(used, name).run(log.reorder(robot).replace(robot=used.name, description=""))


def judged(estimate: Trajectory, log: Log) -> Figures:
    """All figures of one walk."""
    counted = estimate.t >= log.t[0] + START
    error = velocity_rmse(estimate, log, counted)
    assert estimate.vel_cov is not None
    consistency = nees(error.errors_b, estimate.vel_cov[counted]).mean
    relative = relative_error(estimate, log, WINDOW)
    return Figures(error.rmse, consistency, relative.position.rmse, float(np.degrees(relative.rotation.rmse)))


def together(each: list[Figures]) -> Figures:
    """Of several walks of one length: root mean squares, and the mean of the NEES."""
    columns = np.array(each)
    squares = np.sqrt(np.mean(columns**2, axis=0))
    return Figures(float(squares[0]), float(columns[:, 1].mean()), float(squares[2]), float(squares[3]))


def walked(policy: Path, folder: Path) -> dict[str, list[Log]]:
    """The G1's walks, collected where they are not there yet."""
    found = {}
    for sensors in SENSORS:
        for walk, settings in WALKS.items():
            out = folder / f"g1-{sensors}-{walk}"
            config = CollectConfig(
                policy=str(policy), model="g1", terrain="flat", episodes=3, seconds=10.0, sensors=sensors, **settings
            )
            collect(config, out)
            found[f"{walk}, {sensors}"] = [open_log(out / row["file"]) for row in read_index(out)]
    return found


def g1_table(walks: dict[str, list[Log]]) -> tuple[str, list[str]]:
    """Velocity error, NEES and drift of each method, and whether the targets are met, in words."""
    robot, rows, verdicts = Robot.load("g1"), list[list[str]](), list[str]()
    for name, logs in walks.items():
        scores = {m: together([judged(estimated(log, m, robot), log) for log in logs]) for m in METHODS}
        cells = [f"{s.velocity:.4f} ({s.nees:.1f}) {100 * s.drift:.1f} / {s.rotation:.2f}" for s in scores.values()]
        rows.append([name, *cells])
        ours, theirs = scores["gait-legs"], scores["iekf"]
        missed = [
            words
            for words, met in (
                (f"{ours.velocity:.3f} m/s", ours.velocity <= 0.05),
                (f"{ours.velocity / theirs.velocity:.2f} of `iekf`", ours.velocity <= 2.0 / 3.0 * theirs.velocity),
                (f"NEES {ours.nees:.1f}", 1.5 <= ours.nees <= 6.0),
            )
            if not met
        ]
        verdicts.append(f"{name}: {', '.join(missed) or 'met'}")
    return markdown(["walk, sensors", *(f"`{m}`" if "," not in m else m for m in METHODS)], rows), verdicts


def icub() -> tuple[Log, Robot]:
    """The recording and the robot with soles."""
    folder = real_folder()
    with np.load(folder / "icub_walking.npz") as file:
        found = {name: file[name] for name in file.files}
    robot = Robot.load(
        folder / "icub.urdf", base="root_link", imu="root_link_imu_frame", feet="l_sole,r_sole", rpy="0,0,180"
    )
    robot = with_soles(robot, ICUB_SOLE)
    # Its x axis points backwards, and that of the base that is estimated forward.
    turned = multiply(found["quat_wb_wxyz"], np.array([0.0, 0.0, 0.0, 1.0]))
    joints = [list(found["joint_names"]).index(name) for name in robot.joint_names]
    log = Log(
        t=found["t"], gyro=found["gyro"], accel=found["accel"], q=found["q"][:, joints], dq=found["dq"][:, joints],
        foot_force=found["foot_force_z"], pos_w=found["pos_w"], quat_wb_wxyz=turned,
        vel_w=np.gradient(found["pos_w"], found["t"], axis=0), robot=robot,
    )  # fmt: skip
    return log, robot


def icub_table() -> str:
    """Relative errors over a window."""
    log, robot = icub()
    rows = []
    for method in ("gait-legs-kinematic-0", "iekf", "iekf-sr", "iekf, points", "iekf-sr, points"):
        name, _, feet = method.partition(", ")
        estimate = Estimator.load(points(robot) if feet else robot, name).run(
            Log(**log.arrays(), robot=points(robot)) if feet else log
        )
        error = relative_error(estimate, log, WINDOW)
        rows.append([f"`{name}`, points" if feet else f"`{name}`", f"{error.position.rmse:.4f}",
                     f"{np.degrees(error.rotation.rmse):.3f}"])  # fmt: skip
    return markdown(["", "2 s drift, m", "2 s rotation, deg"], rows)


def icub_flexure() -> str:
    """How far its joints give way, as docs/realism.md measures it, in words."""
    log, robot = icub()
    even = log.resample(100.0).reorder(robot)
    motion = body_motion(even, robot)
    stances = find_stances(even, robot, motion)
    flexure, error, _ = leg_flexure(even, robot, stances, motion)
    return (
        f"In its {len(stances.spans)} whole stances the joints give way by {1e3 * flexure[0]:.0f} mrad (standard error"
        f" {1e3 * error[0]:.0f}) under a quarter of weight times leg length, along x ([realism.md](realism.md))."
    )


def step_time(log: Log) -> float:
    """Microseconds that a sample of the G1 takes, gait-legs with Python around it."""
    estimator, rows = Estimator.load("g1", "gait-legs"), list(log.reorder("g1").rows())
    began = time.perf_counter()
    for row in rows:
        estimator.update(row)
    return 1e6 * (time.perf_counter() - began) / len(rows)


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, required=True, help="g1_policy.onnx of MuJoCo Playground")
    parser.add_argument("--walks", type=Path, default=Path("runs/humanoids"), help="where the walks are")
    parser.add_argument("--write", action="store_true", help="replace the section in docs/robots.md")
    options = parser.parse_args()
    walks = walked(options.policy, options.walks)
    table, verdicts = g1_table(walks)
    parts = [
        paragraph(
            "Simulated G1 under a public policy, three walks of 10 s each (`python benchmarks/humanoids.py --write`):"
            " velocity error, m/s (NEES, 3 is honest), then drift over 2 s, cm, and rotation over 2 s, deg;"
            " slip is ground of friction 0.3:"
        ),
        table,
        paragraph(
            "Targets of `gait-legs` are 0.05 m/s, two thirds of `iekf` and a NEES of 1.5 to 6. Not met, by walk: "
            + "; ".join(verdicts)
            + f". A sample takes {step_time(next(iter(walks.values()))[0]):.0f} us on one core, Python included, of the"
            " 1000 us between samples at 1 kHz."
        ),
    ]
    try:
        real = icub_table()
    except GaitError as error:
        print(f"left out: {error}")
    else:
        parts += [paragraph("Real iCub that walks 1 m, 12 s at 100 Hz, with foot forces and without torques:"), real]
        parts += [paragraph(icub_flexure())]
    text = "\n\n".join(parts)
    print(text)
    if options.write:
        write_section("humanoids", text, DOCS / "robots.md")


if __name__ == "__main__":
    main()
