"""One step of `gait-legs`, compiled, without torch and without allocating anything.

`gait.runtime.leg_pack` lays out the numbers; `leg_network_numpy` is the same in numpy.
"""

from __future__ import annotations

import numpy as np

from gait._compile import kernel
from gait._lanes import fill4, fill16, fma, load4, load16, store, total
from gait.arrays import Array, BoolArray, IntArray
from gait.nets.leg_features import PER_LEG, SHARED, VELOCITY
from gait.runtime import leg_pack as at
from gait.runtime.leg_pack import HEAD_LANES, LEG_LANES
from gait.runtime.network_activations import exp4, sigmoid16
from gait.runtime.network_layers import dense, dense_four
from gait.runtime.network_pack import WIDE, Floats

_F1, _I1, _B1 = "float32[::1]", "int64[::1]", "boolean[::1]"
_ZERO = np.float32(0.0)
_UNSEEN = np.float32(-1e30)
"""Score of a hidden leg: its share is exactly zero. Also less than anything that a layer says."""
_BEGUN, _TIME = 0, 1
"""In the memory: whether there was a sample, and how many since the rings were last full."""


@kernel(f"int64({_I1}, {_F1}, float64[::1], {_B1})")
def _remember(sizes: IntArray, memory: Floats, features: Array, before: BoolArray) -> int:
    """Put the sample into its ring; returns its place. What was not seen before it is taken to have been like it."""
    legs, own, frames, stride = sizes[at.LEGS], sizes[at.OWN], sizes[at.FRAMES], sizes[at.STRIDE]
    begun, places = memory[_BEGUN] > _ZERO, 2 * frames * stride
    time = int(memory[_TIME]) + 1 if begun else 0
    time = time if time < frames * stride else 0
    memory[_BEGUN], memory[_TIME] = 1.0, time
    place = 2 * frames * (time % stride) + time // stride
    for leg in range(-1, legs):
        count = SHARED if leg < 0 else own
        ring = sizes[at.RING] + (0 if leg < 0 else places * (SHARED + leg * own))
        fresh = not begun or (leg >= 0 and not before[leg])
        for i in range(count):
            value = features[i] if leg < 0 else features[SHARED + PER_LEG * leg + sizes[at.COLUMNS + i]]
            memory[ring + place * count + i] = value
            memory[ring + (place + frames) * count + i] = value
            if fresh:
                for k in range(places):
                    memory[ring + k * count + i] = value
    return int(place)


@kernel(f"void({_I1}, {_F1}, int64, {_B1})")
def _look(sizes: IntArray, memory: Floats, leg: int, seen: BoolArray) -> None:
    """Add to what a leg knows what it finds at the others."""
    legs, heads, head, hidden = sizes[at.LEGS], sizes[at.HEADS], sizes[at.HEAD], sizes[at.HIDDEN]
    lanes, rows = (legs + LEG_LANES - 1) // LEG_LANES * LEG_LANES, sizes[at.LOOK_ROWS]
    for h in range(heads):
        query, key = sizes[at.LOOKS] + leg * rows + h * head, sizes[at.LOOKS] + (heads + h) * head
        value = key + heads * head
        shares = sizes[at.SHARES] + (leg * heads + h) * lanes
        highest = _UNSEEN
        for other in range(lanes):
            score = _UNSEEN
            if other < legs and seen[other]:
                summed = fill16(_ZERO)
                for k in range(0, head, HEAD_LANES):
                    summed = fma(load16(memory, query + k), load16(memory, key + other * rows + k), summed)
                score = total(summed)
                highest = max(highest, score)
            memory[shares + other] = score
        whole = _ZERO
        for k in range(shares, shares + lanes, LEG_LANES):
            part = exp4(load4(memory, k) - fill4(highest))
            store(memory, k, part)
            whole += total(part)
        for other in range(lanes):
            memory[shares + other] /= whole
        out = sizes[at.JOINED] + leg * (hidden + heads * head) + hidden + h * head
        for k in range(0, head, HEAD_LANES):
            found = fill16(_ZERO)
            for other in range(legs):
                if seen[other]:
                    found = fma(
                        fill16(memory[shares + other]), load16(memory, value + other * rows + k), found
                    )  # fmt: skip
            store(memory, out + k, found)


@kernel(f"void({_I1}, {_F1}, {_F1}, int64)")
def _first_layer(sizes: IntArray, weights: Floats, memory: Floats, oldest: int) -> None:
    """From the frames, the oldest of which is in that place of the rings: what legs share once, then each its own."""
    own, hidden, frames = sizes[at.OWN], sizes[at.HIDDEN], sizes[at.FRAMES]
    places, wide = 2 * frames * sizes[at.STRIDE], max(hidden, sizes[at.MLP])
    base, window = sizes[at.BASE], sizes[at.RING] + oldest * SHARED
    dense(weights, sizes[at.SHARED_LAYER], memory, window, frames * SHARED, memory, base, hidden)
    window = sizes[at.RING] + places * SHARED + oldest * own
    for leg in range(0, sizes[at.LEGS], LEG_LANES):
        x, to = window + leg * places * own, sizes[at.LAYER] + leg * wide
        for row in range(0, hidden, WIDE):
            dense_four(
                memory, base + row, weights, sizes[at.OWN_LAYER] + row * frames * own, memory, x, places * own,
                frames * own, memory, to + row, wide, _ZERO,
            )  # fmt: skip


