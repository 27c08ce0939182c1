"""MJCF files with what published ones seldom have: import finds legs, feet and IMU, or says what is not supported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
from robot.unusual_models import ATTACHED, INCLUDED, LIMB, biped, rods

from gait import Estimator, GaitError, Log, Robot
from gait.cli import main
from gait.lie import rotation_from_quat
from gait.robot.chain_yaml import robot_text
from gait.robot.leg_detection import read_model, robot_of
from gait.robot.stance_checks import mistakes

mujoco: Any = needs.package("mujoco")


MASS = '<inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'


def write(tmp_path: Path, text: str, name: str = "model.xml") -> Path:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def imported(path: Path) -> tuple[Robot, str]:
    """The robot, and all that import says about it."""
    tree = read_model(path)
    return robot_of(tree), "\n".join(tree.notes)


def feet_of_mujoco(path: Path, robot: Robot, q: dict[str, float], local: np.ndarray | None = None) -> np.ndarray:
    """Where MuJoCo has points of the last links in the base (L, 3); the points are those of our feet at reference."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)

    def places(angles: dict[str, float]) -> list[tuple[np.ndarray, np.ndarray]]:
        mujoco.mj_resetData(model, data)
        for name, value in angles.items():
            data.qpos[model.joint(name).qposadr[0]] = value
        mujoco.mj_kinematics(model, data)
        base = model.body(robot.base_link).id
        R, p = data.xmat[base].reshape(3, 3), data.xpos[base]
        ends = [model.joint(leg.joint_names[-1]).bodyid[0] for leg in robot.legs]
        return [(R.T @ data.xmat[e].reshape(3, 3), R.T @ (data.xpos[e] - p)) for e in ends]

    drawn = {name: float(model.qpos0[model.joint(name).qposadr[0]]) for name in robot.joint_names}
    feet = robot.feet(np.array([drawn[name] for name in robot.joint_names]))
    local = np.array([R.T @ (foot - p) for (R, p), foot in zip(places(drawn), feet, strict=True)])
    return np.array([p + R @ point for (R, p), point in zip(places(q), local, strict=True)])


def check_kinematics(path: Path, robot: Robot) -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = {name: float(rng.uniform(-0.5, 0.5)) for name in robot.joint_names}
        ours = robot.feet(np.array([q[name] for name in robot.joint_names]))
        np.testing.assert_allclose(ours, feet_of_mujoco(path, robot, q), atol=1e-9)


def stands(robot: Robot) -> None:
    """A second at rest stays at rest, with the description and with what its YAML file gives."""
    n = 200
    q = np.tile(robot.q_stand[[robot.joint_names.index(name) for name in robot.encoder_names]], (n, 1))
    log = Log(
        t=np.arange(n) / 200.0, gyro=np.zeros((n, 3)), q=q, dq=0.0 * q, contact=np.ones((n, robot.num_legs), bool),
        accel=np.tile(rotation_from_quat(robot.imu_quat_wxyz).T @ [0.0, 0.0, 9.81], (n, 1)), robot=robot,
    )  # fmt: skip
    for method in ("gait-legs", "iekf"):
        assert np.abs(Estimator.load(robot, method).run(log, "gravity").vel_w).max() < 0.01, method


