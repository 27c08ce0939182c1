/* A leg as a serial chain: one outward pass, and kinematics, torques and ground force from its result.
 *
 * Link frames are parallel to base_link where all joints are at zero, so that fixed transforms are folded away and a chain
 * is its axes and offsets. Everything is in base_link. src/gait/reference/chain.py has the equations. */
#include <math.h>
#include <string.h>

#include "core.h"

/* R times the rotation about a unit axis; most axes are those of the frame. */
static void turn_link(const double R[9], int kind, const double axis[3], double angle, double out[9])
{
    const double c = cos(angle), s = sin(angle), v = 1.0 - c, x = axis[0], y = axis[1], z = axis[2];
    if (kind == GAIT_ABOUT_ANY) {
        const double T[9] = {c + v * x * x,     v * x * y - s * z, v * x * z + s * y, v * x * y + s * z, c + v * y * y,
                             v * y * z - s * x, v * x * z - s * y, v * y * z + s * x, c + v * z * z};
        for (int i = 0; i < 9; i += 3)
            for (int j = 0; j < 3; j++) out[i + j] = R[i] * T[j] + R[i + 1] * T[3 + j] + R[i + 2] * T[6 + j];
        return;
    }
    /* About axis k: column k stays, those after it mix. */
    const int k = kind - GAIT_ABOUT_X, a = (k + 1) % 3, b = (k + 2) % 3;
    for (int i = 0; i < 9; i += 3) {
        const double first = R[i + a], second = R[i + b];
        out[i + k] = R[i + k];
        out[i + a] = c * first + s * second;
        out[i + b] = c * second - s * first;
    }
}

/* Links, joints and foot of a leg, and how fast each encoder moves and turns the foot. */
void leg_pass(const gait_robot *robot, int leg, const double *q, leg_pose *m)
{
    static const double level[9] = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
    const int begin = robot->link_start[leg], links = robot->link_start[leg + 1] - begin;
    const double *R = level;
    double at[3] = {0.0};
    m->links = links;
    m->joints = robot->leg_start[leg + 1] - robot->leg_start[leg];
    for (int s = 0; s < links; s++) {
        const int l = begin + s, kind = robot->link_kind[l];
        const double by = robot->ratio[l] * q[robot->link_joint[l]] + robot->shift[l];
        double *p = m->p[s], *z = m->z[s], step[3];
        rotate(R, robot->offsets[l], step);
        if (kind >= GAIT_ABOUT_X) for (int i = 0; i < 3; i++) z[i] = R[3 * i + kind - GAIT_ABOUT_X];
        else rotate(R, robot->axes[l], z);
        for (int i = 0; i < 3; i++) p[i] = at[i] + step[i];
        if (kind == GAIT_ALONG) {
            for (int i = 0; i < 3; i++) p[i] += by * z[i];
            memcpy(m->R[s], R, sizeof m->R[s]);
        } else {
            turn_link(R, kind, robot->axes[l], by, m->R[s]);
        }
        R = m->R[s];
        memcpy(at, p, sizeof at);
    }
    rotate(R, robot->feet[leg], m->foot);
    for (int i = 0; i < 3; i++) m->foot[i] += at[i];
    memset(m->J, 0, 3 * (size_t)m->joints * sizeof(double));
    memset(m->W, 0, 3 * (size_t)m->joints * sizeof(double));
    for (int s = 0; s < links; s++) {
        const int l = begin + s, slides = robot->link_kind[l] == GAIT_ALONG;
        const double ratio = robot->ratio[l], *z = m->z[s];
        const double lever[3] = {m->foot[0] - m->p[s][0], m->foot[1] - m->p[s][1], m->foot[2] - m->p[s][2]};
        double *J = m->J + 3 * robot->link_joint[l], *W = m->W + 3 * robot->link_joint[l], moves[3];
        cross(z, lever, moves);
        for (int i = 0; i < 3; i++) {
            J[i] += ratio * (slides ? z[i] : moves[i]);
            W[i] += slides ? 0.0 : ratio * z[i];
        }
    }
}

/* J x or W x, stored by columns (joints, 3). */
void leg_sum(const double *columns, int joints, const double *x, double out[3])
{
    out[0] = out[1] = out[2] = 0.0;
    for (int j = 0; j < joints; j++)
        for (int i = 0; i < 3; i++) out[i] += columns[3 * j + i] * x[j];
}

/* Velocity of a foot as seen from a point that moves with the base: J dq + w x p. A foot at rest measures the base
 * velocity as the negative of this. */
void leg_foot_velocity(const leg_pose *m, const double *dq, const double omega_b[3], double out[3])
{
    double turning[3];
    leg_sum(m->J, m->joints, dq, out);
    cross(omega_b, m->foot, turning);
    for (int i = 0; i < 3; i++) out[i] += turning[i];
}

