"""Is the log what it says: units, signs, frames and order of joints, tried against gravity and the truth."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from gait import quaternions
from gait.arrays import Array
from gait.errors import GaitError
from gait.log.log import Log
from gait.robot import Robot

GRAVITY = 9.81
FAST = 8.0
"""A quadruped hardly turns faster than this (rad/s) for a tenth of the time."""
SLOW = 0.5
"""Feet that touch the ground move less than this (m/s) against it, most of the time."""
OFF = 0.015
"""A truth that is later than this (s) shifts a walking robot by more than it errs."""
_SOME = 20000


@dataclass(frozen=True)
class Finding:
    """One check."""

    name: str
    ok: bool
    words: str
    """What was found, and what to do about it if it is wrong."""


def check_log(log: Log, robot: Robot | None = None) -> list[Finding]:
    """Try a log against what a walking robot can do.

    Args:
        log: to be looked at.
        robot: its own by default; checks that need joints are left out if gait has none of that name.
    """
    log = _thinned(log)
    found = [_gravity(log), _gyro(log)]
    if robot is None:
        try:
            robot = Robot.load(log.robot)
        except GaitError:
            robot = None
    if robot is not None:
        try:
            ordered = log.reorder(robot)
        except GaitError as error:
            found.append(Finding("joints", False, str(error)))
        else:
            # What is wrong with the gyro would be blamed on the legs as well.
            found += _joints(ordered, robot, with_legs=found[1].ok)
    if log.q_des is None:
        words = "the log has none: gait and the filters on contacts do without, gait-flat and nmn cannot run"
        found.append(Finding("q_des", False, words))
    elif np.abs(log.q_des - log.q).max() == 0.0:
        found.append(Finding("q_des", False, "q_des equals q to the last bit: give the topic of the commands, or none"))
    else:
        rms = float(np.sqrt(np.mean((log.q_des - log.q) ** 2)))
        found.append(
            Finding("q_des", rms < 1.0, f"rms {rms:.3f} rad from q" + ("" if rms < 1.0 else ": check its unit"))
        )
    if log.has_truth:
        found += _truth(log, with_gravity=found[0].ok)
    return found


def _thinned(log: Log) -> Log:
    """A part that is quick to look at."""
    if len(log) <= _SOME:
        return log
    middle = (len(log) - _SOME) // 2
    return log.slice(float(log.t[middle]), float(log.t[middle + _SOME]))


def _gravity(log: Log) -> Finding:
    mean = log.accel.mean(axis=0)
    size = float(np.linalg.norm(mean))
    shown = f"the accelerometer feels {mean[0]:.2f}, {mean[1]:.2f}, {mean[2]:.2f} m/s^2 on average"
    if 0.8 < size < 1.2:
        return Finding("gravity", False, f"{shown}, so it is in g: multiply by 9.81 (--columns: accel.x g)")
    if size < 3.0:
        return Finding(
            "gravity", False, f"{shown}: gravity was taken out of it, but the filter needs it; record it raw"
        )
    if abs(size - GRAVITY) > 2.0:
        return Finding("gravity", False, f"{shown}, but it should be 9.81 in size: check its unit")
    if mean[2] < -0.7 * size:
        return Finding("gravity", False, f"{shown}: gravity points the wrong way, change the sign of accel")
    if mean[2] < 0.7 * size:
        axis = "xyz"[int(np.argmax(np.abs(mean)))]
        return Finding("gravity", False, f"{shown}: up is along {axis}; give the pose of the IMU in the robot's YAML")
    return Finding("gravity", True, shown)


def _gyro(log: Log) -> Finding:
    speed = np.linalg.norm(log.gyro, axis=1)
    usual = float(np.percentile(speed, 90))
    shown = f"it turns at up to {usual:.2f} rad/s for nine tenths of the time"
    if log.has_truth:
        from gait.io.velocity import rotation_rate

        true = float(np.sqrt(np.mean(rotation_rate(log.t, log.need("quat_wb_wxyz")) ** 2)))
        ours = float(np.sqrt(np.mean(log.gyro**2)))
        if true > 0.05 and 30.0 < ours / true < 110.0:
            return Finding(
                "gyro", False, f"{shown}, {ours / true:.0f} times the truth: it is in degrees (--columns: deg/s)"
            )
    if usual > FAST:
        return Finding("gyro", False, f"{shown}: that is degrees a second, most likely; divide by 57.3")
    if usual == 0.0:
        return Finding("gyro", False, "it is zero: choose another topic with --imu")
    return Finding("gyro", True, shown)


def _joints(log: Log, robot: Robot, with_legs: bool) -> list[Finding]:
    """Angles within the range, feet below the body, and legs that measure the body's velocity."""
    wide = 0.2
    outside = np.mean((log.q < robot.q_lower - wide) | (log.q > robot.q_upper + wide), axis=0)
    found = []
    if np.abs(log.q).max() > 10.0:
        found.append(
            Finding("joints", False, f"angles of up to {np.abs(log.q).max():.0f}: they are in degrees (--columns: deg)")
        )
    elif outside.max() > 0.01:
        worst = int(np.argmax(outside))
        words = (
            f"{robot.joint_names[worst]} is out of its range {outside[worst]:.0%} of the time: check order and signs"
        )
        found.append(Finding("joints", False, words))
    feet = robot.feet(log.q)  # (N, L, 3)
    height = feet[..., 2].mean(axis=0)
    if (height > -0.05).any():
        legs = ", ".join(robot.leg_names[i] for i in np.flatnonzero(height > -0.05))
        found.append(
            Finding("feet", False, f"the feet of {legs} are level with the body: joint order or signs are wrong")
        )
    if not found:
        found.append(Finding("joints", True, f"in range; feet {-height.mean():.2f} m below the body"))
    if with_legs:
        words, ok = _leg_odometry(log, robot)
        found.append(Finding("legs", ok, words))
    return found


