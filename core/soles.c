/* Soles: where a flat foot touches the ground, and what it measures while all of it does.
 *
 * Joint torques tell force and moment of the ground on the foot, and these where the centre of pressure is; a foot that is
 * hardly loaded turns about its lowest corners instead. src/gait/reference/flat_feet.py has the equations. */
#include <math.h>
#include <string.h>

#include "core.h"

static const double LEVEL = 0.005; /* m by which corners of a sole differ in height that touch the ground together */
static const double LIGHT = 0.1, LOADED = 0.2; /* share of the weight below which the lowest corners count, and above which
                                                * the centre of pressure does */
static const double INSIDE = 0.8;  /* of the sole's extent: a centre of pressure within means that all corners are loaded */
/* Standard deviation of the gyro bias by a sole that rests: always, rad/s, and for each rad/s about the vertical, since feet
 * pivot in a turn; squares add up. Such errors last for a part of a stance, so one sample counts for little. */
static const double BIAS_STD = 1.0, BIAS_BY_TURN = 40.0;
static const double FASTEST = 0.9; /* rad/s of a sole that rests */

/* Whether all feet are soles. */
int all_soles(const gait_robot *robot)
{
    int soles = 0;
    for (int leg = 0; leg < robot->legs; leg++) soles += robot->corner_count[leg] > 0;
    return soles == robot->legs;
}

/* From the lowest corners to the centre of the foot: of one corner, of an edge, or, while it is level, around the centre. */
static void lowest_corners(const gait_robot *robot, int leg, const double R[9], const double up_b[3], double out[3])
{
    const int corners = robot->corner_count[leg];
    double at[4][3], height[4], lowest = INFINITY, total = 0.0;
    for (int c = 0; c < corners; c++) {
        rotate(R, robot->corners[leg][c], at[c]);
        height[c] = at[c][0] * up_b[0] + at[c][1] * up_b[1] + at[c][2] * up_b[2];
        lowest = smaller(lowest, height[c]);
    }
    for (int c = 0; c < corners; c++) total += height[c] = exp((lowest - height[c]) / LEVEL);
    for (int c = 0; c < corners; c++)
        for (int i = 0; i < 3; i++) out[i] -= height[c] / total * at[c][i];
}

/* The box around the corners of a sole along one axis of the foot: its middle, and half its extent. */
static void extent(const gait_robot *robot, int leg, int axis, double *middle, double *reach)
{
    double low = INFINITY, high = -INFINITY;
    for (int c = 0; c < robot->corner_count[leg]; c++) {
        low = smaller(low, robot->corners[leg][c][axis]);
        high = larger(high, robot->corners[leg][c][axis]);
    }
    *middle = 0.5 * (low + high);
    *reach = 0.5 * (high - low);
}

/* From the point of the foot that touches the ground to its centre, given the direction up: a sphere touches below its
 * centre, a sole where the centre of pressure is. The wrench is force and moment of the ground about the centre, or null. */
void leg_contact_lever(const gait_robot *robot, int leg, const leg_pose *m, const double up_b[3], const double *wrench_b,
                       double out[3])
{
    const double *R = m->R[m->links - 1];
    double pressure[3], own[3];
    for (int i = 0; i < 3; i++) out[i] = robot->foot_radius[leg] * up_b[i];
    if (!robot->corner_count[leg]) return;
    lowest_corners(robot, leg, R, up_b, out);
    const double normal = wrench_b ? wrench_b[0] * up_b[0] + wrench_b[1] * up_b[1] + wrench_b[2] * up_b[2] : 0.0;
    const double share = smaller((normal / robot->weight - LIGHT) / (LOADED - LIGHT), 1.0);
    if (!(share > 0.0)) return;
    /* A force f at r has the moment r x f: along the ground, r = up x moment / f. */
    cross(up_b, wrench_b + 3, pressure);
    rotate_back(R, pressure, own);
    for (int i = 0; i < 3; i++) {
        double middle, reach;
        extent(robot, leg, i, &middle, &reach);
        own[i] = larger(middle - reach, smaller(middle + reach, own[i] / normal));
    }
    rotate(R, own, pressure);
    for (int i = 0; i < 3; i++) out[i] += share * (robot->foot_radius[leg] * up_b[i] - pressure[i] - out[i]);
}

/* Whether all corners of a sole are loaded: it carries a part of the weight, and its point of contact is not at an edge. */
int sole_rests(const gait_robot *robot, int leg, const leg_pose *m, const double up_b[3], const double lever_b[3], double load)
{
    double point[3], own[3];
    if (!robot->corner_count[leg] || !(load >= LOADED)) return 0;
    for (int i = 0; i < 3; i++) point[i] = robot->foot_radius[leg] * up_b[i] - lever_b[i];
    rotate_back(m->R[m->links - 1], point, own);
    for (int i = 0; i < 2; i++) {
        double middle, reach;
        extent(robot, leg, i, &middle, &reach);
        if (!(fabs(own[i] - middle) <= INSIDE * reach)) return 0;
    }
    return 1;
}

/* A sole that rests does not turn: its joints measure the angular rate of the body, and so the gyro bias, in IMU axes. */
void sole_bias(const gait_t *g, const double rate_b[3], double bias_i[3])
{
    rotate_back(g->config->robot.R_bi, rate_b, bias_i);
    for (int i = 0; i < 3; i++) bias_i[i] += g->filter.b[0][i];
}

/* Correct the gyro bias by the soles that rest. */
void soles_correct(gait_t *g)
{
    static const double axes[3][3] = {{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}};
    const gait_contact_state *c = &g->contacts;
    gait_filter *f = &g->filter;
    for (int leg = 0; leg < g->config->robot.legs; leg++) {
        if (!c->rests[leg] || !c->contact[leg] || !f->active[leg]) continue;
        double turn = 0.0;
        for (int i = 0; i < 3; i++) turn += f->R[6 + i] * (g->input.gyro[i] - f->b[0][i]);
        const double variance = BIAS_STD * BIAS_STD + BIAS_BY_TURN * BIAS_BY_TURN * turn * turn;
        for (int i = 0; i < 3; i++) {
            const double off = c->bias_i[leg][i] - f->b[0][i];
            if (fabs(off) < FASTEST) filter_correct_gyro_bias(f, axes[i], off, variance);
        }
    }
}
