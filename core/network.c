/* One step of `gait`, `gait-flat` and `nmn`. */
#include "network.h"

#include "vector.h"

enum { QUERY_LANES = 4, ENCODE_ROWS = 32, UNITS = 32, LAYER_ROWS = 64 };
/* Registers of sums at once: enough to hide the latency of a multiply-add, few enough for all to be there. */
enum { GATE_GROUPS = GAIT_LANES == 16 ? 6 : 12, LAYER_GROUPS = GAIT_LANES == 16 ? 4 : 8 };

/* Score of a hidden token: its share is exactly zero. If the highest score of a window is below SEEN, all of it is hidden. */
static const float UNSEEN = -1e30f, SEEN = -1e29f;

/* Layout of memory: what a context keeps, then the scratch of a step, which contexts may share. */
typedef struct network_memory {
    float *counts;  /* samples in the window; place of the next one in the ring */
    float *state;   /* [grus][hidden, padded] */
    float *samples; /* the ring [history][features by token, padded] */
    float *scores;  /* of its samples [history][tokens][lanes], each row padded */
    float *after;   /* the state one step on */
    float *shares;  /* of the last step, before they are scaled, in the order of the ring; as scores */
    float *scale;   /* of the shares [lanes] */
    float *highest; /* score of a query, for each token alike; one row as scores */
    float *pooled;  /* raw numbers by query [lanes][raw, and room for a register more] */
    float *sums;    /* of the shares, of tokens and of slots [tokens + history][lanes] */
    float *encoded; /* [latents, padded to a multiple of 2][width, padded] */
    float *input;   /* of the GRUs */
    float *layer;   /* before an output */
    size_t kept, scratch;
} network_memory;

static int units_of(const gait_network *n) { return (int)vec_round_up((size_t)n->hidden, UNITS); }
static int layer_width(const gait_network *n) { return (int)vec_round_up((size_t)n->mlp, LAYER_ROWS); }
static int encoded_width(const gait_network *n) { return (int)vec_round_up((size_t)n->width, ENCODE_ROWS); }
static int score_row(const gait_network *n) { return (int)vec_round_up((size_t)(n->tokens * n->lanes), 16); }
static int sample_row(const gait_network *n) { return (int)vec_round_up((size_t)n->features, 16); }
static int pooled_row(const gait_network *n) { return (int)vec_round_up((size_t)n->raw + 15, 16); }

static float *network_take(size_t *used, float *memory, size_t count)
{
    float *piece = memory ? memory + *used : NULL;
    *used += vec_round_up(count, 16);
    return piece;
}

static network_memory network_layout(const gait_network *n, float *memory, float *scratch)
{
    network_memory m = {0};
    const size_t states = (size_t)(n->grus * units_of(n)), row = (size_t)score_row(n), history = (size_t)n->history;
    m.counts = network_take(&m.kept, memory, 2);
    m.state = network_take(&m.kept, memory, states);
    m.samples = network_take(&m.kept, memory, history * (size_t)sample_row(n));
    m.scores = network_take(&m.kept, memory, history * row);
    m.after = network_take(&m.scratch, scratch, states);
    m.shares = network_take(&m.scratch, scratch, history * row);
    m.scale = network_take(&m.scratch, scratch, (size_t)n->lanes);
    m.highest = network_take(&m.scratch, scratch, row);
    m.pooled = network_take(&m.scratch, scratch, (size_t)(n->lanes * pooled_row(n)));
    m.sums = network_take(&m.scratch, scratch, row + (size_t)(n->history * n->lanes));
    m.encoded = network_take(&m.scratch, scratch, (size_t)((n->latents + 1) * encoded_width(n)));
    m.input = network_take(&m.scratch, scratch, (size_t)n->inputs);
    m.layer = network_take(&m.scratch, scratch, (size_t)layer_width(n));
    return m;
}

size_t gait_network_floats(const gait_network *n) { return network_layout(n, NULL, NULL).kept; }
size_t gait_network_scratch(const gait_network *n) { return network_layout(n, NULL, NULL).scratch; }

void gait_network_reset(const gait_network *n, float *memory)
{
    memset(memory, 0, gait_network_floats(n) * sizeof *memory);
}

/* Which slot of the window, oldest first, a place of the ring holds when the newest sample is at `newest`. */
static int slot_of(const gait_network *n, int place, int newest)
{
    return n->history - 1 - (newest - place + (newest < place ? n->history : 0));
}

