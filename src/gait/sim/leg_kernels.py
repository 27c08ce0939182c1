"""Kinematics and inverse dynamics of the legs for compiled code: `Legs` is a robot's, an index picks the leg."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gait.arrays import Array
from gait.robot import Robot
from gait.sim.compiled import compiled


class Legs(NamedTuple):
    """The legs of a robot as compiled code takes them."""

    offsets: Array
    """Base to hip, hip to thigh, thigh to calf, calf to foot centre (L, 4, 3)."""
    signs: Array
    """+1 or -1, the direction of each joint about its axis (L, 3)."""
    knee_sign: float
    inertial: Array
    """Mass, centre of mass and inertia of each link, as in `Robot.leg_inertial` (L, 3, 10)."""
    armature: Array
    """Rotor inertias (L, 3)."""

    @staticmethod
    def of(robot: Robot) -> Legs:
        """The legs of a robot."""
        return Legs(robot.offsets, robot.signs, robot.knee_sign, robot.leg_inertial, robot.armature.reshape(-1, 3))


@compiled
def leg_fk(legs: Legs, leg: int, q: Array, foot: Array, jac: Array) -> None:
    """Foot position (3,) and Jacobian (3, 3) of one leg, written into `foot` and `jac`."""
    base, hip, thigh, calf = legs.offsets[leg, 0], legs.offsets[leg, 1], legs.offsets[leg, 2], legs.offsets[leg, 3]
    s0, s1, s2 = legs.signs[leg, 0], legs.signs[leg, 1], legs.signs[leg, 2]
    c_h, s_h = math.cos(s0 * q[0]), math.sin(s0 * q[0])
    a_t = s1 * q[1]
    a_c = a_t + s2 * q[2]
    c_t, s_t = math.cos(a_t), math.sin(a_t)
    c_c, s_c = math.cos(a_c), math.sin(a_c)
    # In the hip link's frame: thigh and calf offsets turned about y.
    tx, tz = c_t * thigh[0] + s_t * thigh[2], -s_t * thigh[0] + c_t * thigh[2]
    kx, kz = c_c * calf[0] + s_c * calf[2], -s_c * calf[0] + c_c * calf[2]
    x, y, z = hip[0] + tx + kx, hip[1] + thigh[1] + calf[1], hip[2] + tz + kz
    foot[0], foot[1], foot[2] = base[0] + x, base[1] + c_h * y - s_h * z, base[2] + s_h * y + c_h * z
    # A turn about y by da moves (x, z) by (z, -x) da.
    jx, jz = tz + kz, -(tx + kx)
    jac[0, 0], jac[1, 0], jac[2, 0] = 0.0, s0 * (-s_h * y - c_h * z), s0 * (c_h * y - s_h * z)
    jac[0, 1], jac[1, 1], jac[2, 1] = s1 * jx, -s1 * s_h * jz, s1 * c_h * jz
    jac[0, 2], jac[1, 2], jac[2, 2] = s2 * kz, s2 * s_h * kx, -s2 * c_h * kx


@compiled
def feet_of(legs: Legs, q: Array, feet: Array, jac: Array) -> None:
    """Feet (L, 3) and Jacobians (L, 3, 3) of all legs at joints (L, 3), written into `feet` and `jac`."""
    for leg in range(legs.offsets.shape[0]):
        leg_fk(legs, leg, q[leg], feet[leg], jac[leg])


@compiled
def foot_velocity(jac: Array, dq: Array, gyro: Array, foot: Array) -> Array:
    """Velocity of a foot relative to the base origin, in the base frame (3,): J dq + w x p."""
    out = np.empty(3)
    for i in range(3):
        out[i] = jac[i, 0] * dq[0] + jac[i, 1] * dq[1] + jac[i, 2] * dq[2]
    out[0] += gyro[1] * foot[2] - gyro[2] * foot[1]
    out[1] += gyro[2] * foot[0] - gyro[0] * foot[2]
    out[2] += gyro[0] * foot[1] - gyro[1] * foot[0]
    return out


@compiled
def calf_rate(legs: Legs, leg: int, q: Array, dq: Array, gyro: Array) -> Array:
    """Angular velocity of a leg's last link relative to the world, in the base frame (3,)."""
    s0, s1, s2 = legs.signs[leg, 0], legs.signs[leg, 1], legs.signs[leg, 2]
    pitch_rate = s1 * dq[1] + s2 * dq[2]
    x = gyro[0] + s0 * dq[0]
    return np.array([x, gyro[1] + math.cos(s0 * q[0]) * pitch_rate, gyro[2] + math.sin(s0 * q[0]) * pitch_rate])


