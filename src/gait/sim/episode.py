"""Episodes: one robot in one world from start to end, every millisecond recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple, cast

import numpy as np

from gait.arrays import Array, BoolArray, IntArray
from gait.errors import GaitError
from gait.robot import BareRobot, Robot, robot_names
from gait.sim import stepping
from gait.sim.airborne import Hand
from gait.sim.gaits import AIRBORNE, OTHERS, RISING, STATIONARY, ZMP, leg_corners
from gait.sim.handled import HandledLegs
from gait.sim.mpc.controller import Controller
from gait.sim.physics import mujoco
from gait.sim.plant import Plant, robot_plant
from gait.sim.policy.rig import known_robot
from gait.sim.policy.scene_plant import scene_plant
from gait.sim.policy.scene_variety import episode_rig
from gait.sim.policy.walker import PolicyWalker
from gait.sim.postures import LegMotion, RandomTargets, Rising
from gait.sim.settings import EpisodeConfig, check_schedule
from gait.sim.variety import variant_of
from gait.sim.world import TIMESTEP, scaled_robot
from gait.sim.zmp.biped_plant import biped_plant
from gait.sim.zmp.biped_variety import BipedVariant, biped_of
from gait.sim.zmp.zmp_walker import Gantry, ZmpWalker


class Fed(NamedTuple):
    """What a controller is fed with."""

    vel_w: Array
    """Velocity of the base in the world frame (3,)."""
    quat_wb_wxyz: Array
    """Orientation of the base (4,)."""
    omega_b: Array
    """Angular velocity in the base frame (3,)."""


Feedback = Callable[[Array], Fed]
"""Feeds the controller in place of ground truth.

It takes the record rows since its last call, one per millisecond, the newest last; columns are those of
`gait.sim.stepping`. In the newest row targets, torques and forces are not known yet. The first row of an episode may be
used to initialise; what sensors make of the others is up to the feedback, which must not pass ground truth on.
"""
TRUTH = "truth"
"""Name of the feedback from ground truth."""
UNSTABLE = 300.0
"""No joint of a robot turns as fast, rad/s: the simulation has become unstable."""
_shipped = lru_cache(Robot.load)
"""Reading the YAML takes as long as a second of simulated walking; the package's own files do not change."""


@dataclass(frozen=True)
class RawEpisode:
    """Exact ground truth at 1 kHz: row 0 is the state at the start, one more row after every physics step.

    Positions, velocities and joint states of a row belong to the instant `t`. `q_des`, `tau` and the foot forces of a
    row are those in force from that instant until the next row, computed from that row's state. The base is the origin
    of the base link; feet are the centres of their spheres.
    """

    t: Array
    """Seconds from the start of the recording (N,)."""
    pos_w: Array
    """Position of the base (N, 3)."""
    quat_wb_wxyz: Array
    """Orientation of the base (N, 4)."""
    vel_w: Array
    """Velocity of the base (N, 3)."""
    omega_b: Array
    """Angular velocity in the base frame (N, 3)."""
    q: Array
    """Joint positions (N, 12)."""
    dq: Array
    """Joint velocities (N, 12)."""
    q_des: Array
    """Joint targets of the PD (N, 12)."""
    tau: Array
    """Joint torques that act (N, 12)."""
    foot_pos_w: Array
    """Centres of the feet (N, 4, 3)."""
    foot_vel_w: Array
    """Velocity of the lowest material point of each foot: zero when it rolls without slipping (N, 4, 3)."""
    foot_force_w: Array
    """Contact force on each foot (N, 4, 3)."""
    contact: BoolArray
    """Whether each foot truly bears on something (N, 4)."""
    command: Array
    """Commanded forward, sideways and yaw velocity (N, 3)."""
    gait_id: IntArray
    """Commanded gait, an index into `gait.sim.gaits.GAIT_NAMES`; -1 where none is walked (N,)."""
    fell_at: float | None
    """When the robot fell, in seconds; None if it did not."""
    config: EpisodeConfig
    """What made the episode."""
    seed: int


