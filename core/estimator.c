/* The estimator: one sample in, state out. Input checks, network or contacts, filter, recovery.
 *
 * The network has a rate of its own. Where samples come at that rate (a fifth of a period of jitter is allowed), each is one
 * step of the network. Where they come at another, its samples are interpolated at its own instants, and the filter stops
 * there to take the network's velocity: no measurement is late, and the IMU is used at its full rate. */
#include <math.h>
#include <string.h>

#include "core.h"


static const double JITTER = 0.2;        /* share of the network's period within which a sample is its sample */
static const double LONGEST_GAP = 30.0;  /* s that are bridged as a whole */
static const double REPEATS = 0.01;      /* s for which an IMU that is slower than the samples repeats its values */
/* Noise of a sample, rad/s and m/s^2, that walking makes; more is noise of the IMU. */
static const double USUAL_NOISE[2] = {0.03, 0.4};
static const double CUT_SHARE = 0.5;     /* how much larger than where it was cut off a value may have been */
static const double MOST_PREDICTED_STD = 0.5; /* m/s: a network with a larger standard deviation tells nothing */
static const double SPARE_AFTER = 0.05, BACK_AFTER = 0.5; /* s until the spare network takes over, and gives back */

/* Does not compile if GAIT_CONTEXT_BYTES is too small. */
typedef char context_fits[(sizeof(gait_t) + 63) / 64 * 64 <= GAIT_CONTEXT_BYTES ? 1 : -1];

/* Of a context without its networks: the filter comes last, and has just its rows. */
static size_t context_bytes(const gait_config *c)
{
    return (offsetof(gait_t, filter) + filter_bytes(gait_cov_size(c)) + 63) / 64 * 64;
}

float *gait_memory(gait_t *g)
{
    return (float *)((char *)g + g->memory);
}

/* Networks of a configuration need this many floats, the first one `first`. */
static size_t memory_floats(const gait_config *c, size_t *first)
{
    *first = c->network ? gait_network_floats(c->network) : 0;
    if (c->leg_network) *first = gait_leg_network_floats(c->leg_network, c->robot.legs);
    if (c->spare_leg_network) return *first + gait_leg_network_floats(c->spare_leg_network, c->robot.legs);
    return *first + (c->spare_network ? gait_network_floats(c->spare_network) : 0);
}

static size_t scratch_floats(const gait_config *c)
{
    if (c->spare_leg_network) {
        const size_t one = gait_leg_network_scratch(c->leg_network, c->robot.legs);
        const size_t other = gait_leg_network_scratch(c->spare_leg_network, c->robot.legs);
        return one > other ? one : other;
    }
    if (c->leg_network) return gait_leg_network_scratch(c->leg_network, c->robot.legs);
    return c->network ? gait_network_scratch(c->network) : 0; /* the spare one has the same architecture */
}

/* Floats are multiples of 16, so that all parts begin at a multiple of 64 bytes. */
static size_t scratch_offset(const gait_config *c)
{
    size_t first;
    return context_bytes(c) + memory_floats(c, &first) * sizeof(float);
}

float *gait_scratch(gait_t *g)
{
    return (float *)((char *)g + g->scratch);
}

size_t gait_bytes(const gait_config *config)
{
    return scratch_offset(config) + scratch_floats(config) * sizeof(float);
}

size_t gait_row_doubles(const gait_config *config)
{
    return (size_t)(7 + 4 * config->robot.joints + 3 * config->robot.legs);
}

static size_t attention_doubles(const gait_config *c)
{
    if (!c->with_details) return 0;
    if (c->leg_network) return (size_t)(c->robot.legs * c->robot.legs) * (c->leg_network->heads > 0);
    return c->network ? (size_t)(c->network->history * c->network->tokens) : 0;
}

size_t gait_state_doubles(const gait_config *config)
{
    const size_t legs = (size_t)config->robot.legs;
    if (config->method == GAIT_CONTACTS) return GAIT_STATE_DOUBLES + 2 * legs + feet_doubles(config);
    return GAIT_STATE_DOUBLES + feet_doubles(config) + (config->method == GAIT_LEGS ? legs : 0) + attention_doubles(config)
        + (config->method == GAIT_LEGS && config->with_details ? 6 * legs : 0);
}

int gait_cov_size(const gait_config *config)
{
    return FEET + (config->method == GAIT_CONTACTS ? 3 * config->robot.legs : 0);
}

