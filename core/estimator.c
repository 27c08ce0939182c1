/* The estimator: one sample in, state out. Input checks, network or contacts, filter, recovery. */
#include <math.h>
#include <string.h>

#include "core.h"

/* At the first sample: roll and pitch from gravity, unless the start is known. Returns 0 if the robot is not at rest: the next
 * sample is tried then. */
int take_attitude(gait_t *g)
{
    const gait_settings *s = &g->config->settings;
    if (g->align
        && (imu_blind(&g->input) > 0.0
            || !filter_align(&g->filter, &g->config->robot, s->rest_std, g->input.accel, s->gravity))) {
        g->input.started = 0;
        return 0;
    }
    g->align = 0;
    return 1;
}

/* The first sample of a method without a network. */
static uint32_t start(gait_t *g)
{
    return take_attitude(g) ? GAIT_STARTING : GAIT_STARTING | GAIT_NO_MEASUREMENT;
}

/* Bring the contact-aided filter to the admitted sample; returns health bits. */
static uint32_t contact_step(gait_t *g, const gait_sample *sample, int verdict, uint32_t health)
{
    gait_input *in = &g->input;
    if (verdict == FIRST) return health | start(g);
    if (verdict == AFTER_GAP) {
        bridge_gap(g, health);
        return health | GAIT_NO_MEASUREMENT;
    }
    if (imu_blind(in) > 0.0) {
        bridge_blind(g, in->dt, health);
        return health | GAIT_NO_MEASUREMENT;
    }
    return health | contacts_step(g, sample);
}

/* Propagate to the admitted sample for measurements by the caller; `ready`: whether it may make them. */
static uint32_t external_step(gait_t *g, int verdict, uint32_t health, int *ready)
{
    gait_input *in = &g->input;
    if (verdict == FIRST) health |= start(g);
    else if (verdict == AFTER_GAP) bridge_gap(g, health);
    else propagate_by_imu(g, in->dt, health);
    *ready = in->started && in->imu_known;
    return health;
}

/* Largest plausible biases, rad/s and m/s^2. */
static const double MOST_BIAS[2] = {0.2, 1.5};
static void limit_biases(gait_filter *f)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++) f->b[k][i] = larger(-MOST_BIAS[k], smaller(MOST_BIAS[k], f->b[k][i]));
}

/* Restart from the present pose, with heading, velocity and position unknown. */
static const double LOST_TILT = 0.3, LOST_HEADING = 2.0, LOST_VELOCITY = 2.0, LOST_POSITION = 10.0;
static void lose_state(gait_t *g)
{
    gait_filter *f = &g->filter;
    double std[15];
    const int ld = GAIT_STRIDE(f->size);
    memset(f->x[0], 0, sizeof f->x[0]);
    memset(f->b, 0, sizeof f->b);
    memset(g->contacts.contact, 0, sizeof g->contacts.contact);
    memcpy(std, g->config->settings.rest_std, sizeof std);
    std[ROT] = std[ROT + 1] = LOST_TILT;
    std[ROT + 2] = LOST_HEADING;
    for (int i = 0; i < 3; i++) {
        std[VEL + i] = LOST_VELOCITY;
        /* A position lost before does not become better known. */
        const double before = f->P[(POS + i) * ld + POS + i];
        std[POS + i] = before > LOST_POSITION * LOST_POSITION && isfinite(before) ? sqrt(before) : LOST_POSITION;
    }
    filter_prior(f, std);
    g->monitor.resets++;
    g->monitor.lost = 1;
}

/* Bounds of a plausible state: no legged robot is faster, m/s, and a larger standard deviation holds no information. A
 * nan is not within them. */
static const double MAX_SPEED = 12.0, MAX_STD = 100.0;
static int plausible(const gait_filter *f)
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

/* Return to the last good pose if the state has diverged; returns whether it has. */
static int recover(gait_t *g)
{
    gait_filter *f = &g->filter;
    if (plausible(f)) {
        limit_biases(f);
        keep_pose(g);
        return 0;
    }
    memcpy(f->R, g->safe_R, sizeof f->R);
    memset(f->x, 0, sizeof f->x);
    memcpy(f->x[1], g->safe_p, sizeof g->safe_p);
    lose_state(g);
    return 1;
}

/* The specific force has contradicted the orientation for long: roll and pitch from the force. */
static const double REALIGN_TIME = 0.5; /* s */
static void lose_attitude(gait_t *g)
{
    const double *force = g->monitor.force_i;
    double p_w[3];
    memcpy(p_w, g->filter.x[1], sizeof p_w);
    if (!filter_align(&g->filter, &g->config->robot, g->config->settings.rest_std, force, g->config->settings.gravity)) return;
    memcpy(g->filter.x[1], p_w, sizeof p_w);
    lose_state(g);
    g->monitor.tilted = 0.0;
}

uint32_t gait_begin(gait_t *g, const gait_sample *sample, int *ready)
{
    uint32_t health;
    const int verdict = gait_admit(g, sample, &health);
    *ready = 0;
    fetch_next(g);
    if (verdict == REFUSED) return health;
    health |= monitor_gravity(g);
    if (g->monitor.tilted > REALIGN_TIME) lose_attitude(g);
    if (g->config->with_feet && g->config->method != GAIT_LEGS) feet_gather(g, sample);
    if (g->config->method == GAIT_CONTACTS) return contact_step(g, sample, verdict, health);
    if (g->config->method == GAIT_EXTERNAL) return external_step(g, verdict, health, ready);
    return network_step(g, sample, verdict, health);
}

int gait_correct(gait_t *g, int m, const double *z, const double *H, const double *N)
{
    const int taken = filter_correct(&g->filter, m, z, H, N);
    if (taken) g->measured = 1;
    return taken;
}

uint32_t gait_end(gait_t *g, uint32_t health, gait_state *state)
{
    fetch_next(g);
    fetch_next(g);
    if (recover(g)) health |= GAIT_DIVERGED;
    if (g->config->method != GAIT_CONTACTS && !g->measured) health |= GAIT_STARTING;
    health = monitor_end(g, health);
    if (g->recorder) recorder_end(g);
    if (state) write_state(g, health, state);
    return health;
}

uint32_t gait_update(gait_t *g, const gait_sample *sample, gait_state *state)
{
    int ready;
    const uint32_t health = gait_begin(g, sample, &ready);
    return gait_end(g, health, state);
}

/* In other forms: rows of numbers, IMU and joints as two streams, the state predicted to a later time. */
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
