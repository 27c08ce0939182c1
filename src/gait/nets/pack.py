"""`gait`, `gait-flat` and `nmn` as the C core steps through them: `struct gait_network` of `core/network.h`."""

from __future__ import annotations

import ctypes
from typing import ClassVar

import numpy as np

from gait.arrays import AnyArray
from gait.nets.architecture import AttentionArchitecture
from gait.nets.model import Model
from gait.nets.packing import PackedStruct, floats_pointer, ints_pointer, padded, rounded_up, tiles
from gait.nets.parts import Parts, parts_of

QUERY_LANES, ENCODE_ROWS, UNITS, LAYER_ROWS = 4, 32, 16, 64
"""Queries side by side, rows of the encoder, units of a GRU and rows of a hidden layer, in the core's tiles."""
_SIZES = (
    "features", "tokens", "history", "queries", "lanes", "latents", "heads", "width", "raw", "inputs", "grus", "hidden",
    "mlp",
)  # fmt: skip
_INTS = ("order", "token_table")
_FLOATS = (
    "score", "score_bias", "slot_bias", "encode", "gate_bias", "gates", "layer_bias", "layers", "output_bias",
    "outputs",
)  # fmt: skip


class Network(PackedStruct):
    """The struct, field by field; `core/network.h` says what each one is."""

    _fields_: ClassVar = [
        *((name, ctypes.c_int32) for name in _SIZES),
        ("log_std_min", ctypes.c_float),
        ("log_std_span", ctypes.c_float),
        *((name, ints_pointer) for name in _INTS),
        *((name, floats_pointer) for name in _FLOATS),
    ]


def pack(model: Model) -> Network:
    """Lay a model out for `gait_network_step`."""
    a, p = model.architecture, parts_of(model)
    grus, _, inputs = p.gate_weight.shape
    mlp = rounded_up(a.mlp, LAYER_ROWS)
    sizes = {
        "features": a.num_features, "inputs": inputs, "grus": grus, "hidden": a.hidden, "mlp": a.mlp,
        "log_std_min": a.log_std_min, "log_std_span": a.log_std_max - a.log_std_min,
    }  # fmt: skip
    # Inputs add to the gates new, reset, update, states to reset, update and the recurrent part of new.
    weight = p.gate_weight.reshape(grus, 3, a.hidden, -1)[:, [2, 0, 1]]
    weight = np.concatenate([weight, p.recurrent_weight.reshape(grus, 3, a.hidden, -1)], axis=3)
    bias = np.concatenate([p.gate_bias, p.recurrent_bias], axis=1).reshape(grus, 4, a.hidden, 1)[:, [2, 0, 1, 3]]
    arrays: dict[str, AnyArray] = {
        "gates": tiles(weight, UNITS).transpose(0, 2, 3, 1, 4),
        "gate_bias": tiles(bias, UNITS).transpose(0, 2, 3, 1, 4),
        "layer_bias": padded(p.hidden_bias, 2, mlp),
        "layers": tiles(p.hidden_weight, LAYER_ROWS),
        "output_bias": p.output_bias,
        "outputs": padded(p.output_weight, 2, 3, mlp),
    }
    if isinstance(a, AttentionArchitecture):
        attention_sizes, attention_arrays = _attention(a, p)
        sizes |= attention_sizes
        arrays |= attention_arrays
    return Network(sizes, arrays)


def _attention(a: AttentionArchitecture, p: Parts) -> tuple[dict[str, int], dict[str, AnyArray]]:
    queries, tokens, raw = a.latents * a.heads, len(a.tokens), sum(a.embeddings.values())
    lanes = rounded_up(rounded_up(a.latents, 2) * a.heads, QUERY_LANES)
    sizes = {
        "tokens": tokens, "history": a.history, "queries": queries, "lanes": lanes, "latents": a.latents,
        "heads": a.heads, "width": a.width, "raw": raw,
    }  # fmt: skip
    counts = [len(token.columns) for token in a.tokens]
    starts, places = np.cumsum(counts) - counts, [a.places(token) for token in a.tokens]
    score = padded(p.score.T, p.score.shape[1], lanes)
    slots = np.repeat(score[raw + tokens :, None], tokens, axis=1).reshape(a.history, -1)
    return sizes, {
        "order": np.concatenate([token.columns for token in a.tokens]),
        "token_table": np.stack([starts, counts, [place[0] for place in places]], axis=1),
        "score": score[np.concatenate(places)],
        "score_bias": score[raw : raw + tokens],
        "slot_bias": padded(slots, a.history, rounded_up(tokens * lanes, 16)),
        "encode": tiles(p.encode, ENCODE_ROWS).swapaxes(0, 1),
    }