void gait_cov(const gait_t *g, double *cov)
{
    const int size = g->filter.size, ld = GAIT_STRIDE(size);
    if (size == FEET) { /* of a constant size, a copy is a few instructions and no call */
        for (int i = 0; i < FEET; i++)
            memcpy(cov + i * FEET, g->filter.P + i * GAIT_STRIDE(FEET), FEET * sizeof(double));
        return;
    }
    for (int i = 0; i < size; i++) memcpy(cov + i * size, g->filter.P + i * ld, (size_t)size * sizeof(double));
}

gait_t *gait_init(void *memory, const gait_config *config)
{
    gait_t *g = memory;
    memset(memory, 0, gait_bytes(config));
    g->config = config;
    g->memory = (ptrdiff_t)context_bytes(config);
    g->scratch = (ptrdiff_t)scratch_offset(config);
    gait_reset_gravity(g, NULL);
    return g;
}

void gait_set_config(gait_t *g, const gait_config *config)
{
    g->config = config;
}

void gait_set_contact_source(gait_t *g, int source)
{
    g->contact_source = source;
}

/* The network in use and its memory. */
static const gait_network *network_of(gait_t *g, float **memory)
{
    size_t first;
    memory_floats(g->config, &first);
    *memory = gait_memory(g) + (g->spare ? first : 0);
    return g->spare ? g->config->spare_network : g->config->network;
}

/* The network knows only samples that follow each other: where one is missing, its memory ends. */
static void forget(gait_t *g)
{
    float *memory;
    if (g->config->method == GAIT_LEGS) legs_forget(g);
    else if (g->config->method == GAIT_VELOCITY) {
        const gait_network *network = network_of(g, &memory);
        gait_network_reset(network, memory);
    }
}

static void keep_pose(gait_t *g)
{
    memcpy(g->safe_R, g->filter.R, sizeof g->safe_R);
    memcpy(g->safe_p, g->filter.x[1], sizeof g->safe_p);
}

/* As before the first sample, but for the filter. */
static void begin(gait_t *g, int align)
{
    memset(&g->input, 0, sizeof g->input);
    for (int leg = 0; leg < g->config->robot.legs; leg++) g->input.no_target[leg] = INFINITY;
    g->broken = g->whole = 0.0;
    g->align = (uint8_t)align;
    g->measured = g->spare = g->has_joints = 0;
    memset(g->predicted, 0, sizeof g->predicted);
    contacts_reset(g);
    legs_reset(g);
    monitor_reset(g);
    adapt_reset(&g->adapt, g->config->method == GAIT_LEGS && all_soles(&g->config->robot));
    memset(&g->feet, 0, sizeof g->feet);
}

void gait_reset(gait_t *g, const double quat_wb_wxyz[4], const double vel_w[3], const double pos_w[3],
                const double omega_i[3], const double *std)
{
    const gait_robot *robot = &g->config->robot;
    gait_filter *f = &g->filter;
    double R_wb[9], omega_b[3], lever[3], arm_w[3];
    begin(g, 0);
    filter_init(f, g->config->method == GAIT_CONTACTS ? robot->legs : 0);
    lie_rotation_from_quat(quat_wb_wxyz, R_wb);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            f->R[3 * i + j] = R_wb[3 * i] * robot->R_bi[j] + R_wb[3 * i + 1] * robot->R_bi[3 + j]
                + R_wb[3 * i + 2] * robot->R_bi[6 + j];
    rotate(robot->R_bi, omega_i, omega_b);
    cross(omega_b, robot->p_bi, lever);
    rotate(R_wb, lever, lever);
    rotate(R_wb, robot->p_bi, arm_w);
    for (int i = 0; i < 3; i++) {
        f->x[0][i] = vel_w[i] + lever[i];
        f->x[1][i] = pos_w[i] + arm_w[i];
    }
    filter_prior(f, std ? std : g->config->settings.prior_std);
    keep_pose(g);
}

