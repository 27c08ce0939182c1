"""From what each leg says to one measurement of the body's velocity, weighed by what each leg is worth.

Four things stand between a network and a filter. One leg that is sure of itself and wrong must not drag the state
along: the further it lies from where the filter believes to be, the less it counts. Joints are read later than the IMU:
on a body that accelerates by `a` a velocity that is late by `d` is short of `d a`. How late is never quite known, so a
leg counts for less while its joints change their speed. And a leg measures with the gyro, bias included: a bias b shows
in the leg whose foot is at p as -b x p. What the filter knows of the bias is taken off; what is left of it about the
vertical, where gravity tells nothing, is found in the differences between legs.
"""

from __future__ import annotations

import math

import numpy as np

from gait._compile import kernel, types
from gait.arrays import Array, BoolArray
from gait.nets.leg_features import BODY, HASTE, PER_LEG, POSITION, SHARED, Body
from gait.runtime.buffers import Singles

INSTANT = 1.0 / 7.0
"""Standard deviation of a leg in a single sample, relative to what a filter may believe of errors that last."""
TURNING = (1.5, 3.0, 0.3)
"""Factors on the standard deviation of what the differences between legs say about turning: always, for each rad/s that
the body turns and for each m/s^2 that it accelerates; squares add up. The filter allows for errors that last as long as
a step; those of joint zeros and link lengths stay, and legs that are late differ the more the less even the motion."""
MEASURED = 8
"""Numbers of a measurement."""
SETTINGS = 5
LEAST = 1e6
"""Variance of a turning rate, (rad/s)^2, beyond which nothing is known of it."""
WORK = 24
"""Numbers of room that `fuse_legs` needs, and 9 for each leg."""
_V, _M, _S, _B = types.float64[::1], types.float64[:, ::1], types.float32[::1], types.boolean[::1]


@kernel(types.float64(_M, _M, _M, _M, _M, _V, _V, _V, types.float64, _V))
def _believed(
    turn: Array, x: Array, bias: Array, cov: Array, mount: Array, arm: Array, gyro: Array, accel: Array,
    gravity: float, work: Array,
) -> float:  # fmt: skip
    """Where the filter believes to be, in the axes of the base: velocity, its variances and its rate of change (9,).

    Returns:
        How little such a motion lets legs tell of turning: the factor of `TURNING` on their variance.
    """
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
    pushed = change[0] * change[0] + change[1] * change[1] + change[2] * change[2]
    turned = w0 * w0 + w1 * w1 + w2 * w2
    factor: float = TURNING[0] * TURNING[0] + TURNING[1] * TURNING[1] * turned + TURNING[2] * TURNING[2] * pushed
    return factor


@kernel(types.void(BODY, _M, _V, _S, _B, _V, _V))
def _heard(
    body: Body, bias: Array, features: Array, said: Singles, seen: BoolArray, settings: Array, work: Array
) -> None:
    """Of each leg: the foot's place (3), the velocity with the known bias taken off (3) and its variances (3)."""
    b0 = b1 = b2 = 0.0
    for j in range(3):
        b0 += body.mount[0, j] * bias[0, j]
        b1 += body.mount[1, j] * bias[0, j]
        b2 += body.mount[2, j] * bias[0, j]
    for leg in range(seen.size):
        if not seen[leg]:
            continue
        foot, velocity, variance = work[9 * leg : 9 * leg + 3], work[9 * leg + 3 : 9 * leg + 6], 9 * leg + 6
        own = SHARED + PER_LEG * leg
        for j in range(3):
            hip = body.offsets[leg, 0, j] + body.offsets[leg, 1, j]
            foot[j] = hip + body.leg_length * features[own + POSITION + j]
            haste = features[own + HASTE + j]
            # The log-std is single precision: without a cast so would the square be.
            claimed = settings[0] * math.exp(2.0 * np.float64(said[6 * leg + 3 + j]))
            work[variance + j] = claimed + settings[4] * haste * haste
        velocity[0] = np.float64(said[6 * leg]) + (b1 * foot[2] - b2 * foot[1])
        velocity[1] = np.float64(said[6 * leg + 1]) + (b2 * foot[0] - b0 * foot[2])
        velocity[2] = np.float64(said[6 * leg + 2]) + (b0 * foot[1] - b1 * foot[0])


