"""Chains of published models against Pinocchio: the core through its binding, the reference, and torch."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
from robot.published_models import MJCF, URDF, hexapod, mjcf, urdf

from gait import Robot
from gait.binding import core, pointer
from gait.core_config import core_robot
from gait.reference.chain import foot_jacobian, foot_position, foot_rate, foot_velocity, joint_torques
from gait.robot.chain_yaml import robot_text
from gait.robot.leg_detection import read_model

EXACT = {"rtol": 1e-9, "atol": 1e-9}


class Pinocchio:
    """The independent implementation, on the same file."""

    def __init__(self, path: Path, robot: Robot) -> None:
        self.pin = needs.package("pinocchio")
        self.tree = read_model(path)
        build = self.pin.buildModelFromMJCF if path.suffix == ".xml" else self.pin.buildModelFromUrdf
        self.model = build(str(path))
        self.robot = robot
        self.data = self.model.createData()
        self.joints = {joint.name: joint for body in self.tree.bodies for joint in body.joints}
        self.base = self.model.getFrameId(robot.base_link, self.pin.FrameType.BODY)
        self._poses(self.full(dict.fromkeys(robot.joint_names, 0.0)))
        self.feet = []
        for leg, centre in zip(robot.legs, robot.feet(self._zero()), strict=True):
            last = self.model.getJointId([*leg.joint_names][-1])
            placement = self.data.oMi[last].inverse() * self.data.oMf[self.base]
            self.feet.append((last, placement.act(centre)))

    def _zero(self) -> np.ndarray:
        return np.zeros(self.robot.num_joints)

    def _poses(self, q: np.ndarray) -> None:
        self.pin.forwardKinematics(self.model, self.data, q)
        self.pin.updateFramePlacements(self.model, self.data)

    def full(self, values: dict[str, float], rates: bool = False) -> np.ndarray:
        out = np.zeros(self.model.nv) if rates else self.pin.neutral(self.model)
        for name, joint in self.joints.items():
            leader, ratio, shift = (joint.leader, joint.ratio, joint.shift) if joint.leader else (name, 1.0, 0.0)
            if leader in values and self.model.existJointName(name):
                found = self.model.joints[self.model.getJointId(name)]
                value = ratio * values[leader] + (0.0 if rates else shift)
                if rates or found.nq == 1:
                    out[found.idx_v if rates else found.idx_q] = value
                else:  # without limits: a point on the circle
                    out[found.idx_q : found.idx_q + 2] = np.cos(value), np.sin(value)
        return out

    def foot(self, leg: int, q: dict[str, float], dq: dict[str, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Place, velocity and angular velocity of a foot relative to the base, in its axes."""
        pin, (joint, centre) = self.pin, self.feet[leg]
        pin.forwardKinematics(self.model, self.data, self.full(q), self.full(dq, rates=True))
        pin.updateFramePlacements(self.model, self.data)
        base, at = self.data.oMf[self.base], self.data.oMi[joint]
        moved = pin.getVelocity(self.model, self.data, joint, pin.ReferenceFrame.WORLD)
        still = pin.getFrameVelocity(self.model, self.data, self.base, pin.ReferenceFrame.WORLD)
        difference = moved - still
        world = at.act(centre)
        velocity = difference.linear + np.cross(difference.angular, world)
        return base.actInv(world), base.rotation.T @ velocity, base.rotation.T @ difference.angular

    def torques(self, *motion: dict[str, float], gravity_b: np.ndarray) -> np.ndarray:
        """Of the joints in the robot's order, those of followers with their leader."""
        q, *rates = motion
        full = self.full(q)
        self._poses(full)
        self.model.gravity.linear = self.data.oMf[self.base].rotation @ gravity_b
        tau = self.pin.rnea(self.model, self.data, full, *(self.full(rate, rates=True) for rate in rates))
        out = dict.fromkeys(self.robot.joint_names, 0.0)
        for name, joint in self.joints.items():
            leader, ratio = (joint.leader, joint.ratio) if joint.leader else (name, 1.0)
            if leader in out and self.model.existJointName(name):
                out[leader] += ratio * tau[self.model.joints[self.model.getJointId(name)].idx_v]
        return np.array([out[name] for name in self.robot.joint_names])


