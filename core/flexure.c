/* Gears and links that give way under load, on robots with soles.
 *
 * An encoder on the motor's side of a gear reads more than the joint has turned, in proportion to the torque: q + c tau, and
 * while a foot is loaded or unloaded its leg measures a velocity of c J d(tau)/dt that is not there. One compliance c stands
 * for all joints. It is fitted to the difference between the velocities of loaded legs and the prediction, which the IMU
 * holds for the short time of a change of load. src/gait/reference/flexure.py has the equations. */
#include <math.h>

#include "core.h"

static const double FIT_LOW_PASS = 0.03; /* of what is fitted, s: torques and joint velocities are not filtered alike */
static const double STANDS_ON = 0.2;     /* share of the weight on a leg that is taken to stand */
static const double FIT_STD = 0.05;      /* of a difference, m/s; larger ones count by their inverse squares */
static const double LEG_LASTS = 0.1;     /* s that an error of a leg lasts */
static const double FIT_MEMORY = 30.0;   /* s */
static const double GIVES_MOST = 0.1;    /* rad under a quarter of weight times leg length */

/* What a unit of compliance adds to the velocity that a leg measures: joints that turn by tau_rate, seen from the body and
 * about the point of contact. */
void flexure_velocity(const leg_pose *m, const double *tau_rate, const double above_b[3], double out[3])
{
    double turning_b[3], roll_b[3];
    leg_sum(m->J, m->joints, tau_rate, out);
    leg_sum(m->W, m->joints, tau_rate, turning_b);
    cross(turning_b, above_b, roll_b);
    for (int i = 0; i < 3; i++) out[i] = roll_b[i] - out[i];
}

/* Fit the compliance to the legs that are seen, before they are fused. */
void flexure_learn(gait_t *g, const prediction *p, const double bias_b[3])
{
    const gait_robot *robot = &g->config->robot;
    gait_leg_state *s = &g->legs;
    gait_flexure *x = &s->flexure;
    const double dt = g->config->period, share = dt / (FIT_LOW_PASS + dt);
    int soles = 0;
    for (int leg = 0; leg < robot->legs; leg++) soles |= robot->corner_count[leg];
    if (!soles) return;
    const double most = GIVES_MOST / (0.25 * robot->weight * robot->leg_length), keep = 1.0 - dt / FIT_MEMORY;
    x->told *= keep;
    x->known *= keep;
    for (int leg = 0; leg < robot->legs; leg++) {
        const double *own = s->features + SHARED_FEATURES + LEG_FEATURES * leg;
        double foot_b[3], shift[3], square = FIT_STD * FIT_STD, along = 0.0, across = 0.0;
        if (!robot->corner_count[leg] || !s->seen[leg] || !p->upright || s->kinematic) continue;
        for (int i = 0; i < 3; i++) foot_b[i] = robot->hips_b[leg][i] + robot->leg_length * own[FOOT_POSITION + i];
        cross(bias_b, foot_b, shift);
        for (int i = 0; i < 3; i++) {
            const double expected = p->velocity[i] - g->config->settings.joint_delay * p->acceleration[i];
            const double off = own[LEG_VELOCITY + i] + shift[i] - expected;
            x->off[leg][i] += share * (off - x->off[leg][i]);
            x->bent[leg][i] += share * (x->velocity[leg][i] - x->bent[leg][i]);
            square += x->off[leg][i] * x->off[leg][i];
            along += x->off[leg][i] * x->bent[leg][i];
            across += x->bent[leg][i] * x->bent[leg][i];
        }
        if (!(own[GROUND_FORCE + 2] > STANDS_ON)) continue;
        /* With c taken off already, what is left is as much as is missing of it. */
        x->told += dt / LEG_LASTS / square * (along + x->compliance * across);
        x->known += dt / LEG_LASTS / square * across;
    }
    /* A standard deviation less than was found: as large as it surely is, and none where there is none. */
    const double sure = x->known > 0.0 ? (x->told - sqrt(x->known)) / x->known : 0.0;
    x->compliance = larger(0.0, smaller(most, sure));
}
