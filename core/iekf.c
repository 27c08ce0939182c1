/* The right-invariant EKF: propagate by an IMU sample, correct by a velocity, by feet, by anything.
 *
 * What src/gait/reference/filter.py says in a few lines of numpy is written out here along the zeros of Phi and H. Rows
 * of the covariance are padded to whole vector registers; the padding stays zero. */
#include <math.h>
#include <string.h>

#include "core.h"
#include "vector.h"

/* The size of the state is a constant where it is one of these, and loops over it unroll: callers compile bodies twice. */
enum { NO_FEET = 15, FOUR_FEET = 27 };

enum { MAX_ROWS = 3 * GAIT_MAX_LEGS > 6 ? 3 * GAIT_MAX_LEGS : 6 };

/* No legged robot moves faster, and a filter with a larger standard deviation knows nothing. */
static const double MAX_SPEED = 12.0, MAX_STD = 100.0;

void filter_init(gait_filter *f, int feet)
{
    memset(f, 0, filter_bytes(FEET + 3 * feet));
    f->feet = feet;
    f->size = FEET + 3 * feet;
    f->R[0] = f->R[4] = f->R[8] = 1.0;
}

/* Covariance of a state known to these standard deviations, no feet. They are about velocity and position themselves:
 * v_hat - v = xi_v + xi_R x v, and likewise for the position. */
void filter_prior(gait_filter *f, const double std[15])
{
    const int ld = GAIT_STRIDE(f->size);
    double *P = f->P;
    memset(P, 0, (size_t)(f->size * ld) * sizeof *P);
    memset(f->active, 0, sizeof f->active);
    for (int i = 0; i < 15; i++) P[i * ld + i] = std[i] * std[i];
    for (int k = 0; k < 3; k++) {
        /* A rotation about axis k moves a vector x by x cross k: column k of skew(x). */
        const double variance = std[k] * std[k];
        const int a = (k + 1) % 3, b = (k + 2) % 3;
        for (int m = 0; m < 2; m++) {
            const double *x = f->x[m];
            const int row = VEL + 3 * m;
            P[(row + a) * ld + k] = P[k * ld + row + a] = x[b] * variance;
            P[(row + b) * ld + k] = P[k * ld + row + b] = -x[a] * variance;
            for (int n = 0; n < 2; n++) {
                const double *y = f->x[n];
                const int column = VEL + 3 * n;
                P[(row + a) * ld + column + a] += x[b] * y[b] * variance;
                P[(row + a) * ld + column + b] -= x[b] * y[a] * variance;
                P[(row + b) * ld + column + a] -= x[a] * y[b] * variance;
                P[(row + b) * ld + column + b] += x[a] * y[a] * variance;
            }
        }
    }
}

/* Start at rest: roll and pitch of base_link from the specific force; heading, velocity and position zero. Returns 0,
 * with nothing changed, if the force is not that of a robot at rest. */
int filter_align(gait_filter *f, const gait_robot *robot, const double std[15], const double accel[3], double gravity)
{
    double force[3];
    rotate(robot->R_bi, accel, force);
    const double norm = sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2]) / fabs(gravity);
    if (!(norm > 0.5 && norm < 1.5)) return 0;
    const double roll = atan2(force[1], force[2]), pitch = atan2(-force[0], hypot(force[1], force[2]));
    const double cr = cos(roll), sr = sin(roll), cp = cos(pitch), sp = sin(pitch);
    const double R_wb[9] = {cp, sp * sr, sp * cr, 0.0, cr, -sr, -sp, cp * sr, cp * cr};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            f->R[3 * i + j] = R_wb[3 * i] * robot->R_bi[j] + R_wb[3 * i + 1] * robot->R_bi[3 + j]
                + R_wb[3 * i + 2] * robot->R_bi[6 + j];
    memset(f->x, 0, sizeof f->x);
    memset(f->b, 0, sizeof f->b);
    rotate(R_wb, robot->p_bi, f->x[1]);
    filter_prior(f, std);
    return 1;
}

static int row_of(int m)
{
    return m < 2 ? VEL + 3 * m : FEET + 3 * (m - 2);
}

static int in_state(const gait_filter *f, int m)
{
    return m < 2 || f->active[m - 2];
}

