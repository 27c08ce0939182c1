/* SO(3) and SE_k(3): the exponential and its integrals, quaternions. */
#include <math.h>

#include "core.h"

/* sin(t)/t, (1 - cos t)/t^2, (t - sin t)/t^3 and (t^2/2 + cos t - 1)/t^4, exact to rounding for every angle t >= 0. Below
 * half a radian the closed forms lose digits to cancellation; their series do not. */
void lie_coefficients(double angle, double c[4])
{
    const double t2 = angle * angle;
    if (angle < 0.5) {
        static const double over[14] = {1.0 / 6.0,  1.0 / 12.0,  1.0 / 20.0,  1.0 / 30.0,  1.0 / 42.0,
                                        1.0 / 56.0, 1.0 / 72.0,  1.0 / 90.0,  1.0 / 110.0, 1.0 / 132.0,
                                        1.0 / 156.0, 1.0 / 182.0, 1.0 / 210.0, 1.0 / 240.0};
        double s[4] = {1.0, 1.0, 1.0, 1.0};
        for (int n = t2 < 0.01 ? 3 : 5; n >= 0; n--)
            for (int k = 0; k < 4; k++) s[k] = 1.0 - t2 * over[2 * n + k] * s[k];
        c[0] = s[0];
        c[1] = s[1] / 2.0;
        c[2] = s[2] / 6.0;
        c[3] = s[3] / 24.0;
        return;
    }
    const double sine = sin(angle), half = sin(0.5 * angle);
    c[0] = sine / angle;
    c[1] = 2.0 * half * half / t2;
    c[2] = (angle - sine) / (t2 * angle);
    c[3] = (0.5 * t2 - 2.0 * half * half) / (t2 * t2);
}

/* (one I + first w^ + second w^ w^) x: every function of a rotation vector here, without its matrix. */
void lie_series(const double w[3], double one, double first, double second, const double x[3], double out[3])
{
    const double a = w[1] * x[2] - w[2] * x[1], b = w[2] * x[0] - w[0] * x[2], c = w[0] * x[1] - w[1] * x[0];
    out[0] = one * x[0] + (first * a + second * (w[1] * c - w[2] * b));
    out[1] = one * x[1] + (first * b + second * (w[2] * a - w[0] * c));
    out[2] = one * x[2] + (first * c + second * (w[0] * b - w[1] * a));
}

/* One Newton step back onto the group, so that rounding cannot build up over hours. */
void lie_orthonormalise(double R[9])
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

/* Unit quaternion with w >= 0, from the largest component so that nothing cancels. */
void lie_quat_from_rotation(const double R[9], double quat[4])
{
    const double trace = R[0] + R[4] + R[8];
    const double square[4] = {1.0 + trace, 1.0 + 2.0 * R[0] - trace, 1.0 + 2.0 * R[4] - trace, 1.0 + 2.0 * R[8] - trace};
    const double wx = R[7] - R[5], wy = R[2] - R[6], wz = R[3] - R[1];
    const double xy = R[3] + R[1], xz = R[2] + R[6], yz = R[7] + R[5];
    const double rows[4][4] = {
        {square[0], wx, wy, wz}, {wx, square[1], xy, xz}, {wy, xy, square[2], yz}, {wz, xz, yz, square[3]}};
    int largest = 0;
    for (int k = 1; k < 4; k++)
        if (square[k] > square[largest]) largest = k;
    const double *row = rows[largest];
    double norm = sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2] + row[3] * row[3]);
    if (row[0] < 0.0) norm = -norm;
    for (int k = 0; k < 4; k++) quat[k] = row[k] / norm;
}

void lie_rotation_from_quat(const double quat[4], double R[9])
{
    const double w = quat[0], x = quat[1], y = quat[2], z = quat[3];
    R[0] = 1 - 2 * (y * y + z * z);
    R[1] = 2 * (x * y - w * z);
    R[2] = 2 * (x * z + w * y);
    R[3] = 2 * (x * y + w * z);
    R[4] = 1 - 2 * (x * x + z * z);
    R[5] = 2 * (y * z - w * x);
    R[6] = 2 * (x * z - w * y);
    R[7] = 2 * (y * z + w * x);
    R[8] = 1 - 2 * (x * x + y * y);
}
