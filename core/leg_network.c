/* One step of `gait-legs`. */
#include "core.h"
#include "vector.h"

enum { TILE = 32, LEGS_AT_ONCE = 4, ROW_GROUPS = 2 };
enum { SHARED_TILE = 64, SHARED_GROUPS = GAIT_LANES == 16 ? 4 : 8 };

/* Score of a hidden leg: its share is exactly zero. */
static const float UNSEEN_LEG = -1e30f;

/* Layout of memory: what a context keeps, then the scratch of a step, which contexts may share; [slots]: legs, padded to a
 * multiple of four, which are computed at once.
 *
 * There are as many rings as samples from one frame to the next, each with every `stride`-th sample. A sample is
 * written twice, `frames` places apart, so that the frames of a step are always contiguous, oldest first. */
typedef struct leg_memory {
    float *counts; /* 1 after the first sample; samples since the rings were last full */
    float *rings;  /* of the shared features [stride][2 frames][6], then of each leg [slots][stride][2 frames][own] */
    float *base;   /* what all legs add to the first layer [hidden, padded to a multiple of 64] */
    float *layer;  /* [slots][hidden or mlp, the larger] */
    float *joined; /* the second layer's output and the attended values [slots][hidden + heads x width] */
    float *looks;  /* queries, keys and values [slots][3][heads][width], padded */
    float *shares; /* [legs][heads][slots] */
    float *raw;    /* log-std before its bounds [legs][3] */
    size_t kept, scratch;
} leg_memory;

static int look_rows(const gait_leg_network *n)
{
    return (int)vec_round_up((size_t)(3 * n->heads * n->head_width), TILE);
}
static int joined_width(const gait_leg_network *n) { return n->hidden + n->heads * n->head_width; }
static int layer_step(const gait_leg_network *n) { return n->hidden > n->mlp ? n->hidden : n->mlp; }
static int leg_slots(int legs) { return (int)vec_round_up((size_t)legs, LEGS_AT_ONCE); }

static float *leg_take(size_t *used, float *memory, int count)
{
    float *piece = memory ? memory + *used : NULL;
    *used += vec_round_up((size_t)count, 16);
    return piece;
}

static leg_memory leg_layout(const gait_leg_network *n, int legs, float *memory, float *scratch)
{
    leg_memory m = {0};
    const int slots = leg_slots(legs);
    m.counts = leg_take(&m.kept, memory, 2);
    m.rings = leg_take(&m.kept, memory, 2 * n->frames * n->stride * (SHARED_FEATURES + slots * n->own));
    m.base = leg_take(&m.scratch, scratch, (int)vec_round_up((size_t)n->hidden, SHARED_TILE));
    m.layer = leg_take(&m.scratch, scratch, slots * layer_step(n));
    m.joined = leg_take(&m.scratch, scratch, slots * joined_width(n));
    m.looks = leg_take(&m.scratch, scratch, slots * look_rows(n));
    m.shares = leg_take(&m.scratch, scratch, legs * n->heads * slots);
    m.raw = leg_take(&m.scratch, scratch, 3 * legs);
    return m;
}

size_t gait_leg_network_floats(const gait_leg_network *n, int legs) { return leg_layout(n, legs, NULL, NULL).kept; }
size_t gait_leg_network_scratch(const gait_leg_network *n, int legs) { return leg_layout(n, legs, NULL, NULL).scratch; }

void gait_leg_network_reset(const gait_leg_network *n, float *memory)
{
    (void)n;
    memory[0] = 0.0f;
    memory[1] = 0.0f;
}

/* Write a sample of `count` numbers to its ring; the first one fills the ring. */
static void leg_put(const gait_leg_network *n, float *ring, int count, int place, int first_known)
{
    const float *sample = ring + place * count;
    memcpy(ring + (place + n->frames) * count, sample, (size_t)count * sizeof *ring);
    for (int k = 0; first_known && k < 2 * n->frames * n->stride; k++)
        if (k != place) memcpy(ring + k * count, sample, (size_t)count * sizeof *ring);
}

/* Samples since the rings were last full, the next one counted. */
static int leg_time(const gait_leg_network *n, const leg_memory *m)
{
    const int time = m->counts[0] > 0.0f ? (int)m->counts[1] + 1 : 0;
    return time < n->frames * n->stride ? time : 0;
}

/* Place of that sample in a ring, behind which the oldest frame of its step begins. */
static int leg_place(const gait_leg_network *n, int time)
{
    return 2 * n->frames * (time % n->stride) + time / n->stride;
}

gait_piece gait_leg_network_next(const gait_leg_network *n, int legs, float *memory, int ring)
{
    const leg_memory m = leg_layout(n, legs, memory, NULL);
    const int places = 2 * n->frames * n->stride, count = ring > 0 ? n->own : SHARED_FEATURES;
    const float *start = m.rings + places * (ring > 0 ? SHARED_FEATURES + (ring - 1) * n->own : 0);
    const gait_piece piece = {start + leg_place(n, leg_time(n, &m)) * count, (n->frames + 1) * count * sizeof *start};
    return piece;
}

