"""Everything that is measured of one log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gait.arrays import Array
from gait.bench.realism import imu_errors, joint_errors, leg_errors, leg_flexure
from gait.bench.realism.body_motion import BodyMotion, body_motion, imu_in_body
from gait.bench.realism.even_signals import spectrum
from gait.bench.realism.leg_errors import FEW, Values
from gait.bench.realism.stances import Stances, find_stances
from gait.errors import GaitError
from gait.log import Log
from gait.robot import Robot

LEAST = 2.0
"""Shortest log, s."""
EVEN = 0.02
"""A clock whose steps differ by more than this share is resampled."""

Curve = tuple[Array, Array]
"""Places (K,), and values (K,) or, by axis, (K, 3)."""


@dataclass(frozen=True, eq=False)
class MeasuredLog:
    """Figures and curves of one log."""

    values: Values
    """By the names of `QUANTITIES`."""
    curves: dict[str, Curve]
    """By the names of the charts; those that the log does not have are left out."""


def measure(log: Log, robot: Robot, accelerometer: bool = True) -> MeasuredLog:
    """Measure a log with ground truth.

    Args:
        log: with `pos_w` and `quat_wb_wxyz`; a velocity is not needed.
        robot: whose log it is.
        accelerometer: whether `accel` was measured, and not made up.

    Raises:
        GaitError: if the log has no ground truth, is too short, or has gaps.
    """
    if log.pos_w is None or log.quat_wb_wxyz is None:
        raise GaitError(
            "the log has no ground truth to measure it by: give one with pos_w and quat_wb_wxyz (of motion capture)"
        )
    if log.duration < LEAST:
        raise GaitError(f"the log lasts {log.duration:.3g} s: give one of {LEAST:g} s or more")
    log, as_logged = log.reorder(robot), log
    steps = np.diff(log.t)
    even = log if np.ptp(steps) <= EVEN * steps.mean() else log.resample(log.rate)
    motion = body_motion(even, robot, accelerometer)
    stances = find_stances(even, robot, motion)
    gyro_b, accel_b = imu_in_body(even, robot)
    touch_downs = stances.touch_downs()
    values = {
        **joint_errors.sampling_figures(as_logged),
        **imu_errors.truth_figures(even.vel_w, motion),
        **imu_errors.imu_figures(gyro_b, accel_b, motion, accelerometer),
        **imu_errors.impact_figures(gyro_b, accel_b, touch_downs, even.rate, accelerometer),
        **leg_errors.stance_figures(stances),
        **leg_errors.residual_figures(stances, motion),
        **leg_errors.load_figures(stances),
        **leg_errors.sink_figures(stances),
        **leg_flexure.flexure_figures(even, robot, stances, motion),
        **joint_errors.joint_figures(even),
    }
    curves = _leg_curves(stances) | _imu_curves(gyro_b, accel_b, motion, touch_downs, accelerometer)
    return MeasuredLog(values, curves)


def _leg_curves(stances: Stances) -> dict[str, Curve]:
    if len(stances.spans) < FEW:
        return {}
    phase, size, mean = leg_errors.by_phase(stances)
    loads = leg_errors.by_load(stances)
    return {
        "residual-phase": (phase, size),
        "residual-mean": (phase, mean),
        "residual-time": leg_errors.autocorrelation(stances),
        "foot-height": leg_errors.height_by_phase(stances),
        **({} if loads is None else {"residual-load": loads}),
    }


def _imu_curves(
    gyro_b: Array, accel_b: Array, motion: BodyMotion, touch_downs: list[int], accelerometer: bool
) -> dict[str, Curve]:
    rate, curves = motion.rate, dict[str, Curve]()
    for name, signal in (("accel", accel_b), ("gyro", gyro_b)):
        if name == "gyro" or accelerometer:
            frequencies, power = spectrum(signal, rate)
            curves[f"{name}-spectrum"] = frequencies[1:], np.sqrt(power[1:])
    if accelerometer:
        times = imu_errors.TIMES
        walks = np.array([imu_errors.random_walk(accel_b, motion, time) for time in times])
        curves["accel-walk"] = times, walks
    if len(touch_downs) >= FEW:
        excess, shake = imu_errors.impact_signals(gyro_b, accel_b, rate)
        curves["gyro-impact"] = imu_errors.around(shake, touch_downs, rate)
        if accelerometer:
            curves["accel-impact"] = imu_errors.around(excess, touch_downs, rate)
    return curves
