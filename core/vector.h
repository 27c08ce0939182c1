/* Vector arithmetic: products of matrices with vectors, exp, sigmoid and tanh in the networks' float32; rows of the
 * filter's covariance in float64.
 *
 * A matrix is cut into tiles of rows, stored column by column, so that a product reads memory in order while the sums of a
 * tile stay in registers. GCC keeps plain arrays in registers or not, depending on version and flags (the same product
 * takes 1.4 or 27 us), so the sums are of the compilers' own vector type, as wide as the registers of the machine. Without vector registers it is a float.
 */
#ifndef GAIT_VECTOR_H
#define GAIT_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined __GNUC__ && defined __FMA__
#include <immintrin.h>
#elif defined __GNUC__ && defined __ARM_NEON && defined __ARM_FEATURE_FMA
#include <arm_neon.h>
#endif

/* Fused where the machine has it, and written out, so that results do not depend on what a compiler contracts. */
#if defined __FMA__ || defined __ARM_FEATURE_FMA
#define GAIT_FUSES
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
/* Products and stages of a network are not inlined: within other code GCC runs out of registers for sums and counters. */
#define GAIT_APART static __attribute__((noinline))
/* Keeps loaded weights in registers: GCC would load them again for each vector they are multiplied with. */
#define GAIT_HOLD() __asm__ __volatile__("" ::: "memory")
#else
#define GAIT_INLINE static inline
#define GAIT_APART static
#define GAIT_HOLD()
#endif

/* GCC must unroll loops over registers at once, before it would put them into memory, and loops over arrays not before
 * it has turned them into vectors. Clang needs no hint. */
#if defined __GNUC__ && !defined __clang__
#define GAIT_UNROLL _Pragma("GCC unroll 16")
#define GAIT_VECTORISE _Pragma("GCC unroll 1")
#else
#define GAIT_UNROLL
#define GAIT_VECTORISE
#endif

#if GAIT_LANES > 1
typedef float vec_lanes __attribute__((vector_size(GAIT_LANES * 4)));
#else
typedef float vec_lanes;
#endif

/* From and to any address. */
GAIT_INLINE vec_lanes vec_load(const float *from)
{
    vec_lanes r;
    memcpy(&r, from, sizeof r);
    return r;
}
GAIT_INLINE void vec_store(float *to, vec_lanes values) { memcpy(to, &values, sizeof values); }
GAIT_INLINE vec_lanes vec_zero(void) { return (vec_lanes){0.0f}; }

/* a b + c of registers. C has no vector operator that is fused, and of a loop over the lanes GCC makes one instruction or one
 * for each lane, depending on the vector width that it prefers for the processor: for some with AVX-512 a step took 17 times as
 * long. So the intrinsic is named here; a width without one is computed lane by lane. */