@pytest.mark.parametrize(
    ("foot", "long", "wide"), [("capsules", 0.18, 0.06), ("spheres", 0.18, 0.06), ("boxes", 0.2, 0.08)]
)
def test_soles_of_several_shapes_without_sites_or_names(tmp_path: Path, foot: str, long: float, wide: float) -> None:
    path = write(tmp_path, biped(foot))
    robot, notes = imported(path)
    assert robot.base_link == "robot/torso" and robot.leg_names == ("left", "right") and robot.name == "two_legs"
    assert robot.legs[0].joint_names == tuple(
        f"robot/{name}" for name in ("waist", "l/hip_yaw", "l/hip_roll", "l/hip_pitch", "l/knee", "l/pitch")
    )
    sides = np.sort(np.linalg.norm(robot.legs[0].foot.corners[1:] - robot.legs[0].foot.corners[0], axis=1))
    # The feet are turned by 10 degrees about z, and their box with them.
    np.testing.assert_allclose(sides[:2], [wide, long], rtol=0.005)
    np.testing.assert_allclose(robot.imu_position, [0.02, 0.0, 0.2], atol=1e-12)
    assert robot.mass == pytest.approx(float(mujoco.MjModel.from_xml_path(str(path)).body_mass.sum()))
    named = dict(
        zip(robot.joint_names, zip(robot.kp, robot.kd, robot.torque_limit, robot.q_upper, strict=True), strict=True)
    )
    assert named["robot/l/knee"][:2] == (90.0, 2.0) and named["robot/l/hip_yaw"][2] == 80.0
    assert named["robot/r/knee"][3] == pytest.approx(np.radians(140.0))
    assert "stance: as drawn, since it has no key" in notes and mistakes(robot) == []
    check_kinematics(path, robot)
    stands(robot)
    own = tmp_path / "own.yaml"
    own.write_text(robot_text(robot))
    np.testing.assert_allclose(Robot.load(own).feet(robot.q_stand), robot.feet(robot.q_stand), atol=1e-9)


def test_radians_and_other_euler_sequences_are_the_compilers(tmp_path: Path) -> None:
    text = biped(compiler='angle="radian" eulerseq="XYZ"').replace('euler="10 0 5"', 'euler="0.1 0 0.3"')
    path = write(tmp_path, text.replace('euler="90 0 0"', 'euler="0 0 1.5"').replace('ref="5"', 'ref="0.1"'))
    check_kinematics(path, imported(path)[0])


def test_joints_that_follow_others_on_a_line_or_a_curve(tmp_path: Path) -> None:
    line = '<joint joint1="robot/{s}/pitch" joint2="robot/{s}/knee" polycoef="0 -0.5 {c} 0 0" {more}/>'
    line = f"<equality>{line}</equality>"
    straight = line.format(s="l", c=0, more="") + line.format(s="r", c=0, more="")
    robot, _ = imported(write(tmp_path, biped(more=straight)))
    assert [leg.num_joints for leg in robot.legs] == [5, 5] and "robot/l/pitch" not in robot.joint_names
    knee = 0.4
    q = {name: knee if name.endswith("knee") else 0.0 for name in robot.joint_names}
    path = tmp_path / "model.xml"
    want = feet_of_mujoco(
        path,
        imported(write(tmp_path, biped(), "free.xml"))[0],
        {**q, "robot/l/pitch": -0.5 * knee, "robot/r/pitch": -0.5 * knee},
    )
    np.testing.assert_allclose(robot.feet(np.array([q[name] for name in robot.joint_names])), want, atol=1e-9)
    stands(robot)
    robot, notes = imported(write(tmp_path, biped(more=line.format(s="l", c=0.2, more=""))))
    assert robot.num_joints == 12 and "robot/l/pitch follows robot/l/knee by a curve" in notes
    robot, _ = imported(write(tmp_path, biped(more=line.format(s="l", c=0, more='active="false"'))))
    assert robot.num_joints == 12


def test_closed_loops_with_rods_are_reported_and_the_tree_is_followed(tmp_path: Path) -> None:
    path = write(tmp_path, rods())
    robot, notes = imported(path)
    assert robot.leg_names == ("left", "right")
    assert robot.legs[0].joint_names == tuple(
        f"left-{name}" for name in ("hip-pitch", "knee", "shin", "tarsus", "foot")
    )
    assert (
        "closed loops are not followed (left-plantar-rod to left-foot, left-achilles-rod to left-heel-spring" in notes
    )
    assert "leave tau out" in notes and len(robot.legs[0].foot.corners) == 2
    check_kinematics(path, robot)
    stands(robot)
    with pytest.raises(GaitError, match="'left-tarsus' on the way to left-foot is a ball joint"):
        imported(write(tmp_path, rods(ball_in_leg=True)))


