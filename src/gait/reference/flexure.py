"""Compliance of gears and links under load, on robots with soles.

An encoder on the motor's side of a gear reads q + c tau for a joint angle q. While a foot is loaded or unloaded, the
velocity that its leg measures has an error of c J d(tau)/dt. All joints share one compliance c. It is fitted to the
difference between the velocities of loaded legs and the predicted one, which is accurate for the short time of a change
of load.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.robot import Chain, Robot

LOW_PASS = 0.03
"""Of the fitted signals, s: drives filter torques and joint velocities differently."""
STANDS_ON = 0.2
"""Share of the weight on a leg from which it counts as loaded."""
LEAST_STD = 0.05
"""Of a difference, m/s; larger ones are weighted by their inverse squares."""
LASTS = 0.1
"""Correlation time of the errors of a leg, s."""
MEMORY = 30.0
"""Time constant of the fit, s."""
MOST = 0.1
"""Largest deflection of a joint under a torque of a quarter of weight times leg length, rad."""


def flexure_velocity(chain: Chain, q: Array, tau_rate: Array, lever_b: Array) -> Array:
    """What a unit of compliance adds to the velocity (3,) that a leg measures, given the rate of its torques (J,)."""
    jacobian, angular = chain.jacobians(q)
    return np.asarray(np.cross(angular @ tau_rate, lever_b) - jacobian @ tau_rate)


class Flexure:
    """The compliance of the joints, from sample to sample."""

    def __init__(self, robot: Robot) -> None:
        self.flat = np.array([leg.foot.is_flat for leg in robot.legs])  # (L,)
        self.most = MOST / (0.25 * robot.mass * 9.81 * robot.leg_length)
        self.compliance = 0.0
        """rad/(N m)"""
        self._told = self._known = 0.0
        self._off, self._bent = np.zeros((2, robot.num_legs, 3))

    def learn(self, off: Array, velocity: Array, load: Array, seen: BoolArray, dt: float) -> None:
        """Fit the compliance to one more sample.

        Args:
            off: velocities that legs measure less the predicted one (L, 3).
            velocity: what a unit of compliance adds to them (L, 3).
            load: normal forces as shares of the weight (L,).
            seen: legs in use (L,).
            dt: seconds since the sample before.
        """
        seen, share = seen & self.flat, dt / (LOW_PASS + dt)
        self._off[seen] += share * (off - self._off)[seen]
        self._bent[seen] += share * (velocity - self._bent)[seen]
        weight = dt / LASTS / (LEAST_STD**2 + np.sum(self._off**2, axis=1)) * (seen & (load > STANDS_ON))
        across = np.sum(self._bent**2, axis=1)
        keep = 1.0 - dt / MEMORY
        # The velocities are corrected by c already: the residual measures its error.
        along = np.sum(self._off * self._bent, axis=1) + self.compliance * across
        self._told = keep * self._told + float(weight @ along)
        self._known = keep * self._known + float(weight @ across)
        # One standard deviation below the estimate, and at least 0.
        sure = (self._told - np.sqrt(self._known)) / self._known if self._known > 0.0 else 0.0
        self.compliance = float(np.clip(sure, 0.0, self.most))