GAIT_INLINE vec_lanes vec_fma(vec_lanes a, vec_lanes b, vec_lanes c)
{
#if !defined GAIT_FUSES
    return a * b + c;
#elif GAIT_LANES == 16 && defined __AVX512F__
    return (vec_lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif GAIT_LANES == 8 && defined __FMA__
    return (vec_lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif GAIT_LANES == 4 && defined __FMA__
    return (vec_lanes)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#elif GAIT_LANES == 4 && defined __ARM_NEON
    return (vec_lanes)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif GAIT_LANES > 1
    for (int k = 0; k < GAIT_LANES; k++) c[k] = GAIT_FMA(a[k], b[k], c[k]);
    return c;
#else
    return GAIT_FMA(a, b, c);
#endif
}

/* The difference is b in every lane. */
GAIT_INLINE vec_lanes vec_fma_scalar(vec_lanes a, float b, vec_lanes c) { return vec_fma(a, b - vec_zero(), c); }

/* The same for the filter's doubles. */
#if GAIT_LANES > 1
enum { VEC_DOUBLES = GAIT_LANES / 2 };
typedef double vec_doubles __attribute__((vector_size(GAIT_LANES * 4)));
#else
enum { VEC_DOUBLES = 1 };
typedef double vec_doubles;
#endif
GAIT_INLINE vec_doubles vec_load_doubles(const double *from)
{
    vec_doubles r;
    memcpy(&r, from, sizeof r);
    return r;
}
GAIT_INLINE void vec_store_doubles(double *to, vec_doubles values) { memcpy(to, &values, sizeof values); }
GAIT_INLINE vec_doubles vec_zero_doubles(void) { return (vec_doubles){0.0}; }

GAIT_INLINE vec_doubles vec_fma_double(vec_doubles a, double b, vec_doubles c)
{
#if GAIT_LANES == 16 && defined __AVX512F__
    return (vec_doubles)_mm512_fmadd_pd((__m512d)a, _mm512_set1_pd(b), (__m512d)c);
#elif GAIT_LANES == 8 && defined __FMA__
    return (vec_doubles)_mm256_fmadd_pd((__m256d)a, _mm256_set1_pd(b), (__m256d)c);
#elif GAIT_LANES == 4 && defined __FMA__
    return (vec_doubles)_mm_fmadd_pd((__m128d)a, _mm_set1_pd(b), (__m128d)c);
#elif GAIT_LANES > 1 && defined GAIT_FUSES
    for (int k = 0; k < VEC_DOUBLES; k++) c[k] = __builtin_fma(a[k], b, c[k]);
    return c;
#elif defined __FP_FAST_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

GAIT_INLINE float vec_larger(float a, float b) { return a > b ? a : b; }
GAIT_INLINE float vec_smaller(float a, float b) { return a < b ? a : b; }

GAIT_INLINE size_t vec_round_up(size_t count, size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

enum { VEC_MOST_SUMS = 12 };

/* sums[vectors][rows of the machine's lanes] += tile x, for `groups` registers of rows and up to four vectors at once:
 * both are constants where it is called. Columns of the tile are `stride` apart, numbers of a vector `x_step`. */
GAIT_INLINE void vec_product(const int groups, const int vectors, const float *w, int stride, int columns,
                             const float *x, int x_step, int vector_step, vec_lanes sums[VEC_MOST_SUMS])
{
    vec_lanes s[VEC_MOST_SUMS], column[VEC_MOST_SUMS];
    GAIT_UNROLL for (int i = 0; i < groups * vectors; i++) s[i] = sums[i];
    for (int i = 0; i < columns; i++) {
        GAIT_UNROLL for (int g = 0; g < groups; g++) column[g] = vec_load(w + g * GAIT_LANES);
        if (vectors > 1) GAIT_HOLD();
        GAIT_UNROLL for (int v = 0; v < vectors; v++)
            GAIT_UNROLL for (int g = 0; g < groups; g++)
                s[v * groups + g] = vec_fma_scalar(column[g], x[v * vector_step], s[v * groups + g]);
        w += stride;
        x += x_step;
    }
    GAIT_UNROLL for (int i = 0; i < groups * vectors; i++) sums[i] = s[i];
}

/* out[rows] = begin[rows] + tile x for one vector; rows are a multiple of `groups` registers. */
GAIT_INLINE void vec_tile(const int groups, const float *begin, const float *w, int rows, int columns, const float *x,
                          float *out)
{
    for (int row = 0; row < rows; row += groups * GAIT_LANES) {
        vec_lanes s[VEC_MOST_SUMS];
        GAIT_UNROLL for (int g = 0; g < groups; g++) s[g] = vec_load(begin + row + g * GAIT_LANES);
        vec_product(groups, 1, w + row, rows, columns, x, 1, 0, s);
        GAIT_UNROLL for (int g = 0; g < groups; g++) vec_store(out + row + g * GAIT_LANES, s[g]);
    }
}

/* A multiple of 16 numbers. */
GAIT_INLINE void vec_copy(float *to, const float *from, int count)
{
    for (int i = 0; i < count; i += GAIT_LANES) vec_store(to + i, vec_load(from + i));
}

/* The dot product of a multiple of 16 numbers. */
GAIT_INLINE float vec_dot(const float *a, const float *b, int count)
{
    float parts[16], sums[4];
    GAIT_UNROLL for (int k = 0; k < 16; k += GAIT_LANES) {
        vec_lanes sum = vec_zero();
        for (int i = k; i < count; i += 16) sum = vec_fma(vec_load(a + i), vec_load(b + i), sum);
        vec_store(parts + k, sum);
    }
    for (int k = 0; k < 4; k++) sums[k] = (parts[k] + parts[k + 8]) + (parts[k + 4] + parts[k + 12]);
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
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

/* The functions below work on arrays, and clamp in loops of their own: together with the rest GCC would branch. */

/* exp of numbers that are at most 0; exactly 0 below -88. */
GAIT_INLINE void vec_exp(float *restrict x, int count)
{
    GAIT_VECTORISE for (int j = 0; j < count; j++) x[j] = vec_larger(x[j] * VEC_LOG2E, -127.0f);
    GAIT_VECTORISE for (int j = 0; j < count; j++) x[j] = vec_exp2(x[j]);
}

/* 1 / (1 + exp(-slope x)). */
GAIT_INLINE void vec_sigmoid(float *restrict x, int count, float slope)
{
    GAIT_VECTORISE for (int j = 0; j < count; j++) x[j] = vec_larger(x[j] * (-slope * VEC_LOG2E), -127.0f);
    GAIT_VECTORISE for (int j = 0; j < count; j++) x[j] = vec_smaller(x[j], 127.0f);
    GAIT_VECTORISE for (int j = 0; j < count; j++) x[j] = 1.0f / (1.0f + vec_exp2(x[j]));
}

/* Right to 1e-7 of 1 rather than of its value. */
GAIT_INLINE void vec_tanh(float *restrict x, int count)
{
    vec_sigmoid(x, count, 2.0f);
    GAIT_VECTORISE for (int j = 0; j < count; j++) x[j] = GAIT_FMA(2.0f, x[j], -1.0f);
}

#endif
