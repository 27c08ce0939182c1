"""The factor on the standard deviations of a network, `Options.inflation`.

    python benchmarks/tune_inflation.py            # print the table
    python benchmarks/tune_inflation.py --write    # and put it into docs/filters.md

A network's errors last for many samples, and a filter that takes each for a new one becomes far too sure of itself: its
orientation and biases suffer, and the velocity with them. One factor for all learned methods, chosen by the error of
benchmarks/tune_baselines.py: of the factors within 5 % of the least error in the half for searching, the one whose NEES
is nearest to what is right. The other half shows what it is worth.

Episodes are trot on flat (friction 0.3 to 1.0), slippery and rough ground, of the training robot, from a seed of their
own. Its encoders are exact, so each log is disturbed by a draw of its own: joint zeros off by N(0, 0.01 rad), angles,
velocities and torques one or two samples late, torques off by a factor N(1, 0.05) for each joint, a gyro bias of
N(0, 0.003 rad/s) and an accelerometer bias of N(0, 0.05 m/s^2) for each axis.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sections import DOCS, markdown, paragraph, write_section
from tune_baselines import HALVES, SECONDS, SEED, WINDOW, Episode, Halves, geometric_mean

from gait import Log, Robot
from gait.estimator import METHODS, Estimator
from gait.io import open_log
from gait.metrics import nees, relative_error, velocity_rmse
from gait.parameters import Options

RUNS = Path(__file__).parents[1] / "runs/tune"
EPISODES = {"flat": 16, "slippery": 16, "rough": 8}
OFFSET, TORQUE, GYRO_BIAS, ACCEL_BIAS = 0.01, 0.05, 0.003, 0.05
DELAYS = (1, 2)
FACTORS = (1.0, 3.0, 10.0, 15.0, 20.0, 30.0, 50.0, 80.0)
LEARNED = tuple(name for name, method in METHODS.items() if method.weights)


def disturb(log: Log, rng: np.random.Generator) -> Log:
    """The log as a robot with ordinary faults would have recorded it; the truth stays."""
    joints = log.q.shape[1]
    offset = rng.normal(0.0, OFFSET, joints)
    gain = rng.normal(1.0, TORQUE, joints)
    gyro, accel = rng.normal(0.0, GYRO_BIAS, 3), rng.normal(0.0, ACCEL_BIAS, 3)
    late = np.maximum(np.arange(len(log)) - int(rng.choice(DELAYS)), 0)
    return log.replace(
        gyro=log.gyro + gyro,
        accel=log.accel + accel,
        q=log.q[late] + offset,
        dq=log.dq[late],
        q_des=None if log.q_des is None else log.q_des + offset,
        tau=None if log.tau is None else log.tau[late] * gain,
    )


def load_episodes(folder: Path = RUNS) -> Halves:
    """The disturbed episodes, recorded first where the folder lacks them."""
    from gait.sim.collect import collect
    from gait.sim.plan import CollectConfig
    from gait.sim.store import read_index

    halves: Halves = ([], [])
    for kind, (terrain, count) in enumerate(EPISODES.items()):
        config = CollectConfig("trot", terrain, episodes=count, seconds=SECONDS, seed=SEED, sensors="training")
        collect(config, folder / terrain)
        for number, row in enumerate(read_index(folder / terrain)[:count]):
            log = disturb(open_log(folder / terrain / row["file"]), np.random.default_rng([SEED, kind, number]))
            halves[number % 2].append(Episode(terrain, log, Robot.load("go1")))
    return halves


def errors_of(method: str, factor: float, episodes: Sequence[Episode]) -> np.ndarray:
    """Velocity RMSE (m/s), position (m) and rotation error (rad) over 5 s, and NEES of each episode (N, 4)."""
    estimator = Estimator.load("go1", method, options=Options(inflation=factor))
    rows = []
    for episode in episodes:
        found = estimator.run(episode.log)
        velocity = velocity_rmse(found, episode.log)
        relative = relative_error(found, episode.log, WINDOW)
        assert found.vel_cov is not None
        honest = nees(velocity.errors_b, found.vel_cov).mean
        rows.append((velocity.rmse, relative.position.rmse, relative.rotation.rmse, honest))
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/filters.md")
    args = parser.parse_args()
    halves = load_episodes()
    lines, total, honest = [], {}, {}
    for factor in FACTORS:
        for half, episodes in zip(HALVES, halves, strict=True):
            by_method = [errors_of(method, factor, episodes) for method in LEARNED]
            total[factor, half] = geometric_mean([x for errors in by_method for x in errors[:, :2].ravel()])
            honest[factor, half] = geometric_mean([x for errors in by_method for x in errors[:, 3]])
            cells = [geometric_mean(errors[:, k]) for errors in by_method for k in range(4)]
            lines.append([f"{factor:g}", half, f"{total[factor, half]:.4f}", *(f"{cell:.3f}" for cell in cells)])
            print(lines[-1], flush=True)
    least = min(total[factor, HALVES[0]] for factor in FACTORS)
    good = [factor for factor in FACTORS if total[factor, HALVES[0]] <= 1.05 * least]
    best = min(good, key=lambda factor: abs(math.log(honest[factor, HALVES[0]] / 3.0)))
    figures = ("m/s", "m", "rad", "NEES")
    heads = ["factor", "half", "error", *(f"`{method}`, {figure}" for method in LEARNED for figure in figures)]
    note = f"""Velocity error, position and rotation error over 5 s and velocity NEES (3 would be right) of each learned
        method, geometric means over episodes; `error` is the geometric mean of all velocity and position errors. Of the
        factors within 5 % of the least error of the search, {best:g} has the most honest NEES. The package uses
        {Options().inflation:g}."""
    text = f"{paragraph(note)}\n\n{markdown(heads, lines)}"
    print(text)
    if args.write:
        write_section("inflation", text, DOCS / "filters.md")


if __name__ == "__main__":
    main()
