"""The arrays of a step of each network, in double precision: what core, reference and ONNX start from.

Of `gait`, `gait-flat` and `nmn`:

    row     = a token's raw numbers at its embedding's place, a one for the token, a one for the slot    (P)
    shares  = softmax(score row)                     over slots and tokens                               (Q, Nt C)
    pooled  = shares rows                            of all tokens in the window                         (Q, P)
    encoded = encode pooled                          for each latent                                     (M D)
    gates   = gate_weight [encoded, gyro, accel] + gate_bias + recurrent_weight h

then a GRU and an MLP for the velocity and for the log-std. Queries are constants and embeddings linear, so that key and
query are one vector for each score, and embedding, value and output one matrix; the normaliser is folded in as well,
and the raw numbers are the Log's. A matrix from pooled numbers straight to the gates would be larger, and reading
weights is what a step spends its time on. `gait.nets.gait.GaitNet.plain` is what all this must equal.

Of `gait-legs`: the normaliser is folded into the first layer, which is cut in two, since what all legs share is worked
out once. The scale of the scores is in the queries, and the reach of a correction in the last layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.nets.architecture import OUTPUTS, AttentionArchitecture, LegsArchitecture
from gait.nets.features import REACH, SHARED
from gait.nets.model import Model

_OUTPUTS = ("velocity", "log_std")
Weights = dict[str, Array]


class Parts(NamedTuple):
    """A network's arrays; G GRUs of width H on I inputs, C tokens, Q = M heads queries, P pooled numbers of each."""

    gate_weight: Array
    """(G, 3 H, I), gates in the order reset, update, new."""
    gate_bias: Array
    """(G, 3 H), with the recurrent offsets of the reset and update gates."""
    recurrent_weight: Array
    """(G, 3 H, H)."""
    recurrent_bias: Array
    """(G, H): offset of the new state's recurrent part."""
    hidden_weight: Array
    """(2, mlp, H), for velocity and log-std, each on the GRU of its own, or on the one."""
    hidden_bias: Array
    """(2, mlp)."""
    output_weight: Array
    """(2, 3, mlp)."""
    output_bias: Array
    """(2, 3)."""
    score: Array = np.empty((0, 0))
    """(Q, P), slots oldest first; empty without tokens, as the next."""
    encode: Array = np.empty((0, 0, 0))
    """(heads, D, P)."""


def parts_of(model: Model) -> Parts:
    """The arrays that a step needs, from a model of any kind but `gait-legs`."""
    w = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    a = model.architecture
    if isinstance(a, AttentionArchitecture):
        score, encode, weight, offset = fold(w, a, _embeds(w, a), np)
        p = _recurrent_parts(w, [f"{name}.gru" for name in _OUTPUTS], [f"{name}.mlp" for name in _OUTPUTS])
        return p._replace(gate_weight=weight, gate_bias=p.gate_bias + offset, score=score, encode=encode)
    p = _recurrent_parts(w, ["gru"], list(_OUTPUTS))
    weight = p.gate_weight / w["std"]
    return p._replace(gate_weight=weight, gate_bias=p.gate_bias - weight @ w["mean"])


def _recurrent_parts(w: Weights, grus: list[str], mlps: list[str]) -> Parts:
    """GRUs and output layers by name, as the model file has them."""

    def stack(names: list[str], part: str) -> Array:
        return np.stack([w[f"{name}.{part}"] for name in names])

    gate_bias, again = stack(grus, "bias_ih_l0"), stack(grus, "bias_hh_l0")
    both = again.shape[1] // 3 * 2
    gate_bias[:, :both] += again[:, :both]
    return Parts(
        stack(grus, "weight_ih_l0"), gate_bias, stack(grus, "weight_hh_l0"), again[:, both:],
        stack(mlps, "hidden.weight"), stack(mlps, "hidden.bias"),
        stack(mlps, "output.weight"), stack(mlps, "output.bias"),
    )  # fmt: skip


def fold(w: Mapping[str, Any], a: AttentionArchitecture, embeds: Any, xp: ModuleType) -> tuple[Any, Any, Any, Any]:
    """Fold the encoder, for running (arrays) and for training (tensors).

    Args:
        w: the network's arrays by name.
        a: its architecture.
        embeds: what a unit of each pooled number adds to what keys and values are made of (P, D): raw numbers, tokens,
            slots.
        xp: numpy or torch.

    Returns:
        `score` and `encode` of `Parts`; the gates' matrix (G, 3 H, M D + 6) on the encoder's output without its offset,
        gyro and accelerometer; and what these offsets add to the gates' bias (G, 3 H).
    """
    key = w["key.weight"].reshape(a.heads, a.head_width, a.width)
    asked = (w["latents"] @ w["query.weight"].T).reshape(a.latents, a.heads, a.head_width)
    question = xp.einsum("mhd,hdw->mhw", asked, key).reshape(-1, a.width) / math.sqrt(a.head_width)  # (Q, D)
    value = w["value.weight"].reshape(a.heads, a.head_width, a.width)
    out = w["out.weight"].reshape(a.width, a.heads, a.head_width)
    encode = xp.einsum("pw,hdw,ohd->hop", embeds, value, out)
    weight = xp.stack([w[f"{name}.gru.weight_ih_l0"] for name in _OUTPUTS])
    blocks = weight.reshape(*weight.shape[:2], a.latents + 2, a.width)  # of each latent, then gyro and accelerometer
    size, inertial = sum(a.embeddings.values()), blocks[:, :, a.latents :]
    raw = xp.einsum("grid,ixd->grix", inertial, embeds[:6].reshape(2, 3, a.width))
    constant = embeds[size : size + 2] + w["slot_position"][-1]
    offset = blocks[:, :, : a.latents].sum(2) @ w["out.bias"] + xp.einsum("grid,id->gr", inertial, constant)
    encoder = weight[:, :, : a.latents * a.width]
    gate_weight = xp.concatenate([encoder, raw.reshape(*weight.shape[:2], 6)], 2)
    return (embeds @ question.T).T, encode, gate_weight, offset


def _embeds(w: Weights, a: AttentionArchitecture) -> Array:
    """The `embeds` of `fold`, with the normaliser folded in."""
    size = sum(a.embeddings.values())
    embeds, scaled = np.zeros((size + len(a.tokens), a.width)), np.zeros(size)
    for i, token in enumerate(a.tokens):
        columns, places = list(token.columns), list(a.places(token))
        inverse = 1.0 / w["std"][columns]
        if scaled[places].any() and not np.allclose(scaled[places], inverse, rtol=1e-6):
            raise GaitError("legs that share an embedding must share their normaliser: train the model again")
        scaled[places] = inverse
        layer = w[f"embed.{token.embedding}.weight"] * inverse
        embeds[places] = layer.T
        embeds[size + i] = w[f"embed.{token.embedding}.bias"] + w["token_position"][i] - layer @ w["mean"][columns]
    return np.concatenate([embeds, w["slot_position"]])


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
    """Log-std before its bounds, then the shift of the velocity along z, if the network has one (3 or 4, 1 + mlp)."""


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