/* Put the sample into the rings; returns its place. */
static int leg_remember(const gait_leg_network *n, const leg_memory *m, int legs, const double *features,
                        const unsigned char *before)
{
    const int begun = m->counts[0] > 0.0f, places = 2 * n->frames * n->stride, time = leg_time(n, m);
    const int place = leg_place(n, time);
    m->counts[0] = 1.0f;
    m->counts[1] = (float)time;
    for (int i = 0; i < SHARED_FEATURES; i++) m->rings[place * SHARED_FEATURES + i] = (float)features[i];
    leg_put(n, m->rings, SHARED_FEATURES, place, !begun);
    for (int leg = 0; leg < legs; leg++) {
        const double *numbers = features + SHARED_FEATURES + LEG_FEATURES * leg;
        float *ring = m->rings + places * (SHARED_FEATURES + leg * n->own);
        for (int i = 0; i < n->own; i++) ring[place * n->own + i] = (float)numbers[n->columns[i]];
        leg_put(n, ring, n->own, place, !begun || !before[leg]);
    }
    return place;
}

/* A tile for four legs at once, so that a weight is fetched once for all of them. */
GAIT_APART void leg_tiles(const float *bias, const float *w, int columns, const float *x, int x_step, float *out,
                          int out_step)
{
    for (int row = 0; row < TILE; row += ROW_GROUPS * GAIT_LANES) {
        vec_lanes sums[VEC_MOST_SUMS];
        GAIT_UNROLL for (int i = 0; i < LEGS_AT_ONCE * ROW_GROUPS; i++)
            sums[i] = vec_load(bias + row + i % ROW_GROUPS * GAIT_LANES);
        vec_product(ROW_GROUPS, LEGS_AT_ONCE, w + row, TILE, columns, x, 1, x_step, sums);
        GAIT_UNROLL for (int i = 0; i < LEGS_AT_ONCE * ROW_GROUPS; i++)
            vec_store(out + i / ROW_GROUPS * out_step + row + i % ROW_GROUPS * GAIT_LANES, sums[i]);
    }
}

/* A layer for every leg; its inputs are x_step apart and its outputs out_step. */
static void leg_layer(int legs, const float *bias, const float *w, int rows, int columns, const float *x, int x_step,
                      float *out, int out_step)
{
    for (int row = 0; row < rows; row += TILE, w += columns * TILE)
        for (int leg = 0; leg < legs; leg += LEGS_AT_ONCE)
            leg_tiles(bias + row, w, columns, x + leg * x_step, x_step, out + leg * out_step + row, out_step);
}

static void leg_relu(int legs, float *x, int step, int count)
{
    for (int leg = 0; leg < legs; leg++, x += step)
        for (int j = 0; j < count; j++) x[j] = vec_larger(x[j], 0.0f);
}

GAIT_APART void shared_tile(const float *bias, const float *w, int columns, const float *x, float *out)
{
    vec_tile(SHARED_GROUPS, bias, w, SHARED_TILE, columns, x, out);
}

/* First layer, on the frames: the part that legs share once, then that of each leg. */
static void leg_first_layer(const gait_leg_network *n, const leg_memory *m, int legs, int oldest)
{
    const int places = 2 * n->frames * n->stride, columns = n->frames * SHARED_FEATURES;
    const float *w = n->shared, *x = m->rings + oldest * SHARED_FEATURES;
    for (int row = 0; row < n->hidden; row += SHARED_TILE, w += columns * SHARED_TILE)
        shared_tile(n->shared_bias + row, w, columns, x, m->base + row);
    x = m->rings + places * SHARED_FEATURES + oldest * n->own;
    leg_layer(legs, m->base, n->own_layer, n->hidden, n->frames * n->own, x, places * n->own, m->layer, layer_step(n));
    leg_relu(legs, m->layer, layer_step(n), n->hidden);
}

/* Attention scores, before the softmax. */
static void leg_scores(const gait_leg_network *n, const leg_memory *m, int legs, const unsigned char *seen)
{
    const int rows = look_rows(n), slots = leg_slots(legs), width = n->head_width;
    float *scores = m->shares;
    for (int leg = 0; leg < legs; leg++)
        for (int head = 0; head < n->heads; head++, scores += slots) {
            const float *query = m->looks + leg * rows + head * width, *key = m->looks + (n->heads + head) * width;
            for (int other = 0; other < slots; other++, key += rows)
                scores[other] = other < legs && seen[leg] && seen[other] ? vec_dot(query, key, width) : UNSEEN_LEG;
        }
}

