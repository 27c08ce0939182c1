"""Simulated courses in which the robot is lifted, carried, turned over and put down, by a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gait.robot import Robot
from gait.sim.airborne import Hand
from gait.sim.episode import RawEpisode, Simulation, episode_body
from gait.sim.gaits import AIRBORNE
from gait.sim.handled import HandledLegs
from gait.sim.settings import EpisodeConfig


@dataclass(frozen=True)
class Move:
    """One entry of a script."""

    seconds: float
    held: bool = True
    """Whether the hand holds the robot; otherwise it is left alone."""
    velocity: tuple[float, float] = (0.0, 0.0)
    """Horizontal, m/s, in the world."""
    height: float = 0.0
    """Above that of a standing robot, m."""
    roll: float = 0.0
    """Where to turn about x, rad; reached at `ROLL_RATE`."""
    down: bool = False
    """Lower the robot until the ground bears it, and let go; `seconds` is the limit."""
    legs: str = "stand"
    """What the legs do: a motion of `HandledLegs`."""


ROLL_RATE = 3.0
"""rad/s at which the hand turns the robot about x."""
LOWERING = 0.3
"""m/s at which it puts the robot down."""

SCRIPTS: Mapping[str, Sequence[Move]] = {
    "carried": (
        Move(5.5, held=False),
        Move(1.0, height=0.3, legs="swim"),
        Move(4.0, velocity=(1.0, 0.0), height=0.3, legs="swim"),
        Move(0.7, height=0.3, legs="swim"),
        Move(3.0, down=True, legs="hold"),
        Move(8.0, held=False, legs="hold"),
    ),
    "carried-still": (
        Move(5.5, held=False),
        Move(1.0, height=0.3, legs="hold"),
        Move(10.0, velocity=(1.0, 0.0), height=0.3, legs="hold"),
        Move(0.7, height=0.3, legs="hold"),
        Move(3.0, down=True, legs="hold"),
        Move(8.0, held=False, legs="hold"),
    ),
    "tumbling": (
        Move(5.5, held=False),
        Move(1.0, height=0.6, legs="swim"),
        Move(2.5 * np.pi / ROLL_RATE, height=0.6, roll=2.0 * np.pi, legs="swim"),
        Move(2.5 * np.pi / ROLL_RATE, height=0.6, roll=4.0 * np.pi, legs="swim"),
        Move(3.0, roll=4.0 * np.pi, down=True, legs="hold"),
        Move(8.0, held=False, legs="hold"),
    ),
    "on-back": (
        Move(5.5, held=False),
        Move(1.0, height=0.4, legs="hold"),
        Move(1.6, height=0.4, roll=np.pi, legs="hold"),
        Move(3.0, roll=np.pi, down=True, legs="hold"),
        Move(5.0, held=False, legs="swim"),
        Move(1.0, height=0.4, roll=np.pi, legs="hold"),
        Move(1.6, height=0.4, roll=0.0, legs="hold"),
        Move(3.0, down=True, legs="hold"),
        Move(7.0, held=False, legs="hold"),
    ),
}  # fmt: skip
"""What happens, by name; the first 1.5 s of it are before the recording."""


class ScriptedLegs(HandledLegs):
    """Legs that do what a script says."""

    motion = "stand"

    def choose(self, chances: Mapping[str, float] | None = None) -> None:
        """Go on with the motion of the script."""
        self._take_up(self.motion)


class ScriptedHand(Hand):
    """A hand that follows a script."""

    def __init__(self, simulation: Simulation, period: float, legs: ScriptedLegs, script: Sequence[Move]) -> None:
        body = episode_body(simulation.config)
        super().__init__(body, simulation.model, simulation.data, period, legs, simulation.rng)
        self._script, self._scripted, self._roll = script, legs, 0.0

    def actions(self) -> Iterator[None]:
        """The script, to be continued once a control step; then the robot is left alone."""
        for move in self._script:
            yield from self._do(move)
        while True:
            yield

    def _do(self, move: Move) -> Iterator[None]:
        airborne = move.held and not move.down
        if (self._scripted.motion, self._scripted.airborne) != (move.legs, airborne):
            self._scripted.motion, self._scripted.airborne = move.legs, airborne
            self._scripted.choose()
        if not move.held:
            self._let_go()
        elif not self._holds:
            self._take(0.1)
            self._target.rpy[0] = self._roll
        for _ in range(round(move.seconds / self._period)):
            self._goal[:3] = *move.velocity, 0.0
            self._roll += float(np.clip(move.roll - self._roll, -ROLL_RATE * self._period, ROLL_RATE * self._period))
            self._goal[3:] = self._roll, 0.0, 0.0
            if move.down:
                self._goal[2] = -LOWERING
                if self._bears(0.6 * self._mass * 9.81):
                    break
            elif move.held:
                self._rise(move.height, 0.6)
            yield
        if move.down:
            # Little by little, so that the legs take over the weight.
            self._goal[2] = 0.0
            self._grasp = self._grasp._replace(grip=0.0, grip_rate=2.0)
            while self._target.grip[0] > 0.0:
                yield
            self._let_go()


class ScriptedSimulation(Simulation):
    """A robot that stands until the hand comes."""

    def __init__(self, config: EpisodeConfig, seed: int, script: Sequence[Move]) -> None:
        super().__init__(config, seed)
        settings: tuple[Any, ...] = (config.kp, config.kd, 1.0 / config.control_rate, self.rng)
        legs = ScriptedLegs(cast(Robot, self.robot), *settings)
        hand = ScriptedHand(self, settings[2], legs, script)
        self.controller, self.physics, self._hand = legs, hand.step, hand.actions()


def scripted_episode(name: str, config: EpisodeConfig, seed: int) -> RawEpisode:
    """Run a script from start to end."""
    simulation = ScriptedSimulation(config, seed, SCRIPTS[name])
    while not simulation.done:
        simulation.step()
    return simulation.episode()


def script_config(name: str, **settings: Any) -> EpisodeConfig:
    """The episode of a script: as long as it takes at most, the settling before the recording among it."""
    seconds = sum(move.seconds for move in SCRIPTS[name])
    return EpisodeConfig(gait=AIRBORNE, seconds=seconds - 1.5, settle=1.5, stop_at_fall=False, **settings)
