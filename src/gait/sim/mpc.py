"""Model-predictive control of the body: which ground forces, over the next cycle, keep it on its way.

The robot is one rigid body pushed by forces at its feet. In the heading frame (z up, x along the heading) its state is
roll, pitch, yaw; position of the centre of mass; angular and linear velocity. Small roll and pitch make it linear in
the forces, so the best forces over ten steps solve a convex quadratic program: follow the reference, use little force,
stay inside the friction pyramid. A foot in the air has no force and no place in the program. A foot that stands during
part of a step counts with that part.
"""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np

from gait._compile import compiled
from gait.arrays import AnyArray, Array

HORIZON = 10
"""Steps that are planned ahead."""
_A1, _A2, _A3 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]"
_LEAST_SHARE = 0.15


@dataclass(frozen=True)
class MpcWeights:
    """What a deviation costs."""

    angle: tuple[float, float, float] = (3.0, 3.0, 6.0)
    """Roll, pitch, yaw."""
    position: tuple[float, float, float] = (2.0, 2.0, 50.0)
    rate: tuple[float, float, float] = (0.02, 0.02, 0.3)
    velocity: tuple[float, float, float] = (0.5, 0.5, 0.2)
    force: float = 2e-5
    """Cost of a squared newton."""


@compiled(f"int64(float64, float64, {_A2}, {_A3}, {_A2}, {_A1}, {_A2}, {_A1}, float64, {_A2}, {_A1}, int64[:, ::1])")
def assemble(
    dt: float,
    mass: float,
    inertia_inv: Array,
    arms: Array,
    share: Array,
    state: Array,
    reference: Array,
    weights: Array,
    force_weight: float,
    hessian: Array,
    gradient: Array,
    index: AnyArray,
) -> int:
    """Cost of the forces of all standing feet, by closed-form sums over the horizon.

    Args:
        dt: length of a step in seconds.
        mass: of the whole robot.
        inertia_inv: inverse inertia in the heading frame (3, 3).
        arms: from the centre of mass to each foot (N, L, 3).
        share: part of each step during which a leg stands (N, L).
        state: angles, position, angular velocity, velocity (12,).
        reference: the same at the end of every step (N, 12).
        weights: of the squared errors (12,).
        force_weight: of the squared forces.
        hessian: output, at least (n, n).
        gradient: output, at least (n,).
        index: output, step and leg of every force triple.

    Returns:
        Number of force triples; the program has three times as many unknowns.
    """
    steps, legs = share.shape
    count = 0
    for j in range(steps):
        for a in range(legs):
            if share[j, a] >= _LEAST_SHARE:
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
        error[k, 5] -= 0.5 * 9.81 * t * t
        error[k, 11] -= 9.81 * t
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


class ForcePlanner:
    """Solves for the ground forces of the coming cycle."""

    def __init__(self, mass: float, inertia_b: Array, weights: MpcWeights, max_force: float) -> None:
        self.mass = mass
        self.inertia_inv: Array = np.ascontiguousarray(np.linalg.inv(inertia_b))
        w = weights
        self._weights = np.array([*w.angle, *w.position, *w.rate, *w.velocity])
        self._force_weight = w.force
        self._max_force = max_force
        most = HORIZON * 4
        self._hessian, self._gradient = np.empty((3 * most) ** 2), np.empty(3 * most)
        self._index = np.empty((most, 2), dtype=np.int64)
        self._limits: dict[int, tuple[AnyArray, ...]] = {}
        self.failures = 0

    def plan(
        self, dt: float, mu: float, arms: Array, share: Array, state: Array, reference: Array, forces: Array
    ) -> bool:
        """Write the forces (L, 3) on the body during the first step into `forces`, in the heading frame.

        Args:
            dt: length of a step.
            mu: friction to count on.
            arms: from the centre of mass to the feet (N, L, 3).
            share: part of each step during which a leg stands (N, L).
            state: state of the body (12,).
            reference: wanted states (N, 12).
            forces: output; unchanged if the solver fails.

        Returns:
            Whether the program was solved.
        """
        active = int(np.count_nonzero(share >= _LEAST_SHARE))
        n = 3 * active
        hessian = self._hessian[: n * n].reshape(n, n)
        gradient = self._gradient[:n]
        count = assemble(
            dt, self.mass, self.inertia_inv, arms, share, state, reference, self._weights, self._force_weight,
            hessian, gradient, self._index,
        )  # fmt: skip
        if count == 0:
            forces[:] = 0.0
            return True
        matrix, upper, lower, sense, rows, columns, signs = self._constraints(count)
        matrix[rows, columns] = mu * signs
        solution, _, flag, _ = daqp.solve(hessian, gradient, matrix, upper, lower, sense)
        if flag != 1:
            self.failures += 1
            return False
        forces[:] = 0.0
        for c in range(count):
            if self._index[c, 0] > 0:
                break
            forces[self._index[c, 1]] = solution[3 * c : 3 * c + 3]
        return True

    def _constraints(self, count: int) -> tuple[AnyArray, ...]:
        """Bounds on every force, then |fx| <= mu fz and |fy| <= mu fz as two rows each; and where mu stands in them."""
        if count not in self._limits:
            matrix = np.zeros((4 * count, 3 * count))
            upper = np.full(7 * count, 1e30)
            lower = np.full(7 * count, -1e30)
            for c in range(count):
                upper[3 * c + 2], lower[3 * c + 2] = self._max_force, 0.0
                for row, (axis, sign) in enumerate(((0, -1.0), (0, 1.0), (1, -1.0), (1, 1.0))):
                    line = 4 * c + row
                    matrix[line, 3 * c + axis] = 1.0
                    if sign < 0:
                        upper[3 * count + line] = 0.0
                    else:
                        lower[3 * count + line] = 0.0
            rows = np.arange(4 * count)
            columns, signs = 3 * (rows // 4) + 2, np.tile([-1.0, 1.0], 2 * count)
            self._limits[count] = (matrix, upper, lower, np.zeros(7 * count, dtype=np.int32), rows, columns, signs)
        return self._limits[count]
