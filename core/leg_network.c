#include "network.h"
#include "vector.h"

/* Of the features: numbers that all legs share, numbers of a leg, and where its velocity is among them. */
enum { SHARED = 6, PER_LEG = 12, VELOCITY = 3 };
enum { TILE = 32, LEGS_AT_ONCE = 4, ROW_GROUPS = 2 };

/* Score of a hidden leg: its share is exactly zero. Also less than anything that a layer gives. */
static const float LEAST = -1e30f;

/* Where things lie in the memory of a context; [slots]: legs, padded to a multiple of four that are computed at once.
 *
 * There are as many rings as samples from one frame to the next, each with every `stride`-th sample. A sample is
 * written twice, `frames` places apart: the frames of a step then always lie side by side, oldest first. */
typedef struct leg_memory {
    float *counts; /* 1 after the first sample; samples since the rings were last full */
    float *rings;  /* of what legs share [stride][2 frames][6], then of each leg [slots][stride][2 frames][own] */
    float *base;   /* what all legs add to the first layer [hidden] */
    float *layer;  /* [slots][hidden or mlp, the larger] */
    float *joined; /* the second layer's output and what the leg found at the others [slots][hidden + heads x width] */
    float *looks;  /* queries, keys and values [slots][3][heads][width], padded */
    float *shares; /* [legs][heads][slots] */
    size_t floats;
} leg_memory;

static int look_rows(const gait_leg_network *n)
{
    return (int)vec_round_up((size_t)(3 * n->heads * n->head_width), TILE);
}
static int joined_width(const gait_leg_network *n) { return n->hidden + n->heads * n->head_width; }
static int layer_step(const gait_leg_network *n) { return n->hidden > n->mlp ? n->hidden : n->mlp; }
static int leg_slots(int legs) { return (int)vec_round_up((size_t)legs, LEGS_AT_ONCE); }

static float *leg_take(leg_memory *m, float *memory, int count)
{
    float *piece = memory ? memory + m->floats : NULL;
    m->floats += vec_round_up((size_t)count, 16);
    return piece;
}

static leg_memory leg_layout(const gait_leg_network *n, int legs, float *memory)
{
    leg_memory m = {0};
    const int slots = leg_slots(legs);
    m.counts = leg_take(&m, memory, 2);
    m.rings = leg_take(&m, memory, 2 * n->frames * n->stride * (SHARED + slots * n->own));
    m.base = leg_take(&m, memory, n->hidden);
    m.layer = leg_take(&m, memory, slots * layer_step(n));
    m.joined = leg_take(&m, memory, slots * joined_width(n));
    m.looks = leg_take(&m, memory, slots * look_rows(n));
    m.shares = leg_take(&m, memory, legs * n->heads * slots);
    return m;
}

size_t gait_leg_network_floats(const gait_leg_network *n, int legs) { return leg_layout(n, legs, NULL).floats; }

void gait_leg_network_reset(const gait_leg_network *n, float *memory)
{
    (void)n;
    memory[0] = 0.0f;
    memory[1] = 0.0f;
}

/* A sample of `count` numbers into its ring; if it is the first that is known, the past was like it. */
static void leg_put(const gait_leg_network *n, float *ring, int count, int place, int first_known)
{
    const float *sample = ring + place * count;
    memcpy(ring + (place + n->frames) * count, sample, (size_t)count * sizeof *ring);
    for (int k = 0; first_known && k < 2 * n->frames * n->stride; k++)
        if (k != place) memcpy(ring + k * count, sample, (size_t)count * sizeof *ring);
}

