"""Sanity checks of a log: units, signs, frames and joint order, against gravity, kinematics and ground truth."""

from __future__ import annotations

import contextlib

import numpy as np

from gait import quaternions
from gait.arrays import Array
from gait.errors import GaitError
from gait.log.axes_checks import check_axes
from gait.log.finding import CheckFinding, Problem, verdict
from gait.log.latency_checks import check_latency
from gait.log.leg_checks import WIDE, LegReading, alike, better_reading, better_robot
from gait.log.log import Log
from gait.log.truth_checks import check_truth
from gait.log.weight_checks import check_weight
from gait.robot import Robot, robot_names

GRAVITY = 9.81
FAST = 8.0
"""A quadruped hardly turns faster than this (rad/s) for a tenth of the time."""
DQ_RATIO = (0.6, 1.6)
"""Joint velocities are the change of the angles, give or take filters."""
SPARSE = 100.0
"""Below this rate (Hz) a foot touches down and lifts off within a few samples."""
DEGREES = (30.0, 110.0)
"""Values in degrees are 57.3 times those in radians, give or take noise."""
STANDING = 0.3
"""Length of a stance that counts as standing still, s."""
UPSIDE_DOWN = "give the robot or, in its YAML, the pose of the IMU, or else --scale accel=-1"
SOUGHT = 60.0
"""How far into a log such a stance is looked for, s."""
AT_REST, TURNING = 0.1, 0.3
"""Speed by the legs (m/s) and angular rate (rad/s) of a robot that stands."""
_SOME = 20000


def check_log(log: Log, robot: Robot | None = None, named: str = "") -> list[CheckFinding]:
    """Compare a log with what a walking robot can do.

    Args:
        log: to be checked.
        robot: whose log it is; that of the log's name by default, and without joints if gait has none.
        named: the robot that the file itself names; empty if it names none.
    """
    # A damaged log may hold numbers whose squares are none; comparisons with them are false.
    with np.errstate(all="ignore"):
        return _findings(log, robot, named)


def _findings(log: Log, robot: Robot | None, named: str) -> list[CheckFinding]:
    whole, log = log, _thinned(log)
    with contextlib.suppress(GaitError):
        robot = robot or log.load_robot()
    motion, joints = None, list[CheckFinding]()
    if robot is not None:
        try:
            log = log.reorder(robot)
            motion, joints = LegReading.of(log, robot), _joints(log, robot)
        except GaitError as error:
            joints = [CheckFinding("joints", False, str(error))]
    if robot is not None:
        log = _in_body_axes(log, robot)
    found = [_rate(whole), _gravity(log), _gyro(log, motion)]
    if motion is not None and found[2].ok and all(one.ok for one in joints):
        # An error of gyro or angles would be blamed on the legs as well.
        joints += _legs(motion, named)
    right = motion if motion is not None and found[2].ok and all(one.ok for one in joints) else None
    weight = check_weight(log, right.robot, named == right.robot.name) if right is not None and found[1].ok else []
    found += [*joints, *weight, *([_targets(log)] if all(one.ok for one in joints) else [])]
    if right is not None and robot is not None and not log.has_truth:
        found.append(_start(whole.reorder(robot), robot))
    truth = check_truth(log, right, with_gravity=found[1].ok) if log.has_truth else []
    if right is not None and found[1].ok:
        # Legs are the reference where ground truth is wrong.
        wrong = not all(one.ok for one in truth)
        found += check_axes(log.replace(pos_w=None, quat_wb_wxyz=None, vel_w=None) if wrong else log, right)
        found += check_latency(log, right)
    return [*found, *truth]


def _in_body_axes(log: Log, robot: Robot) -> Log:
    """The IMU as the body has it: up is along z there, however the IMU is mounted."""
    if abs(robot.imu_quat_wxyz[0]) == 1.0:
        return log
    turn = np.broadcast_to(robot.imu_quat_wxyz, (len(log), 4))
    return log.replace(gyro=quaternions.rotate(turn, log.gyro), accel=quaternions.rotate(turn, log.accel))


def _thinned(log: Log) -> Log:
    """A part that is quick to look at."""
    if len(log) <= _SOME:
        return log
    middle = (len(log) - _SOME) // 2
    return log.slice(float(log.t[middle]), float(log.t[middle + _SOME]))


def _rate(log: Log) -> CheckFinding:
    shown = f"{log.rate:.4g} Hz"
    few = f"{shown}: a foot lifts off and touches down between samples, so errors are larger; record 200 Hz or more"
    return verdict("rate", shown, Problem(log.rate < SPARSE, few))


