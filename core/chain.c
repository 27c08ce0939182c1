/* Kinematics and dynamics of a leg with an abduction joint (about x) and two pitch joints (about y), in closed form.
 *
 * Feet are the centres of their spheres, in the base frame. */
#include <math.h>

#include "core.h"

/* Foot position and its Jacobian. */
void leg_forward(const gait_robot *robot, int leg, const double *q, double foot_b[3], double J[9])
{
    const double *s = robot->signs[leg], *base = robot->offsets[leg][0], *hip = robot->offsets[leg][1];
    const double *thigh = robot->offsets[leg][2], *calf = robot->offsets[leg][3];
    const double a_t = s[1] * q[1], a_c = a_t + s[2] * q[2];
    const double c_h = cos(s[0] * q[0]), s_h = sin(s[0] * q[0]);
    const double c_t = cos(a_t), s_t = sin(a_t), c_c = cos(a_c), s_c = sin(a_c);
    /* In the hip link's frame: thigh and calf offsets turned about y. */
    const double tx = c_t * thigh[0] + s_t * thigh[2], tz = -s_t * thigh[0] + c_t * thigh[2];
    const double kx = c_c * calf[0] + s_c * calf[2], kz = -s_c * calf[0] + c_c * calf[2];
    const double x = hip[0] + tx + kx, y = hip[1] + thigh[1] + calf[1], z = hip[2] + tz + kz;
    foot_b[0] = base[0] + x;
    foot_b[1] = base[1] + c_h * y - s_h * z;
    foot_b[2] = base[2] + s_h * y + c_h * z;
    /* A rotation about y by da moves (x, z) by (z, -x) da. */
    const double jx = tz + kz, jz = -(tx + kx);
    J[0] = 0.0;
    J[3] = s[0] * (-s_h * y - c_h * z);
    J[6] = s[0] * (c_h * y - s_h * z);
    J[1] = s[1] * jx;
    J[4] = -s[1] * s_h * jz;
    J[7] = s[1] * c_h * jz;
    J[2] = s[2] * kz;
    J[5] = s[2] * s_h * kx;
    J[8] = -s[2] * c_h * kx;
}

/* Velocity of a foot as seen from a point that moves with the base: J dq + w x p. A foot at rest measures the base
 * velocity as the negative of this. */
void leg_foot_velocity(const double J[9], const double *dq, const double omega_b[3], const double foot_b[3],
                       double out[3])
{
    double turning[3];
    rotate(J, dq, out);
    cross(omega_b, foot_b, turning);
    for (int i = 0; i < 3; i++) out[i] += turning[i];
}

/* Angular velocity of the last link relative to the world, in base axes. */
void leg_calf_rate(const gait_robot *robot, int leg, const double *q, const double *dq, const double omega_b[3],
                   double out[3])
{
    const double *s = robot->signs[leg], angle = s[0] * q[0], pitch_rate = s[1] * dq[1] + s[2] * dq[2];
    out[0] = omega_b[0] + s[0] * dq[0];
    out[1] = omega_b[1] + cos(angle) * pitch_rate;
    out[2] = omega_b[2] + sin(angle) * pitch_rate;
}

/* Moment about x and y that turns a link about its own centre of mass: I alpha + w x I w. */
static void spin_moment(const double *link, double c, double s, double hip_rate, double hip_acc, double rate, double acc,
                        double moment[2])
{
    const double xx = link[4], yy = link[5], zz = link[6], xy = link[7], xz = link[8], yz = link[9];
    /* Rates in the link's own axes; the last part of the acceleration is the pitch axis being carried by the hip. */
    const double wx = c * hip_rate, wy = rate, wz = s * hip_rate;
    const double ax = c * hip_acc - s * hip_rate * rate, ay = acc, az = s * hip_acc + c * hip_rate * rate;
    const double hx = xx * wx + xy * wy + xz * wz, hy = xy * wx + yy * wy + yz * wz, hz = xz * wx + yz * wy + zz * wz;
    const double nx = xx * ax + xy * ay + xz * az + wy * hz - wz * hy;
    const double nz = xz * ax + yz * ay + zz * az + wx * hy - wy * hx;
    moment[0] = c * nx + s * nz;
    moment[1] = xy * ax + yy * ay + yz * az + wz * hx - wx * hz;
}

/* Joint torques of a leg that moves freely on a base that does not turn. Everything is in the frame that turns with the hip
 * link: there thigh and calf are a planar double pendulum in x and z, carried by a rotation about x. gravity_b is
 * gravity less the base's own acceleration, if known. */
