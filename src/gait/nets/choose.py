"""Which model stands behind the name of a method, and whether it fits a robot."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from gait.errors import GaitError
from gait.methods import METHODS
from gait.nets.architecture import LegsArchitecture
from gait.nets.model import Model, load_model
from gait.robot import Robot


class Chosen(NamedTuple):
    """The networks of a method."""

    model: Model
    less: Model | None
    """For samples without what the first reads beside IMU, q and dq, where there is one."""
    dead_leg: Model | None
    """For a leg out of use, where there is one."""
    name: str
    """Of the method."""


def models_of(method: str | Path | Model, robot: Robot) -> Chosen:
    """The models behind a method that has a network, or a model file."""
    if isinstance(method, Model):
        return Chosen(method, None, None, method.architecture.kind)
    known = METHODS.get(str(method))
    try:
        model = load_model(method if known is None else known.weights)
    except GaitError:
        if known is None and not Path(method).suffix:
            raise GaitError(
                f"unknown method '{method}': choose one of {', '.join(METHODS)}, or give the path of a model file"
            ) from None
        raise
    if known is None:
        return Chosen(model, None, None, Path(method).stem)
    if model.robot != robot.name and not isinstance(model.architecture, LegsArchitecture):
        raise GaitError(
            f"method {method} has no weights for {robot.name}, only for {model.robot}: train some (`gait train`) and"
            " give their path, or use method iekf, which needs none"
        )
    less, dead_leg = (load_model(name) if name else None for name in (known.without_targets, known.dead_leg))
    return Chosen(model, less, dead_leg, str(method))


def fitted(model: Model, robot: Robot) -> Model:
    """The model as it runs on a robot; GaitError if it was trained for other joints."""
    if isinstance(model.architecture, LegsArchitecture):
        model = model.for_robot(robot)
    if model.joint_names != robot.joint_names or model.leg_names != robot.leg_names:
        raise GaitError(
            f"the model was trained for joints {', '.join(model.joint_names)} and {robot.name} has"
            f" {', '.join(robot.joint_names)}: load weights of this robot, or train some with `gait train`"
        )
    return model