/* Keep the sample and its scores in the ring; hidden tokens are kept as zeros, even if they are nan. */
GAIT_APART void take_sample(const gait_network *n, const network_memory *m, const float *features,
                        const unsigned char *seen, int place)
{
    const int lanes = n->lanes;
    float *restrict sample = m->samples + place * sample_row(n), *restrict scores = m->scores + place * score_row(n);
    for (int i = 0; i < n->features; i++) sample[i] = features[n->order[i]];
    for (int token = 0; token < n->tokens; token++, scores += lanes) {
        const int first = n->token_table[3 * token], end = first + n->token_table[3 * token + 1];
        for (int i = first; !seen[token] && i < end; i++) sample[i] = 0.0f;
        for (int lane = 0; lane < lanes; lane += QUERY_LANES) {
            const float *w = n->score + first * lanes + lane, *bias = n->score_bias + token * lanes + lane;
            float sum[QUERY_LANES];
            for (int k = 0; k < QUERY_LANES; k++) sum[k] = seen[token] ? bias[k] : UNSEEN;
            for (int i = first; i < end; i++, w += lanes)
                for (int k = 0; k < QUERY_LANES; k++) sum[k] = GAIT_FMA(w[k], sample[i], sum[k]);
            for (int k = 0; k < QUERY_LANES; k++) scores[lane + k] = sum[k];
        }
    }
}

/* Scores of the window, and the highest of each query. */
GAIT_APART void gather_scores(const gait_network *n, const network_memory *m, int samples, int newest)
{
    const int row = score_row(n), lanes = n->lanes;
    float *restrict highest = m->highest;
    for (int j = 0; j < row; j++) highest[j] = UNSEEN;
    for (int place = 0; place < samples; place++) {
        const float *restrict scores = m->scores + place * row;
        const float *restrict bias = n->slot_bias + slot_of(n, place, newest) * row;
        float *restrict shares = m->shares + place * row;
        for (int j = 0; j < row; j++) {
            shares[j] = scores[j] + bias[j];
            highest[j] = vec_larger(shares[j], highest[j]);
        }
    }
    for (int lane = 0; lane < lanes; lane += QUERY_LANES) {
        float most[QUERY_LANES];
        for (int k = 0; k < QUERY_LANES; k++) most[k] = UNSEEN;
        for (int j = lane; j < n->tokens * lanes; j += lanes)
            for (int k = 0; k < QUERY_LANES; k++) most[k] = vec_larger(highest[j + k], most[k]);
        for (int j = lane; j < n->tokens * lanes; j += lanes)
            for (int k = 0; k < QUERY_LANES; k++) highest[j + k] = most[k];
    }
}

/* Shares of attention before they are scaled, and their sums by token and by slot, scaled. */
GAIT_APART void share_attention(const gait_network *n, const network_memory *m, int samples, int newest)
{
    const int row = score_row(n), lanes = n->lanes;
    float *restrict by_token = m->sums, *by_slot = by_token + n->tokens * lanes, *end = by_slot + n->history * lanes;
    const float *restrict highest = m->highest;
    for (int j = 0; j < row; j++) by_token[j] = 0.0f;
    for (int place = 0; place < samples; place++) {
        float *restrict shares = m->shares + place * row;
        for (int j = 0; j < row; j++) shares[j] -= highest[j];
    }
    vec_exp(m->shares, samples * row);
    for (int place = 0; place < samples; place++) {
        const float *restrict shares = m->shares + place * row;
        for (int j = 0; j < row; j++) by_token[j] += shares[j];
    }
    memset(by_slot, 0, (size_t)(n->history * lanes) * sizeof *by_slot);
    for (int lane = 0; lane < lanes; lane += QUERY_LANES) {
        float total[QUERY_LANES] = {0.0f};
        for (int place = 0; place < samples; place++) {
            const float *shares = m->shares + place * row + lane;
            float sum[QUERY_LANES] = {0.0f}, *slot = by_slot + slot_of(n, place, newest) * lanes + lane;
            for (int token = 0; token < n->tokens; token++, shares += lanes)
                for (int k = 0; k < QUERY_LANES; k++) sum[k] += shares[k];
            for (int k = 0; k < QUERY_LANES; k++) total[k] += sum[k];
            for (int k = 0; k < QUERY_LANES; k++) slot[k] = sum[k];
        }
        float scale[QUERY_LANES];
        for (int k = 0; k < QUERY_LANES; k++) scale[k] = m->highest[lane + k] > SEEN ? 1.0f / total[k] : 0.0f;
        for (int k = 0; k < QUERY_LANES; k++) m->scale[lane + k] = scale[k];
        for (float *sum = by_token + lane; sum < end; sum += lanes)
            for (int k = 0; k < QUERY_LANES; k++) sum[k] *= scale[k];
    }
}

