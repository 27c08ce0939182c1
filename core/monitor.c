/* Consistency of measurements with the predicted state: what lasts of their disagreement, resets, rest, what may be used.
 *
 * One innovation cannot tell a foot that slips from an IMU that is wrong. A slip begins and ends with a jump; what an
 * IMU gets wrong grows from step to step and lasts, whichever feet stand. So the disagreement is followed by a value that
 * rises slowly and falls at once, and what this shows beyond the variances inflates those of the predicted velocity and
 * of what may be the cause: accelerometer bias and tilt. */
#include <math.h>
#include <string.h>

#include "core.h"

/* How fast the lasting part may rise, m/s^2: along the ground, where feet slip, and vertically, where they cannot. */
static const double RISE[3] = {0.3, 0.3, 2.0}, RISE_RATE = 0.5; /* and that of a rate, rad/s^2 */
/* s over which the disagreement is averaged that is reported, and m/s beyond which a measurement counts for less. */
static const double OPEN_TIME = 0.1, OPEN_STD = 0.2;
static const double INFLATION_TIME = 0.4; /* s until the variance has grown by the square of what lasts, */
static const double CAUSE_TIME = 0.6;     /* and from which on its causes are inflated as well */
static const double DISPUTE = 4.0;        /* test ratio above which the IMU counts as disputed, */
static const double DISPUTE_TIME = 0.1;   /* if it lasts, s */
static const double RESET_TIME = 0.5;     /* s of dispute after which the velocity is reset, */
static const double DISTRUST_TIME = 2.0, DISTRUST = 10.0; /* after which the above is so many times as fast, for s */
/* Gravity: low-pass, how long it must be off, s; cosine of the angle; share of g that it must have. */
static const double FORCE_TIME = 0.2, TILTED_TIME = 0.04, TILTED = 0.5, FORCE_SHARE = 0.4;
/* Rest: for so long, s; rad/s; m/s^2 off gravity; noise of a sample, rad/s and m/s^2. */
static const double STILL_TIME = 0.5, STILL_RATE = 0.04, STILL_FORCE = 0.5, STILL_NOISE[2] = {0.03, 0.3};
/* Above these standard deviations the state is of no use to a controller: m/s, rad, m. */
static const double MOST_VELOCITY_STD = 0.3, MOST_TILT_STD = 0.15, MOST_POSITION_STD = 5.0;
static const double SHOW_TIME = 0.5; /* s for which events are shown */

void monitor_reset(gait_t *g)
{
    memset(&g->monitor, 0, sizeof g->monitor);
}

/* Add variances along the axes that the columns of A (3, 3) are to a block of the covariance. */
static void inflate(gait_filter *f, int row, const double A[9], const double variance[3])
{
    const int ld = GAIT_STRIDE(f->size);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) f->P[(row + i) * ld + row + j] += A[3 * i + k] * variance[k] * A[3 * j + k];
}

/* Orientation of base_link, whose axes are the columns. */
void base_axes(const gait_t *g, double R_wb[9])
{
    for (int i = 0; i < 3; i++) rotate(g->config->robot.R_bi, g->filter.R + 3 * i, R_wb + 3 * i);
}

static double follow_lasting(double *lasting, double now, double rise)
{
    if (*lasting * now <= 0.0) *lasting = 0.0;
    *lasting = now > 0.0 ? smaller(now, *lasting + rise) : larger(now, *lasting - rise);
    return *lasting * *lasting;
}

/* Let the velocity be what is measured, with the variance of that. */
static void reset_velocity(gait_t *g, const double delta_b[3], const double variance_b[3])
{
    gait_filter *f = &g->filter;
    const int ld = GAIT_STRIDE(f->size);
    double R_wb[9], delta_w[3];
    base_axes(g, R_wb);
    rotate(R_wb, delta_b, delta_w);
    for (int i = 0; i < 3; i++) {
        f->x[0][i] += delta_w[i];
        for (int j = 0; j < f->size; j++) f->P[(VEL + i) * ld + j] = f->P[j * ld + VEL + i] = 0.0;
    }
    inflate(f, VEL, R_wb, variance_b);
    memset(g->monitor.lasting, 0, sizeof g->monitor.lasting);
    g->monitor.disputed = 0.0;
    g->monitor.distrust = DISTRUST_TIME;
    g->monitor.resets++;
}

