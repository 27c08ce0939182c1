"""A network as one buffer of numbers and one of sizes: what the compiled `gait.runtime.network` steps with.

The fold goes as far as it pays. Scores come from raw numbers and the attention pools raw numbers, as in
`gait.nets.fold`; but value, output and embedding matrices stay apart from the gates:

    encoded = encode [pooled raw numbers, shares of tokens, shares of slots]     for each latent        (M D)
    gates   = gate_weight [encoded, gyro, accel] + recurrent_weight h + bias

One matrix from pooled numbers to gates would hold more numbers, and reading them is what a step spends its time on.

A matrix is cut into blocks of rows; in a block the columns lie one after the other, so that a product runs through
memory from front to end with the block's sums in registers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gait.arrays import Array, IntArray
from gait.nets.architecture import AttentionArchitecture
from gait.nets.model import Model
from gait.nets.parts import Parts, parts_of

Floats = npt.NDArray[np.float32]

QUERY_LANES = 4
"""Queries are padded to a multiple of this."""
NARROW, WIDE = 32, 64
"""Rows of a block: of scores and of the encoder, and of GRUs and hidden layers."""

# Places in `sizes`. First what the network is.
(
    FEATURES, TOKENS, HISTORY, QUERIES, LANES, LATENTS, HEADS, WIDTH, POOLED, ENCODED, INPUTS, GRUS, HIDDEN, MLP,
    # Where things begin in `weights`.
    SCORE, SLOT, ENCODE, GATES, MLPS, BOUNDS,
    # Where things begin in `memory`; two numbers at its start count the samples and tell where the next one goes.
    STATE, SAMPLES, SCORES, SHARES, SUMS, INPUT, GATE, LAYER, MEMORY,
    # For each of the features by token, which it is; then start, count and place in the sums of each token.
    ORDER,
) = range(30)  # fmt: skip


class Packed(NamedTuple):
    """A network ready to run."""

    sizes: IntArray
    weights: Floats


def pack(model: Model) -> Packed:
    """Lay a model out for `gait.runtime.network.network_step`."""
    a, p = model.architecture, parts_of(model)
    grus, inputs, hidden, mlp = len(p.gate_weight), p.gate_weight.shape[2], padded(a.hidden), padded(a.mlp)
    sizes = np.zeros(ORDER, dtype=np.int64)
    sizes[[FEATURES, INPUTS, GRUS, HIDDEN, MLP]] = a.num_features, inputs, grus, a.hidden, a.mlp
    buffer, memory = Buffer(), Buffer()
    sizes[STATE] = memory.take(WIDE) + WIDE
    memory.take(2 * grus * hidden)  # the states, and room for the next ones
    table: list[int] = []
    if isinstance(a, AttentionArchitecture):
        table = _pack_attention(a, p, sizes, buffer, memory)
    sizes[GATES] = buffer.used
    for i in range(grus):
        gates = [p.gate_weight[i, k * a.hidden : (k + 1) * a.hidden] for k in range(3)]
        recurrent = [p.recurrent_weight[i, k * a.hidden : (k + 1) * a.hidden] for k in range(3)]
        offsets = [*np.split(p.gate_bias[i], 3), p.recurrent_bias[i]]
        for first in range(0, hidden, WIDE):
            rows = slice(first, first + WIDE)
            for bias in offsets:
                buffer.columns(bias[rows, None], WIDE)
            for k in range(2):
                buffer.columns(np.concatenate([gates[k][rows], recurrent[k][rows]], axis=1), WIDE)
            buffer.columns(gates[2][rows], WIDE)
            buffer.columns(recurrent[2][rows], WIDE)
    sizes[MLPS] = buffer.used
    for i in range(2):
        for first in range(0, mlp, WIDE):
            rows = slice(first, first + WIDE)
            buffer.columns(np.concatenate([p.hidden_bias[i, rows, None], p.hidden_weight[i, rows]], axis=1), WIDE)
        for row in p.output_weight[i]:
            buffer.columns(row[:, None], mlp)
        buffer.columns(p.output_bias[i, :, None], WIDE)
    sizes[BOUNDS] = buffer.columns(np.array([[a.log_std_min], [a.log_std_max - a.log_std_min]]), WIDE)
    sizes[INPUT] = memory.take(padded(inputs) + WIDE)
    sizes[GATE], sizes[LAYER] = memory.take(4 * WIDE), memory.take(mlp + 2 * WIDE)
    sizes[MEMORY] = memory.used
    return Packed(np.concatenate([sizes, np.array(table, dtype=np.int64)]), aligned(buffer.joined()))


def _pack_attention(a: AttentionArchitecture, p: Parts, sizes: IntArray, buffer: Buffer, memory: Buffer) -> list[int]:
    assert p.score_weight is not None and p.score_bias is not None and p.slot_bias is not None and p.encode is not None
    queries, tokens = a.latents * a.heads, len(a.tokens)
    lanes, pooled = padded(queries, QUERY_LANES), p.encode.shape[2]
    names = [TOKENS, HISTORY, QUERIES, LANES, LATENTS, HEADS, WIDTH, POOLED, ENCODED]
    sizes[names] = (
        tokens, a.history, queries, lanes, a.latents, a.heads, a.width, pooled, a.latents * a.width,
    )  # fmt: skip
    # A token's scores lie side by side, padded to whole lanes.
    scores = np.zeros((tokens, lanes, 1 + a.num_features))
    scores[:, :queries, 0] = p.score_bias.reshape(tokens, queries)
    scores[:, :queries, 1:] = p.score_weight.reshape(tokens, queries, -1)
    rows = scores.reshape(tokens * lanes, -1)
    sizes[SCORE] = buffer.used
    for first in range(0, len(rows), NARROW):
        buffer.columns(rows[first : first + NARROW], NARROW)
    sizes[SLOT] = buffer.columns(np.pad(p.slot_bias, ((0, 0), (0, lanes - queries))).reshape(-1, 1), 0)
    sizes[ENCODE] = buffer.used
    for first in range(0, a.width, NARROW):
        for head in p.encode:
            buffer.columns(head[first : first + NARROW], NARROW)
    sizes[SAMPLES] = memory.take(a.history * padded(a.num_features, 16))
    sizes[SCORES] = memory.take(a.history * padded(tokens * lanes, NARROW))
    sizes[SHARES] = memory.take(a.history * tokens * lanes)
    sizes[SUMS] = memory.take(pooled * lanes)
    return [*p.order, *(number for token in p.tokens for number in token)]


def new_memory(packed: Packed) -> Floats:
    """What a network carries from one sample to the next, and room to work in; as before the first sample."""
    return aligned(np.zeros(packed.sizes[MEMORY], dtype=np.float32))


def padded(count: int, multiple: int = WIDE) -> int:
    """The count, rounded up."""
    return math.ceil(count / multiple) * multiple


def aligned(values: Floats) -> Floats:
    """A copy that begins with a cache line: loads that straddle two lines take twice as long."""
    room = np.zeros(len(values) + 16, dtype=np.float32)
    start = (-room.ctypes.data % 64) // 4
    room[start : start + len(values)] = values
    return room[start : start + len(values)]


class Buffer:
    """Numbers that are laid one after the other, each piece at a whole cache line."""

    def __init__(self) -> None:
        self.used = 0
        self._pieces: list[Floats] = []

    def take(self, count: int) -> int:
        """Leave room for so many; returns where it begins."""
        start, self.used = self.used, self.used + padded(count, 16)
        return start

    def columns(self, matrix: Array, rows: int) -> int:
        """Add a matrix column by column, its rows padded to at least so many; returns where it begins."""
        piece = np.pad(matrix, ((0, max(rows - len(matrix), 0)), (0, 0))).T.ravel().astype(np.float32)
        piece = np.pad(piece, (0, padded(len(piece), 16) - len(piece)))
        self._pieces.append(piece)
        return self.take(len(piece))

    def joined(self) -> Floats:
        """All pieces."""
        return np.concatenate(self._pieces)
