"""Sanity checks of a log: units, signs, frames and joint order, against gravity, kinematics and ground truth."""

from __future__ import annotations

import contextlib
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
"""Feet in contact move less than this (m/s) against the ground, most of the time."""
OFF = 0.015
"""A time offset of the ground truth beyond this (s) shifts a walking robot by more than an estimator errs."""
WIDE = 0.2
"""How far beyond its range a joint may read, rad."""
_SOME = 20000


@dataclass(frozen=True)
class Finding:
    """One check."""

    name: str
    ok: bool
    words: str
    """What was found, and what to do about it if it is wrong."""


def check_log(log: Log) -> list[Finding]:
    """Compare a log with what a walking robot can do; without joints if gait has no robot of the log's name."""
    log = _thinned(log)
    found = [_gravity(log), _gyro(log)]
    robot = None
    with contextlib.suppress(GaitError):
        robot = Robot.load(log.robot)
    if robot is not None:
        try:
            # An error of the gyro would be blamed on the legs as well.
            found += _joints(log.reorder(robot), robot, with_legs=found[1].ok)
        except GaitError as error:
            found.append(Finding("joints", False, str(error)))
    found.append(_targets(log))
    return [*found, *_truth(log, with_gravity=found[0].ok)] if log.has_truth else found


def _verdict(name: str, measured: str, *problems: tuple[bool, str]) -> Finding:
    """The first problem that is there, or else what was measured."""
    words = next((words for there, words in problems if there), None)
    return Finding(name, words is None, measured if words is None else words)


def _thinned(log: Log) -> Log:
    """A part that is quick to look at."""
    if len(log) <= _SOME:
        return log
    middle = (len(log) - _SOME) // 2
    return log.slice(float(log.t[middle]), float(log.t[middle + _SOME]))


def _gravity(log: Log) -> Finding:
    mean = log.accel.mean(axis=0)
    size = float(np.linalg.norm(mean))
    axis = "xyz"[int(np.argmax(np.abs(mean)))]
    shown = f"the accelerometer measures {mean[0]:.2f}, {mean[1]:.2f}, {mean[2]:.2f} m/s^2 on average"
    return _verdict(
        "gravity",
        shown,
        (0.8 < size < 1.2, f"{shown}, so it is in g: multiply by 9.81 (--columns: accel.x g)"),
        (size < 3.0, f"{shown}: gravity was taken out of it, but the filter needs it; record it raw"),
        (abs(size - GRAVITY) > 2.0, f"{shown}, but it should be 9.81 in size: check its unit"),
        (mean[2] < -0.7 * size, f"{shown}: gravity points the wrong way, change the sign of accel"),
        (mean[2] < 0.7 * size, f"{shown}: up is along {axis}; give the pose of the IMU in the robot's YAML"),
    )


def _gyro(log: Log) -> Finding:
    usual = float(np.percentile(np.linalg.norm(log.gyro, axis=1), 90))
    shown = f"it turns at up to {usual:.2f} rad/s for nine tenths of the time"
    times = 0.0
    if log.has_truth:
        from gait.io.motion import rotation_rate

        true = float(np.sqrt(np.mean(rotation_rate(log.t, log.need("quat_wb_wxyz")) ** 2)))
        ours = float(np.sqrt(np.mean(log.gyro**2)))
        times = ours / true if true > 0.05 else 0.0
    return _verdict(
        "gyro",
        shown,
        (30.0 < times < 110.0, f"{shown}, {times:.0f} times the ground truth: it is in degrees (--columns: deg/s)"),
        (usual > FAST, f"{shown}: that is degrees a second, most likely; divide by 57.3"),
        (usual == 0.0, "it is zero: choose another topic with --imu"),
    )


def _targets(log: Log) -> Finding:
    if log.q_des is None:
        words = "the log has none: gait and the filters on contacts do without, gait-flat and nmn cannot run"
        return Finding("q_des", False, words)
    rms = float(np.sqrt(np.mean((log.q_des - log.q) ** 2)))
    shown, same = f"rms {rms:.3f} rad from q", bool(np.abs(log.q_des - log.q).max() == 0.0)
    equal = "q_des equals q to the last bit: give the topic of the commands, or none"
    return _verdict("q_des", shown, (same, equal), (rms >= 1.0, f"{shown}: check its unit"))


def _joints(log: Log, robot: Robot, with_legs: bool) -> list[Finding]:
    """Angles within the range, feet below the body, and legs that measure the body's velocity."""
    outside = np.mean((log.q < robot.q_lower - WIDE) | (log.q > robot.q_upper + WIDE), axis=0)
    worst, largest = int(np.argmax(outside)), float(np.abs(log.q).max())
    height = robot.feet(log.q)[..., 2].mean(axis=0)  # (L,)
    level = ", ".join(robot.leg_names[i] for i in np.flatnonzero(height > -0.05))
    share = f"{outside[worst]:.0%} of the time"
    joints = _verdict(
        "joints",
        f"in range; feet {-height.mean():.2f} m below the body",
        (largest > 10.0, f"angles of up to {largest:.0f}: they are in degrees (--columns: deg)"),
        (outside.max() > 0.01, f"{robot.joint_names[worst]} is out of its range {share}: check order and signs"),
    )
    found = [joints] if not level or not joints.ok else []
    if level:
        words = f"the feet of {level} are level with the body: joint order or signs are wrong"
        found.append(Finding("feet", False, words))
    return [*found, _leg_odometry(log, robot)] if with_legs else found


