/* gait-legs: from samples to the features of each leg, and from the velocity and log-std of each leg to one measurement.
 *
 * A leg whose foot stands still measures the velocity of the body by itself, v = -(J dq + w x p), plus what a round foot
 * rolls. Beside it stand the features that tell how informative it is: position of the foot, in lengths of the leg, and
 * the ground force, in weights of the robot. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double SMOOTHING = 0.004;    /* low-pass of joint accelerations and torques, s */
static const double NEVER = 1e9;          /* s */
static const double TORQUES_AFTER = 0.5;     /* s of torques until the network that reads them takes over again */
static const double UNINFORMATIVE = 3.0;  /* m/s: with a larger standard deviation a leg is not fused, */
static const double SILENT = 0.15;        /* and with none for so long, s, on a body that does not fall, there is no */
static const double FALLING = 7.0;        /* measurement; m/s^2 of specific force */
/* Factors on the standard deviation of the gyro bias from the differences between legs: always, for each rad/s of
 * rotation and for each m/s^2 of acceleration; squares add up. Errors of joint zeros and link lengths do not average out,
 * and legs that are late differ the more the less even the motion. */
static const double BIAS_ALWAYS = 1.5, BIAS_BY_RATE = 3.0, BIAS_BY_ACCEL = 0.3;
static const double BIAS_LEAST = 1e6;     /* variance of a rate, (rad/s)^2, beyond which nothing is known of it */

void legs_reset(gait_t *g)
{
    memset(&g->legs, 0, sizeof g->legs);
    /* Other methods use what legs measure for their contacts alone, and do not fit it. */
    flexure_reset(&g->legs.flexure, &g->config->robot, g->config->settings.flexure && g->config->method == GAIT_LEGS);
    g->legs.without_torque = NEVER; /* the first sample decides which network begins */
    for (int leg = 0; leg < g->config->robot.legs; leg++) g->legs.no_torque[leg] = NEVER;
}

/* The network in use and its memory. */
const gait_leg_network *legs_network(gait_t *g, float **memory)
{
    const gait_config *c = g->config;
    *memory = gait_memory(g);
    if (!g->legs.kinematic) return c->leg_network;
    *memory += gait_leg_network_floats(c->leg_network, c->robot.legs);
    return c->spare_leg_network;
}

/* The network knows only samples that follow each other: where one is missing, its memory ends. */
void legs_forget(gait_t *g)
{
    float *memory;
    const gait_leg_network *network = legs_network(g, &memory);
    gait_leg_network_reset(network, memory);
    g->legs.begun = 0;
    memset(g->legs.seen, 0, sizeof g->legs.seen);
    memset(g->legs.before, 0, sizeof g->legs.before);
}

/* Change to the network that reads no torques while there are none, and back. */
static void choose_leg_network(gait_t *g, int with_torque)
{
    gait_leg_state *s = &g->legs;
    const double hold = g->config->settings.hold;
    s->without_torque = with_torque ? 0.0 : s->without_torque + g->input.dt;
    s->with_torque = with_torque ? s->with_torque + g->input.dt : 0.0;
    if (!g->config->spare_leg_network) return;
    if (s->kinematic ? s->with_torque > TORQUES_AFTER : s->without_torque > hold) {
        s->kinematic = !s->kinematic;
        legs_forget(g);
    }
}

/* Keep the admitted sample; the one before moves back. A torque that is missing for a moment stays as it was; then the
 * network without torques takes over, or the leg is out of use. Returns health bits. */