@kernel(types.void(_B, _V, _V, _V, types.float64, _V))
def _turning(seen: BoolArray, legs: Array, worth: Array, mean: Array, factor: float, measured: Array) -> None:
    """What the gyro's bias about z is beyond the known one, by the differences between legs, and its variance.

    A bias that is off by e moves what a leg at p measures by e (p_y, -p_x). How legs move on average goes to the
    velocity; what they differ by is left for this.
    """
    x = y = 0.0
    for leg in range(seen.size):
        if seen[leg]:
            x += legs[9 * leg + 1] / legs[9 * leg + 6]
            y -= legs[9 * leg] / legs[9 * leg + 7]
    x, y = x / worth[0], y / worth[1]
    known = told = 0.0
    for leg in range(seen.size):
        if seen[leg]:
            along, across = legs[9 * leg + 1] - x, -legs[9 * leg] - y
            weight_x, weight_y = 1.0 / legs[9 * leg + 6], 1.0 / legs[9 * leg + 7]
            known += weight_x * along * along + weight_y * across * across
            told += weight_x * along * (legs[9 * leg + 3] - mean[0])
            told += weight_y * across * (legs[9 * leg + 4] - mean[1])
    # A single leg tells nothing, and rounding must not make something of it.
    if known * LEAST < 1.0:
        measured[6], measured[7] = 0.0, 0.0
        return
    measured[6], measured[7] = told / known, factor / known


@kernel(types.void(_M, _M, _M, _M, BODY, _V, _V, _V, types.float64, _V, _S, _B, _V, _V, _V, _S))
def fuse_legs(
    turn: Array, x: Array, bias: Array, cov: Array, body: Body, arm: Array, gyro: Array, accel: Array,
    gravity: float, features: Array, said: Singles, seen: BoolArray, settings: Array, work: Array, measured: Array,
    predicted: Singles,
) -> None:  # fmt: skip
    """One measurement from all legs, at least one of which is seen.

    Args:
        turn, x, bias, cov: state of the filter, of the IMU.
        body: the robot.
        arm: place of the IMU in the base.
        gyro, accel: of this moment, as measured.
        gravity: z component in the world.
        features: of `gait.nets.leg_features`.
        said: velocity (3) and log-std (3) of each leg (6 L,).
        seen: legs to use (L,).
        settings: square of the factor on what legs claim as their std, of the standard deviations within which a leg is
            taken at its word, and of `INSTANT`; the joints' delay, s; square of its uncertainty over `INSTANT`
            (SETTINGS,).
        work: room (WORK + 9 L,).
        measured: becomes the velocity of base_link (3) in its own axes, its variances (3), by how much the gyro's
            bias about z is larger than the filter believes, and the variance of that, or 0 (MEASURED,).
        predicted: becomes velocity (3) and log-std (3), before the delay.
    """
    factor = _believed(turn, x, bias, cov, body.mount, arm, gyro, accel, gravity, work)
    velocity, variance, change, worth, summed = work[0:3], work[3:6], work[6:9], work[18:21], work[21:24]
    legs = work[WORK:]
    _heard(body, bias, features, said, seen, settings, legs)
    for j in range(3):
        worth[j] = summed[j] = 0.0
    for leg in range(seen.size):
        if not seen[leg]:
            continue
        far = 0.0
        for j in range(3):
            off = legs[9 * leg + 3 + j] + settings[3] * change[j] - velocity[j]
            far += off * off / (variance[j] + settings[2] * legs[9 * leg + 6 + j])
        far /= 3.0
        less = far / settings[1] if far > settings[1] else 1.0
        for j in range(3):
            legs[9 * leg + 6 + j] *= less
            weight = 1.0 / legs[9 * leg + 6 + j]
            worth[j] += weight
            summed[j] += weight * legs[9 * leg + 3 + j]
    for j in range(3):
        summed[j] /= worth[j]
        predicted[j], predicted[3 + j] = summed[j], -0.5 * math.log(worth[j])
        measured[j], measured[3 + j] = summed[j] + settings[3] * change[j], 1.0 / worth[j]
    _turning(seen, legs, worth, summed, factor, measured)
