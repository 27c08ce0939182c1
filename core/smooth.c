/* Smoothing: every step of the filter is recorded, the state before it and the state it predicts, and a backward pass
 * (Rauch, Tung and Striebel) corrects each state by what came after it, on the group:
 *
 *     C = P Phi' P_predicted^-1,   X_s = exp(C log(X_s,next X_predicted^-1)) X,   P_s = P + C (P_s,next - P_predicted) C'
 *
 * Whatever happens between two steps (corrections, inflated covariances, feet that come) is in the state before the next
 * one, so this holds for every method. A foot that leaves is marginalised: the gain goes by what both steps have. A reset
 * ends the pass, and it begins again from the filter's state. src/gait/reference/smoother.py has the same in numpy. */
#include <math.h>
#include <string.h>

#include "core.h"

enum { SIZES = FEET + 3 * GAIT_MAX_LEGS, FIXED = 14 }; /* feet of all legs, though a file may have none in the state */

struct gait_recorder {
    uint64_t count, capacity;
    size_t doubles; /* of a record: FIXED, the filter before, the filter after */
    double now;     /* stamp of the state before the next step */
    double gyro[3]; /* admitted at that stamp */
};

/* A smoothed state on its way back. */
typedef struct {
    gait_filter smoothed;
    double t, gyro[3];
    uint64_t node; /* before which record */
    int32_t resets;
} gait_carry;

/* A filter's state without what its size leaves empty. */
static size_t packed_doubles(int size)
{
    return (size_t)(9 + 6 + 3 * GAIT_MAX_LEGS + 6 + GAIT_MAX_LEGS + size * GAIT_STRIDE(size));
}

static size_t recorder_offset(void)
{
    return (sizeof(gait_recorder) + 63) / 64 * 64;
}

static double *record_at(gait_recorder *r, uint64_t k)
{
    return (double *)(void *)((char *)r + recorder_offset()) + (size_t)(k % r->capacity) * r->doubles;
}

static size_t record_doubles(const gait_config *c)
{
    return FIXED + 2 * packed_doubles(gait_cov_size(c));
}

size_t gait_recorder_bytes(const gait_config *config, size_t records)
{
    return recorder_offset() + records * record_doubles(config) * sizeof(double);
}

gait_recorder *gait_recorder_init(void *memory, const gait_config *config, size_t records)
{
    gait_recorder *r = memory;
    memset(r, 0, sizeof *r);
    r->capacity = records;
    r->doubles = record_doubles(config);
    return r;
}

void gait_record(gait_t *g, gait_recorder *recorder)
{
    g->recorder = recorder;
    if (!recorder) return;
    recorder->count = 0;
    recorder->now = g->input.t;
    memcpy(recorder->gyro, g->input.gyro, sizeof recorder->gyro);
}

static void pack_filter(const gait_filter *f, double *to)
{
    memcpy(to, f->R, sizeof f->R);
    memcpy(to + 9, f->x, sizeof f->x);
    memcpy(to + 15 + 3 * GAIT_MAX_LEGS, f->b, sizeof f->b);
    for (int leg = 0; leg < GAIT_MAX_LEGS; leg++) to[21 + 3 * GAIT_MAX_LEGS + leg] = f->active[leg];
    memcpy(to + 21 + 4 * GAIT_MAX_LEGS, f->P, (size_t)(f->size * GAIT_STRIDE(f->size)) * sizeof(double));
}

static void unpack_filter(const double *from, int feet, gait_filter *f)
{
    f->feet = feet;
    f->size = FEET + 3 * feet;
    memcpy(f->R, from, sizeof f->R);
    memcpy(f->x, from + 9, sizeof f->x);
    memcpy(f->b, from + 15 + 3 * GAIT_MAX_LEGS, sizeof f->b);
    for (int leg = 0; leg < GAIT_MAX_LEGS; leg++) f->active[leg] = from[21 + 3 * GAIT_MAX_LEGS + leg] > 0.5;
    memcpy(f->P, from + 21 + 4 * GAIT_MAX_LEGS, (size_t)(f->size * GAIT_STRIDE(f->size)) * sizeof(double));
}

