"""Import of URDF and MJCF: legs, feet and IMU are found, or asked for; logs carry the robot; verbs take any file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from robot.published_models import hexapod, mjcf, urdf

from gait import Estimator, GaitError, Log, Robot, open_log
from gait.arrays import Array
from gait.cli import main
from gait.robot.chain_yaml import robot_text
from gait.robot.model_tree import rotation_rpy
from gait.robot.stance_checks import mistakes


def write(tmp_path: Path, text: str, name: str = "robot.urdf") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


BIPED = """<robot name="biped_description">
<link name="pelvis"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="imu_link"/>
<joint name="imu_joint" type="fixed"><parent link="pelvis"/><child link="imu_link"/><origin xyz="0.1 0 0"/></joint>
{legs}{more}</robot>"""
LEG = """<link name="{s}_thigh"><inertial><mass value="1"/></inertial></link><link name="{s}_shin"/>
<link name="{s}_{foot}">
<collision><origin xyz="0.02 0 -0.03"/><geometry><box size="0.2 0.08 0.02"/></geometry></collision></link>
<joint name="{s}_hip" type="revolute"><parent link="pelvis"/><child link="{s}_thigh"/><origin xyz="0 {y} -0.1"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="0" velocity="0"/></joint>
<joint name="{s}_knee" type="continuous"><parent link="{s}_thigh"/><child link="{s}_shin"/><origin xyz="0 0 -0.4"/>
<axis xyz="0 1 0"/></joint>
<joint name="{s}_ankle" type="fixed"><parent link="{s}_shin"/><child link="{s}_{foot}"/><origin xyz="0 0 -0.4"/>
</joint>"""


def biped(foot: str = "foot", more: str = "") -> str:
    legs = "".join(LEG.format(s=side, y=y, foot=foot) for side, y in (("l", 0.1), ("r", -0.1)))
    return BIPED.format(legs=legs, more=more)


def test_a_flat_foot_has_the_corners_of_its_box(tmp_path: Path) -> None:
    robot = Robot.load(write(tmp_path, biped()))
    assert robot.name == "biped" and robot.leg_names == ("left", "right") and robot.base_link == "pelvis"
    assert robot.joint_names == ("l_hip", "l_knee", "r_hip", "r_knee")
    np.testing.assert_allclose(robot.feet(np.zeros(4))[0], [0.02, 0.1, -0.94], atol=1e-12)
    corners = robot.corners(np.zeros(4))[1]
    np.testing.assert_allclose(np.sort(corners[:, 0]), [-0.08, -0.08, 0.12, 0.12], atol=1e-12)
    assert np.ptp(corners[:, 1]) == pytest.approx(0.08) and robot.torque_limit[0] == 1e4
    np.testing.assert_allclose(robot.imu_position, [0.1, 0.0, 0.0])


@pytest.mark.parametrize("tilt", [(0.0, 0.12), (0.0, -0.12), (0.15, 0.0), (0.1, 0.1)])
def test_a_sole_that_is_not_level_in_stance_has_all_its_corners(tmp_path: Path, tilt: tuple[float, float]) -> None:
    origin = '<origin xyz="0.02 0 -0.03"'
    tilted = biped().replace(origin, f'{origin} rpy="{tilt[0]} {tilt[1]} 0"')
    straight, robot = Robot.load(write(tmp_path, biped())), Robot.load(write(tmp_path, tilted, "tilted.urdf"))
    turn = rotation_rpy([*tilt, 0.0])
    for one, other in zip(straight.legs, robot.legs, strict=True):
        np.testing.assert_allclose(_sorted(other.foot.corners @ turn), _sorted(one.foot.corners), atol=2e-4)
        # The middle of the lower face: the box turns about its own centre.
        np.testing.assert_allclose(other.offsets[-1], [0.02, 0.0, -0.43] + turn @ [0.0, 0.0, -0.01], atol=2e-4)


def test_feet_that_do_not_rest_on_a_sole_are_left_as_in_stance(tmp_path: Path) -> None:
    lying = '<origin xyz="0.02 0 -0.03" rpy="1.4 0 0"/><geometry><cylinder radius="0.05" length="0.1"/></geometry>'
    box = '<origin xyz="0.02 0 -0.03"/><geometry><box size="0.2 0.08 0.02"/></geometry>'
    steep = box.replace('"/>', '" rpy="0 0.5 0"/>', 1)
    assert biped().count(box) == 2
    for name, shape in (("lying", lying), ("steep", steep)):
        foot = Robot.load(write(tmp_path, biped().replace(box, shape), f"{name}.urdf")).legs[0].foot
        assert len(foot.corners) <= 2, name


def _sorted(points: Array) -> Array:
    return points[np.lexsort(np.round(points, 3).T)]


def test_a_published_stance_that_is_not_level_gives_a_level_sole() -> None:
    pytest.importorskip("mujoco")
    for leg in Robot.load(mjcf("op3")).legs:
        assert np.ptp(leg.foot.corners[:, 2]) < 1e-3  # the sole is level where the joints are at zero
        np.testing.assert_allclose(np.ptp(leg.foot.corners, axis=0)[:2], [0.128, 0.079], atol=0.002)


def test_a_base_that_looks_backwards_is_reported(tmp_path: Path) -> None:
    legs = "".join(LEG.format(s=side, y=y, foot="foot") for side, y in (("l", -0.1), ("r", 0.1)))
    backwards = Robot.load(write(tmp_path, BIPED.format(legs=legs, more="")))
    assert any("x of pelvis points backwards" in words and "--rpy 0,0,180" in words for words in mistakes(backwards))
    turned = Robot.load(tmp_path / "robot.urdf", rpy="0,0,180")
    assert not any("backwards" in words for words in mistakes(turned)) and turned.base_link == "pelvis_turned"
    np.testing.assert_allclose(turned.feet(turned.q_stand)[0], [-0.02, 0.1, -0.94], atol=1e-12)
    np.testing.assert_allclose(turned.imu_position, [-0.1, 0.0, 0.0], atol=1e-12)
    assert not any("backwards" in words for words in mistakes(Robot.load(write(tmp_path, biped()))))


def test_feet_without_the_name_of_one_are_the_lowest_ends(tmp_path: Path) -> None:
    arm = """<link name="hand"/><joint name="shoulder" type="revolute"><parent link="pelvis"/><child link="hand"/>
    <origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><limit lower="-1" upper="1"/></joint>"""
    robot = Robot.load(write(tmp_path, biped("paddle", arm)))
    assert robot.leg_names == ("left", "right") and "shoulder" not in robot.joint_names


def test_what_cannot_be_told_is_asked_for(tmp_path: Path) -> None:
    two = """<link name="imu_b"/><joint name="b" type="fixed"><parent link="pelvis"/><child link="imu_b"/>
    <origin xyz="0 0 0.3"/></joint>"""
    path = write(tmp_path, biped(more=two))
    with pytest.raises(GaitError, match=r"several IMUs: choose with --imu imu_link; --imu imu_b$"):
        Robot.load(path)
    assert Robot.load(path, imu="imu_b").imu_position[2] == pytest.approx(0.3)
    with pytest.raises(GaitError, match=r"no link or site 'l_foo': choose from --feet l_foot"):
        Robot.load(path, imu="imu_b", feet="l_foo")
    with pytest.raises(GaitError, match="joints lie between the IMU on pelvis and the base l_thigh"):
        Robot.load(path, imu="pelvis", base="l_thigh")
    assert Robot.load(path, imu="imu_b", feet="r_foot").leg_names == ("right",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot", "is not valid XML"),
        ("<robot/>", "must have one link"),
        ("<sdf/>", "is no URDF: its first element is <sdf>"),
        (
            '<robot><link name="a"/><joint type="fixed"><parent link="b"/><child link="a"/></joint></robot>',
            "names the link 'b'",
        ),
        ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:leg/></robot>', "is a xacro file: expand it first"),
        (biped().replace('xyz="0 0 -0.4"', 'xyz="0 0"'), "has a number that cannot be read"),
        (biped().replace('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>'), "the axis of the joint 'l_hip' is zero"),
        ('<robot><link name="a"/></robot>', "which links are its feet"),
    ],
)
def test_a_bad_urdf_says_what_to_fix(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GaitError, match=message):
        Robot.load(write(tmp_path, text))


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(GaitError, match="cannot read robot file"):
        Robot.load(tmp_path / "none.urdf")


def still_log(robot: Robot, seconds: float = 1.0) -> Log:
    """The robot stands."""
    n = int(500 * seconds)
    q = np.tile(robot.q_stand[[robot.joint_names.index(name) for name in robot.encoder_names]], (n, 1))
    return Log(
        t=np.arange(n) / 500.0, gyro=np.zeros((n, 3)), accel=np.tile([0.0, 0.0, 9.81], (n, 1)), q=q, dq=0.0 * q,
        contact=np.ones((n, robot.num_legs), dtype=bool), robot=robot,
    )  # fmt: skip


@pytest.mark.parametrize("suffix", ["npz", "csv", "mcap"])
def test_logs_carry_their_robot(tmp_path: Path, suffix: str) -> None:
    robot = Robot.load(write(tmp_path, hexapod()))
    log = still_log(robot)
    path = tmp_path / f"log.{suffix}"
    log.save(path)
    again = open_log(path)
    assert again.robot == "hexapod" and again.description == log.description
    np.testing.assert_allclose(again.load_robot().feet(robot.q_stand), robot.feet(robot.q_stand), atol=1e-9)
    assert again.reorder(again.robot).joint_names == robot.joint_names
    assert still_log(Robot.load("go2")).description == ""  # ships with gait


def test_verbs_work_on_a_robot_of_ones_own_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path, hexapod())
    assert main(["robot", "import", str(source), "--out", str(tmp_path / "my.yaml"), "--name", "my"]) == 0
    assert "next: gait robot show" in capsys.readouterr().out
    assert main(["robot", "show", str(tmp_path / "my.yaml"), "--json"]) == 0
    rows = {row["name"]: row["value"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["joints"] == 24 and rows["leg0_joints"] == "leg0_yaw leg0_hip leg0_knee leg0_slide"
    log = still_log(Robot.load(tmp_path / "my.yaml"))
    bare = log.replace(robot="unknown", description="", leg_names=log.leg_names, joint_names=log.joint_names)
    bare.save(tmp_path / "bare.npz")
    assert (
        main(["run", str(tmp_path / "bare.npz"), "--robot", str(tmp_path / "my.yaml"), "--out", str(tmp_path / "a")])
        == 0
    )
    log.save(tmp_path / "log.npz")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["run", "../log.npz", "--out", "b", "--method", "iekf"]) == 0
    assert main(["info", "../log.npz"]) == 0
    assert main(["convert", "../log.npz", "log.csv"]) == 0
    assert open_log("log.csv").load_robot().name == "my"


def test_joints_that_two_legs_share_come_once() -> None:
    """Of a G1 whose IMU is above its waist: a log has the waist's joints once, both legs use them."""
    robot = Robot.load(urdf("g1"), imu="imu_in_torso")
    assert robot.num_joints == 18 and len(robot.encoder_names) == 15
    log = still_log(robot)
    whole = Estimator.load(robot, "iekf").run(log, "gravity")
    one = Estimator.load(robot, "iekf")
    one.reset()
    states = [one.update(row) for row in log.rows()]
    np.testing.assert_array_equal(states[-1].vel_w, whole.vel_w[-1])
    assert np.linalg.norm(whole.pos_w[-1]) < 1e-3 and np.abs(whole.vel_w).max() < 1e-3


def test_a_humanoid_stands_and_its_yaml_gives_the_same_numbers(tmp_path: Path) -> None:
    robot = Robot.load(mjcf("berkeley_humanoid"))
    path = tmp_path / "own.yaml"
    path.write_text(robot_text(robot))
    log = still_log(robot)
    for method in ("gait-legs", "iekf", "iekf-sr"):
        one, two = (Estimator.load(source, method).run(log, "gravity") for source in (robot, path))
        np.testing.assert_allclose(one.vel_w, two.vel_w, atol=1e-9)
        assert np.abs(one.vel_w).max() < 0.01, method


def test_a_turn_comes_on_top_of_the_first() -> None:
    from gait.robot.model_tree import rotation_rpy, turn_after

    def turn(words: str) -> np.ndarray:
        return rotation_rpy(np.radians([float(one) for one in words.split(",")]).tolist())

    for first, second in (("-90,0,0", "0,0,-90"), ("0,90,0", "0,0,180"), ("10,20,30", "5,-40,170")):
        np.testing.assert_allclose(turn(turn_after(first, second)), turn(first) @ turn(second), atol=1e-4)
