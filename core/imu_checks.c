/* Plausibility of the IMU, gyro and accelerometer each by itself: finite, within range, not cut off, without spikes,
 * changing, in SI units. A check is one function here, and its thresholds stand before it: first those of the gyro, then
 * those of the accelerometer. */
#include <math.h>
#include <string.h>

#include "core.h"

static const uint32_t NAME[2] = {GAIT_GYRO, GAIT_ACCEL};

static double norm(const double x[3])
{
    return sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
}

/* Cut off: the largest value of an axis in some time occurs several times to the last bit. Below these magnitudes equal
 * values are a matter of resolution. */
static const double LEAST_CUT[2] = {0.3, 11.5}, CUT_TIME = 0.5;
enum { CUT_HITS = 4 };
static int cut_off(gait_sensor *s, int which, const double x[3], int repeated, double dt)
{
    const int ends = (s->window += dt) > CUT_TIME;
    int cut = 0;
    for (int i = 0; i < 3; i++) {
        const double size = fabs(x[i]);
        if (ends) {
            s->limit[i] = s->hits[i] >= CUT_HITS ? s->top[i] : 0.0;
            s->top[i] = 0.0;
            s->hits[i] = 0;
        }
        if (size > s->top[i]) s->hits[i] = 0;
        if (size >= s->top[i] && size >= LEAST_CUT[which] && !repeated) {
            s->top[i] = size;
            s->hits[i] = (uint8_t)(s->hits[i] + (s->hits[i] < 255));
        }
        cut = cut || (size == s->top[i] && s->hits[i] >= CUT_HITS) || (size == s->limit[i] && size > 0.0);
    }
    if (ends) s->window = 0.0;
    return cut;
}

/* Spike: a jump beyond any impact, from which the next samples return. A smaller one that stands out is an impact (hard
 * landings on one foot reach 90 m/s^2 from one sample to the next) or a spike: its size joins the noise. */
static const double LEAST_JUMP[2] = {2.5, 45.0}, SPIKE[2] = {4.0, 120.0}, JUMP_RATIO = 8.0, JUMP_TIME = 0.2;
enum { SPIKE_SAMPLES = 2 };
static double distance2(const double a[3], const double b[3])
{
    const double d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
}

/* A jump that stood out, and from which this sample returns to a share of it: no impact is over within a sample. */
static const double RETURNED = 0.3;
static int returned(gait_sensor *s, int which, const double x[3])
{
    const double limit = LEAST_JUMP[which] * LEAST_JUMP[which], back2 = distance2(x, s->raw);
    const int alone = s->known && s->jump2 > limit && s->jump2 > JUMP_RATIO * JUMP_RATIO * s->jumps && back2 > limit
        && distance2(x, s->stood) < RETURNED * RETURNED * smaller(s->jump2, back2);
    s->jump2 = s->known ? back2 : 0.0;
    memcpy(s->stood, s->raw, sizeof s->stood);
    return alone;
}

static int spike(gait_sensor *s, int which, const double x[3], const double last[3], double dt)
{
    const double jump2 = distance2(x, last);
    const double usual = JUMP_RATIO * JUMP_RATIO * s->jumps, least = larger(LEAST_JUMP[which] * LEAST_JUMP[which], usual);
    const int far = s->known && s->spikes < SPIKE_SAMPLES && jump2 > larger(SPIKE[which] * SPIKE[which], usual);
    s->spike = s->known && jump2 > least ? sqrt(jump2) : 0.0;
    s->spikes = (uint8_t)(far ? s->spikes + 1 : 0);
    if (!far) s->jumps += dt / (JUMP_TIME + dt) * (smaller(jump2, least) - s->jumps);
    return far;
}

/* Stuck: no axis has changed for `stale` seconds, and it is not the silence of a robot at rest. All zeros are never an
 * accelerometer's. */
static const double REST_RATE = 0.05, REST_FORCE = 2.0; /* rad/s; m/s^2 off gravity */
static int stuck(const gait_sensor *s, int which, const double x[3], const gait_settings *set, int at_rest)
{
    const double size = norm(x);
    const int restful = which == GYRO ? size < REST_RATE : fabs(size - fabs(set->gravity)) < REST_FORCE;
    if (which == ACCEL && size == 0.0) return 1;
    return s->same >= set->stale && !(at_rest && restful);
}

/* Unit: a robot on its feet or in hand feels its weight, and no robot turns so fast for long. Free fall is shorter. */
static const double LEVEL_TIME = 0.05, ODD_TIME = 0.15; /* low-pass; how long it must be odd, s */
static const double MOST_RATE = 12.0, LEAST_FORCE = 2.5;
static int odd_unit(gait_sensor *s, int which, const double x[3], double dt)
{
    s->level += (s->known ? dt / (LEVEL_TIME + dt) : 1.0) * (norm(x) - s->level);
    s->odd = (which == ACCEL ? s->level < LEAST_FORCE : s->level > MOST_RATE) ? s->odd + dt : 0.0;
    return s->odd >= ODD_TIME;
}

