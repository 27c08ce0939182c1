"""The right-invariant EKF, compiled: correct by a body velocity or by feet. `layout.py` explains the arrays."""

from __future__ import annotations

import math

from gait import lie
from gait._compile import compiled
from gait.arrays import Array, BoolArray, IntArray
from gait.filters.layout import BA, BG, FEET, POS, STATE, VEL, orthonormalise, symmetrise
from gait.filters.propagation import propagate

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
_A3 = "float64[:, :, ::1]"
_B1 = "boolean[::1]"


@compiled(f"void({_A2}, {_A2}, {_A2}, {_B1}, {_A1}, {_A1})")
def _retract(R: Array, x: Array, b: Array, active: BoolArray, delta: Array, scratch: Array) -> None:
    """X <- exp(delta) X, and the biases by addition."""
    turn, jacobian = scratch[0:9].reshape(3, 3), scratch[9:18].reshape(3, 3)
    lie.exp_and_jacobian_into(delta[0:3], turn, jacobian)
    for m in range(x.shape[0]):
        if m >= 2 and not active[m - 2]:
            continue
        row = VEL + 3 * m if m < 2 else FEET + 3 * (m - 2)
        x0, x1, x2 = x[m, 0], x[m, 1], x[m, 2]
        d0, d1, d2 = delta[row], delta[row + 1], delta[row + 2]
        for i in range(3):
            x[m, i] = (turn[i, 0] * x0 + turn[i, 1] * x1 + turn[i, 2] * x2) + (
                jacobian[i, 0] * d0 + jacobian[i, 1] * d1 + jacobian[i, 2] * d2
            )
    for j in range(3):
        r0, r1, r2 = R[0, j], R[1, j], R[2, j]
        b[0, j] += delta[BG + j]
        b[1, j] += delta[BA + j]
        for i in range(3):
            R[i, j] = turn[i, 0] * r0 + turn[i, 1] * r1 + turn[i, 2] * r2
    orthonormalise(R)