class Simulation:
    """One robot in one world, advanced control step by control step.

    Attributes:
        model: the MuJoCo model.
        data: its state.
        row: rows recorded so far, minus one: the row of the present state.
    """

    def __init__(self, config: EpisodeConfig, seed: int, feedback: Feedback | None = None) -> None:
        _check(config, feedback)
        self.config, self.seed = config, seed
        world_rng, self.rng = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
        self.plant = plant = _plant(config, world_rng)
        self.robot, self.model = plant.robot, plant.model
        self.data = d = mujoco.MjData(self.model)
        d.qpos[: len(plant.start)] = plant.start
        self._hold = 1000 // config.control_rate
        self._settle = round(config.settle * config.control_rate) * self._hold
        self._rows = self._settle + round(config.seconds * 1000) + 1
        self.columns = stepping.Columns(self.robot.num_joints, self.robot.num_legs)
        self.record, self.row = np.zeros((self._rows, self.columns.width)), 0
        self._of_feet = slice(*plant.frames)
        self._frames = np.zeros((self._rows, plant.frames[1] - plant.frames[0]))
        lag = config.motor_time_constant
        response = 1.0 if lag <= 0.0 else 1.0 - float(np.exp(-TIMESTEP / lag))
        drives = plant.kp, plant.kd, float(config.motor_strength), plant.limit
        self._motors = stepping.Motors(*drives, response, np.zeros_like(plant.limit))
        self._views = plant.views(d)
        self.q_des, self._note = plant.q_start.copy(), np.zeros(4)
        self._feedback, self._fed = feedback, 0
        # Stand for the first 0.3 s, then walk: the schedule's first entry counts before the recording starts.
        begin, first = min(0.3, config.settle) - self._settle * TIMESTEP - 1e-9, config.commands[0]
        self._schedule = [replace(first, start=begin, gait=first.gait or config.gait), *config.commands[1:]]
        self.fell_row: int | None = None
        self.physics: Callable[..., object] = mujoco.mj_step
        self._hand: Iterator[None] = repeat(None)
        self.controller = self._controller()
        self.record[0, :7], self.record[0, self.columns.q] = d.qpos[:7], d.qpos[plant.qpos_at]

    def _controller(self) -> Controller | LegMotion | PolicyWalker | ZmpWalker:
        """What moves the legs, with the robot where it starts."""
        config = self.config
        if config.policy is not None:
            return PolicyWalker(episode_rig(config))
        robot = cast("Robot", self.robot)
        if config.gait == ZMP:
            walker = ZmpWalker(robot, config, self.rng)
            self.data.qpos[: len(walker.start)] = walker.start
            self.physics = Gantry(robot, walker.base, config.control_rate, self.physics).step
            return walker
        settings = config.kp, config.kd, 1.0 / config.control_rate
        if config.gait == STATIONARY:
            return RandomTargets(robot, *settings, self.rng)
        if config.gait == AIRBORNE:
            hand_rng, legs_rng = self.rng.spawn(2)
            legs = HandledLegs(robot, *settings, legs_rng)
            hand = Hand(episode_body(config), self.model, self.data, settings[-1], legs, hand_rng)
            self.physics, self._hand = hand.step, hand.actions()
            return legs
        if config.gait == RISING:
            rising = Rising(robot, *settings, self.rng)
            self.data.qpos[:19] = rising.start(episode_body(config))
            return rising
        return Controller(robot, "stand", *settings)

    @property
    def time(self) -> float:
        """Seconds since the start of the recording; negative while the robot settles."""
        return (self.row - self._settle) * TIMESTEP

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.row >= self._rows - 1 or (self.fell_row is not None and self.config.stop_at_fall)

    def step(self) -> None:
        """One control step: read the state, compute joint targets and hold them for the control period."""
        next(self._hand)
        now, qpos, qvel = self.time, self.data.qpos, self.data.qvel
        while self._schedule and self._schedule[0].start <= now:
            self.controller.command(self._schedule.pop(0))
        quat, vel, omega = qpos[3:7], qvel[:3], qvel[3:6]
        if self._feedback is not None:
            vel, quat, omega = self._feedback(self.record[self._fed : self.row + 1])
            self._fed = self.row + 1
        joints = qpos[self.plant.qpos_at], qvel[self.plant.qvel_at]
        self.q_des = self.controller.step(*joints, quat, omega, vel).reshape(-1)
        self._note[:3], self._note[3] = self.controller.wanted, self.controller.gait_id
        if self.config.pushes:
            due = [push.force_w for push in self.config.pushes if push.start <= now < push.start + push.duration]
            self.data.body(self.robot.base_link).xfrc_applied[:3] = np.sum(due, axis=0)
        for _ in range(min(self._hold, self._rows - 1 - self.row)):
            stepping.actuate(self.row, self._views, self.q_des, self._motors, self._note, self.record)
            self.physics(self.model, self.data)
            # As all sensors, those of the state before the step.
            self._frames[self.row] = self.data.sensordata[self._of_feet]
            self.row += 1
        if self.fell_row is None and self._fallen():
            self.fell_row = self.row

    def _fallen(self) -> bool:
        upright = stepping.note_state(self.row, self._views, self.record)
        # Lying down is part of a stationary episode, tumbling of an airborne or rising one; a walking robot has fallen.
        down = self._views.sensors[0] > 0.0 and self.config.gait not in OTHERS
        tipped = upright < 0.5 and self.config.gait not in (AIRBORNE, RISING)
        # A body whose geoms do not collide, as in scenes made for training, sinks into the ground.
        feet = self._frames[self.row - 1, 2 : 3 * self.robot.num_legs : 3]
        low = feet.size > 0 and self.record[self.row, 2] - feet.min() < self.plant.least_height
        # Drives too stiff for their robot and its motors' lag begin to oscillate: that is no walk.
        unstable = np.abs(self.data.qvel[self.plant.qvel_at]).max() > UNSTABLE
        return bool(down or tipped or low or unstable)

    def episode(self) -> RawEpisode:
        """What was recorded so far."""
        # The last row's forces need the dynamics of the last state.
        motors = self._motors._replace(torque=self._motors.torque.copy())
        stepping.actuate(self.row, self._views, self.q_des, motors, self._note, self.record)
        mujoco.mj_forward(self.model, self.data)
        legs, first = self.robot.num_legs, min(self._settle, self.row)
        self.record[self.row, self.columns.force] = -self._views.sensors[1 : 1 + 3 * legs]
        self._frames[self.row] = self.data.sensordata[self._of_feet]
        rows = self.record[first : self.row + 1]
        place, velocity = self.plant.feet(rows, self._frames[first : self.row + 1])
        recorded = {name: rows[:, columns].copy() for name, columns in self.columns.recorded().items()}
        force = recorded.pop("foot_force_w").reshape(-1, legs, 3)
        return RawEpisode(
            **recorded,
            t=np.arange(len(rows), dtype=np.float64) * TIMESTEP,
            foot_pos_w=place,
            foot_vel_w=velocity,
            foot_force_w=force,
            contact=np.linalg.norm(force, axis=2) > stepping.CONTACT_FORCE,
            gait_id=rows[:, self.columns.gait].astype(np.int64),
            fell_at=None if self.fell_row is None else max(self.fell_row - self._settle, 0) * TIMESTEP,
            config=self.config,
            seed=self.seed,
        )