/* Errors of the vertical velocity last: feet give way at each touch-down and recover at lift-off. Up to so large, m/s. */
static const double MOST_LASTING = 0.1;

/* P += Ad Q Ad' dt. What the position drifts by, the feet on the ground drift by as well. Isotropic noise makes the rotation drop out: skew(a) skew(b)' = (a.b) I - b a'. */
GAIT_INLINE void add_process_noise(gait_filter *f, const gait_noise *noise, const double *walk, double acceleration2, double dt,
                              int size)
{
    const int ld = GAIT_STRIDE(size), vectors = 2 + (size - FEET) / 3;
    const double gyro = noise->gyro * noise->gyro * dt;
    const double accel = (noise->accel * noise->accel + noise->accel_share * noise->accel_share * acceleration2) * dt;
    const double *v = f->x[0], speed2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    const double position = (noise->position * noise->position + noise->position_share * noise->position_share * speed2) * dt;
    double *P = f->P;
    const double lasting = smaller(P[(VEL + 2) * ld + VEL + 2], MOST_LASTING * MOST_LASTING);
    const double height = noise->height_time * lasting * dt;
    for (int i = 0; i < 3; i++) {
        P[(ROT + i) * ld + ROT + i] += gyro;
        P[(VEL + i) * ld + VEL + i] += accel;
        P[(BG + i) * ld + BG + i] += noise->gyro_bias * noise->gyro_bias * dt;
        P[(BA + i) * ld + BA + i] += noise->accel_bias * noise->accel_bias * dt;
    }
    for (int m = 0; m < vectors; m++) {
        if (!in_state(f, m)) continue;
        const int row = row_of(m);
        const double a[3] = {gyro * f->x[m][0], gyro * f->x[m][1], gyro * f->x[m][2]};
        for (int k = 0; k < 3; k++) {
            const int u = (k + 1) % 3, v = (k + 2) % 3;
            P[(row + u) * ld + ROT + k] += a[v];
            P[(row + v) * ld + ROT + k] -= a[u];
            P[(ROT + k) * ld + row + u] += a[v];
            P[(ROT + k) * ld + row + v] -= a[u];
        }
        for (int i = 0; m >= 2 && i < 3; i++) P[(row + i) * ld + row + i] += walk[m - 2] * walk[m - 2] * dt;
        for (int n = 0; n < vectors; n++) {
            if (!in_state(f, n)) continue;
            const int column = row_of(n);
            const double *y = f->x[n], dot = a[0] * y[0] + a[1] * y[1] + a[2] * y[2] + (m && n ? position : 0.0);
            for (int i = 0; i < 3; i++) {
                double *p = P + (row + i) * ld + column;
                for (int j = 0; j < 3; j++) p[j] -= y[i] * a[j];
                p[i] += dot;
            }
            if (m && n) P[(row + 2) * ld + column + 2] += height;
        }
    }
}

/* Blocks of Phi from the gyro bias to velocity, position and feet: -(v^ dt + g^ dt^2/2) R, -(p^ dt + v^ dt^2/2 +
 * g^ dt^3/6) R and -d^ R dt; first order keeps the terms in dt. */
GAIT_INLINE void bias_blocks(const gait_filter *f, double gravity, double dt, int exact, int size, double (*blocks)[3])
{
    const double half = exact ? 0.5 * dt * dt : 0.0, sixth = exact ? dt * dt * dt / 6.0 : 0.0;
    for (int m = 0; m < 2 + (size - FEET) / 3; m++) {
        double w[3] = {-dt * f->x[m][0], -dt * f->x[m][1], -dt * f->x[m][2]};
        if (m == 0) w[2] -= half * gravity;
        if (m == 1) {
            w[0] -= half * f->x[0][0];
            w[1] -= half * f->x[0][1];
            w[2] -= half * f->x[0][2] + sixth * gravity;
        }
        for (int j = 0; j < 3; j++) {
            blocks[3 * m][j] = w[1] * f->R[6 + j] - w[2] * f->R[3 + j];
            blocks[3 * m + 1][j] = w[2] * f->R[j] - w[0] * f->R[6 + j];
            blocks[3 * m + 2][j] = w[0] * f->R[3 + j] - w[1] * f->R[j];
        }
    }
}