def _gravity(log: Log) -> CheckFinding:
    mean = log.accel.mean(axis=0)
    size = float(np.linalg.norm(mean))
    axis = "xyz"[int(np.argmax(np.abs(mean)))]
    shown = f"the accelerometer measures {mean[0]:.2f}, {mean[1]:.2f}, {mean[2]:.2f} m/s^2 on average"
    return verdict(
        "gravity",
        shown,
        Problem(0.8 < size < 1.2, f"{shown}, so it is in g", "--scale accel=g", True),
        Problem(size < 3.0, f"{shown}: gravity was taken out of it, but the filter needs it; record it raw"),
        Problem(abs(size - GRAVITY) > 2.0, f"{shown}, but it should be 9.81 in size: check its unit"),
        # Turned axes of the whole IMU look the same, and another sign of the accelerometer alone would make it worse.
        Problem(mean[2] < -0.7 * size, f"{shown}: gravity points the wrong way; {UPSIDE_DOWN}"),
        Problem(mean[2] < 0.7 * size, f"{shown}: up is along {axis}; give the pose of the IMU in the robot's YAML"),
    )


def _gyro(log: Log, motion: LegReading | None) -> CheckFinding:
    usual = float(np.percentile(np.linalg.norm(log.gyro, axis=1), 90))
    shown = f"it turns at up to {usual:.2f} rad/s for nine tenths of the time"
    # In axes of the body, one that is stuck shows only where the IMU is straight.
    still = [axis for i, axis in enumerate("xyz") if np.ptp(log.gyro[:, i]) == 0.0]
    times, turned = 0.0, list[str]()
    if log.has_truth:
        from gait.io.motion import rotation_rate

        true = rotation_rate(log.t, log.need("quat_wb_wxyz"))
        rms = float(np.sqrt(np.mean(true**2)))
        times = float(np.sqrt(np.mean(log.gyro**2))) / rms if rms > 0.05 else 0.0
        turned = [axis for i, axis in enumerate("xyz") if _alike(log.gyro[:, i], true[:, i]) < -0.5]
    degrees = DEGREES[0] < times < DEGREES[1]
    # Feet in contact agree on the velocity only with the right angular rate.
    legs = usual > FAST and motion is not None and _smaller(motion, np.pi / 180.0)
    why = f"{times:.0f} times the ground truth" if degrees else "and the feet agree only if that is deg/s"
    # Axes of the body are those of the sensor, which --scale names, where it is not turned.
    straight = motion is None or abs(motion.robot.imu_quat_wxyz[0]) == 1.0
    flips = "--scale " + ",".join(f"gyro.{axis}=-1" for axis in turned) if straight else ""
    flips = "--scale gyro=-1" if len(turned) == 3 else flips
    return verdict(
        "gyro",
        shown,
        Problem(degrees or legs, f"{shown}, {why}: it is in degrees", "--scale gyro=deg/s", True),
        Problem(usual > FAST, f"{shown}: that is degrees a second, most likely", "--scale gyro=deg/s"),
        Problem(usual == 0.0, "it is zero: choose another topic with --imu"),
        Problem(bool(still), f"its {', '.join(still)} never change: choose another topic with --imu"),
        Problem(bool(turned), f"its {', '.join(turned)} turn against the ground truth", flips),
    )


def _smaller(motion: LegReading, scale: float) -> bool:
    """Whether the feet agree far better with another scale of the gyro."""
    other = LegReading(motion.robot, motion.q, motion.dq, scale * motion.gyro_b, motion.vel_b)
    return other.disagreement() < 0.5 * motion.disagreement()


def _alike(one: Array, other: Array) -> float:
    """Correlation of two signals without their means."""
    one, other = one - one.mean(), other - other.mean()
    return float(one @ other) / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12)


def _targets(log: Log) -> CheckFinding:
    if log.q_des is None:
        words = "the log has none: gait and the filters on contacts do without, gait-flat and nmn cannot run"
        return CheckFinding("q_des", False, words, grave=False)
    rms = float(np.sqrt(np.mean((log.q_des - log.q) ** 2)))
    shown, same = f"rms {rms:.3f} rad from q", bool(np.abs(log.q_des - log.q).max() == 0.0)
    equal = "q_des equals q to the last bit: give the topic of the commands, or none"
    degrees = float(np.abs(log.q_des).max()) > 10.0 >= float(np.abs(log.q).max())
    return verdict(
        "q_des",
        shown,
        Problem(same, equal),
        Problem(degrees, f"{shown}: it is in degrees", "--scale q_des=deg", True),
        Problem(rms >= 1.0, f"{shown}: check its unit"),
    )


