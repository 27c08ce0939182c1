/* Methods with a network: when it steps, its inputs, and its output as a measurement for the filter.
 *
 * The network has a rate of its own. Where samples arrive at that rate, with a jitter of at most a fifth of a period, each is
 * one step of the network. At other rates its inputs are interpolated at its own instants, and the filter stops there for the
 * correction: no measurement is delayed, and the IMU is used at its full rate. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double MOST_PREDICTED_STD = 0.5; /* m/s: with a larger standard deviation an output holds no information */
static const double SPARE_AFTER = 0.05, BACK_AFTER = 0.5; /* s until the spare network takes over, and gives back */

/* The network in use and its memory. */
const gait_network *network_of(gait_t *g, float **memory)
{
    const gait_config *c = g->config;
    *memory = gait_memory(g);
    if (!g->spare) return c->network;
    *memory += gait_network_floats(c->network);
    return c->spare_network;
}

/* Clear the memory of the network, which takes samples for consecutive: at a gap it is no longer valid. */
static void forget(gait_t *g)
{
    float *memory;
    if (g->config->method == GAIT_LEGS) legs_forget(g);
    else if (g->config->method == GAIT_VELOCITY) {
        const gait_network *network = network_of(g, &memory);
        gait_network_reset(network, memory);
    }
}

/* Inputs of the network from the admitted sample; the last ones are kept to interpolate. Returns health bits. */
static uint32_t gather(gait_t *g, const gait_sample *sample)
{
    const gait_robot *robot = &g->config->robot;
    const gait_input *in = &g->input;
    const int joints = robot->joints;
    float *now = g->now;
    if (g->config->method == GAIT_LEGS) return legs_gather(g, sample);
    memcpy(g->last, now, (size_t)(6 + 3 * joints) * sizeof *now);
    for (int i = 0; i < 3; i++) {
        now[i] = (float)in->gyro[i];
        now[3 + i] = (float)in->accel[i];
    }
    for (int j = 0; j < joints; j++) {
        now[6 + j] = (float)in->q[j];
        now[6 + joints + j] = (float)in->dq[j];
        if (g->config->reads_targets) now[6 + 2 * joints + j] = (float)in->e[j];
    }
    return 0;
}

/* One step of the network at a time between the last sample (part 0) and this one (part 1). */
static void predict(gait_t *g, double part, double moment)
{
    const gait_config *c = g->config;
    float features[6 + 3 * GAIT_MAX_JOINTS], *memory;
    unsigned char seen[2 + GAIT_MAX_LEGS + 3];
    if (c->method == GAIT_LEGS) {
        fetch_next(g);
        legs_step(g, part, moment);
        fetch_next(g);
        return;
    }
    const gait_network *network = network_of(g, &memory);
    for (int i = 0; i < network->features; i++)
        features[i] = part == 1.0 ? g->now[i] : g->last[i] + (float)part * (g->now[i] - g->last[i]);
    memset(seen, 1, sizeof seen);
    if (c->hides_legs) {
        seen[0] = g->input.imu[GYRO].blind == 0.0;
        seen[1] = g->input.imu[ACCEL].blind == 0.0;
        memcpy(seen + 2, g->input.ok, (size_t)c->robot.legs);
    }
    fetch_next(g);
    gait_network_step(network, memory, gait_scratch(g), features, seen, g->predicted);
    fetch_next(g);
}

/* Variances of the velocity along the columns of A (3, 3). */
void velocity_variance(const gait_filter *f, const double A[9], double out[3])
{
    const int ld = GAIT_STRIDE(f->size);
    const double *P = f->P + VEL * ld + VEL;
    for (int i = 0; i < 3; i++) {
        const double x = A[i], y = A[3 + i], z = A[6 + i];
        out[i] = x * x * P[0] + y * y * P[ld + 1] + z * z * P[2 * ld + 2]
            + 2.0 * (x * y * P[1] + x * z * P[2] + y * z * P[ld + 2]);
    }
}

/* The predicted state in base axes. */
prediction predicted_state(const gait_t *g)
{
    const gait_filter *f = &g->filter;
    const gait_robot *robot = &g->config->robot;
    double rate[3], force[3], R_wb[9], lever_b[3], turning[3];
    prediction p;
    for (int i = 0; i < 3; i++) {
        rate[i] = g->input.gyro[i] - f->b[0][i];
        force[i] = g->input.accel[i] - f->b[1][i];
    }
    rotate(robot->R_bi, rate, p.rate);
    rotate(robot->R_bi, force, p.acceleration);
    base_axes(g, R_wb);
    rotate_back(R_wb, f->x[0], p.velocity);
    cross(p.rate, robot->p_bi, lever_b);
    for (int i = 0; i < 3; i++) p.velocity[i] -= lever_b[i];
    velocity_variance(f, R_wb, p.variance);
    p.upright = feet_may_stand(g, R_wb);
    cross(p.rate, p.velocity, turning);
    for (int i = 0; i < 3; i++) p.acceleration[i] += R_wb[6 + i] * g->config->settings.gravity - turning[i];
    return p;
}

/* The network's output as a measurement of base_link's velocity, compared with the predicted state. Returns whether it holds
 * information. */
static int measure(gait_t *g, gait_measurement *m, int still, uint32_t *health)
{
    const double factor = g->config->settings.inflation;
    const prediction p = predicted_state(g);
    double delta[3], instant[3], none[3] = {0.0};
    int informative = 0;
    m->bias = m->bias_variance = 0.0;
    for (int i = 0; i < 3; i++) {
        const double std = exp((double)g->predicted[3 + i]);
        m->velocity[i] = (double)g->predicted[i];
        instant[i] = g->adapt.factor[i / 2] * std * std;
        m->variance[i] = factor * factor * instant[i];
        delta[i] = m->velocity[i] - p.velocity[i];
        informative = informative || std < MOST_PREDICTED_STD;
    }
    if (informative && !still)
        *health |= monitor_consensus(g, delta, p.variance, instant, none, m->variance, g->config->period);
    return informative;
}

