"""Torques of a log against the weight of its robot."""

from pathlib import Path

import numpy as np
import pytest

from gait import Log, Robot
from gait.io import ReadOptions
from gait.io.checked import read_checked
from gait.log.checks import check_log
from gait.log.finding import CheckFinding
from gait.log.weight_checks import carried_mass
from gait.samples import SAMPLE


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(5.0, 13.0)


def weight(log: Log, robot: str = "go1", named: str = "") -> CheckFinding | None:
    return next((one for one in check_log(log, Robot.load(robot), named) if one.name == "weight"), None)


def test_legs_carry_the_robot_of_the_sample(log: Log) -> None:
    mass, lowest = carried_mass(log, Robot.load("go1")) or (0.0, 0.0)
    assert mass == pytest.approx(Robot.load("go1").mass, rel=0.1) and lowest > 0.7
    found = weight(log)
    assert found is not None and found.ok


def test_a_heavier_robot_is_another_one_or_loaded(log: Log) -> None:
    found = weight(log.replace(tau=1.2 * log.tau))
    assert found is not None and not found.ok and found.grave
    others = "another robot (15.0 kg: --robot go2 or 13.7 kg: --robot a1), a load of "
    assert others in found.words and "--scale tau=0.78" in found.words
    # The file names the robot: it is loaded, and nothing is wrong.
    found = weight(log.replace(tau=1.2 * log.tau), named="go1")
    assert found is not None and not found.ok and not found.grave and "another robot" not in found.words
    found = weight(log.replace(tau=5.0 * log.tau), named="go1")
    assert found is not None and found.grave and "a load" not in found.words


def test_a_lighter_one_has_no_load_and_torques_may_be_turned(log: Log) -> None:
    found = weight(log.replace(tau=0.6 * log.tau))
    assert found is not None and not found.ok and "load" not in found.words
    found = weight(log.replace(tau=-log.tau))
    assert found is not None and found.fix == "--scale tau=-1"


def test_torques_of_other_legs_are_told(log: Log) -> None:
    assert log.tau is not None
    found = weight(log.replace(tau=log.tau[:, [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]]), named="go1")
    assert found is not None and "torques are those of other joints" in found.words and found.grave


def test_nothing_is_said_where_legs_carry_nothing_or_torques_are_missing(log: Log) -> None:
    assert weight(log.replace(tau=None)) is None
    assert weight(log.replace(tau=0.05 * log.tau)) is None
    assert weight(log.slice(5.0, 7.0)) is None


def test_forces_are_those_of_feet_that_hold_a_robot_at_rest() -> None:
    robot = Robot.load("go2")
    q = np.tile(robot.q_stand, (400, 1))
    t = 0.01 * np.arange(400)
    # Each leg pushes up with a quarter of what is left of the weight once legs hold themselves by the same torques.
    up, force = np.array([0.0, 0.0, 1.0]), 0.25 * robot.mass * 9.81
    tau = []
    for chain, own in zip(robot.chains, robot.by_leg(q[0]), strict=True):
        rotations, points, axes = chain.link_poses(own)
        held = [
            sum(
                9.81 * chain.mass[s] * axes[j] @ np.cross(points[s] + rotations[s] @ chain.com[s] - points[j], up)
                for s in range(j, 3)
            )
            for j in range(3)
        ]
        tau.append(np.array(held) - chain.jacobians(own)[0].T @ (force * up))
    still = {"gyro": np.zeros((400, 3)), "accel": np.tile(9.81 * up, (400, 1)), "dq": np.zeros_like(q)}
    log = Log(t=t, q=q, tau=np.tile(np.concatenate(tau), (400, 1)), robot="go2", **still)
    mass, _ = carried_mass(log, robot) or (0.0, 0.0)
    assert mass == pytest.approx(robot.mass, rel=1e-9)


def test_a_file_that_names_another_robot_is_told(log: Log, tmp_path: Path) -> None:
    log.save(tmp_path / "walk.npz")
    assert read_checked(tmp_path / "walk.npz", ReadOptions())[0].robot == "go1"
    for robot, ok in (("go1", True), ("a1", False)):
        _, findings = read_checked(tmp_path / "walk.npz", ReadOptions(robot=robot))
        found = next(one for one in findings if one.name == "robot")
        assert found.ok == ok and (ok or "the file is of the robot go1, and is read as a1" in found.words)


def test_a_rolling_foot_is_no_error_of_the_links() -> None:
    """The lowest foot of the sample measures the true velocity of its robot."""
    from gait.log.leg_checks import LegReading

    error, speed, ratio = LegReading.of(Log.load(SAMPLE), Robot.load("go1")).true_error()
    assert error < 0.03 < speed and ratio == pytest.approx(1.0, abs=0.01)
