"""The right-invariant EKF, compiled: propagate, correct by body velocity, correct by feet.

State of a filter with L feet, all arrays preallocated and changed in place:

- `R` (3, 3): orientation, body to world;
- `x` (2 + L, 3): velocity, position, then one row for each foot, in the world frame;
- `b` (2, 3): gyro and accelerometer bias;
- `P` (15 + 3 L square): covariance of the right-invariant error, X_hat = exp(xi) X, in the order rotation, velocity,
  position, gyro bias, accelerometer bias, feet;
- `active` (L,): which feet are part of the state; rows and columns of the others are zero;
- `work` (5, M, 15 + 3 L) with M = 3 max(L, 2), and `slots` (M, 2) of integers: scratch.

`reference.py` says the same in plain numpy.
"""

from __future__ import annotations

import math

from gait import lie
from gait._compile import compiled
from gait.arrays import Array, BoolArray, IntArray

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
_A3 = "float64[:, :, ::1]"
_B1 = "boolean[::1]"
_STATE = f"{_A2}, {_A2}, {_A2}, {_A2}, {_B1}, {_A3}, int64[:, ::1]"

ROT, VEL, POS, BG, BA, FEET = 0, 3, 6, 9, 12, 15


@compiled(f"void({_A2})")
def _orthonormalise(R: Array) -> None:
    """One Newton step back onto the group, so that rounding cannot build up over hours."""
    e00 = e01 = e02 = e11 = e12 = e22 = 0.0
    for i in range(3):
        e00 += R[i, 0] * R[i, 0]
        e01 += R[i, 0] * R[i, 1]
        e02 += R[i, 0] * R[i, 2]
        e11 += R[i, 1] * R[i, 1]
        e12 += R[i, 1] * R[i, 2]
        e22 += R[i, 2] * R[i, 2]
    for i in range(3):
        r0, r1, r2 = R[i, 0], R[i, 1], R[i, 2]
        R[i, 0] = 1.5 * r0 - 0.5 * (r0 * e00 + r1 * e01 + r2 * e02)
        R[i, 1] = 1.5 * r1 - 0.5 * (r0 * e01 + r1 * e11 + r2 * e12)
        R[i, 2] = 1.5 * r2 - 0.5 * (r0 * e02 + r1 * e12 + r2 * e22)


@compiled(f"void({_A2})")
def _symmetrise(P: Array) -> None:
    for i in range(P.shape[0]):
        for j in range(i):
            mean = 0.5 * (P[i, j] + P[j, i])
            P[i, j] = mean
            P[j, i] = mean


@compiled(f"void({_A2}, {_A2}, {_B1}, {_A1}, {_A1}, float64)")
def _add_process_noise(x: Array, P: Array, active: BoolArray, noise: Array, contact_std: Array, dt: float) -> None:
    """P += Ad Q Ad' dt. Isotropic noise makes the rotation drop out: skew(a) skew(b)' = (a.b) I - b a'."""
    gyro = noise[0] * noise[0] * dt
    for i in range(3):
        P[ROT + i, ROT + i] += gyro
        P[VEL + i, VEL + i] += noise[1] * noise[1] * dt
        P[BG + i, BG + i] += noise[2] * noise[2] * dt
        P[BA + i, BA + i] += noise[3] * noise[3] * dt
    for m in range(x.shape[0]):
        if m >= 2 and not active[m - 2]:
            continue
        row = VEL + 3 * m if m < 2 else FEET + 3 * (m - 2)
        if m >= 2:
            foot = contact_std[m - 2] * contact_std[m - 2] * dt
            for i in range(3):
                P[row + i, row + i] += foot
        a0, a1, a2 = gyro * x[m, 0], gyro * x[m, 1], gyro * x[m, 2]
        P[row + 1, ROT] += a2
        P[row + 2, ROT] -= a1
        P[row, ROT + 1] -= a2
        P[row + 2, ROT + 1] += a0
        P[row, ROT + 2] += a1
        P[row + 1, ROT + 2] -= a0
        P[ROT, row + 1] += a2
        P[ROT, row + 2] -= a1
        P[ROT + 1, row] -= a2
        P[ROT + 1, row + 2] += a0
        P[ROT + 2, row] += a1
        P[ROT + 2, row + 1] -= a0
        for n in range(x.shape[0]):
            if n >= 2 and not active[n - 2]:
                continue
            column = VEL + 3 * n if n < 2 else FEET + 3 * (n - 2)
            dot = a0 * x[n, 0] + a1 * x[n, 1] + a2 * x[n, 2]
            for i in range(3):
                P[row + i, column + i] += dot
                P[row + i, column] -= x[n, i] * a0
                P[row + i, column + 1] -= x[n, i] * a1
                P[row + i, column + 2] -= x[n, i] * a2


