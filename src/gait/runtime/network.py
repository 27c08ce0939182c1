"""One step of a network, compiled: some 5 us for `gait`, without torch and without allocating anything.

`gait.runtime.network_pack` lays out the numbers and says what is computed; `network_numpy` is the same in numpy.
"""

from __future__ import annotations

import numpy as np

from gait._compile import kernel
from gait._lanes import each4, fill4, fill16, fma, larger, load4, load16, over, store, total
from gait.arrays import Array, BoolArray, IntArray
from gait.runtime import network_pack as at
from gait.runtime.network_activations import exp4, sigmoid16, tanh16
from gait.runtime.network_layers import add_narrow, add_wide, clear_lanes, copy_lanes
from gait.runtime.network_pack import NARROW, QUERY_LANES, WIDE, Floats, Packed, new_memory, pack

__all__ = ["Packed", "attention", "attention_into", "network_reset", "network_step", "new_memory", "pack"]

_F1 = "float32[::1]"
_I1 = "int64[::1]"
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_UNSEEN = np.float32(-1e30)
"""Score of a hidden token: its share is exactly zero."""
_SEEN = np.float32(-1e29)
"""A window whose highest score is below has nothing to see."""
_COUNT, _NEXT = 0, 1
"""In the memory: samples in the window, and where in the ring the next one goes."""


