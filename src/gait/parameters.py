"""Every number a filter depends on: defaults here, the tuned settings of the model-based methods in baselines.yaml."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from gait.documents import load_yaml, named, shown
from gait.errors import GaitError
from gait.log.fields import refuse_unknown

BASELINES_FILE = Path(__file__).with_name("baselines.yaml")
"""Written by benchmarks/tune_baselines.py."""
_TUNED = ("detection", "slip", "contact", "kinematics", "rolling")
_Settings = TypeVar("_Settings", bound="ContactAided | ContactDetection | SlipRejection")


def _check(settings: object, least: Mapping[str, float], most: Mapping[str, float]) -> None:
    """Raise if a number is none, or beyond its bounds (by default 0 and infinity)."""
    for one in fields(settings):  # type: ignore[arg-type]
        value, name = getattr(settings, one.name), f"{type(settings).__name__}.{one.name}"
        flag = isinstance(value, bool | np.bool_)
        if flag and one.type == "bool":
            continue
        low, high = least.get(one.name, 0.0), most.get(one.name, np.inf)
        if flag or one.type == "bool" or not isinstance(value, int | float | np.number):
            raise GaitError(f"{name} is {value!r}: give {'True or False' if one.type == 'bool' else 'a number'}")
        if not (low <= value <= high and np.isfinite(value)):
            bounds = f"of at least {low:g}" if np.isinf(high) else f"from {low:g} to {high:g}"
            raise GaitError(f"{name} is {value:g}: give a finite number {bounds}")


_GREATEST = sys.float_info.max
_LARGE = 1e4
"""Largest noise and standard deviation: beyond it, rounding errors dominate the covariance."""
MOST_LASTING = 0.1
"""Largest error of the vertical velocity that lasts, m/s: a blind filter's uncertainty is of another kind."""
HEIGHT_TIME = 3.0


@dataclass(frozen=True)
class ProcessNoise:
    """Noise of the IMU in the filter: densities, so that a step of dt adds variance density^2 dt."""

    gyro: float = 0.002
    """Angular rate, rad/s/sqrt(Hz)."""
    accel: float = 0.02
    """Specific force, m/s^2/sqrt(Hz). Above a datasheet's figure: it also covers impacts within a sample."""
    gyro_bias: float = 1e-5
    """Random walk of the gyro bias, rad/s^2/sqrt(Hz)."""
    accel_bias: float = 1e-4
    """Random walk of the accelerometer bias, m/s^3/sqrt(Hz)."""
    accel_share: float = 0.0
    """What joins `accel` while the body accelerates, for each m/s^2 of it, 1/sqrt(Hz); variances add up. An error of
    mounting, scale or latency is in proportion to the acceleration. An estimator takes it for samples at its network's
    rate, and more for slower ones."""
    position: float = 0.005
    """Random walk of the position, m/sqrt(s): errors of the velocity are correlated over time, which the
    filter does not model."""
    position_share: float = 0.02
    """What joins `position` for each m/s of speed: errors of link lengths, joint zeros and foot radii are in
    proportion."""
    height_time: float = HEIGHT_TIME
    """Seconds for which an error of the vertical velocity lasts: its variance, up to `MOST_LASTING` squared, times this
    joins the square of `position` vertically. Feet give way at each touch-down and recover at lift-off, and what a
    filter makes of the two does not cancel. Chosen on walks of 60 s with the faults of training."""

    def __post_init__(self) -> None:
        """See that they are densities."""
        _check(self, {}, {one.name: _LARGE for one in fields(self)})


LEG_INSTANT = 1.0 / 7.0
"""Standard deviation of a leg in a single sample, relative to that which a filter may take for white noise: errors of a
leg last for many samples. Training and fusion share it."""
LEGS_NOISE = ProcessNoise(gyro=0.001, accel=0.007, accel_share=0.0023)
"""Noise of the IMU for `gait-legs`, unless another is given. Other methods are tuned by the variance of contacts or of
their network; here the network has learned that, and that of the IMU is left. Judged on held-out walks with faults:
docs/legs.md."""


