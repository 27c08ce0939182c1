"""Are the axes of gyro and accelerometer those of the body? Legs and ground truth tell how it turns and accelerates."""

from __future__ import annotations

import itertools

import numpy as np

from gait.arrays import Array
from gait.log.finding import CheckFinding, Problem, verdict
from gait.log.leg_checks import LegReading
from gait.log.log import Log

BETTER = {"gyro": 0.7, "accel": 0.6}
"""Other axes must leave this share of the differences, or less, to be the right ones: legs that give way hide much."""
SPARSE = 100.0
"""Below this rate (Hz) accelerations of steps are lost."""
AGREEING = 0.6
"""Share of the rows, those that agree best, that are compared: feet are on the ground in these."""
ENOUGH = 300
"""Rows below which nothing is said."""
SMOOTH, SLOW = 0.06, 0.6
"""Accelerations are averaged over the first, s, less their average over the second: tilt and bias change slowly."""
PERIOD = 0.004
"""Accelerations are looked at every so many seconds."""
MOST = 6.0
"""Limit of an acceleration of the body, m/s^2: impacts of feet are larger."""


def _signed_axes(count: int) -> list[Array]:
    """Matrices that take each axis for another one, or for its opposite; the first one changes nothing."""
    found = []
    for order in itertools.permutations(range(count)):
        for signs in itertools.product((1.0, -1.0), repeat=count):
            matrix = np.zeros((count, count))
            matrix[range(count), order] = signs
            found.append(matrix)
    return found


def check_axes(log: Log, motion: LegReading) -> list[CheckFinding]:
    """Whether other axes fit far better.

    Args:
        log: in axes of the body, joints in the order of the robot, without long gaps.
        motion: of its legs, which are right.
    """
    straight = abs(motion.robot.imu_quat_wxyz[0]) == 1.0
    with_truth = log.has_truth
    found = []
    for name, whose, result in (
        ("gyro_axes", "gyro", _rates(log) if with_truth else _foot_rates(motion)),
        ("accel_axes", "accel", _accelerations(log, motion)),
    ):
        if result is None:
            continue
        now, left, matrix = result
        share = f"{left / max(now, 1e-12):.0%} of the difference {'from ground truth' if with_truth else 'of the legs'}"
        words = f"its axes x, y, z taken as {_spelled(matrix)} leave {share}"
        problem = Problem(
            left < BETTER[whose] * now, f"{words}: {_cure(matrix)}", _option(whose, matrix) if straight else ""
        )
        found.append(verdict(name, f"no other axes of the {whose} fit better", problem))
    return found


def _rates(log: Log) -> tuple[float, float, Array] | None:
    """Differences from the true angular rate, now and with the best axes, and those."""
    from gait.io.motion import rotation_rate

    true = rotation_rate(log.t, log.need("quat_wb_wxyz"))
    return _best([(typical(log.gyro @ matrix.T - true), matrix) for matrix in _signed_axes(3)]) if len(true) else None


def _foot_rates(motion: LegReading) -> tuple[float, float, Array] | None:
    """Differences of the velocities by the two lowest feet."""
    if len(motion.q) < ENOUGH or not np.isfinite(motion.disagreement()):
        return None
    joints, apart = foot_differences(motion)
    return _best([
        (typical(joints - np.cross(motion.gyro_b @ matrix.T, apart)), matrix) for matrix in _signed_axes(3)
    ])  # fmt: skip


def foot_differences(motion: LegReading) -> tuple[Array, Array]:
    """Of the two lowest feet: differences of the body's velocity by their joints alone, and of their positions (N, 3).

    Each measures -(J dq + w x p): with the right rate w, the first is w x the second while both hold.
    """
    rows, one, two = np.arange(len(motion.q)), motion.lowest[:, 0], motion.lowest[:, 1]
    feet = motion.robot.feet(motion.q)
    apart = feet[rows, one] - feet[rows, two]
    return motion.measured[rows, one] - motion.measured[rows, two] + np.cross(motion.gyro_b, apart), apart


def _accelerations(log: Log, motion: LegReading) -> tuple[float, float, Array] | None:
    """Differences of the horizontal specific force from the acceleration of ground truth, or of the lowest feet."""
    step = max(1, round(PERIOD * log.rate))
    if len(log) // step < ENOUGH or log.rate < SPARSE:
        return None
    log = log.replace(**{name: array[::step] for name, array in log.arrays().items()})
    dt = float(np.median(np.diff(log.t)))
    short, long = max(3, round(SMOOTH / dt)), max(5, round(SLOW / dt))
    if len(log) < 3 * long or not np.isfinite(motion.disagreement()):
        return None
    if log.has_truth:
        velocity = log.vel_b
    else:
        whole = LegReading(motion.robot, log.q, log.dq, log.gyro, None)
        rows = np.arange(len(log))
        velocity = 0.5 * (whole.measured[rows, whole.lowest[:, 0]] + whole.measured[rows, whole.lowest[:, 1]])
    force, velocity, rate = (_averaged(one, short) for one in (log.accel, velocity, log.gyro))
    felt = np.gradient(velocity, dt, axis=0) + np.cross(rate, velocity)
    felt, force = (_without_slow(one[:, :2], long) for one in (felt, force))
    felt = np.clip(felt, -MOST, MOST)
    level = []
    for matrix in _signed_axes(2):
        whole_matrix = np.eye(3)
        whole_matrix[:2, :2] = matrix
        level.append((typical(force @ matrix.T - felt), whole_matrix))
    return _best(level)


def _best(costs: list[tuple[float, Array]]) -> tuple[float, float, Array]:
    least = min(range(len(costs)), key=lambda i: costs[i][0])
    return costs[0][0], *costs[least]


def typical(differences: Array) -> float:
    """Mean size of the smaller ones (N, 3): of rows with the feet on the ground."""
    sizes = np.sort(np.linalg.norm(differences, axis=1))
    return float(sizes[: max(1, int(AGREEING * len(sizes)))].mean())


def _averaged(values: Array, count: int) -> Array:
    sums = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), values]), axis=0)
    return np.asarray((sums[count:] - sums[:-count]) / count)


def _without_slow(values: Array, count: int) -> Array:
    slow = _averaged(values, count)
    return np.asarray(values[count // 2 : count // 2 + len(slow)] - slow)


def _spelled(matrix: Array) -> str:
    return ", ".join(f"{'-' if row.sum() < 0.0 else ''}{'xyz'[int(np.argmax(np.abs(row)))]}" for row in matrix)


def _option(field: str, matrix: Array) -> str:
    """The option that corrects signs alone."""
    signs = np.diag(matrix)
    if not signs.all():
        return ""
    return "--scale " + ",".join(f"{field}.{axis}=-1" for axis, sign in zip("xyz", signs, strict=True) if sign < 0.0)


def _cure(matrix: Array) -> str:
    if np.linalg.det(matrix) > 0.0:
        return "if the IMU is mounted so, enter its rotation as `imu` in the robot's YAML"
    return "signs are wrong" if np.diag(matrix).all() else "two of them are swapped, which --columns corrects"
