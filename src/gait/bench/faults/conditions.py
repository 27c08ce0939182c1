"""Conditions that are no fault of a sensor: carried, on a cart, upside down, at rest, a start that is not at rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gait import lie, quaternions
from gait.arrays import Array
from gait.bench.faults.fault import Fault, Inject, Span, nothing
from gait.bench.faults.feed import Feed
from gait.errors import need_extra
from gait.io import open_log
from gait.log import Log
from gait.robot import Robot

if TYPE_CHECKING:
    from gait.sim.episode import RawEpisode

SEED = 65001
GRAVITY = 9.81
STAND, SLOW = 610.0, 30.0
"""Seconds of standing, and of slow walking."""


def _raw(name: str) -> RawEpisode:
    from gait.bench.faults.scripted_hand import SCRIPTS, script_config, scripted_episode
    from gait.sim.episode import run_episode
    from gait.sim.mismatch import body_of
    from gait.sim.settings import Command, EpisodeConfig

    if name in SCRIPTS:
        return scripted_episode(name, body_of("twin", script_config(name)), SEED)
    walk = {"stand": ("stand", STAND, 0.0), "slow": ("trot", SLOW, 0.05)}
    gait, seconds, speed = walk[name]
    config = EpisodeConfig(gait=gait, terrain="rubber", seconds=seconds, commands=(Command(vx=speed),))
    return run_episode(body_of("twin", config), SEED)


def course_log(name: str, folder: Path) -> Log:
    """The log of a course with the benchmark's twin; simulated once and kept in the folder."""
    path = folder / f"{name}-{SEED}.npz"
    if not path.is_file():
        try:
            from gait.sim.mismatch import sensors_of
            from gait.sim.sensors import sense
        except ModuleNotFoundError as error:
            raise need_extra(error.name or "mujoco", "sim") from None
        raw = _raw(name)
        source = f"gait bench faults: {name}, twin sensors, seed {SEED}"
        log = sense(raw, Robot.load("go1"), sensors_of("twin"), np.random.default_rng(SEED), source)
        folder.mkdir(parents=True, exist_ok=True)
        log.save(path)
    return open_log(path)


def off_the_ground(log: Log) -> tuple[float, float]:
    """From the first moment without any foot on the ground to the last."""
    assert log.contact is not None
    away = np.flatnonzero(~log.contact.any(1) & (log.t > 2.0))
    return float(log.t[away[0]]), float(log.t[away[-1]])


def course_span(fault: Fault, log: Log) -> Span | None:
    """When a condition acts in the log of its course."""
    begin, end = float(log.t[0]), float(log.t[-1])
    if fault.inject is nothing and fault.lasts == "while":
        return Span(*off_the_ground(log), end + 1.0)
    if fault.inject is nothing:
        return Span(begin, end + 1.0, end + 1.0)
    return fault.span(begin, end)


def _bump(time: Array, begin: float, end: float, ramp: float) -> tuple[Array, Array]:
    """A share that rises from 0 to 1 and falls again, smooth in its derivative, and that derivative (N,)."""
    up, down = (np.clip((time - at) / ramp, 0.0, 1.0) for at in (begin, end - ramp))

    def rise(x: Array) -> Array:
        return np.asarray(x * x * (3.0 - 2.0 * x))

    def slope(x: Array) -> Array:
        return np.asarray(6.0 * x * (1.0 - x) / ramp)

    return rise(up) - rise(down), slope(up) - slope(down)


