/* Vectors of three, matrices of three rows, row by row, and functions of rotation vectors.
 *
 * Short ones are inline: a call would pass numbers through memory, where a step spends more time than on their arithmetic.
 * A result may be one of the arguments of `cross` and the vector of `rotate` and `rotate_back`. */
#ifndef GAIT_LIE_H
#define GAIT_LIE_H

/* The larger of two numbers, neither nan: one instruction, where fmax is a call. */
static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* a x b. */
static inline void cross(const double a[3], const double b[3], double out[3])
{
    const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    out[0] = x;
    out[1] = y;
    out[2] = z;
}

/* R x. */
static inline void rotate(const double R[9], const double x[3], double out[3])
{
    const double a = x[0], b = x[1], c = x[2];
    for (int i = 0; i < 3; i++) out[i] = R[3 * i] * a + R[3 * i + 1] * b + R[3 * i + 2] * c;
}

/* R' x. */
static inline void rotate_back(const double R[9], const double x[3], double out[3])
{
    const double a = x[0], b = x[1], c = x[2];
    for (int i = 0; i < 3; i++) out[i] = R[i] * a + R[3 + i] * b + R[6 + i] * c;
}

/* A B. */
static inline void multiply(const double A[9], const double B[9], double out[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j];
}

/* A B'. */
static inline void multiply_back(const double A[9], const double B[9], double out[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = A[3 * i] * B[3 * j] + A[3 * i + 1] * B[3 * j + 1] + A[3 * i + 2] * B[3 * j + 2];
}

/* (one I + first w^ + second w^ w^) x: every function of a rotation vector here, without its matrix. */
static inline void lie_series(const double w[3], double one, double first, double second, const double x[3], double out[3])
{
    const double a = w[1] * x[2] - w[2] * x[1], b = w[2] * x[0] - w[0] * x[2], c = w[0] * x[1] - w[1] * x[0];
    out[0] = one * x[0] + (first * a + second * (w[1] * c - w[2] * b));
    out[1] = one * x[1] + (first * b + second * (w[2] * a - w[0] * c));
    out[2] = one * x[2] + (first * c + second * (w[0] * b - w[1] * a));
}

/* One Newton step back onto the group, so that rounding cannot build up over hours. */
static inline void lie_orthonormalise(double R[9])
{
    double e[3][3];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) e[i][j] = e[j][i] = R[i] * R[j] + R[3 + i] * R[3 + j] + R[6 + i] * R[6 + j];
    for (int i = 0; i < 3; i++) {
        const double r[3] = {R[3 * i], R[3 * i + 1], R[3 * i + 2]};
        for (int j = 0; j < 3; j++)
            R[3 * i + j] = 1.5 * r[j] - 0.5 * (r[0] * e[0][j] + r[1] * e[1][j] + r[2] * e[2][j]);
    }
}

void lie_coefficients(double angle, double c[4]);
void lie_quat_from_rotation(const double R[9], double quat[4]);
void lie_rotation_from_quat(const double quat[4], double R[9]);

#endif