int gait_reset_gravity(gait_t *g, const double *accel)
{
    const gait_config *c = g->config;
    const double up[3] = {0.0, 0.0, -c->settings.gravity};
    gait_filter *f = &g->filter;
    double level[3];
    rotate_back(c->robot.R_bi, up, level);
    if (accel) {
        const double norm = sqrt(accel[0] * accel[0] + accel[1] * accel[1] + accel[2] * accel[2]);
        if (!(norm > 0.5 * fabs(c->settings.gravity) && norm < 1.5 * fabs(c->settings.gravity))) return 0;
    }
    begin(g, accel == NULL);
    filter_init(f, c->method == GAIT_CONTACTS ? c->robot.legs : 0);
    filter_align(f, &c->robot, c->settings.rest_std, accel ? accel : level, c->settings.gravity);
    keep_pose(g);
    return 1;
}

/* Variance that a motion of unknown size adds in the last `part` of `time` seconds for which it has been unknown, over
 * size^2: it lasts, so its effect grows with the time and not with the number of steps. */
static double unknown(double time, double part)
{
    return time * time - larger(time - part, 0.0) * larger(time - part, 0.0);
}

/* Carry the filter over dt seconds; what that adds to the velocity is the IMU's. */
int propagate(gait_t *g, const gait_settings *s, const gait_noise *noise, const double gyro[3], const double accel[3],
              double dt)
{
    gait_filter *f = &g->filter;
    const double before[3] = {f->x[0][0], f->x[0][1], f->x[0][2]};
    if (!filter_step(g, s, noise, gyro, accel, dt)) return 0;
    for (int i = 0; i < 3; i++) g->adapt.inertial[i] += f->x[0][i] - before[i];
    g->adapt.since += dt;
    return 1;
}

/* Carry the filter over dt seconds without a good accelerometer: velocity held, covariance inflated by how the body may
 * have moved in the last `part` of `time` seconds, `rate` and `accel` at most; the gyro is used if it is given. Feet, which
 * only the contact-aided filter has, are let go of. */
static void bridge(gait_t *g, const double *gyro, double time, double part, double dt, double rate, double accel)
{
    const gait_settings *s = &g->config->settings;
    gait_filter *f = &g->filter;
    for (int leg = 0; leg < g->config->robot.legs; leg++) {
        if (f->active[leg]) filter_remove_foot(f, leg);
        g->contacts.contact[leg] = 0;
        g->contacts.waiting[leg] = 0.0;
        g->contacts.fresh[leg] = 1;
    }
    gait_settings floating = *s; /* a velocity that is held does not lean with the orientation */
    const int ld = GAIT_STRIDE(f->size);
    const double variance = unknown(time, part), density = sqrt(variance / dt);
    gait_noise noise = s->noise;
    noise.gyro = gyro ? s->noise.gyro : rate * density;
    noise.accel = accel * density;
    noise.accel_share = 0.0;
    floating.gravity = 0.0;
    propagate(g, &floating, &noise, gyro ? gyro : f->b[0], f->b[1], dt);
    /* When within the time the velocity changed is not known either. */
    for (int i = 0; i < 3; i++) f->P[(POS + i) * ld + POS + i] += 0.1 * accel * accel * variance * time * time;
}

/* A gap between samples; how long a clock that was set back stood still is not known. */
static void bridge_gap(gait_t *g, uint32_t health)
{
    const gait_settings *s = &g->config->settings;
    const double dt = smaller(g->input.dt, LONGEST_GAP), time = health & GAIT_CLOCK_BACK ? dt + s->max_gap : dt;
    bridge(g, NULL, time, time, dt, s->gap_rate, s->gap_accel);
}

/* How a body moves that is not measured: `least`, or as it did before. */
static double usual_motion(const gait_sensor *s, double least)
{
    return sqrt(larger(least * least, s->swing));
}

/* Carry the filter over dt seconds without a good IMU, or without a good accelerometer. A body hit so hard that the IMU
 * saturated was accelerated by more than its range; values of another unit did harm before they were found out. */
static void bridge_blind(gait_t *g, double dt, uint32_t health)
{
    const gait_settings *s = &g->config->settings;
    const gait_sensor *gyro = &g->input.imu[GYRO], *accel = &g->input.imu[ACCEL];
    const int saturated = health & GAIT_IMU_SATURATED && health & GAIT_ACCEL;
    const double late = larger(gyro->charge, accel->charge), time = larger(gyro->blind, accel->blind) + late;
    double most_rate = usual_motion(gyro, s->gap_rate), most_accel = usual_motion(accel, s->gap_accel);
    if (saturated) most_accel = s->max_accel;
    if (gyro->charge > 0.0) most_rate = larger(most_rate, gyro->level);
    if (late > 0.0) most_accel = larger(most_accel, fabs(s->gravity));
    bridge(g, gyro->blind > 0.0 ? NULL : g->input.gyro, time, dt + late, dt, most_rate, most_accel);
}