def test_legs_that_are_attached_included_and_replicated(tmp_path: Path) -> None:
    write(tmp_path, LIMB, "parts/limb.xml")
    # MuJoCo looks for it beside the file that is loaded or beside the one that includes it, as its version has it.
    write(tmp_path, INCLUDED, "parts/ball.xml")
    write(tmp_path, INCLUDED, "ball.xml")
    path = write(tmp_path, ATTACHED)
    robot, _ = imported(path)
    assert set(robot.leg_names) == {"front", "rear", "side_0", "side_1"}
    assert {leg.name: leg.foot.radius for leg in robot.legs}["front"] == pytest.approx(0.03)
    check_kinematics(path, robot)
    stands(robot)


def test_keys_that_are_no_stance_are_left(tmp_path: Path) -> None:
    def with_keys(*names: str) -> Path:
        bent = " ".join(["0 0 1 1 0 0 0", *["0.2"] * 15])
        keys = "".join(f'<key name="{name}" qpos="{bent}"/>' for name in names)
        return write(tmp_path, biped(more=f"<keyframe>{keys}</keyframe>"))

    assert imported(with_keys("prone", "init_stand"))[0].q_stand.max() > 0.1
    assert imported(with_keys("whatever"))[0].q_stand.max() > 0.1
    robot, notes = imported(with_keys("squat", "stand_on_left_leg"))
    assert robot.q_stand[1:].max() < 0.1 and "none of the keys squat, stand_on_left_leg is named stand" in notes


def test_a_base_whose_z_is_not_up_is_named(tmp_path: Path) -> None:
    lying = biped().replace(
        '<body name="robot/torso" pos="0 0 0.1">', '<body name="robot/torso" pos="0 0 0.1" euler="0 90 0">'
    )
    robot, _ = imported(write(tmp_path, lying))
    (said,) = [line for line in mistakes(robot) if "z of robot/torso is not up: its legs point to" in line]
    upright = robot_of(read_model(tmp_path / "model.xml"), rpy=said.split("--rpy ")[1])
    assert upright.base_link == "robot/torso_turned" and mistakes(upright) == []
    plain, _ = imported(write(tmp_path, biped(), "plain.xml"))
    np.testing.assert_allclose(upright.feet(upright.q_stand), plain.feet(plain.q_stand), atol=1e-9)
    np.testing.assert_allclose(upright.imu_position, [0.2, 0.0, -0.02], atol=1e-9)  # it is turned with the torso
    assert upright.mass == pytest.approx(plain.mass)
    with pytest.raises(GaitError, match="--rpy must be three angles such as 0,0,180"):
        robot_of(read_model(tmp_path / "plain.xml"), rpy="180")


def test_toes_on_a_joint_of_their_own_are_no_feet(tmp_path: Path) -> None:
    toes = '<joint name="SIDE_toe"/><geom type="sphere" size="0.01"/>'
    toes = f'<body name="robot/SIDEtoes" pos="0.13 0 -0.05">{toes}</body>'
    text = biped("boxes")
    for side in ("l", "r"):
        own = toes.replace("SIDE", side)
        text = text.replace(f'name="robot/{side}/end"', f'name="robot/{side}foot"')
        at = text.index("</body>", text.index(f'name="robot/{side}foot"'))
        text = text[:at] + own + text[at:]
    robot, _ = imported(write(tmp_path, text))
    assert robot.leg_names == ("left", "right") and "l_toe" not in robot.joint_names
    assert len(robot.legs[0].foot.corners) == 4


def test_import_shows_the_waist_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, biped())
    assert main(["robot", "import", str(path), "--out", str(tmp_path / "my.yaml")]) == 0
    said = capsys.readouterr().out
    assert said.count("every leg (") == 1 and "flat 18 x 6 cm" in said
    masses = [line.split()[3] for line in said.splitlines() if line.startswith(("left ", "right "))]
    assert len(masses) == 2 and masses[0] == masses[1]


