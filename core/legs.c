/* gait-legs: from samples to the features of each leg, and from the velocity and log-std of each leg to one measurement.
 *
 * A leg whose foot stands still measures the velocity of the body by itself, v = -(J dq + w x p), plus what a round foot
 * rolls. Beside it stand the features that tell how informative it is: position of the foot, in lengths of the leg, and
 * the ground force, in weights of the robot. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double SMOOTHING = 0.004;    /* low-pass of joint accelerations and torques, s */
static const double TORQUE_MARGIN = 3.0;  /* torques beyond so many times the limit were not measured */
static const double NEVER = 1e9;          /* s */
/* Factors on the standard deviation of the gyro bias from the differences between legs: always, for each rad/s of
 * rotation and for each m/s^2 of acceleration; squares add up. Errors of joint zeros and link lengths do not average out,
 * and legs that are late differ the more the less even the motion. */
static const double BIAS_ALWAYS = 1.5, BIAS_BY_RATE = 3.0, BIAS_BY_ACCEL = 0.3;
static const double BIAS_LEAST = 1e6;     /* variance of a rate, (rad/s)^2, beyond which nothing is known of it */

void legs_reset(gait_t *g)
{
    memset(&g->legs, 0, sizeof g->legs);
    for (int leg = 0; leg < g->config->robot.legs; leg++) g->legs.no_torque[leg] = NEVER;
}

/* The network knows only samples that follow each other: where one is missing, its memory ends. */
void legs_forget(gait_t *g)
{
    gait_leg_network_reset(g->config->leg_network, gait_memory(g));
    g->legs.begun = 0;
    memset(g->legs.seen, 0, sizeof g->legs.seen);
    memset(g->legs.before, 0, sizeof g->legs.before);
}

/* Keep the admitted sample; the one before moves back. A torque that was not measured is what the PD loop makes of the
 * tracking error; one that is missing for a moment stays as it was; then the leg is out of use. Returns health bits. */
uint32_t legs_gather(gait_t *g, const gait_sample *sample)
{
    const gait_config *config = g->config;
    const gait_robot *robot = &config->robot;
    gait_leg_state *s = &g->legs;
    gait_input *in = &g->input;
    const size_t joints = (size_t)robot->joints * sizeof(double);
    uint32_t health = 0;
    memcpy(s->gyro[0], s->gyro[1], sizeof s->gyro[0]);
    memcpy(s->accel[0], s->accel[1], sizeof s->accel[0]);
    memcpy(s->q[0], s->q[1], joints);
    memcpy(s->dq[0], s->dq[1], joints);
    memcpy(s->tau[0], s->tau[1], joints);
    memcpy(s->gyro[1], in->gyro, sizeof in->gyro);
    memcpy(s->accel[1], in->accel, sizeof in->accel);
    memcpy(s->q[1], in->q, joints);
    memcpy(s->dq[1], in->dq, joints);
    for (int leg = 0; config->reads_targets && leg < robot->legs; leg++) {
        int measured = 1, aimed = 1;
        for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++) {
            /* Written so that a nan is not measured either. */
            measured = measured && sample->tau && fabs(sample->tau[j]) <= TORQUE_MARGIN * robot->torque_limit[j];
            aimed = aimed && sample->q_des && fabs(sample->q_des[j]) < 100.0;
        }
        s->no_torque[leg] = measured || aimed ? 0.0 : s->no_torque[leg] + in->dt;
        if (in->ok[leg] && s->no_torque[leg] > config->settings.hold) {
            in->ok[leg] = 0;
            health |= GAIT_STALE_LEG | GAIT_BAD_SAMPLE | 1u << (GAIT_FIRST_LEG + leg);
        }
        for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++) {
            if (measured) s->tau[1][j] = sample->tau[j];
            else if (aimed && in->ok[leg]) s->tau[1][j] = pd_torque(robot, j, in->e[j], in->dq[j]);
        }
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
        double foot_b[3], J[9], moving_b[3], rate_b[3], tau_free[3], force_b[3];
        for (int j = begin; j < end; j++) {
            if (share > 0.0) {
                s->ddq[j] += share * ((dq[j] - s->last_dq[j]) / dt - s->ddq[j]);
                s->smooth_tau[j] += share * (tau[j] - s->smooth_tau[j]);
            } else {
                s->ddq[j] = 0.0;
                s->smooth_tau[j] = tau[j];
            }
            s->last_dq[j] = dq[j];
        }
        leg_forward(robot, leg, q + begin, foot_b, J);
        leg_foot_velocity(J, dq + begin, omega_b, foot_b, moving_b);
        leg_calf_rate(robot, leg, q + begin, dq + begin, omega_b, rate_b);
        rotate(J, s->ddq + begin, mine + FOOT_ACCEL);
        for (int i = 0; i < 3; i++) {
            const double hip = robot->offsets[leg][0][i] + robot->offsets[leg][1][i];
            mine[FOOT_POSITION + i] = (foot_b[i] - hip) / robot->leg_length;
            mine[LEG_VELOCITY + i] = -moving_b[i];
        }
        /* The centre of a foot that rolls moves by its turning times its height over the ground. */
        mine[LEG_VELOCITY] += rate_b[1] * robot->foot_radius;
        mine[LEG_VELOCITY + 1] -= rate_b[0] * robot->foot_radius;
        leg_torque(robot, leg, q + begin, dq + begin, s->ddq + begin, gravity_b, tau_free);
        leg_ground_force(J, s->smooth_tau + begin, tau_free, force_b);
        for (int i = 0; i < 3; i++) mine[GROUND_FORCE + i] = force_b[i] / robot->weight;
    }
    s->begun = 1;
}

