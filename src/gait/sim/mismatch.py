"""Which robot is simulated: a perfect one, the training one, or a benchmark twin that differs from both.

A twin is a list of imperfections, `twin.yaml` and `twin2.yaml`. Each one has its figures there and nowhere else, with
where they come from; the benchmark applies all of them, and a study may apply one alone. Version 1 is one robot,
version 2 another one in every episode, drawn from the ranges in its list by a seed.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gait.errors import GaitError
from gait.log.imu_noise import ImuNoise
from gait.robot import BareRobot, Robot
from gait.sim.sensor_step import JointConfig, SensorConfig
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
    sensors: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `SensorConfig` that change."""

    def of_robot(self, seed: int) -> Imperfection:
        """The imperfection of one robot: ranges are drawn, from a generator that no other imperfection uses."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        parts = {part: getattr(self, part) for part in ("body", "imu", "joints", "sensors")}
        drawn: dict[str, Any] = {part: _drawn(fields, rng) for part, fields in parts.items()}
        return replace(self, **drawn)


def _hashable(value: Any) -> Any:
    """Lists of a file as the tuples that frozen settings hold."""
    if isinstance(value, Mapping):
        return {key: _hashable(entry) for key, entry in value.items()}
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _drawn(fields: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Fields with their ranges drawn: `uniform: [low, high]`, `log: [low, high]`, even in the logarithm, or one of
    `choice: [...]`; with a `shape`, that many."""

    def draw(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        (kind, given), *_ = ((key, entry) for key, entry in value.items() if key != "shape")
        if kind == "choice":
            return given[rng.integers(len(given))]
        low, high = np.log(given) if kind == "log" else given
        drawn = rng.uniform(low, high, value.get("shape"))
        return _hashable((np.exp(drawn) if kind == "log" else np.asarray(drawn)).tolist())

    return {name: draw(value) for name, value in fields.items()}


def _read(name: str) -> tuple[Imperfection, ...]:
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return tuple(Imperfection(**_hashable(entry)) for entry in yaml.safe_load(text))


TWINS = {name: _read(name) for name in ("twin", "twin2")}
"""The benchmark robots, version 1 and 2. Slips are not in the lists: they come from the terrain."""

TRAINING_IMU = ImuNoise(gyro_noise=4.5e-4, accel_noise=4.5e-3)
"""Zero-mean Gaussian noise on the IMU only, as in the paper: 0.01 rad/s and 0.1 m/s^2 in a sample, two to three times
the data sheet's, so that a network does not depend on the noise level of one IMU. Joints stay clean."""

PROFILES = ("exact", "training", *TWINS)
"""Names of the robots: perfect sensors, the training robot, the benchmark robots."""


def sensors_of(profile: str, only: Iterable[str] | None = None, seed: int = 0) -> SensorConfig:
    """The sensors of a profile.

    Args:
        profile: one of `PROFILES`.
        only: for a twin, the names of the imperfections to apply; all by default.
        seed: of the episode; draws the robot where a twin has ranges.
    """
    imu, joints = TRAINING_IMU if profile == "training" else ImuNoise(), JointConfig()
    # The Go1's foot sensors read an uncalibrated air pressure: nothing here may depend on them.
    config = SensorConfig(foot_force=profile not in TWINS)
    for item in _chosen(profile, only, seed):
        imu, joints = replace(imu, **item.imu), replace(joints, **item.joints)
        config = replace(config, **item.sensors)
    return replace(config, imu=imu, joints=joints)


def sensors_for(profile: str, robot: Robot | BareRobot, seed: int = 0) -> SensorConfig:
    """The sensors of a profile on a robot: one with another number of joints has the Go1's errors over and over."""
    config, changed = sensors_of(profile, seed=seed), dict[str, Any]()
    for name in ("offset", "torque_offset"):
        given = getattr(config.joints, name)
        if given and len(given) != robot.num_joints:
            changed[name] = tuple(itertools.islice(itertools.cycle(given), robot.num_joints))
    return replace(config, joints=replace(config.joints, **changed))


def body_of(profile: str, config: EpisodeConfig, only: Iterable[str] | None = None, seed: int = 0) -> EpisodeConfig:
    """The episode with the body of a profile: a twin's own, otherwise unchanged."""
    for item in _chosen(profile, only, seed):
        config = replace(config, **item.body)
    return config


def _chosen(profile: str, only: Iterable[str] | None, seed: int) -> list[Imperfection]:
    if profile not in PROFILES:
        raise GaitError(f"unknown sensors '{profile}': choose one of {', '.join(PROFILES)}")
    by_name = {item.name: item for item in TWINS.get(profile, ())}
    wanted = list(by_name if only is None else only)
    for name in wanted:
        if name not in by_name:
            raise GaitError(f"the twin has no imperfection '{name}': they are {', '.join(by_name)}")
    return [by_name[name].of_robot(seed) for name in wanted]
