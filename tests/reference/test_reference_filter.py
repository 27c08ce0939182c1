"""Every matrix of the reference filter against numerical derivatives of what it stands for."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from reference_samples import random_covariance

from gait.lie import rotation_from_quat, sek3_exp, so3_exp, so3_log
from gait.parameters import Options, Prior, ProcessNoise
from gait.reference.filter import ReferenceFilter, base_state, gamma, imu_state, prior_std

NOISE = ProcessNoise(gyro=0.01, accel=0.1, gyro_bias=1e-3, accel_bias=1e-2, accel_share=0.02)
EPS = 1e-6


class Recorded(ReferenceFilter):
    """A filter that keeps the last measurement and is not corrected by it."""

    def correct(self, z: np.ndarray, H: np.ndarray, N: np.ndarray) -> float:
        self.z, self.H, self.N = z, H, N
        return 0.0


def random_filter(seed: int, feet: int = 2, options: Options | None = None, kind: type = ReferenceFilter) -> Recorded:
    rng = np.random.default_rng(seed)
    f = kind(NOISE, options)
    f.start(so3_exp(rng.normal(size=3)), rng.normal(size=3), rng.normal(size=3), np.full(15, 0.1))
    f.P = random_covariance(rng, 15, 0.1)
    f.gyro_bias, f.accel_bias = rng.normal(size=3) * 0.1, rng.normal(size=3) * 0.1
    for leg in range(feet):
        f.add_foot(2 * leg, rng.normal(size=3), random_covariance(rng, 3, 0.01))
    return f


def moved(f: ReferenceFilter, xi: np.ndarray) -> ReferenceFilter:
    """The filter at exp(xi) X, written down once more."""
    f = copy.deepcopy(f)
    turn, shifts = sek3_exp(np.concatenate([xi[:9], xi[15:]]))
    f.R, f.v, f.p = turn @ f.R, turn @ f.v + shifts[0], turn @ f.p + shifts[1]
    f.feet = {leg: turn @ d + shift for (leg, d), shift in zip(f.feet.items(), shifts[2:], strict=True)}
    f.gyro_bias, f.accel_bias = f.gyro_bias + xi[9:12], f.accel_bias + xi[12:15]
    return f


def error(estimate: ReferenceFilter, truth: ReferenceFilter) -> np.ndarray:
    """xi of X_hat = exp(xi) X, to first order in xi."""
    turn = np.ascontiguousarray(estimate.R @ truth.R.T)
    shift = [x - turn @ y for x, y in zip(estimate._vectors(), truth._vectors(), strict=True)]
    bias = [estimate.gyro_bias - truth.gyro_bias, estimate.accel_bias - truth.accel_bias]
    return np.concatenate([so3_log(turn), *shift[:2], *bias, *shift[2:]])


def derivative(function, size: int, eps: float = EPS) -> np.ndarray:  # type: ignore[no-untyped-def]
    columns = [(function(eps * e) - function(-eps * e)) / (2 * eps) for e in np.eye(size)]
    return np.array(columns).T


def test_gamma_is_the_rotation_integrated() -> None:
    nodes, weights = np.polynomial.legendre.leggauss(30)
    s, ds = 0.5 * (nodes + 1), 0.5 * weights
    for length in (1e-9, 0.3, 3.0):
        phi = np.array([0.6, -0.64, 0.48]) * length
        turns = np.array([so3_exp(phi * x) for x in s])
        np.testing.assert_allclose(gamma(0, phi), so3_exp(phi), atol=1e-14)
        np.testing.assert_allclose(gamma(1, phi), np.einsum("s,sij->ij", ds, turns), atol=1e-13)
        np.testing.assert_allclose(gamma(2, phi), np.einsum("s,sij->ij", ds * (1 - s), turns), atol=1e-13)


def test_a_step_integrates_the_motion_of_a_turning_body() -> None:
    f = random_filter(1, feet=0)
    f.gyro_bias, f.accel_bias = np.zeros(3), np.zeros(3)
    R, v, p = f.R, f.v, f.p
    w, a, T = np.array([1.0, -2.0, 3.0]), np.array([2.0, 1.0, 9.0]), 0.4
    f.propagate(w, a, T)
    nodes, weights = np.polynomial.legendre.leggauss(30)
    s, ds = 0.5 * (nodes + 1) * T, 0.5 * T * weights
    force = np.array([R @ so3_exp(w * x) @ a + [0.0, 0.0, -9.81] for x in s])
    np.testing.assert_allclose(f.v, v + ds @ force, atol=1e-12)
    np.testing.assert_allclose(f.p, p + v * T + (ds * (T - s)) @ force, atol=1e-12)
    np.testing.assert_allclose(f.R, R @ so3_exp(w * T), atol=1e-12)


def numerical_transition(f: ReferenceFilter, dt: float) -> np.ndarray:
    rng = np.random.default_rng(5)
    gyro, accel = rng.normal(size=3), rng.normal(size=3) * 3 + [0.0, 0.0, 9.81]
    roll = dict(zip(f.feet, rng.normal(size=(len(f.feet), 3)), strict=True))

    def after(xi: np.ndarray) -> ReferenceFilter:
        g = moved(f, xi)
        g.propagate(gyro, accel, dt, foot_vel_i=roll)
        return g

    truth = after(np.zeros(len(f.P)))
    return derivative(lambda xi: error(after(xi), truth), len(f.P))


def test_transition_is_the_derivative_of_a_step() -> None:
    """Exactly for the extended pose (log-linear error); to first order of the rate within the step for biases."""
    f = random_filter(2)
    dt = 0.01
    numerical, Phi = numerical_transition(f, dt), f.transition(dt)
    pose = [*range(9), *range(15, len(Phi))]
    np.testing.assert_allclose(Phi[:, pose], numerical[:, pose], atol=1e-8)
    off = [np.abs(numerical_transition(f, h) - f.transition(h)).max() for h in (0.02, 0.01, 0.005)]
    assert off[1] < 2e-3 and 3.5 < off[0] / off[1] < 4.5 and 3.5 < off[1] / off[2] < 4.5  # O(dt^2)
    first = random_filter(2, options=Options(exact_phi=False))
    A = first.transition(1.0) - np.eye(len(Phi))
    powers = [np.linalg.matrix_power(A * dt, n) / math.factorial(n) for n in range(8)]
    np.testing.assert_allclose(Phi, np.sum(powers, axis=0), atol=1e-15)


def test_noise_map_is_the_derivative_by_sensor_noise() -> None:
    """X exp(n) = exp(Ad n) X: noise acts in the body's own axes."""
    f = random_filter(3)
    pose = [*range(9), *range(15, len(f.P))]

    def noisy(n: np.ndarray) -> np.ndarray:
        g = copy.deepcopy(f)
        turn, shifts = sek3_exp(n)
        vectors = [x + f.R @ shift for x, shift in zip(f._vectors(), shifts, strict=True)]
        g.R, g.v, g.p, g.feet = f.R @ turn, vectors[0], vectors[1], dict(zip(f.feet, vectors[2:], strict=True))
        return error(g, f)[pose]

    np.testing.assert_allclose(f.noise_map()[np.ix_(pose, pose)], derivative(noisy, len(pose)), atol=1e-8)