/* A step of the filter, recorded if anyone asks for it. */
int recorder_step(gait_t *g, const gait_settings *s, const gait_noise *noise, const double gyro[3], const double accel[3],
                  double dt)
{
    gait_filter *f = &g->filter;
    gait_recorder *r = g->recorder;
    double *to = record_at(r, r->count);
    const size_t packed = packed_doubles(f->size);
    to[0] = r->now;
    to[1] = dt;
    to[2] = s->gravity;
    to[3] = s->exact_phi;
    to[4] = g->monitor.resets;
    memcpy(to + 5, r->gyro, sizeof r->gyro);
    pack_filter(f, to + FIXED);
    if (!filter_propagate(f, s, noise, g->contacts.walk, g->contacts.roll_i, gyro, accel, dt)) return 0;
    pack_filter(f, to + FIXED + packed);
    r->count++;
    r->now += dt;
    return 1;
}

/* The sample is over: the state that follows is that of its stamp. */
void recorder_end(gait_t *g)
{
    g->recorder->now = g->input.t;
    memcpy(g->recorder->gyro, g->input.gyro, sizeof g->recorder->gyro);
}

/* The context went back in time: so does what was recorded. */
void recorder_rewind(gait_t *g)
{
    gait_recorder *r = g->recorder;
    while (r->count > 0 && record_at(r, r->count - 1)[0] >= g->input.t) r->count--;
    recorder_end(g);
}

/* Rows of the error that two states have in common: the first 15, and feet in both. */
static int common_rows(const gait_filter *a, const gait_filter *b, int *rows)
{
    int m = 0;
    for (; m < FEET; m++) rows[m] = m;
    for (int leg = 0; leg < a->feet && leg < GAIT_MAX_FEET; leg++)
        for (int i = 0; a->active[leg] && b->active[leg] && i < 3; i++) rows[m++] = FEET + 3 * leg + i;
    return m;
}

/* log(S X^-1): the error that carries X to S, biases by subtraction; rows of feet that not both have are zero. */
static void difference(const gait_filter *S, const gait_filter *X, double *delta)
{
    double turn[9], moved[3];
    memset(delta, 0, SIZES * sizeof *delta);
    rotation_between(S->R, X->R, delta);
    multiply_back(S->R, X->R, turn);
    for (int m = 0; m < 2 + S->feet && m < 2 + GAIT_MAX_FEET; m++) {
        double *to = delta + row_of(m);
        if (!in_state(S, m) || !in_state(X, m)) continue;
        rotate(turn, X->x[m], moved);
        for (int i = 0; i < 3; i++) to[i] = S->x[m][i] - moved[i];
        divide_jacobian(delta, to);
    }
    for (int i = 0; i < 3; i++) {
        delta[BG + i] = S->b[0][i] - X->b[0][i];
        delta[BA + i] = S->b[1][i] - X->b[1][i];
    }
}

/* The transposed gain C' = P_predicted^-1 Phi P for the rows in common, (m, size); 0 if it cannot be solved. */
static int smoother_gain(const gait_filter *f, const gait_filter *predicted, const gait_settings *s, double dt, int m,
                         const int *rows, double *gain)
{
    const int size = f->size, ld = GAIT_STRIDE(size);
    double A[SIZES * SIZES], T[GAIT_MAX_STATES * GAIT_MAX_STRIDE];
    filter_transition(f, s, dt, T);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) A[i * m + j] = predicted->P[rows[i] * ld + rows[j]];
    if (!filter_cholesky(A, m)) return 0;
    for (int i = 0; i < m; i++) {
        double *x = gain + i * size;
        memcpy(x, T + rows[i] * ld, (size_t)size * sizeof(double));
        for (int k = 0; k < i; k++)
            for (int j = 0; j < size; j++) x[j] -= A[i * m + k] * gain[k * size + j];
        for (int j = 0; j < size; j++) x[j] /= A[i * m + i];
    }
    for (int i = m - 1; i >= 0; i--) {
        double *x = gain + i * size;
        for (int k = i + 1; k < m; k++)
            for (int j = 0; j < size; j++) x[j] -= A[k * m + i] * gain[k * size + j];
        for (int j = 0; j < size; j++) x[j] /= A[i * m + i];
    }
    return 1;
}

