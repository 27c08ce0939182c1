"""Numba for the simulator's inner loops: compiled at the first call, cached on disk, without the GIL.

Rotations and legs are those of `gait.lie` and `gait.robot`, compiled as they are; products with 3 x 3 matrices need no
BLAS. `Legs` is a robot's, an index picks the leg.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from gait import lie
from gait.arrays import Array
from gait.errors import need_extra
from gait.robot import Robot, kinematics

try:
    import numba
except ModuleNotFoundError:
    raise need_extra("numba", "sim") from None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function. Arithmetic stays strict IEEE: a walk does not depend on what the optimiser reordered."""
    return cast("F", numba.njit(cache=True, nogil=True)(function))


@cache
def compiled_copy(function: F) -> F:
    """A plain function of another module, compiled together with the functions of that module which it calls.

    Equations are written once, readable and without numba; the simulator compiles them as they are.
    """
    names, scope = function.__code__.co_names, function.__globals__
    called = {
        name: compiled_copy(scope[name])
        for name in names
        if isinstance(scope.get(name), FunctionType) and scope[name].__module__ == function.__module__
    }
    copy = FunctionType(function.__code__, {**scope, **called}, function.__name__, function.__defaults__)
    copy.__qualname__ = function.__qualname__
    return compiled(cast("F", copy))


@compiled
def rotate(R: Array, v: Array) -> Array:
    """R v (3,)."""
    turned: Array = R[:, 0] * v[0] + R[:, 1] * v[1] + R[:, 2] * v[2]
    return turned


@compiled
def transform(R: Array, p: Array, v: Array) -> Array:
    """p + R v (3,)."""
    moved: Array = p + R[:, 0] * v[0] + R[:, 1] * v[1] + R[:, 2] * v[2]
    return moved


@compiled
def about_z(angle: float, x: float, y: float) -> tuple[float, float]:
    """x and y of a vector that is turned about z."""
    c, s = math.cos(angle), math.sin(angle)
    return c * x - s * y, s * x + c * y


@compiled
def cross(a: Array, b: Array) -> Array:
    """a x b (3,)."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@compiled
def product(A: Array, B: Array) -> Array:
    """A B (3, 3)."""
    out = np.empty((3, 3))
    for i in range(3):
        out[i] = A[i, 0] * B[0] + A[i, 1] * B[1] + A[i, 2] * B[2]
    return out


rotation_from_quat = compiled_copy(lie.rotation_from_quat)
so3_exp = compiled_copy(lie.so3_exp)
so3_log = compiled_copy(lie.so3_log)
so3_left_jacobian_inverse = compiled_copy(lie.so3_left_jacobian_inverse)
norm = compiled_copy(lie.norm)


class Legs(NamedTuple):
    """The legs of a robot as compiled code takes them."""

    offsets: Array
    """Base to hip, hip to thigh, thigh to calf, calf to foot centre (L, 4, 3)."""
    signs: Array
    """+1 or -1, the direction of each joint about its axis (L, 3)."""
    knee_signs: Array
    """Sign of each calf angle: which way the knees bend (L,)."""
    inertial: Array
    """Mass, centre of mass and inertia of each link, as in `Robot.leg_inertial` (L, 3, 10)."""
    armature: Array
    """Rotor inertias (L, 3)."""

    @staticmethod
    def of(robot: Robot) -> Legs:
        """The legs of a robot."""
        return Legs(robot.offsets, robot.signs, robot.knee_signs, robot.leg_inertial, robot.armature.reshape(-1, 3))


_forward = compiled_copy(kinematics.leg_forward)
_inverse = compiled_copy(kinematics.leg_inverse)
_torque = compiled_copy(kinematics.leg_torque)
calf_rate = compiled_copy(kinematics.calf_rate)


@compiled
def feet_of(legs: Legs, q: Array, feet: Array, jac: Array) -> None:
    """Feet (L, 3) and Jacobians (L, 3, 3) of all legs at joints (L, 3), written into `feet` and `jac`."""
    for leg in range(legs.offsets.shape[0]):
        foot, by_hip, by_thigh, by_calf = _forward(legs.offsets[leg], legs.signs[leg], q[leg])
        feet[leg], jac[leg, :, 0], jac[leg, :, 1], jac[leg, :, 2] = foot, by_hip, by_thigh, by_calf


@compiled
def foot_velocity(jac: Array, dq: Array, gyro: Array, foot: Array) -> Array:
    """Velocity of a foot relative to the base origin, in the base frame (3,): J dq + w x p."""
    return rotate(jac, dq) + cross(gyro, foot)


@compiled
def leg_ik(legs: Legs, leg: int, foot: Array, q: Array) -> None:
    """Joint angles (3,) that put a foot at `foot` (3,) in the base frame, or as near as it reaches, written to `q`."""
    q[0], q[1], q[2], _ = _inverse(legs.offsets[leg], legs.signs[leg], legs.knee_signs[leg], foot)


@compiled
def leg_torque(legs: Legs, leg: int, q: Array, dq: Array, ddq: Array, gravity: Array) -> Array:
    """Joint torques (3,) of a leg that moves freely on a base that does not turn; see `gait.robot.kinematics`."""
    inertial, armature = legs.inertial[leg], legs.armature[leg]
    return np.array(_torque(legs.offsets[leg], legs.signs[leg], inertial, armature, q, dq, ddq, gravity))


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
