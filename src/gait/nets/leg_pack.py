"""`gait-legs` as the C core steps through it: `struct gait_leg_network` of `core/network.h`."""

from __future__ import annotations

import ctypes
from typing import ClassVar

import numpy as np

from gait.arrays import AnyArray, Array
from gait.nets.architecture import LegsArchitecture
from gait.nets.leg_parts import leg_parts
from gait.nets.model import Model
from gait.nets.packing import PackedStruct, floats_pointer, ints_pointer, padded, rounded_up, tiles

ROWS, SHARED_ROWS, HEAD_LANES = 32, 64, 16
"""Rows of a tile, rows of one of what all legs share, and what the width of a head is padded to."""
_SIZES = ("frames", "stride", "own", "hidden", "heads", "head_width", "mlp", "rows")
_FLOATS = (
    "shared_bias", "shared", "own_layer", "hidden_bias", "hidden_layer", "look_bias", "look", "mix_bias", "mix",
    "output_bias", "output",
)  # fmt: skip


class LegNetwork(PackedStruct):
    """The struct, field by field; `core/network.h` says what each one is."""

    _fields_: ClassVar = [
        *((name, ctypes.c_int32) for name in _SIZES),
        ("log_std_min", ctypes.c_float),
        ("log_std_span", ctypes.c_float),
        ("columns", ints_pointer),
        *((name, floats_pointer) for name in _FLOATS),
    ]


def pack_legs(model: Model) -> LegNetwork:
    """Lay a model out for `gait_leg_network_step`; the number of legs is no part of it."""
    a, p = model.architecture, leg_parts(model)
    assert isinstance(a, LegsArchitecture)
    hidden, mlp = rounded_up(a.hidden, ROWS), rounded_up(a.mlp, ROWS)
    heads = a.heads if a.head_width else 0
    width, outputs = rounded_up(a.head_width, HEAD_LANES), len(p.output)
    sizes = {
        "frames": a.frames, "stride": a.stride, "own": len(a.leg_columns), "hidden": hidden, "heads": heads,
        "head_width": width, "mlp": mlp, "rows": outputs,
        "log_std_min": a.log_std_min, "log_std_span": a.log_std_max - a.log_std_min,
    }  # fmt: skip

    def layer(name: str, matrix: Array, rows: int, columns: int) -> dict[str, AnyArray]:
        """Offset and tiles of a layer; what comes in is padded as well."""
        whole = padded(matrix, rows, 1 + columns)
        return {f"{name}_bias": whole[:, 0], name: tiles(whole[:, 1:], ROWS)}

    arrays: dict[str, AnyArray] = {
        "columns": np.array(a.leg_columns),
        "shared_bias": padded(p.shared[:, 0], rounded_up(hidden, SHARED_ROWS)),
        "shared": tiles(_oldest_first(p.shared[:, 1:], a.frames), SHARED_ROWS),
        "own_layer": tiles(_oldest_first(p.own, a.frames), ROWS),
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
        arrays |= layer("look", look, rounded_up(len(look), ROWS), hidden)
    return LegNetwork(sizes, arrays)


def _oldest_first(matrix: Array, frames: int) -> Array:
    """The columns of a layer on frames, turned round."""
    return matrix.reshape(len(matrix), frames, -1)[:, ::-1].reshape(len(matrix), -1)
