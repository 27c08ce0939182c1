"""Measurements of other sensors: the core against the reference, and every H against a numerical derivative."""

from __future__ import annotations

import ctypes

import core_calls
import numpy as np
import pytest

from gait import lie
from gait.arrays import Array
from gait.binding import CExternal, core, fill, pointer
from gait.engine import Context, Engine
from gait.external import KINDS
from gait.parameters import ProcessNoise
from gait.reference.external_rows import SensorView, rows, view
from gait.reference.filter import ReferenceFilter
from gait.robot import Robot

MEASURED = [kind for kind in KINDS if kind != "zero_velocity"]


def random_rotation(rng: np.random.Generator, size: float = 1.0) -> Array:
    return lie.so3_exp(size * rng.normal(size=3))


def random_cov(rng: np.random.Generator, size: int) -> Array:
    A = 0.1 * rng.normal(size=(size, size))
    return A @ A.T + 0.01 * np.eye(size)


def measured_by(kind: str, s: SensorView) -> Array:
    """What a sensor without noise says."""
    at, R = s.p + s.R @ s.lever_i, s.R_ws
    moving = s.v + s.R @ np.cross(s.omega_i, s.lever_i)
    return {
        "pose": np.r_[at, lie.quat_from_rotation(R)],
        "position": at,
        "height": at[2:],
        "velocity_w": moving,
        "velocity_b": R.T @ moving,
        "heading": np.array([np.arctan2(R[1, 0], R[0, 0])]),
        "gravity": R[2],
        "orientation": lie.quat_from_rotation(R),
    }[kind]


@pytest.mark.parametrize("kind", MEASURED)
def test_h_is_the_derivative_of_the_innovation(kind: str) -> None:
    """z(exp(xi) X) = -H xi: the true state measures, the estimate is off by xi in one direction after the other."""
    rng = np.random.default_rng(0)
    gyro, accel, lever, R_is = rng.normal(size=3), rng.normal(size=3), rng.normal(size=3), random_rotation(rng)
    true = ReferenceFilter(ProcessNoise())
    true.start(random_rotation(rng, 0.5), rng.normal(size=3), rng.normal(size=3), np.ones(15))
    true.gyro_bias, true.accel_bias = 0.1 * rng.normal(size=(2, 3))
    age, step = 0.004, 1e-6
    y = measured_by(kind, view(true, gyro, accel, lever, R_is, age))
    cov = np.eye(KINDS[kind].size)
    z, H, _ = rows(kind, view(true, gyro, accel, lever, R_is, age), y, cov)
    np.testing.assert_allclose(z, 0.0, atol=1e-12)
    found = np.zeros_like(H)
    for i in range(15):
        off = np.zeros(15)
        off[i] = step
        turn, shifts = lie.sek3_exp(off[:9])
        estimate = ReferenceFilter(ProcessNoise())
        estimate.start(turn @ true.R, turn @ true.v + shifts[0], turn @ true.p + shifts[1], np.ones(15))
        estimate.gyro_bias, estimate.accel_bias = true.gyro_bias + off[9:12], true.accel_bias + off[12:]
        found[:, i] = -rows(kind, view(estimate, gyro, accel, lever, R_is, age), y, cov)[0] / step
    # Terms of the biases times the age, which both leave out, are below a hundredth.
    np.testing.assert_allclose(found, H, atol=0.02)
    np.testing.assert_allclose(found[:, :9], H[:, :9], atol=1e-4)


@pytest.mark.parametrize("kind", MEASURED)
def test_core_against_reference(kind: str) -> None:
    rng, robot = np.random.default_rng(1), Robot.load("go1")
    context = Context(Engine(robot))
    estimate = core_calls.CContext.from_address(context.at)
    reference = ReferenceFilter(ProcessNoise())
    R, v, p = random_rotation(rng, 0.5), rng.normal(size=3), rng.normal(size=3)
    reference.start(R, v, p, np.ones(15))
    reference.gyro_bias, reference.accel_bias = 0.1 * rng.normal(size=(2, 3))
    gyro, accel = rng.normal(size=3), rng.normal(size=3)
    fill(estimate.filter.R, R.ravel())
    fill(estimate.filter.x, np.array([v, p]))
    fill(estimate.filter.b, np.array([reference.gyro_bias, reference.accel_bias]))
    fill(estimate.input.gyro, gyro)
    fill(estimate.input.accel, accel)
    estimate.input.t = 5.0
    R_bs, p_bs = random_rotation(rng), rng.normal(size=3)
    R_bi, p_bi = lie.rotation_from_quat(robot.imu_quat_wxyz), robot.imu_position
    lever, R_is = R_bi.T @ (p_bs - p_bi), R_bi.T @ R_bs
    s = view(reference, gyro, accel, lever, R_is, 0.003)
    off = view(reference, gyro + 0.05, accel, lever + 0.02, R_is @ random_rotation(rng, 0.05), 0.003)
    y, cov = measured_by(kind, off), random_cov(rng, KINDS[kind].size)
    measured = CExternal(kind=KINDS[kind].number, t=5.003, gate=3.0)
    for target, values in (
        (measured.value, y), (measured.cov, cov.ravel()), (measured.p_bs, p_bs),
        (measured.quat_bs_wxyz, lie.quat_from_rotation(R_bs)),
    ):  # fmt: skip
        fill(target, values)
    z, H, N = np.zeros(6), np.zeros(90), np.zeros(36)
    m = core().gait_external_rows(context.at, ctypes.addressof(measured), *map(pointer, (z, H, N)))
    expected = rows(kind, s, y, cov)
    assert m == len(expected[0])
    for found, wanted in zip((z[:m], H[: 15 * m], N[: m * m]), expected, strict=True):
        np.testing.assert_allclose(found, wanted.ravel(), atol=1e-12)