@dataclass(frozen=True)
class Prior:
    """Standard deviations of the state at the start."""

    rotation: float = 0.03
    """Roll and pitch, rad; yaw is where the world frame starts and gets `yaw`."""
    yaw: float = 1e-3
    """Heading, rad: free to choose at the start, so known by definition."""
    velocity: float = 0.1
    """m/s."""
    position: float = 1e-3
    """m: free to choose at the start, so known by definition."""
    gyro_bias: float = 0.01
    """rad/s."""
    accel_bias: float = 0.1
    """m/s^2."""

    def __post_init__(self) -> None:
        """See that they are standard deviations."""
        _check(self, {}, {one.name: _LARGE for one in fields(self)})


@dataclass(frozen=True)
class Options:
    """How time is made discrete, and the variance of a network."""

    gravity: float = -9.81
    """z component of gravity in the world, m/s^2."""
    exact_mean: bool = True
    """Integrate the turning of the body within a step. False holds the orientation, as older filters do."""
    exact_phi: bool = True
    """Keep every term of the transition matrix. False keeps those of first order in the step."""
    max_gap: float = 0.1
    """A longer step, s, is a gap: feet are dropped, velocity is held, and its uncertainty grows as follows."""
    gap_accel: float = 2.0
    """How hard the body may have accelerated in a gap, m/s^2."""
    gap_rate: float = 1.0
    """How fast it may have turned, rad/s."""
    inflation: float = 20.0
    """Factor on the standard deviation that a network claims. A filter takes errors for independent from sample to
    sample, and those of a network are correlated over many. Found by benchmarks/tune_inflation.py on training
    episodes."""
    leg_inflation: float = 1.2
    """Factor on the standard deviation that `gait-legs` claims for a leg. It was trained through a filter, so it is
    nearly 1. The rest is for robots and grounds beyond those of training, on which 1 is right. Chosen on held-out walks
    with faults: docs/legs.md."""
    leg_guard: float = 0.7
    """Gate on the innovation of a leg, in its standard deviations for a single sample. Beyond it the variance of the
    leg is inflated with the square of the innovation, so that a confident outlier has little weight."""
    joint_delay: float = 0.004
    """Seconds by which joints are read later than the IMU, smoothing included; `gait-legs` allows for it. Drives that
    are polled over a bus have a latency of 2 to 8 ms."""
    joint_delay_std: float = 0.004
    """Standard deviation of that latency, s: the variance of a leg grows with its joint accelerations."""
    flexure: bool = True
    """Estimate how far the joints give way under load, and compensate it in what legs measure; `gait-legs` does. False
    is for joints that are known to be rigid, as in most simulators."""

    def __post_init__(self) -> None:
        """Check their ranges."""
        some = dict.fromkeys(("max_gap", "inflation", "leg_inflation", "leg_guard"), 1e-6)
        _check(self, {"gravity": -100.0, **some}, {"gravity": -0.1, "joint_delay": 0.1, "joint_delay_std": 0.1})


@dataclass(frozen=True)
class Limits:
    """Plausible ranges of the sensors. A value beyond them is not used, and `health` says so."""

    gyro: float = 34.9
    """Range of the gyro, rad/s: 2000 degrees a second."""
    accel: float = 157.0
    """Range of the accelerometer, m/s^2: 16 g."""
    joint_margin: float = 0.5
    """How far beyond its stops a joint may read, rad: offsets and calibration."""
    joint_speed: float = 3.0
    """How much faster than its rated speed a joint may read: impacts."""
    hold: float = 0.1
    """Seconds for which the last good value of an IMU or of a joint target stands in for a broken one."""
    stale: float = 0.05
    """Seconds without any change in a leg's encoders, while others change, after which it counts as stuck."""
    clock_reset: float = 1.0
    """A stamp this far in the past, s, is a clock that was set back, not a delayed sample."""


