"""The quantities that a study of realism reports: names, labels, units and axes, in the order of the table."""

from __future__ import annotations

from dataclasses import dataclass

XYZ = ("x", "y", "z")
JOINTS = ("hip", "thigh", "calf")


@dataclass(frozen=True)
class Quantity:
    """One line of the table, or three."""

    name: str
    label: str
    unit: str
    axes: tuple[str, ...] = ()


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("rate", "samples a second", "Hz"),
    Quantity("jitter", "stamps: jitter, std", "ms"),
    Quantity("longest_step", "stamps: longest step", "ms"),
    Quantity("imu_straight", "IMU: held, interpolated", "%"),
    Quantity("imu_straight_longest", "IMU: longest such gap", "ms"),
    Quantity("truth_outliers", "truth: outliers", "%"),
    Quantity("truth_velocity", "truth: error of vel_w", "m/s"),
    Quantity("accel_error", "accel: mean error", "m/s^2", XYZ),
    Quantity("accel_scale", "accel: scale error", "%", XYZ),
    Quantity("accel_latency", "accel: latency", "ms"),
    Quantity("accel_mid", "accel: 10-40 Hz, RMS", "m/s^2", XYZ),
    Quantity("accel_high", "accel: 40-100 Hz, RMS", "m/s^2", XYZ),
    Quantity("accel_short", "walk of 0.1 s", "m/s/sqrt(s)", XYZ),
    Quantity("accel_long", "walk of 0.5 s", "m/s/sqrt(s)", XYZ),
    Quantity("gyro_bias", "gyro: mean error", "rad/s", XYZ),
    Quantity("gyro_scale", "gyro: scale error", "%", XYZ),
    Quantity("gyro_mounting", "gyro: mounting", "deg", XYZ),
    Quantity("gyro_latency", "gyro: latency", "ms"),
    Quantity("gyro_mid", "gyro: 10-40 Hz, RMS", "rad/s", XYZ),
    Quantity("gyro_high", "gyro: 40-100 Hz, RMS", "rad/s", XYZ),
    Quantity("impact_accel", "touch-down: accel", "m/s^2"),
    Quantity("impact_accel_decay", "touch-down: decay", "ms"),
    Quantity("impact_gyro", "touch-down: gyro", "rad/s"),
    Quantity("impact_gyro_decay", "touch-down: decay", "ms"),
    Quantity("stances", "stances", "-"),
    Quantity("stance_seconds", "stance: length, median", "ms"),
    Quantity("residual_middle", "leg: mid stance, RMS", "m/s", XYZ),
    Quantity("residual_early", "leg: phase 0.1-0.2, RMS", "m/s", XYZ),
    Quantity("residual_whole", "leg: whole stance, RMS", "m/s", XYZ),
    Quantity("residual_mean", "leg: mid stance, mean", "m/s", XYZ),
    Quantity("residual_between", "leg: std, stance means", "m/s", XYZ),
    Quantity("residual_within", "leg: std in stances", "m/s", XYZ),
    Quantity("residual_time", "leg: correlation time", "ms", XYZ),
    Quantity("residual_fast", "leg: share above 20 Hz", "%", XYZ),
    Quantity("residual_shared", "leg: correlation of two", "-", XYZ),
    Quantity("residual_low_load", "leg: least load third", "m/s"),
    Quantity("residual_high_load", "leg: most load third", "m/s"),
    Quantity("sink_range", "foot: range in a stance", "mm"),
    Quantity("sink_share", "foot: the same of the leg", "%"),
    Quantity("sink_settling", "foot: sink after landing", "mm"),
    Quantity("joint_latency", "joints: latency", "ms"),
    Quantity("flexure", "joints: flexure under load", "mrad", XYZ[:2]),
    Quantity("dq_lag", "dq: first-order lag", "ms"),
    Quantity("dq_noise", "dq: noise", "rad/s", JOINTS),
    Quantity("q_step", "q: quantisation", "mrad", JOINTS),
    Quantity("dq_step", "dq: quantisation", "rad/s", JOINTS),
)
