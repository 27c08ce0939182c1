/* Measurements of other sensors (LiDAR, vision, GNSS, an AHRS): pose, position, velocity, heading, height, direction of
 * gravity, orientation; each gated by its NIS. src/gait/reference/external_rows.py has the same in numpy.
 *
 * With the right-invariant error, pose, orientation, gravity and velocity in the body have a constant H. Position,
 * height, heading and velocity in the world do not: theirs is taken at the estimate. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double AHEAD = 0.02; /* s between a measurement and the sample whose state it corrects */
/* For how long the filter remembers a tilt, s. The error of the IMU's mounting is the same in every measurement of roll and
 * pitch, and contradicts gravity as the IMU has it: taken for a new one each time, it would pull the velocity along. */
static const double TILT_MEMORY = 10.0;
/* A pose or position moves the velocity as well, by their correlation, and a controller may use that velocity. Where it
 * would move by more than MOST_JUMP, m/s, the noise of the measurement is inflated, JUMP_TRIES times at most: with the one
 * that follows the rest of the error is corrected. */
static const double MOST_JUMP = 0.04, JUMP_INFLATION = 1.5;
enum { JUMP_TRIES = 5 };

/* The state of the IMU at the time of a measurement, which is a fraction of a step from that of the last sample, and the
 * sensor in axes of the IMU. */
typedef struct {
    double R[9], v[3], p[3], omega_i[3];
    double lever_i[3], R_ws[9]; /* R_is turned into the world by the estimate */
    double R_is[9];
    double age;
} sensor_view;

/* Rows of the measurement: innovation z = -H xi + noise of covariance N. */
typedef struct {
    int m;
    double z[6], H[6 * 15], N[36];
} external_rows;

/* scale (x cross .) into the block of H at a row and a column. */
static void put_cross(external_rows *r, int row, int column, double scale, const double x[3])
{
    double *h = r->H + 15 * row + column;
    h[1] += -scale * x[2];
    h[2] += scale * x[1];
    h[15] += scale * x[2];
    h[17] += -scale * x[0];
    h[30] += -scale * x[1];
    h[31] += scale * x[0];
}

static void put_unit(external_rows *r, int row, int column, double scale)
{
    for (int i = 0; i < 3; i++) r->H[15 * (row + i) + column + i] += scale;
}

static sensor_view view_of(const gait_t *g, const gait_external *e)
{
    const gait_filter *f = &g->filter;
    const gait_robot *robot = &g->config->robot;
    sensor_view s;
    double turn[3], c[4], force[3], away_b[3], R_bs[9];
    s.age = e->t - g->input.t;
    for (int i = 0; i < 3; i++) {
        s.omega_i[i] = g->input.gyro[i] - f->b[0][i];
        turn[i] = s.age * s.omega_i[i];
        force[i] = g->input.accel[i] - f->b[1][i];
        away_b[i] = e->p_bs[i] - robot->p_bi[i];
    }
    lie_coefficients(sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2]), c);
    for (int i = 0; i < 3; i++) lie_series(turn, 1.0, -c[0], c[1], f->R + 3 * i, s.R + 3 * i); /* R exp(turn), by rows */
    rotate(f->R, force, force);
    force[2] += g->config->settings.gravity;
    for (int i = 0; i < 3; i++) {
        s.v[i] = f->x[0][i] + s.age * force[i];
        s.p[i] = f->x[1][i] + s.age * f->x[0][i];
    }
    rotate_back(robot->R_bi, away_b, s.lever_i);
    lie_rotation_from_quat(e->quat_bs_wxyz, R_bs);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            s.R_is[3 * i + j] =
                robot->R_bi[i] * R_bs[j] + robot->R_bi[3 + i] * R_bs[3 + j] + robot->R_bi[6 + i] * R_bs[6 + j];
    multiply(s.R, s.R_is, s.R_ws);
    return s;
}

/* Rotation vector of A B', below half a turn. */
void rotation_between(const double A[9], const double B[9], double out[3])
{
    double R[9], quat[4];
    multiply_back(A, B, R);
    lie_quat_from_rotation(R, quat);
    const double sine = sqrt(quat[1] * quat[1] + quat[2] * quat[2] + quat[3] * quat[3]);
    const double scale = sine > 1e-8 ? 2.0 * atan2(sine, quat[0]) / sine : 2.0;
    for (int i = 0; i < 3; i++) out[i] = scale * quat[1 + i];
}

/* x <- V(w)^-1 x with the left Jacobian V: the logarithm of a pose. */
void divide_jacobian(const double w[3], double x[3])
{
    const double angle = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]), half = 0.5 * angle;
    const double second = angle < 1e-3 ? 1.0 / 12.0 : (1.0 - half * cos(half) / sin(half)) / (angle * angle);
    lie_series(w, 1.0, -0.5, second, x, x);
}

