"""The fold in numpy: what a running estimator computes, one step at a time, from a model file and without torch.

    scores  = score_weight x + score_bias           once when a sample x arrives            (M H, C)
    weights = softmax(scores of Nt samples + slot)   over slots and tokens                   (M H, Nt, C)
    pooled  = raw numbers by embedding, and the shares of tokens and slots                   (M H, P)
    gates   = gate_weight [pooled, gyro, accel] + gate_bias      W_gates W_out W_value W_embed is one matrix

then a GRU and an MLP for the velocity and for the log-std. Raw numbers are those of the Log: the normaliser is folded
in as well. `FoldedStep` is a plain reference for compiled code; `gait.nets.gait.GaitNet.plain` is what it must equal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait.arrays import Array, IntArray
from gait.errors import GaitError
from gait.nets.architecture import AttentionArchitecture
from gait.nets.model import Model
from gait.nets.shapes import OUTPUTS

HEADS = ("velocity", "log_std")


class Folded(NamedTuple):
    """Constants of a folded `gait` or `gait-flat`; Q = M H queries, C tokens, E raw numbers, P = E + C + Nt."""

    score_weight: Array
    """(Q, F): a token's part of it, times the token's features, is its score."""
    score_bias: Array
    """(Q, C)."""
    slot_bias: Array
    """(Q, Nt), oldest slot first."""
    token_of: IntArray
    """Which token each feature belongs to (F,)."""
    place_of: IntArray
    """Which of the E pooled raw numbers each feature adds to (F,)."""
    gate_weight: Array
    """(2, 3 H, Q P + 6): gates of the velocity's and the log-std's GRU."""
    gate_bias: Array
    """(2, 3 H), with the recurrent offsets of the reset and update gates."""
    recurrent_weight: Array
    """(2, 3 H, H)."""
    recurrent_bias: Array
    """(2, H): offset of the new state's recurrent part."""
    hidden_weight: Array
    """(2, mlp, H)."""
    hidden_bias: Array
    """(2, mlp)."""
    output_weight: Array
    """(2, 3, mlp)."""
    output_bias: Array
    """(2, 3)."""
    log_std_bounds: tuple[float, float]
    """The log-std is low + (high - low) sigmoid(output)."""


def fold(model: Model) -> Folded:
    """Fold a `gait` or `gait-flat` model, in double precision."""
    a = model.architecture
    if not isinstance(a, AttentionArchitecture):
        raise GaitError(f"a model of kind {a.kind} has nothing to fold: use gait or gait-flat")
    w = {name: np.asarray(array, dtype=np.float64) for name, array in model.weights.items()}
    queries, tokens, size = a.latents * a.heads, len(a.tokens), sum(a.embeddings.values())
    split = (a.heads, a.head_width)
    asked = (w["latents"] @ w["query.weight"].T).reshape(a.latents, *split)
    key = w["key.weight"].reshape(*split, a.width)
    question = np.einsum("mhd,hdw->mhw", asked, key).reshape(queries, a.width) / math.sqrt(a.head_width)

    score_weight = np.zeros((queries, a.num_features))
    token_of, place_of = np.zeros((2, a.num_features), dtype=np.int64)
    # Rows of `embeds`: what one unit of each pooled number adds to the value's input.
    embeds = np.zeros((size + tokens + a.history, a.width))
    scaled = np.zeros(size)
    for i, token in enumerate(a.tokens):
        columns = np.array(token.columns)
        layer, inverse = w[f"embed.{token.embedding}.weight"], 1.0 / w["std"][columns]
        places = np.array(a.places(token))
        if scaled[places].any() and not np.allclose(scaled[places], inverse, rtol=1e-6):
            raise GaitError("legs that share an embedding must share their normaliser: train the model again")
        scaled[places] = inverse
        embeds[places] = (layer * inverse).T
        score_weight[:, columns] = question @ (layer * inverse)
        token_of[columns], place_of[columns] = i, places
        embeds[size + i] = (
            w[f"embed.{token.embedding}.bias"] + w["token_position"][i] - layer @ (w["mean"][columns] * inverse)
        )
    score_bias = question @ embeds[size : size + tokens].T
    embeds[size + tokens :] = w["slot_position"]

    value = w["value.weight"].reshape(*split, a.width)
    out = w["out.weight"].reshape(a.width, *split)
    encode = np.einsum("pw,hdw,ohd->hop", embeds, value, out)  # (H, D, P)
    gate_weight, gate_bias = zip(*(_gates(w, name, a, encode, embeds) for name in HEADS), strict=True)
    stack = {part: np.stack([w[f"{name}.{part}"] for name in HEADS]) for part in _PARTS}
    return Folded(
        score_weight=score_weight,
        score_bias=score_bias,
        slot_bias=question @ w["slot_position"].T,
        token_of=token_of,
        place_of=place_of,
        gate_weight=np.stack(gate_weight),
        gate_bias=np.stack(gate_bias),
        recurrent_weight=stack["gru.weight_hh_l0"],
        recurrent_bias=stack["gru.bias_hh_l0"][:, 2 * a.hidden :].copy(),
        hidden_weight=stack["mlp.hidden.weight"],
        hidden_bias=stack["mlp.hidden.bias"],
        output_weight=stack["mlp.output.weight"],
        output_bias=stack["mlp.output.bias"],
        log_std_bounds=(a.log_std_min, a.log_std_max),
    )


