"""Gears and links that give way under load, on robots with soles.

An encoder on the motor's side of a gear reads more than the joint has turned, in proportion to the torque: q + c tau.
While a foot is loaded or unloaded, its leg then measures a velocity that is not there: c times what J d(tau)/dt would
give. One compliance c stands for all joints. It is fitted to the difference between the velocities of loaded legs and
the predicted one, which the IMU holds for the short time of a change of load.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.robot import Chain, Robot

LOW_PASS = 0.03
"""Of what is fitted, s: torques and joint velocities are not filtered alike."""
STANDS_ON = 0.2
"""Share of the weight on a leg that is taken to stand."""
LEAST_STD = 0.05
"""Of a difference, m/s; larger ones count by their inverse squares."""
LASTS = 0.1
"""Seconds that an error of a leg lasts."""
MEMORY = 30.0
"""Seconds."""
MOST = 0.1
"""Radians by which a joint gives way under a quarter of weight times leg length, at most."""


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
        # With c taken off already, what is left is as much as is missing of it.
        along = np.sum(self._off * self._bent, axis=1) + self.compliance * across
        self._told = keep * self._told + float(weight @ along)
        self._known = keep * self._known + float(weight @ across)
        # A standard deviation less than was found: as large as it surely is, and none where there is none.
        sure = (self._told - np.sqrt(self._known)) / self._known if self._known > 0.0 else 0.0
        self.compliance = float(np.clip(sure, 0.0, self.most))
