/* Input checks: judge a sample before anything uses it. What is bad is named in the health bits and replaced by the last
 * good value, so that nothing behind it ever meets a nan. Here the stamp; imu_checks.c and joint_checks.c have the rest. */
#include <math.h>

#include "core.h"

/* A clock that was set back shows stamps that go on from an earlier time; single late or repeated samples do not. */
static const double SET_BACK_AFTER = 0.02; /* s of refused stamps that follow each other */
enum { BACK_SAMPLES = 5 };
static int set_back(gait_input *in, double t)
{
    if (in->refused == 0 || !(t > in->late_t)) {
        in->late_from = t;
        in->refused = 0;
    }
    in->late_t = t;
    in->refused++;
    return in->refused >= BACK_SAMPLES && t - in->late_from >= SET_BACK_AFTER;
}

/* A step of more than LONGER usual ones has lost samples in it; more than GAP_SAMPLES are a gap to tell of. */
static const double PERIOD_SHARE = 0.02, LONGER = 1.6, GAP_SAMPLES = 5.0;
static int follow_time(gait_input *in, const gait_settings *s, double dt, uint32_t *health)
{
    if (in->period <= 0.0) in->period = fmin(dt, s->max_gap);
    in->unseen = fmax(0.0, dt - LONGER * in->period);
    const int lost = dt > GAP_SAMPLES * in->period;
    in->period += PERIOD_SHARE * (fmin(dt, 2.0 * in->period) - in->period);
    if (lost || dt > s->max_gap) {
        *health |= GAIT_TIME_GAP;
        in->gap = dt;
    }
    return dt > s->max_gap ? AFTER_GAP : GO_ON;
}

/* Judge the stamp; input.dt is the time since the last sample that was not refused. */
static int admit_time(gait_input *in, const gait_settings *s, double t, uint32_t *health)
{
    const double dt = t - in->t;
    int verdict = FIRST;
    in->gap = in->unseen = 0.0;
    if (!isfinite(t)) {
        *health = GAIT_BAD_SAMPLE | GAIT_BAD_TIME;
        return REFUSED;
    }
    if (!in->started) {
        in->dt = 0.0;
    } else if (dt > 0.0) {
        verdict = follow_time(in, s, dt, health);
        in->dt = dt;
    } else if (dt <= -s->clock_reset || (isfinite(s->clock_reset) && set_back(in, t))) {
        /* How long the clock stood still is not known: at least for the samples that were refused. */
        verdict = AFTER_GAP;
        *health |= GAIT_CLOCK_BACK | GAIT_BAD_TIME;
        in->gap = in->refused > 0 ? in->t - in->late_from : -dt;
        in->dt = in->period + (in->refused > 0 ? t - in->late_from : 0.0);
    } else {
        *health = GAIT_BAD_SAMPLE | GAIT_BAD_TIME;
        return REFUSED;
    }
    in->refused = 0;
    in->t = t;
    in->started = 1;
    return verdict;
}

/* Judge a sample and keep what is good of it. Returns the verdict. */
int gait_admit(gait_t *g, const gait_sample *sample, uint32_t *health)
{
    gait_input *in = &g->input;
    *health = 0;
    const int verdict = admit_time(in, &g->config->settings, sample->t, health);
    if (verdict == REFUSED) return REFUSED;
    *health |= imu_admit(in, &g->config->settings, sample, joints_rest(in, &g->config->robot));
    *health |= joints_admit(g, sample);
    return verdict;
}
