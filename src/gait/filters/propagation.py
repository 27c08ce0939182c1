"""The right-invariant EKF, compiled: carry the state over one IMU sample. `layout.py` explains the arrays."""

from __future__ import annotations

import math
from typing import Any

from gait import lie
from gait._compile import kernel
from gait._lanes import each4, fill4, load4, store
from gait.arrays import Array, BoolArray, IntArray
from gait.filters.layout import BA, BG, FEET, POS, ROT, STATE, VEL, orthonormalise

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
_A3 = "float64[:, :, ::1]"
_B1 = "boolean[::1]"


@kernel("UniTuple(float64, 3)(UniTuple(float64, 3), float64, float64, float64, float64, float64, float64)")
def series(
    w: tuple[float, float, float], one: float, first: float, second: float, x: float, y: float, z: float
) -> tuple[float, float, float]:
    """(one I + first w^ + second w^ w^) (x, y, z): the exponential of w and its integrals, without their matrices."""
    a, b, c = w[1] * z - w[2] * y, w[2] * x - w[0] * z, w[0] * y - w[1] * x
    return (
        one * x + (first * a + second * (w[1] * c - w[2] * b)),
        one * y + (first * b + second * (w[2] * a - w[0] * c)),
        one * z + (first * c + second * (w[0] * b - w[1] * a)),
    )


@kernel(f"void({_A2}, {_A2}, {_B1}, {_A1}, {_A1}, float64, float64)")
def _add_process_noise(
    x: Array, P: Array, active: BoolArray, noise: Array, contact_std: Array, pushed: float, dt: float
) -> None:
    """P += Ad Q Ad' dt. Isotropic noise makes the rotation drop out: skew(a) skew(b)' = (a.b) I - b a'.

    `pushed` is the square of the body's acceleration.
    """
    gyro, accel = noise[0] * noise[0] * dt, (noise[1] * noise[1] + noise[4] * noise[4] * pushed) * dt
    for i in range(3):
        P[ROT + i, ROT + i] += gyro
        P[VEL + i, VEL + i] += accel
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


@kernel(f"void({_A2}, {_A2}, {_A2}, float64, float64, boolean)")
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


@kernel()
def _dot4(factors: Array, row: int, a: Any, b: Any, c: Any) -> Any:
    """Three vectors, each times a number of a row of factors."""
    at = row * factors.shape[1]
    return each4(factors, at) * a + each4(factors, at + 1) * b + each4(factors, at + 2) * c


@kernel(f"void({_A2}, {_A2}, {_B1}, {_A2}, {_A2}, float64, float64, float64, float64)")
def _move_rows(
    R: Array, P: Array, active: BoolArray, blocks: Array, T: Array, lean: float, dip: float, dt: float, half: float
) -> None:
    """T = Phi P, four columns at a time: rows of rotation, velocity, position and of the active feet after them."""
    n = P.shape[0]
    for first in range(0, n, 4):
        j = min(first, n - 4)  # the last four share columns with those before, and find the same numbers
        r0, r1 = load4(P, ROT * n + j), load4(P, (ROT + 1) * n + j)
        g0, g1, g2 = load4(P, BG * n + j), load4(P, (BG + 1) * n + j), load4(P, (BG + 2) * n + j)
        a0, a1, a2 = load4(P, BA * n + j), load4(P, (BA + 1) * n + j), load4(P, (BA + 2) * n + j)
        for i in range(3):
            vel, pos = load4(P, (VEL + i) * n + j), load4(P, (POS + i) * n + j)
            accel = _dot4(R, i, a0, a1, a2)
            store(T, (ROT + i) * n + j, load4(P, (ROT + i) * n + j) - fill4(dt) * _dot4(R, i, g0, g1, g2))
            new_pos = (pos + fill4(dt) * vel + _dot4(blocks, 3 + i, g0, g1, g2)) - fill4(half) * accel
            new_vel = (vel + _dot4(blocks, i, g0, g1, g2)) - fill4(dt) * accel
            if i == 0:
                new_pos, new_vel = new_pos - fill4(dip) * r1, new_vel - fill4(lean) * r1
            elif i == 1:
                new_pos, new_vel = new_pos + fill4(dip) * r0, new_vel + fill4(lean) * r0
            store(T, (VEL + i) * n + j, new_vel)
            store(T, (POS + i) * n + j, new_pos)
        for m in range(active.size):
            if active[m]:
                for i in range(3):
                    row = 3 * m + i
                    foot = load4(P, (FEET + row) * n + j) + _dot4(blocks, 6 + row, g0, g1, g2)
                    store(T, (BG + row) * n + j, foot)


