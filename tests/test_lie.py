"""Group axioms over random, tiny and near-pi tangents, and equality with gtsam's SE_2(3)."""

import needs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gait import lie

ANGLES = st.one_of(
    st.floats(0.0, 3.1),
    st.floats(-14.0, -1.0).map(lambda e: 10.0**e),
    st.floats(-12.0, -3.0).map(lambda e: np.pi - 10.0**e),
    st.sampled_from([0.0, 0.4999999, 0.5, 0.5000001]),
)
UNIT = st.integers(0, 2**32 - 1)


@st.composite
def rotation_vectors(draw: st.DrawFn) -> np.ndarray:
    direction = np.random.default_rng(draw(UNIT)).normal(size=3)
    return draw(ANGLES) * direction / np.linalg.norm(direction)


@st.composite
def tangents(draw: st.DrawFn, k: int = 2) -> np.ndarray:
    vectors = np.random.default_rng(draw(UNIT)).normal(size=3 * k) * 10.0 ** draw(st.floats(-8, 1))
    return np.concatenate([draw(rotation_vectors()), vectors])


def as_matrix(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    k = len(x)
    X = np.eye(3 + k)
    X[:3, :3], X[:3, 3:] = R, x.T
    return X


@given(rotation_vectors())
def test_so3_exp_is_a_rotation_and_log_inverts_it(w: np.ndarray) -> None:
    R = lie.so3_exp(w)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(lie.so3_exp(lie.so3_log(R)), R, atol=1e-14)
    if np.linalg.norm(w) < 3.1:
        np.testing.assert_allclose(lie.so3_log(R), w, rtol=1e-12, atol=1e-15)


@given(rotation_vectors())
def test_quaternions_and_rotations_agree(w: np.ndarray) -> None:
    R = lie.so3_exp(w)
    quat = lie.quat_from_rotation(R)
    assert np.linalg.norm(quat) == pytest.approx(1.0, abs=1e-15)
    assert quat[0] >= 0.0
    np.testing.assert_allclose(lie.rotation_from_quat(quat), R, atol=1e-14)


@given(rotation_vectors())
def test_left_jacobian_and_its_inverse(w: np.ndarray) -> None:
    J = lie.so3_left_jacobian(w)
    np.testing.assert_allclose(J @ lie.so3_left_jacobian_inverse(w), np.eye(3), atol=1e-12)
    # J is the integral of exp(s w): Gauss-Legendre with 20 nodes is exact to rounding here.
    nodes, weights = np.polynomial.legendre.leggauss(20)
    integral = sum(0.5 * g * lie.so3_exp((0.5 * n + 0.5) * w) for n, g in zip(nodes, weights, strict=True))
    np.testing.assert_allclose(J, integral, atol=1e-13)
    gammas = lie.gammas(w)
    np.testing.assert_allclose(gammas[0], lie.so3_exp(w), atol=1e-15)
    np.testing.assert_allclose(gammas[1], J, atol=1e-15)
    double = sum(
        0.5 * g * (0.5 - 0.5 * n) * lie.so3_exp((0.5 * n + 0.5) * w) for n, g in zip(nodes, weights, strict=True)
    )
    np.testing.assert_allclose(gammas[2], double, atol=1e-13)


@given(tangents(k=3), tangents(k=3))
def test_adjoint_moves_a_tangent_across(a: np.ndarray, b: np.ndarray) -> None:
    A, b = lie.sek3_exp(a), 0.1 * b
    left = as_matrix(*A) @ as_matrix(*lie.sek3_exp(b))
    right = as_matrix(*lie.sek3_exp(lie.sek3_adjoint(*A) @ b)) @ as_matrix(*A)
    np.testing.assert_allclose(left, right, atol=1e-10)


def test_equal_to_gtsam_extended_pose() -> None:
    gtsam = needs.package("gtsam")
    if not hasattr(gtsam, "ExtendedPose32"):
        needs.lacking("gtsam 4.3", "pip install -U gtsam")
    rng = np.random.default_rng(0)
    # gtsam orders rotation, position, velocity, as columns; ours are rotation, then rows in the order given.
    for scale in (1e-9, 1e-4, 0.3, 1.0):
        for _ in range(50):
            xi = rng.normal(size=9) * scale
            theirs = gtsam.ExtendedPose32.Expmap(xi)
            R, x = lie.sek3_exp(xi)
            np.testing.assert_allclose(as_matrix(R, x), theirs.matrix(), atol=1e-12)
            np.testing.assert_allclose(lie.sek3_adjoint(R, x), theirs.AdjointMap(), atol=1e-12)