/* Noise from sample to sample: the median of the second differences, which impacts do not move, as the standard deviation
 * of white noise with that median. */
static const double NOISE_RATE = 15.0, NOISE_MEDIAN = 3.77; /* 1/s; of white noise of unit variance */
enum { SOON = 8 }; /* samples in a row above the median: by chance once in some hundred, so the noise has grown */
static void follow_noise(gait_sensor *s, const double x[3], double dt)
{
    double total = 0.0;
    for (int i = 0; i < 3; i++) {
        const double second = x[i] - 2.0 * s->raw[i] + s->before[i];
        total += second * second;
        s->before[i] = s->raw[i];
    }
    const double now = sqrt(total) / NOISE_MEDIAN;
    s->rises = (uint8_t)(now > s->noise ? s->rises + (s->rises < 255) : 0);
    const double step = smaller(NOISE_RATE * (s->rises > SOON ? s->rises - SOON : 1) * dt, 0.5);
    if (s->samples == 2) s->noise = larger(1e-6, s->noise * (now > s->noise ? 1.0 + step : 1.0 - step));
    else if (++s->samples == 2) s->noise = 1e-3;
}

/* How the body has moved lately: rises soon and falls slowly, since feet are in the air between strides, and only while
 * values are whole. */
static const double SWING_RISE = 0.3, SWING_FALL = 3.0; /* s */
static void follow_swing(gait_sensor *s, const double x[3], double rest, double dt)
{
    const double off = norm(x) - rest, time = off * off > s->swing ? SWING_RISE : SWING_FALL;
    s->swing += dt / (time + dt) * (off * off - s->swing);
}

static uint32_t check(gait_sensor *s, int which, const double *x, const double *last, const gait_settings *set, double dt,
                      int at_rest)
{
    const double range = which == GYRO ? set->max_gyro : set->max_accel;
    uint32_t found = 0;
    s->spike = 0.0;
    s->samples = x ? s->samples : 0;
    if (!x || !isfinite(x[0] + x[1] + x[2])) return GAIT_BAD_IMU;
    const int repeated = s->known && x[0] == s->raw[0] && x[1] == s->raw[1] && x[2] == s->raw[2];
    const int cut = cut_off(s, which, x, repeated, dt);
    s->same = repeated ? s->same + dt : 0.0;
    s->cut = cut ? s->cut + dt : 0.0;
    if (larger(fabs(x[0]), larger(fabs(x[1]), fabs(x[2]))) >= range) found |= GAIT_IMU_SATURATED;
    if (stuck(s, which, x, set, at_rest)) found |= GAIT_IMU_STUCK;
    if (odd_unit(s, which, x, dt)) found |= GAIT_IMU_UNITS;
    const int alone = returned(s, which, x);
    if (!found && spike(s, which, x, last, dt)) found |= GAIT_IMU_SPIKE;
    if (!found && !repeated) follow_noise(s, x, dt);
    if (!found && !cut) follow_swing(s, x, which == ACCEL ? fabs(set->gravity) : 0.0, dt);
    memcpy(s->raw, x, sizeof s->raw);
    s->known = 1;
    return found | (cut ? GAIT_IMU_CUT : 0) | (alone ? GAIT_IMU_SPIKE : 0);
}

/* Judge gyro and accelerometer; keep what is good. What is cut off is used all the same, and a spike is replaced by the
 * value before it: imu_noise has their variance. */
uint32_t imu_admit(gait_input *in, const gait_settings *s, const gait_sample *sample, int at_rest)
{
    const double *values[2] = {sample->gyro, sample->accel};
    double *kept[2] = {in->gyro, in->accel};
    uint32_t all = 0;
    for (int k = 0; k < 2; k++) {
        gait_sensor *one = &in->imu[k];
        const uint32_t found = check(one, k, values[k], kept[k], s, in->dt, at_rest);
        const int bad = (found & ~(uint32_t)(GAIT_IMU_CUT | GAIT_IMU_SPIKE)) != 0;
        /* Values of another unit have been in use until they were found out. */
        one->charge = bad && one->blind == 0.0 && found & GAIT_IMU_UNITS ? one->odd : 0.0;
        one->blind = bad ? one->blind + in->dt : 0.0;
        if (!bad && one->spikes == 0) memcpy(kept[k], values[k], 3 * sizeof(double));
        if (found) all |= found | NAME[k];
    }
    if (in->imu[GYRO].blind == 0.0 && in->imu[ACCEL].blind == 0.0) in->imu_known = 1;
    if (all & GAIT_IMU_CUT) all = (all & ~(uint32_t)GAIT_IMU_CUT) | GAIT_IMU_SATURATED;
    return all ? all | GAIT_BAD_SAMPLE : 0;
}