/* Attention of each leg, by head; that of a hidden leg is undefined. */
static void leg_softmax(const gait_leg_network *n, const leg_memory *m, int legs)
{
    const int slots = leg_slots(legs), count = legs * n->heads * slots;
    for (float *row = m->shares; row < m->shares + count; row += slots) {
        float highest = UNSEEN_LEG;
        for (int i = 0; i < slots; i++) highest = vec_larger(row[i], highest);
        for (int i = 0; i < slots; i += LEGS_AT_ONCE)
            for (int k = i; k < i + LEGS_AT_ONCE; k++) row[k] -= highest;
    }
    vec_exp(m->shares, count);
    for (float *row = m->shares; row < m->shares + count; row += slots) {
        float total = 0.0f;
        for (int i = 0; i < slots; i++) total += row[i];
        const float scale = 1.0f / total;
        for (int i = 0; i < slots; i += LEGS_AT_ONCE)
            for (int k = i; k < i + LEGS_AT_ONCE; k++) row[k] *= scale;
    }
}

/* Append to the features of each leg the values it attends to. */
static void leg_find(const gait_leg_network *n, const leg_memory *m, int legs, const unsigned char *seen)
{
    const int rows = look_rows(n), slots = leg_slots(legs), width = n->head_width;
    for (int leg = 0; leg < legs; leg++)
        for (int head = 0; seen[leg] && head < n->heads; head++) {
            const float *value = m->looks + (2 * n->heads + head) * width;
            const float *shares = m->shares + (leg * n->heads + head) * slots;
            float *out = m->joined + leg * joined_width(n) + n->hidden + head * width;
            for (int k = 0; k < width; k += GAIT_LANES) {
                vec_lanes sum = vec_zero();
                for (int other = 0; other < legs; other++)
                    if (seen[other]) sum = vec_fma_scalar(vec_load(value + other * rows + k), shares[other], sum);
                vec_store(out + k, sum);
            }
        }
}

/* The last layer: log-std, and the correction of the velocity along z if there is one. Hidden legs have the largest log-std. */
static void leg_read_out(const gait_leg_network *n, const leg_memory *m, int legs, const unsigned char *seen,
                         float *out)
{
    for (int leg = 0; leg < legs; leg++)
        for (int row = 0; row < n->rows; row++) {
            const float *layer = m->layer + leg * layer_step(n);
            float value = 0.0f;
            if (seen[leg]) value = vec_dot(n->output + row * n->mlp, layer, n->mlp) + n->output_bias[row];
            if (row < 3)
                m->raw[3 * leg + row] = value;
            else
                out[6 * leg + 2] += value;
        }
    vec_sigmoid(m->raw, 3 * legs, 1.0f);
    for (int leg = 0; leg < legs; leg++)
        for (int axis = 0; axis < 3; axis++) {
            const float share = seen[leg] ? m->raw[3 * leg + axis] : 1.0f;
            out[6 * leg + 3 + axis] = GAIT_FMA(n->log_std_span, share, n->log_std_min);
        }
}

void gait_leg_network_step(const gait_leg_network *n, int legs, float *memory, float *scratch, const double *features,
                           const unsigned char *seen, const unsigned char *before, float *out)
{
    const leg_memory m = leg_layout(n, legs, memory, scratch);
    const int joined = joined_width(n), rows = look_rows(n), step = layer_step(n);
    leg_first_layer(n, &m, legs, leg_remember(n, &m, legs, features, before) + 1);
    leg_layer(legs, n->hidden_bias, n->hidden_layer, n->hidden, n->hidden, m.layer, step, m.joined, joined);
    leg_relu(legs, m.joined, joined, n->hidden);
    if (n->heads > 0) {
        leg_layer(legs, n->look_bias, n->look, rows, n->hidden, m.joined, joined, m.looks, rows);
        leg_scores(n, &m, legs, seen);
        leg_softmax(n, &m, legs);
        leg_find(n, &m, legs, seen);
    }
    leg_layer(legs, n->mix_bias, n->mix, n->mlp, joined, m.joined, joined, m.layer, step);
    leg_relu(legs, m.layer, step, n->mlp);
    for (int leg = 0; leg < legs; leg++)
        for (int axis = 0; axis < 3; axis++)
            out[6 * leg + axis] = (float)features[SHARED_FEATURES + LEG_FEATURES * leg + LEG_VELOCITY + axis];
    leg_read_out(n, &m, legs, seen, out);
}

void gait_leg_network_attention(const gait_leg_network *n, int legs, const float *memory, const float *scratch,
                                const unsigned char *seen, double *out)
{
    /* Nothing is written through the layout here. */
    const leg_memory m = leg_layout(n, legs, (float *)(uintptr_t)memory, (float *)(uintptr_t)scratch);
    const int slots = leg_slots(legs), looked = m.counts[0] > 0.0f && n->heads > 0;
    for (int leg = 0; leg < legs; leg++)
        for (int other = 0; other < legs; other++) {
            double sum = 0.0;
            for (int head = 0; looked && seen[leg] && head < n->heads; head++)
                sum += m.shares[(leg * n->heads + head) * slots + other];
            out[leg * legs + other] = looked ? sum / n->heads : 0.0;
        }
}
