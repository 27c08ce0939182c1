"""The right-invariant EKF, compiled: correct by a body velocity or by feet. `layout.py` explains the arrays."""

from __future__ import annotations

import math
from typing import Any

from gait import lie
from gait._compile import kernel
from gait._lanes import each4, fill4, load4, store
from gait.arrays import Array, BoolArray, IntArray
from gait.filters.layout import BA, BG, FEET, POS, STATE, VEL, orthonormalise, symmetrise
from gait.filters.propagation import propagate, series

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
_A3 = "float64[:, :, ::1]"
_B1 = "boolean[::1]"


@kernel(f"void({_A2}, {_A2}, {_A2}, {_B1}, {_A3})")
def _retract(R: Array, x: Array, b: Array, active: BoolArray, work: Array) -> None:
    """X <- exp(delta) X, and the biases by addition; delta is in `work[4, 1]`."""
    w = work[4, 1, 0], work[4, 1, 1], work[4, 1, 2]
    first, second, third, _ = lie.coefficients(math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    for m in range(x.shape[0]):
        if m >= 2 and not active[m - 2]:
            continue
        row = VEL + 3 * m if m < 2 else FEET + 3 * (m - 2)
        turned = series(w, 1.0, first, second, x[m, 0], x[m, 1], x[m, 2])
        added = series(w, 1.0, second, third, work[4, 1, row], work[4, 1, row + 1], work[4, 1, row + 2])
        for i in range(3):
            x[m, i] = turned[i] + added[i]
    for j in range(3):
        b[0, j] += work[4, 1, BG + j]
        b[1, j] += work[4, 1, BA + j]
        R[0, j], R[1, j], R[2, j] = series(w, 1.0, first, second, R[0, j], R[1, j], R[2, j])
    orthonormalise(R)


@kernel(f"boolean({_A2}, int64)")
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


@kernel(f"void({_A2}, {_A2}, {_A2}, int64, int64)")
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


@kernel(f"boolean({STATE}, int64)")
def _correct(R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray, m: int) -> bool:
    """Kalman correction in Joseph form with m stacked rows of a measurement z = -H xi + noise.

    A row of H is +1 at column `slots[i, 0]` and -1 at column `slots[i, 1]`, where that is not negative. The noise
    covariance comes in `work[2]`, the innovation z in `work[4, 0]`.

    Returns:
        False, with nothing changed, if the measurement is not finite or its covariance not positive definite.
    """
    n = P.shape[0]
    HP, K, N, S = work[0], work[1], work[2], work[3]  # K is the gain transposed: a row for each measurement
    z, delta = work[4, 0], work[4, 1]
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
    _retract(R, x, b, active, work)
    return True


@kernel(f"void({_A2}, {_A2}, {_A3}, int64)")
def _world_covariance(R: Array, cov_b: Array, work: Array, row: int) -> None:
    """N[row:row+3, row:row+3] = R cov_b R' with N in `work[2]`."""
    for i in range(3):
        c0 = R[i, 0] * cov_b[0, 0] + R[i, 1] * cov_b[1, 0] + R[i, 2] * cov_b[2, 0]
        c1 = R[i, 0] * cov_b[0, 1] + R[i, 1] * cov_b[1, 1] + R[i, 2] * cov_b[2, 1]
        c2 = R[i, 0] * cov_b[0, 2] + R[i, 1] * cov_b[1, 2] + R[i, 2] * cov_b[2, 2]
        for j in range(3):
            work[2, row + i, row + j] = c0 * R[j, 0] + c1 * R[j, 1] + c2 * R[j, 2]


@kernel()
def _dot4(work: Array, at: int, n: int, factors: Any) -> Any:
    """Four columns of three rows of n numbers, each row times its factor."""
    a, b, c = factors
    return a * load4(work, at) + b * load4(work, at + n) + c * load4(work, at + 2 * n)


@kernel(f"void({_A2}, {_A3})")
def _joseph_rows(P: Array, work: Array) -> None:
    """P <- P - K HP + F K', with three rows each of HP in `work[0]`, K' in `work[1]` and F' in `work[3]`."""
    n, block = P.shape[0], work.shape[1] * P.shape[0]
    for r in range(n):
        less = each4(work, block + r), each4(work, block + n + r), each4(work, block + 2 * n + r)
        more = each4(work, 3 * block + r), each4(work, 3 * block + n + r), each4(work, 3 * block + 2 * n + r)
        # Up to the diagonal is enough. The last four may share columns with those before: read them first.
        last = min(r // 4 * 4, n - 4)
        end = (load4(P, r * n + last) - _dot4(work, last, n, less)) + _dot4(work, block + last, n, more)
        for j in range(0, last, 4):
            row = (load4(P, r * n + j) - _dot4(work, j, n, less)) + _dot4(work, block + j, n, more)
            store(P, r * n + j, row)
        store(P, r * n + last, end)
    for r in range(n):
        for j in range(r):
            P[j, r] = P[r, j]


@kernel(f"boolean({STATE}, {_A1}, {_A2})")
def correct_velocity(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    vel_b: Array, cov_b: Array,
) -> bool:  # fmt: skip
    """A measurement of the body-frame velocity (3,) with covariance (3, 3) in the body frame; false if refused.

    What `_correct` does, written out for three rows of H that pick the velocity.
    """
    if vel_b.size != 3 or cov_b.size != 9:
        return False
    n, block = P.shape[0], work.shape[1] * P.shape[0]
    z0 = R[0, 0] * vel_b[0] + R[0, 1] * vel_b[1] + R[0, 2] * vel_b[2] - x[0, 0]
    z1 = R[1, 0] * vel_b[0] + R[1, 1] * vel_b[1] + R[1, 2] * vel_b[2] - x[0, 1]
    z2 = R[2, 0] * vel_b[0] + R[2, 1] * vel_b[1] + R[2, 2] * vel_b[2] - x[0, 2]
    if not (math.isfinite(z0) and math.isfinite(z1) and math.isfinite(z2)):
        return False
    _world_covariance(R, cov_b, work, 0)
    n00, n01, n02 = work[2, 0, 0], work[2, 0, 1], work[2, 0, 2]
    n10, n11, n12 = work[2, 1, 0], work[2, 1, 1], work[2, 1, 2]
    n20, n21, n22 = work[2, 2, 0], work[2, 2, 1], work[2, 2, 2]
    p00, p10, p20 = P[VEL, VEL], P[VEL + 1, VEL], P[VEL + 2, VEL]
    p11, p21, p22 = P[VEL + 1, VEL + 1], P[VEL + 2, VEL + 1], P[VEL + 2, VEL + 2]
    # P + N = L L', of which the diagonal is kept inverted.
    d0 = p00 + n00
    if not d0 > 0.0:
        return False
    i0 = 1.0 / math.sqrt(d0)
    l10, l20 = (p10 + n10) * i0, (p20 + n20) * i0
    d1 = p11 + n11 - l10 * l10
    if not d1 > 0.0:
        return False
    i1 = 1.0 / math.sqrt(d1)
    l21 = (p21 + n21 - l20 * l10) * i1
    d2 = p22 + n22 - l20 * l20 - l21 * l21
    if not d2 > 0.0:
        return False
    i2 = 1.0 / math.sqrt(d2)
    for first in range(0, n, 4):
        j = min(first, n - 4)
        h0, h1, h2 = load4(P, VEL * n + j), load4(P, (VEL + 1) * n + j), load4(P, (VEL + 2) * n + j)
        y0 = h0 * fill4(i0)
        y1 = (h1 - fill4(l10) * y0) * fill4(i1)
        k2 = (h2 - fill4(l20) * y0 - fill4(l21) * y1) * fill4(i2 * i2)
        k1 = (y1 - fill4(l21) * k2) * fill4(i1)
        k0 = (y0 - fill4(l10) * k1 - fill4(l20) * k2) * fill4(i0)
        # F = K N - (I - K H) P H': nothing but what rounding left of it, and Joseph's form puts it right.
        f0 = (fill4(n00) * k0 + fill4(n01) * k1 + fill4(n02) * k2) - (
            h0 - (k0 * fill4(p00) + k1 * fill4(p10) + k2 * fill4(p20))
        )
        f1 = (fill4(n10) * k0 + fill4(n11) * k1 + fill4(n12) * k2) - (
            h1 - (k0 * fill4(p10) + k1 * fill4(p11) + k2 * fill4(p21))
        )
        f2 = (fill4(n20) * k0 + fill4(n21) * k1 + fill4(n22) * k2) - (
            h2 - (k0 * fill4(p20) + k1 * fill4(p21) + k2 * fill4(p22))
        )
        store(work, j, h0)
        store(work, n + j, h1)
        store(work, 2 * n + j, h2)
        store(work, block + j, k0)
        store(work, block + n + j, k1)
        store(work, block + 2 * n + j, k2)
        store(work, 3 * block + j, f0)
        store(work, 3 * block + n + j, f1)
        store(work, 3 * block + 2 * n + j, f2)
        store(work, 4 * block + n + j, fill4(z0) * k0 + fill4(z1) * k1 + fill4(z2) * k2)
    _joseph_rows(P, work)
    _retract(R, x, b, active, work)
    return True


@kernel(f"boolean({STATE}, {_A1}, float64, float64)")
def correct_gyro_bias(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    axis: Array, off: float, variance: float,
) -> bool:  # fmt: skip
    """The gyro's bias about an axis (3,) of the IMU was measured to be `off` more than believed; false if refused."""
    n, along, delta = P.shape[0], work[0, 0], work[4, 1]
    for j in range(n):
        along[j] = axis[0] * P[BG, j] + axis[1] * P[BG + 1, j] + axis[2] * P[BG + 2, j]
    total = axis[0] * along[BG] + axis[1] * along[BG + 1] + axis[2] * along[BG + 2] + variance
    if not (math.isfinite(off) and total > 0.0 and math.isfinite(total)):
        return False
    for i in range(n):
        gain = along[i] / total
        delta[i] = gain * off
        for j in range(n):
            P[i, j] -= gain * along[j]
    symmetrise(P)
    _retract(R, x, b, active, work)
    return True


@kernel(f"boolean({STATE}, {_A2}, {_A3})")
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
    N, z = work[2], work[4, 0]
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
        _world_covariance(R, cov_b[leg], work, m)
        m += 3
    if m == 0:
        return True
    return _correct(R, x, b, P, active, work, slots, m)


@kernel(f"void({_A2}, {_A2}, {_A2}, {_B1}, int64, {_A1}, {_A2})")
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


@kernel(f"void({_A2}, {_B1}, int64)")
def remove_foot(P: Array, active: BoolArray, leg: int) -> None:
    """A foot lifts off: its contact point leaves the state."""
    row = FEET + 3 * leg
    for j in range(P.shape[0]):
        for i in range(3):
            P[row + i, j] = 0.0
            P[j, row + i] = 0.0
    active[leg] = False


@kernel(
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
