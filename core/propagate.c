/* The filter between samples: by the IMU where its samples are good, and with an inflated covariance where they are missing,
 * implausible or cut off. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double LONGEST_GAP = 30.0;  /* s: a longer gap inflates the covariance no further */
static const double REPEATS = 0.01;      /* s for which an IMU that is slower than the samples repeats its values */
/* White noise of a sample while a robot walks, rad/s and m/s^2; noise beyond it is the IMU's. */
static const double USUAL_NOISE[2] = {0.03, 0.4};
static const double CUT_SHARE = 0.5;     /* of the saturation limit: by how much a value cut off there may have exceeded it */

/* Variance over size^2 that an unmeasured motion adds in the last `part` of the `time` seconds for which it has been
 * unmeasured. It is correlated in time, so its effect grows with the time and not with the number of steps. */
static double unmeasured_growth(double time, double part)
{
    return time * time - larger(time - part, 0.0) * larger(time - part, 0.0);
}

/* Propagate the filter by dt seconds; `adapt` gets the change of velocity by the IMU. */
int propagate(gait_t *g, const gait_settings *s, const gait_noise *noise, const double gyro[3], const double accel[3],
              double dt)
{
    gait_filter *f = &g->filter;
    const double before[3] = {f->x[0][0], f->x[0][1], f->x[0][2]};
    const int done = g->recorder
        ? recorder_step(g, s, noise, gyro, accel, dt)
        : filter_propagate(f, s, noise, g->contacts.walk, g->contacts.roll_i, gyro, accel, dt);
    if (!done) return 0;
    for (int i = 0; i < 3; i++) g->adapt.inertial[i] += f->x[0][i] - before[i];
    g->adapt.since += dt;
    return 1;
}

/* Propagate the filter by dt seconds without a good accelerometer: velocity held, covariance inflated for a motion of at
 * most `rate` and `accel` in the last `part` of `time` seconds; the gyro is used if it is given. Contact points, which only the
 * contact-aided filter has, are removed. */
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
    adapt_forget(&g->adapt); /* how the velocity has changed meanwhile is not known */
    gait_settings floating = *s; /* without gravity: a held velocity does not depend on the orientation */
    const int ld = GAIT_STRIDE(f->size);
    const double variance = unmeasured_growth(time, part), density = sqrt(variance / dt);
    gait_noise noise = s->noise;
    noise.gyro = gyro ? s->noise.gyro : rate * density;
    noise.accel = accel * density;
    noise.accel_share = 0.0;
    floating.gravity = 0.0;
    propagate(g, &floating, &noise, gyro ? gyro : f->b[0], f->b[1], dt);
    /* The instant at which the velocity changed is unknown as well. */
    for (int i = 0; i < 3; i++) f->P[(POS + i) * ld + POS + i] += 0.1 * accel * accel * variance * time * time;
}

/* Propagate over a gap between samples. Of a clock that was set back the true length of the gap is unknown. */
void bridge_gap(gait_t *g, uint32_t health)
{
    const gait_settings *s = &g->config->settings;
    const double dt = smaller(g->input.dt, LONGEST_GAP), time = health & GAIT_CLOCK_BACK ? dt + s->max_gap : dt;
    bridge(g, NULL, time, time, dt, s->gap_rate, s->gap_accel);
}

/* Size of an unmeasured motion: `least`, or as before. */
static double usual_motion(const gait_sensor *s, double least)
{
    return sqrt(larger(least * least, s->swing));
}

/* Propagate the filter by dt seconds without a good IMU, or without a good accelerometer. An impact that saturates the IMU
 * exceeds its range; values in a wrong unit were used for `charge` seconds before they were detected. */
void bridge_blind(gait_t *g, double dt, uint32_t health)
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

/* Mean square of what a saturated sensor has not measured. */
double cut_off2(const gait_sensor *s)
{
    const double top = CUT_SHARE * larger(s->top[0], larger(s->top[1], s->top[2]));
    return larger(top * top, s->swing);
}

/* Variance over dt^2 of what a sensor did not measure: samples lost, repeated, saturated or replaced as a spike; the first two
 * for a motion of `size`. */
static double unmeasured(const gait_input *in, const gait_sensor *s, double size, double dt)
{
    if (in->unseen == 0.0 && s->same <= REPEATS && s->spike == 0.0 && s->cut == 0.0) return 0.0;
    const double lost = in->unseen * in->unseen / (in->dt * dt), spike = s->spike * s->spike;
    const double repeated = s->same > REPEATS ? unmeasured_growth(s->same - REPEATS, dt) / (dt * dt) : 0.0;
    const double cut2 = s->cut > 0.0 ? cut_off2(s) : 0.0;
    return larger(size * size, s->swing) * (lost + repeated) + spike + cut2 * unmeasured_growth(s->cut, dt) / (dt * dt);
}

/* Noise density of the IMU over a step. At a lower rate than the network's, the error of a step grows with the square of its
 * length, and its density with the power of 3/2. White noise beyond that of a walking robot is added. */
gait_noise imu_noise(const gait_t *g, double dt)
{
    const gait_settings *s = &g->config->settings;
    const gait_input *in = &g->input;
    const gait_sensor *gyro = &in->imu[GYRO], *accel = &in->imu[ACCEL];
    gait_noise noise = s->noise;
    if (noise.accel_share > 0.0 && in->dt > (1.0 + GAIT_JITTER) * g->config->period) {
        const double slow = in->dt / g->config->period;
        noise.accel_share *= slow * sqrt(slow);
    }
    const double rough_rate = larger(0.0, gyro->noise * gyro->noise - USUAL_NOISE[GYRO] * USUAL_NOISE[GYRO]) * in->dt;
    const double rough_force = larger(0.0, accel->noise * accel->noise - USUAL_NOISE[ACCEL] * USUAL_NOISE[ACCEL]) * in->dt;
    /* An implausible rate, not yet for long enough to be taken for a wrong unit: all of it may be wrong. */
    const double odd = gyro->odd > 0.0 ? gyro->level * gyro->level * unmeasured_growth(gyro->odd, dt) / dt : 0.0;
    const double more_rate = rough_rate + odd + unmeasured(in, gyro, s->gap_rate, dt) * dt;
    const double more_force = rough_force + unmeasured(in, accel, s->gap_accel, dt) * dt
        + larger(0.0, g->adapt.accel2 - noise.accel * noise.accel);
    if (more_rate > 0.0) noise.gyro = sqrt(noise.gyro * noise.gyro + more_rate);
    if (more_force > 0.0) noise.accel = sqrt(noise.accel * noise.accel + more_force);
    return noise;
}

/* Propagate the filter by dt seconds of the step to this sample. */
void propagate_by_imu(gait_t *g, double dt, uint32_t health)
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
