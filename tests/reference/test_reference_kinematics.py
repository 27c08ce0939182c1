"""The serial chain against Pinocchio: on chains drawn at random, and on Unitree's published Go1."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import numpy as np
import pytest
from reference_samples import random_covariance, random_joints

from gait import Robot
from gait.reference.chain import (
    Chain,
    chains_of,
    foot_jacobian,
    foot_position,
    foot_rate,
    foot_velocity,
    joint_torques,
)

pin = pytest.importorskip("pinocchio", reason="Pinocchio comes with the dev extra")
SHARE = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"


def random_chain(joints: int, seed: int) -> Chain:
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(joints, 3))
    moments = [random_covariance(rng, 3, 0.1) for _ in range(joints)]
    return Chain(
        axes=axes / np.linalg.norm(axes, axis=1, keepdims=True),
        offsets=rng.normal(size=(joints + 1, 3)) * 0.3,
        mass=rng.uniform(0.1, 2.0, joints),
        com=rng.normal(size=(joints, 3)) * 0.1,
        inertia=np.array([np.trace(m) * np.eye(3) - m for m in moments]),
        armature=rng.uniform(0.0, 0.02, joints),
    )


class PinocchioChain:
    """The independent implementation."""

    def __init__(self, chain: Chain) -> None:
        self.model, parent = pin.Model(), 0
        for j, axis in enumerate(chain.axes):
            place = pin.SE3(np.eye(3), chain.offsets[j])
            parent = self.model.addJoint(parent, pin.JointModelRevoluteUnaligned(axis), place, f"joint{j}")
            inertia = pin.Inertia(chain.mass[j], chain.com[j], chain.inertia[j])
            self.model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
        foot = pin.SE3(np.eye(3), chain.offsets[-1])
        self.foot = self.model.addFrame(pin.Frame("foot", parent, 0, foot, pin.FrameType.OP_FRAME))
        self.data = self.model.createData()

    def forward(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        jac = pin.getFrameJacobian(self.model, self.data, self.foot, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        return self.data.oMf[self.foot].translation.copy(), jac.reshape(6, -1)

    def torques(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        self.model.gravity.linear = gravity
        return np.array(pin.rnea(self.model, self.data, q, dq, ddq))


@pytest.mark.parametrize("joints", [1, 2, 3, 6, 7])
def test_any_chain_equals_pinocchio(joints: int) -> None:
    chain, rng = random_chain(joints, joints), np.random.default_rng(joints)
    theirs = PinocchioChain(chain)
    for _ in range(20):
        q, dq, ddq = rng.normal(size=(3, joints)) * [[2.0], [5.0], [50.0]]
        gravity, w = rng.normal(size=(2, 3)) * 9.81
        foot, jac = theirs.forward(q)
        np.testing.assert_allclose(foot_position(chain, q), foot, atol=1e-12)
        np.testing.assert_allclose(foot_jacobian(chain, q), jac[:3], atol=1e-12)
        np.testing.assert_allclose(foot_velocity(chain, q, dq, w), jac[:3] @ dq + np.cross(w, foot), atol=1e-11)
        np.testing.assert_allclose(foot_rate(chain, q, dq, w), jac[3:] @ dq + w, atol=1e-11)
        want = theirs.torques(q, dq, ddq, gravity) + chain.armature * ddq
        np.testing.assert_allclose(joint_torques(chain, q, dq, ddq, gravity), want, atol=1e-9)


def test_the_legs_of_a_go1_equal_its_published_model() -> None:
    urdf = SHARE / "go1_description/urdf/go1.urdf"
    if not urdf.is_file():
        pytest.skip("the Go1 URDF comes with example-robot-data in the dev extra")
    robot, model = Robot.load("go1"), pin.buildModelFromUrdf(str(urdf))
    data, rng = model.createData(), np.random.default_rng(1)
    at = [model.joints[model.getJointId(name)].idx_v for name in robot.joint_names]
    for _ in range(20):
        q, dq, ddq = random_joints(robot, rng), rng.normal(size=12) * 10, rng.normal(size=12) * 200
        gravity, full = rng.normal(size=3) * 9.81, np.zeros((3, model.nv))
        full[:, at] = q, dq, ddq
        model.gravity.linear = gravity
        torques = pin.rnea(model, data, *full)[at] + robot.armature * ddq
        pin.framesForwardKinematics(model, data, full[0])
        for i, chain in enumerate(chains_of(robot)):
            j = slice(3 * i, 3 * i + 3)
            foot = data.oMf[model.getFrameId(f"{robot.leg_names[i]}_foot")].translation
            np.testing.assert_allclose(foot_position(chain, q[j]), foot, atol=1e-9)
            np.testing.assert_allclose(joint_torques(chain, q[j], dq[j], ddq[j], gravity), torques[j], atol=1e-9)