/* Angular velocity of the foot relative to the world, in base axes. */
void leg_foot_rate(const leg_pose *m, const double *dq, const double omega_b[3], double out[3])
{
    leg_sum(m->W, m->joints, dq, out);
    for (int i = 0; i < 3; i++) out[i] += omega_b[i];
}

/* Force and moment that move a link, about its centre of mass, from its own motion and that of its joint; the lever is
 * from the joint to the centre of mass. */
static void link_load(const double *inertial, const double R[9], const double w[3], const double alpha[3],
                      const double a[3], double lever[3], double force[3], double moment[3])
{
    const double *I = inertial + 4;
    double w_l[3], alpha_l[3], own[3], spin[3], turning[3], swing[3], lean[3];
    rotate(R, inertial + 1, lever);
    cross(w, lever, lean);
    cross(w, lean, swing);
    cross(alpha, lever, turning);
    for (int i = 0; i < 3; i++) force[i] = inertial[0] * (a[i] + turning[i] + swing[i]);
    rotate_back(R, w, w_l);
    rotate_back(R, alpha, alpha_l);
    const double I_l[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
    rotate(I_l, w_l, own);
    cross(w_l, own, spin);
    rotate(I_l, alpha_l, own);
    for (int i = 0; i < 3; i++) own[i] += spin[i];
    rotate(R, own, moment);
}

/* Joint torques of a leg that moves freely on a base that does not turn, by Newton and Euler. gravity_b is gravity less the
 * base's own acceleration, if known. */
void leg_torque(const gait_robot *robot, int leg, const leg_pose *m, const double *dq, const double *ddq,
                const double gravity_b[3], double *torque)
{
    const int begin = robot->link_start[leg];
    const double *armature = robot->armature + robot->leg_start[leg];
    double w[3] = {0.0}, alpha[3] = {0.0}, a[3] = {-gravity_b[0], -gravity_b[1], -gravity_b[2]};
    double lever[GAIT_LEG_LINKS][3], force[GAIT_LEG_LINKS][3], moment[GAIT_LEG_LINKS][3];
    for (int s = 0; s < m->links; s++) {
        const int l = begin + s, slides = robot->link_kind[l] == GAIT_ALONG;
        const double rate = robot->ratio[l] * dq[robot->link_joint[l]], acc = robot->ratio[l] * ddq[robot->link_joint[l]];
        const double *z = m->z[s];
        double carried[3];
        if (s > 0) {
            const double r[3] = {m->p[s][0] - m->p[s - 1][0], m->p[s][1] - m->p[s - 1][1], m->p[s][2] - m->p[s - 1][2]};
            double turning[3], lean[3], swing[3];
            cross(alpha, r, turning);
            cross(w, r, lean);
            cross(w, lean, swing);
            for (int i = 0; i < 3; i++) a[i] += turning[i] + swing[i];
        }
        cross(w, z, carried);
        for (int i = 0; i < 3; i++) {
            if (slides) {
                a[i] += z[i] * acc + 2.0 * carried[i] * rate;
            } else {
                alpha[i] += z[i] * acc + carried[i] * rate;
                w[i] += z[i] * rate;
            }
        }
        link_load(robot->inertial[l], m->R[s], w, alpha, a, lever[s], force[s], moment[s]);
    }
    for (int j = 0; j < m->joints; j++) torque[j] = armature[j] * ddq[j];
    double carried[3] = {0.0}, about[3] = {0.0}; /* by the links behind: force, moment about this joint */
    for (int s = m->links - 1; s >= 0; s--) {
        const int l = begin + s;
        double own[3], behind[3];
        if (s + 1 < m->links) {
            const double r[3] = {m->p[s + 1][0] - m->p[s][0], m->p[s + 1][1] - m->p[s][1], m->p[s + 1][2] - m->p[s][2]};
            cross(r, carried, behind);
            for (int i = 0; i < 3; i++) about[i] += behind[i];
        }
        cross(lever[s], force[s], own);
        for (int i = 0; i < 3; i++) {
            about[i] += moment[s][i] + own[i];
            carried[i] += force[s][i];
        }
        const double *load = robot->link_kind[l] == GAIT_ALONG ? carried : about, *z = m->z[s];
        torque[robot->link_joint[l]] += robot->ratio[l] * (z[0] * load[0] + z[1] * load[1] + z[2] * load[2]);
    }
}

/* Of three joints and a round foot: -J'^-1 (tau - tau_free). */
static int three_joint_force(const double *J, const double *t, double force_b[3])
{
    const double a = J[0], b = J[1], c = J[2], d = J[3], e = J[4], f = J[5], g = J[6], h = J[7], i = J[8];
    const double det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g);
    if (!(fabs(det) > 1e-5 && isfinite(t[0] + t[1] + t[2]))) {
        force_b[0] = force_b[1] = force_b[2] = 0.0;
        return 0;
    }
    force_b[0] = ((e * i - f * h) * t[0] + (c * h - b * i) * t[1] + (b * f - c * e) * t[2]) / det;
    force_b[1] = ((f * g - d * i) * t[0] + (a * i - c * g) * t[1] + (c * d - a * f) * t[2]) / det;
    force_b[2] = ((d * h - e * g) * t[0] + (b * g - a * h) * t[1] + (a * e - b * d) * t[2]) / det;
    return 1;
}