void leg_torque(const gait_robot *robot, int leg, const double *q, const double *dq, const double *ddq,
                const double gravity_b[3], double torque[3])
{
    const double *sign = robot->signs[leg], *hip = robot->offsets[leg][1], *shank = robot->offsets[leg][2];
    const double *link0 = robot->inertial[leg][0], *link1 = robot->inertial[leg][1], *link2 = robot->inertial[leg][2];
    const double *armature = robot->armature + robot->leg_start[leg];
    const double c_h = cos(sign[0] * q[0]), s_h = sin(sign[0] * q[0]);
    const double thigh_angle = sign[1] * q[1], calf_angle = thigh_angle + sign[2] * q[2];
    const double c_t = cos(thigh_angle), s_t = sin(thigh_angle), c_c = cos(calf_angle), s_c = sin(calf_angle);
    const double hip_rate = sign[0] * dq[0], hip_acc = sign[0] * ddq[0];
    const double w1 = sign[1] * dq[1], e1 = sign[1] * ddq[1];
    const double w2 = w1 + sign[2] * dq[2], e2 = e1 + sign[2] * ddq[2];
    const double gx = gravity_b[0], gy = c_h * gravity_b[1] + s_h * gravity_b[2];
    const double gz = -s_h * gravity_b[1] + c_h * gravity_b[2];
    double n1[2], n2[2];

    /* In the plane: thigh joint to its centre of mass, thigh to calf joint, calf joint to its centre of mass. */
    const double tx = c_t * link1[1] + s_t * link1[3], tz = -s_t * link1[1] + c_t * link1[3];
    const double kx = c_t * shank[0] + s_t * shank[2], kz = -s_t * shank[0] + c_t * shank[2];
    const double cx = c_c * link2[1] + s_c * link2[3], cz = -s_c * link2[1] + c_c * link2[3];
    /* Centres of mass, their velocities along z and their accelerations relative to the hip frame. */
    const double y1 = hip[1] + link1[2], z1 = hip[2] + tz, y2 = hip[1] + shank[1] + link2[2], z2 = hip[2] + kz + cz;
    const double vz1 = -w1 * tx, vz2 = -w1 * kx - w2 * cx;
    const double ax1 = e1 * tz - w1 * w1 * tx, az1 = -e1 * tx - w1 * w1 * tz;
    const double ax2 = e1 * kz - w1 * w1 * kx + e2 * cz - w2 * w2 * cx;
    const double az2 = -e1 * kx - w1 * w1 * kz - e2 * cx - w2 * w2 * cz;
    /* Forces: mass times (relative + Coriolis + Euler + centripetal acceleration - gravity). */
    const double hip2 = hip_rate * hip_rate, m0 = link0[0], m1 = link1[0], m2 = link2[0];
    const double fy0 = m0 * (-hip_acc * link0[3] - hip2 * link0[2] - gy);
    const double fz0 = m0 * (hip_acc * link0[2] - hip2 * link0[3] - gz);
    const double fx1 = m1 * (ax1 - gx), fy1 = m1 * (-2.0 * hip_rate * vz1 - hip_acc * z1 - hip2 * y1 - gy);
    const double fz1 = m1 * (az1 + hip_acc * y1 - hip2 * z1 - gz);
    const double fx2 = m2 * (ax2 - gx), fy2 = m2 * (-2.0 * hip_rate * vz2 - hip_acc * z2 - hip2 * y2 - gy);
    const double fz2 = m2 * (az2 + hip_acc * y2 - hip2 * z2 - gz);
    spin_moment(link1, c_t, s_t, hip_rate, hip_acc, w1, e1, n1);
    spin_moment(link2, c_c, s_c, hip_rate, hip_acc, w2, e2, n2);

    const double about_x = link0[4] * hip_acc + n1[0] + n2[0]
        + (link0[2] * fz0 - link0[3] * fy0 + y1 * fz1 - z1 * fy1 + y2 * fz2 - z2 * fy2);
    const double at_calf = n2[1] + cz * fx2 - cx * fz2;
    const double at_thigh = at_calf + n1[1] + tz * fx1 - tx * fz1 + kz * fx2 - kx * fz2;
    torque[0] = sign[0] * about_x + armature[0] * ddq[0];
    torque[1] = sign[1] * at_thigh + armature[1] * ddq[1];
    torque[2] = sign[2] * at_calf + armature[2] * ddq[2];
}

/* Force of the ground on the foot: -J'^-1 (tau - tau_free). Returns 0, with a force of zero, where the leg is stretched
 * out straight and torques say nothing. */
int leg_ground_force(const double J[9], const double *tau, const double *tau_free, double force_b[3])
{
    const double a = J[0], b = J[3], c = J[6], d = J[1], e = J[4], f = J[7], g = J[2], h = J[5], i = J[8];
    const double t0 = tau_free[0] - tau[0], t1 = tau_free[1] - tau[1], t2 = tau_free[2] - tau[2];
    const double det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
    if (!(fabs(det) > 1e-5 && isfinite(t0 + t1 + t2))) {
        force_b[0] = force_b[1] = force_b[2] = 0.0;
        return 0;
    }
    force_b[0] = ((e * i - f * h) * t0 + (c * h - b * i) * t1 + (b * f - c * e) * t2) / det;
    force_b[1] = ((f * g - d * i) * t0 + (a * i - c * g) * t1 + (c * d - a * f) * t2) / det;
    force_b[2] = ((d * h - e * g) * t0 + (b * g - a * h) * t1 + (a * e - b * d) * t2) / det;
    return 1;
}

/* What a joint's PD loop makes of its tracking error. */
double pd_torque(const gait_robot *robot, int joint, double e, double dq)
{
    const double limit = robot->torque_limit[joint], wanted = robot->kp[joint] * e - robot->kd[joint] * dq;
    return fmax(-limit, fmin(limit, wanted));
}
