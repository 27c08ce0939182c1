"""Everything that decides which weights come out of a training. This module imports nothing heavy."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gait.documents import load_yaml, named, shown
from gait.errors import GaitError, os_errors
from gait.nets.architecture import KINDS
from gait.samples import shipped


@dataclass(frozen=True)
class TrainConfig:
    """A training. The defaults are the paper's protocol; docs/training.md gives the reasons for the rest."""

    network: str = "gait"
    """Which network: gait, gait-flat, nmn or gait-legs."""
    targets: bool = True
    """Whether the network reads the tracking error q_des - q; without it, it runs on logs that have no q_des. For
    gait-legs: whether it reads the ground's forces, which take joint torques or targets."""
    correction: bool = False
    """gait-legs: whether it may correct the measurement of a leg along z; otherwise it predicts the covariance only."""
    position: bool = True
    """gait-legs: whether it sees where a foot is."""
    stride: int = 2
    """gait-legs: samples from one of its seven frames to the next."""
    across_legs: bool = True
    """gait-legs: whether a leg looks at the others."""
    hidden_legs: float = 0.0
    """gait-legs: in half of the sequences, the chance of each leg to be left out."""
    legs_apart: float = 0.0
    """gait-legs: share of the sequences in which each leg is taken from a moment of its own, so that any order of
    steps is learned."""
    stance_shift: float = 0.0
    """gait-legs: by how much the feet of a sequence are moved as a whole, in lengths of the leg, standard deviation:
    robots and controllers differ in their footholds."""
    velocity_shift: float = 0.0
    """gait-legs: standard deviation of a constant velocity along the ground, m/s, that is added to what all legs of a
    sequence measure and to ground truth: which speeds are usual is not learned."""
    faults: bool = False
    """Draw the sensor faults of a real robot for every episode; see gait.train.faults."""
    init: str = ""
    """A model to go on from, by name or path, instead of fresh weights: one of the same network, such as weights of
    another robot with as many legs. Its normaliser stays."""
    data: tuple[str, ...] = ("runs/sim/trot",)
    """Folders that `gait sim --sensors exact` filled; each gives the same share of the sequences. Unused with fresh."""
    episodes: int = 0
    """At most so many episodes of each folder; 0 takes all."""
    memory: int = 0
    """Megabytes of training episodes to hold at a time, for data sets larger than memory: episodes are read in shuffled
    order into a pool that batches are drawn from; 0 holds all."""
    fresh: bool = False
    """Simulate new rollouts for every iteration instead of reading a data set."""
    gaits: tuple[str, ...] = ("trot",)
    """Gaits of fresh rollouts, in turn."""
    terrain: str = "flat"
    """Ground of fresh rollouts."""
    stationary_share: float = 0.1
    """Share of the fresh rollouts that stand nearly still; a data set brings its own."""
    airborne_share: float = 0.0
    """Share of the fresh rollouts in which the robot is carried; the paper has none."""
    robot: str = "go1"
    """Robot of fresh rollouts: a name or the path of a YAML file."""
    seed: int = 0
    """Every random number comes from here."""
    iterations: int = 1000
    """Batches of sequences."""
    l1_iterations: int = 400
    """The first of them minimise the mean absolute error, the others the Gaussian negative log-likelihood."""
    sequences: int = 32
    """Sequences in a batch."""
    steps: int = 1000
    """Length of a sequence: 2 s at 500 Hz."""
    truncate: int = 250
    """Steps between two updates of the weights; the hidden state is carried on, its gradient is cut."""
    burn_in: int = 0
    """Steps at the start of a sequence that do not count in the loss."""
    learning_rate: float = 5e-4
    """Highest learning rate of Adam."""
    warmup: int = 100
    """Iterations of linear rise to it; linear decay to zero follows."""
    clip: float = 1.0
    """Longest gradient; a longer one is shortened to this."""
    mask: float = 0.2
    """Probability that the encoder does not see a token, drawn for every step, slot and token."""
    dead_leg: float = 0.0
    """Share of the sequences in which one leg is hidden from the encoder throughout, as if its encoders were broken;
    only `gait` has a token for each leg."""
    gyro_noise: float = 0.01
    """Standard deviation of the white noise added to a gyro sample, rad/s, drawn in every batch."""
    accel_noise: float = 0.1
    """The same for the accelerometer, m/s^2."""
    gyro_bias: float = 0.0
    """Standard deviation of a constant gyro error drawn for every sequence, rad/s."""
    accel_bias: float = 0.0
    """The same for the accelerometer, m/s^2."""
    log_std_min: float = -7.0
    """Lower bound of the predicted log-std."""
    log_std_max: float = 2.0
    """Upper bound of the predicted log-std."""
    contact_weight: float = 0.1
    """Weight of the contact head's cross-entropy in the loss of nmn."""
    validation_share: float = 0.1
    """Share of the episodes kept for validation, drawn from the seed."""
    validation_episodes: int = 32
    """At most so many of them are used."""
    validate_every: int = 50
    """Iterations between two validations."""
    half: bool = False
    """Store the weights in 16 bits: half the size; validation at the end is that of the stored weights."""

    def __post_init__(self) -> None:
        if self.network not in KINDS:
            raise GaitError(f"unknown network '{self.network}': choose one of {', '.join(KINDS)}")
        if self.network == "gait-legs" and self.fresh:
            raise GaitError("gait-legs learns from a data set: name one of `gait sim --sensors exact` with `data`")
        if not self.fresh and not self.data:
            raise GaitError("no data to train on: name folders with `data`, or simulate with `fresh`")
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise GaitError(f"{name} must be {least} or more, got {getattr(self, name)}")
        for name in ("stationary_share", "airborne_share", "mask", "validation_share", "hidden_legs", "dead_leg"):
            value = getattr(self, name)
            if not (0.0 <= value < 1.0 or (name == "dead_leg" and value == 1.0)):
                raise GaitError(f"{name} must lie between 0 and 1, got {value}")
        if self.burn_in >= self.steps:
            raise GaitError(f"burn_in {self.burn_in} leaves nothing of {self.steps} steps")
        if not self.log_std_min < self.log_std_max:
            raise GaitError("log_std_min must lie below log_std_max")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as files keep them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @property
    def architecture(self) -> dict[str, Any]:
        """The network's part of the configuration."""
        values: dict[str, Any] = {"kind": self.network, "targets": self.targets}
        if self.network == "gait-legs":
            values |= {"correction": self.correction, "position": self.position, "stride": self.stride}
            return values if self.across_legs else {**values, "head_width": 0}
        return {**values, "log_std_min": self.log_std_min, "log_std_max": self.log_std_max}