/* What has lasted for a while may come from the velocity, from the accelerometer's bias or from a tilt. */
static void inflate_causes(gait_t *g, const double excess[3], double dt, double share)
{
    gait_filter *f = &g->filter;
    const double *R_bi = g->config->robot.R_bi, gravity = g->config->settings.gravity;
    const double time = g->monitor.duration, once = dt * share / INFLATION_TIME;
    const double later = time > CAUSE_TIME ? once / (time * time) : 0.0;
    const double unit[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
    const double across = 0.5 * (excess[0] + excess[1]) * later / (gravity * gravity);
    const double R_ib[9] = {R_bi[0], R_bi[3], R_bi[6], R_bi[1], R_bi[4], R_bi[7], R_bi[2], R_bi[5], R_bi[8]};
    const double velocity[3] = {excess[0] * once, excess[1] * once, excess[2] * once};
    const double turning = across / (time * time), drift[3] = {turning, turning, 0.0};
    const double bias[3] = {excess[0] * later, excess[1] * later, excess[2] * later}, tilt[3] = {across, across, 0.0};
    const double position[3] = {2.0 * excess[0] * time * dt, 2.0 * excess[1] * time * dt, 2.0 * excess[2] * time * dt};
    double R_wb[9];
    base_axes(g, R_wb);
    inflate(f, VEL, R_wb, velocity);
    inflate(f, POS, R_wb, position);
    inflate(f, BA, R_ib, bias);
    inflate(f, ROT, unit, tilt);
    inflate(f, BG, R_ib, drift);
}

/* Measurements that differ from the IMU for longer than any slip show an accelerometer bias, a tilt, or a gyro bias that
 * made it, and that the velocity has been off. With a tilt the body seems to climb. */
static void inflate_drift(gait_t *g)
{
    gait_filter *f = &g->filter;
    const double *R = f->R, *v = f->x[0], gravity = fabs(g->config->settings.gravity), T2 = CAUSE_TIME * CAUSE_TIME;
    const double R_iw[9] = {R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]}, once = ADAPT_STEP / INFLATION_TIME;
    const double unit[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}, per = gravity * ADAPT_SPAN;
    double excess[3], accel[3];
    if (!adapt_drift(&g->adapt, 1.0, excess)) return;
    const double tilted2 = (excess[0] + excess[1]) / (per * per), speed2 = v[0] * v[0] + v[1] * v[1];
    g->monitor.aside[2] += sqrt(speed2 * tilted2) * ADAPT_STEP;
    if (!adapt_drift(&g->adapt, g->adapt.gate, excess)) return;
    for (int i = 0; i < 3; i++) {
        excess[i] *= once;
        accel[i] = excess[i] / (ADAPT_SPAN * ADAPT_SPAN);
    }
    const double tilt[3] = {excess[1] / (per * per), excess[0] / (per * per), 0.0};
    const double turning[3] = {tilt[0] / T2, tilt[1] / T2, 0.0};
    inflate(f, VEL, unit, excess);
    inflate(f, BA, R_iw, accel);
    inflate(f, ROT, unit, tilt);
    inflate(f, BG, R_iw, turning);
}

/* Legs that stood still have been in use until they were found out: what measurements and IMU have differed by lately joins
 * the variance of the velocity, or how a body may have moved meanwhile; and the bias that may have been made of it. */
void monitor_doubt(gait_t *g)
{
    const gait_settings *s = &g->config->settings;
    const double unit[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0}, moved = s->gap_accel * s->hold;
    double off[3];
    const int known = adapt_lately(&g->adapt, off);
    const double off2 = known ? off[0] * off[0] + off[1] * off[1] + off[2] * off[2] : moved * moved;
    const double variance[3] = {off2, off2, off2}, T2 = ADAPT_SPAN * ADAPT_SPAN, bias[3] = {off2 / T2, off2 / T2, off2 / T2};
    inflate(&g->filter, VEL, unit, variance);
    inflate(&g->filter, BA, unit, bias);
}

