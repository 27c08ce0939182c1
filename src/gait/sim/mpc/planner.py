"""Model-predictive control of the body: which ground forces, over the next cycle, keep it on its way.

The robot is one rigid body pushed by forces at its feet. In the heading frame (z up, x along the heading) its state is
roll, pitch, yaw; position of the centre of mass; angular and linear velocity. Small roll and pitch make it linear in
the forces, so the best forces over ten steps solve a convex quadratic program: follow the reference, use little force,
stay inside the friction pyramid. A foot in the air has no force and no place in the program. A foot that stands during
part of a step counts with that part.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import daqp
import numpy as np

from gait.arrays import AnyArray, Array
from gait.sim.kernels import about_z, compiled, cross, rotate, transform
from gait.sim.mpc.walk_state import Pattern, Preview, WalkReading, WalkState
from gait.sim.proportions import Proportions

GRAVITY = 9.81
HORIZON = 10
"""Steps that are planned ahead."""
LEAST_SHARE = 0.15
"""Part of a step that a foot must stand for its force to be planned."""


class Cost(NamedTuple):
    """What a plan costs, and the body that it moves, in the heading frame."""

    mass: float
    inertia_inv: Array
    """Inverse inertia (3, 3)."""
    weights: Array
    """Of the squared errors (12,)."""
    force_weight: float
    """Of the squared forces, in newtons."""

    @staticmethod
    def of(mass: float, inertia_b: Array, size: Proportions) -> Cost:
        """What a deviation costs a body: the same at any size."""
        # Roll, pitch, yaw; position; angular velocity; velocity.
        weights = np.array([8.0, 8.0, 6.0, 2.0, 2.0, 50.0, 0.02, 0.02, 0.3, 0.5, 0.5, 0.2])
        weights /= np.repeat([1.0, size.length**2, 1.0 / size.length, size.length], 3)
        return Cost(mass, np.ascontiguousarray(np.linalg.inv(inertia_b)), weights, 2e-5 / size.mass**2)


@compiled
def look_ahead(reading: WalkReading, com_b: Array, height: float, pattern: Pattern, s: WalkState, out: Preview) -> None:
    """Fill in the preview, with the present place of the base as origin.

    Args:
        reading: of this step.
        com_b: centre of mass in the base frame.
        height: wanted height of the base.
        pattern: of the gait; the horizon is one cycle.
        s: the controller's state, whose centre of mass is brought up to date.
        out: written.
    """
    phases, duty, period = pattern.phases, pattern.duty, pattern.period
    yaw = math.atan2(s.R[1, 0], s.R[0, 0])
    body_now(reading, com_b, yaw, s, out)
    com_height = height + com_b[2]
    _reference(yaw, com_height, period, s, out)
    dt = period / out.share.shape[0]
    for k in range(out.share.shape[0]):
        t0, t1 = k * dt, (k + 1) * dt
        mid = 0.5 * (t0 + t1)
        # The body as it should move from where it is: it carries the lever arms along.
        cx, cy = s.com_w[0] + s.vel_cmd[0] * mid, s.com_w[1] + s.vel_cmd[1] * mid
        cz = s.ground[2] + com_height + s.slope[0] * (cx - s.ground[0]) + s.slope[1] * (cy - s.ground[1])
        for leg in range(phases.shape[0]):
            a, b = phases[leg] + t0 / period, phases[leg] + t1 / period
            stood_a = math.floor(a) * duty + min(a - math.floor(a), duty)
            stood_b = math.floor(b) * duty + min(b - math.floor(b), duty)
            out.share[k, leg] = min((stood_b - stood_a) / (b - a), 1.0)
            if s.stance[leg] == 0 and b < 1.0:
                out.share[k, leg] = 0.0
            x, y, z = _foot_then(leg, math.floor(0.5 * (a + b)), pattern, yaw, s)
            out.arms[k, leg, 0], out.arms[k, leg, 1] = about_z(-yaw, x - cx, y - cy)
            out.arms[k, leg, 2] = z - cz


@compiled
def _foot_then(leg: int, cycle: int, pattern: Pattern, yaw: float, s: WalkState) -> tuple[float, float, float]:
    """Where a foot stands in a cycle from now: where it is, where it is about to land, or below its hip by then."""
    if cycle == 0 and s.stance[leg] == 1:
        return s.feet_w[leg, 0], s.feet_w[leg, 1], s.feet_w[leg, 2]
    if cycle <= 1 and s.stance[leg] == 0:
        return s.target[leg, 0], s.target[leg, 1], s.target[leg, 2]
    when = (cycle + 0.5 * pattern.duty - pattern.phases[leg]) * pattern.period
    cos, sin = math.cos(yaw + s.following[2] * when), math.sin(yaw + s.following[2] * when)
    x = s.com_w[0] + s.vel_cmd[0] * when + cos * s.hips[leg, 0] - sin * s.hips[leg, 1]
    y = s.com_w[1] + s.vel_cmd[1] * when + sin * s.hips[leg, 0] + cos * s.hips[leg, 1]
    return x, y, s.ground[2] + s.slope[0] * (x - s.ground[0]) + s.slope[1] * (y - s.ground[1])


@compiled
def body_now(reading: WalkReading, com_b: Array, yaw: float, s: WalkState, out: Preview) -> None:
    """The planner's view of the body in the heading frame."""
    arm, w, vel, x = rotate(s.R, com_b), rotate(s.R, reading.omega_b), reading.vel_w, out.state
    s.com_w[:] = s.pos + arm
    vx = vel[0] + w[1] * arm[2] - w[2] * arm[1]
    vy = vel[1] + w[2] * arm[0] - w[0] * arm[2]
    vz = vel[2] + w[0] * arm[1] - w[1] * arm[0]
    x[0], x[1], x[2] = math.atan2(s.R[2, 1], s.R[2, 2]), -math.asin(min(max(s.R[2, 0], -1.0), 1.0)), 0.0
    x[3], x[4], x[5] = 0.0, 0.0, s.com_w[2]
    (x[6], x[7]), x[8] = about_z(-yaw, w[0], w[1]), w[2]
    (x[9], x[10]), x[11] = about_z(-yaw, vx, vy), vz


