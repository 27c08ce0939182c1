"""Kinematics tell signs and order of joints: on real robots, and without a false alarm on them."""

import itertools
from dataclasses import replace

import needs
import numpy as np
import pytest

from gait import Robot, open_log
from gait.log.leg_checks import LegReading, better_reading, better_robot
from gait.samples import SAMPLE

HIPS = [0, 3, 6, 9]


def a1() -> LegReading:
    """A real A1, with the links of a Go1, which are 13 mm longer: the checks must stand that."""
    with np.load(needs.shared("real/a1_walk.npz")) as data:
        rows = np.arange(0, len(data["t"]), 3)
        return LegReading(Robot.load("go1"), data["q"][rows], data["dq"][rows], data["gyro"][rows], None)


def turned(motion: LegReading, joints: list[int]) -> LegReading:
    signs = np.ones(12)
    signs[joints] = -1.0
    return motion.changed(np.arange(12), signs)


def test_a_real_a1_passes_and_its_flipped_hips_do_not() -> None:
    motion = a1()
    assert motion.disagreement() < 0.06 and better_reading(motion) is None and better_robot(motion) is None
    for joints in (*map(list, itertools.combinations(HIPS, 2)), HIPS, [0], [1], [11]):
        found = better_reading(turned(motion, joints))
        names = ",".join(f"joints.{motion.robot.joint_names[i]}=-1" for i in joints)
        assert found is not None and found[1] == f"--scale {names}", joints


@pytest.mark.parametrize(
    ("axes", "option"), [((0, 1, 2), "gyro=-1"), ((2,), "gyro.z=-1"), ((0, 1), "gyro.x=-1,gyro.y=-1")]
)
def test_a_gyro_of_the_other_sign_is_not_blamed_on_the_legs(axes: tuple[int, ...], option: str) -> None:
    log = open_log(SAMPLE)
    motion = LegReading.of(log, Robot.load("go1"))
    signs = np.ones(3)
    signs[list(axes)] = -1.0
    found = better_reading(replace(motion, gyro_b=signs * motion.gyro_b))
    assert found is not None and found[1] == f"--scale {option}" and found[2] < 0.05


@pytest.mark.parametrize("trial", range(10))
def test_real_go2_walks_raise_no_alarm(trial: int) -> None:
    with np.load(needs.shared("real/go2_walks.npz")) as data:
        name = data["names"][trial]
        q, dq, gyro = (np.asarray(data[f"{name}.{field}"]) for field in ("q", "dq", "gyro"))
    motion = LegReading(Robot.load("go2"), q, dq, gyro, None)
    assert better_reading(motion) is None and better_robot(motion) is None
    swapped = np.array([3, 4, 5, 0, 1, 2, *range(6, 12)])
    found = better_reading(motion.changed(swapped, np.ones(12)))
    assert found is not None and found[0] == "with the legs as FL FR RR RL"


def test_a_robot_that_stands_says_nothing() -> None:
    robot = Robot.load("go1")
    still = LegReading(robot, np.tile(robot.q_stand, (200, 1)), np.zeros((200, 12)), np.zeros((200, 3)), None)
    assert np.isnan(still.disagreement())
    assert better_reading(still) is None and better_robot(still) is None


@pytest.mark.parametrize("name", ["a1", "go2"])
def test_another_robot_is_found_by_the_ground_truth(name: str) -> None:
    """Links 6 % shorter: feet still agree with each other, but not with the velocity."""
    log = open_log(SAMPLE)
    motion = LegReading.of(log, Robot.load(name))
    found = better_robot(motion)
    assert found is not None and found[0] == "go1"
    assert better_robot(LegReading.of(log, Robot.load("go1"))) is None
    assert name != "a1" or better_robot(replace(motion, vel_b=None)) is None