/* z = log(Y X_hat^-1) for the pose Y of the IMU by the sensor's: z = -(xi_R, xi_p) + noise, whatever the state. Errors of
 * the measured position and orientation are in this error nu_R = n_R and nu_p = n_p + p x n_R. */
static void pose_rows(const sensor_view *s, const gait_external *e, external_rows *r)
{
    const double *p_ws = e->value;
    double R_ws[9], R_wi[9], p_wi[3], back[3], moved[3], J[36] = {0.0}, half[36];
    lie_rotation_from_quat(e->value + 3, R_ws);
    multiply_back(R_ws, s->R_is, R_wi);
    rotate(R_wi, s->lever_i, back);
    for (int i = 0; i < 3; i++) p_wi[i] = p_ws[i] - back[i];
    r->m = 6;
    rotation_between(R_wi, s->R, r->z);
    rotate_back(s->R, s->p, moved);
    rotate(R_wi, moved, moved);
    for (int i = 0; i < 3; i++) r->z[3 + i] = p_wi[i] - moved[i];
    divide_jacobian(r->z, r->z + 3);
    put_unit(r, 0, ROT, 1.0);
    put_unit(r, 3, POS, 1.0);
    put_unit(r, 3, VEL, s->age);
    /* Rows: rotation, position; columns: position, rotation, as the covariance comes. */
    for (int i = 0; i < 3; i++) J[6 * i + 3 + i] = J[6 * (3 + i) + i] = 1.0;
    J[6 * 3 + 4] = -p_ws[2];
    J[6 * 3 + 5] = p_ws[1];
    J[6 * 4 + 3] = p_ws[2];
    J[6 * 4 + 5] = -p_ws[0];
    J[6 * 5 + 3] = -p_ws[1];
    J[6 * 5 + 4] = p_ws[0];
    memset(half, 0, sizeof half);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            for (int j = 0; j < 6; j++) half[6 * i + j] += J[6 * i + k] * e->cov[6 * k + j];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (int k = 0; k < 6; k++) r->N[6 * i + j] += half[6 * i + k] * J[6 * j + k];
}

/* Position of the sensor in the world; `from` 2 takes the height alone. */
static void position_rows(const sensor_view *s, const gait_external *e, external_rows *r, int from)
{
    external_rows whole = {3, {0.0}, {0.0}, {0.0}};
    double at[3];
    rotate(s->R, s->lever_i, at);
    for (int i = 0; i < 3; i++) at[i] += s->p[i];
    put_cross(&whole, 0, ROT, -1.0, at);
    put_unit(&whole, 0, POS, 1.0);
    put_unit(&whole, 0, VEL, s->age);
    r->m = 3 - from;
    for (int i = 0; i < r->m; i++) r->z[i] = e->value[i] - at[from + i];
    memcpy(r->H, whole.H + 15 * from, (size_t)(15 * r->m) * sizeof(double));
    memcpy(r->N, e->cov, (size_t)(r->m * r->m) * sizeof(double));
}

/* Velocity of the sensor, in the world or in its own axes: the lever arm adds w x l, and with it an error of the gyro bias. */
static void velocity_rows(const gait_t *g, const sensor_view *s, const gait_external *e, external_rows *r, int in_world)
{
    double arm[3], measured[3], seen[3], gravity[3] = {0.0, 0.0, g->config->settings.gravity};
    cross(s->omega_i, s->lever_i, arm);
    rotate(s->R, arm, arm);
    if (in_world) memcpy(measured, e->value, sizeof measured);
    else rotate(s->R_ws, e->value, measured);
    r->m = 3;
    for (int i = 0; i < 3; i++) {
        r->z[i] = measured[i] - arm[i] - s->v[i];
        seen[i] = s->v[i] + arm[i];
    }
    put_unit(r, 0, VEL, 1.0);
    put_cross(r, 0, ROT, s->age, gravity);
    if (in_world) put_cross(r, 0, ROT, -1.0, seen);
    for (int j = 0; j < 3; j++) { /* R l^, by columns: l^ e_j = l x e_j */
        double unit[3] = {0.0}, column[3];
        unit[j] = 1.0;
        cross(s->lever_i, unit, column);
        rotate(s->R, column, column);
        for (int i = 0; i < 3; i++) r->H[15 * i + BG + j] += column[i];
    }
    if (in_world) memcpy(r->N, e->cov, 9 * sizeof(double));
    else world_covariance(s->R_ws, e->cov, r->N);
}

