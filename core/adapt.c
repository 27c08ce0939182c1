/* Noise of accelerometer and measurements, estimated while they are in use.
 *
 * From one moment to another the IMU and the measurements must agree on how the velocity changed. Over 0.3 s the two differ
 * by the errors of both measurements, which go with the variances r that these claim, and by what the accelerometer got
 * wrong in between, whatever they claim: lost or aliased impacts, vibration, scale, mounting. So the squares of the
 * differences are fitted by factor * r + noise * time, each weighted by the inverse square of its expected variance. Feet that
 * slip differ along the ground, feet that give way differ vertically, and a noisy IMU in both: what both show is taken
 * for its noise. A difference that lasts is no noise: the accelerometer or the orientation is wrong. Between the stances of a
 * robot that jumps no moment is measured: then the latest one that is 0.3 s old or older takes its place.
 *
 * What legs claim is for errors that last 0.1 s. Those of soles do so: they come with impacts and changes of load. So
 * they are averaged for about as long before they are compared, for errors that last less would pass for larger ones, and
 * the factor may then be less than 1. Errors that last longer than 0.3 s do not show, so it has a least value. Feet that
 * are balls have such errors, of their radius and of how they roll, and so has a network of the whole body: there single
 * measurements are compared, and can only show that they are worse. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double STEP = ADAPT_STEP, SPAN = ADAPT_SPAN; /* s from one moment to the next, and to that of comparison */
static const double AVERAGE_KEPT = 0.5;  /* of the average from one moment to the next: a time constant of 0.03 s */
static const double LEAST_FACTOR = 0.25; /* of soles, on variances */
static const double MEMORY = 150.0;      /* differences that are averaged: 3 s */
static const double PRIOR = 30.0;        /* differences as claimed and without noise, as if seen before the first */
static const double LEAST_STD = 0.03;    /* of a difference, m/s: smaller ones count alike */
static const double SPREAD_SHARE = 0.25; /* of the spread of the sources that joins the variance of their mean */
static const double RIDGE = 0.05;        /* by how much the fit prefers a factor of 1, in squares of the mean variance */
static const double CAUTION = 1.0;       /* of what both show once more: brief errors show less over 0.3 s */
static const double MOST_NOISE = 0.3, MOST_FACTOR = 4.0; /* m/s^2/sqrt(Hz); on variances */
static const double DRIFT_RISE = 0.3;    /* m/s^2: how fast the lasting part of a difference may rise */
static const double DRIFT_STD = 0.02;    /* m/s: a difference that is never an error */
/* Variances that are usual beyond which a lasting difference has a cause; feet in contact claim one variance, whatever they do,
 * which on firm ground is several times too large. */
static const double DRIFT_GATE = 6.0, CONTACTS_GATE = 1.25;
static const double MOST_STD = 0.2;      /* m/s: a measurement of a larger one shows nothing that lasts */
static const double USUAL_MEMORY = 500.0, USUAL_PRIOR = 5.0; /* differences whose squares are averaged: 10 s */
static const double USUAL_CAP = 9.0, USUAL_STEP = 0.01;      /* by what one may exceed their mean: a bias is not usual */

void adapt_reset(gait_adapt *a, int soles, int contacts)
{
    memset(a, 0, sizeof *a);
    a->factor[0] = a->factor[1] = 1.0;
    a->usual[0] = a->usual[1] = 1.0;
    a->kept = soles ? AVERAGE_KEPT : 0.0;
    a->least = soles ? LEAST_FACTOR : 1.0;
    a->gate = contacts ? CONTACTS_GATE : DRIFT_GATE;
}

/* Nothing is compared with what was measured before. */
void adapt_forget(gait_adapt *a)
{
    a->count = 0;
    memset(a->variance, 0, sizeof a->variance);
    memset(a->weight, 0, sizeof a->weight);
    memset(a->drift, 0, sizeof a->drift);
}