void gait_leg_features(const gait_robot *robot, double delay, size_t n, const double *gyro, const double *accel,
                       const double *q, const double *dq, const double *tau, const double *dt, double *out)
{
    const size_t width = (size_t)(SHARED_FEATURES + LEG_FEATURES * robot->legs), J = (size_t)robot->joints;
    gait_leg_state s;
    memset(&s, 0, sizeof s);
    for (size_t k = 0; k < n; k++) {
        legs_features(robot, delay, &s, gyro + 3 * k, accel + 3 * k, q + J * k, dq + J * k, tau + J * k, dt[k]);
        memcpy(out + width * k, s.features, width * sizeof(double));
    }
}

static void mix(const double *last, const double *now, double part, int count, double *out)
{
    for (int i = 0; i < count; i++) out[i] = part == 1.0 ? now[i] : last[i] + part * (now[i] - last[i]);
}

/* One step of the network at a time between the last sample (part 0) and this one (part 1). */
void legs_step(gait_t *g, double part, double moment)
{
    const gait_robot *robot = &g->config->robot;
    gait_leg_state *s = &g->legs;
    double gyro[3], accel[3], q[GAIT_MAX_JOINTS], dq[GAIT_MAX_JOINTS], tau[GAIT_MAX_JOINTS];
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
    legs_features(robot, g->config->settings.joint_delay, s, gyro, accel, q, dq, tau, moment - s->stepped);
    fetch_next(g);
    gait_leg_network_step(g->config->leg_network, robot->legs, gait_memory(g), gait_scratch(g), s->features, s->seen,
                          s->before, s->out);
    s->stepped = moment;
    memcpy(s->before, s->seen, sizeof s->before);
}

/* The predicted state in base axes. */
typedef struct {
    double velocity[3], variance[3], acceleration[3];
    double bias_factor; /* on the variance of what legs tell of the gyro bias */
} prediction;

