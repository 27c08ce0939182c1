/* Corrections of the right-invariant EKF: by a velocity, by feet, by any measurement. */
#include <math.h>
#include <string.h>

#include "core.h"
#include "vector.h"

enum { MAX_ROWS = 3 * GAIT_MAX_LEGS > 6 ? 3 * GAIT_MAX_LEGS : 6 };

/* X <- exp(delta) X, and the biases by addition; contact points that are not in the state stay as they are. Static, so that
 * corrections inline it. */
static void retract(gait_filter *f, const double *delta)
{
    double c[4], turned[3], added[3];
    lie_coefficients(sqrt(delta[0] * delta[0] + delta[1] * delta[1] + delta[2] * delta[2]), c);
    for (int m = 0; m < 2 + f->feet; m++) {
        if (!in_state(f, m)) continue;
        lie_series(delta, 1.0, c[0], c[1], f->x[m], turned);
        lie_series(delta, 1.0, c[1], c[2], delta + row_of(m), added);
        for (int i = 0; i < 3; i++) f->x[m][i] = turned[i] + added[i];
    }
    for (int j = 0; j < 3; j++) {
        const double column[3] = {f->R[j], f->R[3 + j], f->R[6 + j]};
        f->b[0][j] += delta[BG + j];
        f->b[1][j] += delta[BA + j];
        lie_series(delta, 1.0, c[0], c[1], column, turned);
        for (int i = 0; i < 3; i++) f->R[3 * i + j] = turned[i];
    }
    lie_orthonormalise(f->R);
}

void filter_retract(gait_filter *f, const double *delta)
{
    retract(f, delta);
}

/* S = L L' in place, in the lower triangle of m rows; 0 if S is not positive definite. */
int filter_cholesky(double *S, int m)
{
    for (int j = 0; j < m; j++) {
        double total = S[j * m + j];
        for (int k = 0; k < j; k++) total -= S[j * m + k] * S[j * m + k];
        if (!(total > 0.0)) return 0;
        S[j * m + j] = sqrt(total);
        for (int i = j + 1; i < m; i++) {
            total = S[i * m + j];
            for (int k = 0; k < j; k++) total -= S[i * m + k] * S[j * m + k];
            S[i * m + j] = total / S[j * m + j];
        }
    }
    return 1;
}

/* to = scale (from - sum over k of factors[k * step] rows[k]): `ld` columns, a multiple of eight, which is also how far rows
 * are apart. The sums of a block of columns stay in registers. */
GAIT_INLINE void subtract_rows(double *to, const double *from, const double *factors, int step, int count, const double *rows,
                          int ld, double scale)
{
    enum { REGISTERS = 8 / VEC_DOUBLES };
    for (int j = 0; j < ld; j += 8) {
        vec_doubles even[REGISTERS], odd[REGISTERS];
        int k = 0;
        GAIT_UNROLL for (int g = 0; g < REGISTERS; g++) {
            even[g] = vec_load_doubles(from + j + g * VEC_DOUBLES);
            odd[g] = vec_zero_doubles();
        }
        for (; k + 1 < count; k += 2) {
            const double *row = rows + k * ld + j, a = -factors[k * step], b = -factors[(k + 1) * step];
            GAIT_UNROLL for (int g = 0; g < REGISTERS; g++) {
                even[g] = vec_fma_double(vec_load_doubles(row + g * VEC_DOUBLES), a, even[g]);
                odd[g] = vec_fma_double(vec_load_doubles(row + ld + g * VEC_DOUBLES), b, odd[g]);
            }
        }
        if (k < count)
            GAIT_UNROLL for (int g = 0; g < REGISTERS; g++)
                even[g] = vec_fma_double(vec_load_doubles(rows + k * ld + j + g * VEC_DOUBLES), -factors[k * step], even[g]);
        GAIT_UNROLL for (int g = 0; g < REGISTERS; g++)
            vec_store_doubles(to + j + g * VEC_DOUBLES, (even[g] + odd[g]) * scale);
    }
}

/* X = (L L')^-1 B for m rows of n columns, a multiple of eight. */
GAIT_INLINE void solve(const double *L, const double *B, double *X, int m, int n)
{
    for (int i = 0; i < m; i++) subtract_rows(X + i * n, B + i * n, L + i * m, 1, i, X, n, 1.0 / L[i * m + i]);
    for (int i = m - 1; i >= 0; i--)
        subtract_rows(X + i * n, X + i * n, L + (i + 1) * m + i, m, m - 1 - i, X + (i + 1) * n, n, 1.0 / L[i * m + i]);
}

