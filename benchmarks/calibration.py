"""What `gait calibrate` does to estimates: docs/calibrate.md.

    gait sim --sensors twin --seconds 60 --episodes 4 --seed 501 --out runs/sim/calibration
    python benchmarks/calibration.py runs/sim/calibration --write

The first walk calibrates, the others are judged; of the real A1 the first half calibrates and the second is judged.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from real_logs import a1_walk, score
from sections import DOCS, markdown, paragraph, write_section

from gait import Estimator, Log, Robot
from gait.calibrate import Calibrated, calibrate
from gait.metrics import velocity_rmse
from gait.metrics.trajectory_error import relative_error

METHODS = ("gait-legs", "iekf", "iekf-sr")
HALF = 11.0
"""Seconds of the A1's walk that calibrate it."""
ZERO_STD = 0.03
"""Further errors of the joint zeros of a robot that is badly assembled, rad."""


def observable(found: Calibrated) -> str:
    """What was observable, in words."""
    seen = [f"{one.what} {one.value:+.4f} ± {one.std:.4f} {one.unit}" for one in found.findings if one.observable]
    return f"{len(seen)} of {len(found.findings)}" + (f": {', '.join(seen)}" if len(seen) < 10 else "")


def simulated(folder: Path) -> list[list[str]]:
    """Errors on held-out walks of the twin, before and after, as it is and badly assembled."""
    walks = [Log.load(path) for path in sorted(folder.glob("episode_*.npz"))[:4]]
    robot, rows = Robot.load("go1"), []
    for name, std in ("the twin", 0.0), (f"the twin, zeros off by another {ZERO_STD} rad", ZERO_STD):
        zeros = np.random.default_rng(5).normal(0.0, std, robot.num_joints)
        logs = [log.replace(q=log.q + zeros, q_des=log.need("q_des") + zeros) for log in walks]
        robots = [robot] + [calibrate(logs[:1], robot, truth=truth).calibrated_robot() for truth in (False, True)]
        for method in METHODS:
            row = [name, method]
            for one in robots:
                runs = [(Estimator.load(one, method).run(log), log) for log in logs[1:]]
                errors = np.mean([velocity_rmse(run, log).rmse for run, log in runs])
                drifts = np.mean([relative_error(run, log, 5.0).position.mean for run, log in runs])
                row.append(f"{errors:.4f} m/s, {drifts:.3f} m")
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    return rows


def real() -> tuple[list[list[str]], list[str]]:
    """Scores on the second half of the A1's walk, before and after; and what the first half makes observable."""
    walk = a1_walk()
    half = float(walk.log.t[0]) + HALF
    judged = replace(walk, scored=walk.scored & (walk.log.t >= half))
    found = [calibrate([walk.log.slice(t1=half)], walk.robot, truth=truth) for truth in (False, True)]
    robots, rows = [walk.robot, *(one.calibrated_robot() for one in found)], []
    for method in METHODS:
        scores = [score(judged, Estimator.load(robot, method).run(walk.log, start="truth")) for robot in robots]
        rows.append([method, *(f"{s.velocity:.3f} m/s, {s.drift:.2f} m, {s.within:.2f}, {s.nees:.0f}" for s in scores)])
        print(*rows[-1], sep=" | ", flush=True)
    return rows, [observable(one) for one in found]


def main() -> None:
    """Print, or write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", type=Path, help="folder of the twin's walks")
    parser.add_argument("--write", action="store_true", help="replace the section of docs/calibrate.md")
    options = parser.parse_args()
    heads = ["before", "calibrated without ground truth", "with"]
    table = markdown(["velocity RMSE, 5 s drift", "method", *heads], simulated(options.walks))
    rows, seen = real()
    a1 = markdown(["velocity RMSE, 5 s drift, within 2 std, NEES", *heads], rows)
    words = paragraph(f"Observable without ground truth: {seen[0]}. With: {seen[1]}.")
    text = f"Simulated, mean of three walks of 60 s:\n\n{table}\n\nReal A1, its second half:\n\n{a1}\n\n{words}"
    print(text)
    if options.write:
        write_section("calibration", text, DOCS / "calibrate.md")


if __name__ == "__main__":
    main()