/* Fit squares of differences: means of the weights, and weighted of r, r^2, d^2 and r d^2. */
static void fit(gait_adapt *a, int group)
{
    const double *m = a->means[group], r = m[1] / m[0], d2 = m[3] / m[0], ridge = RIDGE * r * r;
    const double slope = (m[4] / m[0] - r * d2 + ridge) / (m[2] / m[0] - r * r + ridge);
    const double noise = (d2 - larger(0.0, smaller(MOST_FACTOR, slope)) * r) / SPAN;
    a->factor[group] = larger(a->least, smaller(MOST_FACTOR, slope));
    a->noise2[group] = larger(0.0, smaller(MOST_NOISE * MOST_NOISE, noise));
}

/* Whether the measurement of a moment shows what lasts. */
static int informs(const double variance[3])
{
    return variance[0] > 0.0 && larger(variance[0], larger(variance[1], variance[2])) < MOST_STD * MOST_STD;
}

/* How many moments before this one the latest is that is at least LAGS old and informs; 0: none. */
static int earlier(const gait_adapt *a)
{
    for (int k = ADAPT_LAGS; k < ADAPT_SLOTS; k++)
        if (informs(a->variance[(a->next + ADAPT_SLOTS - k) % ADAPT_SLOTS])) return k;
    return 0;
}

/* An accelerometer that is wrong, or a tilt, makes differences of one sign for as long as it lasts; a slip, which begins and
 * ends with a jump, for no longer than SPAN. So the lasting part rises slowly and falls at once. */
static void follow_drift(gait_adapt *a)
{
    const int lag = earlier(a), then = (a->next + ADAPT_SLOTS - lag) % ADAPT_SLOTS, now = a->next;
    const double part = lag ? (double)ADAPT_LAGS / lag : 0.0; /* what differs over a longer time, as if over SPAN */
    double ratio[2] = {0.0};
    if (!lag) a->rise = 0.0;
    if (!lag || !informs(a->variance[now])) return;
    for (int i = 0; i < 3; i++) {
        const double d = part * (a->apart[now][i] - a->apart[then][i]);
        const double r = part * part * (a->variance[now][i] + a->variance[then][i]);
        const double before = a->drift[i] * d > 0.0 ? fabs(a->drift[i]) : 0.0;
        a->drift[i] = copysign(smaller(fabs(d), before + a->rise), d);
        a->expected[i] = a->usual[i / 2] * r + DRIFT_STD * DRIFT_STD;
        ratio[i / 2] += d * d / (r + DRIFT_STD * DRIFT_STD) / (i < 2 ? 2.0 : 1.0);
    }
    a->rise = 0.0;
    a->counted = smaller(a->counted + 1.0, USUAL_MEMORY);
    for (int k = 0; k < 2; k++)
        a->usual[k] += (smaller(ratio[k], USUAL_CAP * a->usual[k] + USUAL_STEP) - a->usual[k]) / (a->counted + USUAL_PRIOR);
}

/* Squares of what lasts beyond so many variances that are usual, world axes, (m/s)^2. Returns whether there is any. */
int adapt_drift(const gait_adapt *a, double gate, double excess[3])
{
    for (int i = 0; i < 3; i++) excess[i] = larger(0.0, a->drift[i] * a->drift[i] - gate * a->expected[i]);
    return excess[0] + excess[1] + excess[2] > 0.0;
}

/* By how much the last moment differs from the first of the last SPAN, world axes, m/s. Returns whether it is known. */
int adapt_lately(const gait_adapt *a, double difference[3])
{
    const int newest = (a->next + ADAPT_SLOTS - 1) % ADAPT_SLOTS, first = (a->next + ADAPT_SLOTS - ADAPT_LAGS) % ADAPT_SLOTS;
    for (int i = 0; i < 3; i++) difference[i] = a->apart[newest][i] - a->apart[first][i];
    return a->count == ADAPT_LAGS;
}

/* Whether it is time for another moment. */
int adapt_due(const gait_adapt *a)
{
    return a->since >= 0.999 * STEP;
}