typedef struct {
    double blocks[3 * (2 + GAIT_MAX_LEGS)][3]; /* from the gyro bias */
    double lean, dip;                          /* g^ dt and g^ dt^2 / 2: only two entries are not zero */
    double dt, half;
} transition;

/* T = Phi P, row by row; rows of the biases do not change and are left out, so feet follow the position. */
GAIT_INLINE void apply_rows(const gait_filter *f, const transition *phi, const double *restrict P, double *restrict T, int size)
{
    const int ld = GAIT_STRIDE(size);
    const double *R = f->R, dt = phi->dt, half = phi->half;
    const double *g = P + BG * ld, *a = P + BA * ld;
    for (int i = 0; i < 3; i++) {
        const double *bv = phi->blocks[i], *bp = phi->blocks[3 + i], *r = R + 3 * i;
        const double *rot = P + (ROT + i) * ld, *vel = P + (VEL + i) * ld, *pos = P + (POS + i) * ld;
        const double *tilt = i == 0 ? P + (ROT + 1) * ld : P + ROT * ld;
        const double sign = i == 0 ? -1.0 : i == 1 ? 1.0 : 0.0, lean = sign * phi->lean, dip = sign * phi->dip;
        for (int j = 0; j < ld; j++) {
            const double g0 = g[j], g1 = g[ld + j], g2 = g[2 * ld + j];
            const double accel = r[0] * a[j] + r[1] * a[ld + j] + r[2] * a[2 * ld + j];
            T[(ROT + i) * ld + j] = rot[j] - dt * (r[0] * g0 + r[1] * g1 + r[2] * g2);
            T[(VEL + i) * ld + j] = vel[j] + (bv[0] * g0 + bv[1] * g1 + bv[2] * g2) - dt * accel + lean * tilt[j];
            T[(POS + i) * ld + j] =
                pos[j] + dt * vel[j] + (bp[0] * g0 + bp[1] * g1 + bp[2] * g2) - half * accel + dip * tilt[j];
        }
    }
    for (int m = 0; m < (size - FEET) / 3; m++) {
        if (!f->active[m]) continue;
        for (int i = 3 * m; i < 3 * m + 3; i++) {
            const double *block = phi->blocks[6 + i], *foot = P + (FEET + i) * ld;
            for (int j = 0; j < ld; j++)
                T[(BG + i) * ld + j] = foot[j] + (block[0] * g[j] + block[1] * g[ld + j] + block[2] * g[2 * ld + j]);
        }
    }
}

/* P = T Phi': each number of the symmetric product is computed once and written twice. */
GAIT_INLINE void apply_columns(gait_filter *f, const transition *phi, const double *restrict T, int size)
{
    const int ld = GAIT_STRIDE(size), moved = BG + size - FEET;
    const double *R = f->R, dt = phi->dt, half = phi->half;
    double *P = f->P;
#define SET(column, value) P[to * ld + (column)] = P[(column) * ld + to] = (value)
    for (int k = 0; k < moved; k++) {
        if (k >= BG && !f->active[(k - BG) / 3]) continue;
        const double *row = T + k * ld, *g = row + BG, *a = row + BA;
        const int to = k < BG ? k : k + FEET - BG;
        for (int i = 0; i < 3; i++) {
            SET(ROT + i, row[ROT + i] - dt * (R[3 * i] * g[0] + R[3 * i + 1] * g[1] + R[3 * i + 2] * g[2]));
            SET(BG + i, g[i]);
            SET(BA + i, a[i]);
        }
        if (k < VEL) continue;
        double accel[3];
        for (int i = 0; i < 3; i++) accel[i] = R[3 * i] * a[0] + R[3 * i + 1] * a[1] + R[3 * i + 2] * a[2];
        const double tilt[3] = {-row[ROT + 1], row[ROT], 0.0};
        for (int i = 0; i < 3; i++) {
            const double *b = phi->blocks[i];
            SET(VEL + i, row[VEL + i] + (b[0] * g[0] + b[1] * g[1] + b[2] * g[2]) - dt * accel[i] + phi->lean * tilt[i]);
        }
        if (k < POS) continue;
        for (int i = 0; i < 3; i++) {
            const double *b = phi->blocks[3 + i];
            SET(POS + i, row[POS + i] + dt * row[VEL + i] + (b[0] * g[0] + b[1] * g[1] + b[2] * g[2]) - half * accel[i]
                    + phi->dip * tilt[i]);
        }
        for (int m = 0; m <= (to - FEET) / 3 && to >= FEET; m++) {
            if (!f->active[m]) continue;
            for (int i = 3 * m; i < 3 * m + 3; i++) {
                const double *b = phi->blocks[6 + i];
                SET(FEET + i, row[FEET + i] + (b[0] * g[0] + b[1] * g[1] + b[2] * g[2]));
            }
        }
    }
#undef SET
}

