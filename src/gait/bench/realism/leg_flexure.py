"""How far joints give way under load, from mid stance.

While a leg carries a constant vertical force f, its joints hold the torques tau = -J' f. Encoders on the motors' side
read c tau more than the joints have turned, which moves the foot by c J J' f (see `gait.reference.flexure`). In the
middle of a stance the load is nearly constant, so the ratio of the residual to d(J J')/dt f is c, without torques.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.bench.realism.body_motion import BodyMotion
from gait.bench.realism.leg_errors import FEW, NO_STANCES, Values
from gait.bench.realism.stances import Stances
from gait.lie import rotation_from_quat
from gait.log import Log
from gait.reference.chain import foot_jacobian
from gait.reference.flexure import bending_torque
from gait.robot import Robot

STEADY = (0.25, 0.75)
"""Phase of the stance in which the load is taken for constant."""
UNSURE, LITTLE = 0.012, 0.25
"""Standard error from which on it does not show along an axis, rad, and share of the information along the other one:
the robot hardly moves along it."""


def flexure_figures(log: Log, robot: Robot, stances: Stances, motion: BodyMotion) -> Values:
    """Deflection of the joints under a quarter of weight times leg length, mrad, along the axes in which it shows."""
    if len(stances.spans) < FEW:
        return {"flexure": NO_STANCES}
    flexure, error, known = leg_flexure(log, robot, stances, motion)
    shows = (error < UNSURE) & (known > LITTLE * known.max())
    return {"flexure": 1e3 * np.where(shows, flexure, np.nan)}


def leg_flexure(log: Log, robot: Robot, stances: Stances, motion: BodyMotion) -> tuple[Array, Array, Array]:
    """The same in rad along x and y (2,), its standard errors (2,), and the information on it (2,)."""
    missing, unit, seconds = (np.array(column) for column in zip(*_steady(log, robot, stances, motion), strict=True))
    weight = seconds[:, None] * unit
    known = np.sum(weight * unit, axis=0)
    flexure = np.sum(weight * missing, axis=0) / known
    error = np.sqrt(np.sum((weight * (missing - flexure * unit)) ** 2, axis=0)) / known
    return flexure, error, known


def _steady(log: Log, robot: Robot, stances: Stances, motion: BodyMotion) -> list[tuple[Array, Array, float]]:
    """Of each stance: velocity that the leg misses, the same of a unit of flexure (2,), and its length, s."""
    weight, found = robot.mass * 9.81, []
    for leg, first, end in stances.spans:
        a, b = (first + round(part * (end - first)) for part in STEADY)
        joints, chain = slice(*robot.leg_start[leg : leg + 2]), robot.chains[leg]
        up_b = rotation_from_quat(motion.quat_wb_wxyz[(a + b) // 2])[2]
        force_b = weight / stances.standing[a:b].sum(axis=1).mean() * up_b
        before, after = (J @ J.T @ force_b for J in (foot_jacobian(chain, log.q[row, joints]) for row in (a, b - 1)))
        seconds = (b - 1 - a) / log.rate
        unit = (before - after) / seconds / bending_torque(robot)
        found.append((-stances.residual[a:b, leg].mean(axis=0)[:2], unit[:2], seconds))
    return found
