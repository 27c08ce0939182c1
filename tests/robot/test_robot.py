"""Robot kinematics against Pinocchio on Unitree's published Go1 URDF, and the checks of the YAML reader."""

import sysconfig
from dataclasses import replace
from pathlib import Path

import needs
import numpy as np
import pytest
import yaml

from gait import GaitError, Robot
from gait.robot import Link, kinematics, robot_names
from gait.robot.kinematics import leg_torque
from gait.robot.stance_checks import mistakes

SHARE = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"


class PinocchioGo1:
    """The independent implementation: Pinocchio on the published URDF, addressed by name."""

    def __init__(self) -> None:
        self.pin = needs.package("pinocchio")
        urdf = SHARE / "go1_description/urdf/go1.urdf"
        if not urdf.is_file():
            needs.lacking("example-robot-data", "pip install -e '.[dev]'")
        self.model = self.pin.buildModelFromUrdf(str(urdf))
        self.data = self.model.createData()

    def configuration(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        out = np.zeros(self.model.nq)
        for name, value in zip(robot.joint_names, q, strict=True):
            out[self.model.joints[self.model.getJointId(name)].idx_q] = value
        return out

    def columns(self, robot: Robot) -> list[int]:
        return [self.model.joints[self.model.getJointId(name)].idx_v for name in robot.joint_names]

    def feet(self, robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pin, full = self.pin, self.configuration(robot, q)
        pin.computeJointJacobians(self.model, self.data, full)
        pin.updateFramePlacements(self.model, self.data)
        position, jacobian = [], []
        for i, leg in enumerate(robot.leg_names):
            frame = self.model.getFrameId(f"{leg}_foot")
            position.append(self.data.oMf[frame].translation.copy())
            whole = pin.getFrameJacobian(self.model, self.data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            jacobian.append(whole[:, self.columns(robot)][:, 3 * i : 3 * i + 3])
        return np.array(position), np.array(jacobian)


@pytest.fixture(scope="module")
def go1() -> Robot:
    return Robot.load("go1")


@pytest.fixture(scope="module")
def reference() -> PinocchioGo1:
    return PinocchioGo1()


def random_joints(robot: Robot, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(robot.q_lower, robot.q_upper, size=(count, robot.num_joints))


def test_feet_and_jacobians_equal_pinocchio(go1: Robot, reference: PinocchioGo1) -> None:
    q = random_joints(go1, 200)
    feet, jac = go1.forward(q)
    for k in range(len(q)):
        want_feet, want_jac = reference.feet(go1, q[k])
        np.testing.assert_allclose(feet[k], want_feet, atol=1e-9)
        np.testing.assert_allclose(jac[k], want_jac[:, :3], atol=1e-9)


def test_read_only_arrays_are_taken(go1: Robot) -> None:
    q = random_joints(go1, 3)
    q.flags.writeable = False
    foot = go1.feet(q)[0, 0]
    foot.flags.writeable = False
    assert go1.inverse("FR", foot).shape == (3,)


def test_foot_velocity_and_calf_rate_equal_pinocchio(go1: Robot, reference: PinocchioGo1) -> None:
    rng = np.random.default_rng(1)
    q, dq, gyro = random_joints(go1, 50, 1), rng.normal(size=(50, 12)) * 5, rng.normal(size=(50, 3))
    velocity = go1.foot_velocity(q, dq, gyro)
    for k in range(len(q)):
        feet, jac = reference.feet(go1, q[k])
        for i in range(4):
            legs = slice(3 * i, 3 * i + 3)
            want = jac[i] @ dq[k, legs]
            np.testing.assert_allclose(velocity[k, i], want[:3] + np.cross(gyro[k], feet[i]), atol=1e-9)
            rate = kinematics.calf_rate(go1.signs[i], q[k, legs], dq[k, legs], gyro[k])
            np.testing.assert_allclose(rate, want[3:] + gyro[k], atol=1e-9)


def test_mass_equals_pinocchio(go1: Robot, reference: PinocchioGo1) -> None:
    ours = go1.mass
    theirs = sum(inertia.mass for inertia in reference.model.inertias)
    assert ours == pytest.approx(theirs, abs=1e-4)  # the URDF adds camera links of 10 mg each


def test_leg_torque_equals_pinocchio(go1: Robot, reference: PinocchioGo1) -> None:
    """Inverse dynamics with gravity, velocity and acceleration terms; rotors come on top of the URDF's links."""
    pin, model, columns = reference.pin, reference.model, reference.columns(go1)
    rng = np.random.default_rng(6)
    for q in random_joints(go1, 100, 6):
        dq, ddq, gravity = rng.normal(size=12) * 10, rng.normal(size=12) * 200, rng.normal(size=3) * 9.81
        model.gravity.linear = gravity
        v, a = np.zeros(model.nv), np.zeros(model.nv)
        v[columns], a[columns] = dq, ddq
        want = pin.rnea(model, reference.data, reference.configuration(go1, q), v, a)[columns] + go1.armature * ddq
        got = np.empty((4, 3))
        for i in range(4):
            j = slice(3 * i, 3 * i + 3)
            leg = go1.offsets[i], go1.signs[i], go1.leg_inertial[i], go1.armature[j]
            got[i] = leg_torque(*leg, q[j], dq[j], ddq[j], gravity)
        np.testing.assert_allclose(got.ravel(), want, atol=1e-9)


def test_all_legs_and_moments_at_once_equal_one_by_one(go1: Robot) -> None:
    rng = np.random.default_rng(7)
    q, dq, ddq = random_joints(go1, 20, 7), rng.normal(size=(20, 12)), rng.normal(size=(20, 12))
    gravity = np.array([0.1, -0.2, -9.81])

    def joints_first(values: np.ndarray) -> np.ndarray:
        return np.moveaxis(values.reshape(20, 4, 3), -1, 0)

    legs = [np.moveaxis(array, 0, -1) for array in (go1.offsets, go1.signs, go1.leg_inertial)]
    armature = go1.armature.reshape(4, 3).T
    together = np.stack(leg_torque(*legs, armature, *map(joints_first, (q, dq, ddq)), gravity), -1)
    for k in range(20):
        np.testing.assert_allclose(go1.forward(q)[1][k], go1.jacobian(q[k]), atol=1e-14)
        for i in range(4):
            j = slice(3 * i, 3 * i + 3)
            leg = go1.offsets[i], go1.signs[i], go1.leg_inertial[i], go1.armature[j]
            np.testing.assert_allclose(
                together[k, i], leg_torque(*leg, q[k, j], dq[k, j], ddq[k, j], gravity), atol=1e-12
            )


def test_link_inertias_equal_pinocchio(go1: Robot, reference: PinocchioGo1) -> None:
    for i in range(4):
        for j in range(3):
            theirs = reference.model.inertias[reference.model.getJointId(go1.joint_names[3 * i + j])]
            ours = go1.links[i][j]
            assert ours.mass == pytest.approx(theirs.mass, abs=1e-9)
            np.testing.assert_allclose(ours.com, theirs.lever, atol=1e-9)
            np.testing.assert_allclose(ours.inertia, theirs.inertia, atol=1e-9)


def test_inverse_kinematics_returns_the_foot(go1: Robot) -> None:
    # Hips stay within reach of the solution with the foot below the hip.
    q = random_joints(go1, 300, 3)
    q[:, 1::3] = np.random.default_rng(4).uniform(-0.3, 1.8, size=(300, 4))
    feet = go1.feet(q)
    for k in range(len(q)):
        for i, leg in enumerate(go1.leg_names):
            solution = go1.inverse(leg, feet[k, i])
            again = q[k].copy()
            again[3 * i : 3 * i + 3] = solution
            np.testing.assert_allclose(go1.feet(again)[i], feet[k, i], atol=1e-9)
            assert np.sign(solution[2]) == go1.knee_signs[i]


def test_inverse_kinematics_out_of_reach(go1: Robot) -> None:
    with pytest.raises(GaitError, match="out of reach of leg FR"):
        go1.inverse("FR", np.array([1.0, -0.1, -0.3]))
    with pytest.raises(GaitError, match="no leg 'XX'"):
        go1.inverse("XX", np.array([0.2, -0.1, -0.3]))


def edited(tmp_path: Path, edit) -> Path:
    tree = yaml.safe_load((Path(kinematics.__file__).parent / "go1.yaml").read_text())
    edit(tree)
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    return path


def test_a_changed_axis_is_one_yaml_edit(go1: Robot, tmp_path: Path) -> None:
    mirrored = Robot.load(edited(tmp_path, lambda tree: tree["leg"].update(axes=["-x", "-y", "-y"])))
    q = random_joints(go1, 20, 5)
    np.testing.assert_allclose(mirrored.feet(-q), go1.feet(q), atol=1e-12)
    np.testing.assert_allclose(mirrored.jacobian(-q), -go1.jacobian(q), atol=1e-12)


def test_two_legs_work(tmp_path: Path) -> None:
    def biped(tree: dict) -> None:
        tree["legs"] = {name: tree["legs"][name] for name in ("FR", "FL")}

    robot = Robot.load(edited(tmp_path, biped))
    assert robot.joint_names[3] == "FL_hip_joint"
    assert robot.feet(robot.q_stand).shape == (2, 3)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda tree: tree.update(colour="red"), "unknown key 'colour' in the file"),
        (lambda tree: tree["leg"].update(knee=1), "unknown key 'knee' in `leg`"),
        (lambda tree: tree["links"]["hip"][0].update(weight=1), "unknown key 'weight' in `part`"),
        (lambda tree: tree["joints"].pop("kp"), "`joints` lacks the key 'kp'"),
        (lambda tree: tree["leg"].update(axes=["z", "y", "y"]), r"must be \[x, y, y\]"),
        (lambda tree: tree["leg"].update(foot_radius=-1), "must be positive"),
        (lambda tree: tree["leg"]["offsets"].update(calf=[0, 0, 0]), "`leg.offsets.calf` must not be zero"),
        (lambda tree: tree["joints"].update(kp=[1, 2]), "must be 3 numbers"),
        (lambda tree: tree["joints"].update(lower=[9, 9, 9]), "below its joints.upper"),
        (
            lambda tree: tree["joints"].update(stand=[0.0, 0.8, -3.0]),
            "`joints.stand` must lie between",
        ),
        (
            lambda tree: tree["joints"].update(stand=[1.0, 0.8, -1.5]),
            "`joints.stand` must lie between",
        ),
        (lambda tree: tree["imu"].update(quat_wxyz=[2, 0, 0, 0]), "length 1"),
        (lambda tree: tree.update(legs={}), "`legs` must map"),
    ],
)
def test_a_bad_robot_file_says_what_to_fix(tmp_path: Path, edit, message: str) -> None:
    with pytest.raises(GaitError, match=message):
        Robot.load(edited(tmp_path, edit))


def test_unknown_robot_and_broken_files(tmp_path: Path) -> None:
    assert "go1" in robot_names()
    with pytest.raises(GaitError, match="unknown robot 'rex'.*go1"):
        Robot.load("rex")
    with pytest.raises(GaitError, match="cannot read robot file"):
        Robot.load(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("legs: [1, 2\nname: x")
    with pytest.raises(GaitError, match=r"not valid YAML at line \d"):
        Robot.load(broken)
    broken.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(GaitError, match="not a text file|not valid YAML"):
        Robot.load(broken)
    with pytest.raises(GaitError, match="last axis must be 12"):
        Robot.load("go1").feet(np.zeros(11))


SHIPPED = ["a1", "anymal_c", "b1", "g1", "go1", "go2", "h1", "mini_cheetah", "solo12", "spot", "t1"]


def test_shipped_robots_stand_and_name_their_source() -> None:
    assert robot_names() == SHIPPED
    for name in SHIPPED:
        robot = Robot.load(name)
        wrong = [line for line in mistakes(robot) if "gain" not in line]
        assert robot.name == name and not wrong, wrong
        assert robot.source or "Sources" in (Path(kinematics.__file__).parent / f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", ["Go1", "unitree_go1", "UNITREE-GO1", "go1_description"])
def test_names_are_forgiving(name: str) -> None:
    assert Robot.load(name).name == "go1"


def test_inverse_kinematics_of_knees_that_bend_both_ways() -> None:
    """The knees of an ANYmal may bend either way by their range; in stance those of front and rear legs differ."""
    robot = Robot.load("anymal_c")
    assert sorted(robot.knee_signs) == [-1.0, -1.0, 1.0, 1.0]
    feet = robot.feet(robot.q_stand)
    q = np.concatenate([robot.inverse(leg, feet[i]) for i, leg in enumerate(robot.leg_names)])
    np.testing.assert_allclose(q, robot.q_stand, atol=1e-9)


def test_zeros_of_encoders_are_taken_off(go1: Robot, tmp_path: Path) -> None:
    zeros = {"FR_hip_joint": 0.02, "RL_calf_joint": -0.03}
    path = edited(tmp_path, lambda tree: tree.update(zeros=zeros))
    robot, q = Robot.load(path), random_joints(go1, 20, 9)
    np.testing.assert_allclose(robot.feet(q + robot.zeros), go1.feet(q), atol=1e-12)
    assert robot.zeros[0] == 0.02 and robot.zeros[11] == -0.03 and not robot.zeros[1:11].any()
    with pytest.raises(GaitError, match="unknown key 'FR_hip' in `zeros`"):
        Robot.load(edited(tmp_path, lambda tree: tree.update(zeros={"FR_hip": 0.1})))


def test_mistakes_are_named(go1: Robot) -> None:
    assert mistakes(go1) == []
    folded = replace(go1, q_stand=np.tile([0.0, 3.0, -2.8], 4))
    assert "below their hips" in mistakes(folded)[0]
    assert any(
        "differ in height" in line for line in mistakes(replace(go1, q_stand=go1.q_stand * np.repeat([1, 0], 6)))
    )
    assert any("weighs" in line for line in mistakes(replace(go1, base=Link(1e4, np.zeros(3), np.eye(3)))))
    for turn, yaw in (([[0, -1, 0], [1, 0, 0], [0, 0, 1]], 90), ([[-1, 0, 0], [0, -1, 0], [0, 0, 1]], 180)):
        legs = [
            replace(leg, offsets=leg.offsets @ np.transpose(turn), axes=leg.axes @ np.transpose(turn))
            for leg in go1.legs
        ]
        assert any(line.endswith(f"--rpy 0,0,{yaw}") for line in mistakes(replace(go1, legs=tuple(legs)))), yaw
