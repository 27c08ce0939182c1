"""The arrays of a step of `gait`, `gait-flat` and `nmn`, in double precision and with the normaliser folded in.

The fold goes as far as it pays. Scores come from raw numbers and the attention pools raw numbers, as in
`gait.nets.fold`; but value, output and embedding matrices stay apart from the gates:

    encoded = encode [pooled raw numbers, shares of tokens, shares of slots]     for each latent        (M D)
    gates   = gate_weight [encoded, gyro, accel] + recurrent_weight h + bias

One matrix from pooled numbers to gates would hold more numbers, and reading them is what a step spends its time on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.nets import fold as folding
from gait.nets.architecture import Architecture, AttentionArchitecture
from gait.nets.model import Model


class Parts(NamedTuple):
    """A network's arrays in double precision, with the normaliser folded in; G GRUs, I inputs of each."""

    gate_weight: Array
    """(G, 3 H, I)."""
    gate_bias: Array
    """(G, 3 H), with the recurrent offsets of the reset and update gates."""
    recurrent_weight: Array
    """(G, 3 H, H)."""
    recurrent_bias: Array
    """(G, H): offset of the new state's recurrent part."""
    hidden_weight: Array
    """(2, mlp, H), for velocity and log-std."""
    hidden_bias: Array
    output_weight: Array
    """(2, 3, mlp)."""
    output_bias: Array
    score_weight: Array | None = None
    """(C Q, F), features by token; None without tokens, as the rest."""
    score_bias: Array | None = None
    """(C Q,)."""
    slot_bias: Array | None = None
    """(Nt, Q)."""
    encode: Array | None = None
    """(H, D, P)."""
    order: tuple[int, ...] = ()
    """Features by token (F,)."""
    tokens: tuple[tuple[int, int, int], ...] = ()
    """Start, count and place in the pooled numbers of each token."""


def parts_of(model: Model) -> Parts:
    """The arrays that a step needs, from a model of any kind."""
    w = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    a = model.architecture
    if not isinstance(a, AttentionArchitecture):
        return _plain_parts(w, a)
    f = folding.fold(model)
    order = tuple(column for token in a.tokens for column in token.columns)
    counts = [len(token.columns) for token in a.tokens]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    tokens = tuple(
        (start, count, a.places(token)[0]) for start, count, token in zip(starts, counts, a.tokens, strict=True)
    )
    queries = a.latents * a.heads
    score_weight = np.zeros((len(tokens), queries, a.num_features))
    for i, (start, count, _) in enumerate(tokens):
        score_weight[i, :, start : start + count] = f.score_weight[:, order[start : start + count]]
    encoder, pooled = a.latents * a.width, f.gate_weight.shape[2] - 6
    encoded = np.stack([w[f"{name}.gru.weight_ih_l0"][:, :encoder] for name in folding.HEADS])
    return Parts(
        gate_weight=np.concatenate([encoded, f.gate_weight[:, :, pooled:]], axis=2),
        gate_bias=f.gate_bias,
        recurrent_weight=f.recurrent_weight,
        recurrent_bias=f.recurrent_bias,
        hidden_weight=f.hidden_weight,
        hidden_bias=f.hidden_bias,
        output_weight=f.output_weight,
        output_bias=f.output_bias,
        score_weight=score_weight.reshape(-1, a.num_features),
        score_bias=f.score_bias.T.ravel(),
        slot_bias=f.slot_bias.T.copy(),
        encode=_encoder(w, a),
        order=order,
        tokens=tokens,
    )


def _encoder(w: dict[str, Array], a: AttentionArchitecture) -> Array:
    """From pooled numbers and shares to what each head adds to a latent's output, without its offset (H, D, P)."""
    size = sum(a.embeddings.values())
    embeds = np.zeros((size + len(a.tokens) + a.history, a.width))
    for i, token in enumerate(a.tokens):
        columns = list(token.columns)
        layer = w[f"embed.{token.embedding}.weight"] / w["std"][columns]
        embeds[list(a.places(token))] = layer.T
        embeds[size + i] = w[f"embed.{token.embedding}.bias"] + w["token_position"][i] - layer @ w["mean"][columns]
    embeds[size + len(a.tokens) :] = w["slot_position"]
    value = w["value.weight"].reshape(a.heads, a.head_width, a.width)
    out = w["out.weight"].reshape(a.width, a.heads, a.head_width)
    encode: Array = np.einsum("pw,hdw,ohd->hop", embeds, value, out)
    return encode


def _plain_parts(w: dict[str, Array], a: Architecture) -> Parts:
    weight = w["gru.weight_ih_l0"] / w["std"]
    bias = w["gru.bias_ih_l0"] - weight @ w["mean"]
    bias[: 2 * a.hidden] += w["gru.bias_hh_l0"][: 2 * a.hidden]
    return Parts(
        gate_weight=weight[None],
        gate_bias=bias[None],
        recurrent_weight=w["gru.weight_hh_l0"][None],
        recurrent_bias=w["gru.bias_hh_l0"][None, 2 * a.hidden :],
        hidden_weight=np.stack([w[f"{name}.hidden.weight"] for name in folding.HEADS]),
        hidden_bias=np.stack([w[f"{name}.hidden.bias"] for name in folding.HEADS]),
        output_weight=np.stack([w[f"{name}.output.weight"] for name in folding.HEADS]),
        output_bias=np.stack([w[f"{name}.output.bias"] for name in folding.HEADS]),
    )
