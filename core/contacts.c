/* The contact-aided filter: contacts from joint torques, forces or flags, feet in the state, slip rejection. */
#include <math.h>
#include <string.h>

#include "core.h"

void contacts_reset(gait_t *g)
{
    gait_contact_state *c = &g->contacts;
    memset(c, 0, sizeof *c);
    c->slip_limit = g->config->contacts.slip_speed;
    for (int leg = 0; leg < g->config->robot.legs; leg++) {
        c->fresh[leg] = 1;
        c->walk[leg] = g->config->contacts.contact_std;
    }
}

/* Joint accelerations by differences, and torques, through the same low-pass so that both lag alike. */
static void smooth(gait_contact_state *c, int begin, int end, int leg, const double *dq, const double *tau, double dt,
                   double time_constant)
{
    const int fresh = c->fresh[leg];
    const double share = fresh ? 1.0 : 1.0 - exp(-dt / fmax(time_constant, 1e-9));
    for (int j = begin; j < end; j++) {
        const double difference = fresh || dt <= 0.0 ? 0.0 : (dq[j] - c->dq[j]) / dt;
        c->ddq[j] += share * (difference - c->ddq[j]);
        /* A torque that is not finite is skipped: the filtered value stays. */
        if (isfinite(tau[j])) c->tau[j] += share * (tau[j] - c->tau[j]);
        c->dq[j] = dq[j];
    }
    c->fresh[leg] = 0;
}

/* Hysteresis with a minimum dwell: force and thresholds are shares of the weight. */
static void detect(gait_contact_state *c, const gait_contact_settings *s, int leg, double force, double dt)
{
    const int other = c->contact[leg] ? force < s->lift_off : force > s->touch_down;
    c->waiting[leg] = other ? c->waiting[leg] + dt : 0.0;
    /* Half a step of tolerance: with jitter, a dwell of five samples must not become six. */
    if (other && c->waiting[leg] > (c->contact[leg] ? s->lift_off_dwell : s->touch_down_dwell) - 0.5 * dt) {
        c->contact[leg] = !c->contact[leg];
        c->waiting[leg] = 0.0;
    }
}

/* Normal force on a foot, N; nan where it is not known. The wrench is set where it comes from torques. */
static double normal_force(gait_t *g, const gait_sample *sample, int leg, const leg_pose *m, const double up_b[3],
                           const double *tau, double wrench_b[6])
{
    const gait_config *config = g->config;
    const int begin = config->robot.leg_start[leg], end = config->robot.leg_start[leg + 1];
    gait_contact_state *c = &g->contacts;
    double gravity_b[3], tau_free[GAIT_LEG_LINKS];
    if (g->contact_source == GAIT_FROM_FORCE) return sample->foot_force ? sample->foot_force[leg] : NAN;
    smooth(c, begin, end, leg, g->input.dq, tau, g->input.dt, config->contacts.smoothing);
    for (int i = 0; i < 3; i++) gravity_b[i] = config->settings.gravity * up_b[i];
    leg_torque(&config->robot, leg, m, g->input.dq + begin, c->ddq + begin, gravity_b, tau_free);
    leg_ground_wrench(&config->robot, leg, m, c->tau + begin, tau_free, wrench_b);
    for (int i = 0; i < 3; i++) c->force_b[i] += wrench_b[i];
    return wrench_b[0] * up_b[0] + wrench_b[1] * up_b[1] + wrench_b[2] * up_b[2];
}

/* Kinematics and contact of one leg, and how fast its foot moves over the ground. */
static void take_leg(gait_t *g, const gait_sample *sample, int leg, const double omega_b[3], const double up_b[3],
                     const double *tau)
{
    const gait_robot *robot = &g->config->robot;
    const gait_contact_settings *s = &g->config->contacts;
    const double *q = g->input.q + robot->leg_start[leg], *dq = g->input.dq + robot->leg_start[leg];
    gait_contact_state *c = &g->contacts;
    const gait_filter *f = &g->filter;
    leg_pose m;
    double moving_b[3], rate_b[3], above_b[3], roll_b[3], centre_b[3], lever_b[3], vel_i[3], vel_b[3], wrench_b[6], load;
    c->rests[leg] = 0;
    if (!g->input.ok[leg]) {
        c->contact[leg] = 0;
        c->fresh[leg] = 1;
        return;
    }
    leg_pass(robot, leg, q, &m);
    leg_foot_velocity(&m, dq, omega_b, moving_b);
    leg_foot_rate(&m, dq, omega_b, rate_b);
    if (g->contact_source == GAIT_FROM_FLAGS) {
        /* A missing flag counts as no contact. */
        load = c->contact[leg] = sample->contact && sample->contact[leg] > 0.5;
    } else {
        const double force = normal_force(g, sample, leg, &m, up_b, tau, wrench_b);
        load = isfinite(force) ? force / robot->weight : 0.0;
        detect(c, s, leg, load, g->input.dt);
    }
    leg_contact_lever(robot, leg, &m, up_b, g->contact_source == GAIT_FROM_TORQUE ? wrench_b : NULL, above_b);
    c->rests[leg] = (uint8_t)sole_rests(robot, leg, &m, up_b, above_b, load);
    if (c->rests[leg]) sole_bias(g, rate_b, c->bias_i[leg]);
    cross(rate_b, above_b, roll_b);
    for (int i = 0; i < 3; i++) {
        roll_b[i] *= s->rolling;
        /* The foot's centre rolls as fast as its lowest point, and is measured without the tilt: the lowest point would feed
         * an error of the tilt back into it. */
        centre_b[i] = m.foot[i] - robot->p_bi[i];
    }
    rotate_back(robot->R_bi, centre_b, c->foot_i[leg]);
    rotate_back(robot->R_bi, roll_b, c->roll_i[leg]);

    /* Velocity of the foot over the ground: base velocity plus leg motion less rolling. */
    cross(omega_b, robot->p_bi, lever_b);
    rotate_back(f->R, f->x[0], vel_i);
    rotate(robot->R_bi, vel_i, vel_b);
    for (int i = 0; i < 3; i++) c->slip_b[leg][i] = moving_b[i] - roll_b[i] - lever_b[i] + vel_b[i];
}

