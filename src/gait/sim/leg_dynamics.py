"""The dynamics of a leg, compiled, and the turning of the base that carries it."""

from __future__ import annotations

import math

import numpy as np

from gait._compile import compiled
from gait.arrays import Array

_A1, _A2, _A3, _A4 = "float64[::1]", "float64[:, ::1]", "float64[:, :, ::1]", "float64[:, :, :, ::1]"


@compiled(f"void({_A1}, {_A2})")
def rotation(quat: Array, out: Array) -> None:
    """Rotation matrix (3, 3) of a unit quaternion wxyz."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    out[0, 0], out[0, 1], out[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    out[1, 0], out[1, 1], out[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    out[2, 0], out[2, 1], out[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@compiled(f"void({_A2}, {_A1}, float64, {_A2})")
def turned(R: Array, omega: Array, time: float, out: Array) -> None:
    """R exp(omega time): the orientation after turning at a constant body rate."""
    angle = math.sqrt(omega[0] ** 2 + omega[1] ** 2 + omega[2] ** 2) * time
    a, b = time, 0.5 * time * time
    if abs(angle) > 1e-6:
        a, b = math.sin(angle) / angle * time, (1.0 - math.cos(angle)) / (angle * angle) * time * time
    x, y, z = omega[0], omega[1], omega[2]
    E = np.empty((3, 3))
    E[0, 0], E[0, 1], E[0, 2] = 1 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y
    E[1, 0], E[1, 1], E[1, 2] = b * x * y + a * z, 1 - b * (x * x + z * z), b * y * z - a * x
    E[2, 0], E[2, 1], E[2, 2] = b * x * z - a * y, b * y * z + a * x, 1 - b * (x * x + y * y)
    for i in range(3):
        for j in range(3):
            out[i, j] = R[i, 0] * E[0, j] + R[i, 1] * E[1, j] + R[i, 2] * E[2, j]


@compiled(f"void({_A3}, {_A2}, {_A3}, {_A4}, {_A1}, int64, {_A1}, {_A2})")
def leg_inertia(
    offsets: Array, signs: Array, inertial: Array, inertias: Array, armature: Array, leg: int, q: Array, out: Array
) -> None:
    """Mass matrix (3, 3) of one leg on a base that does not move.

    Args:
        offsets: link offsets (L, 4, 3).
        signs: joint directions (L, 3).
        inertial: mass and centre of mass of each link (L, 3, 4).
        inertias: inertia of each link about its centre of mass (L, 3, 3, 3).
        armature: rotor inertia of each joint (J,).
        leg: which leg.
        q: joint angles (3,).
        out: output.
    """
    t = signs[leg, 1] * q[1]
    c = t + signs[leg, 2] * q[2]
    # In the hip link's frame the hip axis is x and both others are y: no need to turn by the hip angle.
    origin = np.zeros((3, 3))
    origin[1] = offsets[leg, 1]
    origin[2] = origin[1]
    origin[2, 0] += math.cos(t) * offsets[leg, 2, 0] + math.sin(t) * offsets[leg, 2, 2]
    origin[2, 1] += offsets[leg, 2, 1]
    origin[2, 2] += -math.sin(t) * offsets[leg, 2, 0] + math.cos(t) * offsets[leg, 2, 2]
    out[:] = 0.0
    J = np.zeros((3, 3))
    for k in range(3):
        angle = 0.0
        if k == 1:
            angle = t
        elif k == 2:
            angle = c
        ca, sa = math.cos(angle), math.sin(angle)
        m, x, y, z = inertial[leg, k, 0], inertial[leg, k, 1], inertial[leg, k, 2], inertial[leg, k, 3]
        px, py, pz = origin[k, 0] + ca * x + sa * z, origin[k, 1] + y, origin[k, 2] - sa * x + ca * z
        own = inertias[leg, k]
        xx = ca * (ca * own[0, 0] + sa * own[2, 0]) + sa * (ca * own[0, 2] + sa * own[2, 2])
        xy = ca * own[0, 1] + sa * own[2, 1]
        yy = own[1, 1]
        J[:] = 0.0
        J[1, 0], J[2, 0] = -signs[leg, 0] * pz, signs[leg, 0] * py
        for i in range(1, k + 1):
            J[0, i], J[2, i] = signs[leg, i] * (pz - origin[i, 2]), -signs[leg, i] * (px - origin[i, 0])
        for i in range(k + 1):
            for j in range(k + 1):
                value = m * (J[0, i] * J[0, j] + J[1, i] * J[1, j] + J[2, i] * J[2, j])
                turn = xx if i == 0 and j == 0 else (yy if i > 0 and j > 0 else xy)
                out[i, j] += value + signs[leg, i] * signs[leg, j] * turn
    for i in range(3):
        out[i, i] += armature[3 * leg + i]


@compiled(f"void({_A3}, {_A2}, {_A3}, {_A4}, {_A1}, int64, {_A1}, {_A1}, {_A1}, {_A2}, {_A1})")
def leg_dynamics(
    offsets: Array,
    signs: Array,
    inertial: Array,
    inertias: Array,
    armature: Array,
    leg: int,
    q: Array,
    dq: Array,
    ddq: Array,
    M: Array,
    tau: Array,
) -> None:
    """Add to `tau` the torques that accelerate a leg: M ddq, and what its own swing asks for (centrifugal, Coriolis).

    The velocity terms come from differences of the mass matrix, which does not depend on the hip angle.
    """
    eps = 1e-5
    leg_inertia(offsets, signs, inertial, inertias, armature, leg, q, M)
    slopes = np.zeros((3, 3, 3))
    moved = np.empty(3)
    for k in range(1, 3):
        moved[:] = q
        moved[k] += eps
        leg_inertia(offsets, signs, inertial, inertias, armature, leg, moved, slopes[k])
        slopes[k] = (slopes[k] - M) / eps
    for i in range(3):
        for j in range(3):
            tau[i] += M[i, j] * ddq[j]
            for k in range(3):
                tau[i] += (slopes[k, i, j] - 0.5 * slopes[i, j, k]) * dq[j] * dq[k]