/* A robot at rest: zero velocity, and the rate about the vertical is gyro bias. Standard deviations in m/s and rad/s. */
static const double REST_VELOCITY_STD = 0.03, REST_RATE_STD = 0.02;
static void rest(const gait_t *g, gait_measurement *m)
{
    const double *axis_i = g->config->robot.R_bi + 6, *gyro = g->input.gyro, *bias = g->filter.b[0];
    m->bias = 0.0;
    for (int i = 0; i < 3; i++) {
        m->velocity[i] = 0.0;
        m->variance[i] = REST_VELOCITY_STD * REST_VELOCITY_STD;
        m->bias += axis_i[i] * (gyro[i] - bias[i]);
    }
    m->bias_variance = REST_RATE_STD * REST_RATE_STD;
}

/* Correct the filter by the measurement, moved from base_link to the IMU. Returns health bits. */
static uint32_t correct(gait_t *g)
{
    const gait_robot *robot = &g->config->robot;
    const double *R_bi = robot->R_bi;
    uint32_t health = 0;
    gait_measurement m;
    gait_filter *f = &g->filter;
    const int still = monitor_still(g, g->config->period);
    if (g->input.imu[GYRO].odd > 0.0) return health; /* the velocity that legs measure depends on the angular rate */
    if (!(g->config->method == GAIT_LEGS ? legs_fuse(g, &m, still, &health) : measure(g, &m, still, &health))) return health;
    if (still) rest(g, &m);
    if (g->input.imu[GYRO].cut > 0.0) {
        /* So does its error. */
        const double hidden = cut_off2(&g->input.imu[GYRO]) * robot->leg_length * robot->leg_length;
        for (int i = 0; i < 3; i++) m.variance[i] += hidden;
    }
    fetch_next(g);
    double rate[3], omega_b[3], lever_b[3], vel_i[3], cov_i[9];
    for (int i = 0; i < 3; i++) rate[i] = g->input.gyro[i] - f->b[0][i];
    rotate(R_bi, rate, omega_b);
    cross(omega_b, robot->p_bi, lever_b);
    for (int i = 0; i < 3; i++) lever_b[i] += m.velocity[i];
    rotate_back(R_bi, lever_b, vel_i);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            cov_i[3 * i + j] = R_bi[i] * m.variance[0] * R_bi[j] + R_bi[3 + i] * m.variance[1] * R_bi[3 + j]
                + R_bi[6 + i] * m.variance[2] * R_bi[6 + j];
    if (m.bias_variance > 0.0) filter_correct_gyro_bias(f, R_bi + 6, m.bias, m.bias_variance);
    fetch_next(g);
    if (!filter_correct_velocity(f, vel_i, cov_i)) return health | GAIT_REJECTED;
    g->measured = 1;
    return health;
}

/* Switch to the network that was trained with a hidden leg while a leg is out of use, and back. */
static void choose_network(gait_t *g, int whole)
{
    g->broken = whole ? 0.0 : g->broken + g->input.dt;
    g->whole = whole ? g->whole + g->input.dt : 0.0;
    if (g->config->spare_network && (g->spare ? g->whole > BACK_AFTER : g->broken > SPARE_AFTER)) {
        g->spare = !g->spare;
        forget(g);
    }
}

/* Propagate to this sample, with a step of the network and a correction at each of its instants on the way. */
static uint32_t follow(gait_t *g, uint32_t health)
{
    const double t = g->input.t, dt = g->input.dt, period = g->config->period, tolerance = GAIT_JITTER * period;
    double covered = t - dt;
    while (g->next_step <= t + tolerance) {
        const int now = fabs(t - g->next_step) <= tolerance;
        const double moment = now ? t : g->next_step;
        if (moment > covered) {
            propagate_by_imu(g, moment - covered, health);
            covered = moment;
        }
        predict(g, now ? 1.0 : (moment - t + dt) / dt, moment);
        health |= correct(g);
        g->next_step = moment + period;
        if (g->next_step <= moment) break; /* a stamp so large that adding a period does not change it */
    }
    if (t > covered) propagate_by_imu(g, t - covered, health);
    return health;
}

/* Bring a method with a network to the admitted sample; returns health bits. */
uint32_t network_step(gait_t *g, const gait_sample *sample, int verdict, uint32_t health)
{
    const gait_config *c = g->config;
    gait_input *in = &g->input;
    int standing = 0;
    health |= gather(g, sample);
    for (int leg = 0; leg < c->robot.legs; leg++) standing += in->ok[leg];
    const int usable = in->imu_known && imu_blind(in) <= c->settings.hold && standing > 0;
    choose_network(g, standing == c->robot.legs);
    if (verdict == FIRST && !take_attitude(g)) return health | GAIT_STARTING | GAIT_NO_MEASUREMENT;
    if (verdict == GO_ON && usable) return follow(g, health);
    if (verdict == GO_ON) propagate_by_imu(g, in->dt, health);
    else if (verdict == AFTER_GAP) bridge_gap(g, health);
    forget(g);
    g->next_step = in->t + c->period;
    if (!usable) return health | GAIT_NO_MEASUREMENT;
    predict(g, 1.0, in->t);
    return verdict == AFTER_GAP ? health | correct(g) : health;
}