/* Slip rejection: beyond a limit the contact noise of a foot grows with its speed over the ground.
 *
 * A fixed limit does not suit every robot: vibration of legs, compliant feet and encoder latency look like slow slips. So
 * the limit is a multiple of the median speed of the foot that moves least, which is noise where feet stand most of the time.
 * No foot is rejected as a whole: if all seem to slip, the predicted velocity may be wrong, and the feet correct it with a
 * weight that falls with the disagreement. Returns health bits. */
static const double SLIP_MARGIN = 2.0; /* limit over median */
static const double SLIP_RATE = 0.5;   /* by which share the limit moves in a second */
static const double SLIP_MOST = 1.0;   /* m/s: no noise is larger */
static uint32_t reject_slips(gait_t *g)
{
    const gait_contact_settings *s = &g->config->contacts;
    gait_contact_state *c = &g->contacts;
    double least = INFINITY;
    uint32_t health = 0;
    for (int leg = 0; leg < g->config->robot.legs; leg++) {
        const double *v = c->slip_b[leg], speed = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        c->walk[leg] = s->contact_std;
        if (!c->contact[leg]) continue;
        least = smaller(least, speed);
        if (speed <= c->slip_limit) continue;
        c->walk[leg] *= smaller(s->slip_inflation, speed / c->slip_limit);
        health = GAIT_SLIP;
    }
    if (least < INFINITY) {
        const double turn = SLIP_MARGIN * least > c->slip_limit ? SLIP_RATE : -SLIP_RATE;
        c->slip_limit = larger(s->slip_speed, smaller(SLIP_MOST, c->slip_limit * (1.0 + turn * g->input.dt)));
    }
    return health;
}

/* Standard deviation of a foot's velocity by its joints, m/s; least distance of feet that measure a rate, m. */
static const double FOOT_STD = 0.1, LEAST_APART = 0.05;

/* Rate about z by which the gyro exceeds that of the feet in contact, from the differences between them: with an error e of
 * the rate, the foot at p seems to move over the ground by e (-p_y, p_x). mean_b: mean velocity of the feet. */
static void judge_rate(gait_t *g, const double mean_b[3], int feet)
{
    const gait_robot *robot = &g->config->robot;
    const gait_contact_state *c = &g->contacts;
    double at_b[GAIT_MAX_LEGS][3], centre[2] = {0.0, 0.0}, moment = 0.0, squares = 0.0;
    for (int leg = 0; leg < robot->legs; leg++) {
        if (!c->contact[leg] || !g->filter.active[leg]) continue;
        rotate(robot->R_bi, c->foot_i[leg], at_b[leg]);
        for (int i = 0; i < 2; i++) centre[i] += at_b[leg][i] / feet;
    }
    for (int leg = 0; leg < robot->legs; leg++) {
        if (!c->contact[leg] || !g->filter.active[leg]) continue;
        const double x = at_b[leg][0] - centre[0], y = at_b[leg][1] - centre[1];
        moment += x * (c->slip_b[leg][1] - mean_b[1]) - y * (c->slip_b[leg][0] - mean_b[0]);
        squares += x * x + y * y;
    }
    if (squares > LEAST_APART * LEAST_APART)
        monitor_heading(g, moment / squares, FOOT_STD * FOOT_STD / squares, g->input.dt);
}

/* A single foot in contact that moves over the ground is an outlier; if all do, the predicted velocity is disputed. Gates of a
 * foot against the prediction, in standard deviations and in m/s. */