uint32_t legs_gather(gait_t *g, const gait_sample *sample)
{
    const gait_config *config = g->config;
    const gait_robot *robot = &config->robot;
    gait_leg_state *s = &g->legs;
    gait_input *in = &g->input;
    const size_t joints = (size_t)robot->joints * sizeof(double);
    uint8_t found[GAIT_MAX_LEGS];
    uint32_t health = 0;
    int whole = 1;
    memcpy(s->gyro[0], s->gyro[1], sizeof s->gyro[0]);
    memcpy(s->accel[0], s->accel[1], sizeof s->accel[0]);
    memcpy(s->q[0], s->q[1], joints);
    memcpy(s->dq[0], s->dq[1], joints);
    memcpy(s->tau[0], s->tau[1], joints);
    memcpy(s->gyro[1], in->gyro, sizeof in->gyro);
    memcpy(s->accel[1], in->accel, sizeof in->accel);
    memcpy(s->q[1], in->q, joints);
    memcpy(s->dq[1], in->dq, joints);
    if (!config->reads_targets) return 0;
    health |= torques_admit(g, sample, s->tau[1], found);
    for (int leg = 0; leg < robot->legs; leg++) {
        s->no_torque[leg] = found[leg] ? 0.0 : s->no_torque[leg] + in->dt;
        whole = whole && (found[leg] || !in->ok[leg]);
    }
    choose_leg_network(g, whole);
    for (int leg = 0; leg < robot->legs && !config->spare_leg_network; leg++)
        if (in->ok[leg] && s->no_torque[leg] > config->settings.hold) {
            in->ok[leg] = 0;
            health |= GAIT_STALE_LEG | GAIT_BAD_SAMPLE | 1u << (GAIT_FIRST_LEG + leg);
        }
    return health;
}

/* The angular rate at the time when the joints were read, which is earlier than that of the IMU: with the present one a
 * body that pitches to and fro would seem to move to and fro as well. */
static void delayed_rate(gait_leg_state *s, const double rate_b[3], double delay, double dt, double out[3])
{
    if (s->begun) memmove(s->rates_b[1], s->rates_b[0], sizeof s->rates_b - sizeof s->rates_b[0]);
    for (int k = 0; k < (s->begun ? 1 : RATES); k++) memcpy(s->rates_b[k], rate_b, sizeof s->rates_b[k]);
    const double steps = dt > 0.0 ? fmin(delay / dt, RATES - 1.001) : 0.0;
    const int last = (int)steps;
    for (int i = 0; i < 3; i++)
        out[i] = s->rates_b[last][i] + (steps - last) * (s->rates_b[last + 1][i] - s->rates_b[last][i]);
}

/* Whether there are torques to tell a centre of pressure: such as are all zero were not measured. */
static int torques_known(const gait_leg_state *s, int begin, int end)
{
    int known = 0;
    for (int j = begin; j < end; j++) known = known || s->smooth_tau[j] != 0.0;
    return known && !s->torqueless;
}

/* Features of one sample, dt seconds after the one before. */
void legs_features(const gait_robot *robot, double delay, gait_leg_state *s, const double gyro[3],
                   const double accel[3], const double *q, const double *dq, const double *tau, double dt)
{
    const double share = s->begun ? dt / (SMOOTHING + dt) : 0.0;
    double *out = s->features, omega_b[3], gravity_b[3];
    rotate(robot->R_bi, gyro, out);
    rotate(robot->R_bi, accel, out + 3);
    for (int i = 0; i < 3; i++) gravity_b[i] = -out[3 + i];
    delayed_rate(s, out, delay, dt, omega_b);
    for (int leg = 0; leg < robot->legs; leg++) {
        const int begin = robot->leg_start[leg], end = robot->leg_start[leg + 1];
        double *mine = out + SHARED_FEATURES + LEG_FEATURES * leg;
        static const double up_b[3] = {0.0, 0.0, 1.0};
        leg_pose m;
        double moving_b[3], rate_b[3], above_b[3], roll_b[3], tau_free[GAIT_LEG_LINKS], wrench_b[6];
        double own_q[GAIT_LEG_LINKS], own_dq[GAIT_LEG_LINKS], tau_rate[GAIT_LEG_LINKS] = {0.0}, sway_b[3] = {0.0};
        const double c = s->torqueless ? s->flexure.assumed : s->flexure.compliance;
        for (int j = begin; j < end; j++) {
            if (share > 0.0) {
                s->ddq[j] += share * ((dq[j] - s->last_dq[j]) / dt - s->ddq[j]);
                tau_rate[j - begin] = share * (tau[j] - s->smooth_tau[j]) / dt;
                s->smooth_tau[j] += share * (tau[j] - s->smooth_tau[j]);
            } else {
                s->ddq[j] = 0.0;
                s->smooth_tau[j] = tau[j];
            }
            s->last_dq[j] = dq[j];
            own_q[j - begin] = s->torqueless ? q[j] : q[j] - c * s->smooth_tau[j];
        }
        leg_pass(robot, leg, own_q, &m);
        if (s->torqueless) weight_flexure(robot, &m, dq + begin, tau_rate, sway_b);
        for (int j = begin; j < end; j++) own_dq[j - begin] = dq[j] - c * tau_rate[j - begin];
        leg_foot_velocity(&m, own_dq, omega_b, moving_b);
        for (int i = 0; i < 3; i++) moving_b[i] -= c * sway_b[i];
        leg_foot_rate(&m, own_dq, omega_b, rate_b);
        leg_sum(m.J, m.joints, s->ddq + begin, mine + FOOT_ACCEL);
        leg_torque(robot, leg, &m, own_dq, s->ddq + begin, gravity_b, tau_free);
        leg_ground_wrench(robot, leg, &m, s->smooth_tau + begin, tau_free, wrench_b);
        /* The centre of a foot that rolls moves by its turning times its height over the ground, and that of a sole by its
         * turning about the point of it that touches the ground. */
        leg_contact_lever(robot, leg, &m, up_b, torques_known(s, begin, end) ? wrench_b : NULL, above_b);
        cross(rate_b, above_b, roll_b);
        if (s->flexure.used && !s->torqueless) flexure_velocity(&m, tau_rate, above_b, s->flexure.velocity[leg]);
        for (int i = 0; i < 3; i++) {
            mine[FOOT_POSITION + i] = (m.foot[i] - robot->hips_b[leg][i]) / robot->leg_length;
            mine[LEG_VELOCITY + i] = roll_b[i] - moving_b[i];
        }
        for (int i = 0; i < 3; i++) mine[GROUND_FORCE + i] = wrench_b[i] / robot->weight;
    }
    s->begun = 1;
}

