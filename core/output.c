/* The state of base_link as it is given to the caller. */
#include <math.h>
#include <string.h>

#include "core.h"

/* Attention of the network that is written behind the state. */
static size_t attention_doubles(const gait_config *c)
{
    if (!c->with_details) return 0;
    if (c->leg_network) return (size_t)(c->robot.legs * c->robot.legs) * (c->leg_network->heads > 0);
    return c->network ? (size_t)(c->network->history * c->network->tokens) : 0;
}

size_t gait_state_doubles(const gait_config *config)
{
    const size_t legs = (size_t)config->robot.legs;
    if (config->method == GAIT_CONTACTS) return GAIT_STATE_DOUBLES + 2 * legs + feet_doubles(config);
    return GAIT_STATE_DOUBLES + feet_doubles(config) + (config->method == GAIT_LEGS ? legs : 0) + attention_doubles(config)
        + (config->method == GAIT_LEGS && config->with_details ? 6 * legs : 0);
}

int gait_cov_size(const gait_config *config)
{
    return FEET + (config->method == GAIT_CONTACTS ? 3 * config->robot.legs : 0);
}

/* The covariance without its padding. */
void filter_cov(const gait_filter *f, double *cov)
{
    const int size = f->size, ld = GAIT_STRIDE(size);
    if (size == FEET) { /* of a constant size, a copy is a few instructions and no call */
        for (int i = 0; i < FEET; i++)
            memcpy(cov + i * FEET, f->P + i * GAIT_STRIDE(FEET), FEET * sizeof(double));
        return;
    }
    for (int i = 0; i < size; i++) memcpy(cov + i * size, f->P + i * ld, (size_t)size * sizeof(double));
}

void gait_cov(const gait_t *g, double *cov)
{
    filter_cov(&g->filter, cov);
}

/* From the state of the IMU to that of base_link. */
void filter_output(const gait_filter *f, const gait_robot *robot, const double gyro[3], gait_state *out)
{
    const int ld = GAIT_STRIDE(f->size);
    const double *P = f->P;
    double R_wb[9], rate[3], omega_b[3], lever_b[3], lever_w[3], p_w[3];
    for (int i = 0; i < 3; i++) rate[i] = gyro[i] - f->b[0][i];
    rotate(robot->R_bi, rate, omega_b);
    cross(omega_b, robot->p_bi, lever_b);
    multiply_back(f->R, robot->R_bi, R_wb);
    lie_quat_from_rotation(R_wb, out->quat_wb_wxyz);
    rotate(R_wb, lever_b, lever_w);
    rotate(R_wb, robot->p_bi, p_w);
    for (int i = 0; i < 3; i++) {
        out->vel_w[i] = f->x[0][i] - lever_w[i];
        out->pos_w[i] = f->x[1][i] - p_w[i];
        out->gyro_bias[i] = f->b[0][i];
        out->accel_bias[i] = f->b[1][i];
    }
    rotate_back(R_wb, out->vel_w, out->vel_b);
    double half[9]; /* P_vv R_wb */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const double *p = P + (VEL + i) * ld + VEL;
            half[3 * i + j] = p[0] * R_wb[j] + p[1] * R_wb[3 + j] + p[2] * R_wb[6 + j];
        }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out->vel_cov[i][j] = R_wb[i] * half[j] + R_wb[3 + i] * half[3 + j] + R_wb[6 + i] * half[6 + j];
    /* Position error = xi_p + xi_R x p, rotation error = xi_R: rows, then columns. */
    double (*pose)[6] = out->pose_cov;
    const double *p = out->pos_w;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            pose[i][j] = P[(POS + i) * ld + POS + j];
            pose[i][3 + j] = P[(POS + i) * ld + ROT + j];
            pose[3 + i][j] = P[(ROT + i) * ld + POS + j];
            pose[3 + i][3 + j] = P[(ROT + i) * ld + ROT + j];
        }
    for (int j = 0; j < 6; j++) {
        pose[0][j] += pose[4][j] * p[2] - pose[5][j] * p[1];
        pose[1][j] += pose[5][j] * p[0] - pose[3][j] * p[2];
        pose[2][j] += pose[3][j] * p[1] - pose[4][j] * p[0];
    }
    for (int i = 0; i < 6; i++) {
        pose[i][0] += pose[i][4] * p[2] - pose[i][5] * p[1];
        pose[i][1] += pose[i][5] * p[0] - pose[i][3] * p[2];
        pose[i][2] += pose[i][3] * p[1] - pose[i][4] * p[0];
    }
}

/* What a method has beside the state: test ratios, contacts, attention, and the velocity of each leg. */
static void write_details(gait_t *g, double *out)
{
    const gait_config *c = g->config;
    const size_t attention = attention_doubles(c);
    float *memory;
    if (c->method == GAIT_CONTACTS || c->method == GAIT_LEGS)
        for (int leg = 0; leg < c->robot.legs; leg++) *out++ = g->monitor.leg_ratio[leg];
    if (c->method == GAIT_CONTACTS)
        for (int leg = 0; leg < c->robot.legs; leg++) out[leg] = g->contacts.contact[leg];
    if (!c->with_details) return;
    if (c->method == GAIT_LEGS) {
        const gait_leg_network *network = legs_network(g, &memory);
        if (attention)
            gait_leg_network_attention(network, c->robot.legs, memory, gait_scratch(g), g->legs.seen, out);
        for (int i = 0; i < 6 * c->robot.legs; i++) out[attention + (size_t)i] = (double)g->legs.out[i];
    } else if (attention) {
        const gait_network *network = network_of(g, &memory);
        gait_network_attention(network, memory, gait_scratch(g), out);
    }
}

void write_state(gait_t *g, uint32_t health, gait_state *out)
{
    const int networked = g->config->method == GAIT_VELOCITY || g->config->method == GAIT_LEGS;
    filter_output(&g->filter, &g->config->robot, g->input.gyro, out);
    monitor_output(g, out);
    out->t = g->input.t;
    out->health = health;
    out->gap = g->input.gap;
    for (int i = 0; i < 6; i++) out->predicted[i] = networked ? (double)g->predicted[i] : NAN;
    out->test_ratio = g->monitor.ratio;
    out->resets = g->monitor.resets;
    out->valid = monitor_valid(g, out);
    write_details(g, (double *)out + GAIT_STATE_DOUBLES);
    if (g->config->with_feet)
        feet_write(g, out, (double *)out + gait_state_doubles(g->config) - feet_doubles(g->config));
}
