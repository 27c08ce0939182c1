/* A context: its place in memory, its configuration, and the state it starts with. */
#include <math.h>
#include <string.h>

#include "core.h"

/* Does not compile if GAIT_CONTEXT_BYTES is too small. */
typedef char context_fits[(sizeof(gait_t) + 63) / 64 * 64 <= GAIT_CONTEXT_BYTES ? 1 : -1];

/* Bytes of a context without its networks: the filter is its last member, and only the rows in use of P are counted. */
static size_t context_bytes(const gait_config *c)
{
    return (offsetof(gait_t, filter) + filter_bytes(gait_cov_size(c)) + 63) / 64 * 64;
}

/* Floats that the networks of a configuration keep from step to step. */
static size_t memory_floats(const gait_config *c)
{
    const gait_network *const networks[2] = {c->network, c->spare_network};
    const gait_leg_network *const leg_networks[2] = {c->leg_network, c->spare_leg_network};
    size_t floats = 0;
    for (int k = 0; k < 2; k++) {
        if (networks[k]) floats += gait_network_floats(networks[k]);
        if (leg_networks[k]) floats += gait_leg_network_floats(leg_networks[k], c->robot.legs);
    }
    return floats;
}

/* Floats that a step of the larger network works with. */
static size_t scratch_floats(const gait_config *c)
{
    const gait_leg_network *const leg_networks[2] = {c->leg_network, c->spare_leg_network};
    size_t most = c->network ? gait_network_scratch(c->network) : 0; /* the spare one has the same architecture */
    for (int k = 0; k < 2; k++) {
        const size_t floats = leg_networks[k] ? gait_leg_network_scratch(leg_networks[k], c->robot.legs) : 0;
        if (floats > most) most = floats;
    }
    return most;
}

/* Networks count floats in multiples of 16, so every part begins at a multiple of 64 bytes. */
static size_t scratch_offset(const gait_config *c)
{
    return context_bytes(c) + memory_floats(c) * sizeof(float);
}

size_t gait_bytes(const gait_config *config)
{
    return scratch_offset(config) + scratch_floats(config) * sizeof(float);
}

gait_t *gait_init(void *memory, const gait_config *config)
{
    gait_t *g = memory;
    memset(memory, 0, gait_bytes(config));
    g->config = config;
    g->memory = (ptrdiff_t)context_bytes(config);
    g->scratch = (ptrdiff_t)scratch_offset(config);
    gait_reset_gravity(g, NULL);
    return g;
}

void gait_set_config(gait_t *g, const gait_config *config)
{
    g->config = config;
}

void gait_set_contact_source(gait_t *g, int source)
{
    g->contact_source = source;
}

/* Everything but the filter as before the first sample. */
static void begin(gait_t *g, int align)
{
    memset(&g->input, 0, sizeof g->input);
    for (int leg = 0; leg < g->config->robot.legs; leg++) g->input.no_target[leg] = INFINITY;
    g->broken = g->whole = 0.0;
    g->align = (uint8_t)align;
    g->measured = g->spare = g->has_joints = 0;
    memset(g->predicted, 0, sizeof g->predicted);
    contacts_reset(g);
    legs_reset(g);
    monitor_reset(g);
    adapt_reset(&g->adapt, g->config->method == GAIT_LEGS && all_soles(&g->config->robot), g->config->method == GAIT_CONTACTS);
    memset(&g->feet, 0, sizeof g->feet);
}

void gait_reset(gait_t *g, const double quat_wb_wxyz[4], const double vel_w[3], const double pos_w[3],
                const double omega_i[3], const double *std)
{
    const gait_robot *robot = &g->config->robot;
    gait_filter *f = &g->filter;
    double R_wb[9], omega_b[3], lever_w[3], p_w[3];
    begin(g, 0);
    filter_init(f, g->config->method == GAIT_CONTACTS ? robot->legs : 0);
    lie_rotation_from_quat(quat_wb_wxyz, R_wb);
    multiply(R_wb, robot->R_bi, f->R);
    rotate(robot->R_bi, omega_i, omega_b);
    cross(omega_b, robot->p_bi, lever_w);
    rotate(R_wb, lever_w, lever_w);
    rotate(R_wb, robot->p_bi, p_w);
    for (int i = 0; i < 3; i++) {
        f->x[0][i] = vel_w[i] + lever_w[i];
        f->x[1][i] = pos_w[i] + p_w[i];
    }
    filter_prior(f, std ? std : g->config->settings.prior_std);
    keep_pose(g);
}

int gait_reset_gravity(gait_t *g, const double *accel)
{
    const gait_config *c = g->config;
    const double up[3] = {0.0, 0.0, -c->settings.gravity};
    gait_filter *f = &g->filter;
    double level[3];
    rotate_back(c->robot.R_bi, up, level);
    if (accel) {
        const double norm = sqrt(accel[0] * accel[0] + accel[1] * accel[1] + accel[2] * accel[2]);
        if (!(norm > 0.5 * fabs(c->settings.gravity) && norm < 1.5 * fabs(c->settings.gravity))) return 0;
    }
    begin(g, accel == NULL);
    filter_init(f, c->method == GAIT_CONTACTS ? c->robot.legs : 0);
    filter_align(f, &c->robot, c->settings.rest_std, accel ? accel : level, c->settings.gravity);
    keep_pose(g);
    return 1;
}