void gait_leg_features(const gait_robot *robot, double delay, double compliance, size_t n, const double *gyro,
                       const double *accel, const double *q, const double *dq, const double *tau, const double *dt,
                       double *out)
{
    const size_t width = (size_t)(SHARED_FEATURES + LEG_FEATURES * robot->legs), J = (size_t)robot->joints;
    gait_leg_state s;
    memset(&s, 0, sizeof s);
    flexure_reset(&s.flexure, robot, 1);
    s.flexure.compliance = compliance;
    s.torqueless = compliance < 0.0;
    for (size_t k = 0; k < n; k++) {
        legs_features(robot, delay, &s, gyro + 3 * k, accel + 3 * k, q + J * k, dq + J * k, tau + J * k, dt[k]);
        memcpy(out + width * k, s.features, width * sizeof(double));
    }
}

static void mix(const double *last, const double *now, double part, int count, double *out)
{
    for (int i = 0; i < count; i++) out[i] = part == 1.0 ? now[i] : last[i] + part * (now[i] - last[i]);
}

static void watch_torques(gait_t *g, double dt)
{
    const double *features = g->legs.features;
    double force_b[3] = {0.0};
    for (int leg = 0; leg < g->config->robot.legs; leg++)
        for (int i = 0; i < 3; i++) force_b[i] += features[SHARED_FEATURES + LEG_FEATURES * leg + GROUND_FORCE + i];
    torques_watch(g, force_b, features + 3, fmax(dt, 0.0));
}

/* One step of the network at a time between the last sample (part 0) and this one (part 1). */
void legs_step(gait_t *g, double part, double moment)
{
    const gait_robot *robot = &g->config->robot;
    gait_leg_state *s = &g->legs;
    double gyro[3], accel[3], q[GAIT_MAX_JOINTS], dq[GAIT_MAX_JOINTS], tau[GAIT_MAX_JOINTS];
    float *memory;
    mix(s->gyro[0], s->gyro[1], part, 3, gyro);
    mix(s->accel[0], s->accel[1], part, 3, accel);
    mix(s->q[0], s->q[1], part, robot->joints, q);
    mix(s->dq[0], s->dq[1], part, robot->joints, dq);
    mix(s->tau[0], s->tau[1], part, robot->joints, tau);
    for (int leg = 0; leg < robot->legs; leg++) {
        s->seen[leg] = g->input.ok[leg];
        /* Back in use: it does not accelerate from where it was left. */
        for (int j = robot->leg_start[leg]; !s->before[leg] && j < robot->leg_start[leg + 1]; j++) {
            s->last_dq[j] = dq[j];
            s->ddq[j] = 0.0;
            s->smooth_tau[j] = tau[j];
        }
    }
    fetch_next(g);
    s->torqueless = s->kinematic || !g->config->reads_targets;
    legs_features(robot, g->config->settings.joint_delay, s, gyro, accel, q, dq, tau, moment - s->stepped);
    /* Of how long it did not step, after a gap or at the start, one sample tells nothing. */
    if (g->config->reads_targets) watch_torques(g, smaller(moment - s->stepped, g->config->period));
    fetch_next(g);
    const gait_leg_network *network = legs_network(g, &memory);
    gait_leg_network_step(network, robot->legs, memory, gait_scratch(g), s->features, s->seen, s->before, s->out);
    s->stepped = moment;
    memcpy(s->before, s->seen, sizeof s->before);
}

