/* Measurements that arrive late: the last half second of samples and some copies of the context, so that a measurement is
 * inserted at its time and the samples after it are taken again.
 *
 * A context is one block of memory: a copy is a memcpy, and going back is another. The samples since then give the same
 * states, bit for bit, up to the measurement. */
#include <math.h>
#include <string.h>

#include "core.h"

enum { ENTRIES = 1024, COPIES = 16, KEPT = 256 };
static const double COPY_EVERY = 0.04;   /* s: COPIES of them reach back for longer than OLDEST */
static const double OLDEST = 0.5;        /* s */

enum { WHOLE, JOINTS_ONLY, IMU_ONLY };

typedef struct {
    double t;       /* of the state after it */
    double quat[4], pos[3]; /* of base_link after it */
    int32_t kind;
    int32_t corrections; /* that belong after it */
} past_sample;

struct gait_history {
    uint64_t count, first;   /* samples recorded in all; the first one that a copy reaches */
    uint64_t copied[COPIES]; /* copy i was made before this sample */
    uint64_t copies;         /* made in all */
    double copied_t;
    uint64_t corrections;    /* kept in all */
    uint64_t after[KEPT];    /* the sample after which each belongs */
    gait_external kept[KEPT];
    past_sample samples[ENTRIES];
    /* then rows, room for a state, copies, and one more for the present context */
};

static size_t rows_offset(void)
{
    return (sizeof(gait_history) + 63) / 64 * 64;
}

static size_t copies_offset(const gait_config *c)
{
    const size_t doubles = ENTRIES * gait_row_doubles(c) + gait_state_doubles(c);
    return rows_offset() + (doubles * sizeof(double) + 63) / 64 * 64;
}

size_t gait_history_bytes(const gait_config *config)
{
    return copies_offset(config) + (COPIES + 1) * gait_bytes(config);
}

static double *past_row(gait_history *h, const gait_config *c, uint64_t k)
{
    return (double *)(void *)((char *)h + rows_offset()) + k % ENTRIES * gait_row_doubles(c);
}

static void *past_copy(gait_history *h, const gait_config *c, uint64_t k)
{
    return (char *)h + copies_offset(c) + k % COPIES * gait_bytes(c);
}

void gait_history_clear(gait_history *h)
{
    memset(h, 0, sizeof *h);
}

gait_history *gait_history_init(void *memory)
{
    gait_history_clear(memory);
    return memory;
}

/* A copy before sample k, if the last one is old enough. */
static void copy_context(gait_history *h, const gait_t *g, uint64_t k)
{
    const double since = g->input.t - h->copied_t;
    if (h->copies > 0 && since >= 0.0 && since < COPY_EVERY && k - h->copied[(h->copies - 1) % COPIES] < ENTRIES / 8) return;
    memcpy(past_copy(h, g->config, h->copies), g, gait_bytes(g->config));
    h->copied[h->copies++ % COPIES] = k;
    h->copied_t = g->input.t;
    h->first = h->copied[h->copies > COPIES ? h->copies % COPIES : 0];
}

/* Take sample k of the history, with what is told of it. */
static void take_past(gait_history *h, gait_t *g, uint64_t k, double *state)
{
    const double *row = past_row(h, g->config, k);
    past_sample *past = &h->samples[k % ENTRIES];
    const gait_sample sample = sample_of(g->config, row);
    if (past->kind == JOINTS_ONLY) gait_update_joints(g, &sample);
    else if (past->kind == IMU_ONLY) gait_update_imu(g, row[0], row + 1, row + 4, (gait_state *)state);
    else gait_update(g, &sample, (gait_state *)state);
    past->t = g->input.t;
    if (past->kind == JOINTS_ONLY) return;
    const gait_state *s = (const gait_state *)state;
    memcpy(past->quat, s->quat_wb_wxyz, sizeof past->quat);
    memcpy(past->pos, s->pos_w, sizeof past->pos);
}

void gait_history_step(gait_history *h, gait_t *g, int kind, const double *row, double *state_and_cov)
{
    const gait_config *c = g->config;
    const uint64_t k = h->count;
    const double before = g->input.t;
    copy_context(h, g, k);
    memcpy(past_row(h, c, k), row, gait_row_doubles(c) * sizeof(double));
    h->samples[k % ENTRIES].kind = kind;
    h->samples[k % ENTRIES].corrections = 0;
    h->count++;
    if (h->count - h->first > ENTRIES) h->first = h->count - ENTRIES;
    take_past(h, g, k, state_and_cov);
    if (kind != JOINTS_ONLY) gait_cov(g, state_and_cov + gait_state_doubles(c));
    if (g->input.t < before) gait_history_clear(h); /* the clock was set back: times before it mean nothing */
}