static void mirror(double *P, int size, int ld)
{
    for (int i = 1; i < size; i++)
        for (int j = 0; j < i; j++) P[j * ld + i] = P[i * ld + j];
}

/* Rows r to r + 2 of P - K' HP - left' K, up to the diagonal, for m rows of a measurement. The sums of three rows stay in
 * registers, so that what they are made of is fetched once. */
GAIT_INLINE void correct_rows(double *P, int r, const double *K, const double *left, const double *HP, int m, int ld)
{
    for (int j = 0; j < r + 3; j += VEC_DOUBLES) {
        vec_doubles even[3], odd[3];
        GAIT_UNROLL for (int i = 0; i < 3; i++) even[i] = vec_load_doubles(P + (r + i) * ld + j);
        for (int term = 0; term < 2; term++) {
            const double *factors = (term ? left : K) + r, *rows = (term ? K : HP) + j;
            int k = 0;
            GAIT_UNROLL for (int i = 0; i < 3; i++) odd[i] = vec_zero_doubles();
            for (; k + 1 < m; k += 2, factors += 2 * ld, rows += 2 * ld) {
                const vec_doubles a = vec_load_doubles(rows), b = vec_load_doubles(rows + ld);
                GAIT_UNROLL for (int i = 0; i < 3; i++) {
                    even[i] = vec_fma_double(a, -factors[i], even[i]);
                    odd[i] = vec_fma_double(b, -factors[ld + i], odd[i]);
                }
            }
            if (k < m)
                GAIT_UNROLL for (int i = 0; i < 3; i++) even[i] = vec_fma_double(vec_load_doubles(rows), -factors[i], even[i]);
            GAIT_UNROLL for (int i = 0; i < 3; i++) even[i] += odd[i];
        }
        GAIT_UNROLL for (int i = 0; i < 3; i++) vec_store_doubles(P + (r + i) * ld + j, even[i]);
    }
}

/* Kalman correction in Joseph form with m rows of a measurement z = -H xi + noise. HP (m rows, padded) and HPH (m, m)
 * come from the caller, which knows where H is zero; S is N + HPH. Returns 0, with nothing changed, if the measurement is
 * not finite or its covariance not positive definite. */
GAIT_INLINE int correct_sized(gait_filter *f, int m, const double *z, const double *HP, const double *HPH, const double *N,
                              const int size)
{
    const int ld = GAIT_STRIDE(size);
    double K[MAX_ROWS * GAIT_MAX_STRIDE], left[MAX_ROWS * GAIT_MAX_STRIDE];
    double L[MAX_ROWS * MAX_ROWS], S[MAX_ROWS], delta[GAIT_MAX_STRIDE], *P = f->P;
    for (int i = 0; i < m; i++)
        if (!isfinite(z[i])) return 0;
    for (int i = 0; i < m * m; i++) L[i] = N[i] + HPH[i];
    if (!filter_cholesky(L, m)) return 0;
    /* The gain transposed: a row for each measurement. P becomes P - K' HP - (HP - S K)' K, where HP - S K is the
     * rounding error of the solution, which Joseph's form corrects. */
    solve(L, HP, K, m, ld);
    for (int i = 0; i < m; i++) {
        for (int k = 0; k < m; k++) S[k] = N[i * m + k] + HPH[i * m + k];
        subtract_rows(left + i * ld, HP + i * ld, S, 1, m, K, ld, 1.0);
    }
    for (int r = 0; r < size; r += 3) {
        if (r >= FEET && !f->active[(r - FEET) / 3]) continue; /* zero, and so it stays */
        correct_rows(P, r, K, left, HP, m, ld);
        for (int i = r; i < r + 3; i++)
            for (int j = 0; j < i; j++) P[j * ld + i] = P[i * ld + j];
    }
    for (int j = 0; j < ld; j++) delta[j] = 0.0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < ld; j++) delta[j] += z[i] * K[i * ld + j];
    retract(f, delta);
    return 1;
}