/* Pool the raw numbers of the window, each token's weighted by its shares; tokens of one embedding, which follow each other,
 * have a place in common. A register of numbers reaches beyond those of its token: what follows is pooled later, into its own
 * place. */
GAIT_APART void pool_numbers(const gait_network *n, const network_memory *m, int samples)
{
    const int32_t *table = n->token_table;
    const int lanes = n->lanes, row = pooled_row(n), step = sample_row(n), share_step = score_row(n);
    for (int begin = 0, end; begin < n->tokens; begin = end) {
        const int count = table[3 * begin + 1], place = table[3 * begin + 2];
        for (end = begin + 1; end < n->tokens && table[3 * end + 2] == place; end++) {}
        for (int lane = 0; lane < lanes; lane += QUERY_LANES)
            for (int i = 0; i < count; i += GAIT_LANES) {
                vec_lanes sums[QUERY_LANES];
                GAIT_UNROLL for (int k = 0; k < QUERY_LANES; k++) sums[k] = vec_zero();
                for (int token = begin; token < end; token++) {
                    const float *x = m->samples + table[3 * token] + i, *shares = m->shares + token * lanes + lane;
                    for (int k = 0; k < samples; k++, x += step, shares += share_step) {
                        const vec_lanes numbers = vec_load(x);
                        GAIT_UNROLL for (int q = 0; q < QUERY_LANES; q++)
                            sums[q] = vec_fma_scalar(numbers, shares[q], sums[q]);
                    }
                }
                GAIT_UNROLL for (int q = 0; q < QUERY_LANES; q++)
                    vec_store(m->pooled + (lane + q) * row + place + i, sums[q] * m->scale[lane + q]);
            }
    }
}

/* The encoder's output, without the offset that is in the gates: two latents at a time. */
GAIT_APART void encode(const gait_network *n, const network_memory *m)
{
    enum { GROUPS = GAIT_LANES == 16 ? 2 : 4 };
    const int raw = n->raw, shares = n->tokens + n->history, row_step = pooled_row(n), width = encoded_width(n);
    for (int latent = 0; latent < n->latents; latent += 2) {
        const int query = latent * n->heads;
        for (int row = 0; row < width; row += GROUPS * GAIT_LANES) {
            const float *w = n->encode + row / ENCODE_ROWS * ENCODE_ROWS * n->heads * (raw + shares) + row % ENCODE_ROWS;
            float *out = m->encoded + latent * width + row;
            vec_lanes sums[VEC_MOST_SUMS];
            for (int g = 0; g < 2 * GROUPS; g++) sums[g] = vec_zero();
            for (int head = 0; head < n->heads; head++, w += (raw + shares) * ENCODE_ROWS) {
                const float *x = m->pooled + (query + head) * row_step;
                vec_product(GROUPS, 2, w, ENCODE_ROWS, raw, x, 1, n->heads * row_step, sums);
                vec_product(GROUPS, 2, w + raw * ENCODE_ROWS, ENCODE_ROWS, shares, m->sums + query + head, n->lanes, n->heads, sums);
            }
            for (int g = 0; g < GROUPS; g++) {
                vec_store(out + g * GAIT_LANES, sums[g]);
                vec_store(out + width + g * GAIT_LANES, sums[GROUPS + g]);
            }
        }
    }
    for (int latent = 0; latent < n->latents; latent++)
        memcpy(m->input + latent * n->width, m->encoded + latent * width, (size_t)n->width * sizeof *m->input);
}

GAIT_APART void add_gates(const float *w, int columns, const float *x, float *sums)
{
    vec_tile(GATE_GROUPS, sums, w, 3 * UNITS, columns, x, sums);
}

