"""The model file: a network and everything needed to run it, read without torch and without unpickling.

A safetensors file. Its metadata hold `gait: model`, the version of the layout and one JSON object with the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gait.arrays import AnyArray, Array
from gait.documents import load_json
from gait.errors import GaitError, os_errors
from gait.nets.architecture import NORMALISER, Architecture, LegsArchitecture, architecture_of, shapes_of
from gait.nets.features import features, physical_features

if TYPE_CHECKING:
    from gait.log.log import Log
    from gait.robot import Robot

VERSION = 1
"""Version of the layout; a file of a later one is refused with a word on upgrading."""
SUFFIX = ".safetensors"
WEIGHTS = Path(__file__).parents[1] / "weights"
"""Where the models that come with gait are."""
_HEADER: dict[str, Callable[[Any], Any]] = {
    "architecture": architecture_of,
    "robot": str,
    "leg_names": lambda names: tuple(map(str, names)),
    "joint_names": lambda names: tuple(map(str, names)),
    "rate": float,
    "training": dict,
    "data": lambda entries: tuple(map(dict, entries)),
    "results": lambda results: {name: float(value) for name, value in results.items()},
    "commit": str,
}
"""Fields of a model that its header holds, and how each is read."""


@dataclass(frozen=True, eq=False)
class Model:
    """A trained network."""

    architecture: Architecture
    weights: Mapping[str, AnyArray]
    """Every array of the network by name, float32; `shapes_of` lists them. `mean` and `std` normalise features (F,), or
    those of a leg."""
    robot: str
    """Name of the robot it was trained for."""
    leg_names: tuple[str, ...]
    """Legs in the network's order."""
    joint_names: tuple[str, ...]
    """Joints in the network's order, leg by leg."""
    rate: float
    """Samples a second, Hz."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """The configuration it was trained with."""
    data: tuple[Mapping[str, Any], ...] = ()
    """The settings of the collections it was trained on."""
    results: Mapping[str, float] = field(default_factory=dict)
    """Results of the last validation."""
    commit: str = "unknown"
    """Commit of the code that trained it."""

    def __post_init__(self) -> None:
        legs = self.architecture.legs
        # What gait-legs reads of a leg is the same for any number of joints.
        any_joints = isinstance(self.architecture, LegsArchitecture)
        if len(self.leg_names) != legs or (len(self.joint_names) != 3 * legs and not any_joints):
            raise GaitError(
                f"the model has {len(self.leg_names)} leg and {len(self.joint_names)} joint names,"
                f" but its network has {legs} legs of three joints"
            )
        if not (np.isfinite(self.rate) and self.rate > 0.0):
            raise GaitError(f"the model's rate is {self.rate}: it must be above 0")
        _check_weights(self.weights, self.architecture)

    @property
    def header(self) -> dict[str, Any]:
        """All but the weights, as plain values."""
        return {name: getattr(self, name) for name in _HEADER} | {"architecture": asdict(self.architecture)}

    def for_robot(self, robot: Robot) -> Model:
        """The same network on another robot, if it is of a kind that can: `gait-legs` runs on any number of legs."""
        if not isinstance(self.architecture, LegsArchitecture):
            raise GaitError(
                f"{self.architecture.kind} runs only on {self.robot}, for which it was trained: use gait-legs, which"
                " runs on any robot"
            )
        return replace(
            self,
            architecture=replace(self.architecture, legs=robot.num_legs),
            robot=robot.name,
            leg_names=robot.leg_names,
            joint_names=robot.joint_names,
        )

    def features(self, log: Log, robot: Robot | None = None) -> Array:
        """Features (N, F) of a Log, its joints brought into the network's order by name.

        Args:
            log: the samples.
            robot: for `gait-legs`, whose features are physical, whose log it is; the model's own by default.
        """
        if isinstance(self.architecture, LegsArchitecture):
            return physical_features(log, self.architecture, robot or self.robot)
        missing = [name for name in self.joint_names if name not in log.joint_names]
        if missing:
            raise GaitError(
                f"the log has no joint '{missing[0]}' that the model reads; it has {', '.join(log.joint_names)}:"
                f" rename with log.rename({{'...': '{missing[0]}'}})"
            )
        return features(log, self.architecture, [log.joint_names.index(name) for name in self.joint_names])

    def save(self, path: str | Path, half: bool = False) -> None:
        """Write the model file, whole or not at all.

        Args:
            path: should end in `.safetensors`.
            half: keep the weights in 16 bits: half the size, each number rounded by up to 0.05 %. The normaliser
                stays as it is.
        """
        kinds = {name: np.float16 if half and name not in NORMALISER else np.float32 for name in self.weights}
        arrays = {name: np.ascontiguousarray(array, dtype=kinds[name]) for name, array in self.weights.items()}
        write_arrays(path, "model", arrays, self.header)


def model_names() -> list[str]:
    """Names of the models that come with gait."""
    return sorted(path.stem for path in WEIGHTS.glob(f"*{SUFFIX}"))


def load_model(name_or_path: str | Path) -> Model:
    """Read a model that comes with gait by its name, or any model by the path of its file.

    Raises:
        GaitError: if there is no such file, it is damaged, or it is not a model of gait.
    """
    path = Path(name_or_path)
    if str(name_or_path) in model_names():
        path = WEIGHTS / f"{name_or_path}{SUFFIX}"
    metadata, arrays = read_arrays(path)
    if metadata.get("gait") != "model":
        raise GaitError(f"{path} is not a model of gait: give a file that `gait train` wrote")
    if metadata.get("version") != str(VERSION):
        raise GaitError(f"{path} has layout version {metadata.get('version')}, this gait reads {VERSION}: upgrade gait")
    try:
        header = load_json(metadata["header"])
        return Model(weights=arrays, **{name: read(header[name]) for name, read in _HEADER.items()})
    except GaitError as error:
        raise GaitError(f"{path} is not a model this gait can use: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise GaitError(f"{path} has a header that gait did not write: train or copy the model again") from None


def is_safetensors(path: str | Path) -> bool:
    """Whether a file begins like safetensors: the length of a JSON header, then the header."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(9)
    except OSError:
        return False
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < 100_000_000