/* Phi of a step of dt seconds. */
GAIT_INLINE void set_transition(const gait_filter *f, const gait_settings *s, double dt, int size, transition *phi)
{
    phi->dt = dt;
    phi->half = s->exact_phi ? 0.5 * dt * dt : 0.0;
    phi->lean = s->gravity * dt;
    phi->dip = s->gravity * phi->half;
    bias_blocks(f, s->gravity, dt, s->exact_phi, size, phi->blocks);
}

GAIT_INLINE void propagate_covariance(gait_filter *f, const gait_settings *s, double dt, int size)
{
    double T[(BG + 3 * GAIT_MAX_LEGS) * GAIT_MAX_STRIDE];
    transition phi;
    set_transition(f, s, dt, size, &phi);
    apply_rows(f, &phi, f->P, T, size);
    apply_columns(f, &phi, T, size);
}

static void propagate_mean(gait_filter *f, const gait_settings *s, double (*roll_i)[3], const double gyro[3],
                           const double a[3], double dt)
{
    const double w[3] = {dt * (gyro[0] - f->b[0][0]), dt * (gyro[1] - f->b[0][1]), dt * (gyro[2] - f->b[0][2])};
    double c[4], once[3] = {a[0], a[1], a[2]}, twice[3] = {0.5 * a[0], 0.5 * a[1], 0.5 * a[2]};
    lie_coefficients(sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]), c);
    if (s->exact_mean) {
        lie_series(w, 1.0, c[1], c[2], a, once);
        lie_series(w, 0.5, c[2], c[3], a, twice);
    }
    rotate(f->R, once, once);
    rotate(f->R, twice, twice);
    once[2] += s->gravity;
    twice[2] += 0.5 * s->gravity;
    for (int i = 0; i < 3; i++) {
        f->x[1][i] += dt * f->x[0][i] + dt * dt * twice[i];
        f->x[0][i] += dt * once[i];
    }
    for (int m = 0; m < f->feet; m++) {
        double moved[3];
        if (!f->active[m]) continue;
        rotate(f->R, roll_i[m], moved);
        for (int i = 0; i < 3; i++) f->x[2 + m][i] += dt * moved[i];
    }
    /* R exp(w), by rows: exp(w)' = exp(-w). */
    for (int i = 0; i < 3; i++) {
        const double row[3] = {f->R[3 * i], f->R[3 * i + 1], f->R[3 * i + 2]};
        lie_series(w, 1.0, -c[0], c[1], row, f->R + 3 * i);
    }
    lie_orthonormalise(f->R);
}

/* One IMU sample, held over dt seconds. walk: random walk density of each foot; roll_i: known velocity of each contact
 * point. Returns 0, with nothing changed, if the sample is not finite or time stands still. */
int filter_propagate(gait_filter *f, const gait_settings *s, const gait_noise *noise, const double *walk,
                     double (*roll_i)[3], const double gyro[3], const double accel[3], double dt)
{
    const double total = gyro[0] + gyro[1] + gyro[2] + accel[0] + accel[1] + accel[2];
    const double a[3] = {accel[0] - f->b[1][0], accel[1] - f->b[1][1], accel[2] - f->b[1][2]};
    double acceleration[3];
    if (!(isfinite(total) && isfinite(dt) && dt > 0.0)) return 0;
    rotate(f->R, a, acceleration);
    acceleration[2] += s->gravity;
    const double acceleration2 = acceleration[0] * acceleration[0] + acceleration[1] * acceleration[1]
        + acceleration[2] * acceleration[2];
    if (f->feet == 0) {
        add_process_noise(f, noise, walk, acceleration2, dt, NO_FEET);
        propagate_covariance(f, s, dt, NO_FEET);
    } else if (GAIT_MAX_STATES >= FOUR_FEET && f->size == FOUR_FEET) {
        add_process_noise(f, noise, walk, acceleration2, dt, FOUR_FEET);
        propagate_covariance(f, s, dt, FOUR_FEET);
    } else {
        add_process_noise(f, noise, walk, acceleration2, dt, f->size);
        propagate_covariance(f, s, dt, f->size);
    }
    propagate_mean(f, s, roll_i, gyro, a, dt);
    return 1;
}