/* Four feet are the most common, two of them on the ground: their sizes are constants. */
static int correct_with(gait_filter *f, int m, const double *z, const double *HP, const double *HPH, const double *N)
{
    if (GAIT_MAX_STATES >= FOUR_FEET && f->size == FOUR_FEET) {
        if (m == 6) return correct_sized(f, 6, z, HP, HPH, N, FOUR_FEET);
        return correct_sized(f, m, z, HP, HPH, N, FOUR_FEET);
    }
    return correct_sized(f, m, z, HP, HPH, N, f->size);
}

/* Three rows of H that pick the velocity: S^-1 written out. */
GAIT_INLINE int correct_three(gait_filter *f, const double z[3], const double N[9], int size)
{
    const int ld = GAIT_STRIDE(size);
    double *P = f->P, K[3][GAIT_MAX_STRIDE], F[3][GAIT_MAX_STRIDE], H[3][GAIT_MAX_STRIDE], delta[GAIT_MAX_STRIDE];
    const double *h0 = P + VEL * ld, *h1 = h0 + ld, *h2 = h1 + ld;
    const double S00 = h0[VEL] + N[0], S10 = h1[VEL] + N[3], S20 = h2[VEL] + N[6];
    const double S11 = h1[VEL + 1] + N[4], S21 = h2[VEL + 1] + N[7], S22 = h2[VEL + 2] + N[8];
    /* S = L L', of which the diagonal is kept inverted. */
    if (!(S00 > 0.0)) return 0;
    const double i0 = 1.0 / sqrt(S00), l10 = S10 * i0, l20 = S20 * i0, d1 = S11 - l10 * l10;
    if (!(d1 > 0.0)) return 0;
    const double i1 = 1.0 / sqrt(d1), l21 = (S21 - l20 * l10) * i1, d2 = S22 - l20 * l20 - l21 * l21;
    if (!(d2 > 0.0)) return 0;
    const double i2 = 1.0 / sqrt(d2);
    for (int j = 0; j < ld; j++) {
        const double y0 = h0[j] * i0, y1 = (h1[j] - l10 * y0) * i1;
        const double k2 = (h2[j] - l20 * y0 - l21 * y1) * (i2 * i2);
        const double k1 = (y1 - l21 * k2) * i1, k0 = (y0 - l10 * k1 - l20 * k2) * i0;
        K[0][j] = k0;
        K[1][j] = k1;
        K[2][j] = k2;
        H[0][j] = h0[j];
        H[1][j] = h1[j];
        H[2][j] = h2[j];
        /* F = K N - (I - K H) P H' is the rounding error of K, which Joseph's form corrects. */
        F[0][j] = (S00 * k0 + S10 * k1 + S20 * k2) - h0[j];
        F[1][j] = (S10 * k0 + S11 * k1 + S21 * k2) - h1[j];
        F[2][j] = (S20 * k0 + S21 * k1 + S22 * k2) - h2[j];
        delta[j] = z[0] * k0 + z[1] * k1 + z[2] * k2;
    }
    for (int r = 0; r < size; r++) {
        double *row = P + r * ld;
        const double a = K[0][r], b = K[1][r], c = K[2][r], u = F[0][r], v = F[1][r], w = F[2][r];
        for (int j = 0; j < ld; j++)
            row[j] = (row[j] - (a * H[0][j] + b * H[1][j] + c * H[2][j])) + (u * K[0][j] + v * K[1][j] + w * K[2][j]);
    }
    mirror(P, size, ld);
    retract(f, delta);
    return 1;
}

/* The velocity of the IMU in its own axes. */
int filter_correct_velocity(gait_filter *f, const double vel_i[3], const double cov_i[9])
{
    double z[3], N[9];
    rotate(f->R, vel_i, z);
    for (int i = 0; i < 3; i++) z[i] -= f->x[0][i];
    if (!isfinite(z[0] + z[1] + z[2])) return 0;
    world_covariance(f->R, cov_i, N);
    return f->feet == 0 ? correct_three(f, z, N, NO_FEET) : correct_three(f, z, N, f->size);
}

/* The gyro bias about an axis of the IMU is `bias` more than estimated. */
int filter_correct_gyro_bias(gait_filter *f, const double axis_i[3], double bias, double variance)
{
    const int size = f->size, ld = GAIT_STRIDE(size);
    double *P = f->P, along[GAIT_MAX_STRIDE], delta[GAIT_MAX_STRIDE];
    for (int j = 0; j < ld; j++)
        along[j] = axis_i[0] * P[BG * ld + j] + axis_i[1] * P[(BG + 1) * ld + j] + axis_i[2] * P[(BG + 2) * ld + j];
    const double total = axis_i[0] * along[BG] + axis_i[1] * along[BG + 1] + axis_i[2] * along[BG + 2] + variance;
    if (!(isfinite(bias) && total > 0.0 && isfinite(total))) return 0;
    for (int i = 0; i < size; i++) {
        const double gain = along[i] / total;
        delta[i] = gain * bias;
        for (int j = 0; j < ld; j++) P[i * ld + j] -= gain * along[j];
    }
    mirror(P, size, ld);
    retract(f, delta);
    return 1;
}