@compiled(f"void({_A2}, {_A2}, {_A2}, float64, float64, boolean)")
def _bias_blocks(R: Array, x: Array, out: Array, gravity: float, dt: float, exact: bool) -> None:
    """Blocks of Phi from the gyro bias to velocity, position and feet, stacked (3 (2 + L), 3).

    -(v^ dt + g^ dt^2/2) R, -(p^ dt + v^ dt^2/2 + g^ dt^3/6) R and -d^ R dt; first order keeps the terms in dt.
    """
    half, sixth = (0.5 * dt * dt, dt * dt * dt / 6.0) if exact else (0.0, 0.0)
    for m in range(x.shape[0]):
        w0, w1, w2 = -dt * x[m, 0], -dt * x[m, 1], -dt * x[m, 2]
        if m == 0:
            w2 -= half * gravity
        elif m == 1:
            w0 -= half * x[0, 0]
            w1 -= half * x[0, 1]
            w2 -= half * x[0, 2] + sixth * gravity
        for j in range(3):
            out[3 * m, j] = w1 * R[2, j] - w2 * R[1, j]
            out[3 * m + 1, j] = w2 * R[0, j] - w0 * R[2, j]
            out[3 * m + 2, j] = w0 * R[1, j] - w1 * R[0, j]


@compiled(f"void({_A2}, {_A2}, {_A2}, {_B1}, {_A2}, float64, float64, boolean)")
def _propagate_covariance(
    R: Array, x: Array, P: Array, active: BoolArray, blocks: Array, gravity: float, dt: float, exact: bool
) -> None:
    """P <- Phi P Phi' by rows, then by columns; Phi = exp(A dt), whose series ends since A^4 = 0."""
    n = P.shape[0]
    half = 0.5 * dt * dt if exact else 0.0
    lean, dip = gravity * dt, gravity * half  # g^ dt and g^ dt^2 / 2: only two entries are not zero
    _bias_blocks(R, x, blocks, gravity, dt, exact)
    # Order matters: each row block uses only rows that have not been changed yet.
    for m in range(x.shape[0] - 2):
        if active[m]:
            for i in range(3):
                row = P[FEET + 3 * m + i]
                f = blocks[6 + 3 * m + i]
                for j in range(n):
                    row[j] += f[0] * P[BG, j] + f[1] * P[BG + 1, j] + f[2] * P[BG + 2, j]
    for i in range(3):
        row = P[POS + i]
        f = blocks[3 + i]
        h0, h1, h2 = half * R[i, 0], half * R[i, 1], half * R[i, 2]
        for j in range(n):
            row[j] += (
                dt * P[VEL + i, j]
                + (f[0] * P[BG, j] + f[1] * P[BG + 1, j] + f[2] * P[BG + 2, j])
                - (h0 * P[BA, j] + h1 * P[BA + 1, j] + h2 * P[BA + 2, j])
            )
    for i in range(3):
        row = P[VEL + i]
        f = blocks[i]
        h0, h1, h2 = dt * R[i, 0], dt * R[i, 1], dt * R[i, 2]
        for j in range(n):
            row[j] += (f[0] * P[BG, j] + f[1] * P[BG + 1, j] + f[2] * P[BG + 2, j]) - (
                h0 * P[BA, j] + h1 * P[BA + 1, j] + h2 * P[BA + 2, j]
            )
    for j in range(n):
        P[POS, j] -= dip * P[ROT + 1, j]
        P[POS + 1, j] += dip * P[ROT, j]
        P[VEL, j] -= lean * P[ROT + 1, j]
        P[VEL + 1, j] += lean * P[ROT, j]
    for i in range(3):
        row = P[ROT + i]
        h0, h1, h2 = dt * R[i, 0], dt * R[i, 1], dt * R[i, 2]
        for j in range(n):
            row[j] -= h0 * P[BG, j] + h1 * P[BG + 1, j] + h2 * P[BG + 2, j]
    for k in range(n):
        row = P[k]
        g0, g1, g2 = row[BG], row[BG + 1], row[BG + 2]
        a0, a1, a2 = row[BA], row[BA + 1], row[BA + 2]
        for m in range(x.shape[0] - 2):
            if active[m]:
                for i in range(3):
                    f = blocks[6 + 3 * m + i]
                    row[FEET + 3 * m + i] += f[0] * g0 + f[1] * g1 + f[2] * g2
        for i in range(3):
            f, h = blocks[i], blocks[3 + i]
            ra = R[i, 0] * a0 + R[i, 1] * a1 + R[i, 2] * a2
            row[POS + i] += dt * row[VEL + i] + (h[0] * g0 + h[1] * g1 + h[2] * g2) - half * ra
            row[VEL + i] += (f[0] * g0 + f[1] * g1 + f[2] * g2) - dt * ra
        row[POS] -= dip * row[ROT + 1]
        row[POS + 1] += dip * row[ROT]
        row[VEL] -= lean * row[ROT + 1]
        row[VEL + 1] += lean * row[ROT]
        for i in range(3):
            row[ROT + i] -= dt * (R[i, 0] * g0 + R[i, 1] * g1 + R[i, 2] * g2)
    _symmetrise(P)


