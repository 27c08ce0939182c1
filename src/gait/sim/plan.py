"""What a collection is made of. This module imports nothing heavy, so that a command line can be made from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gait.errors import GaitError, need_extra


@dataclass(frozen=True)
class CollectConfig:
    """What a collection is made of. It and nothing else determines the files."""

    gait: str = "trot"
    """How the robot walks: stand, walk, trot, bound, pace, pronk, trot-to-bound for a change half-way, stationary for
    random joint targets, airborne for a robot that is carried, or rising for one that lies down and gets up."""
    terrain: str = "rubber"
    """What it walks on: flat, rubber, slippery, debris, circular, rough, slope or ice."""
    episodes: int = 200
    """How many episodes; a finished collection can be made longer."""
    seconds: float = 10.0
    """Length of each."""
    seed: int = 0
    """Every random number comes from here."""
    robot: str = "go1"
    """Name of a robot, or the path of its YAML file."""
    random_robots: bool = False
    """Walk another robot in every episode: lengths, masses and feet drawn at random around those of `robot`."""
    sensors: str = "training"
    """Which robot: `exact` sensors, `training` (noise on the IMU only), or `twin`, the benchmark robot in body and
    sensors."""
    feedback: str = "truth"
    """Where the controller's velocity and orientation come from: truth, or a method or model file that
    `gait.Estimator.load` takes."""
    stationary_share: float = 0.0
    """Share of the episodes that follow random joint targets and hardly move."""
    airborne_share: float = 0.0
    """Share of the episodes in which the robot is lifted, carried, dropped and tossed while its legs move."""
    nominal: bool = False
    """Leave friction, masses, gains and control rate as they are, without pushes; commands stay random."""
    keep_falls: bool = False
    """Keep episodes in which the robot falls, whole; otherwise they are replaced."""

    def __post_init__(self) -> None:
        try:
            from gait.sim.episode import check_feedback
            from gait.sim.gaits import GAIT_NAMES, OTHERS, TRANSITIONS
            from gait.sim.mismatch import PROFILES
            from gait.sim.world import TERRAINS
        except ModuleNotFoundError as error:
            raise need_extra(error.name or "mujoco", "sim") from None
        known = {"gait": (*GAIT_NAMES, *TRANSITIONS, *OTHERS), "terrain": tuple(TERRAINS), "sensors": PROFILES}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise GaitError(f"unknown {name} '{getattr(self, name)}': choose one of {', '.join(choices)}")
        check_feedback(self.feedback)
        for name, least in {"episodes": 1, "seed": 0}.items():
            if getattr(self, name) < least:
                raise GaitError(f"{name} must be {least} or more, got {getattr(self, name)}")
        for name, (low, high) in {"seconds": (0.1, 3600), "stationary_share": (0, 1), "airborne_share": (0, 1)}.items():
            if not low <= getattr(self, name) <= high:
                raise GaitError(f"{name} must lie between {low} and {high}, got {getattr(self, name)}")
        if self.stationary_share + self.airborne_share > 1.0 + 1e-9:
            raise GaitError("stationary_share and airborne_share together must not exceed 1: lower one of them")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as files keep them."""
        # Collections from before there were these settings are the same without them.
        new = ("airborne_share", "random_robots")
        return {name: value for name, value in asdict(self).items() if value or name not in new}