static const double FOOT_GATE = 5.0, FOOT_SPEED = 1.0;
static uint32_t judge_feet(gait_t *g)
{
    const int legs = g->config->robot.legs;
    gait_contact_state *c = &g->contacts;
    double delta[3] = {0.0}, spread[3] = {0.0}, instant[3], predicted[3], R_wb[9];
    int feet = 0;
    uint32_t health = 0;
    base_axes(g, R_wb);
    velocity_variance(&g->filter, R_wb, predicted);
    for (int leg = 0; leg < legs; leg++) {
        double nis = 0.0, speed2 = 0.0;
        g->monitor.leg_ratio[leg] = 0.0;
        if (!c->contact[leg] || !g->filter.active[leg]) continue;
        for (int i = 0; i < 3; i++) {
            const double v = c->slip_b[leg][i];
            nis += v * v / (predicted[i] + FOOT_STD * FOOT_STD) / 3.0;
            speed2 += v * v;
        }
        g->monitor.leg_ratio[leg] = sqrt(nis) / FOOT_GATE;
        if (nis > FOOT_GATE * FOOT_GATE && speed2 > FOOT_SPEED * FOOT_SPEED) {
            c->contact[leg] = 0;
            health |= GAIT_REJECTED;
            continue;
        }
        for (int i = 0; i < 3; i++) delta[i] -= c->slip_b[leg][i];
        feet++;
    }
    if (feet == 0) return health;
    for (int i = 0; i < 3; i++) delta[i] /= feet;
    for (int leg = 0; leg < legs; leg++)
        for (int i = 0; c->contact[leg] && g->filter.active[leg] && i < 3; i++) {
            const double off = c->slip_b[leg][i] + delta[i];
            spread[i] += off * off / feet;
        }
    const double mean_b[3] = {-delta[0], -delta[1], -delta[2]};
    judge_rate(g, mean_b, feet);
    for (int i = 0; i < 3; i++) instant[i] = g->adapt.factor[i / 2] * FOOT_STD * FOOT_STD;
    return health | monitor_consensus(g, delta, predicted, instant, spread, instant, g->input.dt);
}

/* After so long without samples a foot may have moved: its contact point is initialised again. */
static const double LOST_TIME = 0.03; /* s */
/* One admitted sample: contacts, propagation, correction by the feet in contact. Returns health bits. */
uint32_t contacts_step(gait_t *g, const gait_sample *sample)
{
    const gait_config *config = g->config;
    const gait_robot *robot = &config->robot;
    const double variance = config->contacts.kinematics_std * config->contacts.kinematics_std;
    const double cov_i[9] = {variance, 0.0, 0.0, 0.0, variance, 0.0, 0.0, 0.0, variance};
    gait_contact_state *c = &g->contacts;
    gait_filter *f = &g->filter;
    double rate[3], omega_b[3], up_b[3], accel_b[3], R_wb[9], tau[GAIT_MAX_JOINTS];
    uint8_t found[GAIT_MAX_LEGS];
    uint32_t health = c->measured ? 0 : GAIT_STARTING;
    int standing = 0;
    for (int j = 0; j < robot->joints; j++) tau[j] = NAN; /* skipped by `smooth` */
    health |= torques_admit(g, sample, tau, found);
    for (int i = 0; i < 3; i++) rate[i] = g->input.gyro[i] - f->b[0][i];
    rotate(robot->R_bi, rate, omega_b);
    rotate(robot->R_bi, f->R + 6, up_b);
    memset(c->force_b, 0, sizeof c->force_b);
    const int unknown = g->contact_source == GAIT_FROM_TORQUE && g->input.torque.missing > config->settings.hold;
    base_axes(g, R_wb);
    const int may_stand = feet_may_stand(g, R_wb) && !unknown;
    if (g->contact_source != GAIT_FROM_TORQUE) health &= ~GAIT_NO_TORQUE;
    for (int leg = 0; leg < robot->legs; leg++) {
        fetch_next(g);
        take_leg(g, sample, leg, omega_b, up_b, tau);
        if (!may_stand) c->contact[leg] = 0;
    }
    health |= reject_slips(g);
    fetch_next(g);
    if (g->contact_source == GAIT_FROM_TORQUE) {
        for (int i = 0; i < 3; i++) c->force_b[i] /= robot->weight;
        rotate(robot->R_bi, g->input.accel, accel_b);
        torques_watch(g, c->force_b, accel_b, g->input.dt);
    }
    if (g->input.unseen > LOST_TIME)
        for (int leg = 0; leg < robot->legs; leg++)
            if (f->active[leg]) filter_remove_foot(f, leg);
    const gait_noise noise = imu_noise(g, g->input.dt);
    if (!propagate(g, &config->settings, &noise, g->input.gyro, g->input.accel, g->input.dt))
        return health | GAIT_BAD_SAMPLE;
    health |= judge_feet(g);
    for (int leg = 0; leg < robot->legs; leg++)
        if (f->active[leg] && !c->contact[leg]) filter_remove_foot(f, leg);
    fetch_next(g);
    if (!filter_correct_feet(f, c->foot_i, cov_i, 0)) health |= GAIT_REJECTED;
    soles_correct(g);
    fetch_next(g);
    for (int leg = 0; leg < robot->legs; leg++) {
        standing += f->active[leg];
        if (!f->active[leg] && c->contact[leg]) filter_add_foot(f, leg, c->foot_i[leg], cov_i, f->R);
    }
    if (standing > 0) c->measured = 1;
    else health |= GAIT_NO_MEASUREMENT;
    return health;
}