@compiled(f"boolean({_A2}, int64)")
def _cholesky(S: Array, m: int) -> bool:
    """S = L L', in place, in the lower triangle of the leading m rows; false if S is not positive definite."""
    for j in range(m):
        total = S[j, j]
        for k in range(j):
            total -= S[j, k] * S[j, k]
        if not total > 0.0:
            return False
        S[j, j] = math.sqrt(total)
        for i in range(j + 1, m):
            total = S[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            S[i, j] = total / S[j, j]
    return True


@compiled(f"void({_A2}, {_A2}, {_A2}, int64, int64)")
def _solve(L: Array, B: Array, X: Array, m: int, n: int) -> None:
    """X = (L L')^-1 B for m rows of n columns."""
    for i in range(m):
        for j in range(n):
            X[i, j] = B[i, j]
        for k in range(i):
            f = L[i, k]
            for j in range(n):
                X[i, j] -= f * X[k, j]
        f = 1.0 / L[i, i]
        for j in range(n):
            X[i, j] *= f
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            f = L[k, i]
            for j in range(n):
                X[i, j] -= f * X[k, j]
        f = 1.0 / L[i, i]
        for j in range(n):
            X[i, j] *= f


@compiled(f"boolean({STATE}, int64)")
def _correct(R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray, m: int) -> bool:
    """Kalman correction in Joseph form with m stacked rows of a measurement z = -H xi + noise.

    A row of H is +1 at column `slots[i, 0]` and -1 at column `slots[i, 1]`, where that is not negative. The noise
    covariance comes in `work[2]`, the innovation z at the start of `work[4]`.

    Returns:
        False, with nothing changed, if the measurement is not finite or its covariance not positive definite.
    """
    n = P.shape[0]
    HP, K, N, S = work[0], work[1], work[2], work[3]  # K is the gain transposed: a row for each measurement
    scratch = work[4].reshape(-1)
    z, delta = scratch[0:m], scratch[m : m + n]
    for i in range(m):
        if not math.isfinite(z[i]):
            return False
    for i in range(m):
        plus, minus = slots[i, 0], slots[i, 1]
        for j in range(n):
            HP[i, j] = P[plus, j] - P[minus, j] if minus >= 0 else P[plus, j]
    for i in range(m):
        for j in range(m):
            plus, minus = slots[j, 0], slots[j, 1]
            S[i, j] = N[i, j] + (HP[i, plus] - HP[i, minus] if minus >= 0 else HP[i, plus])
    if not _cholesky(S, m):
        return False
    _solve(S, HP, K, m, n)
    for j in range(n):
        delta[j] = 0.0
    for i in range(m):
        for j in range(n):
            delta[j] += K[i, j] * z[i]
    # T = (I - K H) P row by row, then P = T (I - K H)' + K N K' = T + (K N - T H') K'.
    f = S[0]
    for r in range(n):
        row = P[r]
        for i in range(m):
            gain = K[i, r]
            for j in range(n):
                row[j] -= gain * HP[i, j]
        for i in range(m):
            plus, minus = slots[i, 0], slots[i, 1]
            f[i] = row[minus] - row[plus] if minus >= 0 else -row[plus]
            for k in range(m):
                f[i] += N[i, k] * K[k, r]
        for i in range(m):
            gain = f[i]
            for j in range(n):
                row[j] += gain * K[i, j]
    symmetrise(P)
    _retract(R, x, b, active, delta, scratch[m + n :])
    return True


@compiled(f"void({_A2}, {_A2}, {_A2}, int64)")
def _world_covariance(R: Array, cov_b: Array, N: Array, row: int) -> None:
    """N[row:row+3, row:row+3] = R cov_b R'."""
    for i in range(3):
        c0 = R[i, 0] * cov_b[0, 0] + R[i, 1] * cov_b[1, 0] + R[i, 2] * cov_b[2, 0]
        c1 = R[i, 0] * cov_b[0, 1] + R[i, 1] * cov_b[1, 1] + R[i, 2] * cov_b[2, 1]
        c2 = R[i, 0] * cov_b[0, 2] + R[i, 1] * cov_b[1, 2] + R[i, 2] * cov_b[2, 2]
        for j in range(3):
            N[row + i, row + j] = c0 * R[j, 0] + c1 * R[j, 1] + c2 * R[j, 2]


@compiled(f"boolean({STATE}, {_A1}, {_A2})")
def correct_velocity(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    vel_b: Array, cov_b: Array,
) -> bool:  # fmt: skip
    """A measurement of the body-frame velocity (3,) with covariance (3, 3) in the body frame; false if refused."""
    if vel_b.size != 3 or cov_b.size != 9:
        return False
    z = work[4].reshape(-1)
    for i in range(3):
        slots[i, 0], slots[i, 1] = VEL + i, -1
        z[i] = R[i, 0] * vel_b[0] + R[i, 1] * vel_b[1] + R[i, 2] * vel_b[2] - x[0, i]
    _world_covariance(R, cov_b, work[2], 0)
    return _correct(R, x, b, P, active, work, slots, 3)


@compiled(f"boolean({STATE}, {_A2}, {_A3})")
def correct_feet(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    feet_b: Array, cov_b: Array,
) -> bool:  # fmt: skip
    """Forward kinematics of every active foot in one stacked update.

    Args:
        R, x, b, P, active, work, slots: the state, as above.
        feet_b: contact points in the body frame (L, 3); rows of feet that are not active are not read.
        cov_b: their covariances in the body frame (L, 3, 3).

    Returns:
        False, with nothing changed, if the measurement was refused.
    """
    if feet_b.size != 3 * active.size or cov_b.size != 9 * active.size:
        return False
    N, z = work[2], work[4].reshape(-1)
    m = 0
    for leg in range(active.size):
        if not active[leg]:
            continue
        for i in range(3):
            for j in range(3 * active.size):
                N[m + i, j] = 0.0
            slots[m + i, 0], slots[m + i, 1] = FEET + 3 * leg + i, POS + i
            z[m + i] = (
                (R[i, 0] * feet_b[leg, 0] + R[i, 1] * feet_b[leg, 1] + R[i, 2] * feet_b[leg, 2])
                + x[1, i]
                - x[2 + leg, i]
            )
        _world_covariance(R, cov_b[leg], N, m)
        m += 3
    if m == 0:
        return True
    return _correct(R, x, b, P, active, work, slots, m)


@compiled(f"void({_A2}, {_A2}, {_A2}, {_B1}, int64, {_A1}, {_A2})")
def add_foot(R: Array, x: Array, P: Array, active: BoolArray, leg: int, foot_b: Array, cov_b: Array) -> None:
    """A foot touches down: its contact point joins the state at p + R foot_b."""
    row = FEET + 3 * leg
    for i in range(3):
        x[2 + leg, i] = x[1, i] + R[i, 0] * foot_b[0] + R[i, 1] * foot_b[1] + R[i, 2] * foot_b[2]
        for j in range(P.shape[0]):
            P[row + i, j] = P[POS + i, j]
    for j in range(P.shape[0]):
        for i in range(3):
            P[j, row + i] = P[j, POS + i]
    for i in range(3):
        for j in range(3):
            noise = 0.0
            for k in range(3):
                noise += R[j, k] * (R[i, 0] * cov_b[0, k] + R[i, 1] * cov_b[1, k] + R[i, 2] * cov_b[2, k])
            P[row + i, row + j] += noise
    active[leg] = True


@compiled(f"void({_A2}, {_B1}, int64)")
def remove_foot(P: Array, active: BoolArray, leg: int) -> None:
    """A foot lifts off: its contact point leaves the state."""
    row = FEET + 3 * leg
    for j in range(P.shape[0]):
        for i in range(3):
            P[row + i, j] = 0.0
            P[j, row + i] = 0.0
    active[leg] = False


@compiled(
    f"boolean({STATE}, {_A1}, {_A1}, {_A2}, {_A1}, {_A1}, float64, float64, boolean, boolean, {_A1}, {_A2})",
)
def propagate_and_correct_velocity(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    noise: Array, contact_std: Array, foot_vel_b: Array, gyro: Array, accel: Array,
    gravity: float, dt: float, exact_mean: bool, exact_phi: bool, vel_b: Array, cov_b: Array,
) -> bool:  # fmt: skip
    """`propagate` and `correct_velocity` in one call; true if both were taken."""
    moved = propagate(
        R, x, b, P, active, work, slots, noise, contact_std, foot_vel_b, gyro, accel, gravity, dt, exact_mean, exact_phi
    )
    corrected = correct_velocity(R, x, b, P, active, work, slots, vel_b, cov_b)
    return moved and corrected
