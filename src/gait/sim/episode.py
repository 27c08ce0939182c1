"""Episodes: one robot in one world from start to end, every millisecond recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat

import numpy as np

from gait.arrays import Array, BoolArray, IntArray
from gait.errors import GaitError
from gait.robot import Robot, robot_names
from gait.sim import stepping
from gait.sim.airborne import Hand
from gait.sim.gaits import AIRBORNE, OTHERS, RISING, STATIONARY, leg_corners
from gait.sim.handled import HandledLegs
from gait.sim.kernels import Legs
from gait.sim.mpc.controller import Controller
from gait.sim.physics import mujoco
from gait.sim.postures import LegMotion, RandomTargets, Rising
from gait.sim.settings import EpisodeConfig, check_schedule
from gait.sim.variety import variant_of
from gait.sim.world import TIMESTEP, build_model, scaled_robot, stand_state

Feedback = Callable[[Array], tuple[Array, Array]]
"""Supplies the controller's velocity (3,) in the world frame and orientation wxyz (4,) in place of ground truth.

It takes the record rows since its last call, one per millisecond, the newest last; columns are the slices of
`gait.sim.stepping`. In the newest row `Q_DES`, `TAU` and `FORCE` are not known yet. The first row of an episode may be
used to initialise; what sensors make of the others is up to the feedback, which must not pass ground truth on.
"""
TRUTH = "truth"
"""Name of the feedback from ground truth."""
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
        check_schedule(config.commands)
        if not 50 <= config.control_rate <= 500 or 1000 % config.control_rate:
            raise GaitError(f"control_rate {config.control_rate} must divide 1000 and lie between 50 and 500 Hz")
        if config.feedback != TRUTH and feedback is None:
            raise GaitError(f"feedback '{config.feedback}' is only a name here: give the estimator itself as well")
        if config.seconds <= 0.0 or config.kp <= 0.0:
            raise GaitError("seconds and kp of an episode must be positive")
        self.config, self.seed = config, seed
        self.robot = episode_robot(config)
        leg_corners(self.robot)  # other robots do not fit the record's columns, nor the controller
        self.body = scaled_robot(self.robot, np.array(config.link_scale or np.ones((4, 3))))
        world_rng, self.rng = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
        self.model = build_model(self.body, config, world_rng)
        self.data = d = mujoco.MjData(self.model)
        d.qpos[:19] = stand_state(self.body)
        self._hold = 1000 // config.control_rate
        self._settle = round(config.settle * config.control_rate) * self._hold
        self._rows = self._settle + round(config.seconds * 1000) + 1
        self.record, self.row = np.zeros((self._rows, stepping.WIDTH)), 0
        lag, limits = config.motor_time_constant, self.robot.torque_limit
        response = 1.0 if lag <= 0.0 else 1.0 - float(np.exp(-TIMESTEP / lag))
        gains = float(config.kp), float(config.kd), float(config.motor_strength)
        self._motors = stepping.Motors(*gains, limits, response, np.zeros_like(limits))
        self._views = stepping.Physics(d.qpos, d.qvel, d.sensordata, d.ctrl)
        self.q_des, self._note = self.robot.q_stand.reshape(-1, 3).copy(), np.zeros(4)
        self._feedback, self._fed = feedback, 0
        # Stand for the first 0.3 s, then walk: the schedule's first entry counts before the recording starts.
        begin, first = min(0.3, config.settle) - self._settle * TIMESTEP - 1e-9, config.commands[0]
        self._schedule = [replace(first, start=begin, gait=first.gait or config.gait), *config.commands[1:]]
        self.fell_row: int | None = None
        self.physics: Callable[..., object] = mujoco.mj_step
        self.controller: Controller | LegMotion
        self._hand: Iterator[None] = repeat(None)
        settings = config.kp, config.kd, 1.0 / config.control_rate
        if config.gait == STATIONARY:
            self.controller = RandomTargets(self.robot, *settings, self.rng)
        elif config.gait == AIRBORNE:
            hand_rng, legs_rng = self.rng.spawn(2)
            self.controller = HandledLegs(self.robot, *settings, legs_rng)
            hand = Hand(self.body, self.model, self.data, settings[-1], self.controller, hand_rng)
            self.physics, self._hand = hand.step, hand.actions()
        elif config.gait == RISING:
            self.controller = Rising(self.robot, *settings, self.rng)
            d.qpos[:19] = self.controller.start(self.body)
        else:
            self.controller = Controller(self.robot, "stand", *settings)
        self.record[0, :7], self.record[0, stepping.Q] = d.qpos[:7], d.qpos[7:19]

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
        quat, vel = qpos[3:7], qvel[:3]
        if self._feedback is not None:
            vel, quat = self._feedback(self.record[self._fed : self.row + 1])
            self._fed = self.row + 1
        self.q_des = self.controller.step(qpos[7:19], qvel[6:18], quat, qvel[3:6], vel)
        self._note[:3], self._note[3] = self.controller.wanted, self.controller.gait_id
        if self.config.pushes:
            due = [push.force_w for push in self.config.pushes if push.start <= now < push.start + push.duration]
            self.data.body(self.robot.base_link).xfrc_applied[:3] = np.sum(due, axis=0)
        for _ in range(min(self._hold, self._rows - 1 - self.row)):
            stepping.actuate(self.row, self._views, self.q_des, self._motors, self._note, self.record)
            self.physics(self.model, self.data)
            self.row += 1
        upright = stepping.note_state(self.row, self._views, self.record)
        # Lying down is part of a stationary episode, tumbling of an airborne or rising one; a walking robot has fallen.
        down = self._views.sensors[0] > 0.0 and self.config.gait not in OTHERS
        tipped = upright < 0.5 and self.config.gait not in (AIRBORNE, RISING)
        if (down or tipped) and self.fell_row is None:
            self.fell_row = self.row

    def episode(self) -> RawEpisode:
        """What was recorded so far."""
        # The last row's forces need the dynamics of the last state.
        motors = self._motors._replace(torque=self._motors.torque.copy())
        stepping.actuate(self.row, self._views, self.q_des, motors, self._note, self.record)
        mujoco.mj_forward(self.model, self.data)
        self.record[self.row, stepping.FORCE] = -self._views.sensors[1:13]
        rows = self.record[min(self._settle, self.row) : self.row + 1]
        shape = (len(rows), self.robot.num_legs, 3)
        place, velocity = np.empty(shape), np.empty(shape)
        stepping.feet_of_rows(Legs.of(self.body), self.body.foot_radius, rows, place, velocity)
        recorded = {name: rows[:, columns].copy() for name, columns in stepping.RECORDED.items()}
        force = recorded.pop("foot_force_w").reshape(shape)
        return RawEpisode(
            **recorded,
            t=np.arange(len(rows), dtype=np.float64) * TIMESTEP,
            foot_pos_w=place,
            foot_vel_w=velocity,
            foot_force_w=force,
            contact=np.linalg.norm(force, axis=2) > stepping.CONTACT_FORCE,
            gait_id=rows[:, stepping.GAIT].astype(np.int64),
            fell_at=None if self.fell_row is None else max(self.fell_row - self._settle, 0) * TIMESTEP,
            config=self.config,
            seed=self.seed,
        )


def episode_robot(config: EpisodeConfig) -> Robot:
    """The robot of an episode, as it is described. It may be shared, so nobody may change its arrays."""
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
