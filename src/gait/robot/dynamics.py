"""Inverse dynamics of one leg in closed form: the joint torques that a motion takes, gravity included.

Everything is written in the frame that turns with the hip link: there the hip axis is x, thigh and calf swing in the
x-z plane, and the leg is a planar double pendulum carried by a rotation about x. As in `gait.robot.kinematics`, numbers
and arrays with any trailing axes will do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gait.robot.kinematics import Vector


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
