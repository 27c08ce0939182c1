/* Float32 arithmetic of the networks: products of matrices with vectors, exp, sigmoid and tanh.
 *
 * A matrix is cut into tiles of rows; in a tile the columns lie one after the other, so that a product runs through
 * memory from front to end while the sums of a tile stay in registers. GCC keeps plain arrays in registers or not
 * depending on version and flags (the same product takes 1.4 or 27 us), so the sums are of the compilers' own vector
 * type, as wide as the registers of the machine. Without vector registers it is a float.
 */
#ifndef GAIT_VECTOR_H
#define GAIT_VECTOR_H

#include <stdint.h>
#include <string.h>

/* Fused where the machine has it, and written out, so that results do not depend on what a compiler contracts. */
#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define GAIT_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define GAIT_FMA(a, b, c) ((a) * (b) + (c))
#endif

#ifndef GAIT_LANES
#if !defined __GNUC__
#define GAIT_LANES 1
#elif defined __AVX512F__
#define GAIT_LANES 16
#elif defined __AVX__
#define GAIT_LANES 8
#elif defined __SSE2__ || defined __ARM_NEON
#define GAIT_LANES 4
#else
#define GAIT_LANES 1
#endif
#endif

#ifdef __GNUC__
#define GAIT_INLINE static inline __attribute__((always_inline, unused))
/* What was loaded before stays in registers: GCC would load weights anew for each vector they are multiplied with. */
#define GAIT_HOLD() __asm__ __volatile__("" ::: "memory")
#else
#define GAIT_INLINE static inline
#define GAIT_HOLD()
#endif

#if GAIT_LANES > 1
typedef float vec_lanes __attribute__((vector_size(GAIT_LANES * 4)));
#define VEC_EACH(r, value) for (int k = 0; k < GAIT_LANES; k++) (r)[k] = (value)
#define VEC_LANE(r) (r)[k]
#else
typedef float vec_lanes;
#define VEC_EACH(r, value) (r) = (value)
#define VEC_LANE(r) (r)
#endif

GAIT_INLINE vec_lanes vec_load(const float *from)
{
    vec_lanes r;
    memcpy(&r, from, sizeof r);
    return r;
}

GAIT_INLINE void vec_store(float *to, vec_lanes values) { memcpy(to, &values, sizeof values); }

GAIT_INLINE vec_lanes vec_fma(vec_lanes a, vec_lanes b, vec_lanes c)
{
    vec_lanes r;
    VEC_EACH(r, GAIT_FMA(VEC_LANE(a), VEC_LANE(b), VEC_LANE(c)));
    return r;
}

GAIT_INLINE vec_lanes vec_fma_scalar(vec_lanes a, float b, vec_lanes c)
{
    vec_lanes r;
    VEC_EACH(r, GAIT_FMA(VEC_LANE(a), b, VEC_LANE(c)));
    return r;
}

GAIT_INLINE float vec_larger(float a, float b) { return a > b ? a : b; }
GAIT_INLINE float vec_smaller(float a, float b) { return a < b ? a : b; }

GAIT_INLINE vec_lanes vec_at_least(vec_lanes values, float least)
{
    vec_lanes r;
    VEC_EACH(r, vec_larger(VEC_LANE(values), least));
    return r;
}

GAIT_INLINE vec_lanes vec_zero(void)
{
    vec_lanes r;
    VEC_EACH(r, 0.0f);
    return r;
}

GAIT_INLINE size_t vec_round_up(size_t count, size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

enum { VEC_MOST_SUMS = 8 };

/* sums[vectors][rows of the machine's lanes] += tile x, for `groups` registers of rows and up to four vectors at once:
 * both are constants where it is called. Columns of the tile lie `stride` apart, numbers of a vector `x_step`. */
GAIT_INLINE void vec_product(const int groups, const int vectors, const float *w, int stride, int columns,
                             const float *x, int x_step, int vector_step, vec_lanes sums[VEC_MOST_SUMS])
{
    vec_lanes s[VEC_MOST_SUMS], column[VEC_MOST_SUMS];
    for (int i = 0; i < groups * vectors; i++) s[i] = sums[i];
    for (int i = 0; i < columns; i++) {
        for (int g = 0; g < groups; g++) column[g] = vec_load(w + g * GAIT_LANES);
        if (vectors > 1) GAIT_HOLD();
        for (int v = 0; v < vectors; v++)
            for (int g = 0; g < groups; g++)
                s[v * groups + g] = vec_fma_scalar(column[g], x[v * vector_step], s[v * groups + g]);
        w += stride;
        x += x_step;
    }
    for (int i = 0; i < groups * vectors; i++) sums[i] = s[i];
}

/* sums[rows] += tile x for one vector; rows are those of the tile, a multiple of 6 or 8 registers: see `groups`. */
GAIT_INLINE void vec_add_product(const int groups, const float *w, int rows, int columns, const float *x, float *sums)
{
    for (int row = 0; row < rows; row += groups * GAIT_LANES) {
        vec_lanes s[VEC_MOST_SUMS];
        for (int g = 0; g < groups; g++) s[g] = vec_load(sums + row + g * GAIT_LANES);
        vec_product(groups, 1, w + row, rows, columns, x, 1, 0, s);
        for (int g = 0; g < groups; g++) vec_store(sums + row + g * GAIT_LANES, s[g]);
    }
}

/* The dot product of a multiple of 16 numbers. */
static inline float vec_dot(const float *a, const float *b, int count)
{
    float parts[16] = {0.0f};
    for (int k = 0; k < 16; k += GAIT_LANES) {
        vec_lanes sum = vec_load(parts + k);
        for (int i = k; i < count; i += 16) sum = vec_fma(vec_load(a + i), vec_load(b + i), sum);
        vec_store(parts + k, sum);
    }
    for (int width = 8; width > 0; width /= 2)
        for (int k = 0; k < width; k++) parts[k] += parts[k + width];
    return parts[0];
}

/* 2^x for |x| <= 127; 0 at -127. The polynomial runs through seven Chebyshev nodes of 2^f, |f| <= 1/2, and is right to
 * 3e-9 of its value; adding and subtracting 1.5 2^23 rounds to a whole number. */
GAIT_INLINE float vec_exp2(float x)
{
    const float round = 12582912.0f, whole = (x + round) - round, f = x - whole;
    float y = 0.000154614447f;
    y = GAIT_FMA(y, f, 0.00134004282f);
    y = GAIT_FMA(y, f, 0.00961805668f);
    y = GAIT_FMA(y, f, 0.0555032723f);
    y = GAIT_FMA(y, f, 0.240226509f);
    y = GAIT_FMA(y, f, 0.693147207f);
    y = GAIT_FMA(y, f, 1.0f);
    const uint32_t bits = (uint32_t)((int32_t)whole + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

#define VEC_LOG2E 1.44269504f

/* exp of numbers that are at most 0; exactly 0 below -88. */
GAIT_INLINE float vec_exp(float x) { return vec_exp2(vec_larger(x * VEC_LOG2E, -127.0f)); }

GAIT_INLINE float vec_sigmoid(float x)
{
    const float scaled = vec_smaller(vec_larger(x * -VEC_LOG2E, -127.0f), 127.0f);
    return 1.0f / (1.0f + vec_exp2(scaled));
}

/* Right to 1e-7 of 1 rather than of its value. */
GAIT_INLINE float vec_tanh(float x) { return GAIT_FMA(2.0f, vec_sigmoid(2.0f * x), -1.0f); }

#endif
