"""Closed-form kinematics of legs with an abduction joint (about x) and two pitch joints (about y).

`offsets` (L, 4, 3) leads from the base origin to the hip, thigh and calf joints and on to the foot, each vector in the
frame of the link it belongs to; `signs` (L, 3) is +1 or -1 where a joint turns about the positive or negative axis.
Joint arrays are (L, 3) for one instant. Feet are the centres of their spheres, in the base frame.
"""

from __future__ import annotations

import math

from gait._compile import kernel
from gait.arrays import Array

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"
_A3 = "float64[:, :, ::1]"


@kernel(f"void({_A3}, {_A2}, int64, {_A1}, {_A1}, {_A2})")
def leg_fk(offsets: Array, signs: Array, leg: int, q: Array, foot: Array, jac: Array) -> None:
    """Foot position (3,) and Jacobian (3, 3) of one leg, written into `foot` and `jac`."""
    s0, s1, s2 = signs[leg, 0], signs[leg, 1], signs[leg, 2]
    c_h, s_h = math.cos(s0 * q[0]), math.sin(s0 * q[0])
    a_t = s1 * q[1]
    a_c = a_t + s2 * q[2]
    c_t, s_t = math.cos(a_t), math.sin(a_t)
    c_c, s_c = math.cos(a_c), math.sin(a_c)
    hip, thigh, calf = offsets[leg, 1], offsets[leg, 2], offsets[leg, 3]
    # In the hip link's frame: thigh and calf offsets turned about y.
    tx, tz = c_t * thigh[0] + s_t * thigh[2], -s_t * thigh[0] + c_t * thigh[2]
    kx, kz = c_c * calf[0] + s_c * calf[2], -s_c * calf[0] + c_c * calf[2]
    x = hip[0] + tx + kx
    y = hip[1] + thigh[1] + calf[1]
    z = hip[2] + tz + kz
    foot[0] = offsets[leg, 0, 0] + x
    foot[1] = offsets[leg, 0, 1] + c_h * y - s_h * z
    foot[2] = offsets[leg, 0, 2] + s_h * y + c_h * z
    jac[0, 0] = 0.0
    jac[1, 0] = s0 * (-s_h * y - c_h * z)
    jac[2, 0] = s0 * (c_h * y - s_h * z)
    # A turn about y by da moves (x, z) by (z, -x) da.
    jx, jz = tz + kz, -(tx + kx)
    jac[0, 1], jac[1, 1], jac[2, 1] = s1 * jx, -s1 * s_h * jz, s1 * c_h * jz
    jac[0, 2], jac[1, 2], jac[2, 2] = s2 * kz, s2 * s_h * kx, -s2 * c_h * kx


@kernel(f"void({_A3}, {_A2}, {_A2}, {_A2}, {_A3})")
def fk_jacobian(offsets: Array, signs: Array, q: Array, feet: Array, jac: Array) -> None:
    """Feet (L, 3) and Jacobians (L, 3, 3) of all legs at one instant."""
    for leg in range(offsets.shape[0]):
        leg_fk(offsets, signs, leg, q[leg], feet[leg], jac[leg])


@kernel(f"void({_A3}, {_A2}, {_A3}, {_A3}, float64[:, :, :, ::1])")
def fk_jacobian_batch(offsets: Array, signs: Array, q: Array, feet: Array, jac: Array) -> None:
    """Feet (N, L, 3) and Jacobians (N, L, 3, 3) over time."""
    for k in range(q.shape[0]):
        fk_jacobian(offsets, signs, q[k], feet[k], jac[k])


@kernel(f"void({_A2}, {_A1}, {_A1}, {_A1}, {_A1})")
def foot_velocity(jac: Array, dq: Array, gyro: Array, foot: Array, out: Array) -> None:
    """Velocity of a foot in the base frame, as seen from a point that moves with the base: J dq + w x p.

    A foot that stands still measures the base velocity as the negative of this.
    """
    for i in range(3):
        out[i] = jac[i, 0] * dq[0] + jac[i, 1] * dq[1] + jac[i, 2] * dq[2]
    out[0] += gyro[1] * foot[2] - gyro[2] * foot[1]
    out[1] += gyro[2] * foot[0] - gyro[0] * foot[2]
    out[2] += gyro[0] * foot[1] - gyro[1] * foot[0]


@kernel(f"void({_A2}, int64, {_A1}, {_A1}, {_A1}, {_A1})")
def calf_rate(signs: Array, leg: int, q: Array, dq: Array, gyro: Array, out: Array) -> None:
    """Angular velocity of a leg's last link relative to the world, in the base frame."""
    angle = signs[leg, 0] * q[0]
    pitch_rate = signs[leg, 1] * dq[1] + signs[leg, 2] * dq[2]
    out[0] = gyro[0] + signs[leg, 0] * dq[0]
    out[1] = gyro[1] + math.cos(angle) * pitch_rate
    out[2] = gyro[2] + math.sin(angle) * pitch_rate


@kernel("float64(float64)")
def wrap_angle(angle: float) -> float:
    """The same angle in [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@kernel(f"boolean({_A3}, {_A2}, float64, int64, {_A1}, {_A1})")
def leg_ik(offsets: Array, signs: Array, knee_sign: float, leg: int, foot: Array, q: Array) -> bool:
    """Joint angles (3,) that put a foot at `foot`, written into `q`.

    Args:
        offsets: link offsets (L, 4, 3).
        signs: joint directions (L, 3).
        knee_sign: +1 or -1, the sign of the calf angle of the wanted solution.
        leg: which leg.
        foot: wanted foot position in the base frame (3,).
        q: output.

    Returns:
        False if the foot is out of reach; `q` then points the leg at the nearest reachable distance.
    """
    hip, thigh, calf = offsets[leg, 1], offsets[leg, 2], offsets[leg, 3]
    x = foot[0] - offsets[leg, 0, 0] - hip[0]
    y = foot[1] - offsets[leg, 0, 1]
    z = foot[2] - offsets[leg, 0, 2]
    lateral = hip[1] + thigh[1] + calf[1]
    depth2 = y * y + z * z - lateral * lateral
    reachable = bool(depth2 >= 0.0)
    depth = -math.sqrt(max(depth2, 0.0))
    q[0] = signs[leg, 0] * wrap_angle(math.atan2(z, y) - math.atan2(depth, lateral))
    # Planar two-link arm in x and z; a turn about y adds to the angle atan2(x, z).
    depth -= hip[2]
    l1, l2 = math.hypot(thigh[0], thigh[2]), math.hypot(calf[0], calf[2])
    cosine = (x * x + depth * depth - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
    reachable = reachable and bool(-1.0 <= cosine <= 1.0)
    bend = knee_sign * signs[leg, 2] * math.acos(min(max(cosine, -1.0), 1.0))
    bend = wrap_angle(math.atan2(thigh[0], thigh[2]) - math.atan2(calf[0], calf[2]) + bend)
    c, s = math.cos(bend), math.sin(bend)
    reach_x = thigh[0] + c * calf[0] + s * calf[2]
    reach_z = thigh[2] - s * calf[0] + c * calf[2]
    q[1] = signs[leg, 1] * wrap_angle(math.atan2(x, depth) - math.atan2(reach_x, reach_z))
    q[2] = signs[leg, 2] * bend
    return reachable
