"""What a collection is made of. This module imports nothing heavy, so that a command line can be made from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Optional

from gait.errors import GaitError, need_extra


@dataclass(frozen=True)
class CollectConfig:
    """What a collection is made of. It and nothing else determines the files."""

    gait: str = "trot"
    """How the robot walks: stand, walk, trot, bound, pace, pronk, trot-to-bound for a change half-way, stationary for
    random joint targets, airborne for a robot that is carried, rising for one that lies down and gets up, or zmp for a
    biped that follows planned footsteps."""
    terrain: str = "rubber"
    """What it walks on: flat, rubber, slippery, debris, circular, rough, slope or ice; with a policy also scene, the
    ground that its scene brings."""
    episodes: int = 200
    """How many episodes; a finished collection can be made longer."""
    seconds: float = 10.0
    """Length of each."""
    seed: int = 0
    """Every random number comes from here."""
    robot: str = "go1"
    """Name of a robot, or the path of its YAML file."""
    random_robots: bool = False
    """Walk another robot in every episode: lengths, masses and feet drawn at random around those of `robot`, or within
    10 to 15 % around those of a policy's robot."""
    varied: bool = False
    """Walk as other controllers and robots may: feet and ground that give way by up to 15 mm, postures and steps of
    other heights and frequencies. With a policy: random robots, if gait has its robot."""
    sensors: str = "training"
    """Which robot: `exact` sensors, `training` (noise on the IMU only), or a benchmark robot in body and sensors:
    `twin`, version 1, or `twin2`, another robot in every episode."""
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
    policy: str = ""
    """An ONNX file: this learned controller walks, in place of the gait; see docs/deploy.md."""
    model: str = ""
    """With a policy: the MJCF scene it walks in, or the name of one that gait describes: go1, g1."""
    observation: str = ""
    """With a policy: the YAML file that describes its observation, or one that comes with gait: go1, g1."""
    rigid: bool = False
    """With a policy: nearly rigid ground contacts, as in our own walks, in place of the scene's."""
    commands: str = "random"
    """How the robot is steered: random, constant, turning or stop-and-go."""
    # Not `float | None`: for that tyro imports a type checker, which doubles the time of a help.
    friction: Optional[float] = None  # noqa: UP045
    """Sliding friction of the ground; by default drawn from the terrain's range, or its own with --nominal."""
    payload: Optional[float] = None  # noqa: UP045
    """Kilograms on the base; by default drawn, or none with --nominal."""
    motor_strength: Optional[float] = None  # noqa: UP045
    """Torque that acts relative to the torque that is asked for; by default drawn, or 1 with --nominal."""
    pushes: bool = False
    """Push the base with --nominal too: forces of 1 to 5 N s over 0.05 to 0.2 s, every 6 s on average."""

    def __post_init__(self) -> None:
        try:
            from gait.sim.episode import check_feedback
            from gait.sim.gaits import GAIT_NAMES, OTHERS, TRANSITIONS
            from gait.sim.mismatch import PROFILES
            from gait.sim.settings import SCENE, SCHEDULES
            from gait.sim.world import TERRAINS
        except ModuleNotFoundError as error:
            raise need_extra(error.name or "mujoco", "sim") from None
        grounds = (*TERRAINS, SCENE) if self.policy else tuple(TERRAINS)
        known = {"gait": (*GAIT_NAMES, *TRANSITIONS, *OTHERS), "terrain": grounds, "sensors": PROFILES}
        known["commands"] = tuple(SCHEDULES)
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise GaitError(f"unknown {name} '{getattr(self, name)}': choose one of {', '.join(choices)}")
        check_feedback(self.feedback)
        self._check_policy()
        self._check_biped()
        for name, least in {"episodes": 1, "seed": 0}.items():
            if getattr(self, name) < least:
                raise GaitError(f"{name} must be {least} or more, got {getattr(self, name)}")
        for name, (low, high) in {"seconds": (0.1, 3600), "stationary_share": (0, 1), "airborne_share": (0, 1)}.items():
            if not low <= getattr(self, name) <= high:
                raise GaitError(f"{name} must lie between {low} and {high}, got {getattr(self, name)}")
        if self.stationary_share + self.airborne_share > 1.0 + 1e-9:
            raise GaitError("stationary_share and airborne_share together must not exceed 1: lower one of them")

    def _check_policy(self) -> None:
        """Read the files of the policy, so that what they lack is asked for before anything is simulated."""
        if not self.policy:
            for name in ("model", "observation", "rigid"):
                if getattr(self, name):
                    raise GaitError(f"{name} is of a policy: name its ONNX file with --policy")
            return
        for name in ("stationary_share", "airborne_share"):
            if getattr(self, name):
                raise GaitError(f"{name} is not for a policy: leave it out, or leave out --policy")
        from gait.sim.policy.rig import known_robot, rig_of

        rig = rig_of(self.files)
        if self.feedback != "truth" or self.random_robots:
            known_robot(rig)

    def _check_biped(self) -> None:
        from gait.sim.gaits import ZMP

        if self.gait != ZMP or self.policy:
            return
        for name in ("stationary_share", "airborne_share", "pushes"):
            if getattr(self, name):
                raise GaitError(f"{name} is not for the gait {ZMP}: leave it out, or choose another gait")
        from gait.robot import Robot
        from gait.sim.zmp.biped_variety import check_biped

        check_biped(Robot.load(self.robot))

    @property
    def files(self) -> Any:
        """The files of the policy."""
        from gait.sim.settings import PolicyFiles

        return PolicyFiles(self.policy, self.model, self.observation, self.rigid)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as files keep them."""
        # Collections from before there were these settings are the same without them.
        new = {name: getattr(CollectConfig, name) for name in _LATER}
        values = {name: value for name, value in asdict(self).items() if name not in new or value != new[name]}
        values["gait"] = "policy" if self.policy else self.gait
        # Digests of the files go with their names; a folder of this machine means nothing elsewhere.
        return {name: Path(value).name if name in _FILES else value for name, value in values.items()}


_FILES = ("policy", "model", "observation")
_LATER = (
    "airborne_share", "random_robots", "varied", "policy", "model", "observation", "rigid", "commands", "friction",
    "payload", "motor_strength", "pushes",
)  # fmt: skip