@kernel(f"void({_I1}, {_F1}, {_F1}, {_F1}, boolean[::1], int64)")
def _take_sample(
    sizes: IntArray, weights: Floats, memory: Floats, features: Floats, seen: BoolArray, place: int
) -> None:
    """Keep the sample and its scores in the ring; of what is hidden nothing is kept, be it nan."""
    tokens, lanes = sizes[at.TOKENS], sizes[at.LANES]
    count = sizes[at.FEATURES]
    sample = sizes[at.SAMPLES] + place * ((count + 15) // 16 * 16)
    scores = sizes[at.SCORES] + place * ((tokens * lanes + NARROW - 1) // NARROW * NARROW)
    for token in range(tokens):
        entry = at.ORDER + count + 3 * token
        start = sizes[entry]
        for i in range(start, start + sizes[entry + 1]):
            memory[sample + i] = features[sizes[at.ORDER + i]] if seen[token] else _ZERO
    w = sizes[at.SCORE]
    for first in range(0, tokens * lanes, NARROW):
        copy_lanes(weights, w, memory, scores + first, NARROW)
        add_narrow(weights, w + NARROW, memory, sample, 1, count, memory, scores + first)
        w += NARROW * (1 + count)
    for token in range(tokens):
        if not seen[token]:
            for i in range(lanes):
                memory[scores + token * lanes + i] = _UNSEEN


@kernel(f"void({_I1}, {_F1}, {_F1}, int64, int64, int64)")
def _attend(sizes: IntArray, weights: Floats, memory: Floats, samples: int, oldest: int, lane: int) -> None:
    """Shares of attention of four queries, and what they gather."""
    tokens, lanes, history = sizes[at.TOKENS], sizes[at.LANES], sizes[at.HISTORY]
    ring = (tokens * lanes + NARROW - 1) // NARROW * NARROW
    stride = (sizes[at.FEATURES] + 15) // 16 * 16
    first = history - samples  # slots before were never filled; their shares stay zero
    shares = sizes[at.SHARES] + first * tokens * lanes + lane
    highest = fill4(_UNSEEN)
    place, share = oldest, shares
    for slot in range(first, history):
        bias = load4(weights, sizes[at.SLOT] + slot * lanes + lane)
        scores = sizes[at.SCORES] + place * ring + lane
        for _ in range(tokens):
            score = load4(memory, scores) + bias
            store(memory, share, score)
            highest = larger(score, highest)
            scores += lanes
            share += lanes
        place = place + 1 if place + 1 < history else 0
    summed = fill4(_ZERO)
    share = shares
    for _ in range(samples * tokens):
        value = exp4(load4(memory, share) - highest)
        store(memory, share, value)
        summed = summed + value
        share += lanes
    scale = over(fill4(_ONE), summed, fill4(_SEEN), highest)

    sums = sizes[at.SUMS] + lane
    by_token = sums + (sizes[at.POOLED] - history - tokens) * lanes
    by_slot = sums + (sizes[at.POOLED] - samples) * lanes
    place, share = oldest, shares
    for _ in range(samples):
        sample = sizes[at.SAMPLES] + place * stride
        slot_share = fill4(_ZERO)
        for token in range(tokens):
            value = load4(memory, share) * scale
            store(memory, share, value)
            slot_share = slot_share + value
            token_sum = by_token + token * lanes
            store(memory, token_sum, load4(memory, token_sum) + value)
            entry = at.ORDER + sizes[at.FEATURES] + 3 * token
            x, to = sample + sizes[entry], sums + sizes[entry + 2] * lanes
            for _ in range(sizes[entry + 1]):
                store(memory, to, fma(value, each4(memory, x), load4(memory, to)))
                x += 1
                to += lanes
            share += lanes
        store(memory, by_slot, slot_share)
        by_slot += lanes
        place = place + 1 if place + 1 < history else 0


@kernel(f"void({_I1}, {_F1}, {_F1})")
def _encode(sizes: IntArray, weights: Floats, memory: Floats) -> None:
    """The encoder's output, without the offset that is in the gates, at the start of the GRUs' input."""
    width, heads, lanes, columns = sizes[at.WIDTH], sizes[at.HEADS], sizes[at.LANES], sizes[at.POOLED]
    for latent in range(sizes[at.LATENTS]):
        w = sizes[at.ENCODE]
        for row in range(0, width, NARROW):
            # What a narrow latent writes beyond its width, the next one overwrites.
            out = sizes[at.INPUT] + latent * width + row
            clear_lanes(memory, out, NARROW)
            for head in range(heads):
                query = sizes[at.SUMS] + latent * heads + head
                add_narrow(weights, w, memory, query, lanes, columns, memory, out)
                w += NARROW * columns


@kernel(f"void({_I1}, {_F1}, {_F1})")
def _recur(sizes: IntArray, weights: Floats, memory: Floats) -> None:
    """One step of the GRUs."""
    hidden, inputs, x, gate = sizes[at.HIDDEN], sizes[at.INPUTS], sizes[at.INPUT], sizes[at.GATE]
    rows = (hidden + WIDE - 1) // WIDE * WIDE
    w = sizes[at.GATES]
    for gru in range(sizes[at.GRUS]):
        state = sizes[at.STATE] + gru * rows
        after = sizes[at.STATE] + (sizes[at.GRUS] + gru) * rows
        for row in range(0, rows, WIDE):
            copy_lanes(weights, w, memory, gate, 4 * WIDE)
            w += 4 * WIDE
            for k in range(2):
                add_wide(weights, w, memory, x, inputs, memory, gate + k * WIDE)
                add_wide(weights, w + inputs * WIDE, memory, state, hidden, memory, gate + k * WIDE)
                w += (inputs + hidden) * WIDE
            add_wide(weights, w, memory, x, inputs, memory, gate + 2 * WIDE)
            w += inputs * WIDE
            add_wide(weights, w, memory, state, hidden, memory, gate + 3 * WIDE)
            w += hidden * WIDE
            for i in range(gate, gate + WIDE, 16):
                reset, update = sigmoid16(load16(memory, i)), sigmoid16(load16(memory, i + WIDE))
                new = tanh16(fma(reset, load16(memory, i + 3 * WIDE), load16(memory, i + 2 * WIDE)))
                before = load16(memory, state + row + i - gate)
                store(memory, after + row + i - gate, fma(update, before - new, new))
    copy_lanes(memory, sizes[at.STATE] + sizes[at.GRUS] * rows, memory, sizes[at.STATE], sizes[at.GRUS] * rows)


@kernel(f"void({_I1}, {_F1}, {_F1}, {_F1})")
def _read_out(sizes: IntArray, weights: Floats, memory: Floats, out: Floats) -> None:
    """The two hidden layers, and their outputs."""
    hidden, layer = sizes[at.HIDDEN], sizes[at.LAYER]
    rows, width = (hidden + WIDE - 1) // WIDE * WIDE, (sizes[at.MLP] + WIDE - 1) // WIDE * WIDE
    w = sizes[at.MLPS]
    for i in range(2):
        state = sizes[at.STATE] + (i * rows if sizes[at.GRUS] == 2 else 0)
        for row in range(layer, layer + width, WIDE):
            copy_lanes(weights, w, memory, row, WIDE)
            add_wide(weights, w + WIDE, memory, state, hidden, memory, row)
            w += WIDE * (1 + hidden)
            for k in range(row, row + WIDE, 16):
                store(memory, k, larger(load16(memory, k), fill16(_ZERO)))
        bias = w + 3 * width
        for axis in range(3):
            summed = fill16(_ZERO)
            for k in range(0, width, 16):
                summed = fma(load16(weights, w + k), load16(memory, layer + k), summed)
            memory[layer + width + axis] = total(summed) + weights[bias + axis]
            w += width
        w = bias + WIDE
        if i == 1:
            raw = layer + width
            store(memory, raw, sigmoid16(load16(memory, raw)))
        for axis in range(3):
            out[3 * i + axis] = memory[layer + width + axis]
    low, span = weights[sizes[at.BOUNDS]], weights[sizes[at.BOUNDS] + 1]
    for axis in range(3):
        out[3 + axis] = low + span * out[3 + axis]


@kernel(f"void({_I1}, {_F1}, {_F1}, {_F1}, boolean[::1], {_F1})")
def network_step(
    sizes: IntArray, weights: Floats, memory: Floats, features: Floats, seen: BoolArray, out: Floats
) -> None:
    """One more sample.

    Args:
        sizes: of `pack`.
        weights: of `pack`.
        memory: of `new_memory`.
        features: raw numbers (F,) in the order of `gait.nets.features`.
        seen: tokens the attention may look at (C,), for as long as this sample is in the window; gyro and accel
            also enter the GRUs directly, hidden or not.
        out: becomes body velocity (3), m/s, and the log of its standard deviation (3).
    """
    x = sizes[at.INPUT]
    if sizes[at.TOKENS] == 0:
        for i in range(sizes[at.FEATURES]):
            memory[x + i] = features[i]
    else:
        history = sizes[at.HISTORY]
        place = int(memory[_NEXT])
        samples = min(int(memory[_COUNT]) + 1, history)
        _take_sample(sizes, weights, memory, features, seen, place)
        after = place + 1 if place + 1 < history else 0
        memory[_COUNT], memory[_NEXT] = samples, after
        clear_lanes(memory, sizes[at.SUMS], sizes[at.POOLED] * sizes[at.LANES])
        oldest = after if samples == history else 0
        for lane in range(0, sizes[at.LANES], QUERY_LANES):
            _attend(sizes, weights, memory, samples, oldest, lane)
        _encode(sizes, weights, memory)
        for i in range(6):
            memory[x + sizes[at.ENCODED] + i] = features[i]
    _recur(sizes, weights, memory)
    _read_out(sizes, weights, memory, out)


@kernel(f"void({_I1}, {_F1})")
def network_reset(sizes: IntArray, memory: Floats) -> None:
    """Forget everything, as before the first sample of a log."""
    for i in range(sizes[at.MEMORY]):
        memory[i] = 0.0


@kernel(f"void({_I1}, {_F1}, float64[::1])")
def attention_into(sizes: IntArray, memory: Floats, out: Array) -> None:
    """`attention`, written to the first Nt C numbers of out."""
    queries, lanes = sizes[at.QUERIES], sizes[at.LANES]
    for i in range(sizes[at.HISTORY] * sizes[at.TOKENS]):
        summed = 0.0
        for k in range(queries):
            summed += memory[sizes[at.SHARES] + i * lanes + k]
        out[i] = summed / queries


def attention(packed: Packed, memory: Floats) -> Array:
    """Where the last step looked: shares (Nt, C) that sum to 1, oldest slot first, averaged over latents and heads.

    Slots that were not filled yet and tokens that were hidden have none; a network without tokens gives (0, 0).
    """
    out = np.zeros((packed.sizes[at.HISTORY], packed.sizes[at.TOKENS]))
    attention_into(packed.sizes, memory, out.reshape(-1))
    return out