/* Mean square of what a sensor that is cut off has not measured. */
static double hidden2(const gait_sensor *s)
{
    const double top = CUT_SHARE * larger(s->top[0], larger(s->top[1], s->top[2]));
    return larger(top * top, s->swing);
}

/* Variance over dt^2 that what a sensor did not measure adds: samples that were lost, repeated, cut off or a spike, the
 * first two for a motion of `size`. */
static double unmeasured(const gait_input *in, const gait_sensor *s, double size, double dt)
{
    if (in->unseen == 0.0 && s->same <= REPEATS && s->spike == 0.0 && s->cut == 0.0) return 0.0;
    const double lost = in->unseen * in->unseen / (in->dt * dt), spike = s->spike * s->spike;
    const double repeated = s->same > REPEATS ? unknown(s->same - REPEATS, dt) / (dt * dt) : 0.0;
    const double cut2 = s->cut > 0.0 ? hidden2(s) : 0.0;
    return larger(size * size, s->swing) * (lost + repeated) + spike + cut2 * unknown(s->cut, dt) / (dt * dt);
}

/* Density of the IMU's noise over a step. A sample that stands for longer than those of the network says less of what
 * happened in between: the error of a step goes with the square of its length, and its density with the power of 3/2.
 * Noise from sample to sample that exceeds what steps of a robot make joins it. */
gait_noise imu_noise(const gait_t *g, double dt)
{
    const gait_settings *s = &g->config->settings;
    const gait_input *in = &g->input;
    const gait_sensor *gyro = &in->imu[GYRO], *accel = &in->imu[ACCEL];
    gait_noise noise = s->noise;
    if (noise.accel_share > 0.0 && in->dt > (1.0 + JITTER) * g->config->period) {
        const double slow = in->dt / g->config->period;
        noise.accel_share *= slow * sqrt(slow);
    }
    const double rough_rate = larger(0.0, gyro->noise * gyro->noise - USUAL_NOISE[GYRO] * USUAL_NOISE[GYRO]) * in->dt;
    const double rough_force = larger(0.0, accel->noise * accel->noise - USUAL_NOISE[ACCEL] * USUAL_NOISE[ACCEL]) * in->dt;
    /* A rate that no robot has, but not for long enough to be another unit: all of it may be wrong. */
    const double odd = gyro->odd > 0.0 ? gyro->level * gyro->level * unknown(gyro->odd, dt) / dt : 0.0;
    const double more_rate = rough_rate + odd + unmeasured(in, gyro, s->gap_rate, dt) * dt;
    const double more_force = rough_force + unmeasured(in, accel, s->gap_accel, dt) * dt
        + larger(0.0, g->adapt.accel2 - noise.accel * noise.accel);
    if (more_rate > 0.0) noise.gyro = sqrt(noise.gyro * noise.gyro + more_rate);
    if (more_force > 0.0) noise.accel = sqrt(noise.accel * noise.accel + more_force);
    return noise;
}

/* Carry the filter over part of the step to this sample. */
static void advance(gait_t *g, double dt, uint32_t health)
{
    fetch_next(g);
    const gait_input *in = &g->input;
    if (in->imu[GYRO].blind > 0.0 || in->imu[ACCEL].blind > 0.0) {
        bridge_blind(g, dt, health);
        return;
    }
    const gait_noise noise = imu_noise(g, dt);
    propagate(g, &g->config->settings, &noise, in->gyro, in->accel, dt);
}

/* s for which the IMU has not been good as a whole. */
static double blind(const gait_t *g)
{
    return larger(g->input.imu[GYRO].blind, g->input.imu[ACCEL].blind);
}

/* Inputs of the network from the admitted sample; those of the one before move back. Returns health bits. */
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

/* The network's output as a measurement of base_link's velocity, held against the predicted state. Returns whether it
 * tells anything. */
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

/* A robot at rest: no velocity, and what the gyro measures about the vertical is bias. */
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