/* The smoothed state before a step, from that after it, in place. */
static void smooth_step(const double *record, gait_filter *smoothed, gait_settings *s)
{
    gait_filter f, predicted;
    double gain[SIZES * SIZES], D[SIZES * SIZES], delta[SIZES], shift[GAIT_STRIDE(SIZES)] = {0.0};
    int rows[SIZES];
    const int size = smoothed->size, ld = GAIT_STRIDE(size);
    unpack_filter(record + FIXED, smoothed->feet, &f);
    unpack_filter(record + FIXED + packed_doubles(size), smoothed->feet, &predicted);
    s->gravity = record[2];
    s->exact_phi = record[3] > 0.5;
    const int m = common_rows(&predicted, smoothed, rows);
    if (smoother_gain(&f, &predicted, s, record[1], m, rows, gain)) {
        difference(smoothed, &predicted, delta);
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < size; j++) shift[j] += gain[i * size + j] * delta[rows[i]];
            for (int j = 0; j < m; j++)
                D[i * m + j] = smoothed->P[rows[i] * ld + rows[j]] - predicted.P[rows[i] * ld + rows[j]];
        }
        for (int i = 0; i < m; i++) {
            double half[SIZES] = {0.0};
            for (int k = 0; k < m; k++)
                for (int j = 0; j < size; j++) half[j] += D[i * m + k] * gain[k * size + j];
            for (int r = 0; r < size; r++)
                for (int j = 0; j < size; j++) f.P[r * ld + j] += gain[i * size + r] * half[j];
        }
        filter_retract(&f, shift);
    }
    *smoothed = f;
}

void gait_smooth_back(gait_recorder *r, const gait_t *g, void *carry, int resume, uint64_t until)
{
    gait_carry *c = carry;
    gait_settings s = g->config->settings;
    if (!resume) {
        memcpy(&c->smoothed, &g->filter, filter_bytes(g->filter.size));
        c->resets = g->monitor.resets;
        memcpy(c->gyro, g->input.gyro, sizeof c->gyro);
        c->t = g->input.t;
        c->node = r->count;
    }
    while (c->node > until && r->count - c->node < r->capacity) {
        const double *record = record_at(r, --c->node);
        if ((int32_t)record[4] != c->resets) unpack_filter(record + FIXED, c->smoothed.feet, &c->smoothed);
        else smooth_step(record, &c->smoothed, &s);
        c->resets = (int32_t)record[4];
        c->t = record[0];
        memcpy(c->gyro, record + 5, sizeof c->gyro);
    }
}

size_t gait_carry_bytes(void)
{
    return sizeof(gait_carry);
}

static void write_smoothed(const gait_t *g, const gait_carry *c, double *state)
{
    gait_state *to = (gait_state *)state;
    filter_output(&c->smoothed, &g->config->robot, c->gyro, to);
    monitor_mounting(to);
}

void gait_run_recorded(gait_t *g, gait_recorder *r, const double *rows, const double *shifts, size_t n, double *states,
                       uint64_t *nodes)
{
    const size_t width = gait_row_doubles(g->config), out = gait_state_doubles(g->config);
    gait_record(g, r);
    for (size_t k = 0; k < n; k++) {
        const gait_sample sample = sample_of(g->config, rows + k * width);
        g->legs.shifts = shifts ? shifts + 3 * (size_t)g->config->robot.legs * k : NULL;
        gait_update(g, &sample, (gait_state *)(states + k * out));
        nodes[k] = r->count;
    }
    g->recorder = NULL;
    g->legs.shifts = NULL;
}

void gait_smooth_run(gait_recorder *r, const gait_t *g, void *carry, int resume, const uint64_t *nodes, size_t n,
                     double *states)
{
    gait_carry *c = carry;
    const size_t out = gait_state_doubles(g->config);
    if (resume) c->node = r->count;
    for (size_t k = n; k-- > 0;) {
        gait_smooth_back(r, g, carry, resume || k + 1 < n, nodes[k]);
        write_smoothed(g, c, states + k * out);
    }
    gait_smooth_back(r, g, carry, 1, 0);
}

int gait_lagged(gait_recorder *r, const gait_t *g, double lag, void *carry, double *state_and_cov)
{
    gait_carry *c = carry;
    const double t = g->input.t - lag;
    gait_smooth_back(r, g, carry, 0, r->count);
    while (c->node > 0 && r->count - c->node < r->capacity && c->t > t + 1e-9)
        gait_smooth_back(r, g, carry, 1, c->node - 1);
    write_smoothed(g, c, state_and_cov);
    ((gait_state *)state_and_cov)->t = c->t;
    filter_cov(&c->smoothed, state_and_cov + gait_state_doubles(g->config));
    return c->t <= t + 1e-9;
}
