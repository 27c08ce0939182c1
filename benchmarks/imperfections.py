"""How each imperfection of a benchmark twin, alone, moves the velocity error of the contact-aided filter.

    python benchmarks/imperfections.py                     # print the table of version 2
    python benchmarks/imperfections.py --twin 1 --write    # that of version 1, and put it into docs/simulator.md

Every variant walks the same episodes: the same seeds, commands and terrain, the nominal robot otherwise. The error is
the root mean square of the body velocity's error over all samples of all episodes, started from the truth.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sections import markdown, write_section

from gait import Estimator, Robot
from gait.arrays import Array
from gait.sim.collect import CollectConfig
from gait.sim.episode import RawEpisode, run_episode
from gait.sim.episode_sampling import draw_episode
from gait.sim.mismatch import TWINS, body_of, sensors_of
from gait.sim.sensors import sense

DOCS = Path(__file__).parents[1] / "docs/simulator.md"
WALKS = (("trot", "rubber"), ("pronk", "rubber"), ("trot", "slippery"))


class Study:
    """Episodes are simulated once for each body and sensed once for each set of sensors."""

    def __init__(self, twin: str, episodes: int, seconds: float) -> None:
        self.twin = twin
        self.robot = Robot.load("go1")
        self.estimator = Estimator.load(self.robot, "iekf")
        self.episodes, self.seconds = episodes, seconds
        self._raw: dict[object, list[RawEpisode]] = {}

    def error(self, gait: str, terrain: str, names: Sequence[str]) -> float:
        """Velocity error (m/s) with these imperfections."""
        config = CollectConfig(gait=gait, terrain=terrain, seconds=self.seconds, sensors="exact", nominal=True)
        squares: list[Array] = []
        for number, raw in enumerate(self._walk(config, names)):
            if raw.fell_at is not None and raw.fell_at < 1.0:
                continue
            _, seed, noise = draw_episode(config, number)
            log = sense(raw, self.robot, sensors_of(self.twin, names, seed), noise)
            estimate = self.estimator.run(log, start="truth")
            squares.append(np.sum((estimate.need("vel_b") - log.vel_b) ** 2, axis=1))
        return float(np.sqrt(np.concatenate(squares).mean()))

    def _walk(self, config: CollectConfig, names: Sequence[str]) -> list[RawEpisode]:
        draws = [draw_episode(config, number) for number in range(self.episodes)]
        bodies = tuple(body_of(self.twin, episode, names, seed) for episode, seed, _ in draws)
        if bodies not in self._raw:
            self._raw[bodies] = [run_episode(body, seed) for body, (_, seed, _) in zip(bodies, draws, strict=True)]
        return self._raw[bodies]


def study(twin: str, episodes: int, seconds: float) -> list[tuple[str, list[float]]]:
    """Rows of a name and the error on each walk."""
    work, every = Study(twin, episodes, seconds), [item.name for item in TWINS[twin]]
    variants = [("none", []), *((name, [name]) for name in every), ("all: the twin", every)]
    return [(name, [work.error(*walk, names) for walk in WALKS]) for name, names in variants]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twin", type=int, choices=(1, 2), default=2, help="version of the twin")
    parser.add_argument("--episodes", type=int, default=6, help="episodes of each variant and walk")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each")
    parser.add_argument("--write", action="store_true", help="put the table into docs/simulator.md")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    options = parser.parse_args()
    twin = "twin" if options.twin == 1 else "twin2"
    rows = study(twin, options.episodes, options.seconds)
    heads = ["imperfection", *(f"{gait} on {terrain}" for gait, terrain in WALKS)]
    table = markdown(heads, [[name, *(f"{value:.4f}" for value in values)] for name, values in rows])
    if options.json:
        tree = [
            {"name": f"{gait}.{terrain}.{name}", "value": value, "unit": "m/s"}
            for name, values in rows
            for (gait, terrain), value in zip(WALKS, values, strict=True)
        ]
        print(json.dumps({"rows": tree}))
    else:
        print(table)
    if options.write:
        note = f"Velocity error in m/s, {options.episodes} episodes of {options.seconds:g} s each."
        write_section(f"imperfections of {twin}", f"{note}\n\n{table}", DOCS)


if __name__ == "__main__":
    main()
