/* A step in other forms: rows of numbers, IMU and joints as two streams, the state predicted to a later time. */
#include <math.h>
#include <string.h>

#include "core.h"

size_t gait_row_doubles(const gait_config *config)
{
    return (size_t)(7 + 4 * config->robot.joints + 3 * config->robot.legs);
}

gait_sample sample_of(const gait_config *c, const double *row)
{
    const int J = c->robot.joints, L = c->robot.legs;
    const double *q = row + 7, *force = q + 4 * J;
    const gait_sample sample = {row[0],    row + 1, row + 4,   q,        q + J,
                                q + 2 * J, q + 3 * J, force, force + L, force + 2 * L};
    return sample;
}

void gait_run(gait_t *g, const double *rows, size_t n, double *states)
{
    const size_t width = gait_row_doubles(g->config), out = gait_state_doubles(g->config);
    for (size_t k = 0; k < n; k++) {
        const gait_sample sample = sample_of(g->config, rows + k * width);
        gait_update(g, &sample, (gait_state *)(states + k * out));
    }
}

void gait_step_row(gait_t *g, const double *row, double *state_and_cov)
{
    const gait_sample sample = sample_of(g->config, row);
    gait_update(g, &sample, (gait_state *)state_and_cov);
    gait_cov(g, state_and_cov + gait_state_doubles(g->config));
}

void gait_update_joints(gait_t *g, const gait_sample *sample)
{
    const gait_robot *robot = &g->config->robot;
    const double *joints[4] = {sample->q, sample->dq, sample->q_des, sample->tau};
    const double *feet[3] = {sample->foot_force, sample->contact, sample->leg_ok};
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < robot->joints; j++) g->joints[k][j] = joints[k] ? joints[k][j] : NAN;
    for (int k = 0; k < 3; k++)
        for (int leg = 0; leg < robot->legs; leg++) g->feet_in[k][leg] = feet[k] ? feet[k][leg] : (k == 2 ? 1.0 : NAN);
    g->joints_t = sample->t;
    g->has_joints = 1;
}

uint32_t gait_update_imu(gait_t *g, double t, const double gyro[3], const double accel[3], gait_state *state)
{
    const int fresh = g->has_joints && fabs(t - g->joints_t) <= g->config->settings.hold;
    const gait_sample sample = {
        t, gyro, accel, fresh ? g->joints[0] : NULL, fresh ? g->joints[1] : NULL, fresh ? g->joints[2] : NULL,
        fresh ? g->joints[3] : NULL, fresh ? g->feet_in[0] : NULL, fresh ? g->feet_in[1] : NULL,
        fresh ? g->feet_in[2] : NULL};
    return gait_update(g, &sample, state);
}

void gait_step_imu(gait_t *g, double t, const double gyro[3], const double accel[3], double *state_and_cov)
{
    gait_update_imu(g, t, gyro, accel, (gait_state *)state_and_cov);
    gait_cov(g, state_and_cov + gait_state_doubles(g->config));
}

void gait_predict(const gait_t *g, double t, gait_t *scratch, double *state_and_cov)
{
    const double dt = t - g->input.t;
    uint32_t health = g->measured || g->contacts.measured ? 0 : GAIT_STARTING;
    memcpy(scratch, g, gait_bytes(g->config));
    scratch->recorder = NULL;
    scratch->input.gap = 0.0;
    if (g->input.started && g->input.imu_known && dt > 0.0) {
        scratch->input.t = t;
        if (dt > g->config->settings.max_gap) {
            health |= GAIT_TIME_GAP;
            scratch->input.gap = dt;
            scratch->input.dt = dt;
            bridge_gap(scratch, 0);
        } else {
            propagate_by_imu(scratch, dt, 0);
        }
    }
    write_state(scratch, health, (gait_state *)state_and_cov);
    gait_cov(scratch, state_and_cov + gait_state_doubles(g->config));
}

void gait_admitted(const gait_t *g, double *sample)
{
    const gait_input *in = &g->input;
    const gait_robot *robot = &g->config->robot;
    const size_t joints = (size_t)robot->joints;
    double *q = sample + 7, *dq = q + joints, *q_des = dq + joints;
    sample[0] = in->t;
    memcpy(sample + 1, in->gyro, sizeof in->gyro);
    memcpy(sample + 4, in->accel, sizeof in->accel);
    memcpy(q, in->q, joints * sizeof(double));
    memcpy(dq, in->dq, joints * sizeof(double));
    for (int leg = 0; leg < robot->legs; leg++)
        for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++)
            q_des[j] = isfinite(in->no_target[leg]) ? in->q[j] + in->e[j] : NAN;
}