@compiled
def _reference(yaw: float, com_height: float, period: float, s: WalkState, out: Preview) -> None:
    """The wanted states: level with the ground, on the way from the wanted pose, at the velocity that is followed."""
    ahead, left = about_z(-yaw, s.slope[0], s.slope[1])
    roll, pitch = math.atan(left), -math.atan(ahead)
    ox, oy = about_z(-yaw, s.pose[0] - s.pos[0], s.pose[1] - s.pos[1])
    vx, vy = about_z(-yaw, s.vel_cmd[0], s.vel_cmd[1])
    turn, yaw_rate, dt = s.pose[2] - yaw, s.following[2], period / out.reference.shape[0]
    for k in range(out.reference.shape[0]):
        t, x = (k + 1) * dt, out.reference[k]
        ex, ey = s.com_w[0] + s.vel_cmd[0] * t, s.com_w[1] + s.vel_cmd[1] * t
        x[0], x[1], x[2] = roll, pitch, turn + yaw_rate * t
        x[3], x[4] = ox + vx * t, oy + vy * t
        x[5] = s.ground[2] + com_height + s.slope[0] * (ex - s.ground[0]) + s.slope[1] * (ey - s.ground[1])
        x[6], x[7], x[8] = 0.0, 0.0, yaw_rate
        x[9], x[10], x[11] = vx, vy, s.slope[0] * s.vel_cmd[0] + s.slope[1] * s.vel_cmd[1]