def _check(config: EpisodeConfig, feedback: Feedback | None) -> None:
    check_schedule(config.commands)
    least = 50 if config.policy is None else 10
    if not least <= config.control_rate <= 500 or 1000 % config.control_rate:
        raise GaitError(f"control_rate {config.control_rate} must divide 1000 and lie between {least} and 500 Hz")
    if config.feedback != TRUTH and feedback is None:
        raise GaitError(f"feedback '{config.feedback}' is only a name here: give the estimator itself as well")
    if config.seconds <= 0.0 or config.kp <= 0.0:
        raise GaitError("seconds and kp of an episode must be positive")


def _plant(config: EpisodeConfig, rng: np.random.Generator) -> Plant:
    if config.policy is not None:
        return scene_plant(episode_rig(config), config, rng)
    robot = described_robot(config)
    if config.gait == ZMP:
        return biped_plant(robot, config, rng)
    leg_corners(robot)  # the controller needs four legs
    return robot_plant(robot, episode_body(config), config, rng)


def episode_body(config: EpisodeConfig) -> Robot:
    """The robot of an episode as it truly is."""
    return scaled_robot(described_robot(config), np.array(config.link_scale or np.ones((4, 3))), config.foot_scale)


def episode_robot(config: EpisodeConfig) -> Robot | BareRobot:
    """The robot of an episode as its Log and its sensors know it. Its arrays may be shared: do not change them."""
    return described_robot(config) if config.policy is None else episode_rig(config).robot


def described_robot(config: EpisodeConfig) -> Robot:
    """The robot of an episode as gait describes it, which an estimator needs."""
    if config.policy is not None:
        return known_robot(episode_rig(config))
    if config.gait == ZMP:
        assert config.variant is None or isinstance(config.variant, BipedVariant)
        return biped_of(config.robot, config.variant)
    if config.variant is not None:
        return variant_of(config.robot, config.variant)
    return _shipped(config.robot) if config.robot in robot_names() else Robot.load(config.robot)


def run_episode(config: EpisodeConfig, seed: int, feedback: Feedback | None = None) -> RawEpisode:
    """Run one episode from start to end, or to the fall. The same arguments give the same bytes.

    Args:
        config: what happens.
        seed: draws the terrain's details, the targets of stationary episodes and the actions of airborne ones.
        feedback: estimator in the loop; None feeds ground truth to the controller.
    """
    simulation = Simulation(config, seed, feedback)
    while not simulation.done:
        simulation.step()
    return simulation.episode()


def check_feedback(name: str) -> None:
    """Raise a GaitError unless this names a feedback: `truth`, a method, or a model."""
    if name == TRUTH:
        return
    # Imported here: without an estimator in the loop its modules are not loaded.
    from gait.estimator import METHODS
    from gait.nets.model import load_model

    if name not in METHODS:
        try:
            load_model(name)
        except GaitError as error:
            choices = ", ".join((TRUTH, *METHODS))
            raise GaitError(f"unknown feedback '{name}': choose one of {choices} or a model file ({error})") from None