def on_cart(speed: float) -> Inject:
    """A robot that stands on a cart, which rolls along x, as fast as this after a second, and stops."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        robot = feed.log.load_robot()
        share, slope = _bump(feed.time, feed.time[rows.start], feed.time[rows.stop - 1], 1.0)
        accel_w = np.zeros((len(feed), 3))
        accel_w[:, 0] = speed * slope
        feed.values["accel"] += _in_imu(robot, feed.truth["quat_wb_wxyz"], accel_w)
        feed.truth["vel_w"][:, 0] += speed * share
        feed.truth["pos_w"][:, 0] += np.concatenate(([0.0], np.cumsum(speed * share[1:] * np.diff(feed.time))))
        return feed

    return inject


def _in_imu(robot: Robot, quat_wb: Array, vector_w: Array) -> Array:
    """Vectors of the world (N, 3) in the axes of the IMU."""
    vector_b = quaternions.rotate_inverse(quat_wb, vector_w)
    return quaternions.rotate_inverse(np.broadcast_to(robot.imu_quat_wxyz, quat_wb.shape), vector_b)


def swing_legs(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """A robot that rests on its belly while its legs swing without load."""
    robot = feed.log.load_robot()
    share, slope = _bump(feed.time, feed.time[rows.start], feed.time[rows.stop - 1], 0.5)
    size = np.tile([0.15, 0.4, 0.4], robot.num_legs)
    rate = 2.0 * np.pi * 1.5
    phase = rate * (feed.time[:, None] - feed.time[rows.start]) + rng.uniform(-np.pi, np.pi, robot.num_joints)
    feed.values["q"] += share[:, None] * size * np.sin(phase)
    feed.values["dq"] += size * (share[:, None] * rate * np.cos(phase) + slope[:, None] * np.sin(phase))
    light = 1.0 - share[:, None]
    # Unloaded legs: friction of the joints is all that the drives feel.
    feed.values["tau"] = light * feed.values["tau"] + (1.0 - light) * 0.3 * np.tanh(feed.values["dq"])
    feed.values["q_des"] = feed.values["q"] + light * (feed.values["q_des"] - feed.log.q)
    return feed


def start_moving(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """The estimator starts from gravity while the robot walks."""
    return replace(feed.take(np.arange(rows.start, len(feed))), start="gravity")


def start_tilted(roll: float, pitch: float) -> Inject:
    """The robot rests at an angle, and the estimator starts from gravity. Torques stay those of a level stand."""
    R = lie.so3_exp(np.radians([roll, 0.0, 0.0])) @ lie.so3_exp(np.radians([0.0, pitch, 0.0]))
    turn = lie.quat_from_rotation(R)

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        robot, quat = feed.log.load_robot(), feed.truth["quat_wb_wxyz"]
        tilted = quaternions.multiply(np.broadcast_to(turn, quat.shape), quat)
        up = np.broadcast_to([0.0, 0.0, GRAVITY], (len(feed), 3))
        feed.values["accel"] += _in_imu(robot, tilted, up) - _in_imu(robot, quat, up)
        feed.truth["quat_wb_wxyz"][:] = tilted
        return replace(feed, start="gravity")

    return inject


_FLOATING = "no measurement"
_CART = "at constant velocity a robot with still legs on a cart measures what one on the ground does"

CONDITIONS: tuple[Fault, ...] = (
    Fault("carried", "lifted, carried at 1 m/s for 4 s, put down", nothing, flag=_FLOATING, course="carried"),
    Fault("carried-still", "the same for 10 s, legs still", nothing, flag=_FLOATING, course="carried-still"),
    Fault("cart", "on a cart at 1 m/s", on_cart(1.0), seconds=6.0, course="stand", hidden=_CART),
    Fault("tumbling", "lifted and rolled over twice", nothing, flag=_FLOATING, course="tumbling"),
    Fault("on-back", "laid on its back, legs swinging, and set on its feet", nothing, flag=_FLOATING, course="on-back"),
    Fault("lying-legs", "at rest on its belly, legs swinging", swing_legs, seconds=6.0, course="stand"),
    Fault("stand-10min", "standing for 10 minutes", nothing, lasts="whole", quiet=True,
          course="stand"),
    Fault("slow", "trot at 0.05 m/s", nothing, lasts="whole", quiet=True, course="slow"),
    Fault("start-moving", "start from gravity while walking", start_moving, lasts="on"),
    Fault("start-tilted", "start from gravity, at rest, rolled by 30 and pitched by 20 degrees",
          start_tilted(30.0, 20.0), lasts="whole", quiet=True, course="stand"),
)  # fmt: skip
