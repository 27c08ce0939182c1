"""`gait-legs` as one buffer of numbers and one of sizes: what the compiled `gait.runtime.leg_network` steps with.

The normaliser is folded into the first layer, which is cut in two: what all legs share is worked out once. The scale of
the scores is in the queries, and the reach of a correction in the last layer.

Frames lie `stride` samples apart, so there are as many rings as that, each with every `stride`-th sample. A sample is
written twice, `frames` places apart: the frames of a step then always lie side by side, oldest first, and nothing is
moved.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.nets.architecture import LegsArchitecture
from gait.nets.leg_features import REACH, SHARED
from gait.nets.leg_parts import LegParts, leg_parts
from gait.nets.model import Model
from gait.runtime.network_pack import WIDE, Buffer, Floats, Packed, aligned, padded

__all__ = ["REACH", "LegParts", "leg_parts", "new_leg_memory", "pack_legs"]

LEG_LANES, HEAD_LANES = 4, 16
"""Legs in a row of scores, and numbers of a head, are padded to multiples of these."""

# Places in `sizes`. First what the network is; widths are padded.
(
    LEGS, FRAMES, STRIDE, OWN, HIDDEN, HEADS, HEAD, MLP, ROWS, LOOK_ROWS,
    # Where things begin in `weights`.
    SHARED_LAYER, OWN_LAYER, HIDDEN_LAYER, LOOK_LAYER, MIX_LAYER, OUTPUT_LAYER, BOUNDS,
    # Where things begin in `memory`; two numbers at its start tell whether there was a sample, and its place.
    RING, BASE, LAYER, JOINED, LOOKS, SHARES, RAW, MEMORY,
    # Which of a leg's numbers the network reads.
    COLUMNS,
) = range(26)  # fmt: skip


def pack_legs(model: Model) -> Packed:
    """Lay a model out for `gait.runtime.leg_network.leg_step`."""
    a, p = model.architecture, leg_parts(model)
    assert isinstance(a, LegsArchitecture)
    hidden, mlp, head = padded(a.hidden), padded(a.mlp), padded(a.head_width, HEAD_LANES)
    sizes = np.zeros(COLUMNS, dtype=np.int64)
    sizes[: ROWS + 1] = a.legs, a.frames, a.stride, len(a.leg_columns), hidden, a.heads, head, mlp, len(p.output)
    sizes[LOOK_ROWS] = look_rows = padded(3 * a.heads * head)
    buffer, memory = Buffer(), Buffer()

    def blocks(matrix: Array) -> int:
        start = buffer.used
        for first in range(0, len(matrix), WIDE):
            buffer.columns(matrix[first : first + WIDE], WIDE)
        return start

    def widened(matrix: Array, inputs: int, to: int) -> Array:
        """With columns of zeros, so that the padding of what comes in says nothing."""
        return np.insert(matrix, [1 + inputs] * (to - inputs), 0.0, axis=1)

    look = np.pad(p.look, ((0, 0), (0, 0), (0, head - a.head_width), (0, 0))).reshape(-1, 1 + a.hidden)
    heads = np.pad(p.mix[:, 1 + a.hidden :].reshape(a.mlp, a.heads, -1), ((0, 0), (0, 0), (0, head - a.head_width)))
    mix = np.concatenate([widened(p.mix[:, : 1 + a.hidden], a.hidden, hidden), heads.reshape(a.mlp, -1)], axis=1)
    shared = np.concatenate([p.shared[:, :1], _oldest_first(p.shared[:, 1:], a.frames)], axis=1)
    sizes[[SHARED_LAYER, OWN_LAYER]] = blocks(shared), blocks(_oldest_first(p.own, a.frames))
    sizes[HIDDEN_LAYER] = blocks(widened(p.hidden, a.hidden, hidden))
    sizes[LOOK_LAYER] = blocks(widened(look, a.hidden, hidden)) if head else buffer.used
    sizes[MIX_LAYER] = blocks(mix)
    sizes[OUTPUT_LAYER] = buffer.columns(np.pad(p.output[:, 1:], ((0, 0), (0, mlp - a.mlp))).reshape(-1, 1), 0)
    buffer.columns(p.output[:, :1], 0)
    bounds = np.array([[a.log_std_min], [a.log_std_max - a.log_std_min]])
    sizes[BOUNDS] = buffer.columns(bounds, 0)
    memory.take(2)
    # Legs are worked out four at a time; those that a robot lacks are there and say nothing.
    slots = padded(a.legs, LEG_LANES)
    sizes[RING] = memory.take(2 * a.frames * a.stride * (SHARED + slots * len(a.leg_columns)))
    sizes[BASE], sizes[LAYER] = memory.take(hidden), memory.take(slots * max(hidden, mlp))
    sizes[JOINED] = memory.take(slots * (hidden + a.heads * head))
    sizes[LOOKS] = memory.take(slots * look_rows)
    sizes[SHARES], sizes[RAW] = memory.take(a.legs * a.heads * slots), memory.take(3 * a.legs)
    sizes[MEMORY] = memory.used
    return Packed(np.concatenate([sizes, np.array(a.leg_columns, dtype=np.int64)]), aligned(buffer.joined()))


def _oldest_first(matrix: Array, frames: int) -> Array:
    """The columns of a layer on frames, turned round."""
    return matrix.reshape(len(matrix), frames, -1)[:, ::-1].reshape(len(matrix), -1)


def new_leg_memory(packed: Packed) -> Floats:
    """What the network carries from one sample to the next, and room to work in; as before the first sample."""
    return aligned(np.zeros(packed.sizes[MEMORY], dtype=np.float32))
