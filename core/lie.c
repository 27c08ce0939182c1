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
