"""Does the robot stay up when an estimator, and not the truth, feeds its walking controller?

    python benchmarks/closed_loop.py                                  # truth, gait-legs, gait and iekf; 15 minutes
    python benchmarks/closed_loop.py --methods model.safetensors --courses "trot on rubber"
    python benchmarks/closed_loop.py --write                          # and write the section of docs/legs.md

The robot is the benchmark's twin in body and sensors, under random commands. The estimator is told the truth
once, before the robot takes a step. A walk ends at a fall. `error` is that of the believed velocity while it was up.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np
from sections import DOCS, markdown, write_section

from gait.arrays import Array
from gait.rows import Row, rows_to_json
from gait.sim.collect import draw_episode, episode_feedback
from gait.sim.episode import Feedback, run_episode
from gait.sim.plan import CollectConfig
from gait.sim.stepping import VEL

COURSES = {
    "trot on rubber": ("trot", "rubber", 60.0),
    "trot on slippery": ("trot", "slippery", 60.0),
    "trot on debris": ("trot", "debris", 60.0),
    "bound on rubber": ("bound", "rubber", 20.0),
}
"""Gait, ground and seconds by name."""


class Walk(NamedTuple):
    """One run."""

    fell_at: float | None
    error: float
    """Root mean square of the error of the velocity that the controller believed, m/s."""


class Watched:
    """A feedback, and how wrong it was."""

    def __init__(self, feedback: Feedback | None) -> None:
        self._feedback = feedback
        self.squares: list[float] = []

    def __call__(self, rows: Array) -> tuple[Array, Array]:
        """Pass on what the controller is to believe."""
        truth = rows[-1, VEL].copy(), rows[-1, 3:7].copy()
        told = truth if self._feedback is None else self._feedback(rows)
        self.squares.append(float(np.sum((told[0] - truth[0]) ** 2)))
        return told


def walk(config: CollectConfig, number: int) -> Walk:
    """Walk one episode of a collection with its estimator in the loop."""
    episode, seed, _ = draw_episode(config, number)
    watched = Watched(episode_feedback(config, episode, seed))
    raw = run_episode(episode, seed, watched)
    return Walk(raw.fell_at, float(np.sqrt(np.mean(watched.squares))))


def main() -> None:
    """Walk, and print a table while it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["truth", "gait-legs", "gait", "iekf"], help="or model files")
    parser.add_argument("--courses", nargs="+", default=list(COURSES), choices=list(COURSES))
    parser.add_argument("--seed", type=int, default=71001, help="not one of the benchmark's, 61001 to 63001")
    parser.add_argument("--runs", type=int, default=8, help="walks of each method on each course")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    parser.add_argument("--write", action="store_true", help="write the section of docs/legs.md")
    options = parser.parse_args()
    rows, lines = [], []
    for name in options.courses:
        gait, terrain, seconds = COURSES[name]
        for method in options.methods:
            config = CollectConfig(
                gait, terrain, feedback=method, sensors="twin", nominal=True, seed=options.seed, seconds=seconds,
                episodes=options.runs,
            )  # fmt: skip
            walks = [walk(config, number) for number in range(options.runs)]
            falls = [result.fell_at for result in walks if result.fell_at is not None]
            error = float(np.sqrt(np.mean([result.error**2 for result in walks])))
            rows += [Row(f"{name}.{method}.falls", len(falls), "-"), Row(f"{name}.{method}.error", error, "m/s")]
            when = ", ".join(f"{fell:.1f}" for fell in falls) or "-"
            lines.append([f"{name}, {seconds:g} s", method, f"{len(falls)} of {len(walks)}", f"{error:.3f}", when])
            print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    table = markdown(["walk", "fed by", "falls", "error, m/s", "fell at, s"], lines)
    print(rows_to_json(rows) if options.json else table)
    if options.write:
        write_section("loop", table, DOCS / "legs.md")


if __name__ == "__main__":
    main()
