"""Networks as the C core steps through them: `gait_network` and `gait_leg_network` of `core/network.h`."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

import numpy as np

from gait.arrays import AnyArray, Array
from gait.binding import aligned_bytes, named
from gait.nets.architecture import Architecture, AttentionArchitecture, LegsArchitecture
from gait.nets.model import Model
from gait.nets.parts import Parts, leg_parts, parts_of

QUERY_LANES, ENCODE_ROWS, UNITS, LAYER_ROWS = 4, 32, 32, 64
"""Queries side by side, rows of the encoder, units of a GRU and rows of a hidden layer, in the core's tiles."""
LEG_ROWS, SHARED_ROWS, HEAD_LANES = 32, 64, 16
"""Of `gait-legs`: rows of a tile, rows of one of what all legs share, and what the width of a head is padded to."""
floats_pointer = ctypes.POINTER(ctypes.c_float)
ints_pointer = ctypes.POINTER(ctypes.c_int32)


class PackedStruct(ctypes.Structure):
    """A C struct of sizes and arrays, which stay alive with it."""

    def __init__(self, a: Architecture, sizes: dict[str, int], arrays: dict[str, AnyArray]) -> None:
        super().__init__(log_std_min=a.log_std_min, log_std_span=a.log_std_max - a.log_std_min, **sizes)
        self.arrays: dict[str, AnyArray] = {}
        """The array behind each pointer, flat."""
        pointers: dict[str, Any] = dict(self._fields_)  # type: ignore[arg-type]
        for name, array in arrays.items():
            kind = np.float32 if pointers[name] is floats_pointer else np.int32
            self.arrays[name] = aligned(np.ascontiguousarray(array, dtype=kind).ravel())
            setattr(self, name, self.arrays[name].ctypes.data_as(pointers[name]))


def _fields(sizes: str, ints: str, floats: str) -> list[tuple[str, Any]]:
    """Fields of a struct, by their names: sizes, bounds of the log-std, arrays of whole numbers and of floats."""
    bounds = named(ctypes.c_float, "log_std_min log_std_span")
    return [*named(ctypes.c_int32, sizes), *bounds, *named(ints_pointer, ints), *named(floats_pointer, floats)]


class Network(PackedStruct):
    """`gait`, `gait-flat` and `nmn`, field by field; `core/network.h` documents each."""

    _fields_: ClassVar = _fields(
        "features tokens history queries lanes latents heads width raw inputs grus hidden mlp",
        "order token_table",
        "score score_bias slot_bias encode gate_bias gates layer_bias layers output_bias outputs",
    )


class LegNetwork(PackedStruct):
    """`gait-legs`, field by field."""

    _fields_: ClassVar = _fields(
        "frames stride own hidden heads head_width mlp rows",
        "columns",
        "shared_bias shared own_layer hidden_bias hidden_layer look_bias look mix_bias mix output_bias output",
    )


def pack(model: Model) -> Network:
    """Lay a model out for `gait_network_step`."""
    a, p = model.architecture, parts_of(model)
    grus, _, inputs = p.gate_weight.shape
    mlp = rounded_up(a.mlp, LAYER_ROWS)
    sizes = {
        "features": a.num_features, "inputs": inputs, "grus": grus, "hidden": a.hidden, "mlp": a.mlp,
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
    return Network(a, sizes, arrays)


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


def pack_legs(model: Model) -> LegNetwork:
    """Lay a model out for `gait_leg_network_step`; the number of legs is no part of it."""
    a, p = model.architecture, leg_parts(model)
    assert isinstance(a, LegsArchitecture)
    hidden, mlp = rounded_up(a.hidden, LEG_ROWS), rounded_up(a.mlp, LEG_ROWS)
    heads = a.heads if a.head_width else 0
    width, outputs = rounded_up(a.head_width, HEAD_LANES), len(p.output)
    sizes = {
        "frames": a.frames, "stride": a.stride, "own": len(a.leg_columns), "hidden": hidden, "heads": heads,
        "head_width": width, "mlp": mlp, "rows": outputs,
    }  # fmt: skip

    def layer(name: str, matrix: Array, rows: int, columns: int) -> dict[str, AnyArray]:
        """Offset and tiles of a layer; what comes in is padded as well."""
        whole = padded(matrix, rows, 1 + columns)
        return {f"{name}_bias": whole[:, 0], name: tiles(whole[:, 1:], LEG_ROWS)}

    arrays: dict[str, AnyArray] = {
        "columns": np.array(a.leg_columns),
        "shared_bias": padded(p.shared[:, 0], rounded_up(hidden, SHARED_ROWS)),
        "shared": tiles(_oldest_first(p.shared[:, 1:], a.frames), SHARED_ROWS),
        "own_layer": tiles(_oldest_first(p.own, a.frames), LEG_ROWS),
        "output_bias": p.output[:, 0],
        "output": padded(p.output[:, 1:], outputs, mlp),
    }
    known = layer("hidden", p.hidden, hidden, hidden)
    arrays |= {"hidden_bias": known["hidden_bias"], "hidden_layer": known["hidden"]}
    found = padded(p.mix[:, 1 + a.hidden :].reshape(a.mlp, heads, a.head_width), a.mlp, heads, width)
    mix = np.concatenate([padded(p.mix[:, : 1 + a.hidden], a.mlp, 1 + hidden), found.reshape(a.mlp, -1)], axis=1)
    arrays |= layer("mix", mix, mlp, mix.shape[1] - 1)
    if heads:
        look = padded(p.look, 3, heads, width, 1 + a.hidden).reshape(-1, 1 + a.hidden)
        arrays |= layer("look", look, rounded_up(len(look), LEG_ROWS), hidden)
    return LegNetwork(a, sizes, arrays)


def _oldest_first(matrix: Array, frames: int) -> Array:
    """The columns of a layer on frames, turned round."""
    return matrix.reshape(len(matrix), frames, -1)[:, ::-1].reshape(len(matrix), -1)


def rounded_up(count: int, multiple: int) -> int:
    """The least multiple that is not below the count."""
    return -(-count // multiple) * multiple


def padded(array: Array, *shape: int) -> Array:
    """The array with zeros at the end of each axis, up to a shape."""
    return np.pad(array, [(0, size - old) for size, old in zip(shape, array.shape, strict=True)])


def tiles(matrix: Array, rows: int) -> Array:
    """A matrix (..., R, C) as tiles of so many rows, the columns of each one after the other (..., tiles, C, rows)."""
    *outer, count, columns = matrix.shape
    cut = padded(matrix, *outer, rounded_up(count, rows), columns).reshape(*outer, -1, rows, columns)
    return cut.swapaxes(-1, -2)


def aligned(values: AnyArray) -> AnyArray:
    """A copy that begins with a cache line."""
    copy: AnyArray = aligned_bytes(values.nbytes).view(values.dtype)
    copy[:] = values
    return copy