/* The same measurement, in world axes and as it claims, for the estimate of noise. */
static void adapt(gait_t *g, const double delta_b[3], const double instant[3], const double spread[3])
{
    double R_wb[9], velocity_w[3], variance_w[3] = {0.0}, spread_w[3] = {0.0};
    base_axes(g, R_wb);
    rotate(R_wb, delta_b, velocity_w);
    for (int i = 0; i < 3; i++) {
        velocity_w[i] += g->filter.x[0][i];
        for (int k = 0; k < 3; k++) {
            const double share = R_wb[3 * i + k] * R_wb[3 * i + k];
            variance_w[i] += share * instant[k] / g->adapt.factor[k / 2];
            spread_w[i] += share * spread[k];
        }
    }
    adapt_measure(&g->adapt, R_wb, velocity_w, variance_w, spread_w);
    inflate_drift(g);
}

static const double HEADING_MEMORY = 60.0; /* s after which differences of heading and position are forgotten */

/* A tilt that is wrong shows in a disagreement along the ground, which gravity makes grow for as long as it is averaged; with
 * it the body seems to climb. */
static void follow_height(gait_t *g, double dt)
{
    gait_monitor *m = &g->monitor;
    const double *v = g->filter.x[0], speed2 = v[0] * v[0] + v[1] * v[1];
    const double open2 = m->open[0] * m->open[0] + m->open[1] * m->open[1];
    const double climb = sqrt(speed2 * open2) / (fabs(g->config->settings.gravity) * OPEN_TIME);
    m->aside[2] = (1.0 - dt / HEADING_MEMORY) * m->aside[2] + climb * dt;
}

/* A velocity measurement by the consensus of all sources, before it is fused.
 *
 * delta_b: measured less predicted velocity; predicted, instant: variances of the prediction and of one measurement;
 * spread: mean square of the sources around their consensus; claimed: variance with which it will be fused. */
uint32_t monitor_consensus(gait_t *g, const double delta_b[3], const double predicted[3], const double instant[3],
                           const double spread[3], const double claimed[3], double dt)
{
    gait_monitor *m = &g->monitor;
    const double share = m->distrust > 0.0 ? DISTRUST : 1.0;
    double excess[3], nis = 0.0;
    int inflated = 0;
    if (adapt_due(&g->adapt)) adapt(g, delta_b, instant, spread);
    for (int i = 0; i < 3; i++) {
        const double informs = OPEN_STD * OPEN_STD / (OPEN_STD * OPEN_STD + instant[i] + spread[i]);
        m->open[i] += dt / (OPEN_TIME + dt) * (informs * informs * delta_b[i] - m->open[i]);
    }
    follow_height(g, dt);
    for (int i = 0; i < 3; i++) {
        const double variance = predicted[i] + instant[i] + spread[i];
        excess[i] = larger(0.0, follow_lasting(&m->lasting[i], delta_b[i], share * RISE[i] * dt) - variance);
        inflated = inflated || excess[i] > 0.0;
        nis += delta_b[i] * delta_b[i] / variance / 3.0;
    }
    m->ratio = sqrt(nis);
    m->duration = inflated ? m->duration + dt : 0.0;
    m->disputed = m->ratio > DISPUTE ? m->disputed + dt : 0.0;
    m->distrust = larger(0.0, m->distrust - dt);
    if (m->disputed * share >= RESET_TIME) {
        const double variance[3] = {claimed[0] + spread[0], claimed[1] + spread[1], claimed[2] + spread[2]};
        reset_velocity(g, delta_b, variance);
        return GAIT_RESET | GAIT_IMU_DISPUTED;
    }
    if (inflated) inflate_causes(g, excess, dt, share);
    return m->disputed >= DISPUTE_TIME || m->distrust > 0.0 ? GAIT_IMU_DISPUTED : 0;
}

/* Heading and position by legs alone less those of the filter: a gyro whose bias has jumped, or with a wrong scale, differs
 * from them for as long as the filter has not found its bias. Forgotten after a while: over minutes legs drift as well. */