def _leg_odometry(log: Log, robot: Robot) -> Finding:
    """Velocity by kinematics, against ground truth or between the two lowest feet, in this order of legs and others."""
    rows = np.arange(0, len(log), max(1, len(log) // 1500))
    gyro = quaternions.rotate(np.broadcast_to(robot.imu_quat_wxyz, (len(rows), 4)), log.gyro[rows])
    q, dq = (array[rows].reshape(len(rows), robot.num_legs, 3) for array in (log.q, log.dq))
    legs = tuple(range(robot.num_legs))
    apart = {
        order: _disagreement(robot, q[:, order].reshape(len(rows), -1), dq[:, order].reshape(len(rows), -1), gyro, None)
        for order in (itertools.permutations(legs) if robot.num_legs <= 4 else [legs])
    }
    now, best = apart[legs], min(apart, key=lambda order: apart[order])
    ours, speed = now, 0.0
    words = f"the two lowest feet agree on the velocity to {ours:.2f} m/s (median)"
    if log.has_truth:
        vel_b = log.vel_b[rows]
        ours = _disagreement(robot, log.q[rows], log.dq[rows], gyro, vel_b)
        speed = float(np.median(np.linalg.norm(vel_b, axis=1)))
        words = f"the lowest foot measures the true velocity to {ours:.2f} m/s (median; the robot goes {speed:.2f} m/s)"
    names = " ".join(robot.leg_names[i] for i in best)
    order = f"feet agree to {now:.2f} m/s, but with the legs as {names} to {apart[best]:.2f}: their order is wrong"
    frame = f"{words}: order, signs or units of the joints, or the frame of the ground truth, are wrong"
    # Feet in contact agree with each other, which distinguishes legs better than ground truth does.
    swapped = now > 0.1 and apart[best] < 0.5 * now
    return _verdict("legs", words, (swapped, order), (ours > max(SLOW, 0.5 * speed), frame))


def _disagreement(robot: Robot, q: Array, dq: Array, gyro: Array, vel_b: Array | None) -> float:
    measured: Array = -robot.foot_velocity(q, dq, gyro)  # (N, L, 3)
    lowest = np.argsort(robot.feet(q)[..., 2], axis=1)
    rows = np.arange(len(q))
    one, two = measured[rows, lowest[:, 0]], measured[rows, lowest[:, -1 if q.shape[1] < 6 else 1]]
    return float(np.median(np.linalg.norm(one - (two if vel_b is None else vel_b), axis=1)))


def _truth(log: Log, with_gravity: bool) -> list[Finding]:
    from gait.io.motion import clock_offset, differentiate, rotation_rate

    quat = log.need("quat_wb_wxyz")
    offset = clock_offset(log.t, log.gyro, log.t, rotation_rate(log.t, quat), limit=min(5.0, 0.25 * log.duration))
    turns = float(np.percentile(np.linalg.norm(log.gyro, axis=1), 90)) > 0.2
    unlike = f"it does not turn as the gyro does (correlation {offset.correlation:.2f})"
    late = f"it is {abs(offset.seconds) * 1e3:.0f} ms {'ahead of' if offset.seconds > 0 else 'behind'} the gyro"
    shown = f"within {abs(offset.seconds) * 1e3:.1f} ms of the gyro" if offset.sure else unlike
    far = offset.sure and abs(offset.seconds) > OFF, f"{late}: add --align-clock"
    found = [_verdict("truth_clock", shown, (not offset.sure and turns, unlike), far)]
    if with_gravity:
        up = quaternions.rotate(quat, log.accel).mean(axis=0)
        tilt = float(np.degrees(np.arccos(np.clip(up[2] / max(float(np.linalg.norm(up)), 1e-9), -1.0, 1.0))))
        shown = f"gravity is {tilt:.1f} deg from the vertical of the ground truth"
        wrong = f"{shown}: the rotation is not from body to world, or z is not up"
        found.append(_verdict("truth_rotation", shown, (tilt >= 10.0, wrong)))
    moved = differentiate(log.t, log.need("pos_w"))
    error, speed = (float(np.sqrt(np.mean(one**2))) for one in (moved - log.need("vel_w"), moved))
    shown = f"velocity and positions agree to {error:.3f} m/s rms"
    wrong = f"{shown}: check frame and unit of the velocity"
    return [*found, _verdict("truth_velocity", shown, (error >= 0.1 + 0.5 * speed, wrong))]
