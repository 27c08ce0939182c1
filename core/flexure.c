/* Gears and links that give way under load.
 *
 * An encoder on the motor's side of a gear reads more than the joint has turned, in proportion to the torque: q + c tau. A leg
 * then measures a velocity that is short, or long, by c d(J tau)/dt. Two parts of it matter: while a foot is loaded or
 * unloaded the torque changes quickly; and while it stands, the weight turns the leg the further outward the further the
 * foot is from below its joints, so that the body moves farther than the motors say: by 2 to 5 % on real robots (docs/realism.md).
 *
 * One compliance c stands for all joints. Where torques are known it is fitted to the difference between the velocities of
 * loaded legs and the prediction, which the IMU holds for the short time of a change of load. Balls sink into the ground when
 * they are loaded, which looks alike vertically: for them the axes along the ground alone are fitted. Without torques, c is that
 * of a usual robot, and each leg is taken to carry its share of the weight. src/gait/reference/flexure.py has the equations. */
#include <math.h>

#include "core.h"

static const double FIT_LOW_PASS = 0.03; /* of what is fitted, s: torques and joint velocities are not filtered alike */
static const double STANDS_ON = 0.2;     /* share of the weight on a leg that is taken to stand */
static const double FIT_STD = 0.05;      /* of a difference, m/s; larger ones count by their inverse squares */
static const double LEG_LASTS = 0.1;     /* s that an error of a leg lasts */
static const double FIT_MEMORY = 30.0;   /* s */
/* Rad under a quarter of weight times leg length: of robots in general, with its standard deviation; of a robot whose
 * torques are not known; and the most. */
static const double GIVES = 0.02, GIVES_STD = 0.015, GIVES_ASSUMED = 0.015, GIVES_MOST = 0.1;

static double bending_torque(const gait_robot *robot) { return 0.25 * robot->weight * robot->leg_length; }

void flexure_reset(gait_flexure *x, const gait_robot *robot, int used)
{
    x->used = used != 0;
    if (!x->used) return;
    x->compliance = (GIVES - GIVES_STD) / bending_torque(robot);
    x->assumed = GIVES_ASSUMED / bending_torque(robot);
}

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

/* A leg that carries its share of the weight while half of the legs stand, with the torques tau = -J' f: their rates, and
 * (dJ/dt) tau, by which a unit of compliance moves the foot beside J d(tau)/dt. Column j of J moves with joint i by W_i x J_j,
 * i before j. */
void weight_flexure(const gait_robot *robot, const leg_pose *m, const double *dq, double *tau_rate, double sway_b[3])
{
    const double force = robot->legs > 2 ? 2.0 * robot->weight / robot->legs : robot->weight;
    sway_b[0] = sway_b[1] = sway_b[2] = 0.0;
    for (int j = 0; j < m->joints; j++) {
        double turned[3], moves[3] = {0.0};
        for (int i = 0; i < m->joints; i++) {
            cross(m->W + 3 * (i < j ? i : j), m->J + 3 * (i < j ? j : i), turned);
            for (int k = 0; k < 3; k++) moves[k] += turned[k] * dq[i];
        }
        tau_rate[j] = -force * moves[2];
        for (int k = 0; k < 3; k++) sway_b[k] -= force * m->J[3 * j + 2] * moves[k];
    }
}

/* Fit the compliance to the legs that are seen, before they are fused. */
void flexure_learn(gait_t *g, const prediction *p, const double bias_b[3])
{
    const gait_robot *robot = &g->config->robot;
    gait_leg_state *s = &g->legs;
    gait_flexure *x = &s->flexure;
    const double dt = g->config->period, share = dt / (FIT_LOW_PASS + dt), keep = 1.0 - dt / FIT_MEMORY;
    const double unit = bending_torque(robot), prior = unit * unit / (GIVES_STD * GIVES_STD);
    if (!x->used || s->torqueless || !p->upright) return;
    x->told *= keep;
    x->known *= keep;
    for (int leg = 0; leg < robot->legs; leg++) {
        const double *own = s->features + SHARED_FEATURES + LEG_FEATURES * leg;
        const int fitted = robot->corner_count[leg] ? 3 : 2;
        double foot_b[3], shift[3], square = FIT_STD * FIT_STD, along = 0.0, across = 0.0;
        if (!s->seen[leg]) continue;
        for (int i = 0; i < 3; i++) foot_b[i] = robot->hips_b[leg][i] + robot->leg_length * own[FOOT_POSITION + i];
        cross(bias_b, foot_b, shift);
        for (int i = 0; i < 3; i++) {
            const double expected = p->velocity[i] - g->config->settings.joint_delay * p->acceleration[i];
            const double off = own[LEG_VELOCITY + i] + shift[i] - expected;
            x->off[leg][i] += share * (off - x->off[leg][i]);
            x->bent[leg][i] += share * (x->velocity[leg][i] - x->bent[leg][i]);
            square += x->off[leg][i] * x->off[leg][i];
        }
        if (!(own[GROUND_FORCE + 2] > STANDS_ON)) continue;
        for (int i = 0; i < fitted; i++) {
            along += x->off[leg][i] * x->bent[leg][i];
            across += x->bent[leg][i] * x->bent[leg][i];
        }
        /* With c taken off already, what is left is as much as is missing of it. */
        x->told += dt / LEG_LASTS / square * (along + x->compliance * across);
        x->known += dt / LEG_LASTS / square * across;
    }
    /* A standard deviation less than is likely: as large as it surely is. */
    const double known = x->known + prior, likely = (x->told + prior * GIVES / unit) / known;
    x->compliance = larger(0.0, smaller(GIVES_MOST / unit, likely - 1.0 / sqrt(known)));
}
