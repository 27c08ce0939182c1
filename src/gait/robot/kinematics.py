"""Closed-form kinematics and inverse dynamics of legs with an abduction joint (about x) and two pitch joints (about y).

`offsets` (4, 3, ...) leads from the base origin to the hip, thigh and calf joints and on to the foot, each vector in
the frame of its own link; `signs` (3, ...) is +1 or -1 where a joint turns about the positive or negative axis. Feet
are the centres of their spheres, in the base frame.

Everything is written by components, of numbers or of arrays with any trailing axes: the same lines serve one leg, all
legs of a recording at once, and the simulator, which compiles them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Vector = tuple[Any, Any, Any]
"""Components x, y and z."""


def leg_forward(offsets: Any, signs: Any, q: Any) -> tuple[Vector, Vector, Vector, Vector]:
    """The foot, and the columns of its Jacobian by hip, thigh and calf."""
    base, hip, thigh, calf = offsets[0], offsets[1], offsets[2], offsets[3]
    s0, s1, s2 = signs[0], signs[1], signs[2]
    c_h, s_h = np.cos(s0 * q[0]), np.sin(s0 * q[0])
    a_t = s1 * q[1]
    a_c = a_t + s2 * q[2]
    c_t, s_t = np.cos(a_t), np.sin(a_t)
    c_c, s_c = np.cos(a_c), np.sin(a_c)
    # In the hip link's frame: thigh and calf offsets turned about y.
    tx, tz = c_t * thigh[0] + s_t * thigh[2], -s_t * thigh[0] + c_t * thigh[2]
    kx, kz = c_c * calf[0] + s_c * calf[2], -s_c * calf[0] + c_c * calf[2]
    x, y, z = hip[0] + tx + kx, hip[1] + thigh[1] + calf[1], hip[2] + tz + kz
    foot = base[0] + x, base[1] + c_h * y - s_h * z, base[2] + s_h * y + c_h * z
    # A turn about y by da moves (x, z) by (z, -x) da.
    jx, jz = tz + kz, -(tx + kx)
    by_hip = np.abs(0.0 * x), s0 * (-s_h * y - c_h * z), s0 * (c_h * y - s_h * z)
    by_thigh = s1 * jx, -s1 * s_h * jz, s1 * c_h * jz
    return foot, by_hip, by_thigh, (s2 * kz, s2 * s_h * kx, -s2 * c_h * kx)


def calf_rate(signs: Any, q: Any, dq: Any, gyro: Any) -> Vector:
    """Angular velocity of a leg's last link relative to the world, in the base frame."""
    angle, pitch_rate = signs[0] * q[0], signs[1] * dq[1] + signs[2] * dq[2]
    return gyro[0] + signs[0] * dq[0], gyro[1] + np.cos(angle) * pitch_rate, gyro[2] + np.sin(angle) * pitch_rate


