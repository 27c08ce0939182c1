"""Latency of the joints against the IMU, from a log alone: the one at which the smoother moves the filter least.

Legs that are read later than assumed contradict the IMU whenever the body accelerates: the filter gives way to each in
turn, and the smoother corrects it. With the right latency there is least to correct. The cost is the mean length of
filter minus smoother, of the velocity; the estimate is the minimum of a parabola through the best latency that was
tried and its two neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.log.trajectory import Trajectory

TRIED = np.array([0.0, 0.002, 0.004, 0.008, 0.012])
"""Latencies that are tried, s."""
MOST = 0.02
"""The longest latency in the search, s."""
FLOOR = 0.002
"""Standard deviation, s, of the best latency about that of least cost: on simulated walks, whose best one is known."""
SKIPPED, BLOCK, LEAST_BLOCKS = 1.0, 2.0, 4
"""Seconds at the start while the filter settles; of a block; and the blocks that an estimate takes."""
SIGNIFICANT = 1.0
"""Standard deviations by which it must differ from what was assumed: the value has its prior in it already."""


@dataclass(frozen=True)
class JointLatency:
    """Estimate of the latency from a log."""

    value: float
    """Seconds by which joints are read later than the IMU, smoothing included."""
    std: float
    """Of the value, the spread over the log and the prior taken together."""
    assumed: float
    """That of the first pass."""

    @property
    def significant(self) -> bool:
        """Whether it is another than was assumed."""
        return abs(self.value - self.assumed) > SIGNIFICANT * self.std


class Passes(NamedTuple):
    """A log by filter and smoother."""

    filtered: Trajectory
    smoothed: Trajectory


def joint_latency(smoothed_with: Callable[[float], Passes], assumed: float, prior_std: float) -> JointLatency | None:
    """Estimate the latency; None if the log is too short or the body hardly accelerates.

    Args:
        smoothed_with: filter and smoother with a latency.
        assumed: the latency without this log, s.
        prior_std: its standard deviation, s.
    """
    costs = []
    for delay in TRIED:
        done = smoothed_with(float(delay))
        costs.append(_costs(done))
        if len(costs[0]) < LEAST_BLOCKS:
            return None
    blocks = np.array(costs).T  # (B, 5)
    total, count = blocks.sum(0), len(blocks)
    best = int(np.clip(np.argmin(total), 1, len(TRIED) - 2))
    near = slice(best - 1, best + 2)
    value = _minimum(total, near)
    if value is None:
        return None
    left_out = np.array([found for row in blocks if (found := _minimum(total - row, near)) is not None])
    if len(left_out) < count:
        return None
    variance = (count - 1) / count * float(np.square(left_out - left_out.mean()).sum()) + FLOOR**2
    weight = prior_std**2 / (prior_std**2 + variance)
    return JointLatency(assumed + weight * (value - assumed), float(np.sqrt(weight * variance)), assumed)


def _costs(done: Passes) -> Array:
    """Mean of the lengths in each block (B,)."""
    t, moved = done.filtered.t, np.linalg.norm(done.filtered.vel_b - done.smoothed.vel_b, axis=1)
    block = ((t - t[0] - SKIPPED) // BLOCK).astype(int)
    last = int((t[-1] - t[0] - SKIPPED) // BLOCK)
    return np.array([moved[block == i].mean() for i in range(last) if (block == i).any()])


def _minimum(costs: Array, near: slice) -> float | None:
    """Of the parabola through three of the costs of `TRIED`; None if it has none, or is flat but for rounding."""
    bend, slope, _ = np.polyfit(TRIED[near], costs[near], 2)
    flat = 1e-9 * float(np.abs(costs[near]).max()) / float(np.ptp(TRIED[near])) ** 2
    return float(np.clip(-0.5 * slope / bend, 0.0, MOST)) if bend > flat else None
