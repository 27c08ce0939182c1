"""From what each leg says to one measurement of the body's velocity, weighed by what each leg is worth.

Two things stand between a network and a filter. One leg that is sure of itself and wrong must not drag the state along:
the further it lies from where the filter believes to be, the less it counts. And joints are read later than the IMU: on
a body that accelerates by `a` a velocity that is late by `d` is short of `d a`.
"""

from __future__ import annotations

import math

import numpy as np

from gait._compile import compiled
from gait.arrays import Array, BoolArray
from gait.runtime.buffers import Singles

INSTANT = 1.0 / 7.0
"""Standard deviation of a leg in a single sample, relative to what a filter may believe of errors that last."""
WORK = 24
"""Numbers of room that `fuse_legs` needs."""
_V, _M, _S, _B = "float64[::1]", "float64[:, ::1]", "float32[::1]", "boolean[::1]"


@compiled(f"void({_M}, {_M}, {_M}, {_M}, {_M}, {_V}, {_V}, {_V}, float64, {_V})")
def _believed(
    turn: Array, x: Array, bias: Array, cov: Array, mount: Array, arm: Array, gyro: Array, accel: Array,
    gravity: float, work: Array,
) -> None:  # fmt: skip
    """Where the filter believes to be, in the axes of the base: velocity, its variances and its rate of change (9,)."""
    axes = work[9:18].reshape(3, 3)
    velocity, variance, change = work[0:3], work[3:6], work[6:9]
    w0 = w1 = w2 = 0.0
    for j in range(3):
        rate = gyro[j] - bias[0, j]
        w0 += mount[0, j] * rate
        w1 += mount[1, j] * rate
        w2 += mount[2, j] * rate
    for i in range(3):
        for j in range(3):
            axes[i, j] = turn[i, 0] * mount[j, 0] + turn[i, 1] * mount[j, 1] + turn[i, 2] * mount[j, 2]
    for i in range(3):
        velocity[i] = variance[i] = 0.0
        change[i] = axes[2, i] * gravity
        for j in range(3):
            velocity[i] += axes[j, i] * x[0, j]
            change[i] += mount[i, j] * (accel[j] - bias[1, j])
            for k in range(3):
                variance[i] += axes[j, i] * cov[3 + j, 3 + k] * axes[k, i]
    velocity[0] -= w1 * arm[2] - w2 * arm[1]
    velocity[1] -= w2 * arm[0] - w0 * arm[2]
    velocity[2] -= w0 * arm[1] - w1 * arm[0]
    change[0] -= w1 * velocity[2] - w2 * velocity[1]
    change[1] -= w2 * velocity[0] - w0 * velocity[2]
    change[2] -= w0 * velocity[1] - w1 * velocity[0]


@compiled(f"void({_M}, {_M}, {_M}, {_M}, {_M}, {_V}, {_V}, {_V}, float64, {_S}, {_B}, {_V}, {_V}, {_V}, {_S})")
def fuse_legs(
    turn: Array, x: Array, bias: Array, cov: Array, mount: Array, arm: Array, gyro: Array, accel: Array,
    gravity: float, said: Singles, seen: BoolArray, settings: Array, work: Array, measured: Array,
    predicted: Singles,
) -> None:  # fmt: skip
    """One measurement from all legs, at least one of which is seen.

    Args:
        turn, x, bias, cov: state of the filter, of the IMU.
        mount, arm: axes and place of the IMU in the base.
        gyro, accel: of this moment, as measured.
        gravity: z component in the world.
        said: velocity (3) and log-std (3) of each leg (6 L,).
        seen: legs to use (L,).
        settings: square of the factor on what legs claim as their std, of the standard deviations within which a leg is
            taken at its word, and of `INSTANT`; the joints' delay, s (4,).
        work: room (WORK,).
        measured: becomes the velocity of base_link (3) in its own axes and its variances (3).
        predicted: becomes the same before the delay, as velocity (3) and log-std (3).
    """
    _believed(turn, x, bias, cov, mount, arm, gyro, accel, gravity, work)
    velocity, variance, change, worth, summed = work[0:3], work[3:6], work[6:9], work[18:21], work[21:24]
    for j in range(3):
        worth[j] = summed[j] = 0.0
    for leg in range(seen.size):
        if not seen[leg]:
            continue
        far = 0.0
        for j in range(3):
            # The log-std is single precision: without a cast so would the square be.
            claimed = settings[0] * math.exp(2.0 * np.float64(said[6 * leg + 3 + j]))
            off = np.float64(said[6 * leg + j]) + settings[3] * change[j] - velocity[j]
            far += off * off / (variance[j] + settings[2] * claimed)
        far /= 3.0
        less = far / settings[1] if far > settings[1] else 1.0
        for j in range(3):
            weight = 1.0 / (settings[0] * math.exp(2.0 * np.float64(said[6 * leg + 3 + j])) * less)
            worth[j] += weight
            summed[j] += weight * np.float64(said[6 * leg + j])
    for j in range(3):
        mean, noise = summed[j] / worth[j], 1.0 / worth[j]
        predicted[j], predicted[3 + j] = mean, 0.5 * math.log(noise)
        measured[j], measured[3 + j] = mean + settings[3] * change[j], noise
