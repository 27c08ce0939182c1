"""Which robot is simulated: a perfect one, the training one, or the benchmark twin that differs from both.

The twin is a list of imperfections, `twin.yaml`. Each one has its figures there and nowhere else, with where they come
from; the benchmark applies all of them, and a study may apply one alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from gait.errors import GaitError
from gait.log.imu_noise import ImuNoise
from gait.robot import BareRobot, Robot
from gait.sim.sensors import JointConfig, SensorConfig
from gait.sim.settings import EpisodeConfig


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


def _hashable(value: Any) -> Any:
    """Lists of a file as the tuples that frozen settings hold."""
    if isinstance(value, Mapping):
        return {key: _hashable(entry) for key, entry in value.items()}
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


_FILE = Path(__file__).with_name("twin.yaml")
TWIN = tuple(Imperfection(**_hashable(entry)) for entry in yaml.safe_load(_FILE.read_text(encoding="utf-8")))
"""The benchmark robot. Slips are not in the list: they come from the terrain."""

TRAINING_IMU = ImuNoise(gyro_noise=4.5e-4, accel_noise=4.5e-3)
"""Zero-mean Gaussian noise on the IMU only, as in the paper: 0.01 rad/s and 0.1 m/s^2 in a sample, two to three times
the data sheet's, so that a network does not depend on the noise level of one IMU. Joints stay clean."""

PROFILES = ("exact", "training", "twin")
"""Names of the robots: perfect sensors, the training robot, the benchmark robot."""


def sensors_of(profile: str, only: Iterable[str] | None = None) -> SensorConfig:
    """The sensors of a profile.

    Args:
        profile: one of `PROFILES`.
        only: for the twin, the names of the imperfections to apply; all by default.
    """
    imu, joints = TRAINING_IMU if profile == "training" else ImuNoise(), JointConfig()
    for item in _chosen(profile, only):
        imu, joints = replace(imu, **item.imu), replace(joints, **item.joints)
    # The Go1's foot sensors read an uncalibrated air pressure: nothing here may depend on them.
    return SensorConfig(imu=imu, joints=joints, foot_force=profile != "twin")


def sensors_for(profile: str, robot: Robot | BareRobot) -> SensorConfig:
    """The sensors of a profile on a robot: one with another number of joints has the Go1's errors over and over."""
    config = sensors_of(profile)
    if not config.joints.offset or len(config.joints.offset) == robot.num_joints:
        return config
    offset = tuple(itertools.islice(itertools.cycle(config.joints.offset), robot.num_joints))
    return replace(config, joints=replace(config.joints, offset=offset))


def body_of(profile: str, config: EpisodeConfig, only: Iterable[str] | None = None) -> EpisodeConfig:
    """The episode with the body of a profile: the twin's own, otherwise unchanged."""
    for item in _chosen(profile, only):
        config = replace(config, **item.body)
    return config


def _chosen(profile: str, only: Iterable[str] | None) -> list[Imperfection]:
    if profile not in PROFILES:
        raise GaitError(f"unknown sensors '{profile}': choose one of {', '.join(PROFILES)}")
    by_name = {item.name: item for item in TWIN if profile == "twin"}
    wanted = list(by_name if only is None else only)
    for name in wanted:
        if name not in by_name:
            raise GaitError(f"the twin has no imperfection '{name}': they are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]
