"""The linear inverted pendulum: how the centre of mass moves over a planned zero-moment point."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array


def mass_over(zmp: Array, omega: float, dt: float) -> tuple[Array, Array]:
    """Centre of mass (N, 2) and its acceleration (N, 2) over a ZMP (N, 2) that rests at both ends.

    c'' = omega^2 (c - p) has a stable and a divergent component. The divergent one, xi = c + c' / omega, is integrated
    backwards from the end, where it is the ZMP, and the mass then follows it forwards; with a ZMP held over each step
    both are exact.
    """
    decay = float(np.exp(-omega * dt))
    xi = np.empty_like(zmp)
    xi[-1] = zmp[-1]
    for k in range(len(zmp) - 2, -1, -1):
        xi[k] = zmp[k] + decay * (xi[k + 1] - zmp[k])
    com = np.empty_like(zmp)
    com[0] = zmp[0]
    for k in range(len(zmp) - 1):
        com[k + 1] = xi[k] + decay * (com[k] - xi[k])
    return com, omega**2 * (com - zmp)