def _leg_odometry(log: Log, robot: Robot) -> tuple[str, bool]:
    """The velocity that legs measure, against the truth or among the two lowest feet, in this order and in others."""
    rows = np.arange(0, len(log), max(1, len(log) // 1500))
    gyro = quaternions.rotate(np.broadcast_to(robot.imu_quat_wxyz, (len(rows), 4)), log.gyro[rows])
    q, dq = (array[rows].reshape(len(rows), robot.num_legs, 3) for array in (log.q, log.dq))
    vel_b = log.vel_b[rows] if log.has_truth else None
    legs = range(robot.num_legs)
    apart = {
        order: _disagreement(robot, q[:, order].reshape(len(rows), -1), dq[:, order].reshape(len(rows), -1), gyro, None)
        for order in (itertools.permutations(legs) if robot.num_legs <= 4 else [tuple(legs)])
    }
    now, best = apart[tuple(legs)], min(apart, key=lambda order: apart[order])
    ours = now if vel_b is None else _disagreement(robot, log.q[rows], log.dq[rows], gyro, vel_b)
    speed = 0.0 if vel_b is None else float(np.median(np.linalg.norm(vel_b, axis=1)))
    words = (
        f"the two lowest feet agree on the velocity to {ours:.2f} m/s (median)"
        if vel_b is None
        else f"the lowest foot tells the true velocity to {ours:.2f} m/s (median; the robot goes {speed:.2f} m/s)"
    )
    if now > 0.1 and apart[best] < 0.5 * now:
        # Feet on the ground agree with each other; this tells legs apart better than a truth does.
        names = " ".join(robot.leg_names[i] for i in best)
        return (
            f"feet agree to {now:.2f} m/s, but with the legs as {names} to {apart[best]:.2f}: their order is wrong",
            False,
        )
    if ours > max(SLOW, 0.5 * speed):
        return f"{words}: order, signs or units of the joints, or the frame of the truth, are wrong", False
    return words, True


def _disagreement(robot: Robot, q: Array, dq: Array, gyro: Array, vel_b: Array | None) -> float:
    measured: Array = -robot.foot_velocity(q, dq, gyro)  # (N, L, 3)
    lowest = np.argsort(robot.feet(q)[..., 2], axis=1)
    rows = np.arange(len(q))
    one, two = measured[rows, lowest[:, 0]], measured[rows, lowest[:, -1 if q.shape[1] < 6 else 1]]
    return float(np.median(np.linalg.norm(one - (two if vel_b is None else vel_b), axis=1)))


def _truth(log: Log, with_gravity: bool) -> list[Finding]:
    from gait.io.alignment import clock_offset
    from gait.io.velocity import differentiate, rotation_rate

    found = []
    quat = log.need("quat_wb_wxyz")
    offset = clock_offset(log.t, log.gyro, log.t, rotation_rate(log.t, quat), limit=min(5.0, 0.25 * log.duration))
    if not offset.sure:
        words = f"it does not turn as the gyro does (correlation {offset.correlation:.2f})"
        turns = float(np.percentile(np.linalg.norm(log.gyro, axis=1), 90)) > 0.2
        found.append(Finding("truth_clock", not turns, words))
    elif abs(offset.seconds) > OFF:
        words = f"it is {abs(offset.seconds) * 1e3:.0f} ms {'ahead of' if offset.seconds > 0 else 'behind'} the gyro"
        found.append(Finding("truth_clock", False, f"{words}: add --align-clock"))
    else:
        found.append(Finding("truth_clock", True, f"within {abs(offset.seconds) * 1e3:.1f} ms of the gyro"))
    up = quaternions.rotate(quat, log.accel).mean(axis=0)
    tilt = float(np.degrees(np.arccos(np.clip(up[2] / max(float(np.linalg.norm(up)), 1e-9), -1.0, 1.0))))
    fine = tilt < 10.0
    fix = "" if fine else ": the rotation is not from body to world, or z is not up"
    if with_gravity:
        found.append(Finding("truth_rotation", fine, f"gravity is {tilt:.1f} deg from the vertical of the truth{fix}"))
    moved = differentiate(log.t, log.need("pos_w"))
    error = float(np.sqrt(np.mean((moved - log.need("vel_w")) ** 2)))
    speed = float(np.sqrt(np.mean(moved**2)))
    good = error < 0.1 + 0.5 * speed
    words = f"velocity and positions agree to {error:.3f} m/s rms" + (
        "" if good else ": check frame and unit of the velocity"
    )
    return [*found, Finding("truth_velocity", good, words)]
