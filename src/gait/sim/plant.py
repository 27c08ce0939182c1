"""What an episode moves: a compiled model, where its joints are, how they are driven, and where its feet are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gait.arrays import Array, IntArray
from gait.robot import BareRobot, Robot
from gait.sim import stepping
from gait.sim.kernels import Legs
from gait.sim.world import build_model, stand_state

if TYPE_CHECKING:
    from gait.sim.settings import EpisodeConfig

Feet = Callable[[Array, Array], tuple[Array, Array]]
"""From the record (N, W) and the frames of the feet (N, F) to the feet's places and the velocities of their lowest
points, (N, L, 3) each, in the world frame."""


@dataclass(frozen=True)
class Plant:
    """A robot in a world. Joints are in the order of the Log."""

    robot: Robot | BareRobot
    """As it is described."""
    model: Any
    start: Array
    """First entries of the generalised position: the base's pose wxyz, then joints."""
    q_start: Array
    """Joint targets at the start (J,)."""
    kp: Array
    kd: Array
    limit: Array
    qpos_at: IntArray
    """Where in MuJoCo's state the joints are (J,)."""
    qvel_at: IntArray
    ctrl_at: IntArray
    feet: Feet
    frames: tuple[int, int] = (0, 0)
    """First and last plus one of the sensor values to record with each row, for `feet`."""
    least_height: float = -np.inf
    """Base above its lowest foot, m; below that a robot has fallen. Its feet are the first numbers of `frames`."""

    def views(self, data: Any) -> stepping.Physics:
        """The state as compiled code sees it."""
        places = self.qpos_at, self.qvel_at, self.ctrl_at
        return stepping.Physics(data.qpos, data.qvel, data.sensordata, data.ctrl, *places)


def robot_plant(robot: Robot, body: Robot, config: EpisodeConfig, rng: np.random.Generator) -> Plant:
    """A robot that gait describes, on a terrain; `body` is what it is in truth, `robot` what it is said to be."""
    joints = np.arange(robot.num_joints)
    legs, radius = Legs.of(body), body.foot_radius

    def feet(rows: Array, frames: Array) -> tuple[Array, Array]:
        shape = (len(rows), robot.num_legs, 3)
        place, velocity = np.empty(shape), np.empty(shape)
        stepping.feet_of_rows(legs, radius, rows, place, velocity)
        return place, velocity

    return Plant(
        robot=robot,
        model=build_model(body, config, rng),
        start=stand_state(body),
        q_start=robot.q_stand.copy(),
        kp=np.full(len(joints), float(config.kp)),
        kd=np.full(len(joints), float(config.kd)),
        limit=robot.torque_limit,
        qpos_at=joints + 7,
        qvel_at=joints + 6,
        ctrl_at=joints,
        feet=feet,
    )