static prediction predicted_state(const gait_t *g)
{
    const gait_filter *f = &g->filter;
    const gait_robot *robot = &g->config->robot;
    const int ld = GAIT_STRIDE(f->size);
    double rate[3], force[3], omega_b[3], R_wb[9], lever_b[3], turning[3];
    prediction p;
    for (int i = 0; i < 3; i++) {
        rate[i] = g->input.gyro[i] - f->b[0][i];
        force[i] = g->input.accel[i] - f->b[1][i];
    }
    rotate(robot->R_bi, rate, omega_b);
    rotate(robot->R_bi, force, p.acceleration);
    for (int i = 0; i < 3; i++) rotate(robot->R_bi, f->R + 3 * i, R_wb + 3 * i);
    rotate_back(R_wb, f->x[0], p.velocity);
    cross(omega_b, robot->p_bi, lever_b);
    for (int i = 0; i < 3; i++) {
        p.velocity[i] -= lever_b[i];
        p.variance[i] = 0.0;
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                p.variance[i] += R_wb[3 * j + i] * f->P[(VEL + j) * ld + VEL + k] * R_wb[3 * k + i];
    }
    cross(omega_b, p.velocity, turning);
    for (int i = 0; i < 3; i++) p.acceleration[i] += R_wb[6 + i] * g->config->settings.gravity - turning[i];
    const double *w = omega_b, *a = p.acceleration;
    p.bias_factor = BIAS_ALWAYS * BIAS_ALWAYS + BIAS_BY_RATE * BIAS_BY_RATE * (w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
        + BIAS_BY_ACCEL * BIAS_BY_ACCEL * (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
    return p;
}

typedef struct {
    double foot_b[3], velocity[3], variance[3];
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
    leg_measurement m;
    double shift[3];
    for (int i = 0; i < 3; i++)
        m.foot_b[i] = robot->offsets[leg][0][i] + robot->offsets[leg][1][i] + robot->leg_length * own[FOOT_POSITION + i];
    cross(bias_b, m.foot_b, shift);
    for (int i = 0; i < 3; i++) {
        const double std = set->leg_inflation * exp((double)out[3 + i]), stale = late * own[FOOT_ACCEL + i];
        m.velocity[i] = (double)out[i] + shift[i];
        m.variance[i] = std * std + stale * stale;
    }
    return m;
}

/* Gyro bias about z beyond the estimate, from the differences between legs: a bias that is off by e moves what a leg at p
 * measures by e (p_y, -p_x). What legs have in common goes to the velocity; what they differ by is left for this. */
static void measure_bias(const gait_leg_state *s, const leg_measurement *m, int legs, const double information[3],
                         const double mean[3], double factor, gait_measurement *out)
{
    double x = 0.0, y = 0.0, known = 0.0, told = 0.0;
    for (int leg = 0; leg < legs; leg++) {
        if (!s->seen[leg]) continue;
        x += m[leg].foot_b[1] / m[leg].variance[0];
        y -= m[leg].foot_b[0] / m[leg].variance[1];
    }
    x /= information[0];
    y /= information[1];
    for (int leg = 0; leg < legs; leg++) {
        if (!s->seen[leg]) continue;
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

/* One measurement from all legs that are seen, of which there is at least one. A leg whose innovation lies outside the gate
 * has its variance inflated by the square of the distance, so that one leg that is certain and wrong cannot move the state. */
gait_measurement legs_fuse(gait_t *g)
{
    const gait_robot *robot = &g->config->robot;
    const gait_settings *set = &g->config->settings;
    const prediction p = predicted_state(g);
    const double gate = set->leg_gate * set->leg_gate, instant2 = set->leg_instant * set->leg_instant;
    leg_measurement m[GAIT_MAX_LEGS];
    double information[3] = {0.0}, mean[3] = {0.0}, bias_b[3];
    gait_measurement out;
    rotate(robot->R_bi, g->filter.b[0], bias_b);
    for (int leg = 0; leg < robot->legs; leg++) {
        if (!g->legs.seen[leg]) continue;
        m[leg] = measure_leg(g, leg, bias_b);
        double nis = 0.0;
        for (int i = 0; i < 3; i++) {
            const double innovation = m[leg].velocity[i] + set->joint_delay * p.acceleration[i] - p.velocity[i];
            nis += innovation * innovation / (p.variance[i] + instant2 * m[leg].variance[i]);
        }
        nis /= 3.0;
        const double inflation = nis > gate ? nis / gate : 1.0;
        for (int i = 0; i < 3; i++) {
            m[leg].variance[i] *= inflation;
            information[i] += 1.0 / m[leg].variance[i];
            mean[i] += m[leg].velocity[i] / m[leg].variance[i];
        }
    }
    for (int i = 0; i < 3; i++) {
        mean[i] /= information[i];
        g->predicted[i] = (float)mean[i];
        g->predicted[3 + i] = (float)(-0.5 * log(information[i]));
        /* On a body that accelerates, a velocity that is late by d is short of d a. */
        out.velocity[i] = mean[i] + set->joint_delay * p.acceleration[i];
        out.variance[i] = 1.0 / information[i];
    }
    measure_bias(&g->legs, m, robot->legs, information, mean, p.bias_factor, &out);
    return out;
}