/* The measurement moved to the IMU and into its axes, into the filter. Returns health bits. */
static uint32_t correct(gait_t *g)
{
    const gait_robot *robot = &g->config->robot;
    const double *R_bi = robot->R_bi;
    uint32_t health = 0;
    gait_measurement m;
    gait_filter *f = &g->filter;
    const int still = monitor_still(g, g->config->period);
    if (g->input.imu[GYRO].odd > 0.0) return health; /* legs measure a velocity with the angular rate in it */
    if (!(g->config->method == GAIT_LEGS ? legs_fuse(g, &m, still, &health) : measure(g, &m, still, &health))) return health;
    if (still) rest(g, &m);
    if (g->input.imu[GYRO].cut > 0.0) {
        /* Legs measure a velocity with the angular rate in it. */
        const double hidden = hidden2(&g->input.imu[GYRO]) * robot->leg_length * robot->leg_length;
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

/* Change to the network that was trained with a leg hidden while one is out of use, and back. */
static void choose_network(gait_t *g, int whole)
{
    g->broken = whole ? 0.0 : g->broken + g->input.dt;
    g->whole = whole ? g->whole + g->input.dt : 0.0;
    if (g->config->spare_network && (g->spare ? g->whole > BACK_AFTER : g->broken > SPARE_AFTER)) {
        g->spare = !g->spare;
        forget(g);
    }
}

/* Steps of the network that lie between the last sample and this one, and the filter between them. */
static uint32_t follow(gait_t *g, uint32_t health)
{
    const double t = g->input.t, dt = g->input.dt, period = g->config->period, tolerance = JITTER * period;
    double covered = t - dt;
    while (g->next_step <= t + tolerance) {
        /* What is nearly the network's instant is its instant: stamps jitter. */
        const int now = fabs(t - g->next_step) <= tolerance;
        const double moment = now ? t : g->next_step;
        if (moment > covered) {
            advance(g, moment - covered, health);
            covered = moment;
        }
        predict(g, now ? 1.0 : (moment - t + dt) / dt, moment);
        health |= correct(g);
        g->next_step = moment + period;
        if (g->next_step <= moment) break; /* stamps so large that a period is lost in their rounding */
    }
    if (t > covered) advance(g, t - covered, health);
    return health;
}

static int align(gait_t *g)
{
    const gait_settings *s = &g->config->settings;
    return filter_align(&g->filter, &g->config->robot, s->rest_std, g->input.accel, s->gravity);
}

/* Carry the state of a method with a network to the sample that was just admitted; returns health bits. */
static uint32_t network_step(gait_t *g, const gait_sample *sample, int verdict, uint32_t health)
{
    const gait_config *c = g->config;
    gait_input *in = &g->input;
    int standing = 0;
    health |= gather(g, sample);
    for (int leg = 0; leg < c->robot.legs; leg++) standing += in->ok[leg];
    const int usable = in->imu_known && blind(g) <= c->settings.hold && standing > 0;
    choose_network(g, standing == c->robot.legs);
    if (verdict == FIRST && g->align) {
        if (blind(g) > 0.0 || !align(g)) {
            in->started = 0; /* not a robot at rest: look again at the next sample */
            return health | GAIT_STARTING | GAIT_NO_MEASUREMENT;
        }
        g->align = 0;
    }
    if (verdict == GO_ON && usable) return follow(g, health);
    if (verdict == GO_ON) advance(g, in->dt, health);
    else if (verdict == AFTER_GAP) bridge_gap(g, health);
    forget(g);
    g->next_step = in->t + c->period;
    if (!usable) return health | GAIT_NO_MEASUREMENT;
    predict(g, 1.0, in->t);
    return verdict == AFTER_GAP ? health | correct(g) : health;
}

/* The first sample of a method without a network: roll and pitch from gravity, if nothing else is known. */
static uint32_t start(gait_t *g)
{
    if (g->align && (blind(g) > 0.0 || !align(g))) {
        g->input.started = 0; /* not a robot at rest: look again at the next sample */
        return GAIT_STARTING | GAIT_NO_MEASUREMENT;
    }
    g->align = 0;
    return GAIT_STARTING;
}

/* The same for the contact-aided filter. */
static uint32_t contact_step(gait_t *g, const gait_sample *sample, int verdict, uint32_t health)
{
    gait_input *in = &g->input;
    if (verdict == FIRST) return health | start(g);
    if (verdict == AFTER_GAP) {
        bridge_gap(g, health);
        return health | GAIT_NO_MEASUREMENT;
    }
    if (blind(g) > 0.0) {
        bridge_blind(g, in->dt, health);
        return health | GAIT_NO_MEASUREMENT;
    }
    return health | contacts_step(g, sample);
}

/* The same for measurements of the caller, up to them. */
static uint32_t external_step(gait_t *g, int verdict, uint32_t health, int *ready)
{
    gait_input *in = &g->input;
    if (verdict == FIRST) health |= start(g);
    else if (verdict == AFTER_GAP) bridge_gap(g, health);
    else advance(g, in->dt, health);
    *ready = in->started && in->imu_known;
    return health;
}

static void write_details(gait_t *g, double *out)
{
    const gait_config *c = g->config;
    const size_t attention = attention_doubles(c);
    float *memory;
    if (c->method == GAIT_CONTACTS || c->method == GAIT_LEGS)
        for (int leg = 0; leg < c->robot.legs; leg++) *out++ = g->monitor.leg_ratio[leg];
    if (c->method == GAIT_CONTACTS)
        for (int leg = 0; leg < c->robot.legs; leg++) out[leg] = g->contacts.contact[leg];
    if (!c->with_details) return;
    if (c->method == GAIT_LEGS) {
        const gait_leg_network *network = legs_network(g, &memory);
        if (attention)
            gait_leg_network_attention(network, c->robot.legs, memory, gait_scratch(g), g->legs.seen, out);
        for (int i = 0; i < 6 * c->robot.legs; i++) out[attention + (size_t)i] = (double)g->legs.out[i];
    } else if (attention) {
        const gait_network *network = network_of(g, &memory);
        gait_network_attention(network, memory, gait_scratch(g), out);
    }
}

static void write_state(gait_t *g, uint32_t health, gait_state *out)
{
    const int networked = g->config->method == GAIT_VELOCITY || g->config->method == GAIT_LEGS;
    filter_output(&g->filter, &g->config->robot, g->input.gyro, out);
    monitor_output(g, out);
    out->t = g->input.t;
    out->health = health;
    out->gap = g->input.gap;
    for (int i = 0; i < 6; i++) out->predicted[i] = networked ? (double)g->predicted[i] : NAN;
    out->test_ratio = g->monitor.ratio;
    out->resets = g->monitor.resets;
    out->valid = monitor_valid(g, out);
    write_details(g, (double *)out + GAIT_STATE_DOUBLES);
    if (g->config->with_feet)
        feet_write(g, out, (double *)out + gait_state_doubles(g->config) - feet_doubles(g->config));
}

/* Biases beyond these are not a sensor's; rad/s and m/s^2. */
static const double MOST_BIAS[2] = {0.2, 1.5};
static void limit_biases(gait_filter *f)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++) f->b[k][i] = larger(-MOST_BIAS[k], smaller(MOST_BIAS[k], f->b[k][i]));
}

