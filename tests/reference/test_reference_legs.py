"""Features and fusion of legs in the reference, on motions that are known and against least squares."""

from __future__ import annotations

import numpy as np
import pytest
from reference_samples import LEG_COUNTS, random_covariance, random_robot, random_sample
from synthetic import walking_log

from gait import Log, Robot
from gait.lie import rotation_from_quat, so3_exp
from gait.parameters import LEG_INSTANT, LEGS_NOISE, Options
from gait.reference.chain import chains_of, foot_jacobian, foot_position, joint_torques
from gait.reference.filter import ReferenceFilter
from gait.reference.leg_velocity import (
    FOOT_ACCELERATION,
    FORCE,
    PER_LEG,
    SHARED,
    VELOCITY,
    LegFeatures,
    LegGeometry,
    VelocityMeasurement,
    fuse_legs,
    gate_legs,
    leg_variances,
    measure_legs,
    predicted_motion,
    yaw_bias,
)


@pytest.fixture(scope="module")
def walk() -> Log:
    return walking_log(0.6)


def features_of(log: Log, robot: Robot, latency: float) -> np.ndarray:
    """(N, L, 12)"""
    features = LegFeatures(robot, latency)
    rows = [features.step(r.gyro, r.accel, r.q, r.dq, r.tau, 1.0 / log.rate) for r in log.rows()]
    return np.array(rows)[:, SHARED:].reshape(len(log), -1, PER_LEG)


def test_a_standing_leg_measures_the_velocity_of_the_body(walk: Log) -> None:
    robot = Robot.load("go1")
    legs = features_of(walk, robot, latency=0.0)
    measured = legs[..., VELOCITY][10:]
    standing, moving = walk.contact[10:], np.repeat(walk.vel_b[10:, None], 4, axis=1)
    # The feet of this walk roll about the world's vertical, the features roll them about the base's.
    assert np.abs(measured - moving)[standing].max() < 0.02
    assert np.abs(measured - moving)[~standing].max() > 0.5
    force = legs[10:, :, FORCE]
    assert np.median(force[standing][:, 2]) == pytest.approx(0.5, abs=0.05) and np.median(force[~standing][:, 2]) < 0.05


def test_latency_takes_the_rate_of_that_moment() -> None:
    robot, dt, latency = random_robot(4, 0), 0.002, 0.005
    features, rng = LegFeatures(robot, latency), np.random.default_rng(0)
    sample, R_bi = random_sample(robot, rng), rotation_from_quat(robot.imu_quat_wxyz)
    still, slope = sample.dq * 0.0, rng.normal(size=3) * 10
    for k in range(10):
        x = features.step(R_bi.T @ (slope * k * dt), sample.accel, sample.q, still, sample.tau, dt)
    w_then = slope * (9 * dt - latency)
    for i, (chain, q) in enumerate(zip(chains_of(robot), sample.q.reshape(-1, 3), strict=True)):
        rolled = robot.foot_radius * np.cross(w_then, [0.0, 0.0, 1.0])
        want = -np.cross(w_then, foot_position(chain, q)) + rolled
        np.testing.assert_allclose(x[SHARED + PER_LEG * i :][VELOCITY], want, atol=1e-12)


def test_accelerations_and_torques_are_smoothed_alike() -> None:
    robot, dt = Robot.load("go1"), 0.002
    features, rng = LegFeatures(robot, 0.0), np.random.default_rng(1)
    sample = random_sample(robot, rng)
    jerk = rng.normal(size=12) * 100
    arguments = (sample.gyro, sample.accel, sample.q)
    first = features.step(*arguments, sample.dq, sample.tau, dt)[SHARED:].reshape(4, PER_LEG)
    assert not first[:, FOOT_ACCELERATION].any()
    features.step(*arguments, sample.dq + jerk * dt, sample.tau + 1.0, dt)
    known = np.array([True, True, False, True])
    third = features.step(*arguments, sample.dq + 2 * jerk * dt, sample.tau + 1.0, dt, known)
    third = third[SHARED:].reshape(4, PER_LEG)
    reached = 1.0 - (2.0 / 3.0) ** 2  # dt / (0.004 + dt) is a third
    for i, chain in enumerate(chains_of(robot)):
        j = slice(3 * i, 3 * i + 3)
        share = reached if known[i] else 0.0
        J = foot_jacobian(chain, sample.q[j])
        np.testing.assert_allclose(third[i, FOOT_ACCELERATION], J @ jerk[j] * share, atol=1e-9)
        tau = sample.tau[j] + (share if known[i] else 1.0)
        dq = sample.dq[j] + 2 * jerk[j] * dt
        free = joint_torques(chain, sample.q[j], dq, jerk[j] * share, -sample.accel)
        force = np.linalg.solve(J.T, free - tau) / (robot.mass * 9.81)
        np.testing.assert_allclose(third[i, FORCE], force, rtol=1e-9)