_PARTS = (
    "gru.weight_hh_l0", "gru.bias_hh_l0",
    "mlp.hidden.weight", "mlp.hidden.bias", "mlp.output.weight", "mlp.output.bias",
)  # fmt: skip


def _gates(
    w: dict[str, Array], name: str, a: AttentionArchitecture, encode: Array, embeds: Array
) -> tuple[Array, Array]:
    """The matrix from pooled numbers, gyro and accelerometer to one GRU's gates, and its offset."""
    weight = w[f"{name}.gru.weight_ih_l0"]
    encoder = a.latents * a.width
    by_latent = weight[:, :encoder].reshape(-1, a.latents, a.width)
    pooled = np.einsum("gmo,hop->gmhp", by_latent, encode).reshape(len(weight), -1)
    bias = w[f"{name}.gru.bias_ih_l0"] + np.einsum("gmo,o->g", by_latent, w["out.bias"])
    bias[: 2 * a.hidden] += w[f"{name}.gru.bias_hh_l0"][: 2 * a.hidden]
    raw, size = [], sum(a.embeddings.values())
    for i in range(2):
        mine = weight[:, encoder + i * a.width : encoder + (i + 1) * a.width]
        raw.append(mine @ embeds[3 * i : 3 * i + 3].T)
        bias += mine @ (embeds[size + i] + w["slot_position"][-1])
    return np.concatenate([pooled, *raw], axis=1), bias


class FoldedStep:
    """The folded network one step at a time, in numpy: readable rather than fast."""

    def __init__(self, model: Model) -> None:
        self.folded = fold(model)
        assert isinstance(model.architecture, AttentionArchitecture)
        self._a = model.architecture
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at the start of a log."""
        self._samples: list[Array] = []
        self._scores: list[Array] = []
        self.hidden = np.zeros((2, self._a.hidden))

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Velocity (3,) and log-std (3,) after the features x (F,) of one more sample."""
        f, a = self.folded, self._a
        history, tokens, size = a.history, len(a.tokens), sum(a.embeddings.values())
        score = f.score_bias.copy()
        np.add.at(score.T, f.token_of, (f.score_weight * x).T)
        self._samples, self._scores = [*self._samples, x][-history:], [*self._scores, score][-history:]
        first = history - len(self._scores)
        scores = np.stack(self._scores, 1) + f.slot_bias[:, first:, None]  # (Q, slots, C)
        weights = np.exp(scores - scores.max((1, 2), keepdims=True))
        weights /= weights.sum((1, 2), keepdims=True)
        pooled = np.zeros((len(weights), size + tokens + history))
        raw = np.einsum("qsf,sf->qf", weights[:, :, f.token_of], np.stack(self._samples))
        np.add.at(pooled.T, f.place_of, raw.T)
        pooled[:, size : size + tokens] = weights.sum(1)
        pooled[:, size + tokens + first :] = weights.sum(2)
        gates = f.gate_weight @ np.concatenate([pooled.ravel(), x[:6]]) + f.gate_bias
        outputs = np.empty((2, OUTPUTS))
        for i, h in enumerate(self.hidden):
            recurrent = f.recurrent_weight[i] @ h
            reset, update = np.split(_sigmoid(gates[i, : 2 * a.hidden] + recurrent[: 2 * a.hidden]), 2)
            new = np.tanh(gates[i, 2 * a.hidden :] + reset * (recurrent[2 * a.hidden :] + f.recurrent_bias[i]))
            self.hidden[i] = new + update * (h - new)
            layer = np.maximum(f.hidden_weight[i] @ self.hidden[i] + f.hidden_bias[i], 0.0)
            outputs[i] = f.output_weight[i] @ layer + f.output_bias[i]
        low, high = f.log_std_bounds
        return outputs[0], low + (high - low) * _sigmoid(outputs[1])


def _sigmoid(x: Array) -> Array:
    y: Array = 0.5 + 0.5 * np.tanh(0.5 * x)
    return y
