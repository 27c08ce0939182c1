"""Charts of one run beside its velocity: attitude and height, biases, the raw inputs, test ratios and health."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.health import Health
from gait.log import Log, Trajectory
from gait.log.diagnoses import lasting
from gait.quaternions import roll_pitch_yaw
from gait.report.chart import TIME, Chart, Panel, Series, Shade, line

if TYPE_CHECKING:
    from gait.estimator import StateArrays

_PLAIN = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Of lines that name no method, in turn."""
_FLAGS = (Health.STARTING, Health.TIME_GAP, Health.NO_MEASUREMENT, Health.REJECTED, Health.SLIP)
"""Shown beside the diagnoses: what walking brings along."""


def run_charts(log: Log, trajectory: Trajectory, details: StateArrays) -> list[Chart]:
    """`attitude`, `biases`, `inputs`, `joints` and `health` of one run.

    Args:
        log: the input.
        trajectory: the estimate, on the log's clock.
        details: what the method computed on the way.
    """
    t = log.t - log.t[0]
    charts = [_attitude(log, trajectory, t)]
    if trajectory.gyro_bias is not None and trajectory.accel_bias is not None:
        gyro = _axes(t, np.degrees(trajectory.gyro_bias), "gyro (deg/s)")
        biases = (gyro, _axes(t, trajectory.accel_bias, "accelerometer (m/s^2)"))
        charts.append(Chart("biases", "Estimated biases", "In the axes of the IMU.", biases))
    words = "As they stand in the log, in the axes of the IMU."
    imu = (_axes(t, log.gyro, "gyro (rad/s)"), _axes(t, log.accel, "accelerometer (m/s^2)"))
    charts.append(Chart("inputs", "IMU", words, imu))
    joints = tuple(_joints(log, t, leg, columns) for leg, columns in _by_leg(log).items())
    if joints:
        charts.append(Chart("joints", "Joint angles", "By leg, as they stand in the log.", joints))
    return [*charts, _health(log, trajectory, details, t)]


def _attitude(log: Log, trajectory: Trajectory, t: Array) -> Chart:
    """Roll, pitch, yaw and height, with the true ones on top."""
    ours = np.degrees(np.unwrap(roll_pitch_yaw(trajectory.quat_wb_wxyz), axis=0))
    true = np.degrees(np.unwrap(roll_pitch_yaw(log.need("quat_wb_wxyz")), axis=0)) if log.has_truth else None
    panels = []
    for i, label in enumerate(("roll (deg)", "pitch (deg)", "yaw (deg)")):
        lines = [line(trajectory.source, t, ours[:, i])]
        if true is not None:
            # Both are unwrapped from their own start, which may be a turn away.
            lines.append(line("truth", t, true[:, i] + 360.0 * np.round((ours[0, i] - true[0, i]) / 360.0)))
        panels.append(Panel(tuple(lines), TIME, label))
    height = [line(trajectory.source, t, trajectory.pos_w[:, 2])]
    height += [line("truth", t, log.need("pos_w")[:, 2])] if log.has_truth else []
    panels.append(Panel(tuple(height), TIME, "height (m)"))
    return Chart("attitude", "Attitude and height", "Of the body in the world; yaw without jumps.", tuple(panels))


def _axes(t: Array, values: Array, label: str) -> Panel:
    lines = tuple(line(axis, t, values[:, i], colour=_PLAIN[i]) for i, axis in enumerate("xyz"))
    return Panel(lines, TIME, label)


def _by_leg(log: Log) -> dict[str, list[int]]:
    """Columns of the joints of each leg, those of a waist with both; of an unknown robot as many for each leg."""
    try:
        robot = log.load_robot()
    except GaitError:
        count, rest = divmod(len(log.joint_names), max(len(log.leg_names), 1))
        return {} if rest else {leg: list(range(count * i, count * i + count)) for i, leg in enumerate(log.leg_names)}
    known = {name: column for column, name in enumerate(log.joint_names)}
    return {leg.name: [known[name] for name in leg.joint_names if name in known] for leg in robot.legs}


def _joints(log: Log, t: Array, leg: str, columns: list[int]) -> Panel:
    series = [
        line(log.joint_names[i].removeprefix(f"{leg}_"), t, log.q[:, i], colour=_PLAIN[k % len(_PLAIN)])
        for k, i in enumerate(columns)
    ]
    return Panel(tuple(series), TIME, f"{leg} (rad)")


def _health(log: Log, trajectory: Trajectory, details: StateArrays, t: Array) -> Chart:
    """Test ratio of the measurement, and how much of each second carries each flag."""
    faults: dict[str, Array] = {}
    if trajectory.health is not None:
        bits = trajectory.health.astype(np.int64)
        found = {str(flag.name).lower().replace("_", " "): bits & flag != 0 for flag in _FLAGS}
        found |= lasting(bits, log.leg_names)
        faults = {word: on.astype(np.float64) for word, on in found.items() if on.any()}
    seconds = np.arange(0.0, max(float(t[-1]), 1.0), 1.0)
    edges = np.minimum(np.searchsorted(t, seconds), len(t) - 1)
    lines = [
        Series(word, seconds + 0.5, 100.0 * np.add.reduceat(on, edges) / np.maximum(np.diff([*edges, len(t)]), 1))
        for word, on in faults.items()
    ]
    ratio = line("test ratio", t, np.asarray(details.test_ratio), colour=_PLAIN[0])
    limit = Series("limit", np.array([t[0], t[-1]]), np.array([4.0, 4.0]), colour="#888888", dashed=True)
    shades = tuple(Shade(word, t, on > 0.0) for word, on in faults.items() if word not in _passing())
    panels = [Panel((ratio, limit), TIME, "test ratio", shades[:3])]
    if lines:
        panels.append(Panel(tuple(lines), TIME, "samples with a flag (%)"))
    caption = (
        "Innovation of the measurement over its standard deviation: above 4 for long, the IMU is disputed. Below,"
        " the share of each second with a health flag (docs/log.md)."
    )
    return Chart("health", "Test ratio and health", caption, tuple(panels))


def _passing() -> tuple[str, ...]:
    return tuple(str(flag.name).lower().replace("_", " ") for flag in _FLAGS)
