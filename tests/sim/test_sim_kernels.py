"""The simulator's compiled copies of kinematics and rotations against the readable ones of the package."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gait import Robot, lie

pytest.importorskip("numba", reason="numba comes with the sim extra")

from gait.sim import kernels

ANGLES = st.one_of(
    st.floats(0.0, 3.1),
    st.floats(-14.0, -1.0).map(lambda e: 10.0**e),
    st.floats(-12.0, -3.0).map(lambda e: np.pi - 10.0**e),
    st.sampled_from([0.0, 0.4999999, 0.5, 0.5000001]),
)


@given(ANGLES, st.integers(0, 2**32 - 1))
def test_rotations_equal_those_of_the_package(angle: float, seed: int) -> None:
    direction = np.random.default_rng(seed).normal(size=3)
    w = angle * direction / np.linalg.norm(direction)
    R = kernels.so3_exp(w)
    np.testing.assert_allclose(R, lie.so3_exp(w), atol=1e-15)
    np.testing.assert_allclose(kernels.so3_exp(kernels.so3_log(R)), R, atol=1e-14)
    quat = lie.quat_from_rotation(R)
    np.testing.assert_allclose(kernels.rotation_from_quat(quat), R, atol=1e-14)
    inverse = kernels.so3_left_jacobian_inverse(w)
    np.testing.assert_allclose(inverse, lie.so3_left_jacobian_inverse(w), atol=1e-13)
    np.testing.assert_allclose(kernels.rotate(R.T, R[:, 0].copy()), [1, 0, 0], atol=1e-14)
    np.testing.assert_allclose(kernels.product(R, inverse), R @ inverse, atol=1e-14)


@pytest.mark.parametrize("name", ["go1", "go2"])
def test_legs_equal_those_of_the_robot(name: str) -> None:
    robot, rng = Robot.load(name), np.random.default_rng(0)
    for _ in range(50):
        q, dq, gyro = rng.uniform(robot.q_lower, robot.q_upper), rng.normal(size=12), rng.normal(size=3)
        feet, jac = kernels.forward(robot, q)
        np.testing.assert_allclose(feet, robot.feet(q), atol=1e-14)
        np.testing.assert_allclose(jac, robot.jacobian(q), atol=1e-14)
        velocity = robot.foot_velocity(q, dq, gyro)
        for leg in range(4):
            one = kernels.foot_velocity(jac[leg], dq[3 * leg : 3 * leg + 3], gyro, feet[leg])
            np.testing.assert_allclose(one, velocity[leg], atol=1e-14)
        again = kernels.inverse(robot, feet)
        np.testing.assert_allclose(kernels.forward(robot, again)[0][:, 2], feet[:, 2], atol=1e-9)
