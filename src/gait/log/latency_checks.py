"""Are joints and IMU of a log on one clock? The two lowest feet agree only with the angular rate of their own time."""

from __future__ import annotations

import numpy as np

from gait.log.axes_checks import foot_differences, typical
from gait.log.finding import CheckFinding, Problem, verdict
from gait.log.leg_checks import LegReading
from gait.log.log import Log

PERIOD, LONGEST, STEP = 0.004, 0.15, 0.008
"""Samples that are looked at are so far apart, s; offsets that are tried: the largest, and their steps."""
ROWS, ENOUGH = 5000, 500
"""At most so many samples of the middle of a log, and not fewer."""
LATE, BETTER = 0.025, 0.75
"""A latency from here on (s) is no robot's; it must leave this share of what the feet differ by, or less. Joints of the
simulated twin, which are up to 12 ms late, are found within 12 ms."""


def check_latency(log: Log, motion: LegReading) -> list[CheckFinding]:
    """Compare the clocks of joints and IMU.

    Args:
        log: in axes of the body, joints in the order of the robot.
        motion: of its legs, which are right.
    """
    step = max(1, round(PERIOD * log.rate))
    count = min(len(log) // step, ROWS)
    if count < ENOUGH or not np.isfinite(motion.disagreement()):
        return []
    first = (len(log) - count * step) // 2
    rows = slice(first, first + count * step, step)
    joints, apart = foot_differences(LegReading(motion.robot, log.q[rows], log.dq[rows], log.gyro[rows], None))
    gyro, dt = log.gyro[rows], float(np.median(np.diff(log.t[rows])))
    left = {}
    # Stamps of a damaged log may lie anywhere.
    most = min(round(LONGEST / dt), count // 4)
    every = max(1, min(round(STEP / dt), most))
    for late in range(-(most // every) * every, most + 1, every):
        a, b = max(0, late), min(count, count + late)
        left[late] = typical(joints[a:b] - np.cross(gyro[a - late : b - late], apart[a:b]))
    best = min(left, key=lambda late: left[late])
    seconds = best * dt
    words = (
        f"the joints are {'behind' if seconds > 0 else 'ahead of'} the IMU by {1e3 * abs(seconds):.0f} ms, by what feet"
        " measure: correct their stamps, or record both on one clock"
    )
    late = abs(seconds) > LATE and left[best] < BETTER * left[0]
    return [verdict("joint_clock", f"within {1e3 * LATE:.0f} ms of the IMU's", Problem(late, words))]