/* The sample whose state is nearest to a time, or count if none is. */
static uint64_t nearest(const gait_history *h, double t)
{
    uint64_t best = h->count;
    double distance = INFINITY;
    for (uint64_t k = h->count; k-- > h->first;) {
        const past_sample *past = &h->samples[k % ENTRIES];
        if (past->kind == JOINTS_ONLY) continue;
        if (fabs(past->t - t) >= distance) break;
        distance = fabs(past->t - t);
        best = k;
    }
    return best;
}

int gait_history_pose(const gait_history *h, double t, double quat_wb_wxyz[4], double pos_w[3])
{
    const uint64_t k = nearest(h, t);
    if (k == h->count) return 0;
    memcpy(quat_wb_wxyz, h->samples[k % ENTRIES].quat, 4 * sizeof(double));
    memcpy(pos_w, h->samples[k % ENTRIES].pos, 3 * sizeof(double));
    return 1;
}

/* Go back to the last copy that was made before sample k. Returns 0, with nothing changed, if there is none. */
static int go_back(gait_history *h, gait_t *g, uint64_t k, uint64_t *copy)
{
    for (uint64_t i = h->copies; i-- > (h->copies > COPIES ? h->copies - COPIES : 0);) {
        if (h->copied[i % COPIES] > k || h->copied[i % COPIES] < h->first) continue;
        memcpy(g, past_copy(h, g->config, i), gait_bytes(g->config));
        if (g->recorder) recorder_rewind(g);
        *copy = i;
        return 1;
    }
    return 0;
}

/* Correct by all that belongs after sample k, in the order in which it came. */
static void correct_past(gait_history *h, gait_t *g, uint64_t k)
{
    double test_ratio;
    if (h->samples[k % ENTRIES].corrections == 0) return;
    for (uint64_t i = h->corrections > KEPT ? h->corrections - KEPT : 0; i < h->corrections; i++)
        if (h->after[i % KEPT] == k) gait_correct_external(g, &h->kept[i % KEPT], &test_ratio);
}

/* Take samples again up to `end`, from the one before which a copy was made; later copies are made again. */
static void take_again(gait_history *h, gait_t *g, uint64_t *copy, uint64_t from, uint64_t end)
{
    double *state = (double *)(void *)((char *)h + rows_offset()) + ENTRIES * gait_row_doubles(g->config);
    for (uint64_t i = from; i < end; i++) {
        if (*copy + 1 < h->copies && h->copied[(*copy + 1) % COPIES] == i)
            memcpy(past_copy(h, g->config, ++*copy), g, gait_bytes(g->config));
        take_past(h, g, i, state);
        correct_past(h, g, i);
    }
}

/* Insert a measurement after sample k, which is not the last. */
static int insert(gait_history *h, gait_t *g, const gait_external *e, uint64_t k, double *test_ratio)
{
    void *present = (char *)past_copy(h, g->config, 0) + COPIES * gait_bytes(g->config);
    uint64_t copy;
    memcpy(present, g, gait_bytes(g->config));
    if (!go_back(h, g, k, &copy)) return GAIT_TOO_OLD;
    take_again(h, g, &copy, h->copied[copy % COPIES], k + 1);
    const int verdict = gait_correct_external(g, e, test_ratio);
    if (verdict == GAIT_TAKEN) take_again(h, g, &copy, k + 1, h->count);
    else memcpy(g, present, gait_bytes(g->config));
    return verdict;
}

int gait_history_correct(gait_history *h, gait_t *g, const gait_external *e, double *test_ratio)
{
    const double now = g->input.t;
    *test_ratio = INFINITY;
    if (!g->input.started || g->align) return GAIT_NOT_STARTED;
    if (h->count == 0) return gait_correct_external(g, e, test_ratio); /* nothing to go back to */
    const uint64_t k = nearest(h, e->t);
    if (now - e->t > OLDEST || k == h->count) return GAIT_TOO_OLD;
    const int verdict = k + 1 == h->count ? gait_correct_external(g, e, test_ratio) : insert(h, g, e, k, test_ratio);
    if (verdict != GAIT_TAKEN) return verdict;
    h->kept[h->corrections % KEPT] = *e;
    h->after[h->corrections++ % KEPT] = k;
    h->samples[k % ENTRIES].corrections++;
    return verdict;
}
