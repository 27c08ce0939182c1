/* Propagation of the right-invariant EKF by a sample of the IMU.
 *
 * src/gait/reference/filter.py has the same in a few lines of numpy; here the products are written out along the zeros of
 * Phi. Rows of the covariance are padded to whole vector registers; the padding stays zero. */
#include <math.h>
#include <string.h>

#include "core.h"
#include "vector.h"

/* Largest error of the vertical velocity that is correlated over time, m/s: feet give way at each touch-down and recover
 * at lift-off. */
static const double MOST_LASTING = 0.1;

/* P += Ad Q Ad' dt. Contact points share the drift of the position. Isotropic noise makes the rotation drop out:
 * skew(a) skew(b)' = (a.b) I - b a'. */
GAIT_INLINE void add_process_noise(gait_filter *f, const gait_noise *noise, const double *walk, double acceleration2,
                                   double dt, int size)
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

/* T = Phi P, row by row, but for rows that do not change: those of the biases, and of feet that are not in the state. */
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
                T[(FEET + i) * ld + j] = foot[j] + (block[0] * g[j] + block[1] * g[ld + j] + block[2] * g[2 * ld + j]);
        }
    }
}

/* P = T Phi': each entry of the symmetric product is computed once and written twice. */
GAIT_INLINE void apply_columns(gait_filter *f, const transition *phi, const double *restrict T, int size)
{
    const int ld = GAIT_STRIDE(size);
    const double *R = f->R, dt = phi->dt, half = phi->half;
    double *P = f->P;
#define SET(column, value) P[to * ld + (column)] = P[(column) * ld + to] = (value)
    for (int to = 0; to < size; to = to + 1 == BG ? FEET : to + 1) {
        if (to >= FEET && !f->active[(to - FEET) / 3]) continue;
        const double *row = T + to * ld, *g = row + BG, *a = row + BA;
        for (int i = 0; i < 3; i++) {
            SET(ROT + i, row[ROT + i] - dt * (R[3 * i] * g[0] + R[3 * i + 1] * g[1] + R[3 * i + 2] * g[2]));
            SET(BG + i, g[i]);
            SET(BA + i, a[i]);
        }
        if (to < VEL) continue;
        double accel[3];
        for (int i = 0; i < 3; i++) accel[i] = R[3 * i] * a[0] + R[3 * i + 1] * a[1] + R[3 * i + 2] * a[2];
        const double tilt[3] = {-row[ROT + 1], row[ROT], 0.0};
        for (int i = 0; i < 3; i++) {
            const double *b = phi->blocks[i];
            SET(VEL + i, row[VEL + i] + (b[0] * g[0] + b[1] * g[1] + b[2] * g[2]) - dt * accel[i] + phi->lean * tilt[i]);
        }
        if (to < POS) continue;
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
    double T[GAIT_MAX_STATES * GAIT_MAX_STRIDE];
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

/* T = Phi P of a step of dt seconds, all rows. */
void filter_transition(const gait_filter *f, const gait_settings *s, double dt, double *T)
{
    const int size = f->size;
    transition phi;
    set_transition(f, s, dt, size, &phi);
    memcpy(T, f->P, (size_t)(size * GAIT_STRIDE(size)) * sizeof(double));
    apply_rows(f, &phi, f->P, T, size);
}
