"""Model-predictive control of the body: which ground forces, over the next cycle, keep it on its way.

The robot is one rigid body pushed by forces at its feet. In the heading frame (z up, x along the heading) its state is
roll, pitch, yaw; position of the centre of mass; angular and linear velocity. Small roll and pitch make it linear in
the forces, so the best forces over ten steps solve a convex quadratic program: follow the reference, use little force,
stay inside the friction pyramid. A foot in the air has no force and no place in the program. A foot that stands during
part of a step counts with that part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import daqp
import numpy as np

from gait.arrays import AnyArray, Array
from gait.sim.compiled import compiled
from gait.sim.mpc.walk_state import Preview
from gait.sim.proportions import Proportions

GRAVITY = 9.81
HORIZON = 10
"""Steps that are planned ahead."""
LEAST_SHARE = 0.15
"""Part of a step that a foot must stand for its force to be planned."""


@dataclass(frozen=True)
class MpcWeights:
    """What a deviation costs."""

    angle: tuple[float, ...] = (8.0, 8.0, 6.0)
    """Roll, pitch, yaw."""
    position: tuple[float, ...] = (2.0, 2.0, 50.0)
    rate: tuple[float, ...] = (0.02, 0.02, 0.3)
    velocity: tuple[float, ...] = (0.5, 0.5, 0.2)
    force: float = 2e-5
    """Cost of a squared newton."""

    def fitted(self, to: Proportions) -> MpcWeights:
        """The weights that mean the same for a robot of other proportions."""
        return replace(
            self,
            position=tuple(weight / to.length**2 for weight in self.position),
            rate=tuple(weight / (1.0 / to.length) for weight in self.rate),
            velocity=tuple(weight / to.length for weight in self.velocity),
            force=self.force / to.mass**2,
        )


class Cost(NamedTuple):
    """What a plan costs, and the body that it moves, in the heading frame."""

    mass: float
    inertia_inv: Array
    """Inverse inertia (3, 3)."""
    weights: Array
    """Of the squared errors (12,)."""
    force_weight: float
    """Of the squared forces."""


@compiled
def assemble(dt: float, cost: Cost, view: Preview, hessian: Array, gradient: Array, index: AnyArray) -> int:
    """Cost of the forces of all standing feet, by closed-form sums over the horizon.

    Args:
        dt: length of a step in seconds.
        cost: weights and body.
        view: the horizon.
        hessian: output, at least (n, n).
        gradient: output, at least (n,).
        index: output, step and leg of every force triple.

    Returns:
        Number of force triples; the program has three times as many unknowns.
    """
    share, arms, state, reference = view.share, view.arms, view.state, view.reference
    mass, inertia_inv, weights, force_weight = cost.mass, cost.inertia_inv, cost.weights, cost.force_weight
    steps, legs = share.shape
    count = 0
    for j in range(steps):
        for a in range(legs):
            if share[j, a] >= LEAST_SHARE:
                index[count, 0] = j
                index[count, 1] = a
                count += 1
    # Angular velocity that a unit force in one step brings, (count, 3, 3): I^-1 [r]x times the time it acts.
    turn = np.empty((count, 3, 3))
    push = np.empty(count)
    for c in range(count):
        j, a = index[c, 0], index[c, 1]
        time = dt * share[j, a]
        push[c] = time / mass
        x, y, z = arms[j, a, 0], arms[j, a, 1], arms[j, a, 2]
        for i in range(3):
            i0, i1, i2 = inertia_inv[i, 0], inertia_inv[i, 1], inertia_inv[i, 2]
            turn[c, i, 0] = time * (i1 * z - i2 * y)
            turn[c, i, 1] = time * (i2 * x - i0 * z)
            turn[c, i, 2] = time * (i0 * y - i1 * x)
    # Errors of the free fall against the reference, weighted.
    error = np.empty((steps, 12))
    for k in range(steps):
        t = dt * (k + 1)
        for i in range(3):
            error[k, i] = state[i] + t * state[6 + i] - reference[k, i]
            error[k, 3 + i] = state[3 + i] + t * state[9 + i] - reference[k, 3 + i]
            error[k, 6 + i] = state[6 + i] - reference[k, 6 + i]
            error[k, 9 + i] = state[9 + i] - reference[k, 9 + i]
        error[k, 5] -= 0.5 * GRAVITY * t * t
        error[k, 11] -= GRAVITY * t
        for i in range(12):
            error[k, i] *= weights[i]
    sums = np.empty((steps, steps, 6))
    pull = np.zeros((steps, 6))
    for j in range(steps):
        for k in range(j, steps):
            lag = dt * (k - j + 0.5)
            for i in range(6):
                pull[j, i] += lag * error[k, i] + error[k, 6 + i]
        for m in range(j, steps):
            for i in range(6):
                total = 0.0
                for k in range(m, steps):
                    lag = dt * dt * (k - j + 0.5) * (k - m + 0.5)
                    total += weights[i] * lag + weights[6 + i]
                sums[j, m, i] = total
    for c in range(count):
        j = index[c, 0]
        for i in range(3):
            g = push[c] * pull[j, 3 + i]
            for w in range(3):
                g += turn[c, w, i] * pull[j, w]
            gradient[3 * c + i] = g
        for d in range(c, count):
            m = index[d, 0]
            for i in range(3):
                for k in range(3):
                    h = 0.0
                    for w in range(3):
                        h += turn[c, w, i] * sums[j, m, w] * turn[d, w, k]
                    if i == k:
                        h += push[c] * push[d] * sums[j, m, 3 + i]
                        if c == d:
                            h += force_weight
                    hessian[3 * c + i, 3 * d + k] = h
                    hessian[3 * d + k, 3 * c + i] = h
    return count


@compiled
def first_forces(
    solution: Array, index: AnyArray, count: int, yaw: float, mass: float, forces: Array, acceleration: Array
) -> None:
    """Forces of the first step (L, 3) and the acceleration they give the body, both in the world frame."""
    c, s = math.cos(yaw), math.sin(yaw)
    forces[:] = 0.0
    acceleration[0], acceleration[1], acceleration[2] = 0.0, 0.0, -GRAVITY
    for k in range(count):
        if index[k, 0] > 0:
            break
        leg = index[k, 1]
        x, y = solution[3 * k], solution[3 * k + 1]
        forces[leg, 0], forces[leg, 1], forces[leg, 2] = c * x - s * y, s * x + c * y, solution[3 * k + 2]
        for i in range(3):
            acceleration[i] += forces[leg, i] / mass


@compiled
def set_friction(matrix: Array, mu: float) -> None:
    """Write `mu` into the rows of the friction pyramids: f - mu fz <= 0 and f + mu fz >= 0 in turn."""
    for row in range(matrix.shape[0]):
        matrix[row, 3 * (row // 4) + 2] = -mu if row % 2 == 0 else mu


class ForcePlanner:
    """Solves for the ground forces of the coming cycle."""

    def __init__(self, mass: float, inertia_b: Array, weights: MpcWeights, max_force: float) -> None:
        w = weights
        squares = np.array([*w.angle, *w.position, *w.rate, *w.velocity])
        self._cost = Cost(mass, np.ascontiguousarray(np.linalg.inv(inertia_b)), squares, w.force)
        self._max_force = max_force
        most = HORIZON * 4
        self._hessian, self._gradient = np.empty((3 * most) ** 2), np.empty(3 * most)
        self._index = np.empty((most, 2), dtype=np.int64)
        self._limits: dict[int, tuple[Array, Array, Array, AnyArray]] = {}
        self.failures = 0

    def plan(
        self, dt: float, mu: float, yaw: float, count: int, view: Preview, forces: Array, acceleration: Array
    ) -> bool:
        """Plan in the heading frame; write the forces of the first step and their effect in the world frame.

        Args:
            dt: length of a step.
            mu: friction to count on.
            yaw: heading.
            count: how many forces there are to plan.
            view: the body and the horizon.
            forces: output (L, 3); unchanged if the solver fails.
            acceleration: output (3,), of the body under these forces.

        Returns:
            Whether the program was solved.
        """
        n = 3 * count
        solution = self._gradient[:0]
        if count > 0:
            hessian, gradient = self._hessian[: n * n].reshape(n, n), self._gradient[:n]
            assemble(dt, self._cost, view, hessian, gradient, self._index)
            matrix, upper, lower, sense = self._constraints(count)
            set_friction(matrix, mu)
            solution, _, flag, _ = daqp.solve(hessian, gradient, matrix, upper, lower, sense)
            if flag != 1:
                self.failures += 1
                return False
        first_forces(solution, self._index, count, yaw, self._cost.mass, forces, acceleration)
        return True

    def _constraints(self, count: int) -> tuple[Array, Array, Array, AnyArray]:
        """Bounds on every force, then |fx| <= mu fz and |fy| <= mu fz as two rows each; mu is set at every call."""
        if count not in self._limits:
            matrix = np.zeros((4 * count, 3 * count))
            upper = np.full(7 * count, 1e30)
            lower = np.full(7 * count, -1e30)
            upper[2 : 3 * count : 3], lower[2 : 3 * count : 3] = self._max_force, 0.0
            for row in range(4 * count):
                matrix[row, 3 * (row // 4) + (row % 4) // 2] = 1.0
                (upper if row % 2 == 0 else lower)[3 * count + row] = 0.0
            self._limits[count] = (matrix, upper, lower, np.zeros(7 * count, dtype=np.int32))
        return self._limits[count]
