/* Input checks: judge a sample before anything uses it. What is bad is named in the health bits and replaced by the last
 * good value, so that nothing behind it ever meets a nan. */
#include <math.h>

#include "core.h"

static const double MAX_TARGET = 100.0; /* rad: no joint target is larger */

static double value(const double *field, int i)
{
    return field ? field[i] : NAN;
}

static uint32_t admit_imu(gait_input *in, const gait_settings *s, const gait_sample *sample)
{
    double total = 0.0, worst = 0.0;
    for (int i = 0; i < 3; i++) {
        const double gyro = value(sample->gyro, i), accel = value(sample->accel, i);
        total += gyro + accel;
        worst = fmax(worst, fmax(fabs(gyro) / s->max_gyro, fabs(accel) / s->max_accel));
    }
    if (!isfinite(total) || worst >= 1.0) {
        in->blind += in->dt;
        return GAIT_BAD_SAMPLE | (isfinite(total) ? GAIT_IMU_SATURATED : GAIT_BAD_IMU);
    }
    in->blind = 0.0;
    in->imu_known = 1;
    for (int i = 0; i < 3; i++) {
        in->gyro[i] = sample->gyro[i];
        in->accel[i] = sample->accel[i];
    }
    return 0;
}

/* Keep the joints of a leg if they can be true. needs_target: a leg without a joint target is of no use. */
static void admit_leg(gait_input *in, const gait_config *config, const gait_sample *sample, int leg, int needs_target)
{
    const gait_robot *robot = &config->robot;
    const int begin = robot->leg_start[leg], end = robot->leg_start[leg + 1];
    int sane = 1, same = 1, aimed = 1;
    for (int j = begin; j < end; j++) {
        const double q = value(sample->q, j), dq = value(sample->dq, j);
        /* Written so that a nan is not sane either. */
        sane = sane && q >= robot->q_lower[j] && q <= robot->q_upper[j] && fabs(dq) <= robot->dq_limit[j];
        same = same && q == in->raw_q[j] && dq == in->raw_dq[j];
        aimed = aimed && fabs(value(sample->q_des, j)) < MAX_TARGET;
        in->raw_q[j] = q;
        in->raw_dq[j] = dq;
    }
    in->unchanged[leg] = same ? in->unchanged[leg] + in->dt : 0.0;
    in->no_target[leg] = aimed ? 0.0 : in->no_target[leg] + in->dt;
    in->ok[leg] = sane && !(sample->leg_ok && sample->leg_ok[leg] == 0.0);
    if (!in->ok[leg]) return;
    for (int j = begin; j < end; j++) {
        /* A target that is missing for a moment stays where it was, and so does the motor. */
        const double target = aimed ? sample->q_des[j] : in->q[j] + in->e[j];
        in->q[j] = sample->q[j];
        in->dq[j] = sample->dq[j];
        in->e[j] = aimed || in->leg_known[leg] ? target - in->q[j] : 0.0;
    }
    if (needs_target && (in->no_target[leg] > config->settings.hold || (!aimed && !in->leg_known[leg]))) in->ok[leg] = 0;
    else in->leg_known[leg] = 1;
}

/* Judge a sample and keep what is good of it. Returns the verdict; input.dt is the time since the last sample that was not
 * refused. */
int gait_admit(gait_t *g, const gait_sample *sample, uint32_t *health)
{
    const gait_config *config = g->config;
    const gait_settings *s = &config->settings;
    const int legs = config->robot.legs, first = !g->input.started;
    const int needs_target = config->method == GAIT_VELOCITY && config->reads_targets;
    gait_input *in = &g->input;
    double dt = first ? 0.0 : sample->t - in->t;
    int verdict = first ? FIRST : GO_ON, fresh = 0;
    in->gap = 0.0;
    *health = 0;
    if (!isfinite(sample->t) || (!first && dt > -s->clock_reset && dt <= 0.0)) {
        *health = GAIT_BAD_SAMPLE | GAIT_BAD_TIME;
        return REFUSED;
    }
    if (!first && (dt > s->max_gap || dt <= 0.0)) {
        /* How long a clock that was set back stood still is not known. */
        verdict = AFTER_GAP;
        *health |= GAIT_TIME_GAP | (dt <= 0.0 ? GAIT_BAD_TIME : 0);
        dt = dt > 0.0 ? dt : s->max_gap;
        in->gap = dt;
    }
    in->t = sample->t;
    in->dt = dt;
    in->started = 1;
    *health |= admit_imu(in, s, sample);
    for (int leg = 0; leg < legs; leg++) {
        admit_leg(in, config, sample, leg, needs_target);
        fresh += in->unchanged[leg] < s->stale;
    }
    for (int leg = 0; leg < legs; leg++) {
        /* A robot whose every encoder rests is a robot at rest. */
        if (fresh > 0 && in->unchanged[leg] >= s->stale) in->ok[leg] = 0;
        if (!in->ok[leg]) *health |= GAIT_STALE_LEG | GAIT_BAD_SAMPLE | 1u << (GAIT_FIRST_LEG + leg);
    }
    return verdict;
}