@kernel(f"void({_A2}, {_A2}, {_A2}, {_B1}, {_A2}, {_A3}, float64, float64, boolean)")
def _propagate_covariance(
    R: Array, x: Array, P: Array, active: BoolArray, blocks: Array, work: Array, gravity: float, dt: float, exact: bool
) -> None:
    """P <- Phi P Phi'; Phi = exp(A dt), whose series ends since A^4 = 0.

    Rows first, into T, then columns. P is symmetric, so each number is computed once and written twice.
    """
    n = P.shape[0]
    half = 0.5 * dt * dt if exact else 0.0
    lean, dip = gravity * dt, gravity * half  # g^ dt and g^ dt^2 / 2: only two entries are not zero
    _bias_blocks(R, x, blocks, gravity, dt, exact)
    T = work.reshape(-1, n)
    _move_rows(R, P, active, blocks, T, lean, dip, dt, half)
    for k in range(BG + 3 * active.size):
        if k >= BG and not active[(k - BG) // 3]:
            continue
        row, to = T[k], k if k < BG else k + FEET - BG
        g0, g1, g2 = row[BG], row[BG + 1], row[BG + 2]
        a0, a1, a2 = row[BA], row[BA + 1], row[BA + 2]
        for i in range(3):
            value = row[ROT + i] - dt * (R[i, 0] * g0 + R[i, 1] * g1 + R[i, 2] * g2)
            P[to, ROT + i] = P[ROT + i, to] = value
            P[to, BG + i] = P[BG + i, to] = row[BG + i]
            P[to, BA + i] = P[BA + i, to] = row[BA + i]
        if k < VEL:
            continue
        for i in range(3):
            f = blocks[i]
            value = (row[VEL + i] + (f[0] * g0 + f[1] * g1 + f[2] * g2)) - dt * (
                R[i, 0] * a0 + R[i, 1] * a1 + R[i, 2] * a2
            )
            if i == 0:
                value -= lean * row[ROT + 1]
            elif i == 1:
                value += lean * row[ROT]
            P[to, VEL + i] = P[VEL + i, to] = value
        if k < POS:
            continue
        for i in range(3):
            f = blocks[3 + i]
            value = (row[POS + i] + dt * row[VEL + i] + (f[0] * g0 + f[1] * g1 + f[2] * g2)) - half * (
                R[i, 0] * a0 + R[i, 1] * a1 + R[i, 2] * a2
            )
            if i == 0:
                value -= dip * row[ROT + 1]
            elif i == 1:
                value += dip * row[ROT]
            P[to, POS + i] = P[POS + i, to] = value
        for m in range((to - FEET) // 3 + 1):
            if active[m]:
                for i in range(3):
                    f, column = blocks[6 + 3 * m + i], FEET + 3 * m + i
                    P[to, column] = P[column, to] = row[column] + (f[0] * g0 + f[1] * g1 + f[2] * g2)


@kernel(f"boolean({STATE}, {_A1}, {_A1}, {_A2}, {_A1}, {_A1}, float64, float64, boolean, boolean)")
def propagate(
    R: Array, x: Array, b: Array, P: Array, active: BoolArray, work: Array, slots: IntArray,
    noise: Array, contact_std: Array, foot_vel_b: Array, gyro: Array, accel: Array,
    gravity: float, dt: float, exact_mean: bool, exact_phi: bool,
) -> bool:  # fmt: skip
    """One IMU sample, held over `dt` seconds.

    Args:
        R, x, b, P, active, work, slots: the state, as above.
        noise: densities, as `ProcessNoise` has them (5,).
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
    a0, a1, a2 = accel[0] - b[1, 0], accel[1] - b[1, 1], accel[2] - b[1, 2]
    pushed = 0.0
    for i in range(3):
        push = R[i, 0] * a0 + R[i, 1] * a1 + R[i, 2] * a2 + (gravity if i == 2 else 0.0)
        pushed += push * push
    _add_process_noise(x, P, active, noise, contact_std, pushed, dt)
    _propagate_covariance(R, x, P, active, work[0], work[1:], gravity, dt, exact_phi)
    w = dt * (gyro[0] - b[0, 0]), dt * (gyro[1] - b[0, 1]), dt * (gyro[2] - b[0, 2])
    c1, c2, c3, c4 = lie.coefficients(math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
    f0, f1, f2 = a0, a1, a2
    s0, s1, s2 = 0.5 * a0, 0.5 * a1, 0.5 * a2
    if exact_mean:
        f0, f1, f2 = series(w, 1.0, c2, c3, a0, a1, a2)
        s0, s1, s2 = series(w, 0.5, c3, c4, a0, a1, a2)
    for i in range(3):
        down = gravity if i == 2 else 0.0
        x[1, i] += dt * x[0, i] + dt * dt * (R[i, 0] * s0 + R[i, 1] * s1 + R[i, 2] * s2 + 0.5 * down)
        x[0, i] += dt * (R[i, 0] * f0 + R[i, 1] * f1 + R[i, 2] * f2 + down)
    for m in range(x.shape[0] - 2):
        if active[m]:
            u0, u1, u2 = foot_vel_b[m, 0], foot_vel_b[m, 1], foot_vel_b[m, 2]
            for i in range(3):
                x[2 + m, i] += dt * (R[i, 0] * u0 + R[i, 1] * u1 + R[i, 2] * u2)
    for i in range(3):  # R exp(w), by rows: exp(w)' = exp(-w)
        R[i, 0], R[i, 1], R[i, 2] = series(w, 1.0, -c1, c2, R[i, 0], R[i, 1], R[i, 2])
    orthonormalise(R)
    return True