@compiled
def wrap_angle(angle: float) -> float:
    """The same angle in [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


@compiled
def leg_ik(legs: Legs, leg: int, foot: Array, q: Array) -> bool:
    """Joint angles (3,) that put a foot at `foot` (3,) in the base frame, written into `q`.

    Returns:
        False if the foot is out of reach; `q` then points the leg at the nearest reachable distance.
    """
    base, hip, thigh, calf = legs.offsets[leg, 0], legs.offsets[leg, 1], legs.offsets[leg, 2], legs.offsets[leg, 3]
    s0, s1, s2 = legs.signs[leg, 0], legs.signs[leg, 1], legs.signs[leg, 2]
    x, y, z = foot[0] - base[0] - hip[0], foot[1] - base[1], foot[2] - base[2]
    lateral = hip[1] + thigh[1] + calf[1]
    depth2 = y * y + z * z - lateral * lateral
    depth = -math.sqrt(max(depth2, 0.0))
    q[0] = s0 * wrap_angle(math.atan2(z, y) - math.atan2(depth, lateral))
    # Planar two-link arm in x and z; a turn about y adds to the angle atan2(x, z).
    depth -= hip[2]
    l1, l2 = math.hypot(thigh[0], thigh[2]), math.hypot(calf[0], calf[2])
    cosine = (x * x + depth * depth - l1 * l1 - l2 * l2) / (2.0 * l1 * l2)
    bend = legs.knee_sign * s2 * math.acos(min(max(cosine, -1.0), 1.0))
    bend = wrap_angle(math.atan2(thigh[0], thigh[2]) - math.atan2(calf[0], calf[2]) + bend)
    c, s = math.cos(bend), math.sin(bend)
    reach_x, reach_z = thigh[0] + c * calf[0] + s * calf[2], thigh[2] - s * calf[0] + c * calf[2]
    q[1] = s1 * wrap_angle(math.atan2(x, depth) - math.atan2(reach_x, reach_z))
    q[2] = s2 * bend
    return bool(depth2 >= 0.0) and bool(-1.0 <= cosine <= 1.0)


@compiled
def _spin_moment(
    link: Array, angle: float, hip_rate: float, hip_acc: float, rate: float, acc: float
) -> tuple[float, float]:
    """Moment about x and y that turns a link about its own centre of mass: I alpha + w x I w."""
    c, s = math.cos(angle), math.sin(angle)
    xx, yy, zz, xy, xz, yz = link[4], link[5], link[6], link[7], link[8], link[9]
    # Rates in the link's own axes; the last part of the acceleration is the pitch axis being carried by the hip.
    wx, wy, wz = c * hip_rate, rate, s * hip_rate
    ax, ay, az = c * hip_acc - s * hip_rate * rate, acc, s * hip_acc + c * hip_rate * rate
    hx, hy, hz = xx * wx + xy * wy + xz * wz, xy * wx + yy * wy + yz * wz, xz * wx + yz * wy + zz * wz
    nx = xx * ax + xy * ay + xz * az + wy * hz - wz * hy
    ny = xy * ax + yy * ay + yz * az + wz * hx - wx * hz
    nz = xz * ax + yz * ay + zz * az + wx * hy - wy * hx
    return c * nx + s * nz, ny


@compiled
def leg_torque(legs: Legs, leg: int, q: Array, dq: Array, ddq: Array, gravity: Array) -> Array:
    """Joint torques (3,) of a leg that moves freely on a base that does not turn.

    Written in the frame that turns with the hip link: there the hip axis is x, thigh and calf swing in the x-z plane,
    and the leg is a planar double pendulum carried by a rotation about x. `gravity` is in the base frame, about
    (0, 0, -9.81) when level; less the base's own acceleration, if known.
    """
    s0, s1, s2 = legs.signs[leg, 0], legs.signs[leg, 1], legs.signs[leg, 2]
    c_h, s_h = math.cos(s0 * q[0]), math.sin(s0 * q[0])
    thigh_angle = s1 * q[1]
    calf_angle = thigh_angle + s2 * q[2]
    c_t, s_t, c_c, s_c = math.cos(thigh_angle), math.sin(thigh_angle), math.cos(calf_angle), math.sin(calf_angle)
    hip_rate, hip_acc = s0 * dq[0], s0 * ddq[0]
    w1, e1 = s1 * dq[1], s1 * ddq[1]
    w2, e2 = w1 + s2 * dq[2], e1 + s2 * ddq[2]
    gx = gravity[0]
    gy = c_h * gravity[1] + s_h * gravity[2]
    gz = -s_h * gravity[1] + c_h * gravity[2]
    hip, shank = legs.offsets[leg, 1], legs.offsets[leg, 2]
    link0, link1, link2 = legs.inertial[leg, 0], legs.inertial[leg, 1], legs.inertial[leg, 2]

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
    rotor = legs.armature[leg]
    return np.array(
        [s0 * about_x + rotor[0] * ddq[0], s1 * at_thigh + rotor[1] * ddq[1], s2 * at_calf + rotor[2] * ddq[2]]
    )


def forward(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Feet (L, 3) and Jacobians (L, 3, 3) at joints (J,): `Robot.forward` in the simulator's own arithmetic."""
    feet, jac = np.empty((robot.num_legs, 3)), np.empty((robot.num_legs, 3, 3))
    feet_of(Legs.of(robot), np.array(q, dtype=np.float64).reshape(-1, 3), feet, jac)
    return feet, jac


def inverse(robot: Robot, feet: Array) -> Array:
    """Joints (L, 3) that put the feet (L, 3) where they are wanted in the base frame, or as near as legs reach."""
    legs, q = Legs.of(robot), np.empty((robot.num_legs, 3))
    for leg, foot in enumerate(np.ascontiguousarray(feet)):
        leg_ik(legs, leg, foot, q[leg])
    return q