/* Moments without a measurement since the last one are left empty. */
static void skip(gait_adapt *a)
{
    const int missing = (int)(a->since / STEP - 0.49);
    a->rise += DRIFT_RISE * smaller((missing + 1) * STEP, SPAN);
    if (missing <= 0) return;
    a->count = 0;
    memset(a->weight, 0, sizeof a->weight);
    if (missing >= ADAPT_SLOTS) adapt_forget(a);
    for (int k = 0; k < missing && k < ADAPT_SLOTS; k++) {
        memset(a->variance[a->next], 0, sizeof a->variance[a->next]);
        a->next = (a->next + 1) % ADAPT_SLOTS;
    }
}

/* Joints that are read later than allowed for measure the velocity of a moment ago: short of the latency times the
 * acceleration. Until legs measure again that error stays what it was. */
static const double ACCEL_TIME = 0.1, LONGEST = 0.5; /* s over which accelerations are averaged; s */
static void follow_accel(gait_adapt *a, const double R_wb[9], const double variance_w[3])
{
    const double share = a->since <= 1.5 * STEP && informs(variance_w) ? a->since / (ACCEL_TIME + a->since) : 0.0;
    double accel_w[3], accel_b[3];
    for (int i = 0; i < 3; i++) {
        accel_w[i] = (a->inertial[i] - a->before[i]) / a->since;
        a->accel_w[i] += share * (accel_w[i] - a->accel_w[i]);
        a->swept[i] += smaller(a->since, LONGEST) * a->accel_w[i];
        a->before[i] = a->inertial[i];
    }
    rotate_back(R_wb, accel_w, accel_b);
    for (int i = 0; i < 3; i++) a->square_b[i] += share * (accel_b[i] * accel_b[i] - a->square_b[i]);
}

/* If it is due: a measured velocity, the variance that one measurement claims and the spread of its sources, world axes, before it is
 * fused; R_wb: the predicted orientation. */
void adapt_measure(gait_adapt *a, const double R_wb[9], const double velocity_w[3], const double variance_w[3],
                   const double spread_w[3])
{
    double sums[2][5] = {{0.0}};
    follow_accel(a, R_wb, variance_w);
    skip(a);
    a->since = 0.0;
    const int now = a->next, then = (now + ADAPT_SLOTS - ADAPT_LAGS) % ADAPT_SLOTS;
    for (int i = 0; i < 3; i++) {
        const double claimed = variance_w[i] + SPREAD_SHARE * spread_w[i];
        a->weight[i] = a->kept * a->weight[i] + 1.0 / claimed;
        a->average[i] += (velocity_w[i] - a->inertial[i] - a->average[i]) / (claimed * a->weight[i]);
        a->apart[now][i] = a->average[i];
        a->variance[now][i] = 1.0 / ((1.0 - a->kept) * a->weight[i]);
    }
    follow_drift(a);
    a->next = (now + 1) % ADAPT_SLOTS;
    if (a->count < ADAPT_LAGS) {
        a->count++;
        return;
    }
    for (int i = 0; i < 3; i++) {
        const double difference = a->apart[now][i] - a->apart[then][i], d2 = difference * difference;
        const double r = a->variance[now][i] + a->variance[then][i];
        const double expected = r + a->noise2[i / 2] * SPAN + LEAST_STD * LEAST_STD;
        const double weight = 1.0 / (expected * expected);
        const double terms[5] = {weight, weight * r, weight * r * r, weight * d2, weight * r * d2};
        for (int k = 0; k < 5; k++) sums[i / 2][k] += terms[k];
    }
    a->known = smaller(a->known + 1.0, MEMORY);
    for (int group = 0; group < 2; group++) {
        double *m = a->means[group], *s = sums[group];
        const double prior[5] = {s[0], s[1], s[2], s[1], s[2]}; /* d^2 = r */
        if (m[0] == 0.0) memcpy(m, prior, sizeof prior);
        for (int k = 0; k < 5; k++) m[k] += (s[k] - m[k]) / (a->known + PRIOR);
        fit(a, group);
    }
    const double both = smaller(a->noise2[0], a->noise2[1]);
    a->accel2 = smaller(MOST_NOISE * MOST_NOISE, sqrt(a->noise2[0] * a->noise2[1]) + CAUTION * both);
}
