"""Robust least squares over parts of walks, and a consistent covariance of its result.

Gauss-Newton with Student's t as the distribution of a residual; the nuisance unknowns of a part are eliminated within
it (Schur complement). Variances are estimated along with the rest (EM): of a sample, of a stance as a whole, of the
IMU, of the ground truth. Errors of a foot last for a stance and those of an IMU for longer, so the information matrix
alone claims too much: the covariance is that of the delete-one jackknife over parts, plus what the priors leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.calibrate.residuals import KNOTS, PATTERNS, TURN, PartModel, Point, ResidualRows, knots_of
from gait.calibrate.unknowns import Unknowns
from gait.calibrate.walk_parts import WalkPart, with_stance
from gait.robot import Robot

FREEDOM = 4.0
"""Degrees of freedom of Student's t."""
ITERATIONS, JUDGED = 9, (2, 4)
"""Steps at most, and those before which the feet that hold still are found again."""
CONVERGED = 0.003
"""A step that is nowhere larger than this share of the prior standard deviation is the last."""
STILL_STD, LEAST_STILL = 5.0, 0.1
"""A foot that moves faster than so many standard deviations of a sample, and than this, m/s, does not hold still."""
START_NOISE = {"leg": 0.1, "stance": 0.1, "imu": 0.05, "velocity": 0.05, "rotation": 0.01}
ALIKE = 0.5
"""Correlation between legs of how standing feet move."""
MOTION = 0.6
"""Standard deviation of how standing feet move in all stances alike, relative to that of a residual and of what e can
hide: the coverage of injected errors is right with it (docs/calibrate.md)."""
LOOSE = 3.0
"""Factor on the priors while iterating."""
TINY = 1e-30
FREE = np.array([0.3, 10.0])
"""Prior standard deviations of turn, rad, and of e at the start, m/s: only there to make an inverse exist."""


class Information(NamedTuple):
    """The information of one part."""

    S: Array
    """Information about the unknowns (P, P), the nuisance unknowns eliminated."""
    s: Array
    """Gradient (P,)."""
    back: Callable[[Array], Array]
    """The step of the nuisance unknowns that goes with a step of the unknowns."""
    squares: dict[str, tuple[float, float]]
    """Sum of expected squares of each noise, in its unit, and how many numbers they are of."""


@dataclass(frozen=True, eq=False)
class LeastSquaresFit:
    """The result."""

    values: Array
    covariance: Array
    noise: dict[str, float]
    parts: list[WalkPart]
    iterations: int


def information(model: PartModel, noise: dict[str, float], truth: bool, considered: bool = False) -> Information:
    """Linearise a part and eliminate its nuisance unknowns; `considered` keeps columns of `foot_motion`."""
    point, legs = model.point, model.legs(considered)
    P, K = legs.by_unknown.shape[2], TURN + point.e.size
    A, b = np.zeros((P + K, P + K)), np.zeros(P + K)

    def add(r: Array, J: Array, weight: Array) -> None:
        """Rows (B, 3) with weights (B,)."""
        flat, per_row = J.reshape(-1, P + K), np.repeat(weight, 3)
        A[...] += flat.T @ (flat * per_row[:, None])
        b[...] -= flat.T @ (per_row * r.ravel())

    squares: dict[str, tuple[float, float]] = {}
    pending: list[tuple[str, Array, Array, Array]] = []
    for kind, rows in {"leg": legs, **(model.truth() if truth else {})}.items():
        if not len(rows.r):
            continue
        J = np.zeros((len(rows.r), 3, P + K))
        J[:, :, : rows.by_unknown.shape[2]], J[:, :, P:] = rows.by_unknown, rows.by_nuisance
        weight = _robust(rows.r, noise[kind])
        add(rows.r, J, weight / noise[kind] ** 2)
        pending.append((kind, rows.r, J, weight))
        if kind == "leg":
            r, J, count = _stance_means(rows, J, weight)
            extra = np.maximum(1.0 / noise["stance"] ** 2 - count / noise["leg"] ** 2, 0.0)
            add(r, J, extra * _robust(r, noise["stance"]))
            pending.append(("stance", r, J, _robust(r, noise["stance"])))
    walk = np.kron(np.diff(np.eye(len(point.e)), axis=0), np.eye(3))  # from knot to knot (3 (K - 1), 3 K)
    at, tight = slice(P + TURN, P + K), 1.0 / (noise["imu"] ** 2 * KNOTS)
    A[at, at] += tight * walk.T @ walk
    b[at] -= tight * walk.T @ (walk @ point.e.ravel())
    A[P : P + TURN, P : P + TURN] += np.eye(3) / FREE[0] ** 2
    A[P + TURN : P + TURN + 3, P + TURN : P + TURN + 3] += np.eye(3) / FREE[1] ** 2
    n_inverse = np.linalg.inv(A[P:, P:])
    gain = A[:P, P:] @ n_inverse
    for kind, r, J, weight in pending:
        Jn = J[:, :, P:]
        spread = np.sum((Jn.reshape(-1, K) @ n_inverse).reshape(Jn.shape) * Jn, axis=(1, 2))
        squares[kind] = float(weight @ (np.sum(r**2, axis=1) + spread)), 3.0 * len(r)
    moved = walk @ point.e.ravel()
    spread = np.trace(walk @ n_inverse[TURN:, TURN:] @ walk.T)
    squares["imu"] = float(moved @ moved + spread) / KNOTS, float(len(moved))
    Ann_b, Anp = n_inverse @ b[P:], gain.T
    S = A[:P, :P] - gain @ A[P:, :P]
    return Information(0.5 * (S + S.T), b[:P] - gain @ b[P:], lambda step: Ann_b - Anp @ step, squares)