class CoreLeg:
    """The core, through its binding."""

    def __init__(self, robot: Robot) -> None:
        self.described = core_robot(robot)
        self.at = ctypes.addressof(self.described)

    def forward(self, leg: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        foot, jac, angular, q = np.zeros(3), np.zeros((len(q), 3)), np.zeros((len(q), 3)), np.ascontiguousarray(q)
        core().gait_leg_forward(self.at, leg, *map(pointer, (q, foot, jac, angular)))
        return foot, jac.T, angular.T

    def torques(self, leg: int, *values: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(value) for value in values] + [np.zeros(len(values[0]))]
        core().gait_leg_torque(self.at, leg, *map(pointer, arrays))
        return arrays[-1]


def compare(path: Path, robot: Robot, with_torques: bool = True) -> None:
    theirs, ours, rng = Pinocchio(path, robot), CoreLeg(robot), np.random.default_rng(0)
    names = list(dict.fromkeys(robot.joint_names))
    lower, upper = np.maximum(robot.q_lower, -2.0), np.minimum(robot.q_upper, 2.0)
    for _ in range(5):
        q, dq, ddq = (dict(zip(names, rng.normal(size=len(names)) * size, strict=True)) for size in (1.0, 3.0, 30.0))
        clipped = np.clip([q[name] for name in robot.joint_names], lower, upper)
        q = dict(zip(robot.joint_names, clipped, strict=True))
        arrays = [robot.by_leg(np.array([values[name] for name in robot.joint_names])) for values in (q, dq, ddq)]
        gravity, w = rng.normal(size=(2, 3)) * 9.81
        shared = len(names) < robot.num_joints
        torques = robot.by_leg(theirs.torques(q, dq, ddq, gravity_b=gravity)) if with_torques else None
        for i, (chain, *own) in enumerate(zip(robot.chains, *arrays, strict=True)):
            place, velocity, rate = theirs.foot(i, q, dq)
            foot, jac, angular = ours.forward(i, own[0])
            np.testing.assert_allclose(foot, place, **EXACT)
            np.testing.assert_allclose(jac @ own[1], velocity, **EXACT)
            np.testing.assert_allclose(angular @ own[1], rate, **EXACT)
            np.testing.assert_allclose(foot_position(chain, own[0]), place, **EXACT)
            np.testing.assert_allclose(foot_jacobian(chain, own[0]), jac, **EXACT)
            np.testing.assert_allclose(foot_velocity(chain, own[0], own[1], w), velocity + np.cross(w, place), **EXACT)
            np.testing.assert_allclose(foot_rate(chain, own[0], own[1], w), w + rate, **EXACT)
            free = joint_torques(chain, *own, gravity)
            np.testing.assert_allclose(ours.torques(i, *own, gravity), free, **EXACT)
            if torques is not None and not shared:
                np.testing.assert_allclose(free - chain.armature * own[2], torques[i], **EXACT)


@pytest.mark.parametrize("name", URDF)
def test_published_urdf_equals_pinocchio(name: str) -> None:
    path = urdf(name)
    # The IMU of the iCub is in its head, and the arms above the waist of others are held.
    robot = Robot.load(path, base={"icub": "root_link", "talos": "base_link", "romeo": "base_link"}.get(name, ""))
    compare(path, robot)


def test_a_hexapod_equals_pinocchio(tmp_path: Path) -> None:
    """Slanted axes, sliding joints, joints that follow others and fixed joints, from the file and from its YAML."""
    path, own = tmp_path / "hexapod.urdf", tmp_path / "hexapod.yaml"
    path.write_text(hexapod())
    robot = Robot.load(path)
    assert robot.num_legs == 6 and {leg.num_joints for leg in robot.legs} == {4}
    assert {len(leg.axes) for leg in robot.legs} == {5} and robot.foot_radius == 0.012
    np.testing.assert_allclose(robot.imu_position, [0.05, 0.01, 0.03])
    compare(path, robot)
    own.write_text(robot_text(robot))
    compare(path, Robot.load(own))


def test_legs_that_share_a_waist_equal_pinocchio() -> None:
    """From the torso over the waist's joints, which are passed backwards, to the feet."""
    path = urdf("g1")
    robot = Robot.load(path, imu="imu_in_torso")
    assert robot.base_link == "torso_link" and [leg.num_joints for leg in robot.legs] == [9, 9]
    assert [chain.shared for chain in robot.chains] == [3, 3]
    compare(path, robot, with_torques=False)
    whole = Robot.load(path)
    assert robot.mass == pytest.approx(whole.mass, abs=1e-9)


@pytest.mark.parametrize("name", MJCF)
def test_published_mjcf_equals_mujoco(name: str) -> None:
    """Against MuJoCo's own kinematics and inverse dynamics, with the base held."""
    path, mujoco = mjcf(name), needs.package("mujoco")
    from gait.robot.mjcf_reader import parsed_spec

    robot, model = Robot.load(path), parsed_spec(path, mujoco, weightless=True)[0].compile()
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    base = model.body(robot.base_link).id
    joints = [model.joint(joint) for joint in robot.joint_names]
    ends = [model.jnt_bodyid[model.joint(leg.joint_names[-1]).id] for leg in robot.legs]

    def set_joints(q: np.ndarray, dq: np.ndarray) -> None:
        mujoco.mj_resetData(model, data)
        for joint, value, rate in zip(joints, q, dq, strict=True):
            data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = value, rate
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)

    zero = np.array([model.qpos0[joint.qposadr[0]] for joint in joints])
    set_joints(zero, 0.0 * zero)
    R, p = data.xmat[base].reshape(3, 3), data.xpos[base]
    feet = [
        data.xmat[end].reshape(3, 3).T @ (p + R @ foot - data.xpos[end])
        for end, foot in zip(ends, robot.feet(zero), strict=True)
    ]
    for _ in range(5):
        q = rng.uniform(np.maximum(robot.q_lower, -2.0), np.minimum(robot.q_upper, 2.0))
        q = np.array([dict(zip(robot.joint_names, q, strict=True))[joint] for joint in robot.joint_names])
        set_joints(q, 0.0 * q)
        R, p = data.xmat[base].reshape(3, 3), data.xpos[base]
        ours = CoreLeg(robot)
        for i, (own, end, local) in enumerate(zip(robot.by_leg(q), ends, feet, strict=True)):
            want = R.T @ (data.xpos[end] + data.xmat[end].reshape(3, 3) @ local - p)
            np.testing.assert_allclose(ours.forward(i, own)[0], want, **EXACT)
            np.testing.assert_allclose(foot_position(robot.chains[i], own), want, **EXACT)


