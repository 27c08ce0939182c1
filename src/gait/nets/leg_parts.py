"""The arrays of a step of `gait-legs`, in double precision.

The normaliser is folded into the first layer, which is cut in two: what all legs share is worked out once. The scale of
the scores is in the queries, and the reach of a correction in the last layer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.nets.architecture import LegsArchitecture
from gait.nets.leg_features import REACH, SHARED
from gait.nets.model import Model
from gait.nets.shapes import OUTPUTS


class LegParts(NamedTuple):
    """The arrays of a step in double precision, each layer as offset (rows, 1) and matrix side by side."""

    shared: Array
    """From the frames of what all legs share (H, 1 + 6 frames)."""
    own: Array
    """From the frames of a leg's own numbers, without offset (H, own frames)."""
    hidden: Array
    """(H, 1 + H)."""
    look: Array
    """Queries, keys and values (3, heads, head_width, 1 + H)."""
    mix: Array
    """(mlp, 1 + H + attention_width)."""
    output: Array
    """Log-std before its bounds, then the shift of the velocity, if the network has one (3 or 6, 1 + mlp)."""


def leg_parts(model: Model) -> LegParts:
    """What a step needs, from a model of `gait-legs`."""
    a = model.architecture
    assert isinstance(a, LegsArchitecture)
    w = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}

    def layer(name: str) -> Array:
        return np.concatenate([w[f"{name}.bias"][:, None], w[f"{name}.weight"]], axis=1)

    frames = w["frames.weight"].reshape(a.hidden, a.frames, a.token) / w["std"]
    offset = w["frames.bias"] - frames.sum(1) @ w["mean"]
    shared, own = frames[..., :SHARED].reshape(a.hidden, -1), frames[..., SHARED:].reshape(a.hidden, -1)
    look = np.zeros((3, a.heads, a.head_width, 1 + a.hidden))
    if a.attention_width:
        look = np.stack([layer(name) for name in ("query", "key", "value")]).reshape(look.shape)
        look[0] /= np.sqrt(a.head_width)
    output = layer("output")
    output[OUTPUTS:] *= REACH
    return LegParts(np.concatenate([offset[:, None], shared], axis=1), own, layer("hidden"), look, layer("mix"), output)