def _robust(r: Array, std: float) -> Array:
    """Weights of residuals (B, 3) under Student's t."""
    return np.asarray((FREEDOM + 3.0) / (FREEDOM + np.sum(r**2, axis=1) / std**2))


def _stance_means(rows: ResidualRows, J: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Means over stances: residuals (C, 3), derivatives, and the sum of the weights in each."""
    _, which = np.unique(rows.stance, return_inverse=True)
    share = np.zeros((which.max() + 1, len(which)))
    share[which, np.arange(len(which))] = weight
    count = share.sum(axis=1)
    share /= count[:, None]
    return share @ rows.r, np.tensordot(share, J, 1), count


def fit(
    parts: list[WalkPart], unknowns: Unknowns, robot: Robot, truth: bool, progress: Callable[[float], None]
) -> LeastSquaresFit:
    """Find the unknowns and their covariance."""
    values, noise = np.zeros(unknowns.size), dict(START_NOISE)
    points = [Point(part.R_ws, np.zeros((len(knots_of(part)), 3))) for part in parts]
    count, prior = 0, np.diag((LOOSE * unknowns.prior) ** -2.0)
    for count in range(1, ITERATIONS + 1):
        if count - 1 in JUDGED:
            limit = max(LEAST_STILL, STILL_STD * noise["leg"])
            for i, (part, point) in enumerate(zip(parts, points, strict=True)):
                slip = PartModel(part, point, values, unknowns, robot).slip()
                parts[i] = with_stance(part, np.linalg.norm(slip, axis=2), limit)
        told = [
            information(PartModel(part, point, values, unknowns, robot), noise, truth)
            for part, point in zip(parts, points, strict=True)
        ]
        S = prior + sum(one.S for one in told)
        step: Array = np.asarray(np.linalg.solve(S, sum(one.s for one in told) - prior @ values), dtype=np.float64)
        values = values + step
        points = [_moved(point, one.back(step)) for point, one in zip(points, told, strict=True)]
        noise = {kind: _noise(kind, told, noise) for kind in noise}
        progress(count / ITERATIONS)
        if count > JUDGED[-1] and np.all(np.abs(step) < CONVERGED * unknowns.prior):
            break
    told = [
        information(PartModel(part, point, values, unknowns, robot), noise, truth, considered=True)
        for part, point in zip(parts, points, strict=True)
    ]
    period = max(float(np.median(np.diff(part.t))) for part in parts)
    cov = covariance(told, prior, MOTION * math.hypot(noise["leg"], noise["imu"] * math.sqrt(KNOTS)))
    cov += np.diag(unknowns.floor(period) ** 2)
    # The rest of the prior comes last, where what all stances have in common is part of the covariance.
    gain = np.linalg.inv(np.eye(len(cov)) + cov @ (np.diag(unknowns.prior**-2.0) - prior))
    return LeastSquaresFit(gain @ values, gain @ cov, noise, parts, count)


def _moved(point: Point, step: Array) -> Point:
    return replace(point, R_ws=point.R_ws @ lie.so3_exp(step[:TURN]), e=point.e + step[TURN:].reshape(point.e.shape))


def _noise(kind: str, told: list[Information], noise: dict[str, float]) -> float:
    """A standard deviation from expected squares; one without information stays."""
    sums = np.array([one.squares[kind] for one in told if kind in one.squares])
    return noise[kind] if not len(sums) else float(np.sqrt(sums[:, 0].sum() / sums[:, 1].sum()))


def covariance(told: list[Information], prior: Array, foot_std: float) -> Array:
    """Covariance (P, P) of the unknowns: scatter among parts, prior, and motions that all stances have in common."""
    P = len(prior)
    S = prior + sum(one.S[:P, :P] for one in told)
    scatter = jackknife(S, [(one.S[:P, :P], one.s[:P]) for one in told], prior)
    gain = foot_std * np.linalg.solve(S, sum(one.S[:P, P:] for one in told))
    legs = gain.shape[1] // PATTERNS
    alike = np.kron(ALIKE * np.ones((legs, legs)) + (1.0 - ALIKE) * np.eye(legs), np.eye(PATTERNS))
    return np.asarray(scatter + gain @ alike @ gain.T)


def jackknife(S: Array, parts: list[tuple[Array, Array]], prior: Array) -> Array:
    """Covariance (P, P) of an estimate.

    Args:
        S: information, that of the prior included.
        parts: information and gradient at the estimate of each part.
        prior: information of the prior.
    """
    count, inverse = len(parts), np.linalg.inv(S)
    left_out = np.array([np.linalg.solve(S - own, gradient) for own, gradient in parts])  # (G, P)
    spread = (count - 1.0) / count * left_out.T @ left_out
    modelled = inverse @ (S - prior) @ inverse
    ratio = float(np.median(np.diag(spread) / (np.diag(modelled) + TINY)))
    share = count / (count + 15.0)
    return np.asarray(share * spread + (1.0 - share) * max(ratio, 1.0) * modelled + inverse @ prior @ inverse)
