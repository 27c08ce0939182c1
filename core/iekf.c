/* The state of the right-invariant EKF: its start, contact points that join and leave it. Propagation is in
 * iekf_propagate.c, corrections in iekf_correct.c. */
#include <math.h>
#include <string.h>

#include "core.h"

void filter_init(gait_filter *f, int feet)
{
    memset(f, 0, filter_bytes(FEET + 3 * feet));
    f->feet = feet;
    f->size = FEET + 3 * feet;
    f->R[0] = f->R[4] = f->R[8] = 1.0;
}

/* Covariance of a state with these standard deviations and no contact points. Those of velocity and position are of the
 * vectors themselves: v_hat - v = xi_v + xi_R x v, and likewise for the position. */
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
    multiply(R_wb, robot->R_bi, f->R);
    memset(f->x, 0, sizeof f->x);
    memset(f->b, 0, sizeof f->b);
    rotate(R_wb, robot->p_bi, f->x[1]);
    filter_prior(f, std);
    return 1;
}

/* A foot touches down: its contact point joins the state at p + R_wi foot_i. */
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

/* A foot lifts off: its contact point leaves the state. */
void filter_remove_foot(gait_filter *f, int leg)
{
    const int ld = GAIT_STRIDE(f->size), row = FEET + 3 * leg;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < f->size; j++) f->P[(row + i) * ld + j] = f->P[j * ld + row + i] = 0.0;
    f->active[leg] = 0;
}