/* X <- exp(delta) X, and the biases by addition. */
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

/* The same for others, feet that are not there left alone. */
void filter_retract(gait_filter *f, const double *delta)
{
    retract(f, delta);
}

/* T = Phi P of a step of dt seconds, all rows. */
void filter_transition(const gait_filter *f, const gait_settings *s, double dt, double *T)
{
    const int size = f->size, ld = GAIT_STRIDE(size);
    double moved[(BG + 3 * GAIT_MAX_LEGS) * GAIT_MAX_STRIDE];
    transition phi;
    set_transition(f, s, dt, size, &phi);
    apply_rows(f, &phi, f->P, moved, size);
    memcpy(T, f->P, (size_t)(size * ld) * sizeof(double));
    memcpy(T, moved, (size_t)(BG * ld) * sizeof(double));
    for (int leg = 0; leg < f->feet; leg++)
        if (f->active[leg])
            memcpy(T + (FEET + 3 * leg) * ld, moved + (BG + 3 * leg) * ld, (size_t)(3 * ld) * sizeof(double));
}

/* S = L L' in place, in the lower triangle of m rows; 0 if S is not positive definite. */
static int cholesky(double *S, int m)
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
 * come from the caller, who knows where H is not zero; S is N + HPH. Returns 0, with nothing changed, if the measurement is
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
    if (!cholesky(L, m)) return 0;
    /* The gain transposed: a row for each measurement. P becomes P - K' HP - (HP - S K)' K, where HP - S K is nothing but
     * what rounding left of it, and Joseph's form puts it right. */
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

/* R cov R' for a diagonal block of measurement noise. */
static void world_covariance(const double R[9], const double cov[9], double out[9])
{
    double half[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            half[3 * i + j] = R[3 * i] * cov[j] + R[3 * i + 1] * cov[3 + j] + R[3 * i + 2] * cov[6 + j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = half[3 * i] * R[3 * j] + half[3 * i + 1] * R[3 * j + 1] + half[3 * i + 2] * R[3 * j + 2];
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
        /* F = K N - (I - K H) P H': nothing but what rounding left of it, and Joseph's form puts it right. */
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
 * The covariances of the feet lie `apart` doubles from each other; 0: they share one. */
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
    if (!cholesky(S, m)) return NAN;
    for (int i = 0; i < m; i++) {
        y[i] = z[i];
        for (int k = 0; k < i; k++) y[i] -= S[i * m + k] * y[k];
        y[i] /= S[i * m + i];
        nis += y[i] * y[i];
    }
    return nis;
}

/* A foot touches down: its contact point joins the state at p + R foot, with the orientation that is given. */
void filter_add_foot(gait_filter *f, int leg, const double foot_i[3], const double cov_i[9], const double R_wi[9])
{
    const int ld = GAIT_STRIDE(f->size), row = FEET + 3 * leg;
    double *P = f->P, cov_w[9];
    rotate(R_wi, foot_i, f->x[2 + leg]);
    world_covariance(R_wi, cov_i, cov_w);
    for (int i = 0; i < 3; i++) {
        f->x[2 + leg][i] += f->x[1][i];
        for (int j = 0; j < f->size; j++) P[(row + i) * ld + j] = P[(POS + i) * ld + j];
    }
    for (int j = 0; j < f->size; j++)
        for (int i = 0; i < 3; i++) P[j * ld + row + i] = P[j * ld + POS + i];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) P[(row + i) * ld + row + j] += cov_w[3 * i + j];
    f->active[leg] = 1;
}

/* A foot lifts off. */
void filter_remove_foot(gait_filter *f, int leg)
{
    const int ld = GAIT_STRIDE(f->size), row = FEET + 3 * leg;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < f->size; j++) f->P[(row + i) * ld + j] = f->P[j * ld + row + i] = 0.0;
    f->active[leg] = 0;
}

