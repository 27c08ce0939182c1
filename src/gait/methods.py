"""The methods by name, and the weights behind them. This module imports nothing heavy, for command lines."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gait.errors import GaitError

if TYPE_CHECKING:
    from gait.arrays import Array
    from gait.log.sample import Sample
    from gait.robot import Robot
    from gait.state import State


@dataclass(frozen=True)
class Method:
    """One way to estimate: a network whose velocity the filter takes, or a filter on contacts."""

    needs: str
    """Inputs beside gyro, accel, q and dq, in words."""
    weights: str = ""
    """Name of the network's weights; empty for a model-based method."""
    without_targets: str = ""
    """Weights for logs without q_des (for `gait-legs` without tau, too), where there are any."""
    dead_leg: str = ""
    """Weights that take over while a leg is out of use, where there are any."""
    trot_only: str = ""
    """Weights trained on trot alone, for the benchmark's tables, if not the usual ones."""
    python: str = ""
    """`module:Class` of a method written in Python; the class is called with the robot."""

    @property
    def tabled(self) -> str:
        """Weights that stand for the method in tables."""
        return self.trot_only or self.weights


METHODS: dict[str, Method] = {
    "gait": Method("q_des; without it, the weights that do without", "gait-0", "gait-no-targets-0", "gait-dead-leg-0"),
    "gait-flat": Method("q_des", "gait-flat-1"),
    "nmn": Method("q_des", "nmn-2"),
    "iekf": Method("tau, or q_des (with the robot's gains), or foot_force, or contact"),
    "iekf-sr": Method("tau, or q_des (with the robot's gains), or foot_force, or contact"),
    "gait-legs": Method(
        "tau, or q_des (with the robot's gains); without both, the weights that do without",
        "gait-legs-all-0",
        "gait-legs-kinematic-0",
        trot_only="gait-legs-1",
    ),
}
"""The methods by name. Of three seeds, `weights` names the one with the median validation error."""

BUILT_IN = tuple(METHODS)
"""Those that come with gait."""
DEFAULT = "gait-legs"
"""The method that is taken unless another is asked for."""


class PythonMethod(Protocol):
    """A method written in Python: it measures, the core filters. See docs/extending.md."""

    def reset(self) -> None:
        """Forget everything: a new log begins."""

    def step(self, sample: Sample, predicted_state: State) -> Iterable[tuple[Array, Array, Array]] | None:
        """Measurements from an admitted sample, the first one too, given the state that the IMU predicts for it.

        In the sample, what is bad of IMU and joints is replaced by the last good values, what was not given is None;
        `predicted_state.health` names gaps, a failing IMU and legs out of use.

        Each is (z, H, N): innovation (m,), H (m, 15) and noise covariance (m, m) of z = -H xi + noise, where xi is the
        right-invariant error of the IMU's state: rotation, velocity, position, gyro bias, accelerometer bias.
        """


_REGISTERED: dict[str, Callable[[Robot], PythonMethod]] = {}


def register(name: str, make: Callable[[Robot], PythonMethod], needs: str = "nothing") -> None:
    """Add a method in Python: it works at once in `Estimator.load`, `gait run`, `gait eval` and `gait bench`.

    Args:
        name: of the method.
        make: called with the robot, gives an object with `reset` and `step`.
        needs: inputs beside gyro, accel, q and dq, in words.
    """
    if name in METHODS and name not in _REGISTERED:
        raise GaitError(f"method {name} exists already: register yours under another name")
    METHODS[name] = Method(needs, python=f"{make.__module__}:{getattr(make, '__qualname__', name)}")
    _REGISTERED[name] = make


def is_python(name: str) -> bool:
    """Whether a method is written in Python."""
    return name in METHODS and bool(METHODS[name].python)


def python_method(name: str, robot: Robot) -> PythonMethod | None:
    """A new instance of a method in Python, or None if the method is not one."""
    if not is_python(name):
        return None
    if name not in _REGISTERED:
        module, _, cls = METHODS[name].python.partition(":")
        _REGISTERED[name] = getattr(importlib.import_module(module), cls)
    return _REGISTERED[name](robot)


def method_name(method: str | Path) -> str:
    """The name of a method that is given by name, or by the path of a Python file that registers it."""
    path = Path(method)
    if path.suffix != ".py":
        return str(method)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise GaitError(f"cannot read {path}: give a Python file that calls gait.methods.register")
    known = set(METHODS)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    new = [name for name in METHODS if name not in known]
    mine = [name for name in _REGISTERED if METHODS[name].python.startswith(f"{path.stem}:")]
    if len(new or mine) != 1:
        raise GaitError(f"{path} registers {len(new or mine)} methods: call gait.methods.register once")
    return (new or mine)[0]


def known_method(method: str | Path) -> str:
    """The name of a method that there is; as `method_name`, and GaitError if there is none of that name."""
    name = method_name(method)
    if name not in METHODS:
        raise GaitError(f"unknown method '{name}': choose one of {', '.join(METHODS)}, or a Python file that adds one")
    return name