def wrap_angle(angle: float) -> float:
    """The same angle in [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def leg_inverse(offsets: Any, signs: Any, knee_sign: float, foot: Any) -> tuple[float, float, float, bool]:
    """Joint angles of one leg that put its foot at `foot` (3,), and whether it is within reach.

    Otherwise they point the leg at the nearest reachable distance. `knee_sign` is the sign of the calf angle of the
    wanted solution.
    """
    base, hip, thigh, calf = offsets[0], offsets[1], offsets[2], offsets[3]
    x, y, z = foot[0] - base[0] - hip[0], foot[1] - base[1], foot[2] - base[2]
    lateral = hip[1] + thigh[1] + calf[1]
    depth2 = y * y + z * z - lateral * lateral
    depth = -math.sqrt(max(depth2, 0.0))
    roll = wrap_angle(math.atan2(z, y) - math.atan2(depth, lateral))
    # Planar two-link arm in x and z; a turn about y adds to the angle atan2(x, z).
    depth -= hip[2]
    l1, l2 = math.hypot(thigh[0], thigh[2]), math.hypot(calf[0], calf[2])
    cosine = (x * x + depth * depth - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
    bend = knee_sign * signs[2] * math.acos(min(max(cosine, -1.0), 1.0))
    bend = wrap_angle(math.atan2(thigh[0], thigh[2]) - math.atan2(calf[0], calf[2]) + bend)
    c, s = math.cos(bend), math.sin(bend)
    reach_x, reach_z = thigh[0] + c * calf[0] + s * calf[2], thigh[2] - s * calf[0] + c * calf[2]
    pitch = wrap_angle(math.atan2(x, depth) - math.atan2(reach_x, reach_z))
    within = bool(depth2 >= 0.0) and bool(-1.0 <= cosine <= 1.0)
    return signs[0] * roll, signs[1] * pitch, signs[2] * bend, within


def _spin_moment(link: Any, angle: Any, hip_rate: Any, hip_acc: Any, rate: Any, acc: Any) -> tuple[Any, Any]:
    """Moment about x and y that turns a link about its own centre of mass: I alpha + w x I w."""
    c, s = np.cos(angle), np.sin(angle)
    xx, yy, zz, xy, xz, yz = link[4], link[5], link[6], link[7], link[8], link[9]
    # Rates in the link's own axes; the last part of the acceleration is the pitch axis being carried by the hip.
    wx, wy, wz = c * hip_rate, rate, s * hip_rate
    ax, ay, az = c * hip_acc - s * hip_rate * rate, acc, s * hip_acc + c * hip_rate * rate
    hx, hy, hz = xx * wx + xy * wy + xz * wz, xy * wx + yy * wy + yz * wz, xz * wx + yz * wy + zz * wz
    nx = xx * ax + xy * ay + xz * az + wy * hz - wz * hy
    ny = xy * ax + yy * ay + yz * az + wz * hx - wx * hz
    nz = xz * ax + yz * ay + zz * az + wx * hy - wy * hx
    return c * nx + s * nz, ny


def leg_torque(
    offsets: Any, signs: Any, inertial: Any, armature: Any, q: Any, dq: Any, ddq: Any, gravity: Any
) -> Vector:
    """Joint torques of a leg that moves freely on a base that does not turn.

    Args:
        offsets: link offsets (4, 3, ...).
        signs: joint directions (3, ...).
        inertial: mass, centre of mass and inertia of each link, as a leg in `Robot.leg_inertial` (3, 10, ...).
        armature: rotor inertias (3, ...).
        q: joint angles (3, ...).
        dq: joint velocities (3, ...).
        ddq: joint accelerations (3, ...).
        gravity: in the base frame (3, ...), about (0, 0, -9.81) when level; less the base's own acceleration, if known.
    """
    s0, s1, s2 = signs[0], signs[1], signs[2]
    c_h, s_h = np.cos(s0 * q[0]), np.sin(s0 * q[0])
    thigh_angle = s1 * q[1]
    calf_angle = thigh_angle + s2 * q[2]
    c_t, s_t, c_c, s_c = np.cos(thigh_angle), np.sin(thigh_angle), np.cos(calf_angle), np.sin(calf_angle)
    hip_rate, hip_acc = s0 * dq[0], s0 * ddq[0]
    w1, e1 = s1 * dq[1], s1 * ddq[1]
    w2, e2 = w1 + s2 * dq[2], e1 + s2 * ddq[2]
    gx = gravity[0]
    gy = c_h * gravity[1] + s_h * gravity[2]
    gz = -s_h * gravity[1] + c_h * gravity[2]
    hip, shank = offsets[1], offsets[2]
    link0, link1, link2 = inertial[0], inertial[1], inertial[2]

    # Arms within the plane: thigh joint to its centre of mass, thigh to calf joint, calf joint to its centre of mass.
    tx, tz = c_t * link1[1] + s_t * link1[3], -s_t * link1[1] + c_t * link1[3]
    kx, kz = c_t * shank[0] + s_t * shank[2], -s_t * shank[0] + c_t * shank[2]
    cx, cz = c_c * link2[1] + s_c * link2[3], -s_c * link2[1] + c_c * link2[3]
    # Positions of the centres of mass, and their velocities along z and accelerations relative to the hip frame.
    y1, z1 = hip[1] + link1[2], hip[2] + tz
    y2, z2 = hip[1] + shank[1] + link2[2], hip[2] + kz + cz
    vz1, vz2 = -w1 * tx, -w1 * kx - w2 * cx
    ax1, az1 = e1 * tz - w1 * w1 * tx, -e1 * tx - w1 * w1 * tz
    ax2 = e1 * kz - w1 * w1 * kx + e2 * cz - w2 * w2 * cx
    az2 = -e1 * kx - w1 * w1 * kz - e2 * cx - w2 * w2 * cz
    # Forces: mass times (relative + Coriolis + Euler + centripetal acceleration - gravity).
    hip2 = hip_rate * hip_rate
    m0, m1, m2 = link0[0], link1[0], link2[0]
    fy0 = m0 * (-hip_acc * link0[3] - hip2 * link0[2] - gy)
    fz0 = m0 * (hip_acc * link0[2] - hip2 * link0[3] - gz)
    fx1 = m1 * (ax1 - gx)
    fy1 = m1 * (-2.0 * hip_rate * vz1 - hip_acc * z1 - hip2 * y1 - gy)
    fz1 = m1 * (az1 + hip_acc * y1 - hip2 * z1 - gz)
    fx2 = m2 * (ax2 - gx)
    fy2 = m2 * (-2.0 * hip_rate * vz2 - hip_acc * z2 - hip2 * y2 - gy)
    fz2 = m2 * (az2 + hip_acc * y2 - hip2 * z2 - gz)
    nx1, ny1 = _spin_moment(link1, thigh_angle, hip_rate, hip_acc, w1, e1)
    nx2, ny2 = _spin_moment(link2, calf_angle, hip_rate, hip_acc, w2, e2)

    about_x = link0[4] * hip_acc + nx1 + nx2
    about_x += link0[2] * fz0 - link0[3] * fy0 + y1 * fz1 - z1 * fy1 + y2 * fz2 - z2 * fy2
    at_calf = ny2 + cz * fx2 - cx * fz2
    at_thigh = at_calf + ny1 + tz * fx1 - tx * fz1 + kz * fx2 - kx * fz2
    rotor = armature[0] * ddq[0], armature[1] * ddq[1], armature[2] * ddq[2]
    return s0 * about_x + rotor[0], s1 * at_thigh + rotor[1], s2 * at_calf + rotor[2]