typedef struct {
    double foot_b[3], velocity[3], variance[3];
    int used; /* informative */
} leg_measurement;

/* Measurement of a leg: the estimated gyro bias b taken off, which shows in the leg whose foot is at p as -b x p; and its
 * variance, larger while the joints change their speed, since their latency is never quite known. */
static leg_measurement measure_leg(const gait_t *g, int leg, const double bias_b[3])
{
    const gait_settings *set = &g->config->settings;
    const gait_robot *robot = &g->config->robot;
    const double *own = g->legs.features + SHARED_FEATURES + LEG_FEATURES * leg;
    const float *out = g->legs.out + 6 * leg;
    const double late = set->joint_delay_std / set->leg_instant;
    leg_measurement m = {.used = 0};
    double shift[3];
    const double *found = g->legs.shifts ? g->legs.shifts + 3 * leg : NULL;
    for (int i = 0; i < 3; i++)
        m.foot_b[i] = robot->hips_b[leg][i] + robot->leg_length * own[FOOT_POSITION + i];
    cross(bias_b, m.foot_b, shift);
    for (int i = 0; i < 3; i++) {
        const double std = set->leg_inflation * exp((double)out[3 + i]), stale = late * own[FOOT_ACCEL + i];
        m.velocity[i] = (double)out[i] + shift[i] + (found ? found[i] : 0.0);
        m.variance[i] = g->adapt.factor[i / 2] * (std * std + stale * stale);
        m.used = m.used || std < UNINFORMATIVE;
    }
    return m;
}

/* Gyro bias about z beyond the estimate, from the differences between legs: a bias that is off by e moves what a leg at p
 * measures by e (p_y, -p_x). What legs have in common goes to the velocity; what they differ by is left for this. */