/* Forward kinematics of every active foot (contact points in IMU axes), stacked: H is +1 at the foot, -1 at the position.
 * The covariances of the feet are `apart` doubles from each other; 0: they share one. */
int filter_correct_feet(gait_filter *f, double (*feet_i)[3], const double *cov_i, int apart)
{
    const int ld = GAIT_STRIDE(f->size);
    double z[MAX_ROWS], HP[MAX_ROWS * GAIT_MAX_STRIDE], HPH[MAX_ROWS * MAX_ROWS], N[MAX_ROWS * MAX_ROWS];
    int leg_of[GAIT_MAX_LEGS], standing = 0;
    for (int leg = 0; leg < f->feet; leg++)
        if (f->active[leg]) leg_of[standing++] = leg;
    const int m = 3 * standing;
    memset(N, 0, (size_t)(m * m) * sizeof *N);
    for (int k = 0; k < standing; k++) {
        const int leg = leg_of[k];
        double foot_w[3], cov_w[9];
        rotate(f->R, feet_i[leg], foot_w);
        world_covariance(f->R, cov_i + leg * apart, cov_w);
        for (int i = 0; i < 3; i++) {
            const double *foot = f->P + (FEET + 3 * leg + i) * ld, *pos = f->P + (POS + i) * ld;
            z[3 * k + i] = foot_w[i] + f->x[1][i] - f->x[2 + leg][i];
            for (int j = 0; j < ld; j++) HP[(3 * k + i) * ld + j] = foot[j] - pos[j];
            for (int j = 0; j < 3; j++) N[(3 * k + i) * m + 3 * k + j] = cov_w[3 * i + j];
        }
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            HPH[i * m + j] = HP[i * ld + FEET + 3 * leg_of[j / 3] + j % 3] - HP[i * ld + POS + j % 3];
    return m == 0 || correct_with(f, m, z, HP, HPH, N);
}

/* H P and H P H' for H (m, 15). */
static void project(const gait_filter *f, int m, const double *H, double *HP, double *HPH)
{
    const int ld = GAIT_STRIDE(f->size);
    memset(HP, 0, (size_t)(m * ld) * sizeof *HP);
    memset(HPH, 0, (size_t)(m * m) * sizeof *HPH);
    for (int i = 0; i < m; i++)
        for (int k = 0; k < 15; k++)
            for (int j = 0; j < ld; j++) HP[i * ld + j] += H[15 * i + k] * f->P[k * ld + j];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++)
            for (int k = 0; k < 15; k++) HPH[i * m + j] += HP[i * ld + k] * H[15 * j + k];
}

/* Any measurement of the 15 states: H (m, 15), at most six rows at a time. */
int filter_correct(gait_filter *f, int m, const double *z, const double *H, const double *N)
{
    double HP[MAX_ROWS * GAIT_MAX_STRIDE], HPH[MAX_ROWS * MAX_ROWS];
    if (m < 1 || m > MAX_ROWS) return 0;
    project(f, m, H, HP, HPH);
    return correct_with(f, m, z, HP, HPH, N);
}

/* The NIS of such a measurement, z' S^-1 z; nan if its covariance is not positive definite. */
double filter_nis(const gait_filter *f, int m, const double *z, const double *H, const double *N)
{
    double HP[MAX_ROWS * GAIT_MAX_STRIDE], S[MAX_ROWS * MAX_ROWS], y[MAX_ROWS], nis = 0.0;
    project(f, m, H, HP, S);
    for (int i = 0; i < m * m; i++) S[i] += N[i];
    if (!filter_cholesky(S, m)) return NAN;
    for (int i = 0; i < m; i++) {
        y[i] = z[i];
        for (int k = 0; k < i; k++) y[i] -= S[i * m + k] * y[k];
        y[i] /= S[i * m + i];
        nis += y[i] * y[i];
    }
    return nis;
}
