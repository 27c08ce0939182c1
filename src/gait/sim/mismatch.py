"""Which robot is simulated: a perfect one, the training one, or the benchmark twin that differs from both.

The twin is a list of imperfections. Each one has its figures here and nowhere else, with where they come from; the
benchmark applies all of them, and a study may apply one alone. They were fixed before any network was trained.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gait.errors import GaitError
from gait.log.imu_noise import ImuNoise
from gait.sim.episode import EpisodeConfig
from gait.sim.sensors import JointConfig, SensorConfig

_DEG = math.pi / 180.0
_G = 9.80665
# A rotor turn is 2^15 steps, its velocity 2^8 steps of a turn a second, its torque 2^8 steps of a newton metre; the
# gear reduces by 6.33, and the calf's linkage by 1.5 more.
_GEAR = 6.33
_ANGLE_STEP = 2.0 * math.pi / 2**15 / _GEAR


@dataclass(frozen=True)
class Imperfection:
    """One way in which the twin is not the robot that its description promises."""

    name: str
    figures: str
    """The figures in words, with units."""
    source: str
    """Where the figures come from, or why they were chosen."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `EpisodeConfig` that change."""
    imu: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `ImuNoise` that change."""
    joints: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `JointConfig` that change."""


# Offsets and lengths are the first draw of numpy's default_rng(7), rounded: nobody chose which errors cancel.
TWIN: tuple[Imperfection, ...] = (
    Imperfection(
        "link lengths",
        "hip and thigh links off by up to 1 %, every calf up to 1 % (2 mm) shorter than described",
        "Leg lengths are hard to measure and change under load: Bloesch et al. (ICRA 2013) and Yang et al. (RA-L 2022)"
        " calibrate them from walking data for this reason. Calves share a sign because rubber feet wear and give.",
        body={
            "link_scale": (
                (0.9951, 1.0099, 0.9922),
                (0.9989, 1.0059, 0.9916),
                (1.0001, 1.0024, 0.9961),
                (1.0011, 1.0098, 0.9904),
            )
        },
    ),
    Imperfection(
        "encoder offsets",
        "fixed error of each joint's zero, root mean square 0.010 rad, at most 0.017 rad",
        "Policies for the Go1 are trained against +-0.02 rad (Margolis and Agrawal, CoRL 2022, motor offset).",
        joints={
            "offset": (
                *(0.0043, 0.0137, 0.0095),
                *(-0.0095, -0.0069, 0.0129),
                *(-0.0171, 0.0111, 0.0103),
                *(-0.0011, -0.0068, -0.0077),
            )
        },
    ),
    Imperfection(
        "encoder steps",
        "angle 3.0e-5 rad (calf 2.0e-5), velocity 0.0039 rad/s, torque 0.025 N m",
        "Unitree's published motor protocol: position in 2^15 steps a rotor turn, speed and torque in 2^8 steps;"
        " gear 6.33, calf 6.33 x 1.5.",
        joints={
            "resolution": (_ANGLE_STEP, _ANGLE_STEP, _ANGLE_STEP / 1.5),
            "velocity_resolution": 2.0 * math.pi / 2**8 / _GEAR,
            "torque_resolution": _GEAR / 2**8,
        },
    ),
    Imperfection(
        "drive velocity",
        "differenced angle through a 100 Hz low-pass: 1.6 ms late",
        "Chosen: one 1 kHz difference of the 15-bit angle is 0.03 rad/s coarse, which a drive has to smooth; its"
        " filter is not published.",
        joints={"velocity_cutoff": 100.0},
    ),
    Imperfection(
        "torque gain",
        "torque reading of each joint off by 5 % (standard deviation), drawn each episode",
        "Torque is inferred from current. Margolis and Agrawal randomise motor strength by +-10 %.",
        joints={"torque_gain": 0.05},
    ),
    Imperfection(
        "joint friction",
        "dry friction 0.4 N m and damping 0.02 N m s/rad, twice the published model",
        "The factor is chosen: the Go1's URDF gives 0.2 N m and 0.01 N m s/rad. Friction hides contact force"
        " from a detector that works on joint torque.",
        body={"joint_friction": 2.0, "joint_damping": 2.0},
    ),
    Imperfection(
        "motor lag",
        "first-order lag of the torque, 3 ms",
        "Tan et al. (RSS 2018) measured 3 ms from the microcontroller to the motor of a small quadruped.",
        body={"motor_time_constant": 0.003},
    ),
    Imperfection(
        "payload",
        "1.5 kg on the back, 5 cm ahead of the middle and 2 cm to the left",
        "Inside the -1 to 3 kg of Margolis and Agrawal; a computer with a lidar.",
        body={"payload_mass": 1.5, "payload_position": (0.05, 0.02, 0.08)},
    ),
    Imperfection(
        "contact stiffness",
        "ground half as stiff",
        "The factor is chosen: a mat instead of concrete.",
        body={"contact_stiffness": 0.5},
    ),
    Imperfection(
        "IMU noise",
        "gyro 0.014 deg/s/sqrt(Hz), accelerometer 175 ug/sqrt(Hz), ranges 2000 deg/s and 24 g",
        "Bosch BMI088 data sheet, a MEMS chip made for drones and robots (160 to 190 ug/sqrt(Hz) by axis). The"
        " IMU of the Go1 is not published.",
        imu={
            "gyro_noise": 0.014 * _DEG,
            "accel_noise": 175e-6 * _G,
            "gyro_range": 2000.0 * _DEG,
            "accel_range": 24.0 * _G,
        },
    ),
    Imperfection(
        "IMU bias",
        "at switch-on 0.0026 rad/s and 0.1 m/s^2 (standard deviations), then a walk of 1.9e-5 rad/s^2/sqrt(Hz) and"
        " 3e-3 m/s^3/sqrt(Hz)",
        "BMI088: 0.015 deg/s/K over 10 K after the gyro was zeroed; half of its 20 mg accelerometer offset. The walks"
        " are those published with the EuRoC data set (Burri et al., IJRR 2016).",
        imu={"gyro_bias": 0.15 * _DEG, "accel_bias": 0.1, "gyro_walk": 1.94e-5, "accel_walk": 3e-3},
    ),
    Imperfection(
        "IMU mounting",
        "chip turned by 0.6 deg against its description",
        "The BMI088's own cross-axis sensitivity is 1 % (0.57 deg), and the board adds to it.",
        imu={"mounting": (0.006, -0.007, 0.004)},
    ),
    Imperfection(
        "sensor delay",
        "IMU one sample late (2 ms), joints two samples late (4 ms)",
        "Twelve drives are polled over serial buses, the IMU is read beside the computer.",
        imu={"delay": 1},
        joints={"delay": 2},
    ),
)
"""The benchmark robot. Slips are not in the list: they come from the terrain."""

