"""The right-invariant EKF, compiled: carry the state over one IMU sample. `layout.py` explains the arrays."""

from __future__ import annotations

import math

from gait import lie
from gait._compile import compiled
from gait.arrays import Array, BoolArray, IntArray
from gait.filters.layout import BA, BG, FEET, POS, ROT, STATE, VEL, orthonormalise, symmetrise

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
_B1 = "boolean[::1]"


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
    symmetrise(P)


@compiled(f"boolean({STATE}, {_A1}, {_A1}, {_A2}, {_A1}, {_A1}, float64, float64, boolean, boolean)")
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
    orthonormalise(R)
    return True