def test_noise_of_a_step_has_the_variance_of_its_density() -> None:
    f = random_filter(4)
    f.P = np.zeros_like(f.P)
    f.R, dt = np.eye(3), 1e-9
    f.v, f.p, f.feet = np.zeros(3), np.zeros(3), {leg: np.zeros(3) for leg in f.feet}
    accel = f.accel_bias + np.array([3.0, 0.0, 9.81 + 4.0])  # accelerates by 5 m/s^2
    f.propagate(np.zeros(3), accel, dt, {0: 0.3})
    variances = np.diag(f.P).reshape(-1, 3)[:, 0] / dt
    drift = 0.005**2  # of position and feet together
    want = [0.01**2, 0.1**2 + (0.02 * 5.0) ** 2, drift, 1e-3**2, 1e-2**2, 0.3**2 + drift, drift]
    np.testing.assert_allclose(variances, want, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("which", ["velocity", "gyro bias", "feet"])
def test_each_H_is_the_derivative_of_its_innovation(which: str) -> None:
    f = random_filter(6, kind=Recorded)
    rng = np.random.default_rng(7)
    axis, cov = rng.normal(size=3), {leg: random_covariance(rng, 3, 0.1) for leg in f.feet}
    feet = {leg: f.R.T @ (d - f.p) for leg, d in f.feet.items()}
    vel, bias = f.R.T @ f.v, f.gyro_bias

    def measure(xi: np.ndarray) -> Recorded:
        """What the true state gives, measured at exp(xi) of it."""
        g = moved(f, xi)
        assert isinstance(g, Recorded)
        if which == "velocity":
            g.correct_velocity(vel, cov[0])
        elif which == "feet":
            g.correct_feet(feet, cov)
        else:
            g.correct_gyro_bias(axis, float(axis @ (bias - g.gyro_bias)), 0.1)
        return g

    now = measure(np.zeros(len(f.P)))
    assert np.abs(now.z).max() < 1e-12
    np.testing.assert_allclose(now.H, -derivative(lambda xi: measure(xi).z, len(f.P)), atol=1e-8)
    if which != "gyro bias":
        np.testing.assert_allclose(now.N[:3, :3], f.R @ cov[0] @ f.R.T, atol=1e-15)
        assert which == "velocity" or not now.N[:3, 3:].any()


def test_a_correction_is_that_of_bayes() -> None:
    """Joseph form against the information form, and the state against the linear minimum; NIS with them."""
    f = random_filter(8)
    rng = np.random.default_rng(9)
    H, N, z = rng.normal(size=(4, len(f.P))), random_covariance(rng, 4, 0.5), rng.normal(size=4) * 1e-7
    P, before = f.P.copy(), copy.deepcopy(f)
    information = np.linalg.inv(P) + H.T @ np.linalg.inv(N) @ H
    nis = f.correct(z, H, N)
    np.testing.assert_allclose(f.P, np.linalg.inv(information), rtol=1e-6, atol=1e-9)
    delta = np.linalg.solve(information, H.T @ np.linalg.solve(N, z))
    np.testing.assert_allclose(error(f, before), delta, rtol=1e-5, atol=1e-13)
    assert nis == pytest.approx(z @ np.linalg.inv(H @ P @ H.T + N) @ z)
    np.testing.assert_array_equal(f.P, f.P.T)


def test_a_large_correction_stays_on_the_group() -> None:
    f = random_filter(10)
    want = moved(f, np.linspace(-1.0, 1.0, len(f.P)))
    H = np.eye(len(f.P))
    f.P = H * 1e6
    f.correct(np.linspace(-1.0, 1.0, len(f.P)), H, H * 1e-6)
    np.testing.assert_allclose(f.R, want.R, atol=1e-9)
    np.testing.assert_allclose(f._vectors(), want._vectors(), atol=1e-9)


def test_a_foot_joins_with_its_own_error_and_leaves() -> None:
    f = random_filter(11)
    rng = np.random.default_rng(12)
    foot, cov = rng.normal(size=3), random_covariance(rng, 3, 0.05)
    before = copy.deepcopy(f)

    def joined(xi: np.ndarray) -> ReferenceFilter:
        g = moved(before, xi)
        g.add_foot(5, foot, cov)
        return g

    truth = joined(np.zeros(len(f.P)))
    F = derivative(lambda xi: error(joined(xi), truth), len(f.P))
    want = F @ before.P @ F.T
    want[-3:, -3:] += f.R @ cov @ f.R.T
    f.add_foot(5, foot, cov)
    np.testing.assert_allclose(f.P, want, atol=1e-8)
    np.testing.assert_allclose(f.R.T @ (f.feet[5] - f.p), foot, atol=1e-12)
    f.remove_foot(0)
    assert list(f.feet) == [2, 5]
    np.testing.assert_allclose(f.P, np.delete(np.delete(want, [15, 16, 17], 0), [15, 16, 17], 1), atol=1e-8)


def test_prior_is_about_velocity_and_position_themselves() -> None:
    f = random_filter(13, feet=0)
    std = prior_std(Prior())
    assert std[2] == Prior().yaw and std[1] == Prior().rotation and std[14] == Prior().accel_bias
    f.start(f.R, f.v, f.p, std)

    def off(x: np.ndarray) -> np.ndarray:
        g = copy.deepcopy(f)
        g.R, g.v, g.p = so3_exp(np.ascontiguousarray(x[:3])) @ f.R, f.v + x[3:6], f.p + x[6:9]
        g.gyro_bias, g.accel_bias = x[9:12], x[12:15]
        return error(g, f)

    J = derivative(off, 15)
    np.testing.assert_allclose(f.P, J @ np.diag(std**2) @ J.T, atol=1e-9)


def mounting() -> tuple[np.ndarray, np.ndarray]:
    return rotation_from_quat(np.array([0.5, 0.5, -0.5, 0.5])), np.array([0.1, -0.2, 0.05])


def test_base_state_and_its_covariance() -> None:
    f, gyro = random_filter(14), np.array([0.3, -0.7, 1.1])
    R_bi, p_bi = mounting()
    state = base_state(f, gyro, R_bi, p_bi)
    R, v, p = imu_state(state.R_wb, state.vel_w, state.pos_w, gyro - f.gyro_bias, R_bi, p_bi)
    np.testing.assert_allclose(R, f.R, atol=1e-12)
    np.testing.assert_allclose([v, p], [f.v, f.p], atol=1e-12)
    np.testing.assert_allclose(rotation_from_quat(state.quat_wb_wxyz), state.R_wb, atol=1e-12)
    np.testing.assert_allclose(state.R_wb @ state.vel_b, state.vel_w, atol=1e-12)

    def pose(xi: np.ndarray) -> np.ndarray:
        other = base_state(moved(f, xi), gyro, R_bi, p_bi)
        turn = so3_log(np.ascontiguousarray(other.R_wb @ state.R_wb.T))
        return np.concatenate([other.pos_w, turn])

    J = derivative(pose, len(f.P))
    np.testing.assert_allclose(state.pose_cov, J @ f.P @ J.T, atol=1e-8)
    # The gyro bias moves base_link by the lever arm too; that part is not in the covariance.
    J = derivative(lambda xi: base_state(moved(f, xi), gyro, R_bi, p_bi).vel_b, len(f.P))
    J[:, 9:12] = 0.0
    np.testing.assert_allclose(state.vel_cov, J @ f.P @ J.T, atol=1e-8)


def test_start_at_rest_levels_the_base() -> None:
    f = random_filter(15)
    R_bi, p_bi = mounting()
    R_wb = so3_exp(np.array([0.0, -0.4, 0.0])) @ so3_exp(np.array([0.3, 0.0, 0.0]))
    accel = (R_wb @ R_bi).T @ [0.0, 0.0, 9.81]
    assert not f.start_at_rest(accel * 1.6, R_bi, p_bi, np.full(15, 0.1)) and f.feet
    assert f.start_at_rest(accel, R_bi, p_bi, np.full(15, 0.1)) and not f.feet
    state = base_state(f, np.zeros(3), R_bi, p_bi)
    np.testing.assert_allclose(state.R_wb, R_wb, atol=1e-12)
    np.testing.assert_allclose([state.vel_w, state.pos_w], 0.0, atol=1e-12)


def test_a_gap_holds_the_velocity_and_inflates_the_covariance() -> None:
    f = random_filter(16)
    v, P = f.v, f.P
    f.bridge_gap(2.0)
    np.testing.assert_allclose(f.v, v, atol=1e-12)
    assert not f.feet and f.P.shape == (15, 15)
    grown = np.trace(f.P[3:6, 3:6]) - np.trace(P[3:6, 3:6])
    assert grown > 3.0 * (f.options.gap_accel * 2.0) ** 2
    longest = copy.deepcopy(f)
    longest.bridge_gap(1e6)
    f.bridge_gap(30.0)
    np.testing.assert_array_equal(f.P, longest.P)
