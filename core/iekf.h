/* The right-invariant EKF on SE_{2+L}(3) with biases. */
#ifndef GAIT_IEKF_H
#define GAIT_IEKF_H

#include <string.h>

#include "gait.h"
#include "lie.h"

/* First row of each part of the error state. */
enum { ROT = 0, VEL = 3, POS = 6, BG = 9, BA = 12, FEET = 15 };

/* Sizes of the state that are constants where loops over it are to unroll: callers compile such bodies for each. */
enum { NO_FEET = 15, FOUR_FEET = 27 };

/* Invariant EKF on SE_{2+L}(3) with biases; error right-invariant, X_hat = exp(xi) X. Its body is the IMU. */
typedef struct gait_filter {
    double R[9];                    /* R_wi, row by row, as all matrices here */
    double x[2 + GAIT_MAX_LEGS][3]; /* velocity, position, then contact points */
    double b[2][3];                 /* gyro and accelerometer bias */
    int32_t size, feet;             /* 15 + 3 feet */
    uint8_t active[GAIT_MAX_LEGS];  /* feet that are part of the state; the rows of others are zero */
    double P[GAIT_MAX_STATES * GAIT_MAX_STRIDE]; /* `size` rows of GAIT_STRIDE(size) */
} gait_filter;

/* Bytes of a filter that are in use. */
static inline size_t filter_bytes(int size)
{
    return offsetof(gait_filter, P) + (size_t)(size * GAIT_STRIDE(size)) * sizeof(double);
}

/* First row of vector m of the error state: velocity, position, contact points. */
static inline int row_of(int m)
{
    return m < 2 ? VEL + 3 * m : FEET + 3 * (m - 2);
}

static inline int in_state(const gait_filter *f, int m)
{
    return m < 2 || f->active[m - 2];
}

/* R cov R': a covariance from body to world axes. */
static inline void world_covariance(const double R[9], const double cov[9], double out[9])
{
    double half[9];
    multiply(R, cov, half);
    multiply_back(half, R, out);
}

/* iekf.c */
void filter_init(gait_filter *f, int feet);
void filter_prior(gait_filter *f, const double std[15]);
int filter_align(gait_filter *f, const gait_robot *robot, const double std[15], const double accel[3], double gravity);
void filter_add_foot(gait_filter *f, int leg, const double foot_i[3], const double cov_i[9], const double R_wi[9]);
void filter_remove_foot(gait_filter *f, int leg);

/* iekf_propagate.c */
int filter_propagate(gait_filter *f, const gait_settings *s, const gait_noise *noise, const double *walk,
                     double (*roll_i)[3], const double gyro[3], const double accel[3], double dt);
void filter_transition(const gait_filter *f, const gait_settings *s, double dt, double *T);

/* iekf_correct.c */
int filter_correct_velocity(gait_filter *f, const double vel_i[3], const double cov_i[9]);
int filter_correct_gyro_bias(gait_filter *f, const double axis_i[3], double bias, double variance);
int filter_correct_feet(gait_filter *f, double (*feet_i)[3], const double *cov_i, int apart);
int filter_correct(gait_filter *f, int m, const double *z, const double *H, const double *N);
int filter_cholesky(double *S, int m);
double filter_nis(const gait_filter *f, int m, const double *z, const double *H, const double *N);
void filter_retract(gait_filter *f, const double *delta);

#endif
