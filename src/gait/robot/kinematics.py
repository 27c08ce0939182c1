"""Closed-form kinematics of legs with an abduction joint (about x) and two pitch joints (about y).

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