/* Whether state and covariance are what a robot's can be. Written so that a nan is not. */
int filter_plausible(const gait_filter *f)
{
    const int ld = GAIT_STRIDE(f->size);
    const double *v = f->x[0];
    double total = 0.0;
    for (int i = 0; i < 9; i++) total += f->R[i];
    for (int i = 0; i < 3; i++) total += f->x[0][i] + f->x[1][i] + f->b[0][i] + f->b[1][i];
    for (int i = 0; i < 15; i++) total += f->P[i * ld + i];
    const double variance = f->P[VEL * ld + VEL] + f->P[(VEL + 1) * ld + VEL + 1] + f->P[(VEL + 2) * ld + VEL + 2];
    return isfinite(total) && v[0] * v[0] + v[1] * v[1] + v[2] * v[2] < MAX_SPEED * MAX_SPEED
        && variance < MAX_STD * MAX_STD;
}

/* From the state of the IMU to that of base_link. */
void filter_output(const gait_filter *f, const gait_robot *robot, const double gyro[3], gait_state *out)
{
    const int ld = GAIT_STRIDE(f->size);
    const double *P = f->P;
    double R_wb[9], rate[3], omega_b[3], lever_b[3], lever_w[3], arm_w[3];
    for (int i = 0; i < 3; i++) rate[i] = gyro[i] - f->b[0][i];
    rotate(robot->R_bi, rate, omega_b);
    cross(omega_b, robot->p_bi, lever_b);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            R_wb[3 * i + j] = f->R[3 * i] * robot->R_bi[3 * j] + f->R[3 * i + 1] * robot->R_bi[3 * j + 1]
                + f->R[3 * i + 2] * robot->R_bi[3 * j + 2];
    lie_quat_from_rotation(R_wb, out->quat_wb_wxyz);
    rotate(R_wb, lever_b, lever_w);
    rotate(R_wb, robot->p_bi, arm_w);
    for (int i = 0; i < 3; i++) {
        out->vel_w[i] = f->x[0][i] - lever_w[i];
        out->pos_w[i] = f->x[1][i] - arm_w[i];
        out->gyro_bias[i] = f->b[0][i];
        out->accel_bias[i] = f->b[1][i];
    }
    rotate_back(R_wb, out->vel_w, out->vel_b);
    double half[9]; /* P_vv R_wb */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const double *p = P + (VEL + i) * ld + VEL;
            half[3 * i + j] = p[0] * R_wb[j] + p[1] * R_wb[3 + j] + p[2] * R_wb[6 + j];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out->vel_cov[i][j] = R_wb[i] * half[j] + R_wb[3 + i] * half[3 + j] + R_wb[6 + i] * half[6 + j];
    /* Position error = xi_p + xi_R x p, rotation error = xi_R: rows, then columns. */
    double(*pose)[6] = out->pose_cov;
    const double *p = out->pos_w;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            pose[i][j] = P[(POS + i) * ld + POS + j];
            pose[i][3 + j] = P[(POS + i) * ld + ROT + j];
            pose[3 + i][j] = P[(ROT + i) * ld + POS + j];
            pose[3 + i][3 + j] = P[(ROT + i) * ld + ROT + j];
        }
    for (int j = 0; j < 6; j++) {
        pose[0][j] += pose[4][j] * p[2] - pose[5][j] * p[1];
        pose[1][j] += pose[5][j] * p[0] - pose[3][j] * p[2];
        pose[2][j] += pose[3][j] * p[1] - pose[4][j] * p[0];
    }
    for (int i = 0; i < 6; i++) {
        pose[i][0] += pose[i][4] * p[2] - pose[i][5] * p[1];
        pose[i][1] += pose[i][5] * p[0] - pose[i][3] * p[2];
        pose[i][2] += pose[i][3] * p[1] - pose[i][4] * p[0];
    }
}