def _joints(log: Log, robot: Robot) -> list[CheckFinding]:
    """Angles within the range, velocities that are their derivatives, and feet below the body."""
    from gait.io.motion import differentiate

    # A joint of the waist stands with both legs.
    q, dq = robot.expanded(log.q), robot.expanded(log.dq)
    outside = np.mean((q < robot.q_lower - WIDE) | (q > robot.q_upper + WIDE), axis=0)
    worst, largest = int(np.argmax(outside)), float(np.abs(log.q).max())
    height = robot.feet(log.q)[..., 2].mean(axis=0)  # (L,)
    beyond = f"{robot.joint_names[worst]} is out of its range {outside[worst]:.0%} of the time"
    moved = differentiate(log.t, q, 0.02)
    speed = float(np.sqrt(np.mean(moved**2)))
    ratio = float(np.sum(moved * dq)) / max(float(np.sum(moved**2)), 1e-12) if speed > 0.1 else 1.0
    degrees = ["q=deg"] + [f"{name}=deg" for name in ("dq", "q_des") if _degrees(log, name, ratio)]
    turned = [name for i, name in enumerate(robot.joint_names) if _alike(moved[:, i], dq[:, i]) < -0.5]
    wrong_way = list(dict.fromkeys(turned))
    every = len(turned) == robot.num_joints
    flips, whose = ",".join(f"dq.{name}=-1" for name in wrong_way), f"dq of {', '.join(wrong_way)}"
    flips, whose = ("dq=-1", "dq of every joint") if every else (flips, whose)
    joints = verdict(
        "joints",
        f"in range; feet {-height.mean():.2f} m below the body",
        Problem(
            largest > 10.0, f"angles of up to {largest:.0f}: they are in degrees", f"--scale {','.join(degrees)}", True
        ),
        Problem(outside.max() > 0.01, f"{beyond}: check order and signs, and --robot"),
        Problem(
            DEGREES[0] < ratio < DEGREES[1], f"dq is {ratio:.0f} times the change of q: in degrees", "--scale dq=deg/s",
            True,
        ),
        Problem(bool(wrong_way), f"{whose} has the other sign than the change of q", f"--scale {flips}"),
        Problem(
            bool(dq.any()) and not DQ_RATIO[0] < ratio < DQ_RATIO[1],
            f"dq is {ratio:.2g} times the change of q: check the unit of dq, and that of time",
        ),
    )  # fmt: skip
    level = ", ".join(robot.leg_names[i] for i in np.flatnonzero(height > -0.05))
    if not level or joints.certain:
        return [joints]
    words = f"the feet of {level} are level with the body: joint order or signs are wrong"
    return [*([] if joints.ok else [joints]), CheckFinding("feet", False, words)]


def _degrees(log: Log, name: str, ratio: float) -> bool:
    """Whether a field is in degrees where the angles are: velocities that are the change of q, large targets."""
    if name == "dq":
        return 0.5 < ratio < 2.0
    return log.q_des is not None and float(np.abs(log.q_des).max()) > 10.0


def _legs(motion: LegReading, named: str) -> list[CheckFinding]:
    """Feet that agree with each other, for this robot rather than another, and for the one that the file names."""
    now = motion.disagreement()
    other, robot = better_reading(motion), better_robot(motion)
    shown = f"the two lowest feet agree on the velocity to {now:.2f} m/s" if now == now else "the robot stands"
    better, fix, left = other or ("", "", 0.0)
    order = f"feet agree to {now:.2f} m/s, but {better} to {left:.2f}: their order or signs are wrong"
    name, fit = robot or ("", 0.0)
    build = f"feet agree to {1e3 * now:.0f} mm/s, but to {1e3 * fit:.0f} mm/s if the robot is a {name}"
    legs = verdict("legs", shown, Problem(other is not None, order, fix))
    read = motion.robot.name
    # A robot that gait does not ship may be a better description of the same one.
    other_one = read in robot_names() and named in (one.name for one in alike(motion.robot))
    contradicted = f"the file is of the robot {named}, and is read as {read}"
    robots = verdict(
        "robot",
        f"no robot that gait knows fits better than {read}",
        Problem(other_one, contradicted, f"--robot {named}"),
        Problem(bool(name), build, f"--robot {name}"),
    )
    return [legs, robots]


def _start(log: Log, robot: Robot) -> CheckFinding:
    """Whether the robot stands at the first sample, as an estimate without ground truth assumes."""
    t = log.t - log.t[0]
    seconds = np.arange(0.0, min(max(float(t[-1]) - STANDING, 0.0), SOUGHT) + 1e-9, STANDING)
    motion = [(at, *_motion(log, robot, t, at)) for at in seconds]
    if not motion:
        return CheckFinding("start", True, "the log is too short to tell")
    still = [at for at, speed, rate in motion if speed < AT_REST and rate < TURNING]
    _, speed, rate = motion[0]
    moves = f"the robot moves at the first sample (legs {speed:.2f} m/s, gyro {rate:.2f} rad/s) but is taken to stand"
    cut = f"cut to where it stands, gait convert LOG NEW.npz --start {log.t[0] + still[0]:.1f}" if still else ""
    words = f"{moves}: {cut or 'allow the estimate a second or two to settle'}"
    return verdict("start", f"the robot stands (legs {speed:.2f} m/s)", Problem(0.0 not in still, words))


def _motion(log: Log, robot: Robot, t: Array, at: float) -> tuple[float, float]:
    """Median speed of the body by the lowest foot, and of its rotation, within a short window."""
    first = min(int(np.searchsorted(t, at)), len(t) - 1)
    rows = slice(first, max(int(np.searchsorted(t, at + STANDING)), first + 1))
    part = LegReading(robot, log.q[rows], log.dq[rows], log.gyro[rows], None)
    foot = np.median(np.linalg.norm(part.measured, axis=2), axis=1)
    return float(np.median(foot)), float(np.median(np.linalg.norm(log.gyro[rows], axis=1)))
