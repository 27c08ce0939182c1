"""Does the robot stay up when an estimator, and not the truth, feeds its walking controller?

    python benchmarks/closed_loop.py                            # truth, gait and iekf on three terrains
    python benchmarks/closed_loop.py --methods gait-legs        # another method, or the path of a model file
    python benchmarks/closed_loop.py --terrains rubber --seconds 20

The robot is the benchmark's twin in body and sensors, on trot under random commands. The estimator is told the truth
once, before the robot takes a step. A walk ends at a fall. `error` is that of the believed velocity while it was up.
"""

from __future__ import annotations

import argparse
import json
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.sim.collect import draw_episode, episode_feedback
from gait.sim.episode import EpisodeConfig, Feedback, run_episode
from gait.sim.plan import CollectConfig
from gait.sim.stepping import VEL


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

    def start(self, config: EpisodeConfig, row: Array) -> None:
        """Begin."""
        if self._feedback is not None:
            self._feedback.start(config, row)

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["truth", "gait", "iekf"], help="truth, methods or model files")
    parser.add_argument("--terrains", nargs="+", default=["rubber", "slippery", "debris"])
    parser.add_argument("--seed", type=int, default=71001, help="not one of the benchmark's, 61001 to 63001")
    parser.add_argument("--runs", type=int, default=3, help="walks of each method on each terrain")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    options = parser.parse_args()
    rows = []
    if not options.json:
        print("| fed by | terrain | falls | error, m/s | fell at, s |\n| --- | --- | ---: | ---: | --- |", flush=True)
    for terrain in options.terrains:
        for method in options.methods:
            config = CollectConfig(
                terrain=terrain, feedback=method, sensors="twin", nominal=True, seed=options.seed,
                seconds=options.seconds, episodes=options.runs,
            )  # fmt: skip
            walks = [walk(config, number) for number in range(options.runs)]
            falls = [result.fell_at for result in walks if result.fell_at is not None]
            error = float(np.sqrt(np.mean([result.error**2 for result in walks])))
            rows.append({"name": f"{terrain}.{method}.falls", "value": len(falls), "unit": "-"})
            rows.append({"name": f"{terrain}.{method}.error", "value": error, "unit": "m/s"})
            if not options.json:
                when = ", ".join(f"{fell:.1f}" for fell in falls) or "-"
                print(f"| {method} | {terrain} | {len(falls)} of {len(walks)} | {error:.3f} | {when} |", flush=True)
    if options.json:
        print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
