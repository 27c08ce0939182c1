"""Compliance of gears and links under load.

An encoder on the motor's side of a gear reads q + c tau for a joint angle q, so the velocity that a leg measures has an
error of c d(J tau)/dt. While a foot is loaded or unloaded it is large and brief. While the foot stands, the weight
turns the leg the further outward the further the foot is from below its joints: with tau = -J' f and a constant
force f the error is c d(J J')/dt f, in proportion to the velocity, and the body moves farther than the motors say.

All joints share one compliance c. Where torques are known it is fitted to the difference between the velocities of
loaded legs and the predicted one, which is accurate for the short time of a change of load; balls sink into the ground,
so vertically soles alone are fitted. Without torques it is that of a usual robot.
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
USUAL, USUAL_STD, ASSUMED, MOST = 0.02, 0.015, 0.015, 0.1
"""Deflection of a joint under a torque of a quarter of weight times leg length, rad: of robots in general, with its
standard deviation; of one whose torques are not known; and the largest."""


def bending_torque(robot: Robot) -> float:
    """A quarter of weight times leg length, N m."""
    return 0.25 * robot.mass * 9.81 * robot.leg_length


def flexure_velocity(chain: Chain, q: Array, tau_rate: Array, lever_b: Array) -> Array:
    """What a unit of compliance adds to the velocity (3,) that a leg measures, given the rate of its torques (J,)."""
    jacobian, angular = chain.jacobians(q)
    return np.asarray(np.cross(angular @ tau_rate, lever_b) - jacobian @ tau_rate)


def weight_flexure(chain: Chain, q: Array, dq: Array, force: float) -> tuple[Array, Array]:
    """Of a leg that carries a vertical force with tau = -J' f: d(tau)/dt (J,), and (dJ/dt) tau (3,).

    Both together are by what a unit of compliance moves the foot. dJ_j/dq_i is W_i x J_j, i before j.
    """
    jacobian, angular = chain.jacobians(q)
    place = np.arange(len(dq))
    first, second = np.minimum.outer(place, place), np.maximum.outer(place, place)
    moves = np.einsum("jik,i->kj", np.cross(angular.T[first], jacobian.T[second]), dq)  # dJ/dt (3, J)
    return -force * moves[2], -force * moves @ jacobian[2]


class Flexure:
    """The compliance of the joints, from sample to sample."""

    def __init__(self, robot: Robot) -> None:
        self.fitted = np.array([[True, True, leg.foot.is_flat] for leg in robot.legs])  # (L, 3)
        self.unit = bending_torque(robot)
        self.compliance = (USUAL - USUAL_STD) / self.unit
        """rad/(N m)"""
        self._told = self._known = 0.0
        self._off, self._bent = np.zeros((2, robot.num_legs, 3))

    def learn(self, off: Array, velocity: Array, load: Array, seen: BoolArray, dt: float) -> None:
        """Fit the compliance to one more sample of a body that is upright.

        Args:
            off: velocities that legs measure less the predicted one (L, 3).
            velocity: what a unit of compliance adds to them (L, 3).
            load: normal forces as shares of the weight (L,).
            seen: legs in use (L,).
            dt: seconds since the sample before.
        """
        share = dt / (LOW_PASS + dt)
        self._off[seen] += share * (off - self._off)[seen]
        self._bent[seen] += share * (velocity - self._bent)[seen]
        weight = dt / LASTS / (LEAST_STD**2 + np.sum(self._off**2, axis=1)) * (seen & (load > STANDS_ON))
        across = np.sum(self._bent**2, axis=1, where=self.fitted)
        keep = 1.0 - dt / MEMORY
        # The velocities are corrected by c already: the residual measures its error.
        along = np.sum(self._off * self._bent, axis=1, where=self.fitted) + self.compliance * across
        self._told = keep * self._told + float(weight @ along)
        self._known = keep * self._known + float(weight @ across)
        # One standard deviation below the estimate, and at least 0.
        prior = (self.unit / USUAL_STD) ** 2
        known = self._known + prior
        likely = (self._told + prior * USUAL / self.unit) / known
        self.compliance = float(np.clip(likely - 1.0 / np.sqrt(known), 0.0, MOST / self.unit))