/* Put the sample into the rings; returns its place, behind which the oldest frame of this step begins. */
static int leg_remember(const gait_leg_network *n, const leg_memory *m, int legs, const double *features,
                        const unsigned char *before)
{
    const int begun = m->counts[0] > 0.0f, places = 2 * n->frames * n->stride;
    int time = begun ? (int)m->counts[1] + 1 : 0;
    if (time >= n->frames * n->stride) time = 0;
    m->counts[0] = 1.0f;
    m->counts[1] = (float)time;
    const int place = 2 * n->frames * (time % n->stride) + time / n->stride;
    for (int i = 0; i < SHARED; i++) m->rings[place * SHARED + i] = (float)features[i];
    leg_put(n, m->rings, SHARED, place, !begun);
    for (int leg = 0; leg < legs; leg++) {
        const double *numbers = features + SHARED + PER_LEG * leg;
        float *ring = m->rings + places * (SHARED + leg * n->own);
        for (int i = 0; i < n->own; i++) ring[place * n->own + i] = (float)numbers[n->columns[i]];
        leg_put(n, ring, n->own, place, !begun || !before[leg]);
    }
    return place;
}

/* A layer for every leg, four at a time, so that a weight is fetched once for all of them. Inputs lie x_step apart and
 * outputs, which are at least `least`, out_step. */
GAIT_APART void leg_layer(int legs, const float *bias, const float *w, int rows, int columns, const float *x, int x_step,
                      float least, float *out, int out_step)
{
    for (int tile = 0; tile < rows; tile += TILE, w += columns * TILE)
        for (int leg = 0; leg < legs; leg += LEGS_AT_ONCE)
            for (int row = 0; row < TILE; row += ROW_GROUPS * GAIT_LANES) {
                vec_lanes sums[VEC_MOST_SUMS];
                for (int g = 0; g < ROW_GROUPS; g++) {
                    const vec_lanes start = vec_load(bias + tile + row + g * GAIT_LANES);
                    for (int k = 0; k < LEGS_AT_ONCE; k++) sums[k * ROW_GROUPS + g] = start;
                }
                vec_product(ROW_GROUPS, LEGS_AT_ONCE, w + row, TILE, columns, x + leg * x_step, 1, x_step, sums);
                for (int k = 0; k < LEGS_AT_ONCE; k++)
                    for (int g = 0; g < ROW_GROUPS; g++) {
                        float *to = out + (leg + k) * out_step + tile + row + g * GAIT_LANES;
                        vec_store(to, vec_at_least(sums[k * ROW_GROUPS + g], least));
                    }
            }
}

GAIT_APART void leg_tile(const float *bias, const float *w, int columns, const float *x, float *out)
{
    vec_tile(GAIT_LANES == 16 ? 2 : 4, bias, w, TILE, columns, x, out);
}

/* From the frames: what legs share once, then each leg its own. */
static void leg_first_layer(const gait_leg_network *n, const leg_memory *m, int legs, int oldest)
{
    const int places = 2 * n->frames * n->stride, columns = n->frames * SHARED;
    const float *w = n->shared, *x = m->rings + oldest * SHARED;
    for (int row = 0; row < n->hidden; row += TILE, w += columns * TILE)
        leg_tile(n->shared_bias + row, w, columns, x, m->base + row);
    leg_layer(legs, m->base, n->own_layer, n->hidden, n->frames * n->own, m->rings + places * SHARED + oldest * n->own,
              places * n->own, 0.0f, m->layer, layer_step(n));
}

/* Shares of attention of each leg that is seen. */
static void leg_share(const gait_leg_network *n, const leg_memory *m, int legs, const unsigned char *seen)
{
    const int rows = look_rows(n), slots = leg_slots(legs), width = n->head_width;
    for (int leg = 0; leg < legs; leg++)
        for (int head = 0; seen[leg] && head < n->heads; head++) {
            const float *query = m->looks + leg * rows + head * width, *key = m->looks + (n->heads + head) * width;
            float *shares = m->shares + (leg * n->heads + head) * slots, highest = LEAST, total = 0.0f;
            for (int other = 0; other < slots; other++) {
                const int used = other < legs && seen[other];
                shares[other] = used ? vec_dot(query, key + other * rows, width) : LEAST;
                highest = vec_larger(shares[other], highest);
            }
            for (int other = 0; other < slots; other++) shares[other] -= highest;
            vec_exp(shares, slots);
            for (int other = 0; other < slots; other++) total += shares[other];
            for (int other = 0; other < slots; other++) shares[other] /= total;
        }
}