/* Start again with heading, velocity and position lost; the pose stays. */
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
        /* What was lost before stays lost. */
        const double before = f->P[(POS + i) * ld + POS + i];
        std[POS + i] = before > LOST_POSITION * LOST_POSITION && isfinite(before) ? sqrt(before) : LOST_POSITION;
    }
    filter_prior(f, std);
    g->monitor.resets++;
    g->monitor.lost = 1;
}

/* See that the state is one; if it is not, return to the last good pose. Returns whether it had to. */
static int recover(gait_t *g)
{
    gait_filter *f = &g->filter;
    if (filter_plausible(f)) {
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

/* Gravity has not been where the orientation has it for long: take roll and pitch from it. */
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

/* Lines of the cache that a step reads and writes in a context. */
static void plan_range(gait_fetch *plan, const gait_t *g, const void *from, size_t bytes)
{
    const size_t start = (size_t)((const char *)from - (const char *)g);
    for (size_t line = start / 64; line <= (start + bytes - 1) / 64 && plan->count < GAIT_FETCH_LINES; line++)
        if (plan->count == 0 || plan->lines[plan->count - 1] != line) plan->lines[plan->count++] = (uint32_t)line;
}

static void plan_fetch(gait_fetch *plan, gait_t *g)
{
    const gait_config *c = g->config;
    const size_t joints = (size_t)c->robot.joints * sizeof(double), features = 6 * sizeof(float) + joints / 2 * 3;
    const gait_leg_state *l = &g->legs;
    const double *const arrays[5] = {g->input.q, g->input.dq, g->input.e, g->input.raw_q, g->input.raw_dq};
    const gait_joint_state *checks = &g->input.joints;
    const double *const of_joints[7] = {checks->slow_q, checks->slow_dq, checks->moves, checks->turns,
                                        checks->apart,  checks->same,    checks->doubt};
    const double *const of_legs[9] = {l->tau[0], l->tau[1], l->q[0],  l->q[1],      l->dq[0],
                                      l->dq[1],  l->last_dq, l->ddq, l->smooth_tau};
    plan_range(plan, g, g, offsetof(gait_t, input.q));
    for (int k = 0; k < 5; k++) plan_range(plan, g, arrays[k], joints);
    plan_range(plan, g, g->input.unchanged, offsetof(gait_input, joints) - offsetof(gait_input, unchanged));
    for (int k = 0; k < 7; k++) plan_range(plan, g, of_joints[k], joints);
    plan_range(plan, g, checks->speed2, sizeof g->input - offsetof(gait_input, joints) - offsetof(gait_joint_state, speed2));
    plan_range(plan, g, &g->monitor, sizeof g->monitor);
    plan_range(plan, g, &g->adapt, offsetof(gait_adapt, apart));
    plan_range(plan, g, g->safe_R, offsetof(gait_t, last) - offsetof(gait_t, safe_R));
    if (c->method == GAIT_VELOCITY) {
        plan_range(plan, g, g->last, features);
        plan_range(plan, g, g->now, features);
    }
    for (int k = 0; k < 9 && c->method == GAIT_LEGS; k++) plan_range(plan, g, of_legs[k], joints);
    if (c->method == GAIT_LEGS) {
        plan_range(plan, g, l->gyro, offsetof(gait_leg_state, last_dq) - offsetof(gait_leg_state, gyro));
        plan_range(plan, g, l->rates_b, offsetof(gait_leg_state, flexure) - offsetof(gait_leg_state, rates_b));
    }
    if (c->method == GAIT_CONTACTS) plan_range(plan, g, &g->contacts, sizeof g->contacts);
    plan_range(plan, g, &g->filter, filter_bytes(gait_cov_size(c)));
    if (c->method == GAIT_VELOCITY) plan_range(plan, g, gait_memory(g), gait_network_floats(c->network) * sizeof(float));
    if (c->method == GAIT_LEGS) {
        float *memory;
        const gait_leg_network *network = legs_network(g, &memory);
        plan_range(plan, g, memory, 1);
        for (int ring = 0; ring <= c->robot.legs; ring++) {
            const gait_piece piece = gait_leg_network_next(network, c->robot.legs, memory, ring);
            plan_range(plan, g, piece.from, piece.bytes);
        }
    }
}

/* All contexts work in the scratch of the first, which stays in the cache, and while one steps the next is fetched. */
void gait_update_batch(gait_t *first, size_t bytes, size_t n, const double *rows, const unsigned char *skip,
                       double *states)
{
    const gait_config *c = first->config;
    const size_t width = gait_row_doubles(c), out = gait_state_doubles(c);
    const ptrdiff_t own = first->scratch;
    gait_fetch plan = {NULL, 0, 0, {0}};
    plan_fetch(&plan, first);
    for (size_t k = 0; k < n; k++) {
        gait_t *g = (gait_t *)((char *)first + k * bytes);
        const gait_sample sample = sample_of(c, rows + k * width);
        if (skip && skip[k]) continue;
        plan.from = (const char *)g + bytes;
        plan.done = k + 1 < n ? 0 : plan.count;
        g->fetch = &plan;
        if (!c->with_details) g->scratch = own - (ptrdiff_t)(k * bytes);
        if (k + 1 < n) fetch_range(rows + (k + 1) * width, width * sizeof *rows);
        if (k + 1 < n) fetch_range(states + (k + 1) * out, out * sizeof *states);
        gait_update(g, &sample, (gait_state *)(states + k * out));
        g->scratch = own;
        g->fetch = NULL;
    }
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
            advance(scratch, dt, 0);
        }
    }
    write_state(scratch, health, (gait_state *)state_and_cov);
    gait_cov(scratch, state_and_cov + gait_state_doubles(g->config));
}
