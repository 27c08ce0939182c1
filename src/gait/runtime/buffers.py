"""The memory of a velocity-aided estimator: four flat buffers, so that a compiled call has little to unwrap.

Handing over an array costs a fifth of a microsecond, a dozen of them as much as the filter itself. Everything therefore
lies in one buffer for each type of number, and compiled code takes its views from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gait._compile import kernel, types
from gait.arrays import Array, BoolArray, IntArray
from gait.runtime.samples import BOUNDS, CLEAN, Bounds, Clean

R, X, B, P, WORK = 0, 9, 15, 21, 246
"""Filter: orientation, velocity and position, biases, covariance, scratch, as `gait.filters.layout` has them."""
SAFE = WORK + 450
"""Orientation and position (12) to go back to if the filter should ever diverge."""
CLOCK, BROKEN, WHOLE = SAFE + 12, SAFE + 13, SAFE + 14
"""When the network takes its next sample; seconds for which a leg has been out of use; seconds for which none has."""
SCRATCH = WHOLE + 1
"""Gyro, accelerometer, process noise (11), velocity, its covariance (12), nine numbers for the output, and the measured
velocity with its variances in the axes of the base and what legs say of the gyro's bias (8)."""
SETTINGS = SCRATCH + 40
"""Noise densities (5), gravity, gap_accel, gap_rate, exact_mean, exact_phi, network period, tolerance, hold (8), and
the factor on the network's variances."""
MOUNT = SETTINGS + 14
"""Orientation (9) and position (3) of the IMU in the base."""
START = MOUNT + 12
"""Standard deviations of the state after a start from gravity (15)."""
GUARD = START + 15
"""Bounds and clean sample."""
GUARD_SIZE = (17, 26)
"""How many numbers these take, and how many more for each leg."""

SLOTS, LEGS, FEATURES, TOKENS, TARGETS, BY_LEG, ATTENTION, SAMPLES, ROOM = 0, 12, 13, 14, 15, 16, 17, 18, 19
"""Integers: scratch of the filter (12), size of the network, whether it reads targets, has a token for each leg, is to
tell its attention; then where samples begin among the single precision numbers, and where the room of `gait-legs`
begins among those of double precision, 0 for other networks."""
NETWORK = 20
"""Where weights, memory and the end of it lie among the single precision numbers, and from where to where the sizes
that the network's own code knows: of the network (5), then of the one for a robot with a dead leg (5), if any."""
SIZES = 30
"""From here on: those sizes."""

ALIGN, MEASURED, SPARE, CLEAN_FLAGS = 0, 1, 2, 3
"""Flags: start from gravity at the next sample; a measurement has been taken; the second network is in use; then legs
and tokens."""

Singles = npt.NDArray[np.float32]


class Buffers(NamedTuple):
    """All that an estimator remembers."""

    floats: Array
    singles: Singles
    ints: IntArray
    flags: BoolArray


_F = "float64[::1]"
_FLAGS = "boolean[::1]"


@kernel(BOUNDS(types.float64[::1], types.int64, types.int64, types.boolean))
def bounds_in(floats: Array, start: int, legs: int, targets: bool) -> Bounds:
    """The bounds of the sensors that are kept from `start` on, as views."""
    s, joints = start, 3 * legs
    rows = s + 7
    return Bounds(
        floats[s], floats[s + 1], floats[rows : rows + joints], floats[rows + joints : rows + 2 * joints],
        floats[rows + 2 * joints : rows + 3 * joints], floats[s + 2], floats[s + 3], floats[s + 4], floats[s + 5],
        targets,
    )  # fmt: skip


@kernel(CLEAN(types.float64[::1], types.boolean[::1], types.int64, types.int64))
def clean_in(floats: Array, flags: BoolArray, start: int, legs: int) -> Clean:
    """The last good sample, which is kept behind the bounds, as views."""
    j = 3 * legs
    s = start + 7 + 3 * j
    joints = s + 6
    tail = joints + 5 * j
    return Clean(
        floats[s : s + 3], floats[s + 3 : s + 6],
        floats[joints : joints + j], floats[joints + j : joints + 2 * j], floats[joints + 2 * j : joints + 3 * j],
        floats[joints + 3 * j : joints + 5 * j].reshape(2, j),
        floats[tail : tail + legs], floats[tail + legs : tail + 2 * legs],
        floats[tail + 2 * legs : tail + 2 * legs + 4],
        flags[CLEAN_FLAGS : CLEAN_FLAGS + legs], flags[CLEAN_FLAGS + legs : CLEAN_FLAGS + 2 + 2 * legs],
    )  # fmt: skip


def put_bounds(floats: Array, bounds: Bounds, start: int) -> None:
    """Write the bounds to where `bounds_in` finds them."""
    scalars = [bounds.gyro, bounds.accel, bounds.hold, bounds.stale, bounds.clock_reset, bounds.max_gap, 0.0]
    values = np.concatenate([scalars, bounds.lower, bounds.upper, bounds.speed])
    floats[start : start + len(values)] = values


def count_floats(legs: int) -> int:
    """Length of the buffer of double precision."""
    return GUARD + GUARD_SIZE[0] + GUARD_SIZE[1] * legs


def count_flags(legs: int, tokens: int) -> int:
    """Length of the buffer of flags: the three above, legs, what is known, and which tokens are seen."""
    return CLEAN_FLAGS + 2 * legs + 2 + tokens