/* What each leg finds at the others, beside what it knows itself. */
static void leg_find(const gait_leg_network *n, const leg_memory *m, int legs, const unsigned char *seen)
{
    const int rows = look_rows(n), slots = leg_slots(legs), width = n->head_width;
    for (int leg = 0; leg < legs; leg++)
        for (int head = 0; seen[leg] && head < n->heads; head++) {
            const float *value = m->looks + (2 * n->heads + head) * width;
            const float *shares = m->shares + (leg * n->heads + head) * slots;
            float *out = m->joined + leg * joined_width(n) + n->hidden + head * width;
            memset(out, 0, (size_t)width * sizeof *out);
            for (int other = 0; other < legs; other++)
                for (int k = 0; seen[other] && k < width; k += GAIT_LANES)
                    vec_store(out + k, vec_fma_scalar(vec_load(value + other * rows + k), shares[other],
                                                      vec_load(out + k)));
        }
}

/* The last layer of a leg: log-std, then the shift of the velocity if there is one. */
static void leg_read_out(const gait_leg_network *n, const float *layer, float out[6])
{
    for (int row = 0; row < n->rows; row++) {
        const float value = vec_dot(n->output + row * n->mlp, layer, n->mlp) + n->output_bias[row];
        if (row < 3)
            out[3 + row] = value;
        else
            out[row - 3] += value;
    }
    vec_sigmoid(out + 3, 3, 1.0f);
    for (int axis = 3; axis < 6; axis++) out[axis] = GAIT_FMA(n->log_std_span, out[axis], n->log_std_min);
}

void gait_leg_network_step(const gait_leg_network *n, int legs, float *memory, const double *features,
                           const unsigned char *seen, const unsigned char *before, float *out)
{
    const leg_memory m = leg_layout(n, legs, memory);
    const int joined = joined_width(n), rows = look_rows(n), step = layer_step(n);
    leg_first_layer(n, &m, legs, leg_remember(n, &m, legs, features, before) + 1);
    leg_layer(legs, n->hidden_bias, n->hidden_layer, n->hidden, n->hidden, m.layer, step, 0.0f, m.joined, joined);
    if (n->heads > 0) {
        leg_layer(legs, n->look_bias, n->look, rows, n->hidden, m.joined, joined, LEAST, m.looks, rows);
        leg_share(n, &m, legs, seen);
        leg_find(n, &m, legs, seen);
    }
    leg_layer(legs, n->mix_bias, n->mix, n->mlp, joined, m.joined, joined, 0.0f, m.layer, step);
    for (int leg = 0; leg < legs; leg++) {
        const double *velocity = features + SHARED + PER_LEG * leg + VELOCITY;
        for (int axis = 0; axis < 3; axis++) {
            out[6 * leg + axis] = (float)velocity[axis];
            out[6 * leg + 3 + axis] = n->log_std_min + n->log_std_span;
        }
        if (seen[leg]) leg_read_out(n, m.layer + leg * step, out + 6 * leg);
    }
}

void gait_leg_network_attention(const gait_leg_network *n, int legs, const float *memory, const unsigned char *seen,
                                double *out)
{
    /* Nothing is written through the layout here. */
    const leg_memory m = leg_layout(n, legs, (float *)(uintptr_t)memory);
    const int slots = leg_slots(legs), looked = m.counts[0] > 0.0f && n->heads > 0;
    for (int leg = 0; leg < legs; leg++)
        for (int other = 0; other < legs; other++) {
            double sum = 0.0;
            for (int head = 0; looked && seen[leg] && head < n->heads; head++)
                sum += m.shares[(leg * n->heads + head) * slots + other];
            out[leg * legs + other] = looked ? sum / n->heads : 0.0;
        }
}
