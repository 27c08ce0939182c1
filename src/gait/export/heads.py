"""What follows the features in every network, as arrays: gates, GRUs, one hidden layer each, and the two outputs.

`gait` and `gait-flat` bring pooled numbers to the gates, `nmn` the features themselves; from there on all are alike.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from gait._version import __version__
from gait.arrays import Array
from gait.nets.architecture import AttentionArchitecture
from gait.nets.fold import HEADS, Folded, fold
from gait.nets.model import VERSION, Model


class Heads(NamedTuple):
    """G GRUs of width H on I inputs; each of the two outputs has a layer of its own on a GRU: the i-th, or the one."""

    gate_weight: Array
    """(G, 3 H, I), gates in the order reset, update, new."""
    gate_bias: Array
    """(G, 3 H), with the recurrent offsets of the reset and update gates."""
    recurrent_weight: Array
    """(G, 3 H, H)."""
    recurrent_bias: Array
    """(G, H): offset of the new state's recurrent part."""
    hidden_weight: Array
    """(2, mlp, H)."""
    hidden_bias: Array
    """(2, mlp)."""
    output_weight: Array
    """(2, 3, mlp)."""
    output_bias: Array
    """(2, 3)."""

    @property
    def grus(self) -> int:
        """G."""
        return len(self.gate_weight)

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.recurrent_weight.shape[2])

    @property
    def mlp(self) -> int:
        """Width of the layer before an output."""
        return int(self.hidden_weight.shape[1])


def heads_of(model: Model) -> tuple[Heads, Folded | None]:
    """The arrays of a model with its normaliser folded in, and the fold of its attention if it has one."""
    if isinstance(model.architecture, AttentionArchitecture):
        f = fold(model)
        return Heads(*(getattr(f, name) for name in Heads._fields)), f
    w = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    hidden = model.architecture.hidden
    weight = w["gru.weight_ih_l0"] / model.std
    bias = w["gru.bias_ih_l0"] - weight @ model.mean
    bias[: 2 * hidden] += w["gru.bias_hh_l0"][: 2 * hidden]
    return Heads(
        gate_weight=weight[None],
        gate_bias=bias[None],
        recurrent_weight=w["gru.weight_hh_l0"][None],
        recurrent_bias=w["gru.bias_hh_l0"][None, 2 * hidden :],
        hidden_weight=np.stack([w[f"{name}.hidden.weight"] for name in HEADS]),
        hidden_bias=np.stack([w[f"{name}.hidden.bias"] for name in HEADS]),
        output_weight=np.stack([w[f"{name}.output.weight"] for name in HEADS]),
        output_bias=np.stack([w[f"{name}.output.bias"] for name in HEADS]),
    ), None


def metadata_of(model: Model) -> dict[str, str]:
    """What a model file says about its network, as texts: lists and tables are JSON."""
    tables = {
        "leg_names": model.leg_names,
        "joint_names": model.joint_names,
        "architecture": model.architecture.as_dict(),
        "training": model.training,
        "data": model.data,
        "results": model.results,
    }
    return {
        "gait": "model",
        "version": str(VERSION),
        "gait_version": __version__,
        "robot": model.robot,
        "rate": repr(model.rate),
        "commit": model.commit,
        **{name: json.dumps(value, sort_keys=True) for name, value in tables.items()},
    }