def test_a_log_of_a_robot_with_a_waist_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its waist is one column of the log and a joint of both legs."""
    monkeypatch.chdir(tmp_path)
    robot, t = Robot.load(write(tmp_path, biped())), np.arange(400) * 0.005
    stand = robot.q_stand[[robot.joint_names.index(name) for name in robot.encoder_names]]
    log = Log(
        t=t,
        gyro=np.zeros((len(t), 3)),
        accel=np.tile(rotation_from_quat(robot.imu_quat_wxyz).T @ [0.0, 0.0, 9.81], (len(t), 1)),
        q=stand + 0.02 * np.sin(6.0 * t)[:, None],
        dq=0.12 * np.cos(6.0 * t)[:, None] * np.ones(len(stand)),
        robot=robot,
    )
    log.save(tmp_path / "walk.npz")
    assert main(["run", "walk.npz", "--method", "gait-legs"]) == 0, capsys.readouterr().err
    chart = (tmp_path / "runs/run/latest/report.html").read_text()
    assert chart.count("waist") >= 2 and "left (rad)" in chart and "right (rad)" in chart
    assert main(["info", "walk.npz"]) == 0 and "ok   joints: in range" in capsys.readouterr().out


def test_a_part_of_a_scene_names_the_scene(tmp_path: Path) -> None:
    """As in MuJoCo Playground, where a robot's contact pairs need the floor of its scenes."""
    pair = '<contact><pair geom1="ground" geom2="floor"/></contact>'
    part = write(tmp_path, biped().replace("</mujoco>", f"{pair}</mujoco>"), "part.xml")
    write(tmp_path, "<mujoco/>", "another.xml")
    with pytest.raises(GaitError, match=r"'floor' not found[^;]*$"):
        read_model(part)
    whole = write(tmp_path, '<mujoco><include  file="part.xml"/></mujoco>', "whole.xml")
    with pytest.raises(GaitError, match=f"part.xml is a part of {whole}: name that file"):
        read_model(part)


def test_a_ball_on_its_own_link_is_the_foot_where_the_shank_lies(tmp_path: Path) -> None:
    """At the zeros of a URDF without a stance, legs may be folded and their shanks level."""
    rod = '<geometry><cylinder length="0.2" radius="0.02"/></geometry>'
    shank = f'<collision><origin xyz="0.1 0 0" rpy="0 1.5708 0"/>{rod}</collision>'
    legs = "".join(
        f'''<link name="{side}_thigh">{MASS}</link><link name="{side}_shank">{MASS}{shank}</link>
        <link name="{side}_toe"><collision><geometry><sphere radius="0.02"/></geometry></collision></link>
        <joint name="{side}_hip" type="revolute"><parent link="base"/><child link="{side}_thigh"/><axis xyz="0 1 0"/>
        <origin xyz="0 {y} 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
        <joint name="{side}_knee" type="revolute"><parent link="{side}_thigh"/><child link="{side}_shank"/>
        <axis xyz="0 1 0"/><origin xyz="-0.2 0 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
        <joint name="{side}_end" type="fixed"><parent link="{side}_shank"/><child link="{side}_toe"/>
        <origin xyz="0.21 0 0"/></joint>'''
        for side, y in (("left", 0.1), ("right", -0.1))
    )
    robot, _ = imported(
        write(tmp_path, f'<robot name="folded"><link name="base">{MASS}</link>{legs}</robot>', "r.urdf")
    )
    assert [leg.foot.radius for leg in robot.legs] == [0.02, 0.02] and not any(leg.foot.is_flat for leg in robot.legs)
    np.testing.assert_allclose(robot.feet(np.zeros(4)), [[0.01, 0.1, 0.0], [0.01, -0.1, 0.0]], atol=1e-9)


def test_a_single_leg_is_pointed_out() -> None:
    go1 = Robot.load("go1")
    assert not any("only leg" in line for line in mistakes(go1))
    first = slice(0, 3)
    columns = {
        name: getattr(go1, name)[first]
        for name in (
            "q_lower", "q_upper", "torque_limit", "velocity_limit", "damping", "friction", "kp", "kd", "q_stand",
            "zeros",
        )
    }  # fmt: skip
    assert any(
        "FR is the only leg that was found" in line for line in mistakes(replace(go1, legs=go1.legs[:1], **columns))
    )
