"""Limits, gains and stance of the joints of a model, with the usual values for what its file does not tell."""

from __future__ import annotations

import numpy as np

from gait.robot.description import ENDLESS, JOINTS, USUAL
from gait.robot.model_tree import ModelJoint, ModelTree


def joint_of(tree: ModelTree, name: str) -> ModelJoint:
    """The joint of that name."""
    return next(joint for body in tree.bodies for joint in body.joints if joint.name == name)


def values_of(joint: ModelJoint) -> dict[str, float]:
    """Limits, gains and stance of a joint, by the names that a robot file has for them."""
    out = {**USUAL, "lower": -ENDLESS, "upper": ENDLESS, "stand": 0.0, **joint.values}
    out["stand"] = float(np.clip(out["stand"], out["lower"], out["upper"]))
    return {key: out[key] for key in JOINTS}


def stance_of(tree: ModelTree) -> dict[str, float]:
    """Every joint in stance; those that follow others do."""
    joints = {joint.name: joint for body in tree.bodies for joint in body.joints}
    out = {name: values_of(joint)["stand"] for name, joint in joints.items()}
    for name, joint in joints.items():
        if joint.leader in joints:
            out[name] = joint.ratio * out[joint.leader] + joint.shift
    return out