def random_filter(rng: np.random.Generator, options: Options) -> ReferenceFilter:
    ekf = ReferenceFilter(LEGS_NOISE, options)
    ekf.start(so3_exp(rng.normal(size=3)), rng.normal(size=3), rng.normal(size=3), np.full(15, 0.1))
    ekf.P = random_covariance(rng, 15, 0.1)
    ekf.gyro_bias, ekf.accel_bias = rng.normal(size=3) * 0.1, rng.normal(size=3) * 0.1
    return ekf


def test_predicted_motion_is_the_derivative_of_a_step() -> None:
    """With the IMU at the origin of the base, where the lever arm adds nothing."""
    rng = np.random.default_rng(2)
    ekf, gyro, accel = random_filter(rng, Options()), rng.normal(size=3), rng.normal(size=3) * 5
    R_bi, p_bi, dt = so3_exp(rng.normal(size=3)), np.zeros(3), 1e-6
    _, before, var, change, _ = predicted_motion(ekf, gyro, accel, R_bi, p_bi)
    R_wb = ekf.R @ R_bi.T
    np.testing.assert_allclose(var, np.diag(R_wb.T @ ekf.P[3:6, 3:6] @ R_wb))
    ekf.propagate(gyro, accel, dt)
    after = predicted_motion(ekf, gyro, accel, R_bi, p_bi)[1]
    np.testing.assert_allclose((after - before) / dt, change, atol=1e-4)


def fused(
    ekf: ReferenceFilter, imu: np.ndarray, features: np.ndarray, out: np.ndarray, ok: np.ndarray, geometry: LegGeometry
) -> VelocityMeasurement:
    """From angular rate and specific force (2, 3), velocity and log-std of each leg (2, L, 3)."""
    motion = predicted_motion(ekf, *imu, geometry.R_bi, geometry.p_bi)
    legs, _ = gate_legs(measure_legs(ekf, features, *out, ok, geometry), motion, ekf.options)
    return fuse_legs(legs, motion, ekf.options)


@pytest.mark.parametrize("legs", LEG_COUNTS)
def test_fusion_is_least_squares_over_all_legs(legs: int) -> None:
    """Velocity along x and y and the bias about z, all unknown at once; z by itself."""
    rng, robot = np.random.default_rng(legs), random_robot(legs, legs)
    options = Options(leg_guard=1e6)
    ekf, geometry = random_filter(rng, options), LegGeometry(robot)
    features = rng.normal(size=SHARED + PER_LEG * legs)
    velocity, log_std = rng.normal(size=(legs, 3)), rng.uniform(-3.0, 0.5, size=(legs, 3))
    gyro, accel = rng.normal(size=(2, 3))
    ok = np.ones(legs, dtype=bool)
    ok[-1] = legs == 2
    m = fused(ekf, np.array([gyro, accel]), features, np.array([velocity, log_std]), ok, geometry)
    feet, bias = geometry.feet_b(features)[ok], geometry.R_bi @ ekf.gyro_bias
    foot_accel = features[SHARED:].reshape(legs, PER_LEG)[ok][:, FOOT_ACCELERATION]
    r = leg_variances(log_std[ok], foot_accel, options)
    z = velocity[ok] + np.cross(bias, feet)
    A = np.zeros((len(z), 2, 3))
    A[:, 0, 0] = A[:, 1, 1] = 1.0
    A[:, 0, 2], A[:, 1, 2] = feet[:, 1], -feet[:, 0]
    weight = 1.0 / np.sqrt(r[:, :2]).ravel()
    A, b = A.reshape(-1, 3) * weight[:, None], z[:, :2].ravel() * weight
    w_b, _, _, a_b, _ = predicted_motion(ekf, gyro, accel, geometry.R_bi, geometry.p_bi)
    assert m.gyro_bias_z == pytest.approx(np.linalg.lstsq(A, b, rcond=None)[0][2])
    spread = 1.5**2 + 3.0**2 * w_b @ w_b + 0.3**2 * a_b @ a_b
    assert m.gyro_bias_z_var == pytest.approx(spread * np.linalg.inv(A.T @ A)[2, 2])
    assert m.mean_b is not None
    for axis in range(3):
        assert m.mean_b[axis] == pytest.approx(np.average(z[:, axis], weights=1.0 / r[:, axis]))
    np.testing.assert_allclose(m.vel_b, m.mean_b + options.joint_delay * a_b)
    np.testing.assert_allclose(m.var_b, 1.0 / (1.0 / r).sum(0))