/* Heading of the sensor's x axis, about the vertical. Returns 0 where it points up or down. */
static int heading_rows(const sensor_view *s, const gait_external *e, external_rows *r)
{
    const double x = s->R_ws[0], y = s->R_ws[3], z = s->R_ws[6], flat2 = x * x + y * y;
    const double off = e->value[0] - atan2(y, x);
    if (flat2 < 0.01) return 0;
    r->m = 1;
    r->z[0] = atan2(sin(off), cos(off));
    r->H[ROT] = -x * z / flat2;
    r->H[ROT + 1] = -y * z / flat2;
    r->H[ROT + 2] = 1.0;
    r->N[0] = e->cov[0];
    return 1;
}

/* The upward vertical in axes of the sensor: z = R_hat y - e_z, of which two rows can differ from zero. */
static void up_rows(const sensor_view *s, const gait_external *e, external_rows *r)
{
    double up[3], N[9];
    rotate(s->R_ws, e->value, up);
    world_covariance(s->R_ws, e->cov, N);
    r->m = 2;
    for (int i = 0; i < 2; i++) {
        r->z[i] = up[i];
        for (int j = 0; j < 2; j++) r->N[2 * i + j] = N[3 * i + j];
    }
    r->H[ROT + 1] = -1.0; /* skew(e_z) */
    r->H[15 + ROT] = 1.0;
}

static void orientation_rows(const sensor_view *s, const gait_external *e, external_rows *r)
{
    double R_ws[9], R_wi[9];
    lie_rotation_from_quat(e->value, R_ws);
    multiply_back(R_ws, s->R_is, R_wi);
    rotation_between(R_wi, s->R, r->z);
    r->m = 3;
    put_unit(r, 0, ROT, 1.0);
    memcpy(r->N, e->cov, 9 * sizeof(double));
}

static int rows_of(const gait_t *g, const gait_external *e, external_rows *r)
{
    const sensor_view s = view_of(g, e);
    memset(r, 0, sizeof *r);
    switch (e->kind) {
    case GAIT_POSE: pose_rows(&s, e, r); return 1;
    case GAIT_POSITION: position_rows(&s, e, r, 0); return 1;
    case GAIT_HEIGHT: position_rows(&s, e, r, 2); return 1;
    case GAIT_VELOCITY_W: velocity_rows(g, &s, e, r, 1); return 1;
    case GAIT_VELOCITY_B: velocity_rows(g, &s, e, r, 0); return 1;
    case GAIT_HEADING: return heading_rows(&s, e, r);
    case GAIT_UP: up_rows(&s, e, r); return 1;
    case GAIT_ORIENTATION: orientation_rows(&s, e, r); return 1;
    default: return 0;
    }
}

int gait_external_rows(const gait_t *g, const gait_external *e, double z[6], double H[90], double N[36])
{
    external_rows r;
    if (!rows_of(g, e, &r)) return 0;
    memcpy(z, r.z, sizeof r.z);
    memcpy(H, r.H, sizeof r.H);
    memcpy(N, r.N, sizeof r.N);
    return r.m;
}

/* The measurement with the mounting among its noise: all that are taken within TILT_MEMORY share one such error, so each
 * has its variance times their number. */
static gait_external with_mounting(const gait_t *g, const gait_external *e)
{
    gait_external out = *e;
    const double since = e->t - g->tilt_t;
    const double shared = since > 0.0 && since < TILT_MEMORY ? TILT_MEMORY / larger(since, 1e-3) : 1.0;
    const double variance = GAIT_MOUNTING_STD * GAIT_MOUNTING_STD * shared;
    const int first = e->kind == GAIT_POSE ? 21 : 0, step = e->kind == GAIT_POSE ? 7 : 4;
    if (e->kind == GAIT_POSE || e->kind == GAIT_ORIENTATION || e->kind == GAIT_UP)
        for (int i = 0; i < (e->kind == GAIT_UP ? 3 : 2); i++) out.cov[first + step * i] += variance;
    return out;
}

/* Correct by a pose, a position or a height without a jump of the velocity in the body. */
static int correct_gently(gait_t *g, external_rows *r)
{
    gait_filter *f = &g->filter;
    const size_t bytes = filter_bytes(f->size);
    gait_filter before;
    double then[3], now[3];
    memcpy(&before, f, bytes);
    rotate_back(f->R, f->x[0], then);
    for (int tries = 0;; tries++) {
        if (!gait_correct(g, r->m, r->z, r->H, r->N)) return 0;
        double jump2 = 0.0;
        rotate_back(f->R, f->x[0], now);
        for (int i = 0; i < 3; i++) jump2 += (now[i] - then[i]) * (now[i] - then[i]);
        if (jump2 <= MOST_JUMP * MOST_JUMP || tries == JUMP_TRIES) return 1;
        memcpy(f, &before, bytes);
        for (int i = 0; i < r->m * r->m; i++) r->N[i] *= JUMP_INFLATION;
    }
}