TRAINING_SENSORS = SensorConfig(imu=ImuNoise(gyro_noise=4.5e-4, accel_noise=4.5e-3))
"""Zero-mean Gaussian noise on the IMU only, as in the paper: 0.01 rad/s and 0.1 m/s^2 in a sample, two to three times
the data sheet's, so that a network does not lean on what one IMU happens to say. Joints stay clean."""

PROFILES = ("exact", "training", "twin")
"""Names of the robots: perfect sensors, the training robot, the benchmark robot."""


def sensors_of(profile: str, only: Iterable[str] | None = None) -> SensorConfig:
    """The sensors of a profile.

    Args:
        profile: one of `PROFILES`.
        only: for the twin, the names of the imperfections to apply; all by default.
    """
    if profile == "exact":
        return SensorConfig()
    if profile == "training":
        return TRAINING_SENSORS
    imu, joints = ImuNoise(), JointConfig()
    for item in _chosen(profile, only):
        imu, joints = replace(imu, **item.imu), replace(joints, **item.joints)
    # The Go1's foot sensors read an uncalibrated air pressure: nothing here may depend on them.
    return SensorConfig(imu=imu, joints=joints, foot_force=False)


def body_of(profile: str, config: EpisodeConfig, only: Iterable[str] | None = None) -> EpisodeConfig:
    """The episode with the body of a profile: the twin's own, otherwise unchanged."""
    if profile in ("exact", "training"):
        return config
    for item in _chosen(profile, only):
        config = replace(config, **item.body)
    return config


def _chosen(profile: str, only: Iterable[str] | None) -> list[Imperfection]:
    if profile != "twin":
        raise GaitError(f"unknown sensors '{profile}': choose one of {', '.join(PROFILES)}")
    if only is None:
        return list(TWIN)
    by_name = {item.name: item for item in TWIN}
    for name in (wanted := list(only)):
        if name not in by_name:
            raise GaitError(f"the twin has no imperfection '{name}': they are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]