_LEAST: dict[str, float] = {
    "seed": 0, "stride": 1, "episodes": 0, "memory": 0, "iterations": 1, "l1_iterations": 0, "sequences": 1, "steps": 2,
    "truncate": 1, "burn_in": 0,
    "learning_rate": 0.0, "warmup": 0, "clip": 0.0, "gyro_noise": 0.0, "accel_noise": 0.0,
    "gyro_bias": 0.0, "accel_bias": 0.0, "stance_shift": 0.0, "velocity_shift": 0.0,
    "contact_weight": 0.0, "validation_episodes": 1,
    "validate_every": 1,
}  # fmt: skip


def config_of(values: Mapping[str, Any], where: str) -> TrainConfig:
    """A configuration from plain values; an unknown key or a value of the wrong type is an error that names it."""
    hints = typing.get_type_hints(TrainConfig)
    unknown = [named(name) for name in values if name not in hints]
    if unknown:
        raise GaitError(f"{where} has an unknown key '{unknown[0]}': see `gait train --help` for the names")
    return TrainConfig(**{name: _convert(name, value, hints[name], where) for name, value in values.items()})


def read_config(path: str | Path) -> dict[str, Any]:
    """The keys and values of a YAML file, checked."""
    import yaml

    try:
        with os_errors(f"cannot read {path}"):
            file = Path(path)
            if not file.exists() and (ours := shipped("configs") / file.name).is_file():
                # `configs/gait.yaml` works from everywhere.
                file = ours
            tree = load_yaml(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError):
        raise GaitError(f"{path} is not valid YAML: correct its syntax") from None
    tree = {} if tree is None else tree
    if not isinstance(tree, dict):
        raise GaitError(f"{path} must map names to values")
    config = config_of(tree, str(path))
    return {name: getattr(config, name) for name in tree}


def write_config(config: TrainConfig, path: Path) -> None:
    """Write all values as YAML."""
    import yaml

    from gait.io.atomic import atomic_path

    with atomic_path(path) as temporary:
        temporary.write_text(yaml.safe_dump(config.as_dict(), sort_keys=False), encoding="utf-8")


def _convert(name: str, value: Any, kind: Any, where: str) -> Any:
    many = isinstance(kind, types.GenericAlias)
    if many and isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return tuple(value)
    if type(value) is kind or (kind is float and type(value) is int and abs(value) < 2**1000):
        return kind(value)
    word = "a list of names" if many else kind.__name__
    raise GaitError(f"{where}: {name} must be {word}, got {shown(value)}")