@pytest.mark.parametrize("name", ["g1", "anymal_c", "solo"])
def test_torch_equals_the_reference(name: str) -> None:
    torch = needs.package("torch")
    from gait.nets.torch_chain import TorchChains
    from gait.nets.torch_chain import foot_rate as torch_rate
    from gait.reference.contacts import ground_wrench
    from gait.reference.flat_feet import contact_lever

    robot, rng, n = Robot.load(urdf(name)), np.random.default_rng(3), 4
    chains = TorchChains(robot, torch.float64)
    shape = (robot.num_legs, robot.legs[0].num_joints)
    q, dq, ddq, tau = rng.normal(size=(4, n, robot.num_joints))
    g, w = rng.normal(size=(2, n, 3))

    def put(values: np.ndarray) -> Any:
        return torch.tensor(values.reshape(n, *shape)).permute(2, 1, 0)

    poses = chains.link_poses(put(q))
    free = chains.joint_torques(poses, put(dq), put(ddq), torch.tensor(g).T)
    wrench, rate = chains.ground_wrench(poses, put(tau), free), torch_rate(poses, put(dq), torch.tensor(w).T)
    told = torch.tensor(rng.random((robot.num_legs, n)) < 0.7)
    lever = chains.contact_lever(poses, wrench, 0.1, told)
    for k in range(n):
        legs = zip(robot.chains, *(robot.by_leg(values[k]) for values in (q, dq, ddq, tau)), strict=True)
        for i, (chain, own, rates, accelerations, torque) in enumerate(legs):
            want = joint_torques(chain, own, rates, accelerations, g[k])
            np.testing.assert_allclose(poses.points[-1][:, i, k], foot_position(chain, own), **EXACT)
            np.testing.assert_allclose(poses.jacobian[:, :, i, k], foot_jacobian(chain, own), **EXACT)
            np.testing.assert_allclose(free[:, i, k], want, **EXACT)
            np.testing.assert_allclose(rate[:, i, k], foot_rate(chain, own, rates, w[k]), **EXACT)
            want = ground_wrench(chain, own, torque, want, robot.leg_length)
            np.testing.assert_allclose(wrench[:, i, k], want, rtol=1e-6, atol=1e-8)
            known = wrench[:, i, k].numpy() if told[i, k] else None
            above = contact_lever(chain, own, np.array([0.0, 0.0, 1.0]), known, 0.1)
            np.testing.assert_allclose(lever[:, i, k], above, **EXACT)
