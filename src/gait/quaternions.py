"""Unit quaternions (..., 4) in the order w, x, y, z, over whole arrays."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array


def rotate(quat_wxyz: Array, vector: Array) -> Array:
    """Turn vectors (..., 3) by quaternions: R v."""
    w, u = quat_wxyz[..., :1], quat_wxyz[..., 1:]
    twice = 2.0 * np.cross(u, vector)
    turned: Array = vector + w * twice + np.cross(u, twice)
    return turned


def rotate_inverse(quat_wxyz: Array, vector: Array) -> Array:
    """Turn vectors (..., 3) back: R' v, so from the world to the body for `quat_wb_wxyz`."""
    return rotate(inverse(quat_wxyz), vector)


def multiply(a: Array, b: Array) -> Array:
    """Products of quaternions (..., 4)."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    parts = (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )
    return np.stack(parts, axis=-1)


def inverse(q: Array) -> Array:
    """Inverses of unit quaternions (..., 4)."""
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))


def angle(q: Array) -> Array:
    """Rotation angles in [0, pi] of unit quaternions (..., 4), accurate for tiny angles too."""
    return np.asarray(2.0 * np.arctan2(np.linalg.norm(q[..., 1:], axis=-1), np.abs(q[..., 0])))


def turn_about_z(yaw: Array) -> Array:
    """Quaternions (..., 4) of turns about the vertical (...)."""
    zero = np.zeros_like(yaw)
    return np.stack((np.cos(yaw / 2.0), zero, zero, np.sin(yaw / 2.0)), axis=-1)


def heading(q: Array) -> Array:
    """Turns about the vertical (...) nearest to rotations (..., 4), in the sense of the trace of what remains."""
    w, z = q[..., 0], q[..., 3]
    return np.asarray(np.arctan2(2.0 * w * z, w * w - z * z))


def roll_pitch_yaw(q: Array) -> Array:
    """Angles (..., 3) of rotations (..., 4) about x, then y, then z of the world: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.stack((roll, pitch, yaw), axis=-1)


def slerp(start: Array, end: Array, part: Array) -> Array:
    """Rotations on the shortest arcs from `start` to `end` (N, 4), at `part` (N,) between 0 and 1."""
    dot = np.einsum("ij,ij->i", start, end)
    given, end = end, np.where(dot[:, None] < 0.0, -end, end)
    # The half-angle from the chord keeps its digits where the two are nearly equal; acos of the dot does not.
    angle = 2.0 * np.arcsin(np.minimum(0.5 * np.linalg.norm(end - start, axis=1), 1.0))
    safe = np.where(angle < 1e-8, 1.0, angle)
    sine = np.sin(safe)
    a = np.where(angle < 1e-8, 1.0 - part, np.sin((1.0 - part) * safe) / sine)
    b = np.where(angle < 1e-8, part, np.sin(part * safe) / sine)
    between = a[:, None] * start + b[:, None] * end
    between /= np.linalg.norm(between, axis=1, keepdims=True)
    # At the two ends nothing is rounded, so what was recorded comes back as it was.
    between = np.where(part[:, None] == 0.0, start, between)
    turned: Array = np.where(part[:, None] == 1.0, given, between)
    return turned