static const double TURN_TIME = 0.05, TURN_STD = 0.5, MOST_HEADING = 3.2; /* s, rad/s, rad */
void monitor_heading(gait_t *g, double difference, double variance, double dt)
{
    gait_monitor *m = &g->monitor;
    const double *v = g->filter.x[0], keep = 1.0 - dt / HEADING_MEMORY;
    m->turn += TURN_STD * TURN_STD / (TURN_STD * TURN_STD + variance) * dt / (TURN_TIME + dt) * (difference - m->turn);
    m->heading = larger(-MOST_HEADING, smaller(MOST_HEADING, keep * m->heading + m->turn * dt));
    m->aside[0] = keep * m->aside[0] - m->heading * v[1] * dt;
    m->aside[1] = keep * m->aside[1] + m->heading * v[0] * dt;
}

/* The rate about z of base_link as legs measure it, less that of the gyro; variance of one measurement. */
void monitor_rate(gait_t *g, double difference, double variance, double dt)
{
    gait_filter *f = &g->filter;
    const double *axis_i = g->config->robot.R_bi + 6;
    const int ld = GAIT_STRIDE(f->size);
    double predicted = 0.0;
    monitor_heading(g, difference, variance, dt);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) predicted += axis_i[i] * f->P[(BG + i) * ld + BG + j] * axis_i[j];
    const double excess = follow_lasting(&g->monitor.lasting_rate, difference, RISE_RATE * dt) - predicted - variance;
    if (excess <= 0.0) return;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            f->P[(BG + i) * ld + BG + j] += axis_i[i] * axis_i[j] * excess * dt / INFLATION_TIME;
    f->P[(ROT + 2) * ld + ROT + 2] += 2.0 * excess * INFLATION_TIME * dt;
}

/* A robot on its back, or one whose legs carry nothing of its weight, does not stand on its feet. */
int feet_may_stand(const gait_t *g, const double R_wb[9])
{
    return R_wb[8] > 0.0 && !g->input.torque.lifted;
}

/* Whether nothing has moved for a while: a robot at rest. */
int monitor_still(gait_t *g, double dt)
{
    const gait_sensor *gyro = &g->input.imu[GYRO], *accel = &g->input.imu[ACCEL];
    const int still = joints_rest(&g->input, &g->config->robot) && gyro->level < STILL_RATE
        && fabs(accel->level - fabs(g->config->settings.gravity)) < STILL_FORCE
        && gyro->noise < STILL_NOISE[GYRO] && accel->noise < STILL_NOISE[ACCEL];
    g->monitor.still = still ? g->monitor.still + dt : 0.0;
    return g->monitor.still > STILL_TIME;
}

/* Whether the specific force, on average, is where the orientation has the vertical. If not, the IMU's axes are others
 * than described, or the orientation is wrong: neither can be told, so the IMU is not used, and after a while the
 * orientation is taken from gravity. The average is of world axes, in which gravity stands still while the body turns: in
 * those of the IMU, which it is kept in, it turns by the gyro. Returns health bits. */
uint32_t monitor_gravity(gait_t *g)
{
    gait_monitor *m = &g->monitor;
    gait_input *in = &g->input;
    const double gravity = fabs(g->config->settings.gravity), dt = in->dt, *up = g->filter.R + 6;
    double along = 0.0, norm2 = 0.0, turned[3];
    if (in->imu[ACCEL].blind > 0.0 || !in->imu_known || g->align) return 0;
    const double share = m->force_i[0] == 0.0 && m->force_i[2] == 0.0 ? 1.0 : dt / (FORCE_TIME + dt);
    cross(in->gyro, m->force_i, turned);
    for (int i = 0; i < 3; i++) {
        m->force_i[i] += share * (in->accel[i] - m->force_i[i]) - (1.0 - share) * dt * turned[i];
        along += up[i] * m->force_i[i];
        norm2 += m->force_i[i] * m->force_i[i];
    }
    const double norm = sqrt(norm2);
    /* In flight, or at an impact, the force tells nothing: what was found before stands. */
    const int weight = fabs(norm - gravity) < FORCE_SHARE * gravity;
    m->tilted = weight && along >= TILTED * norm ? 0.0 : m->tilted + (weight || m->tilted >= TILTED_TIME ? dt : 0.0);
    if (m->tilted < TILTED_TIME) return 0;
    if (m->tilted < TILTED_TIME + dt) in->imu[GYRO].charge = in->imu[ACCEL].charge = FORCE_TIME; /* used until now */
    in->imu[GYRO].blind = in->imu[ACCEL].blind = m->tilted;
    return GAIT_IMU_AXES | GAIT_BAD_SAMPLE;
}

