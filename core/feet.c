/* Outputs of each leg: probability of contact, speed over the ground, normal force and position of the foot; and the
 * ground under the feet, a plane through the points where they last stood.
 *
 * They follow from the features of core/legs.c and the estimated state, whatever the method: nothing of them goes back into
 * the estimate. */
#include <math.h>
#include <string.h>

#include "core.h"

/* Log-odds of contact: always, by the vertical force in weights, by it up to FORCE_KNEE, by the foot's speed over the
 * ground and by how fast it rises, m/s, and by its height over where it last stood, m, within LOWEST and HIGHEST, and
 * HIGHEST where that is not known. benchmarks/contacts.py fits them on training walks. */
static const double ALWAYS = 0.303, BY_FORCE = 10.191, BY_SMALL_FORCE = -7.597, BY_SPEED = -1.054, BY_RISE = -7.202;
static const double BY_HEIGHT = -64.452, LOWEST = -0.02, HIGHEST = 0.05, FORCE_KNEE = 0.1;
/* Log-odds by force and speed alone, and from where on a foot shows the ground: with the height among them, a ground that
 * is wrong would keep feet off it for good. */
static const double LOAD = -1.859, LOAD_BY_FORCE = 12.175, LOAD_BY_SMALL_FORCE = 8.300, LOAD_BY_SPEED = -1.215;
static const double STANDS = 0.85;

enum { FOOT_DOUBLES = 6, GROUND_DOUBLES = 4 };

void gait_foot_constants(double out[8])
{
    const double all[8] = {FORCE_KNEE, LOWEST, HIGHEST, LOAD, LOAD_BY_FORCE, LOAD_BY_SMALL_FORCE, LOAD_BY_SPEED, STANDS};
    memcpy(out, all, sizeof all);
}

size_t feet_doubles(const gait_config *c)
{
    return c->with_feet ? (size_t)(FOOT_DOUBLES * c->robot.legs + GROUND_DOUBLES) : 0;
}

/* Features of the admitted sample, where the method does not compute them by itself. */
void feet_gather(gait_t *g, const gait_sample *sample)
{
    const gait_robot *robot = &g->config->robot;
    const gait_input *in = &g->input;
    double tau[GAIT_MAX_JOINTS];
    g->feet.torque = 1;
    for (int leg = 0; leg < robot->legs; leg++)
        for (int j = robot->leg_start[leg]; j < robot->leg_start[leg + 1]; j++) {
            tau[j] = sample->tau ? sample->tau[j] : NAN;
            if (!isfinite(tau[j])) tau[j] = isfinite(in->no_target[leg]) ? pd_torque(robot, j, in->e[j], in->dq[j]) : NAN;
            if (!isfinite(tau[j])) g->feet.torque = tau[j] = 0;
        }
    legs_features(robot, g->config->settings.joint_delay, &g->legs, in->gyro, in->accel, in->q, in->dq, tau, in->dt);
}

/* Height and slope of the plane z = a + b (x - x0) + c (y - y0) through the last footholds, by least squares; nan with less
 * than three. */
static void fit_ground(const gait_t *g, const double pos_w[3], double out[GROUND_DOUBLES])
{
    double A[9] = {0.0}, z[3] = {0.0};
    int count = 0;
    for (int i = 0; i < GROUND_DOUBLES; i++) out[i] = NAN;
    for (int leg = 0; leg < g->config->robot.legs; leg++) {
        if (!g->feet.known[leg]) continue;
        const double *p = g->feet.ground_w[leg], row[3] = {1.0, p[0] - pos_w[0], p[1] - pos_w[1]};
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) A[3 * i + j] += row[i] * row[j];
            z[i] += row[i] * p[2];
        }
        count++;
    }
    const double minor[3] = {A[4] * A[8] - A[5] * A[5], A[2] * A[5] - A[1] * A[8], A[1] * A[5] - A[2] * A[4]};
    const double det = A[0] * minor[0] + A[1] * minor[1] + A[2] * minor[2];
    if (count < 3 || !(det > 1e-6)) return;
    const double b = (minor[1] * z[0] + (A[0] * A[8] - A[2] * A[2]) * z[1] + (A[1] * A[2] - A[0] * A[5]) * z[2]) / det;
    const double c = (minor[2] * z[0] + (A[1] * A[2] - A[0] * A[5]) * z[1] + (A[0] * A[4] - A[1] * A[1]) * z[2]) / det;
    out[0] = (minor[0] * z[0] + minor[1] * z[1] + minor[2] * z[2]) / det;
    out[1] = b;
    out[2] = c;
    out[3] = atan2(sqrt(b * b + c * c), 1.0);
}

/* For each leg contact, speed, force, position; then height under base_link, its change along x and y, and the slope. */
void feet_write(gait_t *g, const gait_state *state, double *out)
{
    const gait_robot *robot = &g->config->robot;
    const int known = g->legs.begun, forces = g->config->method == GAIT_LEGS ? !g->legs.kinematic : g->feet.torque;
    double R_wb[9];
    base_axes(g, R_wb);
    for (int leg = 0; leg < robot->legs; leg++, out += FOOT_DOUBLES) {
        const double *mine = g->legs.features + SHARED_FEATURES + LEG_FEATURES * leg, *up = R_wb + 6;
        double foot_b[3], speed2 = 0.0, force = 0.0, rise = 0.0, *ground_w = g->feet.ground_w[leg];
        if (!known || !g->input.ok[leg]) {
            for (int i = 0; i < FOOT_DOUBLES; i++) out[i] = NAN;
            continue;
        }
        for (int i = 0; i < 3; i++) {
            const double slip = state->vel_b[i] - mine[LEG_VELOCITY + i];
            speed2 += slip * slip;
            rise += slip * up[i];
            force += mine[GROUND_FORCE + i] * up[i];
            foot_b[i] = mine[FOOT_POSITION + i] * robot->leg_length + robot->hips_b[leg][i];
        }
        rotate(R_wb, foot_b, out + 3);
        for (int i = 0; i < 3; i++) out[3 + i] += state->pos_w[i];
        const double speed = sqrt(speed2), small = smaller(force, FORCE_KNEE), lowest_z = out[5] - robot->foot_radius[leg];
        if (forces && LOAD + LOAD_BY_FORCE * force + LOAD_BY_SMALL_FORCE * small + LOAD_BY_SPEED * speed > STANDS) {
            memcpy(ground_w, out + 3, sizeof g->feet.ground_w[leg]);
            ground_w[2] = lowest_z;
            g->feet.known[leg] = 1;
        }
        const double height = g->feet.known[leg] ? larger(LOWEST, smaller(lowest_z - ground_w[2], HIGHEST)) : HIGHEST;
        const double odds = ALWAYS + BY_FORCE * force + BY_SMALL_FORCE * small + BY_SPEED * speed
                          + BY_RISE * larger(rise, 0.0) + BY_HEIGHT * height;
        out[0] = forces ? 1.0 / (1.0 + exp(-odds)) : NAN;
        out[1] = speed;
        out[2] = forces ? force * robot->weight : NAN;
    }
    fit_ground(g, state->pos_w, out);
}