def read_arrays(path: str | Path) -> tuple[dict[str, str], dict[str, AnyArray]]:
    """Metadata and arrays (as float32) of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    path, arrays = Path(path), dict[str, AnyArray]()
    if path.is_dir():
        raise GaitError(f"{path} is a folder: give the model file in it")
    if not path.is_file() and path.suffix:
        raise GaitError(f"there is no file {path}: check the name")
    if not path.is_file():
        raise GaitError(f"there is no model {path}: give the path of a file, or one of {', '.join(model_names())}")
    try:
        with os_errors(f"cannot read {path}"), safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118  (not a dict: it has no other way)
                if file.get_slice(name).get_dtype() not in ("F16", "F32"):
                    raise GaitError(f"{path} holds numbers of another kind in '{name}': train or copy the model again")
                arrays[name] = np.asarray(file.get_tensor(name), dtype=np.float32)
            return dict(file.metadata() or {}), arrays
    except SafetensorError:
        raise GaitError(f"{path} is damaged, cut short or not a safetensors file: copy or train it again") from None


def write_arrays(path: str | Path, kind: str, arrays: dict[str, AnyArray], header: Mapping[str, Any]) -> None:
    """Write a safetensors file, whole or not at all, that says what kind of file it is."""
    from safetensors.numpy import save

    metadata = {"gait": kind, "version": str(VERSION), "header": json.dumps(header)}
    from gait.io.atomic import atomic_path  # not needed to run a model

    with atomic_path(path) as temporary:
        temporary.write_bytes(save(arrays, metadata))


def _check_weights(weights: Mapping[str, AnyArray], architecture: Architecture) -> None:
    shapes = shapes_of(architecture)
    for name, shape in shapes.items():
        if name not in weights:
            raise GaitError(f"it lacks the array '{name}'")
        if weights[name].shape != shape:
            raise GaitError(f"its array '{name}' has shape {weights[name].shape}, not {shape}")
        if not np.isfinite(weights[name]).all():
            raise GaitError(f"its array '{name}' holds nan or infinity")
    unknown = [name for name in weights if name not in shapes]
    if unknown:
        raise GaitError(f"it holds an unknown array '{unknown[0]}'")
    if not (np.asarray(weights["std"]) > 0.0).all():
        raise GaitError("its normaliser divides by zero")
