/* A batch: contexts of many robots, one behind the other in memory, step in turn. While one steps, the cache lines of the next
 * one are fetched. */
#include "core.h"

static void plan_range(gait_fetch *plan, const gait_t *g, const void *from, size_t bytes)
{
    const size_t start = (size_t)((const char *)from - (const char *)g);
    for (size_t line = start / 64; line <= (start + bytes - 1) / 64 && plan->count < GAIT_FETCH_LINES; line++)
        if (plan->count == 0 || plan->lines[plan->count - 1] != line) plan->lines[plan->count++] = (uint32_t)line;
}

/* What `gait-legs` keeps beside what all methods do. */
static void plan_legs(gait_fetch *plan, gait_t *g, size_t joints)
{
    const int legs = g->config->robot.legs;
    const gait_leg_state *l = &g->legs;
    const double *const of_joints[9] = {l->tau[0], l->tau[1],  l->q[0], l->q[1],      l->dq[0],
                                        l->dq[1],  l->last_dq, l->ddq,  l->smooth_tau};
    float *memory;
    const gait_leg_network *network = legs_network(g, &memory);
    for (int k = 0; k < 9; k++) plan_range(plan, g, of_joints[k], joints);
    plan_range(plan, g, l->gyro, offsetof(gait_leg_state, last_dq) - offsetof(gait_leg_state, gyro));
    plan_range(plan, g, l->rates_b, offsetof(gait_leg_state, flexure) - offsetof(gait_leg_state, rates_b));
    plan_range(plan, g, memory, 1);
    for (int ring = 0; ring <= legs; ring++) {
        const gait_piece piece = gait_leg_network_next(network, legs, memory, ring);
        plan_range(plan, g, piece.from, piece.bytes);
    }
}

static void plan_contacts(gait_fetch *plan, const gait_t *g, size_t joints)
{
    const gait_contact_state *s = &g->contacts;
    plan_range(plan, g, s->waiting, sizeof s->waiting);
    plan_range(plan, g, s->dq, joints);
    plan_range(plan, g, s->ddq, joints);
    plan_range(plan, g, s->tau, joints);
    plan_range(plan, g, s->walk, sizeof *s - offsetof(gait_contact_state, walk));
}

/* Cache lines of a context that a step reads and writes: no more than the calls of `fetch_next` on its way take. */
static void plan_fetch(gait_fetch *plan, gait_t *g)
{
    const gait_config *c = g->config;
    const size_t joints = (size_t)c->robot.joints * sizeof(double), features = 6 * sizeof(float) + joints / 2 * 3;
    const double *const arrays[5] = {g->input.q, g->input.dq, g->input.e, g->input.raw_q, g->input.raw_dq};
    const gait_joint_state *checks = &g->input.joints;
    const double *const of_joints[7] = {checks->slow_q, checks->slow_dq, checks->moves, checks->turns,
                                        checks->apart,  checks->same,    checks->doubt};
    plan_range(plan, g, g, offsetof(gait_t, input.q));
    for (int k = 0; k < 5; k++) plan_range(plan, g, arrays[k], joints);
    plan_range(plan, g, g->input.unchanged, offsetof(gait_input, joints) - offsetof(gait_input, unchanged));
    for (int k = 0; k < 7; k++) plan_range(plan, g, of_joints[k], joints);
    plan_range(plan, g, checks->speed2, sizeof g->input - offsetof(gait_input, joints) - offsetof(gait_joint_state, speed2));
    plan_range(plan, g, &g->monitor, sizeof g->monitor);
    plan_range(plan, g, &g->adapt, offsetof(gait_adapt, apart));
    plan_range(plan, g, g->safe_R, offsetof(gait_t, last) - offsetof(gait_t, safe_R));
    plan_range(plan, g, &g->filter, filter_bytes(gait_cov_size(c)));
    if (c->method == GAIT_CONTACTS) plan_contacts(plan, g, joints);
    if (c->method == GAIT_LEGS) plan_legs(plan, g, joints);
    if (c->method == GAIT_VELOCITY) {
        plan_range(plan, g, g->last, features);
        plan_range(plan, g, g->now, features);
        plan_range(plan, g, gait_memory(g), gait_network_floats(c->network) * sizeof(float));
    }
}

/* All contexts work in the scratch of the first, which stays in the cache. */
void gait_update_batch(gait_t *first, size_t bytes, size_t n, const double *rows, const unsigned char *skip,
                       double *states)
{
    const gait_config *c = first->config;
    const size_t width = gait_row_doubles(c), out = gait_state_doubles(c);
    const ptrdiff_t own = first->scratch;
    gait_fetch plan = {NULL, 0, 0, {0}};
    plan_fetch(&plan, first);
    for (size_t k = 0; k < n; k++) {
        gait_t *g = (gait_t *)((char *)first + k * bytes);
        const gait_sample sample = sample_of(c, rows + k * width);
        if (skip && skip[k]) continue;
        plan.from = (const char *)g + bytes;
        plan.done = k + 1 < n ? 0 : plan.count;
        g->fetch = &plan;
        if (!c->with_details) g->scratch = own - (ptrdiff_t)(k * bytes);
        if (k + 1 < n) fetch_range(rows + (k + 1) * width, width * sizeof *rows);
        if (k + 1 < n) fetch_range(states + (k + 1) * out, out * sizeof *states);
        gait_update(g, &sample, (gait_state *)(states + k * out));
        g->scratch = own;
        g->fetch = NULL;
    }
}