int gait_correct_external(gait_t *g, const gait_external *measured, double *test_ratio)
{
    const gait_external widened = with_mounting(g, measured), *e = &widened;
    external_rows r;
    gait_filter *f = &g->filter;
    double nis;
    *test_ratio = INFINITY;
    if (!g->input.started || g->align || !g->input.imu_known) return GAIT_NOT_STARTED;
    if (!(e->t <= g->input.t + AHEAD)) return GAIT_AHEAD;
    if (e->t < g->input.t - AHEAD) return GAIT_TOO_OLD;
    if (!rows_of(g, e, &r)) return GAIT_NOT_USABLE;
    nis = filter_nis(f, r.m, r.z, r.H, r.N);
    if (!isfinite(nis)) return GAIT_NOT_USABLE;
    *test_ratio = sqrt(nis / r.m) / e->gate;
    if (*test_ratio > 1.0) return GAIT_OUTLIER;
    const int gently = e->kind == GAIT_POSE || e->kind == GAIT_POSITION || e->kind == GAIT_HEIGHT;
    if (!(gently ? correct_gently(g, &r) : gait_correct(g, r.m, r.z, r.H, r.N))) return GAIT_NOT_USABLE;
    if (e->kind == GAIT_POSE || e->kind == GAIT_ORIENTATION || e->kind == GAIT_UP) g->tilt_t = e->t;
    if (e->kind == GAIT_POSE || e->kind == GAIT_ORIENTATION || e->kind == GAIT_HEADING) g->monitor.heading = 0.0;
    if (e->kind == GAIT_POSE || e->kind == GAIT_POSITION) memset(g->monitor.aside, 0, sizeof g->monitor.aside);
    /* Position and heading are known again, whatever happened before. */
    if (e->kind == GAIT_POSE) g->monitor.lost = 0;
    return GAIT_TAKEN;
}

/* A pose of base_link that replaces the present one: the velocity in the body and the biases stay, with their
 * covariance; std is of rotation (3) and position (3). */
void gait_reset_pose(gait_t *g, const double quat_wb_wxyz[4], const double pos_w[3], const double std[6])
{
    const gait_robot *robot = &g->config->robot;
    gait_filter *f = &g->filter;
    const int ld = GAIT_STRIDE(f->size);
    double R_wb[9], R[9], turn[9], lever_w[3], kept[9][9], *P = f->P;
    for (int leg = 0; leg < f->feet; leg++)
        if (f->active[leg]) filter_remove_foot(f, leg);
    lie_rotation_from_quat(quat_wb_wxyz, R_wb);
    multiply(R_wb, robot->R_bi, R);
    multiply_back(R, f->R, turn);
    rotate(turn, f->x[0], f->x[0]);
    rotate(R_wb, robot->p_bi, lever_w);
    memcpy(f->R, R, sizeof R);
    for (int i = 0; i < 3; i++) f->x[1][i] = pos_w[i] + lever_w[i];
    /* The velocity's error in the body is R' xi_v, which a rotation leaves as it is. */
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            kept[i][j] = P[(i < 3 ? VEL + i : BG + i - 3) * ld + (j < 3 ? VEL + j : BG + j - 3)];
    for (int j = 0; j < 9; j++) {
        const double a = kept[0][j], b = kept[1][j], c = kept[2][j];
        for (int i = 0; i < 3; i++) kept[i][j] = turn[3 * i] * a + turn[3 * i + 1] * b + turn[3 * i + 2] * c;
    }
    for (int i = 0; i < 9; i++) rotate(turn, kept[i], kept[i]);
    memset(P, 0, (size_t)(f->size * ld) * sizeof *P);
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            P[(i < 3 ? VEL + i : BG + i - 3) * ld + (j < 3 ? VEL + j : BG + j - 3)] = kept[i][j];
    /* xi_p = (p_hat - p) + p x xi_R. */
    const double *p = f->x[1];
    const double J[3][3] = {{0.0, -p[2], p[1]}, {p[2], 0.0, -p[0]}, {-p[1], p[0], 0.0}};
    for (int i = 0; i < 3; i++) {
        P[(ROT + i) * ld + ROT + i] = std[i] * std[i];
        P[(POS + i) * ld + POS + i] += std[3 + i] * std[3 + i];
        for (int j = 0; j < 3; j++) {
            P[(POS + i) * ld + ROT + j] = P[(ROT + j) * ld + POS + i] = J[i][j] * std[j] * std[j];
            for (int k = 0; k < 3; k++) P[(POS + i) * ld + POS + j] += J[i][k] * J[j][k] * std[k] * std[k];
        }
    }
    g->monitor.lost = 0;
    g->monitor.heading = 0.0;
    memset(g->monitor.aside, 0, sizeof g->monitor.aside);
    memset(g->feet.known, 0, sizeof g->feet.known);
    adapt_forget(&g->adapt); /* velocities of before are in other axes */
    keep_pose(g);
}
