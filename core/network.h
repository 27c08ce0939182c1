/* One step of a network: `gait`, `gait-flat` and `nmn`, and `gait-legs`.
 *
 * The structs hold sizes and packed weights, which never change and may serve many contexts. A context offers an array
 * of floats as memory, best 64-byte aligned; it holds no pointers, so a copy of it is a context of its own. What a step
 * works with is scratch, which contexts may share.
 */
#ifndef GAIT_NETWORK_H
#define GAIT_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Scores come from raw numbers and the attention pools raw numbers, the normaliser being part of the weights:
 *
 *   scores  = score [raw numbers of a token] + score_bias    once when a sample arrives     tokens x queries
 *   shares  = softmax(scores of the window + slot_bias)      over slots and tokens          queries
 *   pooled  = raw numbers by embedding, shares of tokens, shares of slots                   queries x pooled
 *   encoded = encode pooled                                  for each latent                latents x width
 *   gates   = gates [encoded, gyro, accel, state]            then GRUs, and two layers to an output each
 *
 * Without tokens (`nmn`) the GRU reads the features themselves. */
typedef struct gait_network {
    int32_t features;
    int32_t tokens;  /* 0: no attention */
    int32_t history; /* samples in the window */
    int32_t queries; /* latents x heads */
    int32_t lanes;   /* queries, and those of one more latent if their number is odd, padded to a multiple of 4 */
    int32_t latents;
    int32_t heads;
    int32_t width;     /* of an encoded latent */
    int32_t raw;       /* pooled raw numbers of a query */
    int32_t inputs;    /* of the GRUs */
    int32_t grus;      /* 2: velocity, log-std; 1: both from one */
    int32_t hidden;    /* width of a GRU */
    int32_t mlp;       /* width of the layer before an output */
    float log_std_min; /* log-std is min + span sigmoid(output) */
    float log_std_span;
    const int32_t *order;       /* features by token, in adjacent threes [features] */
    const int32_t *token_table; /* first of its numbers in that order, count, place in the pooled ones [tokens][3] */
    const float *score;         /* [features by token][lanes] */
    const float *score_bias;    /* [tokens][lanes] */
    const float *slot_bias;     /* [history][tokens][lanes], each history row padded to a multiple of 16 */
    const float *encode;        /* [tiles of 32 rows][heads][pooled][32] */
    const float *gate_bias;     /* [grus][tiles of 32 units][new, reset, update, new's recurrent part][32] */
    const float *gates;         /* [grus][tiles of 32 units][inputs][new, reset, update][32], then
                                 * [states][reset, update, new] of the tile */
    const float *layer_bias;    /* [2][mlp, padded to a multiple of 64] */
    const float *layers;        /* [2][tiles of 64 rows][hidden][64] */
    const float *output_bias;   /* [2][3] */
    const float *outputs;       /* [2][3][mlp, padded] */
} gait_network;

/* Floats of memory and of scratch, multiples of 16. */
size_t gait_network_floats(const gait_network *n);
size_t gait_network_scratch(const gait_network *n);

/* As before the first sample. */
void gait_network_reset(const gait_network *n, float *memory);

/* One more sample. seen: tokens the attention may look at, for as long as this sample is in the window; what is hidden
 * is not read and may be nan. Gyro and accelerometer also enter the GRUs directly, hidden or not.
 * out: body velocity, m/s, and the log of its standard deviation. */
void gait_network_step(const gait_network *n, float *memory, float *scratch, const float *features,
                       const unsigned char *seen, float out[6]);

/* Attention of the last step [history][tokens]: shares that sum to 1, oldest slot first, averaged over queries. Slots
 * that were not filled yet and tokens that were hidden have none. */
void gait_network_attention(const gait_network *n, const float *memory, const float *scratch, double *out);

/* Every leg by the same weights: two layers on the frames of its past, attention to the other legs, two more layers.
 * Frames are `stride` samples apart. Widths are padded to multiples of 32, that of a head to one of 16. */
typedef struct gait_leg_network {
    int32_t frames;
    int32_t stride;
    int32_t own;    /* numbers of a leg that are read */
    int32_t hidden; /* padded */
    int32_t heads;  /* 0: legs do not look at each other */
    int32_t head_width; /* padded */
    int32_t mlp;        /* padded */
    int32_t rows;       /* of the output: 3 for log-std, one more if velocities are corrected along z */
    float log_std_min;
    float log_std_span;
    const int32_t *columns;    /* which of a leg's numbers are read [own] */
    const float *shared_bias;  /* [hidden, padded to a multiple of 64] */
    const float *shared;       /* [tiles of 64 rows][frames x 6, oldest first][64] */
    const float *own_layer;    /* [tiles of 32 rows][frames x own, oldest first][32] */
    const float *hidden_bias;  /* [hidden] */
    const float *hidden_layer; /* [tiles][hidden][32] */
    const float *look_bias;    /* queries, keys and values [3][heads][head_width] */
    const float *look;         /* [tiles][hidden][32] */
    const float *mix_bias;     /* [mlp] */
    const float *mix;          /* [tiles][hidden + heads x head_width][32] */
    const float *output_bias;  /* [rows] */
    const float *output;       /* [rows][mlp] */
} gait_leg_network;

size_t gait_leg_network_floats(const gait_leg_network *n, int legs);
size_t gait_leg_network_scratch(const gait_leg_network *n, int legs);
/* Where the next step reads and writes its memory: what legs share, then of each leg. */
typedef struct gait_piece {
    const void *from;
    size_t bytes;
} gait_piece;
gait_piece gait_leg_network_next(const gait_leg_network *n, int legs, float *memory, int ring);
void gait_leg_network_reset(const gait_leg_network *n, float *memory);

/* One more sample. features: 6 that all legs share, then 12 of each leg. seen: legs that can be used; the others look
 * at nothing, are looked at by none and have the largest log-std. before: legs whose last samples are valid; the past of
 * the others is taken to equal this sample. out: body velocity, m/s, and the log of its standard deviation of
 * each leg [legs][6]. */
void gait_leg_network_step(const gait_leg_network *n, int legs, float *memory, float *scratch, const double *features,
                           const unsigned char *seen, const unsigned char *before, float *out);

/* Attention of each leg to each other in the last step [legs][legs], averaged over heads. */
void gait_leg_network_attention(const gait_leg_network *n, int legs, const float *memory, const float *scratch,
                                const unsigned char *seen, double *out);

#ifdef __cplusplus
}
#endif
#endif