@dataclass(frozen=True)
class ContactDetection:
    """Contact detection by the estimated ground force of a foot."""

    touch_down: float = 0.16
    """Vertical force that starts a contact, as a share of the robot's weight."""
    lift_off: float = 0.08
    """Force below which a contact ends, as a share of the robot's weight; lower than `touch_down`: hysteresis."""
    smoothing: float = 0.004
    """Time constant of the low-pass on joint torques and accelerations, s: accelerations are differences."""
    touch_down_dwell: float = 0.01
    """Seconds of load before a contact begins: an impact rings."""
    lift_off_dwell: float = 0.0
    """Seconds without load before a contact ends. Short, since a foot that lifts off moves at once."""


@dataclass(frozen=True)
class SlipRejection:
    """Inflate the contact noise of a foot that moves over the ground (Kim et al. 2021), in proportion to its speed."""

    enabled: bool = False
    """On in `iekf-sr`, off in `iekf`."""
    speed: float = 0.05
    """Estimated speed of a foot in contact above which it slips, m/s; more where feet usually move faster."""
    inflation: float = 30.0
    """Factor on the contact noise density of a slipping foot, at most."""


@dataclass(frozen=True)
class ContactAided:
    """All settings of the contact-aided filter (`iekf`, `iekf-sr`).

    The defaults were picked by hand as a start; `BASELINES` holds the tuned settings of the two methods.
    """

    imu: ProcessNoise = field(default_factory=ProcessNoise)
    """Shared by every method."""
    prior: Prior = field(default_factory=Prior)
    """Shared by every method."""
    options: Options = field(default_factory=Options)
    """Shared by every method."""
    detection: ContactDetection = field(default_factory=ContactDetection)
    """Contact detection."""
    slip: SlipRejection = field(default_factory=SlipRejection)
    """Slip rejection."""
    contact: float = 0.02
    """Random walk of a foot on the ground, m/sqrt(s)."""
    kinematics: float = 0.005
    """Standard deviation of a foot position from forward kinematics, m."""
    rolling: bool = True
    """Feet are spheres: the contact point is their lowest point and rolls along the ground."""


def _changed(settings: _Settings, tree: object, where: str, names: Collection[str] | None = None) -> _Settings:
    """The settings with the values of one part of the file."""
    known = {item.name: getattr(settings, item.name) for item in fields(settings)}
    names = list(known) if names is None else names
    if not isinstance(tree, Mapping):
        raise GaitError(f"{where} must hold names and values: give some of {', '.join(names)}")
    refuse_unknown(map(named, tree), names, where, "setting")
    values: dict[str, Any] = {}
    for name, value in tree.items():
        old, at = known[name], f"{where}, {name}"
        if isinstance(old, ContactDetection | SlipRejection):
            values[name] = _changed(old, value, at)
        elif isinstance(old, bool):
            if not isinstance(value, bool):
                raise GaitError(f"{at} is {shown(value)}: give true or false")
            values[name] = value
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= _GREATEST:
            raise GaitError(f"{at} is {shown(value)}: give a finite number of at least 0")
        else:
            values[name] = float(value)
    return replace(settings, **values)


def read_baselines(path: str | Path = BASELINES_FILE) -> dict[str, ContactAided]:
    """Settings of the contact-aided filter by the name of the method, from a YAML file.

    What the file leaves out keeps its default. IMU noise, prior and options belong to all methods: no file sets them.
    """
    try:
        tree = load_yaml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise GaitError(f"cannot read the baselines {path}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise GaitError(f"the baselines {path} are not valid YAML: correct their syntax") from None
    if not isinstance(tree, Mapping):
        raise GaitError(f"the baselines {path} name no method: give at least one, such as iekf, with its settings")
    parts = {named(name): part for name, part in tree.items()}
    return {name: _changed(ContactAided(), part, f"{path}, {name}", _TUNED) for name, part in parts.items()}


BASELINES: dict[str, ContactAided] = read_baselines()
"""The model-based methods by name."""