@kernel(f"void({_I1}, {_F1}, int64, {_F1}, int64, int64, int64, int64, int64, int64, float32)")
def _layer(
    sizes: IntArray, weights: Floats, w: int, memory: Floats, x: int, x_step: int, columns: int, to: int, to_step: int,
    rows: int, least: np.float32,
) -> None:  # fmt: skip
    """The same layer for every leg: inputs from x on, outputs from `to` on, no less than `least`."""
    for row in range(0, rows, WIDE):
        for leg in range(0, sizes[at.LEGS], LEG_LANES):
            dense_four(
                weights, w, weights, w + WIDE, memory, x + leg * x_step, x_step, columns, memory,
                to + leg * to_step + row, to_step, least,
            )  # fmt: skip
        w += WIDE * (1 + columns)


@kernel(f"void({_I1}, {_F1}, {_F1}, int64, {_F1})")
def _read_out(sizes: IntArray, weights: Floats, memory: Floats, leg: int, out: Floats) -> None:
    """The last layer of a leg: its shift is added to `out`, its log-std is still without bounds."""
    mlp, w, rows = sizes[at.MLP], sizes[at.OUTPUT_LAYER], sizes[at.ROWS]
    layer = sizes[at.LAYER] + leg * max(sizes[at.HIDDEN], mlp)
    bias = w + rows * mlp
    for row in range(rows):
        summed = fill16(_ZERO)
        for k in range(0, mlp, 16):
            summed = fma(load16(weights, w + k), load16(memory, layer + k), summed)
        w += mlp
        value = total(summed) + weights[bias + row]
        if row < 3:
            memory[sizes[at.RAW] + 3 * leg + row] = value
        else:
            out[6 * leg + row - 3] += value


@kernel(f"void({_I1}, {_F1}, {_F1}, float64[::1], {_B1}, {_B1}, {_F1})")
def leg_step(
    sizes: IntArray, weights: Floats, memory: Floats, features: Array, seen: BoolArray, before: BoolArray, out: Floats
) -> None:
    """One more sample.

    Args:
        sizes: of `pack_legs`.
        weights: of `pack_legs`.
        memory: of `new_leg_memory`.
        features: of `gait.nets.leg_features` (6 + 12 L,).
        seen: legs that can be used (L,); the others look at nothing, are looked at by none and say nothing.
        before: legs whose last samples are true (L,); the past of the others is taken to have been like this sample.
        out: becomes body velocity (3), m/s, and the log of its standard deviation (3) of each leg (6 L,).
    """
    legs, hidden, mlp = sizes[at.LEGS], sizes[at.HIDDEN], sizes[at.MLP]
    attention = sizes[at.HEADS] * sizes[at.HEAD]
    layer, wide, joined = sizes[at.LAYER], max(hidden, mlp), hidden + attention
    rows = sizes[at.LOOK_ROWS]
    _first_layer(sizes, weights, memory, _remember(sizes, memory, features, before) + 1)
    x = sizes[at.JOINED]
    _layer(sizes, weights, sizes[at.HIDDEN_LAYER], memory, layer, wide, hidden, x, joined, hidden, _ZERO)
    if attention > 0:
        _layer(sizes, weights, sizes[at.LOOK_LAYER], memory, x, joined, hidden, sizes[at.LOOKS], rows, rows, _UNSEEN)
        for leg in range(legs):
            if seen[leg]:
                _look(sizes, memory, leg, seen)
    _layer(sizes, weights, sizes[at.MIX_LAYER], memory, x, joined, joined, layer, wide, mlp, _ZERO)
    for leg in range(legs):
        for axis in range(3):
            out[6 * leg + axis] = features[SHARED + PER_LEG * leg + VELOCITY + axis]
        if seen[leg]:
            _read_out(sizes, weights, memory, leg, out)
    raw, low, span = sizes[at.RAW], weights[sizes[at.BOUNDS]], weights[sizes[at.BOUNDS] + 1]
    for k in range(raw, raw + 3 * legs, 16):
        store(memory, k, sigmoid16(load16(memory, k)))
    for leg in range(legs):
        for axis in range(3):
            out[6 * leg + 3 + axis] = low + span * (memory[raw + 3 * leg + axis] if seen[leg] else np.float32(1.0))


@kernel(f"void({_I1}, {_F1})")
def leg_reset(sizes: IntArray, memory: Floats) -> None:
    """Forget everything, as before the first sample of a log."""
    memory[_BEGUN] = _ZERO


@kernel(f"void({_I1}, {_F1}, {_B1}, float64[::1])")
def leg_attention_into(sizes: IntArray, memory: Floats, seen: BoolArray, out: Array) -> None:
    """How much each leg looked at each other in the last step, averaged over heads: the first L L numbers of out."""
    legs, heads = sizes[at.LEGS], sizes[at.HEADS]
    lanes = (legs + LEG_LANES - 1) // LEG_LANES * LEG_LANES
    if sizes[at.HEAD] == 0:
        return
    for leg in range(legs):
        for other in range(legs):
            summed = 0.0
            for h in range(heads):
                summed += memory[sizes[at.SHARES] + (leg * heads + h) * lanes + other]
            out[leg * legs + other] = summed / heads if seen[leg] else 0.0
