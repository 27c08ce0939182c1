"""The held-out walks that trained networks are measured on: fixed here once, made when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gait.io import open_log
from gait.log.log import Log
from gait.sim.collect import collect
from gait.sim.plan import CollectConfig
from gait.sim.store import read_index
from gait.sim.world import TERRAINS

HELD = Path(__file__).parents[1] / "runs/held"
SEED = 777
"""Trainings use collections of other seeds."""
EPISODES, EPISODES_LOOSE, SECONDS = 6, 3, 10.0
"""Loose things underfoot are an order of magnitude slower to simulate, so there are fewer of those."""
UNSEEN = ("bound", "pace", "pronk")
"""Gaits that a training on trot does not know."""


def _walk(gait: str, terrain: str) -> CollectConfig:
    episodes = EPISODES_LOOSE if TERRAINS[terrain].loose else EPISODES
    return CollectConfig(gait, terrain, episodes=episodes, seconds=SECONDS, seed=SEED, sensors="training")


WALKS: dict[str, CollectConfig] = {
    **{f"trot-{terrain}": _walk("trot", terrain) for terrain in TERRAINS if terrain != "ice"},
    **{f"{gait}-flat": _walk(gait, "flat") for gait in UNSEEN},
}
"""By the name of their folder; ice is a ground to train on.

All that randomised episodes draw is random: friction, masses, gains, commands.
"""
HEADS = {name: walk.terrain if walk.gait == "trot" else walk.gait for name, walk in WALKS.items()}
"""What tables call them."""


@dataclass(frozen=True)
class Walk:
    """The recordings of one collection."""

    logs: tuple[Log, ...]
    falls: int
    """Attempts that fell and were replaced."""


def make_walk(name: str, folder: Path = HELD, workers: int = 1) -> Walk:
    """The recordings of a collection; those that its folder lacks are simulated first."""
    collect(WALKS[name], folder / name, workers)
    rows = read_index(folder / name)[: WALKS[name].episodes]
    return Walk(tuple(open_log(folder / name / row["file"]) for row in rows), sum(row["falls"] for row in rows))
