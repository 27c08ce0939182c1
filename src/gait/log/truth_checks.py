"""Sanity checks of the ground truth of a log: its clock, rotation, velocity and unit, against IMU and legs."""

from __future__ import annotations

import numpy as np

from gait import quaternions
from gait.arrays import Array
from gait.log.finding import CheckFinding, Problem, verdict
from gait.log.leg_checks import LegReading
from gait.log.log import Log

OFF = 0.015
"""A time offset of the ground truth beyond this (s) shifts a walking robot by more than an estimator errs."""
SLOW = 0.5
"""Feet in contact move less than this (m/s) against the ground, most of the time."""
TURNED = 10.0
"""Gravity further than this (deg) from the vertical of the ground truth contradicts it."""
HEADING = 12.0
"""The velocity of the legs is turned by less than this (deg) against that of the ground truth."""
RATIO = (0.75, 1.25)
"""Legs measure up to 11 % less than the true speed of real robots: feet creep and give way."""


def check_truth(log: Log, motion: LegReading | None, with_gravity: bool) -> list[CheckFinding]:
    """Compare the ground truth with gyro, gravity, its own positions and the legs.

    Args:
        log: with ground truth.
        motion: of its legs, if they are right.
        with_gravity: whether the accelerometer is right.
    """
    from gait.io.motion import LONGEST, SPAN, clock_offset, differentiate, rotation_rate

    quat = log.need("quat_wb_wxyz")
    offset = clock_offset(log.t, log.gyro, log.t, rotation_rate(log.t, quat), limit=min(5.0, 0.25 * log.duration))
    compared = SPAN <= log.duration <= LONGEST
    turns = compared and float(np.percentile(np.linalg.norm(log.gyro, axis=1), 90)) > 0.2
    unlike = f"it does not turn as the gyro does (correlation {offset.correlation:.2f})"
    if not compared:
        unlike = (
            f"not compared with the gyro: that takes {SPAN:g} to {LONGEST:g} s, and the log has {log.duration:.3f} s"
        )
    # What is stamped too late has to be moved back.
    apart = f"{'behind' if offset.seconds > 0 else 'ahead'} by {abs(offset.seconds) * 1e3:.0f} ms"
    shown = f"within {abs(offset.seconds) * 1e3:.1f} ms of the gyro" if offset.sure else unlike
    far = offset.sure and abs(offset.seconds) > OFF
    found = [
        verdict(
            "truth_clock", shown, Problem(not offset.sure and turns, unlike),
            Problem(far, f"its clock is {apart}, against the gyro", "--align-clock", True),
        )
    ]  # fmt: skip
    if with_gravity:
        tilt = tilt_of(log.accel, quat)
        shown = f"gravity is {tilt:.1f} deg from the vertical of the ground truth"
        wrong = f"{shown}: the rotation is not from body to world, or z is not up"
        found.append(verdict("truth_rotation", shown, Problem(tilt >= TURNED, wrong)))
    moved = differentiate(log.t, log.need("pos_w"))
    error, speed = (float(np.sqrt(np.mean(one**2))) for one in (moved - log.need("vel_w"), moved))
    shown = f"velocity and positions agree to {error:.3f} m/s rms"
    wrong = f"{shown}: check frame and unit of the velocity"
    found.append(verdict("truth_velocity", shown, Problem(error >= 0.1 + 0.5 * speed, wrong)))
    return [*found, *([] if motion is None else _unit(motion))]


def tilt_of(accel: Array, quat_wb_wxyz: Array) -> float:
    """Angle between the mean specific force and the vertical, deg: the larger of those in world and body."""
    up_w = np.broadcast_to([0.0, 0.0, 1.0], accel.shape)
    # In the world a tilt of the IMU cancels where the robot turns, in the body one of the world.
    world = _angle(quaternions.rotate(quat_wb_wxyz, accel).mean(axis=0), up_w[0])
    return max(world, _angle(accel.mean(axis=0), quaternions.rotate_inverse(quat_wb_wxyz, up_w).mean(axis=0)))


def _angle(one: Array, other: Array) -> float:
    """Between two vectors, deg."""
    sizes = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.degrees(np.arccos(np.clip(one @ other / max(sizes, 1e-9), -1.0, 1.0))))


def _unit(motion: LegReading) -> list[CheckFinding]:
    """Whether legs and ground truth go equally fast: positions may be in millimetres, or in another frame."""
    error, speed, ratio = motion.true_error()
    shown = f"the lowest foot measures the true velocity to {error:.2f} m/s (median; the robot goes {speed:.2f} m/s)"
    fast = f"the robot goes {speed:.0f} m/s, of which the legs measure {1e3 * ratio:.1f} thousandths: it is in mm"
    wrong = f"{shown}: its unit, its frame or its clock is wrong, or --robot is"
    mm = Problem(5e-4 < ratio < 2e-3, fast, "--scale pos_w=mm,vel_w=mm", True)
    turned = motion.true_heading()
    heading = f"the legs measure a velocity that is turned by {turned:.0f} deg about z: the axes of its body are others"
    return [
        verdict(
            "truth_scale",
            shown,
            mm,
            Problem(abs(turned) > HEADING, heading),
            Problem(error > max(SLOW, 0.5 * speed) or not RATIO[0] < ratio < RATIO[1], wrong),
        )
    ]