@compiled(f"boolean({_STATE}, {_A1}, {_A1}, {_A2}, {_A1}, {_A1}, float64, float64, boolean, boolean)")
def propagate(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    noise: Array, contact_std: Array, foot_vel_b: Array, gyro: Array, accel: Array,
    gravity: float, dt: float, exact_mean: bool, exact_phi: bool,
) -> bool:  # fmt: skip
    """One IMU sample, held over `dt` seconds.

    Args:
        R, x, b, P, active, work, slots: the state, as above.
        noise: densities of gyro, accelerometer, gyro bias walk, accelerometer bias walk (4,).
        contact_std: density of each foot's random walk (L,).
        foot_vel_b: known velocity of each foot's contact point in the body frame (L, 3): how it rolls.
        gyro: angular rate (3,).
        accel: specific force (3,).
        gravity: z component of gravity in the world, -9.81.
        dt: seconds.
        exact_mean: integrate the turning of the body within the step; otherwise hold the orientation.
        exact_phi: keep all terms of the transition matrix; otherwise those of first order.

    Returns:
        False, with nothing changed, if the sample is not finite or of the wrong size, or time stands still.
    """
    if gyro.size != 3 or accel.size != 3 or contact_std.size != active.size or foot_vel_b.size != 3 * active.size:
        return False
    total = gyro[0] + gyro[1] + gyro[2] + accel[0] + accel[1] + accel[2]
    if not (math.isfinite(total) and math.isfinite(dt) and dt > 0.0):
        return False
    _add_process_noise(x, P, active, noise, contact_std, dt)
    _propagate_covariance(R, x, P, active, work[0], gravity, dt, exact_phi)
    scratch = work[0].reshape(-1)
    w = scratch[0:3]
    turn, gamma1, gamma2 = scratch[3:12].reshape(3, 3), scratch[12:21].reshape(3, 3), scratch[21:30].reshape(3, 3)
    for i in range(3):
        w[i] = dt * (gyro[i] - b[0, i])
    lie.gammas_into(w, turn, gamma1, gamma2)
    a0, a1, a2 = accel[0] - b[1, 0], accel[1] - b[1, 1], accel[2] - b[1, 2]
    f0, f1, f2 = a0, a1, a2
    s0, s1, s2 = 0.5 * a0, 0.5 * a1, 0.5 * a2
    if exact_mean:
        f0 = gamma1[0, 0] * a0 + gamma1[0, 1] * a1 + gamma1[0, 2] * a2
        f1 = gamma1[1, 0] * a0 + gamma1[1, 1] * a1 + gamma1[1, 2] * a2
        f2 = gamma1[2, 0] * a0 + gamma1[2, 1] * a1 + gamma1[2, 2] * a2
        s0 = gamma2[0, 0] * a0 + gamma2[0, 1] * a1 + gamma2[0, 2] * a2
        s1 = gamma2[1, 0] * a0 + gamma2[1, 1] * a1 + gamma2[1, 2] * a2
        s2 = gamma2[2, 0] * a0 + gamma2[2, 1] * a1 + gamma2[2, 2] * a2
    for i in range(3):
        down = gravity if i == 2 else 0.0
        x[1, i] += dt * x[0, i] + dt * dt * (R[i, 0] * s0 + R[i, 1] * s1 + R[i, 2] * s2 + 0.5 * down)
        x[0, i] += dt * (R[i, 0] * f0 + R[i, 1] * f1 + R[i, 2] * f2 + down)
    for m in range(x.shape[0] - 2):
        if active[m]:
            u0, u1, u2 = foot_vel_b[m, 0], foot_vel_b[m, 1], foot_vel_b[m, 2]
            for i in range(3):
                x[2 + m, i] += dt * (R[i, 0] * u0 + R[i, 1] * u1 + R[i, 2] * u2)
    for i in range(3):
        r0, r1, r2 = R[i, 0], R[i, 1], R[i, 2]
        for j in range(3):
            R[i, j] = r0 * turn[0, j] + r1 * turn[1, j] + r2 * turn[2, j]
    _orthonormalise(R)
    return True


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
    _orthonormalise(R)


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


@compiled(f"boolean({_STATE}, int64)")
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
    _symmetrise(P)
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


@compiled(f"boolean({_STATE}, {_A1}, {_A2})")
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


@compiled(f"boolean({_STATE}, {_A2}, {_A3})")
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
    f"boolean({_STATE}, {_A1}, {_A1}, {_A2}, {_A1}, {_A1}, float64, float64, boolean, boolean, {_A1}, {_A2})",
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