@compiled
def assemble(dt: float, cost: Cost, view: Preview, index: AnyArray, hessian: Array, gradient: Array) -> None:
    """Cost of the forces of all standing feet, by closed-form sums over the horizon.

    Args:
        dt: length of a step in seconds.
        cost: weights and body.
        view: the horizon.
        index: step and leg of every force triple (n, 2); the program has three times as many unknowns.
        hessian: output (3 n, 3 n).
        gradient: output (3 n,).
    """
    state, reference, weights = view.state, view.reference, cost.weights
    steps, count = view.share.shape[0], index.shape[0]
    # Angular velocity that a unit force in one step brings, (count, 3, 3): I^-1 [r]x times the time it acts.
    turn, push = np.empty((count, 3, 3)), np.empty(count)
    for c in range(count):
        j, a = index[c, 0], index[c, 1]
        time = dt * view.share[j, a]
        push[c] = time / cost.mass
        for i in range(3):
            turn[c, i] = time * cross(cost.inertia_inv[i], view.arms[j, a])
    # Errors of the free fall against the reference, weighted.
    error = np.empty((steps, 12))
    for k in range(steps):
        t = dt * (k + 1)
        error[k, :6] = state[:6] + t * state[6:] - reference[k, :6]
        error[k, 6:] = state[6:] - reference[k, 6:]
        error[k, 5] -= 0.5 * GRAVITY * t * t
        error[k, 11] -= GRAVITY * t
        error[k] *= weights
    sums, pull = np.zeros((steps, steps, 6)), np.zeros((steps, 6))
    for j in range(steps):
        for k in range(j, steps):
            pull[j] += dt * (k - j + 0.5) * error[k, :6] + error[k, 6:]
        for m in range(j, steps):
            for k in range(m, steps):
                lag = dt * dt * (k - j + 0.5) * (k - m + 0.5)
                for i in range(6):
                    sums[j, m, i] += weights[i] * lag + weights[6 + i]
    for c in range(count):
        j = index[c, 0]
        gradient[3 * c : 3 * c + 3] = transform(turn[c].T, push[c] * pull[j, 3:], pull[j])
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
                            h += cost.force_weight
                    hessian[3 * c + i, 3 * d + k] = h
                    hessian[3 * d + k, 3 * c + i] = h


@compiled
def first_forces(solution: Array, index: AnyArray, yaw: float, mass: float, forces: Array, acceleration: Array) -> None:
    """Forces of the first step (L, 3) and the acceleration they give the body, both in the world frame."""
    forces[:], acceleration[:], acceleration[2] = 0.0, 0.0, -GRAVITY
    for k in range(index.shape[0]):
        if index[k, 0] > 0:
            break
        leg = index[k, 1]
        forces[leg, 0], forces[leg, 1] = about_z(yaw, solution[3 * k], solution[3 * k + 1])
        forces[leg, 2] = solution[3 * k + 2]
        acceleration += forces[leg] / mass


@lru_cache
def limits(count: int, max_force: float) -> tuple[Any, ...]:
    """Bounds on every force, then |fx| <= mu fz and |fy| <= mu fz as two rows each; mu is set at every plan.

    Returns:
        The places of mu and its signs there; the matrix of the rows, upper limits, lower limits and their sense.
    """
    rows, matrix = np.arange(4 * count), np.zeros((4 * count, 3 * count))
    matrix[rows, 3 * (rows // 4) + rows % 4 // 2] = 1.0
    upper, lower = np.full(7 * count, 1e30), np.full(7 * count, -1e30)
    upper[2 : 3 * count : 3], lower[2 : 3 * count : 3] = max_force, 0.0
    upper[3 * count :: 2] = lower[3 * count + 1 :: 2] = 0.0
    places, signs = (rows, 3 * (rows // 4) + 2), np.where(rows % 2 == 0, -1.0, 1.0)
    return places, signs, matrix, upper, lower, np.zeros(7 * count, dtype=np.int32)


class ForcePlanner:
    """Solves for the ground forces of the coming cycle."""

    def __init__(self, cost: Cost, max_force: float) -> None:
        self._cost, self._max_force = cost, max_force

    def plan(self, dt: float, mu: float, yaw: float, view: Preview, forces: Array, acceleration: Array) -> bool:
        """Plan in the heading frame; write the forces of the first step and their effect in the world frame.

        Args:
            dt: length of a step.
            mu: friction to count on.
            yaw: heading.
            view: the body and the horizon.
            forces: output (L, 3); unchanged if the solver fails.
            acceleration: output (3,), of the body under these forces.

        Returns:
            Whether the program was solved.
        """
        index = np.ascontiguousarray(np.argwhere(view.share >= LEAST_SHARE))
        n, solution = 3 * len(index), np.empty(0)
        if n > 0:
            hessian, gradient = np.empty((n, n)), np.empty(n)
            assemble(dt, self._cost, view, index, hessian, gradient)
            places, signs, matrix, *bounds = limits(len(index), self._max_force)
            matrix[places] = mu * signs
            solution, _, flag, _ = daqp.solve(hessian, gradient, matrix, *bounds)
            if flag != 1:
                return False
        first_forces(solution, index, yaw, self._cost.mass, forces, acceleration)
        return True
