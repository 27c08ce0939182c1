"""What the compiled step is made of, once more in numpy, for machines without numba: same names, same arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gait.arrays import Array, BoolArray, IntArray
from gait.filters.reference import ReferenceFilter
from gait.parameters import Options, ProcessNoise
from gait.runtime.buffers import Singles
from gait.runtime.leg_network_numpy import NumpyLegs
from gait.runtime.network_numpy import NumpyNetwork


class NetworkBuffer(np.ndarray[Any, np.dtype[np.float32]]):
    """A buffer that knows its network, and so does every piece of it."""

    networks: Sequence[NumpyNetwork | NumpyLegs]

    def __array_finalize__(self, source: object) -> None:
        """Called by numpy for every new view."""
        if isinstance(source, NetworkBuffer):
            self.networks = source.networks


def buffer_of(size: int, networks: Sequence[NumpyNetwork | NumpyLegs]) -> NetworkBuffer:
    """Single precision numbers that belong to some networks: the number of each, then zeros.

    A network's memory is the one number that tells which it is.
    """
    numbers = np.zeros(len(networks) + size, dtype=np.float32)
    numbers[: len(networks)] = np.arange(len(networks))
    buffer = numbers.view(NetworkBuffer)
    buffer.networks = networks
    return buffer


def _network(memory: Singles) -> NumpyNetwork:
    return cast("NumpyNetwork", cast("NetworkBuffer", memory).networks[int(memory[0])])


def _legs(memory: Singles) -> NumpyLegs:
    return cast("NumpyLegs", cast("NetworkBuffer", memory).networks[int(memory[0])])


def network_step(
    sizes: IntArray, weights: Singles, memory: Singles, features: Singles, seen: BoolArray, out: Singles
) -> None:
    """One more sample; velocity and log-std into `out`."""
    velocity, log_std = _network(memory).step(np.asarray(features), seen)
    out[:3], out[3:] = velocity, log_std


def network_reset(sizes: IntArray, memory: Singles) -> None:
    """As before the first sample."""
    _network(memory).reset()


def attention_into(sizes: IntArray, memory: Singles, out: Array) -> None:
    """Attention of the last step."""
    out[:] = _network(memory).attention().ravel()


def leg_step(
    sizes: IntArray, weights: Singles, memory: Singles, features: Array, seen: BoolArray, before: BoolArray,
    out: Singles,
) -> None:  # fmt: skip
    """One more sample; velocity and log-std of each leg into `out`."""
    out[:] = _legs(memory).step(features, seen, before).ravel()


def leg_reset(sizes: IntArray, memory: Singles) -> None:
    """As before the first sample."""
    _legs(memory).reset()


def leg_attention_into(sizes: IntArray, memory: Singles, seen: BoolArray, out: Array) -> None:
    """How much each leg looked at each other in the last step."""
    shares = _legs(memory).attention().ravel()
    out[: len(shares)] = shares


def _filter(R: Array, x: Array, b: Array, P: Array, noise: Array | None, options: Options) -> ReferenceFilter:
    reference = ReferenceFilter(ProcessNoise() if noise is None else ProcessNoise(*noise.tolist()), options)
    reference.R, reference.P, reference.v, reference.p = R, P, x[0], x[1]
    reference.gyro_bias, reference.accel_bias = b[0], b[1]
    return reference


def _take(reference: ReferenceFilter, R: Array, x: Array, b: Array, P: Array) -> None:
    # Rounding must not build up over hours: back onto the group by one Newton step.
    R[:] = 1.5 * reference.R - 0.5 * reference.R @ reference.R.T @ reference.R
    P[:], x[0], x[1] = reference.P, reference.v, reference.p
    b[0], b[1] = reference.gyro_bias, reference.accel_bias


def propagate(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    noise: Array, contact_std: Array, foot_vel_b: Array, gyro: Array, accel: Array,
    gravity: float, dt: float, exact_mean: bool, exact_phi: bool,
) -> bool:  # fmt: skip
    """One IMU sample, held over `dt` seconds; no feet."""
    reference = _filter(R, x, b, P, noise, Options(gravity=gravity, exact_mean=exact_mean, exact_phi=exact_phi))
    reference.propagate(gyro, accel, dt)
    _take(reference, R, x, b, P)
    return True


def correct_velocity(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    vel_b: Array, cov_b: Array,
) -> bool:  # fmt: skip
    """A measurement of the body-frame velocity; false if it was refused."""
    if not (np.isfinite(vel_b).all() and np.isfinite(cov_b).all()):
        return False
    reference = _filter(R, x, b, P, None, Options())
    reference.correct_velocity(vel_b, cov_b)
    _take(reference, R, x, b, P)
    return True


def correct_gyro_bias(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    axis: Array, off: float, variance: float,
) -> bool:  # fmt: skip
    """A measurement of the gyro's bias about an axis; false if it was refused."""
    if not (np.isfinite(off) and np.isfinite(variance)):
        return False
    reference = _filter(R, x, b, P, None, Options())
    reference.correct_gyro_bias(axis, off, variance)
    _take(reference, R, x, b, P)
    return True