/* The state of a tile of units one step on, from the sums of their gates. */
static void gated_units(const float *restrict sums, const float *restrict before, float *restrict after)
{
    float gates[2 * UNITS], fresh[UNITS];
    const float *reset = gates, *update = gates + UNITS, *recurrent = sums + 3 * UNITS;
    vec_copy(gates, sums + UNITS, 2 * UNITS);
    vec_sigmoid(gates, 2 * UNITS, 1.0f);
    GAIT_VECTORISE for (int j = 0; j < UNITS; j++) fresh[j] = GAIT_FMA(reset[j], recurrent[j], sums[j]);
    vec_tanh(fresh, UNITS);
    GAIT_VECTORISE for (int j = 0; j < UNITS; j++) after[j] = GAIT_FMA(update[j], before[j] - fresh[j], fresh[j]);
}

GAIT_APART void recur(const gait_network *n, const network_memory *m)
{
    const int units = units_of(n);
    const float *w = n->gates, *bias = n->gate_bias;
    for (int gru = 0; gru < n->grus; gru++) {
        const float *state = m->state + gru * units;
        for (int unit = 0; unit < units; unit += UNITS, bias += 4 * UNITS) {
            /* new, reset, update, and the new state's recurrent part: inputs add to the first three, states to the last
             * three. */
            float sums[4 * UNITS];
            vec_copy(sums, bias, 4 * UNITS);
            add_gates(w, n->inputs, m->input, sums);
            w += n->inputs * 3 * UNITS;
            add_gates(w, n->hidden, state, sums + UNITS);
            w += n->hidden * 3 * UNITS;
            gated_units(sums, state + unit, m->after + gru * units + unit);
        }
    }
    vec_copy(m->state, m->after, n->grus * units);
}

GAIT_APART void layer_tile(const float *bias, const float *w, int columns, const float *x, float *out)
{
    vec_tile(LAYER_GROUPS, bias, w, LAYER_ROWS, columns, x, out);
}

/* The two hidden layers, and their outputs. */
GAIT_APART void read_out(const gait_network *n, const network_memory *m, float out[6])
{
    const int width = layer_width(n);
    const float *w = n->layers;
    for (int i = 0; i < 2; i++) {
        const float *state = m->state + (n->grus == 2 ? i * units_of(n) : 0);
        for (int row = 0; row < width; row += LAYER_ROWS, w += n->hidden * LAYER_ROWS)
            layer_tile(n->layer_bias + i * width + row, w, n->hidden, state, m->layer + row);
        for (int j = 0; j < width; j++) m->layer[j] = vec_larger(m->layer[j], 0.0f);
        for (int axis = 3 * i; axis < 3 * i + 3; axis++)
            out[axis] = vec_dot(n->outputs + axis * width, m->layer, width) + n->output_bias[axis];
    }
    vec_sigmoid(out + 3, 3, 1.0f);
    for (int axis = 3; axis < 6; axis++) out[axis] = GAIT_FMA(n->log_std_span, out[axis], n->log_std_min);
}

void gait_network_step(const gait_network *n, float *memory, float *scratch, const float *features,
                       const unsigned char *seen, float out[6])
{
    const network_memory m = network_layout(n, memory, scratch);
    if (n->tokens == 0) {
        memcpy(m.input, features, (size_t)n->features * sizeof *features);
    } else {
        const int place = (int)m.counts[1], samples = (int)m.counts[0] < n->history ? (int)m.counts[0] + 1 : n->history;
        take_sample(n, &m, features, seen, place);
        m.counts[0] = (float)samples;
        m.counts[1] = (float)(place + 1 < n->history ? place + 1 : 0);
        gather_scores(n, &m, samples, place);
        share_attention(n, &m, samples, place);
        pool_numbers(n, &m, samples);
        encode(n, &m);
        memcpy(m.input + n->latents * n->width, features, 6 * sizeof *features);
    }
    recur(n, &m);
    read_out(n, &m, out);
}

void gait_network_attention(const gait_network *n, const float *memory, const float *scratch, double *out)
{
    /* Nothing is written through the layout here. */
    const network_memory m = network_layout(n, (float *)(uintptr_t)memory, (float *)(uintptr_t)scratch);
    const int samples = (int)m.counts[0], newest = ((int)m.counts[1] + n->history - 1) % (n->history ? n->history : 1);
    for (int i = 0; i < n->history * n->tokens; i++) out[i] = 0.0;
    for (int place = 0; place < samples; place++)
        for (int token = 0; token < n->tokens; token++) {
            const float *shares = m.shares + place * score_row(n) + token * n->lanes;
            double sum = 0.0;
            for (int k = 0; k < n->queries; k++) sum += shares[k] * m.scale[k];
            out[slot_of(n, place, newest) * n->tokens + token] = sum / n->queries;
        }
}