def test_a_gyro_bias_shows_as_itself() -> None:
    """Legs that measure with a biased gyro: the fusion returns velocity and bias, whatever the weights."""
    rng, feet = np.random.default_rng(3), np.random.default_rng(3).normal(size=(4, 3))
    weight, error, v = rng.uniform(0.5, 2.0, (4, 3)), 0.07, np.array([0.5, -0.2, 0.1])
    z = v - np.cross([0.0, 0.0, error], feet)
    mean = (weight * z).sum(0) / weight.sum(0)
    assert yaw_bias(feet, z - mean, weight)[0] == pytest.approx(error)
    assert yaw_bias(feet[:1], z[:1] - z[:1], weight[:1]) == (0.0, 0.0)  # a single leg tells nothing


def test_variance_of_a_leg_grows_with_its_nis() -> None:
    rng, robot = np.random.default_rng(4), random_robot(4, 4)
    options = Options(leg_guard=2.0, joint_delay=0.0)
    ekf, geometry = random_filter(rng, options), LegGeometry(robot)
    features, gyro, accel = rng.normal(size=SHARED + PER_LEG * 4) * 0.1, rng.normal(size=3), rng.normal(size=3)
    features[SHARED:].reshape(4, PER_LEG)[:, FOOT_ACCELERATION] = 0.0
    _, v_b, var_b, _, _ = predicted_motion(ekf, gyro, accel, geometry.R_bi, geometry.p_bi)
    agrees = v_b - np.cross(geometry.R_bi @ ekf.gyro_bias, geometry.feet_b(features))
    log_std, one = np.full((4, 3), np.log(0.1)), np.eye(4, dtype=bool)
    r = (options.leg_inflation * 0.1) ** 2
    # Three standard deviations off on every axis: NIS 9 against a gate of 4.
    off = agrees + 3.0 * np.sqrt(var_b + LEG_INSTANT**2 * r)
    for velocity, factor in ((agrees, 1.0), (off, 9.0 / 4.0)):
        m = fused(ekf, np.array([gyro, accel]), features, np.array([velocity, log_std]), one[1], geometry)
        np.testing.assert_allclose(m.var_b, r * factor)
    mixed = np.where(one[0][:, None], off, agrees)
    m = fused(ekf, np.array([gyro, accel]), features, np.array([mixed, log_std]), one.any(0), geometry)
    np.testing.assert_allclose(m.var_b, r / (3.0 + 4.0 / 9.0))


def test_a_leg_that_tells_nothing_is_not_fused() -> None:
    rng, robot = np.random.default_rng(5), random_robot(4, 5)
    ekf, geometry = random_filter(rng, Options(leg_inflation=2.0)), LegGeometry(robot)
    log_std = np.full((4, 3), np.log(1.4))
    log_std[1], log_std[2, :2] = np.log(1.6), np.log(1.6)  # inflated: above 3 m/s on all axes, and on two of them
    legs = measure_legs(ekf, np.zeros(SHARED + PER_LEG * 4), np.zeros((4, 3)), log_std, np.arange(4) != 3, geometry)
    assert legs.used.tolist() == [True, False, True, False] and legs.velocity.shape == (2, 3)