/* Force of the ground on the foot from torques less those of the free leg. Of three joints it is exact; of others the least
 * squares of J' f = tau_free - tau, where a sole transmits a moment too, as a force at LEVER; damped by DAMPING, both in leg
 * lengths, so that components that torques do not determine are zero. Returns 0, with a wrench of zero, where they determine
 * none. The wrench is the force, and the moment about the centre of a sole. */
static const double LEVER = 0.1, DAMPING = 0.01;
int leg_ground_wrench(const gait_robot *robot, int leg, const leg_pose *m, const double *tau, const double *tau_free,
                      double wrench_b[6])
{
    const int n = m->joints, first = robot->shared[leg], flat = robot->corner_count[leg] > 0, rows = flat ? 6 : 3;
    const double lever = LEVER * robot->leg_length, damping = DAMPING * robot->leg_length;
    double t[GAIT_LEG_LINKS], A[GAIT_LEG_LINKS][6], S[6][6], x[6], total = 0.0;
    for (int j = 0; j < n; j++) total += t[j] = tau_free[j] - tau[j];
    if (n == 3 && !first && !flat) return three_joint_force(m->J, t, wrench_b);
    memset(wrench_b, 0, 6 * sizeof(double));
    if (!isfinite(total)) return 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < 3; i++) {
            A[j][i] = m->J[3 * j + i];
            A[j][3 + i] = lever * m->W[3 * j + i];
        }
    for (int r = 0; r < rows; r++) {
        x[r] = 0.0;
        for (int j = first; j < n; j++) x[r] += A[j][r] * t[j];
        for (int k = 0; k <= r; k++) {
            S[r][k] = r == k ? damping * damping : 0.0;
            for (int j = first; j < n; j++) S[r][k] += A[j][r] * A[j][k];
        }
    }
    for (int r = 0; r < rows; r++) { /* S = L L', then both triangles */
        for (int k = 0; k <= r; k++) {
            for (int i = 0; i < k; i++) S[r][k] -= S[r][i] * S[k][i];
            S[r][k] = r == k ? sqrt(S[r][r]) : S[r][k] / S[k][k];
        }
        for (int k = 0; k < r; k++) x[r] -= S[r][k] * x[k];
        x[r] /= S[r][r];
    }
    for (int r = rows - 1; r >= 0; r--) {
        for (int k = r + 1; k < rows; k++) x[r] -= S[k][r] * x[k];
        x[r] /= S[r][r];
    }
    memcpy(wrench_b, x, (size_t)rows * sizeof(double));
    for (int i = 3; i < rows; i++) wrench_b[i] *= lever;
    return 1;
}

/* The pass and one of its results, for callers outside the core. */
void gait_leg_forward(const gait_robot *robot, int leg, const double *q, double *foot_b, double *jacobian, double *angular)
{
    leg_pose m;
    leg_pass(robot, leg, q, &m);
    memcpy(foot_b, m.foot, sizeof m.foot);
    memcpy(jacobian, m.J, 3 * (size_t)m.joints * sizeof(double));
    memcpy(angular, m.W, 3 * (size_t)m.joints * sizeof(double));
}

void gait_leg_torque(const gait_robot *robot, int leg, const double *q, const double *dq, const double *ddq,
                     const double *gravity_b, double *torque)
{
    leg_pose m;
    leg_pass(robot, leg, q, &m);
    leg_torque(robot, leg, &m, dq, ddq, gravity_b, torque);
}

int gait_leg_force(const gait_robot *robot, int leg, const double *q, const double *tau, const double *tau_free,
                   double *force_b)
{
    leg_pose m;
    double wrench_b[6];
    leg_pass(robot, leg, q, &m);
    const int known = leg_ground_wrench(robot, leg, &m, tau, tau_free, wrench_b);
    memcpy(force_b, wrench_b, 3 * sizeof(double));
    return known;
}

/* Torque of a joint's PD loop. */
double pd_torque(const gait_robot *robot, int joint, double e, double dq)
{
    const double limit = robot->torque_limit[joint], wanted = robot->kp[joint] * e - robot->kd[joint] * dq;
    return larger(smaller(wanted, limit), -limit);
}