static void measure_bias(const leg_measurement *m, int legs, const double information[3],
                         const double mean[3], const prediction *p, gait_measurement *out)
{
    const double *w = p->rate, *a = p->acceleration;
    const double factor = BIAS_ALWAYS * BIAS_ALWAYS + BIAS_BY_RATE * BIAS_BY_RATE * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
        + BIAS_BY_ACCEL * BIAS_BY_ACCEL * (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
    double x = 0.0, y = 0.0, known = 0.0, told = 0.0;
    for (int leg = 0; leg < legs; leg++) {
        if (!m[leg].used) continue;
        x += m[leg].foot_b[1] / m[leg].variance[0];
        y -= m[leg].foot_b[0] / m[leg].variance[1];
    }
    x /= information[0];
    y /= information[1];
    for (int leg = 0; leg < legs; leg++) {
        if (!m[leg].used) continue;
        const double along = m[leg].foot_b[1] - x, across = -m[leg].foot_b[0] - y;
        const double weight_x = 1.0 / m[leg].variance[0], weight_y = 1.0 / m[leg].variance[1];
        known += weight_x * along * along + weight_y * across * across;
        told += weight_x * along * (m[leg].velocity[0] - mean[0]);
        told += weight_y * across * (m[leg].velocity[1] - mean[1]);
    }
    /* A single leg tells nothing, and rounding must not make something of it. */
    const int informative = known * BIAS_LEAST >= 1.0;
    out->bias = informative ? told / known : 0.0;
    out->bias_variance = informative ? factor / known : 0.0;
}

/* The legs that are fused, as one source. */
typedef struct {
    double information[3], mean[3];
    int legs;
} consensus;

static void add_leg(consensus *all, const leg_measurement *m)
{
    all->legs++;
    for (int i = 0; i < 3; i++) {
        all->information[i] += 1.0 / m->variance[i];
        all->mean[i] += m->velocity[i] / m->variance[i];
    }
}

/* Hold the legs together against the predicted state. */
static uint32_t judge(gait_t *g, const leg_measurement *m, const prediction *p)
{
    const gait_settings *set = &g->config->settings;
    consensus all = {{0.0}, {0.0}, 0};
    double delta[3], instant[3], spread[3] = {0.0}, claimed[3];
    for (int leg = 0; leg < g->config->robot.legs; leg++)
        if (m[leg].used) add_leg(&all, &m[leg]);
    for (int i = 0; i < 3; i++) {
        const double mean = all.mean[i] / all.information[i];
        for (int leg = 0; leg < g->config->robot.legs; leg++) {
            const double off = m[leg].used ? m[leg].velocity[i] - mean : 0.0;
            if (m[leg].used) spread[i] += off * off / m[leg].variance[i] / all.information[i];
        }
        claimed[i] = 1.0 / all.information[i];
        instant[i] = set->leg_instant * set->leg_instant * claimed[i];
        delta[i] = mean + set->joint_delay * p->acceleration[i] - p->velocity[i];
    }
    return monitor_consensus(g, delta, p->variance, instant, spread, claimed, g->config->period);
}

/* Inflate the variance of a leg whose innovation lies outside the gate by the square of the distance, so that one leg
 * that is certain and wrong cannot move the state. Returns its test ratio. */
static double gate_leg(leg_measurement *m, const prediction *p, const gait_settings *set)
{
    const double gate = set->leg_gate * set->leg_gate, instant2 = set->leg_instant * set->leg_instant;
    double nis = 0.0;
    for (int i = 0; i < 3; i++) {
        const double innovation = m->velocity[i] + set->joint_delay * p->acceleration[i] - p->velocity[i];
        nis += innovation * innovation / (p->variance[i] + instant2 * m->variance[i]);
    }
    nis /= 3.0;
    const double inflation = nis > gate ? nis / gate : 1.0;
    for (int i = 0; i < 3; i++) m->variance[i] *= inflation;
    return sqrt(nis / gate);
}

/* One measurement from all legs that are seen and informative. Returns whether there is any; health bits are added. */
int legs_fuse(gait_t *g, gait_measurement *out, int still, uint32_t *health)
{
    const gait_robot *robot = &g->config->robot;
    const gait_settings *set = &g->config->settings;
    const prediction p = predicted_state(g);
    leg_measurement m[GAIT_MAX_LEGS];
    consensus all = {{0.0}, {0.0}, 0};
    double bias_b[3];
    rotate(robot->R_bi, g->filter.b[0], bias_b);
    flexure_learn(g, &p, bias_b);
    for (int leg = 0; leg < robot->legs; leg++) {
        m[leg].used = 0;
        g->monitor.leg_ratio[leg] = 0.0;
        if (!g->legs.seen[leg] || !p.upright) continue;
        m[leg] = measure_leg(g, leg, bias_b);
        all.legs += m[leg].used;
    }
    if (all.legs) g->monitor.uninformed = 0.0;
    else if (g->input.imu[ACCEL].level > FALLING) g->monitor.uninformed += g->config->period;
    if (g->monitor.uninformed > SILENT) *health |= GAIT_NO_MEASUREMENT;
    if (all.legs == 0) return 0;
    if (!still) *health |= judge(g, m, &p);
    all.legs = 0;
    for (int leg = 0; leg < robot->legs; leg++) {
        if (!m[leg].used) continue;
        g->monitor.leg_ratio[leg] = gate_leg(&m[leg], &p, set);
        add_leg(&all, &m[leg]);
    }
    for (int i = 0; i < 3; i++) {
        all.mean[i] /= all.information[i];
        g->predicted[i] = (float)all.mean[i];
        g->predicted[3 + i] = (float)(-0.5 * log(all.information[i]));
        /* On a body that accelerates, a velocity that is late by d is short of d a. */
        out->velocity[i] = all.mean[i] + set->joint_delay * p.acceleration[i];
        out->variance[i] = 1.0 / all.information[i];
    }
    measure_bias(m, robot->legs, all.information, all.mean, &p, out);
    if (out->bias_variance > 0.0)
        monitor_rate(g, out->bias, set->leg_instant * set->leg_instant * out->bias_variance, g->config->period);
    return 1;
}