/* Events are shown for a while. Returns the health bits. */
uint32_t monitor_end(gait_t *g, uint32_t health)
{
    static const uint32_t events[3] = {GAIT_DIVERGED, GAIT_RESET, GAIT_CLOCK_BACK};
    gait_monitor *m = &g->monitor;
    for (int k = 0; k < 3; k++) {
        m->shown[k] = health & events[k] ? SHOW_TIME : m->shown[k] - g->input.dt;
        if (m->shown[k] > 0.0) health |= events[k];
    }
    return health;
}

/* The covariance that is reported has in it what no measurement shows. How the IMU is mounted is known to half a degree,
 * which no motion tells from a tilt of the body. */
void monitor_mounting(gait_state *state)
{
    state->pose_cov[3][3] += GAIT_MOUNTING_STD * GAIT_MOUNTING_STD;
    state->pose_cov[4][4] += GAIT_MOUNTING_STD * GAIT_MOUNTING_STD;
}

/* The open disagreement: whichever is right, the other is as far off; that of the position in any direction, since it turns with the
 * heading. The latency of joints, which is known to a few milliseconds: the velocity is short of it times the acceleration. And
 * a gyro bias that has just changed: it moves what legs measure along the ground by the bias times their length. */
static const double RATE_STD = 0.015; /* rad/s */
void monitor_output(const gait_t *g, gait_state *state)
{
    const gait_adapt *a = &g->adapt;
    const double late2 = g->config->settings.joint_delay_std * g->config->settings.joint_delay_std;
    const double hidden = g->config->method == GAIT_LEGS ? RATE_STD * g->config->robot.leg_length : 0.0;
    const double *aside = g->monitor.aside, along2 = 0.5 * (aside[0] * aside[0] + aside[1] * aside[1]);
    double drift_w[3], R_wb[9];
    monitor_mounting(state);
    const int lasts = adapt_drift(a, 1.0, drift_w);
    if (lasts) base_axes(g, R_wb);
    for (int i = 0; i < 3; i++) {
        const double lasting = g->monitor.duration > 0.0 ? g->monitor.lasting[i] * g->monitor.lasting[i] : 0.0;
        double drift_b = 0.0;
        for (int k = 0; k < 3 && lasts; k++) drift_b += R_wb[3 * k + i] * R_wb[3 * k + i] * drift_w[k];
        state->vel_cov[i][i] = larger(state->vel_cov[i][i], larger(lasting, drift_b))
            + g->monitor.open[i] * g->monitor.open[i] + late2 * a->square_b[i] + (i < 2 ? hidden * hidden : 0.0);
        const double least = (i < 2 ? along2 : aside[2] * aside[2]) + late2 * a->swept[i] * a->swept[i];
        state->pose_cov[i][i] = larger(state->pose_cov[i][i], least);
    }
    state->pose_cov[5][5] = larger(state->pose_cov[5][5], g->monitor.heading * g->monitor.heading);
}

/* What a controller may use: bits of gait_state.valid. */
int monitor_valid(const gait_t *g, const gait_state *state)
{
    const double tilt = larger(state->pose_cov[3][3], state->pose_cov[4][4]);
    double velocity = 0.0, position = 0.0;
    for (int i = 0; i < 3; i++) {
        velocity = larger(velocity, state->vel_cov[i][i]);
        position = larger(position, state->pose_cov[i][i]);
    }
    if (!g->input.started || g->align) return 0;
    return (velocity < MOST_VELOCITY_STD * MOST_VELOCITY_STD ? GAIT_VALID_VELOCITY : 0)
        | (tilt < MOST_TILT_STD * MOST_TILT_STD ? GAIT_VALID_ATTITUDE : 0)
        | (!g->monitor.lost && position < MOST_POSITION_STD * MOST_POSITION_STD ? GAIT_VALID_POSITION : 0);
}
